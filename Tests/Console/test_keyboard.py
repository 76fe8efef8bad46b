"""The acceptance scenarios without a mouse, by their numbers; docs/console.md lists where each is."""

import csv
import json
import re
import signal
import subprocess

import pytest
from playwright.sync_api import expect

from conftest import PASSWORD, ask_until
from keys import Keys, Mouse
from test_scenarios import PNG, TYPE


def sign_in(keys, name):
    expect(keys.page.get_by_label("Name")).to_be_focused()
    keys.type(name)
    keys.press("Tab")
    keys.type(PASSWORD)
    keys.press("Enter")


def toast(page, text):
    expect(page.locator(".toast", has_text=text).last).to_be_visible()


def add_field(keys, name, kind="String", *ticks):
    page = keys.page
    keys.enter(page.get_by_role("button", name="Add Field"))
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Field Name")).to_be_focused()
    keys.type(name)
    keys.choose(dialog.get_by_label("Field Type"), kind)
    for each in ticks:
        keys.tick(dialog.get_by_label(each, exact=True))
    keys.press("Control+s")
    expect(page.get_by_role("table", name=re.compile("^Fields of")).get_by_text(name, exact=True)).to_be_visible()
    # The button was drawn anew, and has the focus back.
    expect(page.get_by_role("button", name="Add Field")).to_be_focused()


def add_index(keys, name, kind):
    page = keys.page
    keys.enter(page.get_by_role("button", name="Add Basic Index"))
    dialog = page.get_by_role("dialog")
    keys.choose(dialog.get_by_label("Field"), name)
    keys.choose(dialog.get_by_label("Index Type"), kind)
    keys.press("Control+s")
    expect(dialog).to_have_count(0)


def save_schema(keys, loss=""):
    """Ctrl S reviews, and saves what was reviewed."""
    page = keys.page
    keys.press("Control+s")
    expect(page.get_by_role("dialog", name="Review changes")).to_contain_text(loss)
    with page.expect_response(re.compile("/schema/state")):
        keys.press("Control+s")
    expect(page.get_by_role("region", name="Unsaved changes")).to_have_count(0)


def test_2_3_containers_are_made_switched_hidden_and_shown(open_page):
    name = "iCloud.com.example.keys"
    page = open_page()
    keys = Keys(page)
    expect(page.get_by_role("heading", name="Containers")).to_be_visible()
    for turn in range(2):
        keys.press("n")
        expect(page.get_by_role("dialog").get_by_label("Name")).to_be_focused()
        keys.press("Control+a")
        keys.type(name)
        keys.press("Enter")
        if turn == 0:
            expect(page.get_by_role("heading", name="Record Types")).to_be_visible()
            keys.to(page.get_by_role("button", name="Production"), "Shift+Tab")
            keys.press("Space")
            expect(page.locator("html[data-environment=production]")).to_have_count(1)
            keys.go("Containers")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("EXISTS")
    keys.press("Escape")
    card = page.get_by_role("article").filter(has=page.get_by_role("heading", name=name, exact=True))
    more = page.get_by_role("button", name=f"More on {name}", exact=True)
    keys.menu(more, "Hide from lists")
    expect(card).to_have_count(0)
    keys.tick(page.get_by_role("checkbox", name=re.compile("^Show .* hidden")))
    expect(card).to_contain_text("hidden")
    keys.menu(more, "Show in lists")
    expect(card).not_to_contain_text("hidden")


def test_4_5_16_a_type_of_every_kind_of_field_is_made_changed_and_deleted(container, open_page):
    page = open_page(container.address("types"), state=None)
    keys = Keys(page)
    sign_in(keys, "maria")
    # The head is there before the schema, and nothing is added to a schema that is not loaded.
    expect(page.get_by_role("heading", name="Users")).to_be_visible()
    keys.press("n")
    expect(page.get_by_role("dialog").get_by_label("Name", exact=True)).to_be_focused()
    keys.type("Dish")
    keys.press("Enter")
    for name, kind, ticks in (("name", "String", ()), ("count", "Int(64)", ()), ("price", "Double", ("Queryable",)), ("since", "Date/Time", ("Sortable",)), ("place", "Location", ()),
                              ("chef", "Reference", ("List",)), ("image", "Asset", ()), ("hash", "Bytes", ()), ("secret", "String", ("Encrypted",))):
        add_field(keys, name, kind, *ticks)
    save_schema(keys)
    text = re.sub(" +", " ", container.exported())
    for line in ("name STRING,", "count INT64,", "price DOUBLE QUERYABLE,", "since TIMESTAMP SORTABLE,", "place LOCATION,", "chef LIST<REFERENCE>,", "image ASSET,", "hash BYTES,", "secret ENCRYPTED STRING"):
        assert line in text, (line, text)

    container.save("Dish", {"name": "Soup", "hash": "AAEC"})
    keys.menu(page.get_by_role("button", name="More on name"), "Edit…")
    keys.tick(page.get_by_role("dialog").get_by_label("Searchable"))
    keys.press("Enter")
    keys.menu(page.get_by_role("button", name="More on hash"), "Delete")
    expect(page.get_by_role("table", name="Fields of Dish").get_by_text("hash", exact=True)).to_have_count(0)
    save_schema(keys, "1 record")
    text = re.sub(" +", " ", container.exported())
    assert "name STRING SEARCHABLE," in text and "hash" not in text
    keys.menu(page.get_by_role("button", name="More on Dish"), "Delete Record Type…")
    expect(page.get_by_role("region", name="Unsaved changes")).to_contain_text("delete record type Dish")
    save_schema(keys)
    assert "Dish" not in container.exported()


def test_6_7_9_14_17_18_indexes_roles_and_deployment(container, open_page):
    container.schema(TYPE.format("Fasting", 'goal DOUBLE, "start" TIMESTAMP,'))
    for number in range(3):
        container.save("Fasting", {"goal": 16.0, "start": 86_400_000 * number}, f"fast-{number}")
    filters = json.dumps([["start", "GREATER_THAN_OR_EQUALS", "86400000"]])
    page = open_page(container.address("records", type="Fasting", f=filters))
    keys = Keys(page)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("start has no index for this")
    keys.enter(alert.get_by_role("link", name="See indexes"))
    expect(page.get_by_role("heading", name="Indexes", level=1)).to_be_focused()
    for name, kind in (("recordName", "Queryable"), ("start", "Queryable"), ("start", "Sortable")):
        add_index(keys, name, kind)
    save_schema(keys)
    page.go_back()
    expect(page.get_by_role("link", name=re.compile("^fast-"))).to_have_count(2)

    keys.go("Security Roles")
    box = page.get_by_label("_icloud: Write Fasting")
    keys.tick(box)
    expect(box).to_be_focused()
    save_schema(keys)
    app = container.app("faster")
    record = {"recordType": "Fasting", "recordName": "fast-1", "fields": {"goal": {"value": 18.0}}}
    assert "recordChangeTag" in app("records/modify", {"operations": [{"operationType": "forceUpdate", "record": record}]})["records"][0]

    keys.go("Deploy Schema Changes")
    # Before the plan is here there is nothing to press the button for.
    expect(page.get_by_role("heading", name="Record Types")).to_be_visible()
    keys.enter(page.get_by_role("button", name="Deploy…"))
    dialog = page.get_by_role("alertdialog")
    expect(dialog.get_by_role("textbox")).to_be_focused()
    keys.type(container.name)
    keys.press("Enter")
    expect(page.get_by_text("Production’s schema is read-only here.", exact=False)).to_be_visible()
    keys.go("Records")
    expect(page.get_by_text("No Fasting yet")).to_be_visible()
    keys.to(page.get_by_role("button", name="Development"), "Shift+Tab")
    keys.press("Space")
    expect(page.get_by_role("link", name=re.compile("^fast-"))).to_have_count(3)
    keys.go("Record Types")
    keys.menu(page.get_by_role("button", name="More on goal"), "Delete")
    keys.press("Control+s")
    refusal = page.get_by_role("dialog", name=re.compile("cannot be saved"))
    expect(refusal).to_contain_text("production")
    keys.press("Escape")
    keys.enter(page.get_by_role("button", name="Discard"))
    keys.enter(page.get_by_role("alertdialog").get_by_role("button", name="Discard"))
    expect(page.get_by_role("button", name="More on goal")).to_be_visible()
    add_field(keys, "note")
    save_schema(keys)
    keys.go("Deploy Schema Changes")
    expect(page.get_by_role("main")).to_contain_text("note")
    expect(page.get_by_role("main")).not_to_contain_text("goal")


def test_8_10_11_12_13_19_records_of_all_kinds(container, open_page, tmp_path):
    container.schema(TYPE.format("Place", '"___recordID" REFERENCE QUERYABLE, title STRING QUERYABLE, spot LOCATION, cover ASSET, menu INT64, opened TIMESTAMP, tags LIST<STRING>,'))
    page = open_page(container.address("records"))
    keys = Keys(page)
    pane = page.get_by_role("complementary")
    expect(page.get_by_text("No Place yet")).to_be_visible()
    for name in ("rays", "late"):
        keys.press("n")
        expect(pane.get_by_label("recordName")).to_be_focused()
        keys.type(name)
        keys.to(pane.get_by_label("title", exact=True))
        keys.type("Ray's")
        keys.to(pane.get_by_label("spot, Latitude"))
        keys.type("37.33")
        keys.to(pane.get_by_label("spot, Longitude"))
        keys.type("-122.03")
        keys.file(pane.get_by_label("cover, file"), {"name": "cover.png", "mimeType": "image/png", "buffer": PNG})
        expect(pane.get_by_text("sent; kept when you save")).to_be_visible()
        keys.to(pane.get_by_label("menu", exact=True))
        keys.type("1")
        keys.enter(pane.get_by_role("button", name="Add to tags"))
        keys.to(pane.get_by_label("tags, member"), "Shift+Tab")
        keys.type("wine")
        keys.press("Control+s")
        toast(page, f"Made {name}")
        keys.press("Escape")
        expect(pane).to_have_count(0)
        # The table has the focus again, at the record that was open.
        expect(page.get_by_role("link", name=name, exact=True)).to_be_focused()
    keys.cell(page.get_by_role("button", name="Delete late", exact=True))
    keys.press("Enter")
    dialog = page.get_by_role("alertdialog")
    keys.enter(dialog.get_by_role("button", name="Delete", exact=True))
    expect(page.get_by_role("link", name="late")).to_have_count(0)
    expect(page.get_by_role("link", name="rays")).to_be_focused()
    assert container.lookup("late")["serverErrorCode"] == "NOT_FOUND"
    fields = container.lookup("rays")["fields"]
    assert fields["spot"]["value"] == {"latitude": 37.33, "longitude": -122.03} and fields["tags"]["value"] == ["wine"] and fields["menu"]["value"] == "1"

    # Opened by its name; the file comes down as it went up.
    keys.press("Enter")
    expect(pane.get_by_role("heading", name="Metadata")).to_be_visible()
    keys.to(pane.get_by_role("link", name=re.compile("Download")))
    with page.expect_download() as coming:
        keys.press("Enter")
    with open(coming.value.path(), "rb") as file:
        assert file.read() == PNG
    # Somebody else saves it: their title stays, and the new menu is saved.
    tag = container.lookup("rays")["recordChangeTag"]
    keys.fill(pane.get_by_label("title", exact=True), "Mine")
    keys.fill(pane.get_by_label("menu", exact=True), "2")
    container.save("Place", {"title": "Theirs"}, "rays", tag)
    keys.press("Control+s")
    dialog = page.get_by_role("dialog", name="Somebody else saved this record")
    keys.to(dialog.get_by_role("row", name=re.compile("^title")).get_by_label("Mine"))
    keys.press("ArrowRight")
    expect(dialog.get_by_role("row", name=re.compile("^title")).get_by_label("Theirs")).to_be_checked()
    keys.press("Enter")
    toast(page, "Saved rays")
    fields = container.lookup("rays")["fields"]
    assert fields["title"]["value"] == "Theirs" and fields["menu"]["value"] == "2"
    keys.press("Escape")
    expect(pane).to_have_count(0)

    # A column, a filter, and the record ticked and deleted.
    keys.enter(page.get_by_role("button", name="Columns"))
    panel = page.get_by_role("group", name="Columns")
    expect(panel.get_by_role("checkbox").first).to_be_focused()
    keys.to(panel.get_by_role("checkbox", name="title"), "ArrowDown")
    keys.press("Space")
    expect(page.get_by_role("columnheader", name="title")).to_have_count(0)
    keys.press("Escape")
    expect(panel).to_have_count(0)
    expect(page.get_by_role("button", name="Columns")).to_be_focused()
    keys.press("/")
    filters = page.get_by_role("group", name="Filters")
    keys.choose(filters.get_by_label("Field", exact=True), "title")
    keys.to(filters.get_by_label("Value for title"))
    keys.type("Theirs")
    keys.press("Enter")
    expect(page).to_have_url(re.compile("Theirs"))
    # What is ticked is forgotten with the rows of the last query.
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    keys.to(page.get_by_role("link", name="rays"))
    keys.press("Space")
    keys.enter(page.get_by_role("button", name="Delete 1 record"), "Shift+Tab")
    keys.enter(page.get_by_role("alertdialog").get_by_role("button", name="Delete", exact=True))
    expect(page.get_by_text("No record matches")).to_be_visible()


def test_20_a_token_is_made_and_revoked_and_a_key_pasted(restaurants, open_page, tmp_path):
    page = open_page(restaurants.address("access"))
    keys = Keys(page)
    expect(page.get_by_text("No API tokens yet")).to_be_visible()
    keys.press("n")
    expect(page.get_by_role("dialog").get_by_label("Name")).to_be_focused()
    keys.type("Web app")
    keys.press("Tab")
    keys.type("https://app.example.com")
    keys.enter(page.get_by_role("button", name="Make token"))
    secret = page.get_by_role("dialog", name="The new API token").locator("code").inner_text()
    keys.enter(page.get_by_role("button", name="I have kept it"))
    path = f"/database/1/{restaurants.name}/development/public/records/query"
    ask = lambda: restaurants.server.call("POST", path, {"query": {"recordType": "Restaurant"}}, token=False, headers={"Origin": "https://app.example.com"}, ckAPIToken=secret)
    assert ask()["records"] == []
    keys.cell(page.get_by_role("button", name="Revoke"))
    keys.press("Enter")
    keys.enter(page.get_by_role("alertdialog").get_by_role("button", name="Revoke"))
    expect(page.get_by_text("No API tokens yet")).to_be_visible()
    assert ask()["serverErrorCode"] == "AUTHENTICATION_FAILED"

    restaurants.server.call("POST", "/admin/1/users", {"name": "keys-server"})
    key = tmp_path / "key.pem"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key], check=True)
    public = subprocess.run(["openssl", "ec", "-in", key, "-pubout"], capture_output=True, check=True).stdout.decode()
    keys.enter(page.get_by_role("link", name="Server-to-Server Keys"))
    keys.enter(page.get_by_role("button", name="New Key"))
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Name")).to_be_focused()
    keys.type("keys-nightly")
    keys.press("Tab")
    keys.type("keys-server")
    keys.press("Tab")
    keys.paste(public)
    keys.enter(dialog.get_by_role("button", name="Add key"))
    expect(page.get_by_role("table", name="Server-to-server keys")).to_contain_text("keys-nightly")


def test_21_an_apps_requests_are_in_the_logs_telemetry_usage_and_subscription_types(restaurants, open_page):
    app = restaurants.app("keys-app")
    subscription = {"subscriptionID": "cheap", "subscriptionType": "query", "firesOn": ["create"], "query": {"recordType": "Restaurant"}}
    assert "serverErrorCode" not in str(app("subscriptions/modify", {"operations": [{"operationType": "create", "subscription": subscription}]}))
    page = open_page(restaurants.address("logs"))
    keys = Keys(page)
    keys.to(page.get_by_role("button", name="Live"))
    keys.press("Space")
    expect(page.locator(".live-state.open")).to_be_visible()
    create = {"operations": [{"operationType": "create", "record": {"recordType": "Restaurant", "recordName": "osteria", "fields": {}}}]}
    assert "recordChangeTag" in app("records/modify", create)["records"][0]
    row = page.get_by_role("table", name="Requests").get_by_role("row", name=re.compile("records.modify"))
    expect(row).to_be_visible()
    # In the history by its id.
    keys.enter(row.get_by_role("link"))
    pane = page.get_by_role("complementary", name="Request")
    expect(pane).to_contain_text("took it from the client and answered")
    identifier = re.search(r"request=([^&]+)", page.url).group(1)
    keys.press("Escape")
    expect(pane).to_have_count(0)
    keys.to(page.get_by_role("button", name="History"), "Shift+Tab")
    keys.press("Space")
    expect(row).to_be_visible()
    keys.choose(page.get_by_role("combobox", name="Operation"), "records/modify")
    keys.fill(page.get_by_role("textbox", name="Request"), identifier)
    keys.press("Enter")
    expect(pane).to_contain_text("took it from the client and answered")

    keys.go("Telemetry")
    writes = page.get_by_role("table", name="By operation").get_by_role("row", name=re.compile("records.write"))
    expect(writes.get_by_role("cell").nth(1)).to_have_text("1")
    figure = page.get_by_role("figure", name="Requests", exact=True)
    keys.enter(figure.locator("summary"))
    expect(figure.get_by_role("table")).to_contain_text("answered")
    keys.go("Usage")
    expect(page.get_by_role("row", name=re.compile("^Public")).get_by_role("cell").nth(1)).to_have_text("1")
    keys.go("Subscriptions")
    keys.to(page.get_by_role("combobox", name="User"))
    keys.type("keys-app")
    keys.press("Enter")
    expect(page.get_by_role("table", name="Subscriptions of keys-app").get_by_role("row", name=re.compile("cheap"))).to_contain_text("Query")


@pytest.mark.parametrize("hand", [Mouse, Keys])
def test_22_a_viewer_and_a_developer_meet_what_they_may_not_do(server, restaurants, open_page, hand):
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    kind = {role: f"{role}-{hand.__name__.lower()}" for role in ("viewer", "developer")}
    admin = open_page(restaurants.address("team"))
    hands = hand(admin)
    for role, name in kind.items():
        hands.enter(admin.locator("header").get_by_role("button", name="Add Member"))
        dialog = admin.get_by_role("dialog")
        hands.fill(dialog.get_by_label("Name"), name)
        hands.fill(dialog.get_by_label("First password"), PASSWORD)
        hands.choose(dialog.get_by_label("Role"), role.capitalize())
        hands.enter(dialog.get_by_role("button", name="Add member"))
        expect(admin.get_by_role("row", name=re.compile(name))).to_contain_text(role.capitalize())

    def signed_in_as(role, screen, **params):
        page = open_page(restaurants.address(screen, **params), state=None)
        hands = hand(page)
        hands.fill(page.get_by_label("Name"), kind[role])
        hands.fill(page.get_by_label("Password"), PASSWORD)
        hands.enter(page.get_by_role("button", name="Sign in"))
        return page, hands

    viewer, hands = signed_in_as("viewer", "records", type="Restaurant")
    expect(viewer.get_by_role("link", name="osteria")).to_be_visible()
    new = viewer.get_by_role("button", name="New Record")
    expect(new).to_have_attribute("title", re.compile("needs the role developer"))
    expect(new).to_have_attribute("aria-disabled", "true")
    if hand is Mouse:
        # A click that is not forced waits until the button is enabled.
        new.click(force=True)
    else:
        hands.enter(new)
    viewer.keyboard.press("n")
    expect(viewer.get_by_role("complementary")).to_have_count(0)
    hands.row(viewer.get_by_role("link", name="osteria"))
    expect(viewer.get_by_role("complementary").get_by_role("button", name="Save")).to_have_attribute("aria-disabled", "true")
    developer, hands = signed_in_as("developer", "records")
    expect(developer.get_by_role("button", name="New Record")).not_to_have_attribute("aria-disabled", "true")
    hands.go("Deploy Schema Changes")
    expect(developer.get_by_text("This needs the role admin; you are a developer.")).to_be_visible()
    expect(developer.get_by_role("button", name="Deploy…")).to_have_count(0)
    # By the API, too; the log of what was done names both.
    send = """async ([path, body]) => {
        const me = await (await fetch("/admin/1/console/me")).json();
        return (await fetch(path, {method: "POST", headers: {"Content-Type": "application/json", "X-Zonekeeper-CSRF": me.csrfToken}, body})).json();
    }"""
    assert "ACCESS_DENIED" in str(developer.evaluate(send, [f"/admin/1/schema/deploy?container={restaurants.name}", "{}"]))
    delete = json.dumps({"operations": [{"operationType": "forceDelete", "record": {"recordName": "osteria"}}]})
    assert "ACCESS_DENIED" in str(viewer.evaluate(send, [f"/database/1/{restaurants.name}/development/public/records/modify", delete]))
    assert "fields" in restaurants.lookup("osteria")
    # Refusals are written together, each second.
    for name in kind.values():
        ask_until(lambda: "refused: no permission" in str(server.call("GET", "/admin/1/audit", log="requests", order="newest", containing=f"{name} (console)", limit=20)))
    hands = hand(admin)
    hands.go("Audit")
    hands.enter(admin.get_by_role("link", name="Refusals"))
    for name in kind.values():
        hands.fill(admin.get_by_label("Search the log"), f"{name} (console)")
        expect(admin.get_by_role("table", name="Audit").locator("tbody tr").filter(has_text="refused: no permission").first).to_contain_text(name)


@pytest.mark.parametrize("hand", [Mouse, Keys])
def test_23_a_load_test_meets_a_limit_that_names_itself_and_its_report_is_compared(server, restaurants, open_page, tmp_path, hand):
    names = {"container": restaurants.name, "environment": "development"}
    user = restaurants.name.rsplit(".", 1)[-1]
    server.call("POST", "/admin/1/users", {"name": user})

    def token(body):
        return server.call("POST", "/admin/1/tokens", {**names, **body})["secret"]

    environment = {"PATH": "/usr/bin", "ZONEKEEPER_API_TOKEN": token({"kind": "api"}), "ZONEKEEPER_WEB_AUTH_TOKEN": token({"kind": "session", "user": user})}

    def load(report, *options):
        return subprocess.Popen(
            [server.program, "load", "--url", server.url, "--ca", server.folder / "data/certs/client-ca.pem", "--admin-token-file", server.folder / "data/admin.token",
             "--container", restaurants.name, "--operation", "read", "--prepare", "--records", "2", "--output", tmp_path / report, *options],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    assert load("before.json", "--concurrency", "1", "--count", "20").wait() == 0
    page = open_page(restaurants.address("limits"))
    hand = hand(page)
    hand.row(page.get_by_role("button", name="Set requestsPerSecond", exact=True))
    hand.fill(page.get_by_role("dialog").get_by_label("Value (requests/s)"), "5")
    hand.enter(page.get_by_role("dialog").get_by_role("button", name="Set limit"))
    expect(page.get_by_role("row", name=re.compile(" requestsPerSecond "))).to_contain_text("5 requests/s")
    hand.tick(page.get_by_label("Live"))
    expect(page.get_by_text("It would be allowed now")).to_be_visible()
    # The test goes on until it is ended: nothing here depends on how long it takes to look.
    running = load("after.json", "--rate", "50", "--duration", "600")
    expect(page.get_by_text("It would be refused by requests")).to_be_visible()
    expect(page.locator(".rule.fires")).to_contain_text("requests")
    running.send_signal(signal.SIGINT)
    running.wait(60)
    expect(page.get_by_text("It would be allowed now")).to_be_visible()

    hand.go("Logs")
    hand.choose(page.get_by_role("combobox", name="Outcome"), "THROTTLED")
    refused = page.get_by_role("table", name="Requests").get_by_role("row", name=re.compile("THROTTLED")).first
    hand.row(refused.get_by_role("link"))
    pane = page.get_by_role("complementary", name="Request")
    expect(pane).to_contain_text("Refused by requests")
    identifier = re.search(r"request=([^&]+)", page.url).group(1)
    hand.go("Limits")
    hand.fill(page.get_by_label("Request id"), identifier)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Refused by requests")).to_be_visible()

    hand.go("Load Tests")
    hand.file(page.get_by_label("Reports"), [tmp_path / "before.json", tmp_path / "after.json"])
    figures = page.get_by_role("table", name="Figures")
    report = json.loads((tmp_path / "after.json").read_text())
    assert report["throttled"] > 0
    expect(figures.get_by_role("row", name=re.compile("^Told to slow down")).get_by_role("cell")).to_have_text(["Told to slow down", "0", f"{report['throttled']:,}", ""])
    expect(figures.get_by_role("row", name=re.compile("^Accepted 20"))).to_contain_text(f"{report['succeeded']:,}")
    expect(page.get_by_role("figure", name="Time to answer, p99")).to_be_visible()
    hand.enter(page.get_by_role("button", name="Close before.json"))
    expect(figures.get_by_role("columnheader", name="B against A")).to_have_count(0)
    hand.file(page.get_by_label("Reports"), {"name": "odd.json", "mimeType": "application/json", "buffer": b'{"operation": 3}'})
    expect(page.locator(".toast", has_text="odd.json is no report")).to_be_visible()


def test_24_a_file_is_imported_after_a_dry_run_exported_equal_and_deleted_by_a_filter(restaurants, open_page):
    page = open_page(restaurants.address("records", type="Restaurant", sort="seats"))
    keys = Keys(page)
    expect(page.get_by_text("No Restaurant yet")).to_be_visible()
    more = page.get_by_role("button", name="More", exact=True)
    keys.menu(more, "Import a file…")
    dialog = page.get_by_role("dialog", name="Import Restaurant")
    keys.file(dialog.get_by_label("File of records"), {"name": "a.csv", "mimeType": "text/csv", "buffer": b"recordName,seats\none,1\ntwo,b\nthree,3\nfour,d\n"})
    for line in ("^3 ", "^5 "):
        expect(dialog.get_by_role("table", name="What is left out").get_by_role("row", name=re.compile(line))).to_be_visible()
    assert restaurants.lookup("one")["serverErrorCode"] == "NOT_FOUND"
    keys.enter(dialog.get_by_role("button", name="Import 2 records"))
    expect(dialog).to_contain_text("2 of 2 saved")
    keys.press("Escape")
    expect(page.get_by_role("link", name="three")).to_be_visible()
    expect(page.get_by_role("link", name="two")).to_have_count(0)
    with page.expect_download() as coming:
        keys.menu(more, "Export as CSV")
    with open(coming.value.path(), newline="") as file:
        assert [(row["recordName"], row["seats"]) for row in csv.DictReader(file)] == [("one", "1"), ("three", "3")]
    # What a filter finds is counted, and deleted.
    keys.press("/")
    filters = page.get_by_role("group", name="Filters")
    keys.choose(filters.get_by_label("Field", exact=True), "seats")
    keys.fill(filters.get_by_label("Value for seats"), "3")
    keys.press("Enter")
    expect(page.get_by_role("link", name="one", exact=True)).to_have_count(0)
    keys.menu(more, "Delete all matches…")
    keys.enter(page.get_by_role("alertdialog", name="Delete 1 Restaurant record?").get_by_role("button", name="Delete them all"))
    expect(page.get_by_text("No record matches")).to_be_visible()
    assert "fields" in restaurants.lookup("one") and restaurants.lookup("three")["serverErrorCode"] == "NOT_FOUND"


def test_the_focus_comes_back_to_what_opened_a_menu_whose_dialog_is_closed(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant", record="osteria"))
    keys = Keys(page)
    record = page.get_by_role("button", name="More on this record")
    query = page.get_by_role("group", name="Query").get_by_role("button", name="More", exact=True)
    account = page.get_by_role("button", name="Account")
    for opener, item in ((record, "Show as JSON"), (record, "Versions…"), (record, "Delete…"), (query, "Copy as curl, command or Swift…")):
        expect(opener).to_be_visible()
        keys.menu(opener, item)
        expect(page.locator("dialog")).to_be_visible()
        keys.press("Escape")
        expect(opener).to_be_focused()
    keys.enter(account, "Shift+Tab")
    keys.enter(page.get_by_role("button", name="Change password…"))
    expect(page.get_by_label("New password", exact=True)).to_be_focused()
    keys.press("Escape")
    expect(account).to_be_focused()
