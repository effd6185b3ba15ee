"""Groups as people watch, reset and delete them in the console's page."""

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from support.browsers import visit
from support.console import running_console

from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog


@pytest.fixture
def console(tmp_path):
    with running_console(tmp_path / "lake") as found:
        found.lake.create_topic("orders", 2)
        values = pa.table({"value": pa.array([b"v"] * 10), "partition": pa.array([0] * 7 + [1] * 3, pa.int32())})
        found.lake.topic("orders").append(values)
        offsets = {("orders", 0): CommittedOffset(5), ("orders", 1): CommittedOffset(3)}
        GroupLog(found.lake).commit_offsets("billing", offsets)
        yield found


def committed(console):
    return {place: one.offset for place, one in GroupLog(console.lake).offsets("billing").items()}


def test_a_groups_lag_is_shown_and_its_offsets_reset_after_a_preview(browser, console):
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("groups")
        row = page.get_by_role("row", name="billing")
        expect(row).to_contain_text("Empty")
        expect(row.locator("td.number").nth(2)).to_have_text("2")
        page.get_by_role("link", name="billing").click()
        partitions = page.get_by_role("region", name="Partitions that billing reads")
        expect(partitions.locator("tbody tr")).to_have_count(2)
        expect(partitions.locator("tbody tr").first).to_contain_text("orders")
        expect(page.get_by_role("img", name="Lag by topic")).to_be_visible()

        visitor.press("Reset offsets")
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Reset", exact=True).click()
        expect(dialog.get_by_role("alert")).to_contain_text("Preview first")
        dialog.get_by_label("To", exact=True).select_option("shift")
        dialog.get_by_label("Offset or number of records").fill("-2")
        dialog.get_by_role("button", name="Preview").click()
        planned = dialog.get_by_role("region", name="What the reset would do").locator("tbody tr")
        expect(planned).to_have_count(2)
        expect(planned.first).to_contain_text("-2")
        visitor.shot("reset")
        assert committed(console) == {("orders", 0): 5, ("orders", 1): 3}
        dialog.get_by_role("button", name="Reset", exact=True).click()
        expect(dialog).to_have_count(0)
        assert committed(console) == {("orders", 0): 3, ("orders", 1): 1}
        expect(partitions.locator("tbody tr").first.locator("td").nth(4)).to_have_text("4")

        visitor.press("Delete")
        visitor.fill("Name", "billing")
        dialog.get_by_role("button", name="Delete").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Groups")
        assert "billing" not in GroupLog(console.lake).groups()


def test_the_consumers_of_a_topic_lead_to_their_group(browser, console):
    with visit(browser, console.url) as visitor:
        visitor.go("topics/orders/consumers")
        visitor.page.get_by_role("link", name="billing").click()
        expect(visitor.page.get_by_role("heading", level=1)).to_have_text("billing")
