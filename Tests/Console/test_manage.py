"""What a team keeps of its containers: hidden ones, notes, webhooks, earlier schemas, tokens."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from conftest import Container, PASSWORD
from keys import tab_to
from test_scenarios import TYPE


def more(page, name, item):
    page.get_by_role("button", name=f"More on {name}").click()
    page.get_by_role("menuitem", name=item).click()


@pytest.mark.seeds(59)
def test_3_a_container_is_hidden_for_the_whole_team_and_shown_again(server, container, browser, open_page):
    page = open_page()
    page.locator(".container-button").click()
    page.get_by_role("menuitem", name="Manage Containers…").click()
    card = page.get_by_role("article").filter(has=page.get_by_role("heading", name=container.name, exact=True))
    more(page, container.name, "Note…")
    page.get_by_role("dialog").get_by_label("Note").fill("nobody uses it")
    page.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("nobody uses it")
    more(page, container.name, "Hide from lists")
    expect(card).to_have_count(0)
    # A colleague does not see it either; nothing of it is gone.
    name = "colleague-" + container.name.rsplit(".", 1)[-1]
    server.call("POST", "/admin/1/administrators", {"name": name, "role": "admin", "password": PASSWORD})
    other = browser.new_context(ignore_https_errors=True).new_page()
    other.goto(server.url + "/console/")
    other.get_by_label("Name").fill(name)
    other.get_by_label("Password").fill(PASSWORD)
    other.get_by_role("button", name="Sign in").click()
    expect(other.get_by_role("heading", name="Containers")).to_be_visible()
    expect(other.get_by_role("heading", name=container.name, exact=True)).to_have_count(0)
    other.context.close()
    assert container.exported()
    page.get_by_role("checkbox", name=re.compile("^Show .* hidden")).check()
    expect(card).to_contain_text("hidden")
    more(page, container.name, "Show in lists")
    expect(card).not_to_contain_text("hidden")


class Receiver:
    """A server that takes deliveries."""

    def __init__(self):
        bodies = self.bodies = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.server.shutdown()
    one.server.server_close()


def test_a_webhook_is_made_tested_told_of_a_record_and_deleted(restaurants, receiver, open_page):
    page = open_page(restaurants.address("webhooks"))
    expect(page.get_by_text("No webhook yet")).to_be_visible()
    page.keyboard.press("n")
    dialog = page.get_by_role("dialog", name="New webhook")
    expect(dialog.get_by_label("Name")).to_be_focused()
    page.keyboard.type("orders")
    dialog.get_by_label("Receiver").fill(receiver.url)
    expect(dialog.get_by_role("button", name="Make webhook")).to_have_attribute("aria-disabled", "true")
    dialog.get_by_label("Restaurant").check()
    dialog.get_by_label("Fields to send along").fill("name")
    dialog.get_by_role("button", name="Make webhook").click()
    secret = page.get_by_role("dialog", name="Secret of orders")
    expect(secret).to_contain_text("whsec_")
    secret.get_by_role("button", name="I have kept it").click()
    expect(page.get_by_role("row", name=re.compile("orders"))).to_contain_text("enabled")
    expect(page.locator("body")).not_to_contain_text("whsec_")

    more(page, "orders", "Send a test")
    expect(page.locator(".toast", has_text="orders answered 204")).to_be_visible()
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page.get_by_role("link", name="orders").click()
    deliveries = page.get_by_role("table", name="Deliveries to orders")
    expect(deliveries).to_contain_text("HTTP 204")
    assert any("Osteria" in json.dumps(body) for body in receiver.bodies)

    more(page, "orders", "Disable")
    expect(page.get_by_role("row", name=re.compile("orders")).first).to_contain_text("disabled")
    more(page, "orders", "New secret")
    expect(page.get_by_role("dialog", name="Secret of orders")).to_contain_text("both secrets")
    page.get_by_role("button", name="I have kept it").click()
    more(page, "orders", "Delete…")
    page.get_by_role("alertdialog").get_by_role("button", name="Delete webhook").click()
    expect(page.get_by_text("No webhook yet")).to_be_visible()


def test_a_form_sends_what_was_changed_in_it_and_leaves_the_rest(restaurants, receiver, open_page):
    """Somebody else changes the same thing while a form is open: what was not touched in the form stays as they made it."""
    server, place = restaurants.server, {"container": restaurants.name, "environment": "development"}
    name = "meanwhile-" + restaurants.name.rsplit(".", 1)[-1]
    server.call("POST", "/admin/1/administrators", {"name": name, "role": "admin", "password": PASSWORD})
    server.call("POST", "/admin/1/users", {"name": name, "email": "old@example.com"})
    token = server.call("POST", "/admin/1/tokens", {"kind": "api", "label": name, **place})["id"]
    server.call("POST", "/admin/1/webhooks", {"name": "meanwhile", "url": receiver.url, "recordTypes": ["Restaurant"], "fields": ["name"], **place})
    dialog = lambda: page.get_by_role("dialog")
    of_name = lambda path, member: [each for each in server.call("GET", path)[member] if each["name"] == name][0]

    page = open_page("/console/~/development/team")
    more(page, name, "Change role…")
    server.call("PATCH", "/admin/1/administrators", {"containers": [restaurants.name]}, name=name)
    dialog().get_by_label("Role").select_option("viewer")
    dialog().get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name=re.compile(name))).to_contain_text("Viewer")
    member = of_name("/admin/1/administrators", "administrators")
    assert (member["role"], member["containers"]) == ("viewer", [restaurants.name])
    # Where nothing was changed nothing is sent, and the list is read again.
    more(page, name, "Change role…")
    server.call("PATCH", "/admin/1/administrators", {"role": "developer"}, name=name)
    dialog().get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name=re.compile(name))).to_contain_text("Developer")

    page.goto(restaurants.address("users"))
    page.get_by_label("Search by the beginning of a name").fill(name)
    more(page, name, "Edit…")
    server.call("PATCH", "/admin/1/users", {"email": "new@example.com", "discoverable": True}, name=name)
    dialog().get_by_label("Given name").fill("Ada")
    dialog().get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name=re.compile(name))).to_contain_text("new@example.com")
    user = server.call("GET", "/admin/1/users", after=name[:-1], limit=1)["users"][0]
    assert (user["givenName"], user["email"], user["discoverable"]) == ("Ada", "new@example.com", True)

    page.goto(restaurants.address("access"))
    page.get_by_role("row", name=re.compile(name)).get_by_role("button", name="Edit").click()
    server.call("PATCH", "/admin/1/tokens", {"origins": ["https://app.example.com"]}, id=token)
    dialog().get_by_label("Name").fill("Web app")
    dialog().get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name=re.compile("Web app"))).to_contain_text("https://app.example.com")

    page.goto(restaurants.address("webhooks"))
    more(page, "meanwhile", "Edit…")
    server.call("PATCH", "/admin/1/webhooks", {"name": "meanwhile", "fields": [], **place})
    dialog().get_by_label("Receiver").fill(receiver.url + "/other")
    dialog().get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name=re.compile("meanwhile"))).to_contain_text("/other")
    [hook] = server.call("GET", "/admin/1/webhooks", **place)["webhooks"]
    assert (hook["url"], hook["fields"], hook["recordTypes"]) == (receiver.url + "/other", [], ["Restaurant"])


def test_an_earlier_schema_is_shown_and_restored_as_a_plan(container, open_page):
    container.schema(TYPE.format("Dish", "name STRING,"))
    container.schema(TYPE.format("Dish", "name STRING, price INT64,"))
    page = open_page(container.address("schema"))
    page.get_by_role("link", name="Swift").click()
    expect(page.get_by_role("region", name="Swift code")).to_contain_text("var price: Int64?")
    page.get_by_role("link", name="History").click()
    rows = page.get_by_role("table", name="Versions")
    expect(rows.get_by_role("row", name=re.compile("^3"))).to_contain_text("now")
    old = rows.get_by_role("row", name=re.compile("^2"))
    expect(old).to_contain_text("administrator")
    old.get_by_role("button", name="Show").click()
    expect(page.get_by_role("dialog", name="Version 2")).not_to_contain_text("price")
    page.keyboard.press("Escape")
    # By keyboard.
    tab_to(page, old.get_by_role("button", name="Restore…"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Restore version 2")
    expect(dialog).to_contain_text("Remove field Dish.price")
    dialog.get_by_role("button", name="Restore, and lose this data").click()
    expect(rows.get_by_role("row", name=re.compile("^4"))).to_contain_text("maria")
    assert "price" not in container.exported()


def test_a_token_is_relabelled_and_kept_to_an_origin(container, open_page):
    secret = container.server.call("POST", "/admin/1/tokens", {"kind": "api", "container": container.name, "label": "old"})["secret"]
    page = open_page(container.address("access"))
    row = page.get_by_role("row", name=re.compile("old"))
    expect(row).to_contain_text("administrator")
    row.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog", name="Edit old")
    dialog.get_by_label("Name").fill("Web app")
    dialog.get_by_label("Allowed origins").fill("https://app.example.com")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name=re.compile("Web app"))).to_contain_text("https://app.example.com")
    path = f"/database/1/{container.name}/development/public/users/caller"
    for origin, isTaken in (("https://app.example.com", True), ("https://evil.example.com", False)):
        answer = container.server.call("POST", path, {}, token=False, headers={"Origin": origin}, ckAPIToken=secret)
        assert ("serverErrorCode" not in answer or answer["serverErrorCode"] == "AUTHENTICATION_REQUIRED") == isTaken, answer
