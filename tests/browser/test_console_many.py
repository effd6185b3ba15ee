"""A lake with a thousand topics and ten thousand partitions in the console's page."""

import pytest
from playwright.sync_api import expect
from support.browsers import visit
from support.console import running_console

TOPICS, PARTITIONS = 1_000, 10


@pytest.fixture
def console(tmp_path):
    with running_console(tmp_path / "lake") as found:
        for number in range(TOPICS - 1):
            found.lake.create_topic(f"t-{number:04}", PARTITIONS)
        found.lake.create_topic("wide", 10_000)
        yield found


def test_a_thousand_topics_and_ten_thousand_partitions_are_shown_in_pages(browser, console):
    with visit(browser, console.url) as visitor:
        page = visitor.page
        rows = page.locator("main tbody tr")
        visitor.go("topics")
        expect(page.get_by_text("1,000 topics")).to_be_visible()
        expect(rows).to_have_count(100)
        visitor.press("Partitions")
        expect(rows.first).to_contain_text("wide")
        page.get_by_role("link", name="wide").click()
        page.get_by_role("link", name="Partitions", exact=True).click()
        expect(page.get_by_text("100 of 10,000")).to_be_visible()
        expect(rows).to_have_count(100)
        visitor.press("Next")
        expect(rows.first).to_contain_text("100")
        assert page.locator("main *").count() < 5_000
        visitor.shot("ten-thousand-partitions")
