"""Every page of the console: in light at a desk and in dark on a phone, without a finding of axe-core."""

import json
from contextlib import ExitStack

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from support.browsers import DESK, PHONE, visit
from support.console import running_console

from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.operations.cuts import create_cut

HOSTILE_GROUP = '<img src=x onerror="alert(1)">/%2e%2e?#'
DIALOGS = (
    ("topics", "New topic"),
    ("topics/orders/records", "Produce"),
    ("groups/billing", "Reset offsets"),
    ("groups/billing", "Delete"),
)
PAGES = (
    "overview",
    "topics",
    "topics/orders/records",
    "topics/orders/partitions",
    "topics/orders/config",
    "topics/orders/history",
    "topics/orders/consumers",
    "groups",
    "groups/billing",
    "sql",
    "transactions",
    "producers",
    "maintenance",
    "check",
    "doctor",
    "brokers",
    "schemas",
    "connectors",
    "mirrors",
    "cuts",
    "cuts/friday",
)


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    with running_console(tmp_path_factory.mktemp("pages") / "lake") as found:
        lake = found.lake
        lake.create_topic("orders", 4)
        lake.create_topic("empty", 1)
        values = [json.dumps({"n": number, "note": "<b>bold</b>"}).encode() for number in range(40)]
        places = pa.array([number % 4 for number in range(40)], pa.int32())
        keys = pa.array([b"<i>k</i>"] * 40)
        records = pa.table({"key": keys, "value": pa.array(values), "partition": places})
        lake.topic("orders").append(records)
        for group in ("billing", HOSTILE_GROUP):
            GroupLog(lake).commit_offsets(group, {("orders", number): CommittedOffset(number) for number in range(4)})
        create_cut(lake, "friday")
        yield found


@pytest.fixture(scope="module")
def visitors(browser, console):
    with ExitStack() as stack:
        yield {
            "light": stack.enter_context(visit(browser, console.url)),
            "dark": stack.enter_context(visit(browser, console.url, PHONE, dark=True)),
        }


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("route", PAGES)
def test_a_page_has_no_findings_and_fits(visitors, route, theme):
    visitor = visitors[theme]
    visitor.go(route)
    expect(visitor.page.locator("main [role=alert]:not(:empty)")).to_have_count(0)
    visitor.shot(f"{route.replace('/', '-')}-{theme}")
    assert visitor.findings() == []
    assert visitor.overflow() == 0
    assert visitor.trouble == []


def test_a_group_of_an_odd_name_has_its_page(visitors):
    visitor = visitors["light"]
    visitor.go("groups")
    visitor.page.get_by_role("link", name=HOSTILE_GROUP).click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text(HOSTILE_GROUP)
    expect(visitor.page.get_by_role("region", name="Partitions that").locator("tbody tr")).to_have_count(4)


def test_the_dialogs_have_no_findings(visitors):
    visitor = visitors["light"]
    for route, label in DIALOGS:
        visitor.go(route)
        visitor.press(label)
        expect(visitor.page.get_by_role("dialog")).to_be_visible()
        assert visitor.findings() == []
        assert visitor.page.evaluate("document.activeElement.closest('dialog') !== null")
        visitor.page.keyboard.press("Escape")
        expect(visitor.page.get_by_role("dialog")).to_have_count(0)


def test_the_menu_of_a_phone_leads_to_every_page(visitors):
    visitor = visitors["dark"]
    visitor.go("overview")
    expect(visitor.page.locator("#pages")).not_to_be_visible()
    visitor.press("Menu")
    visitor.page.get_by_role("navigation", name="Pages").get_by_role("link", name="Groups").click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("Groups")
    expect(visitor.page.get_by_role("button", name="Menu")).to_have_attribute("aria-expanded", "false")


def test_the_policy_of_the_page_lets_nothing_in(browser, console):
    with visit(browser, console.url, DESK) as visitor:
        visitor.go("overview")
        page = visitor.page
        ran = """() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.body.append(script);
            const image = document.createElement("p");
            image.innerHTML = "<img src=x onerror='window.ran = true'><b style='color: red'>x</b>";
            document.body.append(image);
            return window.ran === true;
        }"""
        assert page.evaluate(ran) is False
        assert any("Content Security Policy" in words for words in visitor.trouble)
        visitor.trouble.clear()
        visitor.asked.clear()
