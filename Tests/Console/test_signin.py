"""Signing in and out, and a session that ends while somebody works."""

import subprocess

from playwright.sync_api import expect

from conftest import PASSWORD


def test_a_link_signs_in_once(server, open_page):
    opened = subprocess.run([server.program, "console", "open", "--url", server.url, "--ca", server.folder / "data/certs/client-ca.pem", "--admin-token-file", server.folder / "data/admin.token"],
                            capture_output=True, check=True, text=True)
    [link] = [word for word in opened.stdout.split() if word.startswith("https:")]
    page = open_page(link, state=None)
    expect(page.get_by_role("heading", name="Choose your password").or_(page.get_by_role("heading", name="Containers"))).to_be_visible()
    assert "link=" not in page.url
    again = open_page(link, state=None)
    expect(again.get_by_role("alert")).to_contain_text("You are not signed in")


def test_a_wrong_password_is_told_and_the_right_one_lets_in(open_page):
    page = open_page(state=None)
    page.get_by_label("Name").fill("maria")
    page.get_by_label("Password").fill("not this one at all")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("You are not signed in")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Containers")).to_be_visible()
    page.get_by_title("Account").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to Zonekeeper")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Sign in to Zonekeeper")).to_be_visible()


def test_an_ended_session_keeps_what_was_entered(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant", record="osteria"))
    pane = page.get_by_role("complementary")
    pane.get_by_label("name", exact=True).fill("Changed")
    page.context.clear_cookies()
    pane.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="Your session ended")
    dialog.get_by_label("Name").fill("maria")
    dialog.get_by_label("Password").fill(PASSWORD)
    dialog.get_by_role("button", name="Sign in").click()
    expect(page.locator(".toast")).to_contain_text("Saved osteria")
    assert restaurants.lookup("osteria")["fields"]["name"]["value"] == "Changed"


def test_nothing_that_was_edited_stays_after_signing_out(restaurants, open_page):
    restaurants.save("Restaurant", {"name": "Osteria"}, "osteria")
    page = open_page(restaurants.address("records", type="Restaurant", record="osteria"), state=None)

    def sign_in():
        page.get_by_label("Name").fill("maria")
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")

    sign_in()
    name = page.get_by_role("complementary").get_by_label("name", exact=True)
    name.fill("only typed")
    for answer in ("Cancel", "Discard changes"):
        expect(name).to_have_value("only typed")
        page.get_by_title("Account").click()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("alertdialog", name="Sign out without saving?").get_by_role("button", name=answer).click()
    expect(page.get_by_role("heading", name="Sign in to Zonekeeper")).to_be_visible()
    assert "only typed" not in page.evaluate("JSON.stringify(sessionStorage) + JSON.stringify(localStorage)")
    page.goto(restaurants.address("records", type="Restaurant", record="osteria"))
    sign_in()
    expect(name).to_have_value("Osteria")


def test_a_link_that_is_opened_where_the_console_is_open_signs_in(server, open_page):
    page = open_page(state=None)
    expect(page.get_by_role("heading", name="Sign in to Zonekeeper")).to_be_visible()
    page.goto(server.link())
    expect(page.get_by_role("heading", name="Containers").or_(page.get_by_role("heading", name="Choose your password"))).to_be_visible()
    assert "link=" not in page.url
