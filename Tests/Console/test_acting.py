"""What a user sees, as an admin who acts as them: private records, zones, preferences; by mouse and by keyboard."""

import contextlib
import json
import re

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from playwright.sync_api import expect

from conftest import Container, PASSWORD, PATIENCE_MILLISECONDS, ask_until, sign_in_first
from keys import Keys, Mouse, tab_to
from test_scenarios import TYPE

NOTES = TYPE.format("Note", '"___recordID" REFERENCE QUERYABLE, text STRING, secret ENCRYPTED STRING,')


class Ada:
    """A user whose app saves private records and preferences."""

    def __init__(self, container):
        container.schema(NOTES)
        self.container, self.send = container, container.app("ada-" + container.name.rsplit(".", 1)[-1])
        self.name = "ada-" + container.name.rsplit(".", 1)[-1]
        names = {"container": container.name, "environment": "development"}
        self.tokens = {"ckAPIToken": self.token({"kind": "api", **names}), "ckWebAuthToken": self.token({"kind": "session", "user": self.name, **names})}

    def token(self, body):
        return self.container.server.call("POST", "/admin/1/tokens", body)["secret"]

    def save(self, name, fields, zone="_defaultZone"):
        record = {"recordType": "Note", "recordName": name, "fields": {key: {"value": value} for key, value in fields.items()}}
        [answer] = self.send("records/modify", {"zoneID": {"zoneName": zone}, "operations": [{"operationType": "create", "record": record}]}, "private")["records"]
        assert "serverErrorCode" not in answer, answer

    def lookup(self, name, zone="_defaultZone"):
        return self.send("records/lookup", {"zoneID": {"zoneName": zone}, "records": [{"recordName": name}]}, "private")["records"][0]

    def zones(self):
        return [each["zoneID"]["zoneName"] for each in self.send("zones/list", {}, "private")["zones"]]

    def preferences(self, action, body):
        return self.container.server.call("POST", f"/kv/1/{self.container.name}/development/{action}", body, token=False, **self.tokens)

    def set(self, values):
        answer = self.preferences("set", {"device": "phone", "writes": [{"key": key, "value": value} for key, value in values.items()]})
        assert "values" in answer, answer


@pytest.fixture
def ada(container):
    return Ada(container)


def act_as(page, user, write=False):
    """From any screen of a container."""
    page.locator(".container-button").click()
    page.get_by_role("menuitem", name="Act as User…").click()
    dialog = page.get_by_role("dialog", name="Act as a user")
    dialog.get_by_role("combobox", name="User").fill(user)
    dialog.get_by_label("Reason").fill("ticket 7")
    if write:
        dialog.get_by_label("Change things").check()
    dialog.get_by_role("button", name="Act as this user").click()
    expect(banner(page)).to_contain_text(f"You act as {user}")


def banner(page):
    return page.get_by_role("region", name="Acting as a user")


def stop(page):
    banner(page).get_by_role("button", name="Stop").click()
    expect(banner(page)).to_have_count(0)


@pytest.mark.seeds(56, 57)
def test_15_ada_s_zone_and_record_are_made_as_her_and_gone_once_it_stops(ada, open_page):
    ada.save("mine", {"text": "hello", "secret": "x7"})
    page = open_page(ada.container.address("records", type="Note"))
    expect(page.get_by_text("No Note yet")).to_be_visible()
    page.get_by_label("Database").select_option("private")
    expect(page.get_by_text("Private records are their user’s alone")).to_be_visible()
    act_as(page, ada.name, write=True)
    expect(page.get_by_role("link", name="mine")).to_be_visible()

    page.get_by_role("link", name="Zones").click()
    page.get_by_label("Database").select_option("private")
    page.get_by_role("button", name="New Zone").click()
    page.get_by_role("dialog").get_by_label("Name").fill("my-zone")
    page.get_by_role("button", name="Make zone").click()
    page.get_by_role("link", name="my-zone").click()
    expect(page.get_by_role("group", name="Query").get_by_label("Zone")).to_have_value("my-zone")
    page.get_by_role("button", name="New Record").first.click()
    pane = page.get_by_role("complementary")
    pane.get_by_label("recordName").fill("first")
    pane.get_by_label("text").fill("in my zone")
    pane.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="first")).to_be_visible()
    assert ada.zones() == ["_defaultZone", "my-zone"] and ada.lookup("first", "my-zone")["fields"]["text"]["value"] == "in my zone"

    page.reload()
    expect(banner(page)).to_contain_text("read and write")
    expect(page.get_by_label("Database")).to_have_value("private")
    expect(page.get_by_role("group", name="Query").get_by_label("Zone")).to_have_value("my-zone")
    expect(page.get_by_role("link", name="first")).to_be_visible()

    stop(page)
    expect(page.get_by_role("link", name="first")).to_have_count(0)
    expect(page.get_by_label("Database")).to_have_value("public")


def test_15_by_keyboard(ada, open_page):
    ada.save("mine", {"text": "hello"})
    page = open_page(ada.container.address("zones", db="private", user=ada.name))
    keys = page.keyboard
    expect(page.get_by_role("table", name="Zones")).to_contain_text("_defaultZone")
    tab_to(page, page.get_by_role("button", name=f"Act as {ada.name}…"))
    keys.press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()
    keys.type("ticket 8")
    keys.press("Tab")
    keys.press("Space")
    keys.press("Enter")
    expect(banner(page)).to_contain_text("read and write")
    keys.press("n")
    expect(page.get_by_role("dialog", name="New zone").get_by_label("Name")).to_be_focused()
    keys.type("my-zone")
    keys.press("Enter")
    hand = Keys(page)
    hand.row(page.get_by_role("link", name="my-zone"))
    expect(page.get_by_text("No Note yet")).to_be_visible()
    keys.press("n")
    expect(page.get_by_role("complementary").get_by_label("recordName")).to_be_focused()
    keys.type("first")
    keys.press("Control+s")
    expect(page.get_by_role("link", name="first")).to_be_visible()
    assert "recordChangeTag" in ada.lookup("first", "my-zone")
    page.reload()
    expect(page.get_by_label("Database")).to_have_value("private")
    expect(page.get_by_role("link", name="first")).to_be_visible()
    hand.go("Zones")
    hand.choose(page.get_by_label("Database"), "Private, of a user")
    hand.row(page.get_by_role("button", name="Delete my-zone"))
    expect(page.get_by_role("alertdialog").get_by_role("textbox")).to_be_focused()
    keys.type("my-zone")
    keys.press("Enter")
    expect(page.get_by_role("link", name="my-zone")).to_have_count(0)
    assert ada.zones() == ["_defaultZone"]
    hand.row(page.get_by_role("link", name="_defaultZone"))
    expect(page.get_by_role("link", name="mine")).to_be_visible()
    tab_to(page, banner(page).get_by_role("button", name="Stop"), "Shift+Tab")
    keys.press("Enter")
    expect(banner(page)).to_have_count(0)


def test_who_only_reads_changes_nothing_and_sees_no_encrypted_value(ada, open_page):
    ada.save("mine", {"text": "hello", "secret": "x7"})
    ada.set({"theme": "dark"})
    page = open_page(ada.container.address("records", type="Note", db="private", record="mine"))
    act_as(page, ada.name)
    expect(banner(page)).to_contain_text("read only")
    pane = page.get_by_role("complementary")
    expect(pane).to_contain_text("Hidden while you act as a user")
    expect(page.locator("body")).not_to_contain_text("x7")
    expect(pane.get_by_role("button", name="Save")).to_have_attribute("aria-disabled", "true")
    page.get_by_role("link", name="Preferences").click()
    new = page.get_by_role("button", name="New Key")
    expect(new).to_have_attribute("aria-disabled", "true")
    expect(new).to_have_attribute("title", re.compile("to read only"))
    # Another container is another place.
    other = Container(ada.container.server, ada.container.name + ".other")
    page.goto(other.address("records"))
    expect(page.get_by_role("heading", name="Records")).to_be_visible()
    expect(banner(page)).to_have_count(0)


def test_rows_of_one_database_stand_in_no_other(ada, open_page):
    who = {"timestamp": 1_700_000_000_000, "userRecordName": "_a", "deviceID": "1"}
    held = []

    def answer(route, name):
        record = {"recordName": name, "recordType": "Note", "fields": {}, "recordChangeTag": "1.1", "created": who, "modified": who, "deleted": False}
        route.fulfill(json={"records": [record], "continuationMarker": "more"})

    def asked(route):
        # The second pages of both databases, and the first one of the private one, wait for the test.
        is_public, is_first = "/public/" in route.request.url, "continuationMarker" not in route.request.post_data_json
        if is_public and is_first:
            answer(route, "public-1")
        else:
            held.append((route, ("public" if is_public else "private") + ("-1" if is_first else "-2")))

    def release(name):
        [one] = [each for each in held if each[1] == name]
        held.remove(one)
        answer(*one)

    page = open_page(ada.container.address("records", type="Note"))
    act_as(page, ada.name, write=True)
    page.route("**/records/query", asked)
    page.get_by_role("button", name="Query Records").click()
    expect(page.get_by_role("link", name="public-1")).to_be_visible()
    page.get_by_label("Select public-1").check()
    delete, more = page.get_by_role("button", name="Delete 1 record"), page.locator(".table-foot button")
    expect(delete).to_be_visible()
    with page.expect_request("**/public/**/records/query"):
        more.click()
    with page.expect_request("**/private/**/records/query"):
        page.get_by_label("Database").select_option("private")
    # Nothing of the public database is left, also as long as nothing came of the private one.
    expect(delete).to_have_count(0)
    expect(page.get_by_role("link", name="public-1")).to_have_count(0)
    release("private-1")
    expect(page.get_by_role("link", name="private-1")).to_be_visible()
    expect(more).to_have_attribute("aria-disabled", "true")
    release("public-2")
    expect(more).not_to_have_attribute("aria-disabled", "true")
    assert page.get_by_role("table", name="Records").locator("tbody .row-link").all_inner_texts() == ["private-1"]


def test_a_record_of_one_database_is_not_edited_in_another(ada, open_page):
    ada.save("same", {"text": "private"})
    ada.container.save("Note", {"text": "public"}, "same")
    page = open_page(ada.container.address("records", type="Note", record="same"))
    pane = page.get_by_role("complementary")
    text = pane.get_by_role("textbox", name="text")
    expect(text).to_have_value("public")
    act_as(page, ada.name, write=True)
    page.evaluate("history.pushState(null, '', location.href + '&db=private'); dispatchEvent(new PopStateEvent('popstate'))")
    expect(text).to_have_value("private")
    text.fill("changed")
    page.go_back()
    expect(text).to_have_value("public")
    page.go_forward()
    expect(text).to_have_value("changed")
    pane.get_by_role("button", name="Save").click()
    expect(page.locator(".toast").last).to_contain_text("Saved same")
    assert ada.lookup("same")["fields"]["text"]["value"] == "changed"
    assert ada.container.lookup("same")["fields"]["text"]["value"] == "public"


def test_private_edits_end_with_the_time_as_their_user(ada, open_page):
    for name in ("mine", "other"):
        ada.save(name, {"text": "hello"})
    page = open_page(ada.container.address("records", type="Note", db="private", record="mine"))
    pane, question = page.get_by_role("complementary"), page.get_by_role("alertdialog", name="Stop without saving?")

    def edit():
        act_as(page, ada.name, write=True)
        page.get_by_role("link", name="mine").click()
        pane.get_by_role("textbox", name="text").fill("for ada alone")
        page.get_by_role("link", name="other").click()
        expect(page.get_by_role("link", name=re.compile("mine.*not saved"))).to_be_visible()
        assert "for ada alone" in kept()

    def kept():
        return page.evaluate("JSON.stringify(sessionStorage) + JSON.stringify(localStorage)")

    edit()
    page.reload()
    expect(page.get_by_role("link", name=re.compile("mine.*not saved"))).to_be_visible()
    banner(page).get_by_role("button", name="Stop").click()
    question.get_by_role("button", name="Cancel").click()
    expect(banner(page)).to_be_visible()
    assert "for ada alone" in kept()
    banner(page).get_by_role("button", name="Stop").click()
    question.get_by_role("button", name="Discard changes").click()
    expect(banner(page)).to_have_count(0)
    assert "for ada alone" not in kept()
    # Also where it ends elsewhere.
    page.goto(ada.container.address("records", type="Note", db="private"))
    edit()
    server = ada.container.server
    [one] = [each for each in server.call("GET", "/admin/1/act-as")["acting"] if each["user"] == ada.name]
    server.call("DELETE", "/admin/1/act-as", id=one["id"])
    page.get_by_role("button", name="Query Records").click()
    expect(banner(page)).to_have_count(0)
    assert "for ada alone" not in kept()


def test_production_says_how_acting_is_switched_on(ada, open_page):
    page = open_page(ada.container.address("preferences", "production"))
    page.get_by_role("main").get_by_role("button", name="Act as User…").click()
    dialog = page.get_by_role("dialog", name="Act as a user")
    dialog.get_by_role("combobox", name="User").fill(ada.name)
    dialog.get_by_label("Reason").fill("ticket 9")
    dialog.get_by_role("button", name="Act as this user").click()
    expect(dialog.get_by_role("alert")).to_contain_text("actAsProductionMinutes")


def test_an_end_elsewhere_ends_it_here(ada, open_page):
    ada.save("mine", {"text": "hello"})
    page = open_page(ada.container.address("records", type="Note", db="private"))
    act_as(page, ada.name)
    expect(page.get_by_role("link", name="mine")).to_be_visible()
    server = ada.container.server
    [one] = [each for each in server.call("GET", "/admin/1/act-as")["acting"] if each["user"] == ada.name]
    assert one["own"] is False and one["administrator"] == "maria"
    server.call("DELETE", "/admin/1/act-as", id=one["id"])
    page.get_by_role("button", name="Query Records").click()
    expect(banner(page)).to_have_count(0)
    expect(page.get_by_role("link", name="mine")).to_have_count(0)


def test_preferences_are_edited_watched_exported_and_imported(ada, open_page, tmp_path):
    ada.set({"theme": "dark", "volume": 0.5})
    page = open_page(ada.container.address("preferences"))
    page.get_by_role("main").get_by_role("button", name="Act as User…").click()
    page.get_by_role("dialog").get_by_role("combobox", name="User").fill(ada.name)
    page.get_by_role("dialog").get_by_label("Reason").fill("ticket 10")
    page.get_by_role("dialog").get_by_label("Change things").check()
    page.get_by_role("button", name="Act as this user").click()
    rows = page.get_by_role("table", name="Preferences")
    expect(rows.get_by_role("row", name=re.compile("theme"))).to_contain_text("String")
    expect(rows.get_by_role("row", name=re.compile("theme"))).to_contain_text("phone")
    expect(page.get_by_text("2 of 1,024")).to_be_visible()
    expect(page.get_by_text("12 bytes of 1 MB")).to_be_visible()

    # What a device changes is there without a click.
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    ada.set({"theme": "light", "greeting": "ciao"})
    expect(rows.get_by_role("row", name=re.compile("theme"))).to_contain_text("light")
    expect(rows.get_by_role("row", name=re.compile("greeting"))).to_contain_text("ciao")

    page.get_by_role("button", name="Edit volume").click()
    page.get_by_role("dialog").get_by_label("Value").fill("0.9")
    page.get_by_role("button", name="Save").click()
    expect(rows.get_by_role("row", name=re.compile("volume"))).to_contain_text("0.9")
    page.get_by_role("button", name="New Key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Key").fill("tabs")
    dialog.get_by_label("Type").select_option("ARRAY")
    dialog.get_by_label("Value").fill("[1")
    expect(dialog.get_by_role("button", name="Save")).to_have_attribute("aria-disabled", "true")
    dialog.get_by_label("Value").fill('[{"type": "STRING", "value": "home"}]')
    dialog.get_by_role("button", name="Save").click()
    expect(rows.get_by_role("row", name=re.compile("tabs"))).to_contain_text('["home"]')
    page.get_by_role("button", name="Delete greeting").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(rows).not_to_contain_text("greeting")
    values = {each["key"]: each["value"]["value"] for each in ada.preferences("list", {})["values"]}
    assert values == {"theme": "light", "volume": 0.9, "tabs": [{"type": "STRING", "value": "home"}]}, values

    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    file = tmp_path / "p.json"
    download.value.save_as(file)
    kept = json.loads(file.read_text())
    assert kept["theme"] == {"type": "STRING", "value": "light"}
    kept["size"] = {"type": "INT64", "value": 3}
    file.write_text(json.dumps(kept))
    page.get_by_role("button", name="Import…").click()
    page.get_by_label("File").set_input_files(file)
    expect(page.get_by_role("dialog")).to_contain_text("4 keys: 1 new, 3 replaced.")
    page.get_by_role("dialog").get_by_role("button", name="Import").click()
    expect(rows.get_by_role("row", name=re.compile("size"))).to_contain_text("Integer")
    assert [each for each in ada.preferences("list", {})["values"] if each["key"] == "size"][0]["device"] == "console"


def test_preferences_are_read_again_where_the_feed_cannot_be_followed(ada, open_page):
    ada.set({"theme": "dark", "gone": 1})
    page = open_page(ada.container.address("preferences"))
    act_as(page, ada.name)
    rows = page.get_by_role("table", name="Preferences")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(rows.get_by_role("row", name=re.compile("gone"))).to_be_visible()
    tokens = []

    def expired(route):
        tokens.append(route.request.post_data_json.get("syncToken"))
        if None in tokens:
            return route.continue_()
        if len(tokens) == 1:
            ada.set({"theme": "light", "gone": None})
        route.fulfill(status=400, json={"uuid": "1", "serverErrorCode": "BAD_REQUEST", "reason": "the syncToken has expired", "syncTokenExpired": "restored"})

    page.route("**/kv/1/**/watch", expired)
    # Ends the question under way; the next one has a token that the server does not take any more.
    ada.set({"volume": 0.5})
    expect(rows.get_by_role("row", name=re.compile("theme"))).to_contain_text("light")
    expect(rows.get_by_role("row", name=re.compile("volume"))).to_be_visible()
    expect(rows).not_to_contain_text("gone")
    expect(page.get_by_text("live", exact=True)).to_be_visible()


def test_large_integers_and_far_dates_of_preferences_stay_exact(ada, open_page, tmp_path):
    large, exact = 9007199254740993, "9007199254740993"
    ada.set({"user": {"value": {"id": large, "name": "a"}}, "serial": large,
             "far": {"type": "TIMESTAMP", "value": 9000000000000000001}})
    page = open_page(ada.container.address("preferences"))
    act_as(page, ada.name, write=True)
    rows = page.get_by_role("table", name="Preferences")
    expect(rows.get_by_role("row", name=re.compile("user"))).to_contain_text('{"id":' + exact + ',"name":"a"}')
    expect(rows.get_by_role("row", name=re.compile("serial"))).to_contain_text(exact)
    values = lambda: {each["key"]: each["value"]["value"] for each in ada.preferences("list", {})["values"]}

    # What is beside it is changed.
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Edit user").click()
    text = dialog.get_by_label("Value").input_value()
    dialog.get_by_label("Value").fill(text.replace('"a"', '"b"'))
    dialog.get_by_role("button", name="Save").click()
    expect(rows).to_contain_text('{"id":' + exact + ',"name":"b"}')
    assert values()["user"] == {"id": {"type": "INT64", "value": large}, "name": {"type": "STRING", "value": "b"}}

    # A number that JavaScript reads as another one is refused, not saved.
    page.get_by_role("button", name="Edit user").click()
    dialog.get_by_label("Value").fill('{"id": ' + exact + "}")
    expect(dialog).to_contain_text("A number beyond 9,007,199,254,740,991 is to be text")
    expect(dialog.get_by_role("button", name="Save")).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Edit serial").click()
    dialog.get_by_label("Value").fill("9223372036854775808")
    expect(dialog).to_contain_text("This is beyond 64 bits.")
    dialog.get_by_label("Value").fill("9223372036854775807")
    dialog.get_by_role("button", name="Save").click()
    expect(rows.get_by_role("row", name=re.compile("serial"))).to_contain_text("9223372036854775807")
    page.get_by_role("button", name="Edit far").click()
    expect(dialog.get_by_label("Value")).to_have_value("9000000000000000001")
    dialog.get_by_label("Value").fill("9000000000000000003")
    dialog.get_by_role("button", name="Save").click()
    expect(rows.get_by_role("row", name=re.compile("far"))).to_contain_text("9000000000000000003")
    changed = values()
    assert (changed["serial"], changed["far"]) == (9223372036854775807, 9000000000000000003)

    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    file = tmp_path / "p.json"
    download.value.save_as(file)
    kept = json.loads(file.read_text())
    assert kept["user"]["value"]["id"] == {"type": "INT64", "value": exact}
    ada.set({"user": "gone"})
    expect(rows.get_by_role("row", name=re.compile("user"))).to_contain_text("gone")
    for number, outcome in ((large, "A number beyond"), (exact, "3 keys: 0 new, 3 replaced.")):
        kept["serial"] = {"type": "INT64", "value": number}
        file.write_text(json.dumps(kept))
        page.get_by_role("button", name="Import…").click()
        page.get_by_label("File").set_input_files(file)
        expect(dialog).to_contain_text(outcome)
        if number == large:
            page.keyboard.press("Escape")
    dialog.get_by_role("button", name="Import").click()
    expect(rows.get_by_role("row", name=re.compile("serial"))).to_contain_text(exact)
    assert values() == {**changed, "serial": large}


def retry_until(page, wanted):
    """Presses Retry for as long as the page has that instead of what is wanted; it may go just before it is pressed."""
    retry = page.get_by_role("button", name="Retry")
    for _ in range(20):
        expect(wanted.or_(retry).first).to_be_visible()
        if wanted.is_visible():
            return
        with contextlib.suppress(PlaywrightTimeoutError):
            retry.click(timeout=2_000)
    raise AssertionError("Retry helped nothing")


def test_25_preferences_change_live_on_another_node_after_one_was_killed(cluster, browser):
    first, second, _ = cluster.nodes
    ada = Ada(Container(first, "iCloud.com.example.live"))
    ada.set({"theme": "dark"})
    context = browser.new_context(ignore_https_errors=True)
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    page = context.new_page()
    sign_in_first(first, page)
    page.goto(ada.container.address("preferences"))
    keys = Keys(page)
    keys.enter(page.get_by_role("main").get_by_role("button", name="Act as User…"))
    expect(page.get_by_role("dialog").get_by_role("combobox", name="User")).to_be_focused()
    keys.type(ada.name)
    keys.to(page.get_by_role("dialog").get_by_label("Reason"))
    keys.type("ticket 25")
    keys.press("Control+s")
    expect(banner(page)).to_contain_text(f"You act as {ada.name}")
    # A new cluster may be choosing a leader, which the page says.
    row = page.get_by_role("row", name=re.compile("theme"))
    retry_until(page, row)
    expect(row).to_contain_text("dark")
    first.kill()
    # The browser shares the sign-in among the ports of a host, and the time as a user is known to every node.
    ada.container.server = second
    # Others lead its groups in a moment.
    ask_until(lambda: "values" in ada.preferences("list", {}))
    page.goto(ada.container.address("preferences"))
    expect(banner(page)).to_contain_text(f"You act as {ada.name}")
    retry_until(page, row)
    expect(row).to_contain_text("dark")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    ada.set({"theme": "light"})
    expect(row).to_contain_text("light")
    # The node that is gone is shown here; the same by mouse, on this node.
    keys.go("Cluster")
    expect(page.get_by_role("article").filter(has=page.get_by_role("heading", name="Node 1"))).to_contain_text("does not answer")
    stop(page)
    mouse = Mouse(page)
    page.goto(ada.container.address("records"))
    mouse.go("Preferences")
    act_as(page, ada.name)
    expect(row).to_contain_text("light")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    ada.set({"theme": "sepia"})
    expect(row).to_contain_text("sepia")
    context.close()


@pytest.mark.seeds(37)
def test_the_sections_of_the_dashboard(ada, open_page):
    """Schema, public data, private data with its default zone, users, and what each member of the team may do."""
    ada.save("mine", {"text": "hello"})
    ada.container.save("Note", {"text": "for all"}, "public-note")
    page = open_page(ada.container.address("types"))
    screens = page.get_by_role("navigation", name="Screens")
    for link, heading in (("Record Types", "Record Types"), ("Security Roles", "Security Roles"), ("Subscriptions", "Subscriptions"), ("Users", "Users")):
        screens.get_by_role("link", name=link).click()
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    expect(page.get_by_role("row", name=re.compile(ada.name))).to_be_visible()
    screens.get_by_role("link", name="Records").click()
    expect(page.get_by_role("link", name="public-note")).to_be_visible()
    act_as(page, ada.name)
    page.get_by_label("Database").select_option("private")
    expect(page.get_by_role("link", name="mine")).to_be_visible()
    screens.get_by_role("link", name="Settings").click()
    expect(page.get_by_role("row", name=re.compile("maria"))).to_contain_text("Admin")
