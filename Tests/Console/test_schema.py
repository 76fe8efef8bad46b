"""Record types, indexes, roles, deployment."""

import re

from playwright.sync_api import expect


def test_a_type_is_made_field_by_field_and_saved_as_one(container, open_page):
    page = open_page(container.address("types"))
    page.get_by_role("button", name="New Record Type").click()
    page.get_by_role("dialog").get_by_label("Name", exact=True).fill("Restaurant")
    page.get_by_role("button", name="Add type").click()
    fields = page.get_by_role("table", name="Fields of Restaurant")
    expect(fields.get_by_text("system", exact=True)).to_have_count(6)
    kinds = [("name", "STRING", []), ("seats", "INT64", []), ("rating", "DOUBLE", []), ("opened", "TIMESTAMP", []), ("place", "LOCATION", []),
             ("near", "REFERENCE", []), ("image", "ASSET", []), ("hash", "BYTES", []), ("tags", "STRING", ["List"]), ("secret", "STRING", ["Encrypted"]), ("secrets", "INT64", ["List", "Encrypted"])]
    for name, kind, ticks in kinds:
        page.get_by_role("button", name="Add Field").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Field Name").fill(name)
        dialog.get_by_label("Field Type").select_option(kind)
        for tick in ticks:
            dialog.get_by_label(tick, exact=True).check()
        dialog.get_by_role("button", name="Add field").click()
        expect(fields.get_by_text(name, exact=True)).to_be_visible()
    assert "Restaurant" not in container.exported()
    page.get_by_role("button", name="Save Changes").click()
    dialog = page.get_by_role("dialog", name="Review changes")
    expect(dialog).to_contain_text("Add record type Restaurant")
    dialog.get_by_role("button", name="Save Changes").click()
    expect(page.locator(".toast")).to_contain_text("The schema was saved")
    expect(page.get_by_role("region", name="Unsaved changes")).to_have_count(0)
    text = re.sub(" +", " ", container.exported())
    for line in ("name STRING,", "seats INT64,", "place LOCATION,", "image ASSET,", "tags LIST<STRING>,", "secret ENCRYPTED STRING,", "secrets LIST<ENCRYPTED INT64>,",
                 '"___recordID" REFERENCE QUERYABLE,', 'GRANT READ TO "_world"'):
        assert line in text, line
    page.reload()
    expect(fields.get_by_text("secrets", exact=True)).to_be_visible()
    expect(fields).to_contain_text("Encrypted Int(64) (List)")


def test_a_field_may_be_named_like_a_word_of_the_schema_language(restaurants, open_page):
    restaurants.save("Restaurant", {"grant": "x"}, "osteria")
    page = open_page(restaurants.address("types", type="Restaurant"))
    page.get_by_role("button", name="Add Field").click()
    page.get_by_role("dialog").get_by_label("Field Name").fill("extra")
    page.get_by_role("dialog").get_by_role("button", name="Add field").click()
    page.get_by_role("button", name="Save Changes").click()
    page.get_by_role("dialog", name="Review changes").get_by_role("button", name="Save Changes").click()
    expect(page.locator(".toast")).to_contain_text("The schema was saved")
    text = re.sub(" +", " ", restaurants.exported())
    assert '"grant" STRING QUERYABLE SORTABLE,' in text and "extra STRING" in text


def test_deleting_a_field_says_what_is_lost(restaurants, open_page):
    restaurants.save("Restaurant", {"phone": "1", "name": "x"}, "osteria")
    restaurants.save("Restaurant", {"name": "y"}, "trattoria")
    page = open_page(restaurants.address("types", type="Restaurant"))
    page.get_by_role("button", name="More on phone").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Save Changes").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("phone")
    expect(dialog).to_contain_text("deletes data for good")
    # Only one of the two has the field.
    expect(dialog).to_contain_text("Remove field Restaurant.phone and its value in every record: 1 record")
    dialog.get_by_role("button", name="Save, and lose this data").click()
    expect(page.locator(".toast")).to_contain_text("The schema was saved")
    assert "phone" not in restaurants.exported()


def test_edits_can_be_discarded(restaurants, open_page):
    before = restaurants.exported()
    page = open_page(restaurants.address("types", type="Restaurant"))
    page.get_by_role("button", name="More on Restaurant").click()
    page.get_by_role("menuitem", name="Delete Record Type…").click()
    expect(page.get_by_role("region", name="Unsaved changes")).to_contain_text("delete record type Restaurant")
    page.get_by_role("button", name="Discard").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Discard").click()
    expect(page.get_by_role("navigation", name="Record types")).to_contain_text("Restaurant")
    assert restaurants.exported() == before


def test_an_index_is_added_and_removed(restaurants, open_page):
    page = open_page(restaurants.address("indexes", type="Restaurant"))
    page.get_by_role("button", name="Add Basic Index").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Field").select_option("phone")
    dialog.get_by_label("Index Type").select_option("SORTABLE")
    dialog.get_by_role("button", name="Add index").click()
    expect(page.get_by_role("row", name=re.compile("phone"))).to_contain_text("not saved")
    page.get_by_role("button", name="Remove seats Sortable").click()
    page.get_by_role("button", name="Save Changes").click()
    page.get_by_role("dialog", name="Review changes").get_by_role("button", name="Save Changes").click()
    expect(page.get_by_role("row", name=re.compile("phone"))).to_contain_text("ready")
    text = re.sub(" +", " ", restaurants.exported())
    assert "phone STRING SORTABLE," in text and "seats INT64 QUERYABLE," in text


def test_a_role_may_read_and_write_at_once(restaurants, open_page):
    page = open_page(restaurants.address("roles"))
    page.get_by_label("_icloud: Write Restaurant").check()
    expect(page.get_by_label("_icloud: Write Restaurant")).to_be_focused()
    page.get_by_role("button", name="Save Changes").click()
    page.get_by_role("dialog", name="Review changes").get_by_role("button", name="Save Changes").click()
    expect(page.locator(".toast")).to_contain_text("The schema was saved")
    assert 'GRANT CREATE, WRITE TO "_icloud"' in restaurants.exported()


def test_what_a_user_may_do_is_told_with_the_roles_by_which(restaurants, open_page):
    restaurants.server.call("POST", "/admin/1/users", {"name": "may-ada"})
    page = open_page(restaurants.address("roles"))
    row = page.get_by_role("table", name="What the user may do").get_by_role("row", name=re.compile("^Restaurant"))
    expect(row.get_by_role("cell").nth(1)).to_have_text("no")
    expect(row.get_by_role("cell").nth(2)).to_have_text("by _world")
    page.get_by_label("User", exact=True).fill("may-ada")
    page.keyboard.press("Enter")
    expect(row.get_by_role("cell").nth(1)).to_have_text("by _icloud")
    expect(row.get_by_role("cell").nth(3)).to_have_text("own records, by _creator")
    # It is in the address, and follows what is saved.
    page.get_by_label("_icloud: Write Restaurant").check()
    page.get_by_role("button", name="Save Changes").click()
    page.get_by_role("dialog", name="Review changes").get_by_role("button", name="Save Changes").click()
    expect(row.get_by_role("cell").nth(3)).to_have_text("by _creator, _icloud")
    page.reload()
    expect(page.get_by_label("User", exact=True)).to_have_value("may-ada")
    page.get_by_label("User", exact=True).fill("nobody-there")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("NOT_FOUND")


def test_a_text_with_a_mistake_names_its_line(restaurants, open_page):
    page = open_page(restaurants.address("schema"))
    editor = page.get_by_role("textbox", name="Schema")
    expect(editor).to_have_value(re.compile("Restaurant"))
    editor.fill("DEFINE SCHEMA\n    RECORD TYPE Odd ( a STRNG );\n")
    page.get_by_role("button", name="Review and Save").click()
    expect(page.get_by_role("alert")).to_contain_text("line 2")
    expect(page.locator(".line-numbers .bad")).to_have_text("2")


def test_production_gets_the_schema_and_no_records(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("deploy"))
    expect(page.get_by_role("heading", name=re.compile("^Record Types"))).to_be_visible()
    page.get_by_role("button", name="Deploy…").click()
    dialog = page.get_by_role("alertdialog")
    expect(dialog.get_by_role("button", name="Deploy", exact=True)).to_have_attribute("aria-disabled", "true")
    dialog.get_by_role("textbox").fill(restaurants.name)
    dialog.get_by_role("button", name="Deploy", exact=True).click()
    expect(page.get_by_text("Production’s schema is read-only here.", exact=False)).to_be_visible()
    expect(page.get_by_role("button", name="Production")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="Add Field")).to_have_attribute("aria-disabled", "true")
    assert "RECORD TYPE Restaurant" in restaurants.exported("production")
    page.goto(restaurants.address("records", "production", type="Restaurant"))
    expect(page.get_by_text("No Restaurant yet")).to_be_visible()
    page.get_by_role("button", name="Development").click()
    expect(page.get_by_role("link", name="osteria")).to_be_visible()
    page.goto(restaurants.address("deploy"))
    expect(page.get_by_text("Production is up to date")).to_be_visible()


def test_a_deployment_shows_what_a_new_type_brings(restaurants, open_page):
    page = open_page(restaurants.address("deploy"))
    main = page.get_by_role("main")
    for text in ("Add record type Restaurant", "phone String", "Restaurant.name: Queryable, Searchable, Sortable", "Let _world read Restaurant"):
        expect(main).to_contain_text(text)
