"""Topics as people make, find, change and delete them in the console's page."""

import re

import pytest
from playwright.sync_api import expect
from support.browsers import visit
from support.console import running_console

WRITES = ("New topic", "Add partitions", "Produce", re.compile("^Change"), re.compile("^Delete"))
DELETE = """async () => {
    const { csrf } = await (await fetch("api/session")).json();
    const headers = { "X-Tidelog-CSRF": csrf, "Content-Type": "application/json" };
    return (await fetch("api/topics/orders", { method: "DELETE", headers, body: '{"confirm":"orders"}' })).status;
}"""


@pytest.fixture
def console(tmp_path):
    with running_console(tmp_path / "lake") as found:
        yield found


def test_a_topic_is_made_found_changed_and_deleted(browser, console):
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("topics")
        visitor.press("New topic")
        visitor.fill("Name", "orders")
        visitor.fill("Partitions", "3")
        visitor.fill("Retention in hours", "12")
        visitor.press("Create")
        expect(page.get_by_role("heading", name="orders")).to_be_visible()
        expect(page.locator("main tbody tr")).to_have_count(3)
        assert len(console.lake.describe_topic("orders").partitions) == 3

        page.get_by_role("link", name="Configuration").click()
        visitor.fill("Search", "retention.ms")
        row = page.get_by_role("row", name=re.compile(r"^retention\.ms"))
        expect(row).to_contain_text("43200000")
        expect(row).to_contain_text("604800000")  # the default beside it
        expect(row.locator(".mark")).to_have_text("topic")
        visitor.press("Change retention.ms")
        visitor.fill("Value", "soon")
        visitor.press("Save")
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("retention.ms")
        visitor.fill("Value", "60000")
        visitor.press("Save")
        expect(row).to_contain_text("60000")
        visitor.press("Change retention.ms")
        visitor.press("Take the default")
        expect(row.locator(".mark")).not_to_have_text("topic")

        page.get_by_role("link", name="History").click()
        expect(page.locator("main tbody tr").first).to_be_visible()

        visitor.press("Add partitions")
        visitor.fill("Partitions in all", "5")
        visitor.press("Add")
        page.get_by_role("link", name="Partitions", exact=True).click()
        expect(page.locator("main tbody tr")).to_have_count(5)

        visitor.press("Delete")
        visitor.fill("Name", "order")
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("That is not the name")
        assert "orders" in console.lake.topics()
        visitor.fill("Name", "orders")
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("heading", name="Topics")).to_be_visible()
        assert "orders" not in console.lake.topics()


def test_topics_are_searched_sorted_and_paged(browser, console):
    for number in range(120):
        console.lake.create_topic(f"t-{number:03}", 1 + number % 3)
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("topics")
        rows = page.locator("main tbody tr")
        expect(rows).to_have_count(100)
        visitor.press("Next")
        expect(rows).to_have_count(20)
        expect(rows.first).to_contain_text("t-100")
        visitor.press("Partitions")
        expect(rows.first).to_contain_text("t-002")
        expect(page.locator("th[aria-sort=descending]")).to_have_text("Partitions")
        page.keyboard.press("/")
        page.keyboard.type("t-11")
        expect(rows).to_have_count(10)
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        page.keyboard.press("ArrowDown")
        second = page.evaluate("document.activeElement.textContent")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name=second)).to_be_visible()


def test_a_name_that_is_taken_is_refused_in_the_form(browser, console):
    console.lake.create_topic("orders", 1)
    with visit(browser, console.url) as visitor:
        visitor.go("topics")
        visitor.page.keyboard.press("n")
        visitor.fill("Name", "orders")
        visitor.press("Create")
        expect(visitor.page.get_by_role("dialog").get_by_role("alert")).to_contain_text("orders")


def test_a_topic_that_is_not_there_is_named(browser, console):
    with visit(browser, console.url) as visitor:
        visitor.go("topics/not-there/records")
        expect(visitor.page.get_by_role("alert")).to_contain_text("not-there")


def test_a_read_only_console_offers_no_change(browser, tmp_path):
    with running_console(tmp_path / "lake", read_only=True) as console, visit(browser, console.url) as visitor:
        page = visitor.page
        console.lake.create_topic("orders", 1)
        for route in ("topics", "topics/orders/records", "topics/orders/config"):
            visitor.go(route)
            expect(page.get_by_text("read-only")).to_be_visible()
            expect(page.locator("tbody tr").first).to_be_visible()
            for label in WRITES:
                expect(page.get_by_role("button", name=label, exact=True)).to_have_count(0)
        assert page.evaluate(DELETE) == 403
        assert "orders" in console.lake.topics()
