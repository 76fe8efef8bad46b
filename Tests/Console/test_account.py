"""Accounts of the team and of users: passwords, sessions, tokens, and what each may look at."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from conftest import PASSWORD
from test_manage import more
from test_pages import SCREENS, go, settle

OTHER = "another horse, as correct"


def sign_in(page, name, password=PASSWORD):
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


@pytest.fixture
def member(server, container):
    """Makes somebody of the team, with a name of the test's own."""
    def make(role, **rights):
        name = f"{role}-{container.name.rsplit('.', 1)[-1]}"
        server.call("POST", "/admin/1/administrators", {"name": name, "role": role, "password": PASSWORD, **rights})
        return name
    return make


def test_a_password_is_changed_by_its_owner_and_set_by_an_admin(server, member, open_page):
    name = member("developer")
    own = open_page(state=None)
    sign_in(own, name)
    own.get_by_role("button", name="Account").click()
    own.get_by_role("button", name="Change password…").click()
    dialog = own.get_by_role("dialog", name="Change your password")
    dialog.get_by_label("New password", exact=True).fill(OTHER)
    dialog.get_by_label("New password, again").fill("something else")
    dialog.get_by_role("button", name="Change password").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The two passwords differ.")
    dialog.get_by_label("New password, again").fill(OTHER)
    dialog.get_by_role("button", name="Change password").click()
    expect(own.locator(".toast")).to_contain_text("Your password was changed")
    # The session goes on, and the old password is none any more.
    go(own, server.url + "/console/~/development/cluster")
    other = open_page(state=None)
    sign_in(other, name)
    expect(other.get_by_role("alert")).to_contain_text("not right")
    sign_in(other, name, OTHER)
    expect(other.get_by_role("heading", name="Containers")).to_be_visible()

    page = open_page("/console/~/development/team")
    more(page, name, "End sessions…")
    page.get_by_role("alertdialog").get_by_role("button", name="End sessions").click()
    expect(page.locator(".toast", has_text=f"{name} is signed out")).to_be_visible()
    other.reload()
    expect(other.get_by_role("heading", name="Sign in to Zonekeeper")).to_be_visible()
    more(page, name, "Set password…")
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_role("button", name="Set password").click()
    expect(page.locator(".toast", has_text=f"The password of {name} was set")).to_be_visible()
    sign_in(other, name)
    expect(other.get_by_role("heading", name="Containers")).to_be_visible()


def test_a_token_for_the_command_line_is_seen_replaced_and_revoked(server, member, open_page):
    name = member("viewer")
    own = open_page(state=None)
    sign_in(own, name)

    def ask():
        own.get_by_role("button", name="Account").click()
        own.get_by_role("button", name="Token for the command line…").click()

    def works(secret):
        return server.call("GET", "/admin/1/console/me", token=secret).get("name") == name

    secrets = []
    for words in ("Make token", "Make another"):
        ask()
        own.get_by_role("button", name=words).click()
        secrets.append(own.get_by_role("dialog", name="Your token").locator("code").inner_text())
        own.get_by_role("button", name="I have kept it").click()
    # The second takes the place of the first.
    assert [works(secret) for secret in secrets] == [False, True]
    page = open_page("/console/~/development/team")
    expect(page.get_by_role("row", name=re.compile(name))).to_contain_text("token, made")
    more(page, name, "Revoke token…")
    page.get_by_role("alertdialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("row", name=re.compile(name))).not_to_contain_text("token, made")
    assert not works(secrets[1])
    ask()
    own.get_by_role("button", name="Make token").click()
    secret = own.get_by_role("dialog", name="Your token").locator("code").inner_text()
    own.get_by_role("button", name="I have kept it").click()
    ask()
    own.get_by_role("button", name="Revoke it").click()
    expect(own.locator(".toast", has_text="Your token was revoked")).to_be_visible()
    assert not works(secret)


def test_a_sign_in_in_another_tab_lets_this_one_go_on_or_says_who_is_signed_in(server, member, open_page):
    name, other = member("admin"), member("developer")
    first = open_page(state=None)
    sign_in(first, name)
    expect(first.get_by_role("heading", name="Containers")).to_be_visible()
    first.goto(server.url + "/console/~/development/users")
    second = first.context.new_page()

    def sign_in_there(name):
        # As the page of the sign-in does; the browser has one cookie for all tabs.
        second.goto(server.url + "/console/files/index.html")
        answer = second.evaluate("""(body) => fetch("/admin/1/console/sign-in", { method: "POST", body: JSON.stringify(body),
            headers: { "Content-Type": "application/json" } }).then((answer) => answer.json())""", {"name": name, "password": PASSWORD})
        assert answer["name"] == name, answer

    def make_user(user):
        first.get_by_role("button", name="New User").first.click()
        dialog = first.get_by_role("dialog")
        dialog.get_by_label("Name", exact=True).fill(user)
        dialog.get_by_role("button", name="Make user").click()

    users = lambda: [user["name"] for user in server.call("GET", "/admin/1/users", after="tab-", limit=10)["users"]]
    sign_in_there(name)
    make_user("tab-ada")
    expect(first.locator(".toast", has_text="Made tab-ada")).to_be_visible()
    assert "tab-ada" in users()
    # Nothing is done in somebody else's name: the page is loaded again, as theirs.
    sign_in_there(other)
    make_user("tab-bob")
    expect(first.get_by_text("This needs the role admin; you are a developer.")).to_be_visible()
    assert "tab-bob" not in users()
    server.call("DELETE", "/admin/1/users", name="tab-ada")


def test_users_are_found_by_the_beginning_of_their_name_and_signed_out(container, open_page):
    apps = {name: container.app(name) for name in ("search-rachel", "search-ralph", "search-sam")}
    page = open_page(container.address("users"))
    page.get_by_label("Search by the beginning of a name").fill("search-ra")
    rows = page.get_by_role("table", name="Users").locator("tbody tr")
    expect(rows).to_have_count(2)
    page.get_by_label("Search by the beginning of a name").fill("search-x")
    expect(page.get_by_text("No user’s name begins with search-x")).to_be_visible()
    page.get_by_label("Search by the beginning of a name").fill("search-rachel")
    more(page, "search-rachel", "Sessions…")
    dialog = page.get_by_role("dialog", name="Sessions of search-rachel")
    expect(dialog.get_by_role("row", name=re.compile(container.name))).to_be_visible()
    dialog.get_by_role("button", name="End all").click()
    expect(dialog.get_by_text("Not signed in")).to_be_visible()
    query = {"query": {"recordType": "Users"}}
    assert "AUTHENTICATION" in apps["search-rachel"]("records/query", query)["serverErrorCode"]
    assert "AUTHENTICATION" not in str(apps["search-ralph"]("records/query", query))


def test_a_late_page_of_users_is_not_added_to_what_was_searched_for_since(container, open_page):
    page = open_page(container.address("cluster"))
    held = []

    def answer(route):
        after = parse_qs(urlsplit(route.request.url).query).get("after", [""])[0]
        pages = {"": (["anna"], "anna"), "bert": (["bob"], None)}
        if after == "anna":
            held.append(route)
            return
        names, following = pages.get(after, (["bert"], "bert"))
        fulfill(route, names, following)

    def fulfill(route, names, following):
        users = [{"name": name, "created": 0} for name in names]
        route.fulfill(json={"users": users, **({"next": following} if following else {})})

    page.route("**/admin/1/users?*", answer)
    page.get_by_role("link", name="Users").click()
    rows = page.get_by_role("table", name="Users").locator("tbody tr")
    expect(rows).to_contain_text(["anna"])
    with page.expect_request("**/admin/1/users?*after=anna*"):
        page.get_by_role("button", name="Load more").click()
    page.get_by_label("Search by the beginning of a name").fill("b")
    expect(rows).to_contain_text(["bert"])
    with page.expect_response("**/admin/1/users?*after=anna*"):
        fulfill(held[0], ["bert", "carl"], "carl")
    page.get_by_role("button", name="Load more").click()
    expect(rows).to_contain_text(["bert", "bob"])


def test_what_stays_of_a_deleted_user_is_said(container, open_page):
    container.app("leaving-lea")
    page = open_page(container.address("users"))
    search = page.get_by_label("Search by the beginning of a name")
    # The list of before has the name as well, and what is found closes a menu that was opened there.
    search.fill("leaving-x")
    expect(page.get_by_text("No user’s name begins with leaving-x")).to_be_visible()
    search.fill("leaving-")
    more(page, "leaving-lea", "Delete…")
    expect(page.get_by_role("alertdialog")).to_contain_text("Its records and preferences stay")


def test_nothing_is_refused_for_looking(server, member, restaurants, open_page):
    for role, rights, locked in (("viewer", {}, 7), ("developer", {}, 4), ("admin", {"containers": [restaurants.name]}, 2)):
        page = open_page(state=None)
        refused = []
        page.on("response", lambda answer: answer.status == 403 and refused.append(answer.url))
        sign_in(page, member(role, **rights))
        expect(page.get_by_role("heading", name="Containers")).to_be_visible()
        found = []
        for screen in SCREENS:
            go(page, restaurants.address(screen))
            if page.get_by_text("Not for your role").count():
                found.append(screen)
        assert (refused, len(found)) == ([], locked), (role, found)
        go(page, restaurants.address("access", tab="providers"))
        if role == "developer":
            expect(page.get_by_text("This needs the role admin; you are a developer.")).to_be_visible()
        assert refused == []


def test_an_address_that_leads_nowhere_says_so_and_leads_on(server, container, open_page):
    page = open_page(container.address("nosuch"))
    expect(page.get_by_role("heading", name="There is no such screen")).to_be_visible()
    page.goto(f"{server.url}/console/iCloud.com.example.gone/development/records")
    expect(page.get_by_text("There is no container iCloud.com.example.gone")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="All containers").click()
    expect(page.get_by_role("heading", name="Containers")).to_be_visible()
    # What is of the whole server has no environment.
    expect(page.get_by_role("group", name="Environment")).to_have_count(0)
    settle(page)
