"""Every page: accessible in light and dark, whole at 360 pixels, nothing forbidden on the way."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

SCREENS = ["records", "zones", "feed", "subscriptions", "preferences", "jobs", "types", "indexes", "roles", "schema", "access", "webhooks", "logs", "telemetry", "usage", "limits", "deploy", "reset", "users", "audit", "cluster", "loads", "team", "containers"]


def go(page, address):
    """To another address of the console, as a link there does it."""
    page.evaluate("""(href) => {
        const link = document.createElement("a");
        link.href = new URL(href).pathname + new URL(href).search;
        document.body.append(link);
        link.click();
        link.remove();
    }""", address)
    expect(page).to_have_url(address)
    settle(page)


def settle(page):
    expect(page.locator("main h1").first).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def axe(page, only=None):
    rules = {"type": "rule", "values": [only]} if only else ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    # A document has it once, and what is right is not told.
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(Axe().axe_script)
    violations = page.evaluate("(options) => axe.run(document, options).then(({violations}) => violations)", {"runOnly": rules, "resultTypes": ["violations"]})
    return [f"{each['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:200]}" for each in violations for node in each["nodes"]]


@pytest.fixture
def filled(restaurants):
    restaurants.save("Restaurant", {"name": "Osteria", "seats": 12, "tags": ["wine"], "rating": 4.5}, "osteria")
    return restaurants


# A page at 200 % has half as many pixels of its own, where targets may be too small or too near to each other. What dark
# and light differ in is contrast.
@pytest.mark.parametrize("scheme, width, scale, only", [("light", 1280, 1, None), ("dark", 1280, 1, "color-contrast"), ("dark", 360, 1, None), ("light", 640, 2, "target-size")])
def test_axe_finds_nothing(filled, browser, server, signed_in, scheme, width, scale, only):
    # axe makes functions from text, which the pages' policy forbids; all other tests run under the policy.
    context = browser.new_context(ignore_https_errors=True, storage_state=signed_in, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce",
                                  viewport={"width": width, "height": 720}, device_scale_factor=scale)
    page = context.new_page()
    found = {}
    page.goto(filled.address("records"))
    for screen in SCREENS:
        go(page, filled.address(screen))
        found[screen] = axe(page, only)
    page.goto(filled.address("records", type="Restaurant", record="osteria"))
    expect(page.get_by_role("complementary").get_by_role("heading", name="Metadata")).to_be_visible()
    found["record"] = axe(page, only)
    page.goto(filled.address("records", type="Restaurant"))
    page.get_by_role("button", name="Columns").click()
    found["menu"] = axe(page, only)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Import a file…").click()
    page.get_by_label("File of records").set_input_files({"name": "a.csv", "mimeType": "text/csv", "buffer": b"name,seats\nA,1\nB,b\n"})
    expect(page.get_by_role("region", name="Dry run")).to_be_visible()
    found["import"] = axe(page, only)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Keys and help").click()
    found["dialog"] = axe(page, only)
    page.keyboard.press("Escape")
    page.goto(filled.address("types", "production"))
    settle(page)
    found["production"] = axe(page, only)
    context.clear_cookies()
    page.goto(server.url + "/console/")
    expect(page.get_by_role("heading", name="Sign in to Zonekeeper")).to_be_visible()
    found["sign-in"] = axe(page, only)
    context.close()
    assert {screen: some for screen, some in found.items() if some} == {}


def test_pages_are_whole_at_360_pixels(filled, open_page):
    page = open_page(filled.address("records", type="Restaurant"), viewport={"width": 360, "height": 740})
    wide = []
    for screen in SCREENS:
        go(page, filled.address(screen))
        if page.evaluate("document.documentElement.scrollWidth > innerWidth || document.querySelector('main').scrollWidth > innerWidth"):
            wide.append(screen)
    assert wide == []
    # Limits are names and values.
    go(page, filled.address("limits"))
    expect(page.get_by_role("row", name=re.compile("databaseRecords")).locator(".narrow-only strong")).to_be_visible()
    # Of a container's name the end is seen, as the beginnings are alike.
    assert page.locator(".container-name").evaluate("(name) => name.firstChild.getBoundingClientRect().right <= name.getBoundingClientRect().right + 1")
    page.get_by_role("button", name="Navigation").click()
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Records").click()
    page.get_by_role("link", name="osteria").click()
    expect(page.get_by_role("complementary").get_by_role("heading", name="osteria")).to_be_visible()
    # Nor is a dialog wider than the page, whatever it shows.
    page.get_by_role("button", name="Find a record for near").click()
    dialog = page.get_by_role("dialog", name="Find a record")
    expect(dialog.get_by_role("button", name=re.compile("osteria"))).to_be_visible()
    assert dialog.evaluate("(dialog) => [...dialog.querySelectorAll('.dialog-body, input')].every((each) => each.getBoundingClientRect().right <= innerWidth && each.scrollWidth <= innerWidth)")


def test_a_button_does_not_spin_behind_the_dialog_that_it_opened(filled, open_page):
    page = open_page(filled.address("records", type="Restaurant"))
    help = page.get_by_role("button", name="Keys and help")
    help.click()
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert help.evaluate("(button) => getComputedStyle(button, '::after').display") == "none"


def test_a_node_that_does_not_answer_is_told_and_asked_again(filled, open_page):
    page = open_page(filled.address("usage"))
    expect(page.get_by_role("row", name="Public")).to_be_visible()
    page.route("**/admin/1/usage*", lambda route: route.abort())
    page.get_by_role("button", name="Refresh").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("NO_ANSWER")
    # What was there stays, and says how old it is.
    expect(page.get_by_role("row", name="Public")).to_be_visible()
    expect(page.get_by_text("What is below was loaded")).to_be_visible()
    page.unroute("**/admin/1/usage*")
    alert.get_by_role("button", name="Retry").click()
    expect(alert).to_have_count(0)


def log_rows(name):
    row = {"id": name, "time": 1_700_000_000_000, "operation": name, "status": 200, "milliseconds": 1, "bytesIn": 1, "bytesOut": 1, "node": 1}
    return {"requests": [row], "next": "more", "nodes": []}


def audit_rows(name):
    row = {"sequence": len(name), "time": 1_700_000_000_000, "actor": name, "action": "a", "subject": "s", "count": 1, "outcome": "done", "requestID": name}
    return {"records": [row], "cursor": 1, "examined": {"records": 1, "first": 1, "last": 1}}


@pytest.mark.parametrize("screen, path, after, rows", [("logs", "**/admin/1/requests?*", "after=", log_rows), ("audit", "**/admin/1/audit?*", "before=", audit_rows)])
def test_a_page_of_one_list_is_not_added_to_another(filled, open_page, screen, path, after, rows):
    held, asked = [], []

    def answer(route):
        if after in route.request.url:
            held.append(route)
        else:
            asked.append(route)
            route.fulfill(json=rows("first" if len(asked) == 1 else "second"))

    page = open_page(filled.address("records"))
    page.route(path, answer)
    page.get_by_role("navigation", name="Screens").get_by_role("link", name=screen.title()).click()
    table = page.get_by_role("table", name="Requests" if screen == "logs" else "Audit")
    expect(table).to_contain_text("first")
    with page.expect_request(lambda request: after in request.url):
        page.locator(".table-foot button").first.click()
    if screen == "logs":
        page.get_by_label("Outcome").select_option("failed")
    else:
        page.get_by_label("Search the log").fill("s")
    expect(table).to_contain_text("second")
    [late] = held
    late.fulfill(json=rows("other list"))
    late.request.response().finished()
    # What comes of the answer is drawn by now.
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    expect(table.locator("tbody tr")).to_have_count(1)
    expect(table).to_contain_text("second")


def test_a_read_is_tried_again_by_itself_where_the_error_says_so(filled, open_page):
    page = open_page(filled.address("usage"))
    expect(page.get_by_role("row", name="Public")).to_be_visible()
    refusal = {"uuid": "01A20B3B", "serverErrorCode": "TRY_AGAIN_LATER", "reason": "Leaders are being chosen.", "retryAfter": 1, "retryAfterMilliseconds": 300}
    over = []
    page.route("**/admin/1/usage*", lambda route: route.continue_() if over else route.fulfill(status=503, json=refusal))
    page.get_by_role("button", name="Refresh").click()
    waiting = page.get_by_role("status").filter(has_text="Leaders are being chosen. Trying again…")
    expect(waiting).to_be_visible()
    over.append(True)
    expect(waiting).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("row", name="Public")).to_be_visible()


def test_a_throttled_save_keeps_the_edit(filled, open_page):
    page = open_page(filled.address("records", type="Restaurant", record="osteria"))
    pane = page.get_by_role("complementary")
    pane.get_by_label("name", exact=True).fill("Changed")
    refusal = {"uuid": "01A20B3B", "serverErrorCode": "THROTTLED", "reason": "too many requests", "retryAfter": 1, "retryAfterMilliseconds": 500}
    page.route("**/records/modify", lambda route: route.fulfill(status=429, json=refusal))
    pane.get_by_role("button", name="Save").click()
    alert = pane.get_by_role("alert")
    expect(alert).to_contain_text("THROTTLED")
    expect(alert).to_contain_text("01A20B3B")
    expect(pane.get_by_label("name", exact=True)).to_have_value("Changed")
    page.unroute("**/records/modify")
    alert.get_by_role("button", name="Retry").click()
    expect(page.locator(".toast")).to_contain_text("Saved osteria")
