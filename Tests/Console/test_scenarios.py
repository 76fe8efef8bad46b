"""What tutorials on CloudKit do in its console, step by step. The rows of scripts/seed-apps that are done in a console are these."""

import base64
import hashlib
import json
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import pytest
from playwright.sync_api import expect

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
TYPE = 'DEFINE SCHEMA\n RECORD TYPE {} (\n {}\n GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud", GRANT READ TO "_world"\n );'


def save_schema(page, words="Save Changes"):
    """Saves what was edited, after a look at the review, and waits for the schema as it is then."""
    page.get_by_role("button", name="Save Changes").click()
    with page.expect_response(re.compile("/schema/state")):
        page.get_by_role("dialog", name="Review changes").get_by_role("button", name=words).click()
    expect(page.locator(".toast", has_text="The schema was saved").first).to_be_visible()
    expect(page.get_by_role("region", name="Unsaved changes")).to_have_count(0)


def add_type(page, name):
    page.get_by_role("button", name="New Record Type").first.click()
    page.get_by_role("dialog").get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Add type").click()


def add_field(page, name, kind="STRING"):
    page.get_by_role("button", name="Add Field").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Field Name").fill(name)
    dialog.get_by_label("Field Type").select_option(kind)
    dialog.get_by_role("button", name="Add field").click()


def add_index(page, field, kind):
    page.get_by_role("button", name="Add Basic Index").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Field").select_option(label=field)
    dialog.get_by_label("Index Type").select_option(kind)
    dialog.get_by_role("button", name="Add index").click()
    expect(dialog).to_have_count(0)


def saved(page, pane):
    pane.get_by_role("button", name="Save").click()
    # A toast may still be the last record's.
    expect(pane.get_by_role("heading", name="Metadata")).to_be_visible()


@pytest.mark.seeds(3)
def test_2_a_new_container_and_its_two_environments(server, open_page):
    page = open_page()
    for turn in range(2):
        page.get_by_role("link", name="Zonekeeper, all containers").click()
        page.locator("header").get_by_role("button", name="New Container").click()
        page.get_by_role("dialog").get_by_label("Name").fill("iCloud.com.example.food")
        page.get_by_role("button", name="Make container").click()
        if turn == 0:
            expect(page.get_by_role("heading", name="Record Types")).to_be_visible()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("EXISTS")
    page.keyboard.press("Escape")
    for environment in ("development", "production"):
        query = {"container": "iCloud.com.example.food", "environment": environment}
        if environment == "development":
            server.call("POST", "/admin/1/schema", {"schema": TYPE.format("Dish", '"___recordID" REFERENCE QUERYABLE, name STRING,')}, **query)
            server.call("POST", "/admin/1/schema/deploy", container=query["container"])
        record = {"recordType": "Dish", "recordName": f"of-{environment}", "fields": {}}
        path = f"/database/1/{query['container']}/{environment}/public/records/modify"
        assert "recordChangeTag" in server.call("POST", path, {"operations": [{"operationType": "create", "record": record}]})["records"][0]
    page.goto(f"{server.url}/console/iCloud.com.example.food/development/records")
    expect(page.get_by_role("link", name="of-development")).to_be_visible()
    strip = page.locator("html[data-environment=production]")
    expect(strip).to_have_count(0)
    page.get_by_role("button", name="Production").click()
    expect(page.get_by_role("link", name="of-production")).to_be_visible()
    expect(page.get_by_role("link", name="of-development")).to_have_count(0)
    expect(strip).to_have_count(1)
    page.get_by_role("button", name="Development").click()
    expect(page.get_by_role("link", name="of-development")).to_be_visible()


@pytest.mark.seeds(4, 5)
def test_4_a_record_type_with_six_system_fields(container, open_page):
    page = open_page(container.address("types"))
    add_type(page, "Restaurant")
    fields = page.get_by_role("table", name="Fields of Restaurant")
    for name in ("recordName", "createdTimestamp", "createdUserRecordName", "modifiedTimestamp", "modifiedUserRecordName", "recordChangeTag"):
        expect(fields.get_by_role("row", name=re.compile(name))).to_contain_text("system")
    for name in ("name", "type", "location", "phone", "description"):
        add_field(page, name)
    add_field(page, "image", "ASSET")
    save_schema(page)
    text = re.sub(" +", " ", container.exported())
    for line in ("name STRING", "type STRING", "location STRING", "phone STRING", "description STRING", "image ASSET"):
        assert re.search(rf"{line}[,\n]", text), (line, text)


@pytest.mark.seeds(8, 55)
def test_7_an_index_lets_a_query_run(container, open_page):
    container.schema(TYPE.format("Restaurant", "name STRING,"))
    for number in (1, 2):
        container.save("Restaurant", {"name": f"Number {number}"}, f"number-{number}")
    page = open_page(container.address("records"))
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("not marked queryable")
    alert.get_by_role("link", name="See indexes").click()
    add_index(page, "recordName", "QUERYABLE")
    add_index(page, "createdTimestamp", "SORTABLE")
    add_index(page, "name", "SEARCHABLE")
    save_schema(page)
    page.goto(container.address("records", type="Restaurant", sort="-createdTimestamp", cols="createdTimestamp"))
    expect(page.get_by_role("table", name="Records").locator("tbody tr").first).to_contain_text("number-2")
    page.get_by_role("button", name="Created").click()
    page.get_by_role("button", name="Query Records").click()
    expect(page.get_by_role("columnheader", name="Created")).not_to_have_attribute("aria-sort", "descending")
    expect(page.get_by_role("link", name=re.compile("number-"))).to_have_count(2)


@pytest.mark.seeds(6, 51)
def test_8_ten_records_with_an_image_are_in_the_list_at_once(container, open_page):
    container.schema(TYPE.format("Restaurant", '"___recordID" REFERENCE QUERYABLE, name STRING, type STRING, location STRING, phone STRING, description STRING, image ASSET,'))
    page = open_page(container.address("records", type="Restaurant"))
    expect(page.get_by_text("No Restaurant yet")).to_be_visible()
    queries = []
    page.on("request", lambda request: request.url.endswith("records/query") and queries.append(request.url))
    for number in range(10):
        page.locator("header").get_by_role("button", name="New Record").click()
        pane = page.get_by_role("complementary")
        pane.get_by_label("name", exact=True).fill(f"Restaurant {number}")
        pane.get_by_label("description", exact=True).fill("by hand")
        pane.get_by_label("image, file").set_input_files({"name": "front.png", "mimeType": "image/png", "buffer": PNG})
        expect(pane.get_by_text("sent; kept when you save")).to_be_visible()
        pane.get_by_role("button", name="Save").click()
        expect(page.get_by_role("row", name=re.compile(f"Restaurant {number}"))).to_be_visible()
    assert queries == []
    found = container.data("records/query", {"query": {"recordType": "Restaurant"}})["records"]
    assert len(found) == 10
    assert all(record["fields"]["image"]["value"]["size"] == len(PNG) for record in found)


@pytest.mark.seeds(30)
def test_9_a_filter_needs_its_indexes(container, open_page):
    container.schema(TYPE.format("Fasting", 'goal DOUBLE, "start" TIMESTAMP, "end" TIMESTAMP, "___recordID" REFERENCE QUERYABLE,'))
    day = 86_400_000
    for number in range(3):
        container.save("Fasting", {"goal": 16.0, "start": day * number, "end": day * (number + 1)}, f"fast-{number}")
    filters = json.dumps([["start", "GREATER_THAN_OR_EQUALS", str(day)]])
    page = open_page(container.address("records", type="Fasting", f=filters, sort="-start"))
    expect(page.get_by_role("alert")).to_contain_text("start has no index for this")
    page.goto(container.address("indexes", type="Fasting"))
    for field in ("start", "end"):
        for kind in ("QUERYABLE", "SORTABLE"):
            add_index(page, field, kind)
    save_schema(page)
    page.goto(container.address("records", type="Fasting", f=filters, sort="-start"))
    rows = page.get_by_role("table", name="Records").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("fast-2")


@pytest.mark.seeds(39)
def test_10_places_and_images_are_entered_and_one_is_deleted_by_its_icon(container, open_page):
    container.schema(TYPE.format("Establishment", '"___recordID" REFERENCE QUERYABLE, Name STRING QUERYABLE, Location LOCATION QUERYABLE, CoverPhoto ASSET, KidsMenu INT64,'))
    page = open_page(container.address("records", type="Establishment"))
    for name, latitude, longitude in (("Ray's", "37.33", "-122.03"), ("Kit's", "37.34", "-122.04"), ("Late", "37.35", "-122.05")):
        page.locator("header").get_by_role("button", name="New Record").click()
        pane = page.get_by_role("complementary")
        pane.get_by_label("recordName").fill(name.lower().replace("'", ""))
        pane.locator(".field-row", has_text="Name").last.get_by_role("textbox").fill(name)
        pane.get_by_label("Location, Latitude").fill(latitude)
        pane.get_by_label("Location, Longitude").fill(longitude)
        data = page.evaluate_handle("""(bytes) => {
            const data = new DataTransfer();
            data.items.add(new File([Uint8Array.from(bytes)], "cover.png", {type: "image/png"}));
            return data;
        }""", list(PNG))
        pane.locator("label.drop").dispatch_event("drop", {"dataTransfer": data})
        expect(pane.get_by_text("sent; kept when you save")).to_be_visible()
        saved(page, pane)
        pane.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Delete late", exact=True).click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="late")).to_have_count(0)
    assert container.lookup("late")["serverErrorCode"] == "NOT_FOUND"
    kept = container.lookup("rays")["fields"]
    assert kept["Location"]["value"] == {"latitude": 37.33, "longitude": -122.03}
    assert kept["CoverPhoto"]["value"]["size"] == len(PNG)


@pytest.mark.seeds(51)
def test_11_a_record_is_opened_by_its_name_changed_and_deleted(restaurants, open_page):
    first = restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant"))
    page.get_by_role("link", name="osteria").click()
    pane = page.get_by_role("complementary")
    expect(pane.get_by_role("heading", name="Metadata")).to_be_visible()
    pane.get_by_label("name", exact=True).fill("Trattoria")
    pane.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name=re.compile("osteria"))).to_contain_text("Trattoria")
    assert restaurants.lookup("osteria")["recordChangeTag"] != first["recordChangeTag"]
    page.get_by_role("button", name="More on this record").click()
    page.get_by_role("menuitem", name="Delete…").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="osteria")).to_have_count(0)
    assert restaurants.lookup("osteria")["serverErrorCode"] == "NOT_FOUND"


@pytest.mark.seeds(19)
def test_14_a_role_that_is_ticked_lets_an_app_save_at_once(container, open_page):
    container.schema(TYPE.format("Restaurant", "name STRING,"))
    container.save("Restaurant", {"name": "Osteria"}, "osteria")
    app = container.app("waiter")

    def save():
        record = {"recordType": "Restaurant", "recordName": "osteria", "fields": {"name": {"value": "By the app"}}}
        return app("records/modify", {"operations": [{"operationType": "forceUpdate", "record": record}]})["records"][0]

    assert save()["serverErrorCode"] == "ACCESS_DENIED"
    page = open_page(container.address("roles"))
    page.get_by_label("_icloud: Read Restaurant").check()
    page.get_by_label("_icloud: Write Restaurant").check()
    save_schema(page)
    assert save()["fields"]["name"]["value"] == "By the app"


@pytest.mark.seeds(54)
def test_16_a_field_is_changed_and_deleted_and_a_type_goes_with_its_records(container, open_page):
    container.schema(TYPE.format("Person", '"___recordID" REFERENCE QUERYABLE, name STRING, age INT64,'))
    container.save("Person", {"name": "Ada", "age": 36}, "ada")
    page = open_page(container.address("types", type="Person"))
    page.get_by_role("button", name="More on name").click()
    page.get_by_role("menuitem", name="Edit…").click()
    page.get_by_role("dialog").get_by_label("Searchable").check()
    page.get_by_role("dialog").get_by_role("button", name="Done").click()
    save_schema(page)
    assert re.search(r"name +STRING SEARCHABLE", container.exported())
    page.get_by_role("button", name="More on age").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Save Changes").click()
    dialog = page.get_by_role("dialog", name="Review changes")
    expect(dialog).to_contain_text("age")
    expect(dialog).to_contain_text("1 record")
    dialog.get_by_role("button", name="Cancel").click()
    save_schema(page, "Save, and lose this data")
    assert "age" not in container.exported()
    page.get_by_role("button", name="More on Person").click()
    page.get_by_role("menuitem", name="Delete Record Type…").click()
    save_schema(page, "Save, and lose this data")
    expect(page.get_by_role("navigation", name="Record types")).not_to_contain_text("Person")
    container.schema(TYPE.format("Person", '"___recordID" REFERENCE QUERYABLE,'))
    assert container.data("records/query", {"query": {"recordType": "Person"}})["records"] == []


def deploy(page, container):
    page.goto(container.address("deploy"))
    page.get_by_role("button", name="Deploy…").click()
    dialog = page.get_by_role("alertdialog")
    dialog.get_by_role("textbox").fill(container.name)
    dialog.get_by_role("button", name="Deploy", exact=True).click()
    expect(page.get_by_role("button", name="Production")).to_have_attribute("aria-pressed", "true")


@pytest.mark.seeds(35, 58)
def test_17_and_18_what_is_deployed_stays_and_only_what_is_new_is_deployed(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("deploy"))
    expect(page.get_by_role("heading", name=re.compile("^Record Types"))).to_be_visible()
    deploy(page, restaurants)
    page.goto(restaurants.address("records", "production", type="Restaurant"))
    expect(page.get_by_text("No Restaurant yet")).to_be_visible()
    page.goto(restaurants.address("types", type="Restaurant"))
    page.get_by_role("button", name="More on phone").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Save Changes").click()
    refusal = page.get_by_role("dialog", name=re.compile("cannot be saved"))
    expect(refusal).to_contain_text("production")
    refusal.get_by_role("button", name="Close", exact=True).last.click()
    page.get_by_role("button", name="Discard").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Discard").click()
    add_field(page, "chef")
    save_schema(page)
    page.goto(restaurants.address("indexes", type="Restaurant"))
    add_index(page, "rating", "SORTABLE")
    save_schema(page)
    page.goto(restaurants.address("roles"))
    page.get_by_label("_icloud: Write Restaurant").check()
    save_schema(page)
    page.goto(restaurants.address("deploy"))
    main = page.get_by_role("main")
    for part in ("Record Types", "Indexes", "Security Roles"):
        expect(main.get_by_role("heading", name=re.compile(f"^{part}"))).to_be_visible()
    expect(main).to_contain_text("chef")
    expect(main).not_to_contain_text("phone")
    deploy(page, restaurants)
    assert re.search(r"chef +STRING", restaurants.exported("production"))
    assert restaurants.lookup("osteria")["fields"]["name"]["value"] == "Osteria"


@pytest.mark.seeds(85)
def test_19_a_task_is_made_in_the_public_default_zone(container, open_page):
    container.schema(TYPE.format("Task", '"___recordID" REFERENCE QUERYABLE, createdAt TIMESTAMP QUERYABLE SORTABLE, title STRING QUERYABLE, checked INT64,'))
    page = open_page(container.address("records", type="Task"))
    toolbar = page.get_by_role("group", name="Query")
    expect(toolbar.get_by_label("Database")).to_have_value("public")
    expect(toolbar.get_by_label("Zone")).to_have_value("_defaultZone")
    page.locator("header").get_by_role("button", name="New Record").click()
    pane = page.get_by_role("complementary")
    pane.get_by_label("title", exact=True).fill("Buy milk")
    pane.get_by_label("checked", exact=True).fill("0")
    pane.get_by_label("createdAt", exact=True).fill("2026-03-01T12:00")
    saved(page, pane)
    [task] = container.data("records/query", {"query": {"recordType": "Task"}})["records"]
    assert {name: field["value"] for name, field in task["fields"].items()} == {
        "title": "Buy milk", "checked": 0, "createdAt": int(datetime(2026, 3, 1, 12, tzinfo=timezone.utc).timestamp() * 1000)}


def test_20_a_token_for_an_origin_and_a_key_for_a_server(restaurants, open_page, tmp_path):
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("access"))
    page.get_by_role("button", name="New API Token").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Web app")
    dialog.get_by_label("Allowed origins").fill("https://app.example.com")
    dialog.get_by_role("button", name="Make token").click()
    secret = page.get_by_role("dialog", name="The new API token").locator("code").inner_text()
    page.get_by_role("button", name="I have kept it").click()
    path = f"/database/1/{restaurants.name}/development/public/records/lookup"
    body = {"records": [{"recordName": "osteria"}]}

    def curl(origin):
        answer = subprocess.run(["curl", "-sk", "-H", f"Origin: {origin}", "-H", "Content-Type: application/json", "-d", json.dumps(body),
                                 f"{restaurants.server.url}{path}?ckAPIToken={secret}"], capture_output=True, check=True)
        return json.loads(answer.stdout)

    assert curl("https://app.example.com")["records"][0]["fields"]["name"]["value"] == "Osteria"
    assert "serverErrorCode" in curl("https://other.example.com")
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("No API tokens yet")).to_be_visible()
    assert curl("https://app.example.com")["serverErrorCode"] == "AUTHENTICATION_FAILED"

    restaurants.server.call("POST", "/admin/1/users", {"name": "the-server"})
    key = tmp_path / "key.pem"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key], check=True)
    public = subprocess.run(["openssl", "ec", "-in", key, "-pubout"], capture_output=True, check=True).stdout.decode()
    page.get_by_role("link", name="Server-to-Server Keys").click()
    page.get_by_role("button", name="New Key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("nightly")
    dialog.get_by_label("User").fill("the-server")
    dialog.get_by_label("Public key, PEM").fill(public)
    dialog.get_by_role("button", name="Add key").click()
    expect(page.get_by_role("table", name="Server-to-server keys")).to_contain_text("nightly")
    [entry] = [each for each in restaurants.server.call("GET", "/admin/1/keys")["keys"] if each["label"] == "nightly"]
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    content = json.dumps(body).encode()
    digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
    signature = base64.b64encode(subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=f"{now}:{digest}:{path}".encode(), capture_output=True, check=True).stdout)
    signed = restaurants.server.call("POST", path, body, token=False, headers={
        "X-Apple-CloudKit-Request-KeyID": entry["id"], "X-Apple-CloudKit-Request-ISO8601Date": now, "X-Apple-CloudKit-Request-SignatureV1": signature.decode()})
    assert signed["records"][0]["fields"]["name"]["value"] == "Osteria"


def test_every_scenario_is_done_by_mouse_and_by_keyboard():
    """docs/console.md names the tests; each is one of its file. One that both columns name runs with each hand."""
    folder = Path(__file__).parent
    rows = [line.split("|") for line in (folder / "../../docs/console.md").read_text().splitlines() if re.match(r"\| \d+ \|", line)]
    assert [int(row[1]) for row in rows] == list(range(1, 26))
    # After a node was killed, this one goes on by keyboard, and then by mouse on another node.
    both_in_one = {("test_acting.py", "25_preferences")}
    for row in rows:
        mouse, keys = ([re.findall("`([^`]+)`", part) for part in way.split(";")] for way in row[3:5])
        assert mouse and keys and all(len(part) > 1 for part in mouse + keys), row
        mouse, keys = ({(file, name) for file, *names in parts for name in names} for parts in (mouse, keys))
        for file, name in mouse | keys:
            hands = r'@pytest\.mark\.parametrize\("hand", \[Mouse, Keys\]\)\n' if (file, name) in mouse & keys - both_in_one else ""
            assert re.search(rf"^{hands}def (test_)?{name}", (folder / file).read_text(), re.MULTILINE), (file, name)
