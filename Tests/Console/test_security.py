"""What a browser must refuse, or the server for it: requests of other pages, other ports and other clusters, and frames."""

import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from conftest import PASSWORD, Server

MODIFY = """async ([address, name]) => {
    const body = JSON.stringify({operations: [{operationType: "create", record: {recordType: "Restaurant", recordName: name, fields: {}}}]});
    try {
        const answer = await fetch(address, {method: "POST", credentials: "include", body, headers: {"Content-Type": "text/plain"}});
        return {status: answer.status, text: await answer.text()};
    } catch (error) {
        return {status: 0, text: String(error)};
    }
}"""


@pytest.fixture
def other_site():
    """A page of another server on this host: to browsers it is the same site, and of another origin."""
    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title><p>elsewhere")

        def log_message(self, *_):
            pass

    site = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{site.server_port}/"
    site.shutdown()
    site.server_close()


def test_a_page_of_another_port_changes_and_reads_nothing(server, restaurants, browser, signed_in, other_site):
    context = browser.new_context(ignore_https_errors=True, storage_state=signed_in)
    page = context.new_page()
    page.goto(other_site)
    path = f"/database/1/{restaurants.name}/development/public/records/modify"
    sent = []
    page.on("response", lambda response: sent.append((response.url, response.status)))
    answer = page.evaluate(MODIFY, [server.url + path, "forged"])
    assert answer["status"] in (0, 401, 403), answer
    # A form needs no permission to be sent, and takes the cookies along where they are the site's.
    page.evaluate("""(address) => {
        const form = document.createElement("form");
        Object.assign(form, {method: "POST", action: address, enctype: "text/plain"});
        const field = document.createElement("input");
        Object.assign(field, {name: '{"name": "iCloud.com.example.forged", "x": "', value: '"}'});
        form.append(field);
        document.body.append(form);
        form.submit();
    }""", f"{server.url}/admin/1/containers")
    page.wait_for_url(f"{server.url}/**")
    assert [status for url, status in sent if url.endswith("/containers")][-1] in (401, 403)
    read = context.new_page()
    read.goto(other_site)
    assert read.evaluate("(url) => fetch(url, {credentials: 'include'}).then((answer) => answer.text(), () => null)", f"{server.url}/admin/1/console/me") is None
    context.close()
    assert restaurants.lookup("forged")["serverErrorCode"] == "NOT_FOUND"
    assert all("forged" not in each["name"] for each in server.call("GET", "/admin/1/containers")["containers"])


def test_the_pages_own_requests_need_their_token(server, restaurants, open_page):
    page = open_page(restaurants.address("records", type="Restaurant"))
    expect(page.get_by_text("No Restaurant yet")).to_be_visible()
    path = f"/database/1/{restaurants.name}/development/public/records/modify"
    answer = page.evaluate(MODIFY, [path, "without-token"])
    assert answer["status"] in (401, 403), answer
    assert restaurants.lookup("without-token")["serverErrorCode"] == "NOT_FOUND"


def test_nobody_frames_the_console(server, browser, signed_in, other_site):
    context = browser.new_context(ignore_https_errors=True, storage_state=signed_in)
    page = context.new_page()
    page.goto(other_site)
    refusals = []
    page.on("console", lambda message: refusals.append(message.text))
    page.evaluate("""(address) => new Promise((done) => {
        const frame = document.createElement("iframe");
        frame.onload = done;
        frame.src = address;
        document.body.append(frame);
    })""", f"{server.url}/console/")
    [frame] = page.main_frame.child_frames
    assert frame.locator("#app").count() == 0
    assert any("frame" in text.lower() for text in refusals), refusals
    context.close()


def test_a_sign_in_is_for_one_cluster_and_the_programs_own_files_are_whole(server, browser, signed_in):
    """Another node of this host, which serves the files in its program: it does not know the session, and has all of the pages."""
    folder = tempfile.TemporaryDirectory(prefix="zonekeeper-console-")
    other = Server(server.program, folder.name)
    try:
        context = browser.new_context(ignore_https_errors=True, storage_state=signed_in)
        page = context.new_page()
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("requestfailed", lambda request: "/console/" in request.url and problems.append(request.url))
        page.goto(f"{other.url}/console/")
        expect(page.get_by_role("heading", name="Sign in to Zonekeeper")).to_be_visible()
        page.goto(other.link())
        page.get_by_label("Name").fill("olga")
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_label("Password, again").fill(PASSWORD)
        page.get_by_role("button", name="Set password").click()
        expect(page.get_by_role("heading", name="Containers")).to_be_visible()
        # Both sign-ins stand side by side.
        page.goto(f"{server.url}/console/")
        expect(page.get_by_role("heading", name="Containers")).to_be_visible()
        page.get_by_title("Account").click()
        expect(page.get_by_text("maria")).to_be_visible()
        page.goto(f"{other.url}/console/")
        page.get_by_title("Account").click()
        expect(page.get_by_text("olga")).to_be_visible()
        for screen in ("Users", "Audit", "Cluster", "Settings", "Containers"):
            page.get_by_role("navigation", name="Screens").get_by_role("link", name=screen, exact=True).click()
            expect(page.get_by_role("heading", name=screen, level=1)).to_be_visible()
        context.close()
        assert problems == []
    finally:
        other.stop()
        folder.cleanup()
