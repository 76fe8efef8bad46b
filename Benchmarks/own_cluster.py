"""A cluster of three nodes of their own in a temporary folder, for the benchmarks beside this file."""
import asyncio
import json
import os
import re
import resource
import secrets
import socket
import ssl
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# To each node.
CONNECTIONS = 32


class Connection:
    """Requests to one node, one after another."""

    def __init__(self, port, context):
        self.port, self.context, self.streams, self.turn = port, context, None, asyncio.Lock()

    async def send(self, method, target, body=None, headers=()):
        async with self.turn:
            # Nodes close connections of which nothing is heard for a while.
            if self.streams is None or self.streams[0].at_eof():
                self.streams = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.context)
            reader, writer = self.streams
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode() if body is not None else b""
            head = ["%s %s HTTP/1.1" % (method, target), "Host: 127.0.0.1:%d" % self.port,
                    "Content-Length: %d" % len(data), *headers]
            writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + data)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:"))
            answer = await reader.readexactly(length)
        if int(lines[0].split()[1]) != 200:
            raise RuntimeError("%s %s: %s %s" % (method, target.split("?")[0], lines[0], answer[:300]))
        return json.loads(answer) if answer else {}


class OwnCluster:
    """Three nodes of a program, which end with it."""

    def __init__(self, folder, program, *arguments):
        """Makes the nodes' files and starts them; `arguments` are more of `serve`'s."""
        self.folder, self.program, self.arguments = folder, program, arguments
        ports = []
        for _ in range(6):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                ports.append(probe.getsockname()[1])
        self.ports = ports[:3]
        nodes = [{"id": i + 1, "host": "127.0.0.1", "clientPort": ports[i], "peerPort": ports[3 + i]} for i in range(3)]
        with open(self.path("cluster.json"), "w") as f:
            json.dump({"name": "benchmark", "data": "data", "shards": 16, "replicas": 3, "nodes": nodes}, f)
        subprocess.run((program, "certs", "create", "--config", self.path("cluster.json")), check=True,
                       stdout=subprocess.DEVNULL)
        self.token = secrets.token_hex(32)
        with os.fdopen(os.open(self.path("admin.token"), os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(self.token)
        self.context = ssl.create_default_context(cafile=self.path("data/certs/client-ca.pem"))
        self.pools = [[Connection(port, self.context) for _ in range(CONNECTIONS)] for port in self.ports]
        self.nodes = []
        self.start()

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        for number in range(3):
            with open(self.path("node-%d.log" % (number + 1)), "a") as log:
                self.nodes.append(subprocess.Popen(
                    (self.program, "serve", "--config", self.path("cluster.json"), "--node", str(number + 1),
                     "--admin-token-file", self.path("admin.token"), "--log-level", "error", *self.arguments),
                    stdout=log, stderr=subprocess.STDOUT))

    def stop(self):
        for node in self.nodes:
            node.terminate()
        for node in self.nodes:
            node.wait(60)
        self.nodes = []

    def connection(self, node):
        """The one of a node that was used longest ago."""
        pool = self.pools[node]
        pool.append(pool.pop(0))
        return pool[-1]

    async def admin(self, method, path, body=None, node=0):
        return await self.connection(node).send(
            method, "/admin/1/" + path, body, ["Authorization: Bearer " + self.token])

    async def unthrottle(self):
        """Sets the rates of requests so high that they are not met."""
        await self.admin("PATCH", "limits", {
            name: 1000000 for name in (
                "requestsPerSecond", "requestsPerSecondMax", "keyValueRequestsPerSecond",
                "keyValueRequestsPerSecondMax")})

    async def ready(self):
        """Waits until all nodes serve, and all groups are at the level of the program."""
        for number in range(3):
            while True:
                try:
                    await self.pools[number][0].send("GET", "/health/ready")
                    break
                except (OSError, RuntimeError, asyncio.IncompleteReadError):
                    self.pools[number][0].streams = None
                    if self.nodes[number].poll() is not None:
                        raise SystemExit("node %d ended" % (number + 1))
                    await asyncio.sleep(0.2)
        while True:
            status = await self.admin("GET", "status")
            if all(each.get("featureLevel") == status.get("featureLevelMax") for each in status["replicas"]):
                return
            await asyncio.sleep(0.2)

    def memory(self):
        """Bytes of the nodes that are in memory."""
        return sum(int(re.search(r"VmRSS:\s+(\d+) kB", open("/proc/%d/status" % node.pid).read()).group(1)) * 1024
                   for node in self.nodes)

    def processor(self):
        """Seconds of processor time that the nodes took so far."""
        ticks = 0
        for node in self.nodes:
            fields = open("/proc/%d/stat" % node.pid).read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


def run(program, benchmark):
    """Runs a benchmark, `async def benchmark(folder)`, in a temporary folder, with as many open files as may be."""
    if not os.path.exists(program):
        sys.exit("%s is missing: swift build -c release --static-swift-stdlib --product zonekeeper" % program)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(benchmark(folder))
