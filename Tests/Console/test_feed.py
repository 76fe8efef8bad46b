"""What became of a user's zones and records since a token, as an admin who acts as them."""

import pytest
from playwright.sync_api import expect

from keys import tab_to
from test_acting import Ada, act_as, ada  # noqa: F401
from test_pages import axe


def zone(ada, operation, name="trip"):
    answer = ada.send("zones/modify", {"operations": [{"operationType": operation, "zone": {"zoneID": {"zoneName": name}}}]}, "private")
    assert "serverErrorCode" not in answer["zones"][0], answer


def save(ada, names):
    operations = [{"operationType": "create", "record": {"recordType": "Note", "recordName": name, "fields": {"text": {"value": f"about {name}"}}}} for name in names]
    answer = ada.send("records/modify", {"zoneID": {"zoneName": "trip"}, "operations": operations}, "private")
    assert len(answer["records"]) == len(names) and not any("serverErrorCode" in each for each in answer["records"]), answer


def delete(ada, name):
    operation = {"operationType": "forceDelete", "record": {"recordType": "Note", "recordName": name}}
    [answer] = ada.send("records/modify", {"zoneID": {"zoneName": "trip"}, "operations": [operation]}, "private")["records"]
    assert answer.get("deleted"), answer


def rows(page, caption="Changes of trip"):
    return page.get_by_role("table", name=caption).locator("tbody tr:not([aria-hidden])")


def test_a_zone_s_feed_page_by_page_and_live(ada, open_page):  # noqa: F811
    zone(ada, "create")
    save(ada, [f"n{number:03}" for number in range(120)])
    page = open_page(ada.container.address("feed", zone="trip"))
    expect(page.get_by_text("Change feeds are their user’s alone")).to_be_visible()
    act_as(page, ada.name)
    expect(rows(page)).to_have_count(100)
    expect(rows(page).first).to_contain_text("about n000")
    page.get_by_role("button", name="Load more").click()
    expect(page.get_by_text("120 changes shown, these are all up to now")).to_be_visible()

    page.get_by_role("button", name="Follow").click()
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    save(ada, ["fresh"])
    expect(rows(page).first).to_contain_text("fresh")
    delete(ada, "n007")
    expect(rows(page).first).to_contain_text("deleted")
    expect(rows(page).first).to_contain_text("n007")
    # The address says that it is followed, and from where.
    page.reload()
    expect(rows(page).first).to_contain_text("n007")
    page.goto(ada.container.address("zones", db="private"))
    page.get_by_role("link", name="Changes", exact=True).click()
    expect(rows(page).first).to_contain_text("about n000")
    page.get_by_role("link", name="n000").click()
    expect(page.get_by_role("complementary").get_by_role("heading", name="n000")).to_be_visible()


def test_a_database_s_feed_and_why_a_token_expired_by_keyboard(ada, open_page):  # noqa: F811
    zone(ada, "create")
    save(ada, ["one"])
    page = open_page(ada.container.address("feed"))
    act_as(page, ada.name)
    expect(rows(page, "Changes of zones")).to_have_count(1)
    keys = page.keyboard
    tab_to(page, page.get_by_role("table").get_by_role("link", name="trip"))
    keys.press("Enter")
    expect(rows(page)).to_have_count(1)
    tab_to(page, page.get_by_role("button", name="Start here"))
    keys.press("Enter")
    expect(page.get_by_text("Nothing changed since this token")).to_be_visible()

    # What a device would be told that comes back after this.
    zone(ada, "delete")
    zone(ada, "create")
    page.locator("main h1").focus()
    keys.press("r")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("the zone was deleted and made anew")
    expect(alert).to_contain_text("changeTokenExpired")
    tab_to(page, alert.get_by_role("button", name="From the beginning"))
    keys.press("Enter")
    expect(alert).to_have_count(0)
    expect(page.get_by_text("Nothing happened here yet")).to_be_visible()
    keys.press("f")
    save(ada, ["two"])
    expect(rows(page)).to_contain_text("about two")


def test_what_was_read_is_of_its_own_feed_until_the_next_one_has_come(ada, open_page):  # noqa: F811
    zone(ada, "create")
    save(ada, ["one"])
    page = open_page(ada.container.address("feed"))
    act_as(page, ada.name)
    page.route("**/records/changes", lambda _: None)  # Never answered.
    with page.expect_request("**/records/changes"):
        rows(page, "Changes of zones").get_by_role("link", name="trip").click()
    expect(page.get_by_label("Feed of")).to_have_value("trip")
    expect(rows(page, "Changes of zones")).to_have_count(1)
    expect(page.get_by_role("table", name="Changes of trip")).to_have_count(0)
    # The token is that of what is shown, and leads back to its feed.
    page.get_by_role("button", name="Start here").click()
    expect(page.get_by_label("Feed of")).to_have_value("")
    expect(page.get_by_text("Nothing changed since this token")).to_be_visible()

    # A feed that cannot be read is not followed either, nor is the one before in its place.
    page.unroute("**/records/changes")
    page.route("**/records/changes", lambda route: route.abort())
    page.get_by_label("Feed of").select_option("trip")
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_role("button", name="Follow").click()
    expect(page.get_by_role("status").filter(has_text="Stopped")).to_be_visible()


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 360)])
def test_axe_finds_nothing_in_a_feed(ada, browser, signed_in, scheme, width):  # noqa: F811
    zone(ada, "create")
    save(ada, ["one", "two"])
    delete(ada, "two")
    context = browser.new_context(ignore_https_errors=True, storage_state=signed_in, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce", viewport={"width": width, "height": 720})
    page = context.new_page()
    page.goto(ada.container.address("feed", zone="trip", view="live"))
    act_as(page, ada.name)
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    expect(rows(page)).to_have_count(2)
    assert axe(page) == []
    assert page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")
    context.close()
