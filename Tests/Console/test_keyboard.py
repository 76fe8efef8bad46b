"""A whole scenario without a mouse: from the sign-in to a record that is made, changed and deleted."""

import re

from playwright.sync_api import expect

from conftest import PASSWORD


def tab_to(page, target, key="Tab"):
    """Goes on until the target has the focus."""
    expect(target).to_be_visible()
    for _ in range(80):
        if target.evaluate("(element) => element === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{target} is not reached by {key}")


def test_a_type_and_a_record_are_made_changed_and_deleted_by_keyboard(container, open_page):
    page = open_page(container.address("types"), state=None)
    keys = page.keyboard
    tab_to(page, page.get_by_label("Name"))
    keys.type("maria")
    keys.press("Tab")
    keys.type(PASSWORD)
    keys.press("Enter")
    # The head is there before the schema, and nothing is added to a schema that is not loaded.
    expect(page.get_by_role("heading", name="Users")).to_be_visible()

    keys.press("n")
    expect(page.get_by_role("dialog").get_by_label("Name", exact=True)).to_be_focused()
    keys.type("Dish")
    keys.press("Enter")
    for name in ("name", "price"):
        tab_to(page, page.get_by_role("button", name="Add Field"))
        keys.press("Enter")
        expect(page.get_by_role("dialog").get_by_label("Field Name")).to_be_focused()
        keys.type(name)
        keys.press("Enter")
        expect(page.get_by_role("table", name="Fields of Dish")).to_contain_text(name)
    keys.press("Control+s")
    expect(page.get_by_role("dialog", name="Review changes")).to_be_visible()
    keys.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("The schema was saved")
    assert re.search(r"price +STRING", container.exported())

    keys.press("Control+k")
    keys.type("Records")
    keys.press("Enter")
    expect(page.get_by_text("No Dish yet")).to_be_visible()
    keys.press("n")
    pane = page.get_by_role("complementary")
    expect(pane.get_by_label("Name", exact=True)).to_be_focused()
    keys.type("soup")
    tab_to(page, pane.get_by_label("name", exact=True))
    keys.type("Minestrone")
    keys.press("Control+s")
    expect(page.locator(".toast", has_text="Made soup")).to_be_visible()
    keys.press("Escape")
    expect(pane).to_have_count(0)

    row = page.get_by_role("link", name="soup", exact=True)
    tab_to(page, row)
    keys.press("Enter")
    expect(pane.get_by_role("heading", name="Metadata")).to_be_visible()
    keys.press("e")
    expect(pane.get_by_label("name", exact=True)).to_be_focused()
    keys.press("End")
    keys.type(" freddo")
    keys.press("Control+s")
    expect(page.locator(".toast", has_text="Saved soup")).to_be_visible()
    assert container.lookup("soup")["fields"]["name"]["value"] == "Minestrone freddo"
    keys.press("Escape")
    expect(pane).to_have_count(0)

    tab_to(page, row)
    keys.press("Space")
    tab_to(page, page.get_by_role("button", name="Delete 1 record"), "Shift+Tab")
    keys.press("Enter")
    dialog = page.get_by_role("alertdialog", name="Delete 1 record?")
    tab_to(page, dialog.get_by_role("button", name="Delete", exact=True))
    keys.press("Enter")
    expect(page.get_by_text("No Dish yet")).to_be_visible()
    assert container.lookup("soup")["serverErrorCode"] == "NOT_FOUND"
