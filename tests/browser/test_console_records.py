"""Records as people look for them, follow them, and send them in the console's page."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect
from support.browsers import visit
from support.console import running_console
from support.waiting import eventually

SCRIPTS = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    '"><svg onload=alert(1)>',
    "javascript:alert(1)",
    "{{7*7}}${alert(1)}",
    "\u202egnp.exe",
]


@pytest.fixture
def console(tmp_path):
    with running_console(tmp_path / "lake") as found:
        yield found


def append(console, topic, keys, values):
    columns = {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
    return console.lake.topic(topic).append(pa.table(columns))


def rows(visitor):
    return visitor.page.locator("table.records tbody tr[data-at]")


def test_a_record_is_produced_and_seen(browser, console):
    console.lake.create_topic("orders", 2)
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("topics/orders/records")
        expect(page.get_by_text("No record is here")).to_be_visible()
        visitor.press("Produce")
        page.get_by_label("Key is").select_option("text")
        visitor.fill("Key", "ann")
        visitor.fill("Value", '{"paid": true, "amount": 12345678901234567890}')
        visitor.press("Add a header")
        page.get_by_role("group", name="Headers").get_by_label("Name").fill("trace")
        page.get_by_role("group", name="Headers").get_by_label("Value").fill("<b>7</b>")
        page.get_by_role("dialog").get_by_role("button", name="Produce").click()
        expect(rows(visitor)).to_have_count(1)
        expect(rows(visitor)).to_contain_text("ann")
        expect(rows(visitor)).to_contain_text("trace: <b>7</b>")

        page.get_by_role("button", name=re.compile("^Open record 0")).click()
        expect(page.get_by_role("region", name="Value")).to_contain_text("12345678901234567890")
        visitor.press("Copy the value")
        expect(page.get_by_text("The value copied")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert json.loads(copied) == {"paid": True, "amount": 12345678901234567890}
        page.get_by_role("dialog").get_by_label("Shown as").select_option("hex")
        expect(page.get_by_role("region", name="Value")).to_contain_text("7b22")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_records_are_paged_and_filtered(browser, console):
    console.lake.create_topic("orders", 1)
    keys = [b"ann" if number % 10 == 0 else b"bob" for number in range(120)]
    values = [json.dumps({"n": number, "to": {"city": "Oslo"}}).encode() for number in range(120)]
    append(console, "orders", keys, values)
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("topics/orders/records?from=earliest&limit=50")
        expect(rows(visitor)).to_have_count(50)
        expect(rows(visitor).first).to_have_attribute("data-at", "0-0")
        visitor.press("After →")
        expect(page.locator("[data-at='0-50']")).to_be_visible()
        visitor.press("After →")
        expect(rows(visitor)).to_have_count(20)
        visitor.press("← Before")
        expect(page.locator("[data-at='0-50']")).to_be_visible()

        page.get_by_label("From", exact=True).select_option("offset")
        visitor.fill("Offset", "117")
        visitor.press("Show")
        expect(rows(visitor)).to_have_count(3)
        assert "from=117" in page.url

        page.get_by_label("From", exact=True).select_option("earliest")
        visitor.fill("Key holds", "ann")
        visitor.press("Show")
        expect(rows(visitor)).to_have_count(12)
        expect(page.get_by_role("status").first).to_contain_text("looked at")
        visitor.fill("JSON path", "$.n=30")
        visitor.press("Show")
        expect(rows(visitor)).to_have_count(1)
        expect(rows(visitor)).to_have_attribute("data-at", "0-30")
        visitor.fill("JSON path", "")
        visitor.fill("Key holds", "")
        visitor.fill("Value holds", '"n": 77')
        visitor.press("Show")
        expect(rows(visitor)).to_have_count(1)

        with page.expect_download() as started:
            page.get_by_role("link", name="JSON lines").click()
        lines = [json.loads(line) for line in started.value.path().read_text().splitlines()]
        assert [line["offset"] for line in lines] == [77]
        visitor.fill("Value holds", "")
        with page.expect_download() as started:
            page.get_by_role("link", name="Parquet").click()
        assert pq.read_table(started.value.path()).num_rows == 120


def test_the_tail_shows_records_as_they_come_and_stops(browser, console):
    console.lake.create_topic("orders", 2)
    append(console, "orders", [b"old"], [b"before the tail"])
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("topics/orders/records")
        expect(rows(visitor)).to_have_count(1)
        visitor.fill("Value holds", "wanted")
        page.get_by_role("button", name="Live tail").click()
        expect(page.get_by_text("Live: 0 records")).to_be_visible()
        append(console, "orders", [b"a", b"b"], [b"wanted 1", b"other"])
        expect(rows(visitor)).to_have_count(1)
        append(console, "orders", [b"c"], [b"wanted <b>2</b>"])
        expect(rows(visitor)).to_have_count(2)
        expect(rows(visitor).first).to_contain_text("wanted <b>2</b>")
        page.get_by_role("button", name="Stop the tail").click()
        expect(page.get_by_role("button", name="Live tail")).to_have_attribute("aria-pressed", "false")
        append(console, "orders", [b"d"], [b"wanted 3"])
        visitor.press("Show")
        expect(rows(visitor)).to_have_count(3)


def test_an_answer_that_comes_after_the_tail_began_is_dropped(browser, console):
    console.lake.create_topic("orders", 1)
    append(console, "orders", [b"old"], [b"before the tail"])
    with visit(browser, console.url) as visitor:
        page, late = visitor.page, []
        page.route("**/topics/orders/records?*", lambda route: late.append(route))
        page.goto(f"{console.url}/#/topics/orders/records")
        page.get_by_role("button", name="Live tail").click()
        expect(page.get_by_text("Live: 0 records")).to_be_visible()
        append(console, "orders", [b"a"], [b"the new one"])
        expect(rows(visitor)).to_have_count(1)
        with page.expect_response("**/topics/orders/records?*"):
            late[0].continue_()
        # What the page does with the answer is done when a later answer has been shown.
        append(console, "orders", [b"b"], [b"another"])
        expect(rows(visitor)).to_have_count(2)
        expect(rows(visitor).last).to_contain_text("the new one")
        expect(page.get_by_text("Live: 2 records")).to_be_visible()


def test_what_others_wrote_is_shown_as_text(browser, console):
    console.lake.create_topic("odd", 1)
    append(console, "odd", [text.encode() for text in SCRIPTS], [text.encode() for text in SCRIPTS])
    append(console, "odd", [b"\xff\xfe\x00"], [bytes(range(256))])
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("topics/odd/records?from=earliest")
        expect(rows(visitor)).to_have_count(len(SCRIPTS) + 1)
        for number, text in enumerate(SCRIPTS):
            expect(page.locator(f"[data-at='0-{number}'] td.payload").first).to_have_text(text)
            page.get_by_role("button", name=f"Open record {number} of partition 0").click()
            shown = page.get_by_role("region", name="Value")
            expect(shown).to_have_text(text)
            page.keyboard.press("Escape")
        assert page.locator("main script, main img, main svg").count() == 0
        page.evaluate("location.hash = '#/topics/' + encodeURIComponent('<img src=x onerror=alert(1)>') + '/records'")
        expect(page.get_by_role("alert")).to_contain_text("<img src=x onerror=alert(1)>")


def test_a_record_of_ten_megabytes_is_shown_in_part_and_given_whole(browser, console):
    console.lake.create_topic("large", 1, {"max.message.bytes": str(16 << 20)})
    large = b"0123456789abcdef" * (10 << 16)
    append(console, "large", [b"k"], [large])
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("topics/large/records")
        expect(rows(visitor)).to_have_count(1)
        page.get_by_role("button", name="Open record 0 of partition 0").click()
        expect(page.get_by_text(re.compile(r"of 10\.0 MiB are shown"))).to_be_visible()
        assert len(page.get_by_role("region", name="Value").text_content()) <= 256 << 10
        with page.expect_download() as started:
            page.get_by_role("link", name="Download the value").click()
        assert eventually(lambda: started.value.path(), "the download").read_bytes() == large
