"""A topic of ten million records in the console's page: paged, searched, asked in SQL, followed."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from playwright.sync_api import expect
from support.browsers import visit
from support.console import running_console

PARTITIONS, EACH, BATCHES = 4, 1_000_000, 10
START_MS = 1_700_000_000_000
NEEDLE = 6_000_123  # of all records in the order of their appends


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    """Record n is in partition n % 4, at START_MS + n ms; its value is "x" but for one."""
    with running_console(tmp_path_factory.mktemp("large") / "lake") as found:
        found.lake.create_topic("large", PARTITIONS, {"retention.ms": "-1"})
        topic = found.lake.topic("large")
        for batch in range(BATCHES):
            numbers = pa.array(range(batch * EACH, (batch + 1) * EACH), pa.int64())
            is_needle = pc.equal(numbers, NEEDLE)
            records = {
                "value": pc.if_else(is_needle, pa.scalar(b"the needle"), pa.scalar(b"x")),
                "partition": pc.cast(pc.bit_wise_and(numbers, PARTITIONS - 1), pa.int32()),
                "timestamp": pc.cast(pc.add(numbers, START_MS), pa.timestamp("ms", "UTC")),
            }
            topic.append(pa.table(records), acks=1)
        yield found


def rows(visitor):
    return visitor.page.locator("table.records tbody tr[data-at]")


def test_pages_go_back_from_the_end_and_from_an_offset(browser, console):
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("topics")
        expect(page.get_by_role("row", name="large")).to_contain_text("10,000,000")
        visitor.go("topics/large/records")
        expect(rows(visitor).first).to_have_attribute("data-at", "3-2499999")
        visitor.press("← Before")
        expect(rows(visitor).first).not_to_have_attribute("data-at", "3-2499999")
        visitor.go("topics/large/records?partition=2&from=1234567")
        expect(rows(visitor).first).to_have_attribute("data-at", "2-1234567")
        visitor.go(f"topics/large/records?from=time:{START_MS + 4_000_000}")
        expect(rows(visitor).first).to_have_attribute("data-at", "0-1000000")
        assert page.locator("main *").count() < 5_000


def test_a_search_says_how_far_it_came_and_goes_on(browser, console):
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go(f"topics/large/records?from=time:{START_MS + NEEDLE - 30_000}&text=needle")
        expect(page.get_by_role("status").first).to_contain_text("looked at")
        while not rows(visitor).count():  # a busy server looks at less in a request's two seconds
            visitor.press("After →")
            expect(page.locator("main [aria-busy=true]")).to_have_count(0)
        expect(rows(visitor)).to_have_count(1)
        expect(rows(visitor)).to_have_attribute("data-at", f"{NEEDLE % PARTITIONS}-{NEEDLE // PARTITIONS}")


def test_sql_counts_them_all(browser, console):
    with visit(browser, console.url) as visitor:
        visitor.go("sql")
        visitor.fill(
            "Query", 'SELECT count(*) AS n, max("offset") AS last, sum(octet_length(value)) AS bytes FROM large'
        )
        visitor.press("Run")
        expect(visitor.page.locator("main tbody tr")).to_contain_text("10000000")
        expect(visitor.page.locator("main tbody tr")).to_contain_text("2499999")


def test_a_tail_shows_the_next_one(browser, console):
    with visit(browser, console.url) as visitor:
        visitor.go("topics/large/records")
        expect(rows(visitor).first).to_be_visible()
        visitor.press("Live tail")
        expect(visitor.page.get_by_text("Live: 0 records")).to_be_visible()
        console.lake.topic("large").append([{"value": "the next one", "partition": 1}])
        expect(rows(visitor).first).to_contain_text("the next one")
