"""The console in a real browser, against a real node. `scripts/test-console` runs this."""

import base64
import ctypes
import hashlib
import itertools
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import expect, sync_playwright

PASSWORD = "correct horse battery staple"

# Long enough for a machine that has other work: who waits, waits for a condition.
PATIENCE_MILLISECONDS = 30_000
expect.set_options(timeout=PATIENCE_MILLISECONDS)


def pytest_addoption(parser):
    parser.addoption("--seed-row", type=int, help="only the tests that do this row of scripts/seed-apps")


def pytest_configure(config):
    config.addinivalue_line("markers", "seeds(*rows): does these rows of scripts/seed-apps")


def pytest_collection_modifyitems(config, items):
    row = config.getoption("--seed-row")
    if row is not None:
        items[:] = [item for item in items if any(row in mark.args for mark in item.iter_markers("seeds"))]


def free_ports(count):
    """Ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def ask_until(is_so):
    """Asks until it is so, as often as it can; each question is another try."""
    end = time.monotonic() + 2 * PATIENCE_MILLISECONDS / 1_000
    while not is_so():
        assert time.monotonic() < end, "it was never so"


def end_with_parent():
    """In a child: it ends when this program does, however that comes."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Server:
    """A node of its own, with its data in a new folder."""

    # The console's files of a folder, while they are worked on; those in the program are kept by browsers.
    files = os.environ.get("ZONEKEEPER_CONSOLE_FILES")

    def __init__(self, program, folder):
        self.folder, self.program = Path(folder), program
        self._tls = ssl._create_unverified_context()
        # Somebody else may have taken a port meanwhile.
        for attempt in range(5):
            if self._start(*free_ports(2)):
                break
        else:
            raise RuntimeError(f"the node ended: {(self.folder / 'log').read_text(errors='replace')[-2000:]}")
        self.token = (self.folder / "data/admin.token").read_text().strip()

    def _start(self, port, peer_port):
        self.port, self.url = port, f"https://127.0.0.1:{port}"
        self.process = self.run("serve", "--data", self.folder / "data", "--port", str(port), "--peer-port", str(peer_port),
                                "--webhooks-allow-private-addresses", "--webhooks-allow-http")
        return self.wait()

    def run(self, *arguments):
        """Starts the program; of the caller's environment it gets nothing that is about Zonekeeper."""
        if self.files and arguments[0] == "serve":
            arguments = [*arguments, "--console-files", self.files]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ZONEKEEPER_")}
        with open(self.folder / "log", "ab") as log:
            return subprocess.Popen([self.program, *arguments], stdout=log, stderr=subprocess.STDOUT, cwd=self.folder,
                                    env=environment, preexec_fn=end_with_parent)

    def wait(self):
        """Until the node can serve. Whether it can; not where it ended."""
        for _ in range(2_000):
            try:
                self.process.wait(0.05)
                return False
            except subprocess.TimeoutExpired:
                pass
            try:
                with urllib.request.urlopen(f"{self.url}/health/ready", context=self._tls, timeout=5):
                    return True
            except OSError:
                continue
        raise RuntimeError("the node never became ready")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def call(self, method, path, body=None, token=None, headers=None, **query):
        """A request with the administrator's token; the JSON of its answer, also of a refusal."""
        address = self.url + path + ("?" + urlencode(query, quote_via=quote) if query else "")
        data = None if body is None and method in ("GET", "DELETE") else json.dumps(body or {}).encode()
        request = urllib.request.Request(address, data, method=method, headers={"Content-Type": "application/json", **(headers or {})})
        if token is not False:
            request.add_header("Authorization", f"Bearer {token or self.token}")
        try:
            with urllib.request.urlopen(request, context=self._tls) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            text = error.read().decode()
        return json.loads(text) if text[:1] in ("{", "[") else text

    def link(self):
        return self.call("POST", "/admin/1/console/links")["url"]

    def public_key_hash(self):
        """Of the node's certificate, as Chromium has it."""
        certificate = ssl.get_server_certificate(("127.0.0.1", self.port)).encode()
        key = subprocess.run(["openssl", "x509", "-pubkey", "-noout"], input=certificate, check=True, stdout=subprocess.PIPE).stdout
        bytes = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=key, check=True, stdout=subprocess.PIPE).stdout
        return base64.b64encode(hashlib.sha256(bytes).digest()).decode()


class Member(Server):
    """One node of a cluster."""

    def __init__(self, program, folder, number, port, token, more):
        self.folder, self.program, self.number, self.more = Path(folder), program, number, more
        self.port, self.url, self.token = port, f"https://127.0.0.1:{port}", token
        self._tls = ssl._create_unverified_context()
        self.start()

    def start(self):
        self.process = self.run("serve", "--config", "cluster.json", "--node", str(self.number), *self.more)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Cluster:
    """Three nodes, each with these options more."""

    def __init__(self, program, folder, *more):
        folder = Path(folder)
        ports = free_ports(6)
        nodes = [{"id": number, "host": "127.0.0.1", "clientPort": ports[number - 1], "peerPort": ports[number + 2]} for number in (1, 2, 3)]
        (folder / "cluster.json").write_text(json.dumps({"name": "console", "data": "data", "shards": 4, "replicas": 3, "nodes": nodes}))
        subprocess.run([program, "certs", "create", "--config", "cluster.json"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        token = secrets.token_hex(32)
        file = folder / "data/admin.token"
        file.touch(0o600)
        file.write_text(token + "\n")
        self.nodes = [Member(program, folder, node["id"], node["clientPort"], token, more) for node in nodes]
        for node in self.nodes:
            assert node.wait(), (folder / "log").read_text(errors="replace")[-2000:]

    def stop(self):
        for node in self.nodes:
            node.kill()


class Container:
    """A container of a test's own."""

    def __init__(self, server, name):
        self.server, self.name = server, name
        assert server.call("POST", "/admin/1/containers", {"name": name}) == {"name": name}
        # What tests find out is not how fast they are.
        server.call("PATCH", "/admin/1/limits", {"requestsPerSecond": 100_000, "requestsPerSecondMax": 100_000}, container=name)

    def schema(self, text):
        answer = self.server.call("POST", "/admin/1/schema", {"schema": text}, container=self.name)
        assert answer.get("applied"), answer

    def exported(self, environment="development"):
        return self.server.call("GET", "/admin/1/schema", container=self.name, environment=environment)

    def data(self, operation, body, environment="development", **query):
        return self.server.call("POST", f"/database/1/{self.name}/{environment}/public/{operation}", body, **query)

    def save(self, record_type, fields, name=None, tag=None):
        record = {"recordType": record_type, "fields": {key: {"value": value} for key, value in fields.items()}}
        if name:
            record["recordName"] = name
        if tag:
            record["recordChangeTag"] = tag
        kind = "update" if tag else "create"
        [answer] = self.data("records/modify", {"operations": [{"operationType": kind, "record": record}]})["records"]
        assert "serverErrorCode" not in answer, answer
        return answer

    def app(self, user):
        """An app where a user is signed in: sends operations on the public database."""
        self.server.call("POST", "/admin/1/users", {"name": user})
        names = {"container": self.name, "environment": "development"}
        api = self.server.call("POST", "/admin/1/tokens", {"kind": "api", **names})["secret"]
        session = self.server.call("POST", "/admin/1/tokens", {"kind": "session", "user": user, **names})["secret"]
        return lambda operation, body, database="public": self.server.call(
            "POST", f"/database/1/{self.name}/development/{database}/{operation}", body, token=False, ckAPIToken=api, ckWebAuthToken=session)

    def lookup(self, name):
        return self.data("records/lookup", {"records": [{"recordName": name}], "numbersAsStrings": True})["records"][0]

    def address(self, screen, environment="development", **params):
        return f"{self.server.url}/console/{self.name}/{environment}/{screen}" + (f"?{urlencode(params, quote_via=quote)}" if params else "")


@pytest.fixture(scope="session")
def server():
    folder = tempfile.mkdtemp(prefix="zonekeeper-console-")
    node = Server(os.environ["ZONEKEEPER_PROGRAM"], folder)
    yield node
    node.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cluster():
    with tempfile.TemporaryDirectory(prefix="zonekeeper-console-", ignore_cleanup_errors=True) as folder:
        three = Cluster(os.environ["ZONEKEEPER_PROGRAM"], folder)
        yield three
        three.stop()


@pytest.fixture(scope="session")
def browser(server):
    with sync_playwright() as playwright:
        program = os.environ.get("ZONEKEEPER_CHROMIUM")
        assert program, "scripts/test-console runs this, and says where there is a Chromium"
        # A browser keeps no file that came by a certificate that it does not trust.
        browser = playwright.chromium.launch(executable_path=program, args=[
            "--no-sandbox", "--disable-dev-shm-usage", f"--ignore-certificate-errors-spki-list={server.public_key_hash()}"])
        yield browser
        browser.close()


def sign_in_first(server, page):
    """Scenario 1 by keyboard: the first administrator comes by a link, and chooses a password. By mouse it is in test_security.py."""
    page.goto(server.link())
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.type("maria")
    for _ in range(2):
        page.keyboard.press("Tab")
        page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Containers")).to_be_visible()


def sign_in_again(server, page):
    page.goto(server.url + "/console/")
    page.get_by_label("Name").fill("maria")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Containers")).to_be_visible()


@pytest.fixture(scope="session")
def sign_ins():
    return []


@pytest.fixture
def signed_in(server, browser, sign_ins):
    """The first administrator's cookies. What asks for a sign-in of the last 15 minutes gets one, however long all tests take."""
    if not sign_ins or sign_ins[-1][0] < time.monotonic() - 600:
        context = browser.new_context(ignore_https_errors=True)
        (sign_in_again if sign_ins else sign_in_first)(server, context.new_page())
        sign_ins.append((time.monotonic(), context.storage_state()))
        context.close()
    return sign_ins[-1][1]


def watch(page, origin):
    """What must never happen on a page, gathered as it happens."""
    problems = []
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    # A refused request is told there, too; each test says itself what it expects of those.
    page.on("console", lambda message: message.type in ("error", "warning") and "Failed to load resource" not in message.text
            and problems.append(f"console: {message.text}"))
    page.on("request", lambda request: not request.url.startswith((origin, "blob:", "data:")) and problems.append(f"foreign: {request.url}"))
    page.add_init_script("document.addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`))")
    return problems


@pytest.fixture(scope="session")
def new_context(browser):
    def make(state, **options):
        context = browser.new_context(ignore_https_errors=True, storage_state=state, locale="en-GB", timezone_id="UTC",
                                      permissions=["clipboard-read", "clipboard-write"], **options)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        return context

    return make


@pytest.fixture(scope="session")
def usual_context(new_context):
    """A context for pages that need nothing of their own: it has the console's files already. Tests leave nothing in it."""
    context = new_context(None)
    yield context
    context.close()


@pytest.fixture
def open_page(new_context, usual_context, server, signed_in):
    """Opens pages, signed in; a test fails at its end where one of them met a problem."""
    contexts, problems = [], []
    usual_context.add_cookies(signed_in["cookies"])

    def open_one(address="/console/", state=signed_in, **options):
        context = usual_context
        if options or state is not signed_in:
            context = new_context(state, **options)
            contexts.append(context)
        page = context.new_page()
        problems.append(watch(page, server.url))
        page.goto(address if address.startswith("https:") else server.url + address)
        return page

    yield open_one
    for context in contexts:
        context.close()
    if usual_context.pages:
        devtools = usual_context.new_cdp_session(usual_context.pages[0])
        devtools.send("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": "cookies,local_storage"})
    for page in usual_context.pages:
        page.close()
    assert [each for some in problems for each in some] == []


numbers = itertools.count(1)


@pytest.fixture
def container(server):
    return Container(server, f"iCloud.com.example.test{next(numbers)}")


RESTAURANTS = """DEFINE SCHEMA
    RECORD TYPE Restaurant (
        "___createTime" TIMESTAMP QUERYABLE SORTABLE,
        "___recordID" REFERENCE QUERYABLE,
        name STRING QUERYABLE SEARCHABLE SORTABLE,
        phone STRING,
        seats INT64 QUERYABLE SORTABLE,
        rating DOUBLE,
        opened TIMESTAMP SORTABLE,
        location LOCATION QUERYABLE,
        near REFERENCE,
        tags LIST<STRING> QUERYABLE,
        hash BYTES,
        image ASSET,
        GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud", GRANT READ TO "_world"
    );
"""


@pytest.fixture
def restaurants(container):
    """A container with a type that has a field of each kind."""
    container.schema(RESTAURANTS)
    return container
