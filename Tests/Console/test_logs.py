"""The log of requests, telemetry, and what nodes are at: of one node, and of three."""

import re

import pytest
from playwright.sync_api import expect

from conftest import Container, RESTAURANTS, sign_in_first, watch

CREATE = {"operations": [{"operationType": "create", "record": {"recordType": "Restaurant", "fields": {"name": {"value": "a secret value"}}}}]}
QUERY = {"query": {"recordType": "Restaurant"}}


def rows(page):
    return page.get_by_role("table", name="Requests").locator("tbody:not(.filler) tr")


@pytest.mark.seeds(84)
def test_the_history_shows_what_an_app_did_and_nothing_of_what_it_saved(restaurants, open_page):
    app = restaurants.app("log-ada")
    app("records/modify", CREATE)
    app("records/query", QUERY)
    app("records/query", {"query": {"recordType": "Nothing"}})
    page = open_page(restaurants.address("logs"))
    expect(rows(page)).to_have_count(3)
    expect(rows(page).nth(0)).to_contain_text("BAD_REQUEST")
    expect(rows(page).nth(1)).to_contain_text("records/query")
    for text in ("records/modify", "200", "public", "Restaurant"):
        expect(rows(page).nth(2)).to_contain_text(text)
    page.get_by_label("Outcome").select_option("failed")
    expect(rows(page)).to_have_count(1)
    page.get_by_label("Outcome").select_option("")
    page.get_by_role("combobox", name="Operation").select_option("records/modify")
    expect(rows(page)).to_have_count(1)
    # The whole view is in the address.
    page.reload()
    expect(rows(page)).to_have_count(1)
    rows(page).first.get_by_role("link").click()
    pane = page.get_by_role("complementary", name="Request")
    expect(pane).to_contain_text("took it from the client and answered")
    assert "secret value" not in page.content()
    page.keyboard.press("Escape")
    expect(pane).to_have_count(0)


def test_the_history_goes_on_page_by_page(restaurants, open_page):
    app = restaurants.app("log-bob")
    for _ in range(130):
        app("records/query", QUERY)
    page = open_page(restaurants.address("logs"))
    expect(page.get_by_text("100 requests shown")).to_be_visible()
    page.get_by_role("button", name="Load more").click()
    expect(page.get_by_text("130 requests shown, these are all that the nodes have")).to_be_visible()


@pytest.mark.seeds(84)
def test_live_shows_requests_within_two_seconds_pauses_and_goes_on(restaurants, open_page):
    app = restaurants.app("log-live")
    page = open_page(restaurants.address("logs", view="live"))
    expect(page.get_by_text("Live", exact=True).last).to_be_visible()
    expect(page.get_by_text("Nothing yet")).to_be_visible()
    # The stream begins with what is answered after it.
    expect(page.locator(".live-state.open")).to_be_visible()
    app("records/query", QUERY)
    expect(rows(page)).to_have_count(1)
    page.keyboard.press("p")
    for _ in range(3):
        app("records/query", QUERY)
    expect(page.get_by_text("Paused, 3 new")).to_be_visible()
    expect(rows(page)).to_have_count(1)
    page.get_by_role("button", name="Go on").click()
    expect(rows(page)).to_have_count(4)
    page.get_by_role("combobox", name="Operation").select_option("kv")
    app("records/query", QUERY)
    expect(rows(page)).to_have_count(4)


def test_a_hundred_rows_a_second_are_drawn_in_batches_and_bounded(restaurants, open_page):
    page = open_page(restaurants.address("logs"))
    # The page's own code, given a stream whose messages the test sends, a request each.
    page.route("**/admin/1/requests/watch*", lambda route: route.abort())
    page.evaluate("""() => {
        let number = 0;
        window.EventSource = class extends EventTarget {
            constructor() {
                super();
                window.stream = this;
                setTimeout(() => this.onopen?.());
            }
            one() {
                const request = {id: `01900000-0000-7000-8000-${String(number += 1).padStart(12, "0")}`, time: 1700000000000 + number, node: 1,
                    operation: "records/query", status: 200, milliseconds: 1.5, records: 5, bytesIn: 10, bytesOut: 20, recordType: "Restaurant", user: "_0123456789abcdef", zone: "_defaultZone", database: "public"};
                this.dispatchEvent(new MessageEvent("requests", {data: JSON.stringify({requests: [request], skipped: 0})}));
            }
            close() {}
        };
    }""")
    page.get_by_role("button", name="Live").click()
    expect(page.locator(".live-state.open")).to_be_visible()
    page.evaluate("for (let turn = 0; turn < 1000; turn += 1) window.stream.one()")
    expect(page.get_by_text("1,000 requests shown")).to_be_visible()
    # A second's worth, in a hundred messages, changes the table once: observers are told of a task's changes together.
    page.evaluate("""() => {
        window.changes = [];
        const body = document.querySelector(".log-table tbody:not(.filler)");
        new MutationObserver((list) => {
            const added = list.flatMap((each) => [...each.addedNodes]).filter((node) => node.parentNode === body);
            if (added.length) window.changes.push(added.length);
        }).observe(body, {childList: true});
        for (let turn = 0; turn < 100; turn += 1) window.stream.one();
    }""")
    expect(page.get_by_text("1,100 requests shown")).to_be_visible()
    changes = page.evaluate("window.changes")
    assert len(changes) == 1 and changes[0] <= 200, changes
    assert rows(page).count() <= 200
    page.evaluate("for (let turn = 0; turn < 3000; turn += 1) window.stream.one()")
    # The oldest go, however many come.
    expect(page.get_by_text("2,000 requests shown")).to_be_visible()
    assert rows(page).count() <= 200


def test_why_a_request_was_refused_is_told_by_its_id(restaurants, open_page):
    app = restaurants.app("log-greedy")
    restaurants.server.call("PATCH", "/admin/1/limits", {"requestsPerSecond": 2, "requestsPerSecondMax": 2}, container=restaurants.name)
    refused = next(answer for answer in (app("records/query", QUERY) for _ in range(300)) if answer.get("serverErrorCode") == "THROTTLED")
    restaurants.server.call("PATCH", "/admin/1/limits", {"requestsPerSecond": 1000, "requestsPerSecondMax": 1000}, container=restaurants.name)
    page = open_page(restaurants.address("limits"))
    page.get_by_label("Request id").fill(refused["uuid"])
    page.keyboard.press("Enter")
    expect(page.get_by_text("Refused by requests: 2 of 2 used")).to_be_visible()
    expect(page.get_by_text("free again").first).to_be_visible()
    # The same by the keyboard, from anywhere.
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to").fill(refused["uuid"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Request")).to_contain_text("Refused by requests")


@pytest.mark.seeds(84)
def test_telemetry_counts_within_ten_seconds_with_charts_and_tables(restaurants, open_page):
    apps = [restaurants.app(f"telemetry-{number}") for number in range(3)]
    page = open_page(restaurants.address("telemetry"))
    expect(page.get_by_role("button", name="30 days")).to_be_visible()
    for app in apps:
        app("records/modify", CREATE)
        app("records/query", {"query": {"recordType": "Nothing"}})
    def card(title):
        return page.locator(".figure-card").filter(has=page.get_by_text(title, exact=True))

    # The page's own requests count, too, as administration.
    def row(operation):
        return page.get_by_role("table", name="By operation").get_by_role("row", name=re.compile(operation))

    expect(row("records.write").get_by_role("cell").nth(1)).to_have_text("3")
    expect(row("records.read").get_by_role("cell").nth(1)).to_have_text("3")
    expect(card("Active users")).to_contain_text("3")
    expect(page.get_by_role("figure", name="Errors by code")).to_contain_text("BAD_REQUEST")
    figure = page.get_by_role("figure", name="Requests", exact=True)
    figure.get_by_text("Requests as a table").click()
    expect(figure.get_by_role("table")).to_contain_text("answered")
    page.get_by_role("button", name="30 days").click()
    expect(row("records.write").get_by_role("cell").nth(1)).to_have_text("3")
    page.get_by_role("combobox", name="Operation").select_option("records/read")
    expect(card("Requests").locator("strong")).to_have_text("3")


def test_the_bell_tells_what_fires_and_telemetry_has_the_rules(restaurants, open_page):
    call = restaurants.server.call
    call("PATCH", "/admin/1/limits", {"alertElections": 1})
    page = open_page(restaurants.address("records"))
    bell = page.get_by_role("button", name="Alerts", exact=True)
    expect(page.locator(".bell")).to_contain_text(re.compile("alerts? firing"))
    bell.click()
    menu = page.get_by_role("group", name="Alerts")
    expect(menu).to_contain_text("A group elects leaders again and again")
    expect(menu).to_contain_text("Look for a slow disk")
    menu.get_by_role("link", name="All rules, and their thresholds").click()
    row = page.get_by_role("table", name="Alert rules").get_by_role("row", name=re.compile("A group elects"))
    expect(row).to_contain_text("firing")
    expect(row).to_contain_text("1 election")
    row.get_by_role("button", name="Set the threshold of elections").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Value (elections)").fill("0")
    dialog.get_by_role("button", name="Set limit").click()
    expect(row).to_contain_text("off")
    bell.click()
    expect(menu).not_to_contain_text("A group elects")
    page.keyboard.press("Escape")
    # A container's own threshold, by the keyboard, and back.
    row = page.get_by_role("table", name="Alert rules").get_by_role("row", name=re.compile("errors of the server"))
    row.get_by_role("button", name="Set the threshold of errors").press("Enter")
    dialog.get_by_label("Value (%)").fill("7")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("7 %")
    expect(row).to_contain_text("container")
    assert [rule["threshold"] for rule in call("GET", "/admin/1/alerts")["rules"] if rule["name"] == "errors"] == [1]
    row.get_by_role("button", name="Set the threshold of errors").click()
    dialog.get_by_label("Take this container’s value back").check()
    dialog.get_by_role("button", name="Set limit").click()
    expect(row).to_contain_text("1 %")
    call("PATCH", "/admin/1/limits", {"alertElections": None})


def test_any_node_answers_for_all_and_a_killed_one_is_named(cluster, browser):
    first, second, third = cluster.nodes
    box = Container(first, "iCloud.com.example.cluster")
    box.schema(RESTAURANTS)
    for node in cluster.nodes:
        for number in range(8):
            answer = node.call("POST", f"/database/1/{box.name}/development/public/records/query", QUERY)
            assert "records" in answer, answer
    found = second.call("GET", "/admin/1/requests", container=box.name, clients="true", limit=500)
    assert {request["node"] for request in found["requests"]} == {1, 2, 3} and len(found["requests"]) == 24
    assert all("problem" not in node for node in found["nodes"])
    # One of the nodes leads the zone: the others asked it, and it remembers.
    forwarded = [request for request in found["requests"] if request.get("askedNodes")]
    assert len(forwarded) >= 8
    way = third.call("GET", "/admin/1/requests/trace", id=forwarded[0]["id"])
    assert way["request"]["id"] == forwarded[0]["id"] and way["hops"]
    assert all(hop["from"] == forwarded[0]["node"] and hop["node"] in forwarded[0]["askedNodes"] for hop in way["hops"])
    pages = []
    after = None
    while True:
        page = third.call("GET", "/admin/1/requests", container=box.name, clients="true", limit=7, **({"after": after} if after else {}))
        pages += page["requests"]
        after = page.get("next")
        if not after:
            break
    assert [request["id"] for request in pages] == [request["id"] for request in found["requests"]]
    total = second.call("GET", "/admin/1/telemetry", container=box.name, operation="records/read")["total"]
    assert total["requests"] == 24
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    problems = watch(page, first.url)
    sign_in_first(first, page)
    page.goto(f"{first.url}/console/{box.name}/development/cluster")
    card = page.get_by_role("article").filter(has=page.get_by_role("heading", name="Node 3"))
    expect(card).to_contain_text("ready")
    third.kill()
    expect(card).to_contain_text("does not answer")
    expect(page.get_by_text("1 of 3 does not answer")).to_be_visible()
    page.goto(f"{first.url}/console/{box.name}/development/logs")
    expect(page.get_by_text("Node 3 does not answer")).to_be_visible()
    expect(page.get_by_role("navigation", name="Screens").get_by_title("Node 3 does not answer")).to_be_visible()
    expect(rows(page)).to_have_count(16)
    down = next(rule for rule in second.call("GET", "/admin/1/alerts")["rules"] if rule["name"] == "nodeDown")
    assert [alert["node"] for alert in down["alerts"]] == [3], down
    named = second.call("GET", "/admin/1/requests", container=box.name)["nodes"]
    assert [node["node"] for node in named if "problem" in node] == [3]
    context.close()
    assert problems == []
