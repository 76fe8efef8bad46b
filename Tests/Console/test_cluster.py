"""Containers, users, access, limits, audit, cluster, team."""

import csv
import json
import re

from playwright.sync_api import expect

from conftest import PASSWORD
from keys import Keys, Mouse


def test_a_container_is_made_once(server, open_page):
    page = open_page()
    for _ in range(2):
        page.get_by_role("link", name="Zonekeeper, all containers").click()
        page.locator("header").get_by_role("button", name="New Container").click()
        page.get_by_role("dialog").get_by_label("Name").fill("iCloud.com.example.twice")
        page.get_by_role("button", name="Make container").click()
        if _ == 0:
            expect(page.get_by_role("heading", name="Record Types")).to_be_visible()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("EXISTS")
    names = [each["name"] for each in server.call("GET", "/admin/1/containers")["containers"]]
    assert names.count("iCloud.com.example.twice") == 1


def test_a_user_who_is_locked_out_is_let_in(server, open_page):
    server.call("POST", "/admin/1/users", {"name": "locked-ada"})
    page = open_page()
    asked = []

    # A lock-out lasts for seconds at first: the list says that there is one until it is ended.
    def locked(route):
        answer = route.fetch()
        found = answer.json()
        for user in found["users"]:
            if user["name"] == "locked-ada" and not asked:
                user["lockedUntil"] = 4102444800000
        route.fulfill(response=answer, json=found)

    page.route("**/admin/1/users?*", locked)
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("users/unlock?name=locked-ada") else None)
    page.goto(f"{server.url}/console/~/development/users")
    row = page.get_by_role("row", name=re.compile("locked-ada"))
    expect(row).to_contain_text("locked out")
    page.get_by_role("button", name="More on locked-ada").click()
    page.get_by_role("menuitem", name="Unlock").click()
    expect(page.locator(".toast")).to_contain_text("locked-ada may sign in again")
    expect(row).not_to_contain_text("locked out")


def test_an_api_token_works_until_it_is_revoked(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("access"))
    page.get_by_role("button", name="New API Token").first.click()
    page.get_by_role("dialog").get_by_label("Name").fill("Web app")
    page.get_by_role("button", name="Make token").click()
    secret = page.get_by_role("dialog", name="The new API token").locator("code").inner_text()
    page.get_by_role("button", name="I have kept it").click()
    expect(page.get_by_role("table", name="API tokens")).to_contain_text("Web app")
    expect(page.locator("dialog")).to_have_count(0)
    assert secret not in page.content()

    def ask():
        return restaurants.server.call("POST", f"/database/1/{restaurants.name}/development/public/records/lookup",
                                       {"records": [{"recordName": "osteria"}]}, token=False, ckAPIToken=secret)

    assert ask()["records"][0]["fields"]["name"]["value"] == "Osteria"
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("No API tokens yet")).to_be_visible()
    assert ask()["serverErrorCode"] == "AUTHENTICATION_FAILED"


def test_a_user_is_made_changed_and_deleted(server, open_page):
    page = open_page("/console/~/development/users")
    page.get_by_role("button", name="New User").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("console-ada")
    dialog.get_by_label("Given name").fill("Ada")
    dialog.get_by_role("button", name="Make user").click()
    row = page.get_by_role("row", name=re.compile("console-ada"))
    expect(row).to_contain_text("Ada")
    page.get_by_role("button", name="More on console-ada").click()
    page.get_by_role("menuitem", name="Edit…").click()
    page.get_by_role("dialog").get_by_label("E-mail address").fill("ada@example.com")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(row).to_contain_text("ada@example.com")
    page.get_by_role("button", name="More on console-ada").click()
    page.get_by_role("menuitem", name="Delete…").click()
    page.get_by_role("alertdialog").get_by_role("textbox").fill("console-ada")
    page.get_by_role("alertdialog").get_by_role("button", name="Delete user").click()
    expect(row).to_have_count(0)
    assert all(user["name"] != "console-ada" for user in server.call("GET", "/admin/1/users")["users"])


def test_a_limit_is_set_and_taken_back(container, open_page):
    page = open_page(container.address("limits"))
    row = page.get_by_role("row", name=re.compile("databaseRecords"))
    page.get_by_role("button", name="Set databaseRecords").click()
    page.get_by_role("dialog").get_by_label("Value (records)").fill("5")
    page.get_by_role("dialog").get_by_role("button", name="Set limit").click()
    expect(row).to_contain_text("5 records")
    expect(row).to_contain_text("container")
    expect(page.get_by_text("It would be allowed now")).to_be_visible()
    page.get_by_role("button", name="Set databaseRecords").click()
    page.get_by_role("dialog").get_by_label("Take this container’s value back").check()
    page.get_by_role("dialog").get_by_role("button", name="Set limit").click()
    expect(row).to_contain_text("unlimited")


def test_the_audit_has_the_newest_first(server, container, open_page):
    # The administrator who looks may have been made after the container.
    server.call("PATCH", "/admin/1/limits", {"databaseRecords": 1000}, container=container.name)
    page = open_page(container.address("audit"))
    rows = page.get_by_role("table", name="Audit").locator("tbody tr")
    expect(rows.first).to_contain_text("limits.set")
    page.get_by_label("Search the log").fill(f"container {container.name}".upper())
    expect(rows).to_have_count(3)
    expect(page.get_by_text(re.compile("^records 1 to .*: chain intact"))).to_be_visible()
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as coming:
        page.get_by_role("menuitem", name="All that match as CSV").click()
    with open(coming.value.path(), newline="") as file:
        head, *lines = csv.reader(file)
    assert coming.value.suggested_filename == "audit-changes.csv" and head[0] == "sequence"
    assert [line[3] for line in lines] == ["limits.set", "limits.set", "container.create"], lines
    page.get_by_label("Search the log").fill("nobody did this")
    expect(page.get_by_text("No record matches")).to_be_visible()


def test_usage_is_exported_as_a_table_and_as_lines(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("usage"))
    keys = Keys(page)

    def exported(item):
        with page.expect_download() as coming:
            keys.menu(page.get_by_role("button", name="Export"), item)
        with open(coming.value.path()) as file:
            return coming.value.suggested_filename, file.read().splitlines()

    name, (line,) = exported("Databases as JSON lines")
    database = json.loads(line)
    assert name == f"usage-{restaurants.name}-databases.jsonl" and database["scope"] == "public" and database["records"] == 1
    name, (head, line) = exported("Record types by database as CSV")
    assert head.startswith("environment,scope,") and line.startswith("development,public,,,Restaurant,1,")


def test_a_viewer_sees_what_they_did_themselves_in_the_audit(server, container, open_page):
    server.call("POST", "/admin/1/administrators", {"name": "vera", "role": "viewer", "password": PASSWORD})
    for number in range(12):
        server.call("PATCH", "/admin/1/limits", {"databaseRecords": 1000 + number}, container=container.name)
    page = open_page(container.address("audit"), state=None)
    page.get_by_label("Name").fill("vera")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    rows = page.get_by_role("table", name="Audit").locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("administrator vera")
    expect(page.get_by_text("chain intact")).to_be_visible()


def test_a_users_subscriptions_are_listed_without_the_values_they_compare_with(server, restaurants, open_page):
    subscription = {"subscriptionID": "cheap", "subscriptionType": "query", "firesOn": ["create", "update"],
                    "query": {"recordType": "Restaurant", "filterBy": [{"fieldName": "name", "comparator": "EQUALS", "fieldValue": {"value": "secret place"}}]}}
    app = restaurants.app("subscriber")
    assert "serverErrorCode" not in str(app("subscriptions/modify", {"operations": [{"operationType": "create", "subscription": subscription}]}))
    app("subscriptions/modify", {"operations": [{"operationType": "create", "subscription": {"subscriptionID": "all", "subscriptionType": "database"}}]}, "private")
    page = open_page(restaurants.address("subscriptions"))
    everybody = page.get_by_role("table", name="Subscriptions of all users")
    expect(everybody.get_by_role("row", name=re.compile("^all"))).to_contain_text("subscriber")
    page.get_by_role("combobox", name="User").fill("subscriber")
    page.keyboard.press("Enter")
    table = page.get_by_role("table", name="Subscriptions of subscriber")
    row = table.get_by_role("row", name=re.compile("cheap"))
    for text in ("Query", "Public", "Restaurant", "name", "create", "update"):
        expect(row).to_contain_text(text)
    expect(table.get_by_role("row", name=re.compile("^all"))).to_contain_text("Private")
    assert "secret place" not in page.content()
    table.get_by_role("button", name="Test all").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Send test").click()
    expect(page.locator(".toast", has_text="subscriber is told by all")).to_be_visible()
    table.get_by_role("button", name="Delete cheap").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete subscription").click()
    expect(table.get_by_role("row", name=re.compile("cheap"))).to_have_count(0)
    left = app("subscriptions/list", {})["subscriptions"]
    assert left == [], left


def test_all_users_subscriptions_are_listed_and_counted_by_type(restaurants, open_page):
    query = {"subscriptionType": "query", "firesOn": ["create"], "query": {"recordType": "Restaurant"}}
    for user in ("first-of-all", "second-of-all"):
        app = restaurants.app(user)
        for name in ("new", "newer")[:1 if user == "first-of-all" else 2]:
            subscription = {"subscriptionID": name, **query, "firesOnce": name == "newer"}
            assert "serverErrorCode" not in str(app("subscriptions/modify", {"operations": [{"operationType": "create", "subscription": subscription}]}))
    page = open_page(restaurants.address("subscriptions"))
    types = page.get_by_role("table", name="Subscriptions by type").get_by_role("row", name=re.compile("Query"))
    expect(types.get_by_role("cell")).to_have_text(["Query Public Restaurant", "3", "2"])
    everybody = page.get_by_role("table", name="Subscriptions of all users")
    expect(everybody.locator("tbody tr")).to_have_count(3)
    expect(page.get_by_text("3 subscriptions shown, these are all")).to_be_visible()
    # By keyboard: one user's, one of them deleted, and everybody's again.
    keys = Keys(page)
    keys.row(everybody.get_by_role("link", name="second-of-all").first)
    table = page.get_by_role("table", name="Subscriptions of second-of-all")
    expect(table.locator("tbody tr")).to_have_count(2)
    keys.row(table.get_by_role("button", name="Delete newer"))
    keys.enter(page.get_by_role("alertdialog").get_by_role("button", name="Delete subscription"))
    expect(table.locator("tbody tr")).to_have_count(1)
    keys.enter(page.get_by_role("button", name="Everybody"), "Shift+Tab")
    expect(types.get_by_role("cell")).to_have_text(["Query Public Restaurant", "2", "2"])


def test_types_of_subscriptions_are_counted_for_long_only_when_that_is_asked_for(restaurants, open_page):
    asked, page = [], open_page(restaurants.address("usage"))
    found = {"types": [{"database": "public", "subscriptionType": "query", "recordType": "Restaurant", "subscriptions": 3, "users": 2}], "next": "x"}

    def answer(route):
        [seconds] = re.findall("seconds=([0-9]+)", route.request.url)
        asked.append(int(seconds))
        if len(asked) == 1:
            route.fulfill(status=500, json={"uuid": "01A20B3B", "serverErrorCode": "INTERNAL_ERROR", "reason": "A shard cannot be read."})
        else:
            route.fulfill(json=found)

    page.route("**/admin/1/subscriptions?*types=true*", answer)
    Mouse(page).go("Subscriptions")
    alert = page.get_by_role("alert").filter(has_text="A shard cannot be read.")
    alert.get_by_role("button", name="Retry").click()
    types = page.get_by_role("table", name="Subscriptions by type")
    expect(types).to_be_visible()
    expect(alert).to_have_count(0)
    for name, seconds in (("Count all", [1, 1, 60]), ("Count all", [1, 1, 60, 60]), ("Refresh", [1, 1, 60, 60, 1])):
        with page.expect_response("**/admin/1/subscriptions?*types=true*"):
            page.get_by_role("button", name=name).click()
        assert asked == seconds


def test_the_cluster_shows_its_node_and_leaders(server, open_page):
    page = open_page("/console/~/development/cluster")
    expect(page.get_by_role("heading", name="Node 1")).to_be_visible()
    shards = page.get_by_role("region", name="Shards by nodes")
    expect(shards.get_by_role("row", name=re.compile("Directory")).get_by_role("img", name="leads")).to_be_visible()


def test_usage_and_zones_count_records(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("usage"))
    expect(page.get_by_role("row", name=re.compile("Public"))).to_contain_text("1")
    page.get_by_role("button", name="Count again").click()
    expect(page.get_by_text("the ledger of 1 database is right")).to_be_visible()
    page.goto(restaurants.address("zones"))
    expect(page.get_by_role("row", name=re.compile("_defaultZone"))).to_be_visible()
