"""A node that is killed while somebody works."""

import re

from playwright.sync_api import expect

from conftest import RESTAURANTS, Container, sign_in_first


def test_a_node_killed_while_saving_loses_nothing_and_says_so(cluster, browser):
    first, second, _ = cluster.nodes
    container = Container(first, "iCloud.com.example.killed")
    container.schema(RESTAURANTS)
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    sign_in_first(first, page)
    page.goto(container.address("records", type="Restaurant", new="1"))
    pane = page.get_by_role("complementary")
    pane.get_by_label("name", exact=True).fill("Osteria")

    def kill(route):
        """The save is done, and the node ends before its answer is there."""
        route.fetch()
        first.kill()
        route.abort()

    page.route("**/records/modify", kill, times=1)
    pane.get_by_role("button", name="Save").click()
    alert = pane.get_by_role("alert")
    expect(alert).to_contain_text("The node does not answer")
    expect(pane.get_by_label("name", exact=True)).to_have_value("Osteria")

    # Another node goes on, signed in, and shows that the one that is gone leads nothing.
    other = context.new_page()
    other.goto(f"{second.url}/console/~/development/cluster")
    gone = other.get_by_role("article").filter(has=other.get_by_role("heading", name="Node 1"))
    expect(gone).to_contain_text("Leads0 groups")

    first.start()
    assert first.wait()
    alert.get_by_role("button", name="Retry").click()
    expect(page.locator(".toast")).to_contain_text("Made")
    expect(page.get_by_role("row", name=re.compile("Osteria"))).to_be_visible()
    found = second.call("POST", f"/database/1/{container.name}/development/public/records/query", {"query": {"recordType": "Restaurant"}})
    assert len(found["records"]) == 1
    context.close()
