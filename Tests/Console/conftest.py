"""The console in a real browser, against a real node. `scripts/test-console` runs this."""

import itertools
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery staple"

expect.set_options(timeout=10_000)


class Server:
    """A node of its own, with its data in a new folder."""

    def __init__(self, program, folder):
        self.folder = Path(folder)
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            self.port, peer_port = one.getsockname()[1], other.getsockname()[1]
        self.url = f"https://127.0.0.1:{self.port}"
        self.log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen(
            [program, "serve", "--data", self.folder / "data", "--port", str(self.port), "--peer-port", str(peer_port),
             "--console-files", ROOT / "Sources/ConsoleFiles/Web"],
            stdout=self.log, stderr=subprocess.STDOUT, cwd=folder)
        self._tls = ssl._create_unverified_context()
        self._wait()
        self.token = (self.folder / "data/admin.token").read_text().strip()

    def _wait(self):
        """Until the node can serve: it is asked again as soon as it refused."""
        for _ in range(20_000):
            if self.process.poll() is not None:
                raise RuntimeError(f"the node ended: {(self.folder / 'log').read_text(errors='replace')[-2000:]}")
            try:
                with urllib.request.urlopen(f"{self.url}/health/ready", context=self._tls, timeout=5):
                    return
            except OSError:
                continue
        raise RuntimeError("the node never became ready")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()

    def call(self, method, path, body=None, token=None, **query):
        """A request with the administrator's token; the JSON of its answer, also of a refusal."""
        address = self.url + path + ("?" + urlencode(query) if query else "")
        data = None if body is None and method in ("GET", "DELETE") else json.dumps(body or {}).encode()
        request = urllib.request.Request(address, data, method=method, headers={"Content-Type": "application/json"})
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


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        program = shutil.which("chromium")
        assert program, "there is no chromium"
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def signed_in(server, browser):
    """The cookies of the first administrator, who came by a link and chose a password."""
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    page.goto(server.link())
    page.get_by_label("Name").fill("maria")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password, again").fill(PASSWORD)
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_role("heading", name="Containers")).to_be_visible()
    state = context.storage_state()
    context.close()
    return state


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


@pytest.fixture
def open_page(browser, server, signed_in):
    """Opens pages, signed in; a test fails at its end where one of them met a problem."""
    contexts, problems = [], []

    def open_one(address="/console/", state=signed_in, **options):
        context = browser.new_context(ignore_https_errors=True, storage_state=state, locale="en-GB", timezone_id="UTC",
                                      permissions=["clipboard-read", "clipboard-write"], **options)
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        problems.append(watch(page, server.url))
        page.goto(address if address.startswith("https:") else server.url + address)
        return page

    yield open_one
    for context in contexts:
        context.close()
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
