"""Records: queries, the table, and one record beside it."""

import json
import re

import pytest
from playwright.sync_api import expect


def test_a_refused_query_says_which_index_is_missing_and_a_click_adds_it(container, open_page):
    container.schema("DEFINE SCHEMA\n RECORD TYPE Restaurant ( name STRING, GRANT READ TO \"_world\" );")
    container.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(container.address("records"))
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("not marked queryable")
    expect(alert).to_contain_text("BAD_REQUEST")
    alert.get_by_role("button", name="Add index: recordName Queryable").click()
    expect(page.get_by_role("link", name="osteria")).to_be_visible()
    assert '"___recordID"   REFERENCE QUERYABLE' in container.exported()


def test_a_new_record_is_in_the_list_at_once(restaurants, open_page):
    page = open_page(restaurants.address("records", type="Restaurant"))
    expect(page.get_by_text("No Restaurant yet")).to_be_visible()
    page.locator("header").get_by_role("button", name="New Record").click()
    pane = page.get_by_role("complementary")
    pane.get_by_label("recordName").fill("osteria")
    pane.get_by_label("name", exact=True).fill("Osteria del Ponte")
    pane.get_by_label("seats", exact=True).fill("9007199254740993")
    pane.get_by_label("rating", exact=True).fill("4.5")
    pane.get_by_label("opened", exact=True).fill("2020-02-29T12:30:15.125")
    pane.get_by_label("location, Latitude").fill("45.4371")
    pane.get_by_label("location, Longitude").fill("12.3326")
    pane.get_by_label("near", exact=True).fill("elsewhere")
    pane.get_by_label("hash, Base64").fill("AAEC")
    pane.get_by_role("group", name="tags").get_by_role("button", name="Add to tags").click()
    pane.get_by_label("tags, member").fill("wine")
    pane.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name=re.compile("osteria")).first).to_contain_text("Osteria del Ponte")
    fields = restaurants.lookup("osteria")["fields"]
    assert fields["seats"] == {"value": "9007199254740993", "type": "INT64"}
    assert fields["rating"]["value"] == "4.5"
    assert fields["opened"] == {"value": "1582979415125", "type": "TIMESTAMP"}
    assert fields["location"]["value"]["latitude"] == 45.4371
    assert fields["near"]["value"]["recordName"] == "elsewhere"
    assert fields["hash"] == {"value": "AAEC", "type": "BYTES"}
    assert fields["tags"] == {"value": ["wine"], "type": "STRING_LIST"}
    assert "phone" not in fields


def test_a_changed_field_is_saved_with_the_tag_and_the_others_stay(restaurants, open_page):
    first = restaurants.save("Restaurant", {"name": "Osteria", "seats": 12}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant"))
    page.get_by_role("link", name="osteria").click()
    pane = page.get_by_role("complementary")
    expect(pane.get_by_role("heading", name="Metadata")).to_be_visible()
    expect(pane.get_by_label("seats", exact=True)).to_have_value("12")
    pane.get_by_label("seats", exact=True).fill("13")
    pane.get_by_role("button", name="Clear name").click()
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("Saved osteria")
    record = restaurants.lookup("osteria")
    assert record["fields"] == {"seats": {"value": "13", "type": "INT64"}}
    assert record["recordChangeTag"] != first["recordChangeTag"]


def test_a_wrong_number_is_refused_before_it_is_sent(restaurants, open_page):
    restaurants.save("Restaurant", {"seats": 1}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant", record="osteria"))
    pane = page.get_by_role("complementary")
    pane.get_by_label("seats", exact=True).fill("9223372036854775808")
    expect(pane.get_by_text("This is beyond 64 bits.")).to_be_visible()
    expect(pane.get_by_role("button", name="Save")).to_have_attribute("aria-disabled", "true")
    pane.get_by_label("seats", exact=True).fill("2")
    pane.get_by_role("button", name="Save").click()
    expect(page.locator(".toast")).to_contain_text("Saved")


def test_two_who_edit_one_record_choose_between_both_values(restaurants, open_page):
    first = restaurants.save("Restaurant", {"name": "Osteria", "seats": 12, "phone": "1"}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant", record="osteria"))
    pane = page.get_by_role("complementary")
    pane.get_by_label("name", exact=True).fill("Mine")
    pane.get_by_label("seats", exact=True).fill("20")
    restaurants.save("Restaurant", {"name": "Theirs", "phone": "2"}, "osteria", first["recordChangeTag"])
    pane.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="Somebody else saved this record")
    expect(dialog).to_contain_text("Also changed on the server, and kept: phone.")
    dialog.get_by_role("row", name=re.compile("^name")).get_by_label("Theirs").check()
    dialog.get_by_role("button", name="Save these").click()
    expect(page.locator(".toast")).to_contain_text("Saved osteria")
    fields = restaurants.lookup("osteria")["fields"]
    assert {name: field["value"] for name, field in fields.items()} == {"name": "Theirs", "seats": "20", "phone": "2"}


def test_a_record_is_deleted_after_a_question(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant", record="osteria"))
    page.get_by_role("button", name="More on this record").click()
    page.get_by_role("menuitem", name="Delete…").click()
    dialog = page.get_by_role("alertdialog")
    expect(dialog).to_contain_text("Delete osteria?")
    dialog.get_by_role("button", name="Cancel").click()
    assert "fields" in restaurants.lookup("osteria")
    page.get_by_role("button", name="More on this record").click()
    page.get_by_role("menuitem", name="Delete…").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("complementary")).to_have_count(0)
    expect(page.get_by_role("link", name="osteria")).to_have_count(0)
    assert restaurants.lookup("osteria")["serverErrorCode"] == "NOT_FOUND"


def test_an_earlier_version_is_restored_and_a_deleted_record_found_by_its_name(restaurants, open_page):
    restaurants.server.call("PATCH", "/admin/1/limits", {"recordVersionDays": 30}, container=restaurants.name)
    first = restaurants.save("Restaurant", {"name": "Osteria", "seats": 12}, "osteria")
    restaurants.save("Restaurant", {"name": "Trattoria", "phone": "1"}, "osteria", first["recordChangeTag"])
    page = open_page(restaurants.address("records", type="Restaurant", record="osteria"))
    pane = page.get_by_role("complementary")
    expect(pane.get_by_label("phone", exact=True)).to_have_value("1")

    def versions():
        page.get_by_role("button", name="More on this record").click()
        page.get_by_role("menuitem", name="Versions…").click()
        return page.get_by_role("dialog", name="Versions of osteria")

    dialog = versions()
    earlier = dialog.get_by_role("group", name=f"Version {first['recordChangeTag']}")
    expect(earlier.get_by_role("listitem")).to_have_text(["name: Osteria → Trattoria", "phone: – → 1"])
    expect(earlier).to_contain_text("Changed ")
    # Somebody else saves meanwhile: the version is not restored over it unseen.
    now = restaurants.lookup("osteria")
    restaurants.save("Restaurant", {"seats": 20}, "osteria", now["recordChangeTag"])
    earlier.get_by_role("button", name="Restore this version").click()
    expect(dialog.get_by_role("alert")).to_contain_text("CONFLICT")
    expect(dialog.get_by_role("group")).to_have_count(2)
    dialog.get_by_role("group", name=f"Version {first['recordChangeTag']}").get_by_role("button", name="Restore this version").click()
    expect(page.locator(".toast")).to_contain_text("Restored osteria")
    expect(pane.get_by_label("seats", exact=True)).to_have_value("12")
    assert {name: field["value"] for name, field in restaurants.lookup("osteria")["fields"].items()} == {"name": "Osteria", "seats": "12"}
    # What was replaced is a version in its turn.
    expect(versions().get_by_role("group")).to_have_count(3)
    page.keyboard.press("Escape")
    restaurants.data("records/modify", {"operations": [{"operationType": "forceDelete", "record": {"recordName": "osteria"}}]})
    page = open_page(restaurants.address("records", type="Restaurant"))
    page.get_by_role("group", name="Query").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Find a deleted record…").click()
    page.get_by_label("Record name").fill("osteria")
    page.get_by_role("button", name="Show versions").click()
    dialog = page.get_by_role("dialog", name="Versions of osteria")
    expect(dialog.get_by_role("group").first).to_contain_text("Deleted ")
    dialog.get_by_role("button", name="Restore this version").first.click()
    expect(page.get_by_role("row", name=re.compile("osteria")).first).to_contain_text("Osteria")
    assert restaurants.lookup("osteria")["fields"]["seats"]["value"] == "12"


def test_several_records_are_deleted_at_once(restaurants, open_page):
    for number in range(3):
        restaurants.save("Restaurant", {"name": f"Bistro {number}"}, f"bistro-{number}")
    page = open_page(restaurants.address("records", type="Restaurant"))
    page.get_by_label("Select bistro-0").check()
    page.get_by_label("Select bistro-2").check()
    page.get_by_role("button", name="Delete 2 records").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="bistro-2")).to_have_count(0)
    expect(page.get_by_role("link", name="bistro-1")).to_be_visible()
    assert restaurants.lookup("bistro-0")["serverErrorCode"] == "NOT_FOUND"


def test_filters_and_the_order_are_in_the_address(restaurants, open_page):
    for number in (3, 20, 100):
        restaurants.save("Restaurant", {"name": f"Bistro {number}", "seats": number}, f"bistro-{number}")
    page = open_page(restaurants.address("records", type="Restaurant"))
    expect(page.get_by_role("link", name="bistro-3", exact=True)).to_be_visible()
    page.get_by_role("button", name="Add filter").click()
    row = page.get_by_role("group", name="Filters")
    row.get_by_label("Field", exact=True).select_option("seats")
    row.get_by_label("Comparison").select_option("GREATER_THAN")
    row.get_by_label("Value for seats").fill("10")
    row.get_by_label("Value for seats").press("Enter")
    expect(page.get_by_role("link", name="bistro-3", exact=True)).to_have_count(0)
    page.get_by_role("button", name="seats", exact=True).click()
    page.get_by_role("button", name="seats", exact=True).click()
    names = page.get_by_role("table", name="Records").locator("tbody .row-link")
    expect(names).to_have_text(["bistro-100", "bistro-20"])
    page.reload()
    expect(names).to_have_text(["bistro-100", "bistro-20"])
    page.go_back()
    page.go_back()
    expect(names.first).to_be_visible()


def test_pages_follow_each_other(restaurants, open_page):
    for start in (0, 150):
        operations = [{"operationType": "create", "record": {"recordType": "Restaurant", "recordName": f"bistro-{number:03}",
                       "fields": {"name": {"value": f"Bistro {number:03}"}}}} for number in range(start, start + 150)]
        restaurants.data("records/modify", {"operations": operations})
    page = open_page(restaurants.address("records", type="Restaurant", sort="name"))
    links = page.get_by_role("table", name="Records").locator("tbody .row-link")
    expect(links.first).to_have_text("bistro-000")
    # No more is loaded than somebody looks at.
    expect(page.get_by_text("100 records shown")).to_be_visible()
    for shown in ("200 records shown", "300 records shown, these are all"):
        links.last.scroll_into_view_if_needed()
        expect(page.locator(".table-foot")).to_contain_text(shown)
    expect(page.get_by_role("table", name="Records")).to_have_attribute("aria-rowcount", "301")


def test_a_file_goes_up_and_comes_down_the_same(restaurants, open_page):
    content = bytes([0x89, 0x50, 0x4E, 0x47]) + bytes(range(256)) * 300
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant", record="osteria"))
    pane = page.get_by_role("complementary")
    pane.get_by_label("image, file").set_input_files({"name": "front.png", "mimeType": "image/png", "buffer": content})
    expect(pane.get_by_text("sent; kept when you save")).to_be_visible()
    pane.get_by_role("button", name="Save").click()
    expect(page.locator(".toast")).to_contain_text("Saved")
    with page.expect_download() as coming:
        pane.get_by_role("link", name=re.compile("Download")).click()
    with open(coming.value.path(), "rb") as file:
        assert file.read() == content


def test_values_are_text_and_never_markup(restaurants, open_page):
    text = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    restaurants.save("Restaurant", {"name": text}, "odd")
    page = open_page(restaurants.address("records", type="Restaurant", record="odd"))
    expect(page.get_by_role("row", name=re.compile("odd"))).to_contain_text(text)
    expect(page.get_by_role("complementary").get_by_label("name", exact=True)).to_have_value(text)
    assert page.locator("#app img, #app script").count() == 0


def test_a_query_is_explained_and_copied(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria", "seats": 3}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant", sort="-seats"))
    expect(page.get_by_role("link", name="osteria")).to_be_visible()
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Explain the query").click()
    expect(page.get_by_role("region", name="How the query ran")).to_contain_text("index on seats")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("Copy as curl")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("records/query")
    dialog.get_by_role("button", name="Command").click()
    expect(dialog).to_contain_text("--sort -seats")
    dialog.get_by_role("button", name="Swift").click()
    expect(dialog).to_contain_text('NSSortDescriptor(key: "seats", ascending: false)')


def test_an_export_guards_spreadsheets(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "=1+1", "seats": -3}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant"))
    expect(page.get_by_role("link", name="osteria")).to_be_visible()
    page.get_by_role("button", name="More", exact=True).click()
    with page.expect_download() as coming:
        page.get_by_role("menuitem", name="Export as CSV").click()
    with open(coming.value.path(), newline="") as file:
        head, line = file.read().splitlines()
    assert {key: value for key, value in zip(head.split(","), line.split(",")) if value} == {"recordName": "osteria", "name": "'=1+1", "seats": "-3"}


def test_leaving_with_edits_asks(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant", record="osteria"))
    page.get_by_role("complementary").get_by_label("name", exact=True).fill("Changed")
    page.get_by_role("link", name="Indexes").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("complementary").get_by_label("name", exact=True)).to_have_value("Changed")
    page.get_by_role("link", name="Indexes").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Discard changes").click()
    expect(page.get_by_role("heading", name="Indexes")).to_be_visible()


def test_edits_outlast_a_reload(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant", record="osteria"))
    page.get_by_role("complementary").get_by_label("name", exact=True).fill("Changed")
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(page.get_by_role("complementary").get_by_label("name", exact=True)).to_have_value("Changed")
    expect(page.get_by_text("1 field changed")).to_be_visible()


def test_an_edit_that_was_kept_overwrites_no_later_save_unseen(restaurants, open_page):
    first = restaurants.save("Restaurant", {"name": "Osteria", "phone": "1"}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant", record="osteria"))
    pane = page.get_by_role("complementary")
    pane.get_by_label("name", exact=True).fill("Mine")
    restaurants.save("Restaurant", {"name": "Theirs", "phone": "2"}, "osteria", first["recordChangeTag"])
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    # What others saved is shown, and the edit beside it.
    expect(pane.get_by_label("phone", exact=True)).to_have_value("2")
    expect(pane.get_by_label("name", exact=True)).to_have_value("Mine")
    pane.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="Somebody else saved this record")
    expect(dialog).to_contain_text("Choose which value each field shall have")
    expect(dialog.get_by_role("row", name=re.compile("^name"))).to_contain_text("Theirs")
    assert restaurants.lookup("osteria")["fields"]["name"]["value"] == "Theirs"
    dialog.get_by_role("button", name="Save these").click()
    expect(page.locator(".toast")).to_contain_text("Saved osteria")
    fields = restaurants.lookup("osteria")["fields"]
    assert {name: field["value"] for name, field in fields.items()} == {"name": "Mine", "phone": "2"}
    # Once it is saved, the next edit goes on from there.
    pane.get_by_label("name", exact=True).fill("Mine again")
    pane.get_by_role("button", name="Save").click()
    expect(pane.get_by_role("button", name="Save")).to_have_attribute("title", "Nothing changed.")
    assert restaurants.lookup("osteria")["fields"]["name"]["value"] == "Mine again"


def test_what_is_typed_during_a_save_is_kept_as_the_next_edit(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria", "seats": 1}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant", record="osteria"))
    pane = page.get_by_role("complementary")
    name, seats, phone = (pane.get_by_label(field, exact=True) for field in ("name", "seats", "phone"))
    held = []
    page.route("**/records/modify", lambda route: held.append(route), times=1)
    name.fill("Sent")
    seats.fill("2")
    with page.expect_request("**/records/modify"):
        page.keyboard.press("Control+s")
    # One field goes on, one comes, and one goes back to what it was.
    name.fill("Sent, and more")
    phone.fill("5")
    seats.fill("1")
    phone.focus()
    held[0].continue_()
    expect(page.locator(".toast")).to_contain_text("Saved osteria")
    assert {field: value["value"] for field, value in restaurants.lookup("osteria")["fields"].items()} == {"name": "Sent", "seats": "2"}
    expect(pane.get_by_text("3 fields changed")).to_be_visible()
    expect(phone).to_be_focused()
    page.keyboard.type("6")
    expect(name).to_have_value("Sent, and more")
    # They outlast a reload as any edit, and are saved on top of the first save.
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(phone).to_have_value("56")
    pane.get_by_role("button", name="Save").click()
    expect(pane.get_by_role("button", name="Save")).to_have_attribute("title", "Nothing changed.")
    assert {field: value["value"] for field, value in restaurants.lookup("osteria")["fields"].items()} == {"name": "Sent, and more", "seats": "1", "phone": "56"}


def test_what_is_typed_while_a_record_is_made_is_kept_as_its_next_edit(restaurants, open_page):
    page = open_page(restaurants.address("records", type="Restaurant", new="1"))
    pane = page.get_by_role("complementary")
    held = []
    page.route("**/records/modify", lambda route: held.append(route), times=1)
    pane.get_by_label("recordName").fill("osteria")
    pane.get_by_label("name", exact=True).fill("Sent")
    with page.expect_request("**/records/modify"):
        page.keyboard.press("Control+s")
    pane.get_by_label("phone", exact=True).fill("5")
    held[0].continue_()
    expect(page.locator(".toast").first).to_contain_text("Made osteria")
    expect(pane.get_by_role("heading", name="osteria")).to_be_visible()
    expect(pane.get_by_label("phone", exact=True)).to_have_value("5")
    pane.get_by_role("button", name="Save").click()
    expect(pane.get_by_role("button", name="Save")).to_have_attribute("title", "Nothing changed.")
    assert {field: value["value"] for field, value in restaurants.lookup("osteria")["fields"].items()} == {"name": "Sent", "phone": "5"}


def test_a_save_whose_answer_was_lost_is_done_once(restaurants, open_page):
    page = open_page(restaurants.address("records", type="Restaurant", new="1"))
    pane = page.get_by_role("complementary")
    pane.get_by_label("name", exact=True).fill("Osteria")
    keys = []

    def lose(route):
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) == 1:
            route.fetch()
            route.abort()
        else:
            route.continue_()

    page.route("**/records/modify", lose)
    pane.get_by_role("button", name="Save").click()
    alert = pane.get_by_role("alert")
    expect(alert).to_contain_text("NO_ANSWER")
    expect(pane.get_by_label("name", exact=True)).to_have_value("Osteria")
    alert.get_by_role("button", name="Retry").click()
    expect(page.locator(".toast")).to_contain_text("Made")
    assert len(restaurants.data("records/query", {"query": {"recordType": "Restaurant"}})["records"]) == 1
    page.locator("header").get_by_role("button", name="New Record").click()
    pane.get_by_label("name", exact=True).fill("Osteria")
    pane.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name=re.compile("Osteria"))).to_have_count(2)
    assert keys[0] == keys[1] != keys[2]


def test_only_rows_that_can_be_seen_are_drawn(restaurants, open_page):
    for start in range(0, 1200, 200):
        operations = [{"operationType": "create", "record": {"recordType": "Restaurant", "recordName": f"r-{number:04}", "fields": {"seats": {"value": number}}}}
                      for number in range(start, start + 200)]
        restaurants.data("records/modify", {"operations": operations})
    page = open_page(restaurants.address("records", type="Restaurant", sort="seats", cols="seats"))
    table = page.get_by_role("table", name="Records")
    region = page.get_by_role("region", name="Records")
    expect(table.get_by_role("link", name="r-0000")).to_be_visible()
    drawn = 0
    for total in range(100, 1201, 100):
        expect(page.locator(".table-foot")).to_contain_text(f"{total:,} records shown")
        region.evaluate("(element) => element.scrollTo(0, element.scrollHeight)")
        drawn = max(drawn, table.locator("tbody:not(.filler) tr").count())
    expect(page.locator(".table-foot")).to_contain_text("1,200 records shown, these are all")
    region.evaluate("(element) => element.scrollTo(0, element.scrollHeight)")
    last = table.get_by_role("link", name="r-1199")
    expect(last).to_be_visible()
    expect(table).to_have_attribute("aria-rowcount", "1201")
    expect(table.get_by_role("row", name=re.compile("r-1199"))).to_have_attribute("aria-rowindex", "1201")
    assert drawn <= 200
    # By keyboard, too: from the last to the first, and on.
    last.focus()
    page.keyboard.press("Home")
    expect(table.get_by_role("link", name="r-0000")).to_be_focused()
    page.keyboard.press("End")
    expect(last).to_be_focused()
    page.keyboard.press("PageUp")
    expect(table.get_by_role("link", name="r-1189")).to_be_focused()
    # Every row stands where its place in the whole table is.
    height = table.locator("tbody:not(.filler) tr").first.evaluate("(row) => row.getBoundingClientRect().height")
    region.evaluate("(element, top) => element.scrollTo(0, top)", 600 * height)
    expect(table.get_by_role("link", name="r-0605")).to_be_in_viewport()


def test_a_long_list_stays_bounded_in_the_page_however_far_it_is_scrolled(restaurants, open_page):
    total = 30_000
    who = {"timestamp": 1_700_000_000_000, "userRecordName": "_a", "deviceID": "1"}
    records = [{"recordName": f"r-{number:05}", "recordType": "Restaurant", "fields": {"seats": {"value": str(number), "type": "INT64"}}, "recordChangeTag": "1.1", "created": who, "modified": who, "deleted": False}
               for number in range(total)]
    page = open_page(restaurants.address("zones"))
    page.route("**/records/query", lambda route: route.fulfill(json={"records": records}))
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Records").click()
    expect(page.get_by_text("30,000 records shown, these are all")).to_be_visible()
    region = page.get_by_role("region", name="Records")
    # Rows that are added, and those that are there, at each of fifty places down to the end.
    counts = region.evaluate("""async (region) => {
        const body = region.querySelector("tbody:not(.filler)");
        const counts = [];
        let added = 0;
        new MutationObserver((list) => (added += list.reduce((sum, each) => sum + each.addedNodes.length, 0))).observe(body, {childList: true});
        const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        for (let place = 1; place <= 50; place += 1) {
            added = 0;
            region.scrollTo(0, (region.scrollHeight * place) / 50);
            await frame();
            counts.push([body.children.length, added]);
        }
        return counts;
    }""")
    assert max(there for there, _ in counts) <= 200 and max(added for _, added in counts) <= 200, counts
    expect(page.get_by_role("link", name="r-29999")).to_be_in_viewport()


def pick(page, *names):
    page.get_by_role("button", name="More", exact=True).click()
    for name in names:
        page.get_by_role("menuitem", name=name).click()


def test_all_matches_of_a_filter_are_counted_and_deleted(restaurants, open_page):
    operations = [{"operationType": "create", "record": {"recordType": "Restaurant", "recordName": f"r-{number}", "fields": {"seats": {"value": number % 2}}}} for number in range(250)]
    for start in (0, 200):
        restaurants.data("records/modify", {"operations": operations[start:start + 200]})
    page = open_page(restaurants.address("records", type="Restaurant", f=json.dumps([["seats", "EQUALS", "1"]])))
    expect(page.get_by_role("link", name="r-1", exact=True)).to_be_visible()
    pick(page, "Count all matches")
    expect(page.locator(".toast")).to_contain_text("125 records match")
    pick(page, "Delete all matches…")
    dialog = page.get_by_role("alertdialog", name="Delete 125 Restaurant records?")
    expect(dialog).to_contain_text("1 filter")
    dialog.get_by_role("button", name="Delete them all").click()
    expect(page.locator(".toast").last).to_contain_text("Deleted 125 records")
    expect(page.get_by_text("No record matches")).to_be_visible()
    # Every node remembers them for a day.
    page.get_by_role("link", name="Jobs").click()
    jobs = page.get_by_role("table", name="Jobs")
    expect(jobs.get_by_role("row")).to_have_count(4)
    expect(jobs.get_by_role("row").nth(1)).to_contain_text("Delete")
    expect(jobs.get_by_role("row").nth(1)).to_contain_text("125")
    jobs.get_by_role("row").nth(1).get_by_role("button", name="Forget").click()
    expect(jobs.get_by_role("row")).to_have_count(3)
    page.go_back()
    left, marker = 0, None
    while True:
        answer = restaurants.data("records/query", {"query": {"recordType": "Restaurant"}, "resultsLimit": 200, **({"continuationMarker": marker} if marker else {})})
        left, marker = left + len(answer["records"]), answer.get("continuationMarker")
        if not marker:
            break
    assert left == 125


def test_a_question_is_gone_once_its_place_is_left(restaurants, open_page):
    restaurants.server.call("POST", "/admin/1/schema/deploy", container=restaurants.name)
    for environment in ("development", "production"):
        record = {"recordType": "Restaurant", "recordName": f"in-{environment}", "fields": {}}
        restaurants.data("records/modify", {"operations": [{"operationType": "create", "record": record}]}, environment)
    page = open_page(restaurants.address("records", "production", type="Restaurant"))
    expect(page.get_by_role("link", name="in-production")).to_be_visible()
    page.get_by_role("group", name="Environment").get_by_role("button", name="Development").click()
    expect(page.get_by_role("link", name="in-development")).to_be_visible()
    pick(page, "Delete all matches…")
    dialog = page.get_by_role("alertdialog")
    # Nothing is to be typed here, and production’s records are not what was asked about.
    expect(dialog).to_contain_text("Delete 1 Restaurant record?")
    page.go_back()
    expect(page.get_by_role("link", name="in-production")).to_be_visible()
    expect(dialog).to_have_count(0)
    # Nobody is left without a focus, and the question can be asked again, with its guard.
    expect(page.get_by_role("heading", name="Records", level=1)).to_be_focused()
    pick(page, "Delete all matches…")
    expect(dialog.get_by_role("button", name="Delete them all")).to_have_attribute("title", f"Type {restaurants.name} first.")
    page.go_forward()
    expect(page.get_by_role("link", name="in-development")).to_be_visible()
    expect(dialog).to_have_count(0)
    # What changes nothing of what is asked about leaves a question open.
    page.get_by_role("link", name="in-development").click()
    page.get_by_role("button", name="More on this record").click()
    page.get_by_role("menuitem", name="Delete…").click()
    page.evaluate("history.replaceState(null, '', location.href + '&sort=name'); dispatchEvent(new PopStateEvent('popstate'))")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="in-development")).to_have_count(0)
    found = restaurants.data("records/query", {"query": {"recordType": "Restaurant"}}, "production")["records"]
    assert [record["recordName"] for record in found] == ["in-production"]


CSV = """recordName,name,seats,opened,location,tags,near
osteria,"Osteria ""del Ponte"", Venice",12,2020-02-29T12:30:15.125Z,"45.4,12.3","[""wine"",""late""]",elsewhere
bistro,'=Bistro,twelve,,,,
,Nameless,9007199254740993,,,a;b,
cafe,Café,1,yesterday,,,
villa,Villa,,,"{""latitude"":45.5,""longitude"":12.25,""altitude"":3.5,""timestamp"":1582979415125}",,"{""recordName"":""osteria"",""action"":""DELETE_SELF""}"
park,Park,,,"{""latitude"":45.5",,"{""action"":""DELETE_SELF""}"
"""


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_file_is_imported_after_a_dry_run_and_exported_equal(restaurants, open_page, tmp_path, form):
    restaurants.save("Restaurant", {"name": "Old"}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant"))
    expect(page.get_by_role("link", name="osteria")).to_be_visible()
    pick(page, "Import a file…")
    dialog = page.get_by_role("dialog", name="Import Restaurant")
    dialog.get_by_label("File of records").set_input_files({"name": "places.csv", "mimeType": "text/csv", "buffer": CSV.encode()})
    dry = dialog.get_by_role("region", name="Dry run")
    expect(dry).to_contain_text("2 new")
    expect(dry).to_contain_text("1 there already")
    faults = dry.get_by_role("table", name="What is left out")
    expect(faults.get_by_role("row", name=re.compile("^3 "))).to_contain_text("twelve")
    expect(faults.get_by_role("row", name=re.compile("^5 "))).to_contain_text("yesterday")
    expect(faults.get_by_role("row", name=re.compile("^7 "))).to_contain_text("is not a JSON object")
    assert restaurants.lookup("osteria")["fields"]["name"]["value"] == "Old"
    dialog.get_by_role("button", name="Import 3 records").click()
    expect(dialog).to_contain_text("3 of 3 saved")
    dialog.get_by_role("button", name="Close").last.click()
    fields = restaurants.lookup("osteria")["fields"]
    assert fields["name"]["value"] == 'Osteria "del Ponte", Venice' and fields["opened"]["value"] == "1582979415125"
    assert fields["location"]["value"] == {"latitude": 45.4, "longitude": 12.3} and fields["tags"]["value"] == ["wine", "late"]
    assert fields["near"]["value"] == {"recordName": "elsewhere", "action": "NONE"}
    fields = restaurants.lookup("villa")["fields"]
    assert fields["location"]["value"] == {"latitude": 45.5, "longitude": 12.25, "altitude": 3.5, "timestamp": 1582979415125}
    assert fields["near"]["value"] == {"recordName": "osteria", "action": "DELETE_SELF"}
    expect(page.get_by_role("row", name=re.compile("Nameless"))).to_contain_text("9007199254740993")
    # What is exported can be imported again, and changes nothing.
    page.get_by_role("button", name="More", exact=True).click()
    with page.expect_download() as coming:
        page.get_by_role("menuitem", name=f"Export as {form.upper()}").click()
    copy = tmp_path / f"copy.{form}"
    coming.value.save_as(copy)
    before = [restaurants.lookup(name)["fields"] for name in ("osteria", "villa")]
    if form == "json":
        records = json.loads(copy.read_text())
        next(record for record in records if record["recordName"] == "villa")["parent"] = {"recordName": "osteria"}
        copy.write_text(json.dumps(records))
    pick(page, "Import a file…")
    dialog.get_by_label("File of records").set_input_files(copy)
    expect(dry).to_contain_text("3 there already")
    dialog.get_by_role("button", name="Import 3 records").click()
    expect(dialog).to_contain_text("3 of 3 saved")
    assert [restaurants.lookup(name)["fields"] for name in ("osteria", "villa")] == before
    if form == "json":
        assert restaurants.lookup("villa")["parent"] == {"recordName": "osteria"}


def test_a_query_is_kept_under_a_name(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria", "seats": 3}, "osteria")
    restaurants.save("Restaurant", {"name": "Bistro", "seats": 30}, "bistro")
    page = open_page(restaurants.address("records", type="Restaurant", f=json.dumps([["seats", "GREATER_THAN", "9"]])))
    expect(page.get_by_role("link", name="bistro")).to_be_visible()
    page.get_by_role("button", name="Saved").click()
    page.get_by_role("button", name="Save this query…").click()
    page.get_by_role("dialog").get_by_label("Name").fill("Large ones")
    page.get_by_role("button", name="Save query").click()
    page.goto(restaurants.address("records", type="Restaurant"))
    expect(page.get_by_role("link", name="osteria")).to_be_visible()
    page.get_by_role("button", name="Saved").click()
    page.get_by_role("link", name="Large ones").click()
    expect(page.get_by_role("link", name="osteria")).to_have_count(0)
    expect(page.get_by_role("link", name="bistro")).to_be_visible()
    page.get_by_role("button", name="Saved").click()
    page.get_by_role("button", name="Forget Large ones").click()
    expect(page.get_by_role("link", name="Large ones")).to_have_count(0)


def test_edits_are_kept_where_another_record_is_opened_and_the_row_says_so(restaurants, open_page):
    for name in ("one", "two"):
        restaurants.save("Restaurant", {"name": name}, name)
    page = open_page(restaurants.address("records", type="Restaurant", record="one"))
    pane = page.get_by_role("complementary")
    pane.get_by_label("name", exact=True).fill("Changed")
    page.get_by_role("link", name="two").click()
    expect(page.locator(".toast")).to_contain_text("Kept, not saved: 1 field of one")
    page.get_by_role("link", name=re.compile("one.*not saved")).click()
    expect(pane.get_by_label("name", exact=True)).to_have_value("Changed")
    pane.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("link", name="not saved")).to_have_count(0)


def test_a_record_that_is_not_there_and_a_database_that_is_not_built_are_told(restaurants, open_page):
    page = open_page(restaurants.address("records", type="Restaurant", record="nothing", db="shared"))
    pane = page.get_by_role("complementary")
    expect(pane.get_by_text("There is no such record")).to_be_visible()
    expect(pane.get_by_role("button", name="Save")).to_have_count(0)
    pane.get_by_role("button", name="Earlier versions…").click()
    dialog = page.get_by_role("dialog", name="Versions of nothing")
    expect(dialog.get_by_text("This container keeps none")).to_be_visible()
    page.keyboard.press("Escape")
    # What is shown is public, and called so.
    expect(page.get_by_label("Database")).to_have_value("public")
    restaurants.server.call("PATCH", "/admin/1/limits", {"recordVersionDays": 30}, container=restaurants.name)
    pane.get_by_role("button", name="Earlier versions…").click()
    expect(dialog.get_by_text("Versions are kept for 30 days here")).to_be_visible()
