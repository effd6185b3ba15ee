"""The console's page on real data, with all that runs beside a lake: brokers, schemas, connectors, a mirror.

What it shows is compared with what is there; and docs/images are pictures that these tests take.
"""

import re
from contextlib import ExitStack

import pytest
from playwright.sync_api import expect
from support.browsers import PHONE, visit
from support.busy_lakes import PARTITIONS, busy_lake
from support.console import running_console

from tidelog.console.sampler import Sampler

# Pages of docs/console.md: the picture's name, the route, the theme.
PICTURES = (
    ("console-topics", "topics", False),
    ("console-topic", "topics/flights/partitions", True),
    ("console-records", "topics/flights/records?from=latest", False),
    ("console-transactions", "transactions", False),
    ("console-maintenance", "maintenance", True),
    ("console-connectors", "connectors", False),
    ("console-group", "groups/delays", True),
    ("console-overview", "overview", False),
    ("console-overview-dark", "overview", True),
)
QUERY = """SELECT decode(value)->>'$.origin' AS origin, decode(value)->>'$.carrier' AS carrier,
  count(*) AS flights, round(avg((decode(value)->>'$.dep_delay')::DOUBLE), 1) AS delay
FROM flights GROUP BY ALL ORDER BY delay DESC LIMIT 8"""
SIZE = (1280, 800)


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    with busy_lake(tmp_path_factory.mktemp("busy")) as found:
        yield found


@pytest.fixture(scope="module")
def console(busy):
    with running_console(busy.folder) as found:
        found.server.console.part(Sampler).step_s = 1.0  # so that charts have points soon
        yield found


@pytest.fixture(scope="module")
def visitors(browser, console):
    """A visitor at a desk in light, in dark, and one with a phone."""
    with ExitStack() as stack:
        desks = {dark: stack.enter_context(visit(browser, console.url, SIZE, dark=dark)) for dark in (False, True)}
        yield desks, stack.enter_context(visit(browser, console.url, PHONE))


@pytest.fixture
def visitor(visitors):
    return visitors[0][False]


def rows(visitor):
    return visitor.page.locator("main tbody tr")


def test_brokers(visitor, busy):
    visitor.go("brokers")
    expect(rows(visitor)).to_have_count(1)
    expect(rows(visitor).first).to_contain_text(busy.broker)
    expect(rows(visitor).first).to_contain_text("running")
    assert visitor.findings() == []


def test_schemas(visitor):
    visitor.go("schemas")
    expect(rows(visitor)).to_have_count(2)
    expect(visitor.page.get_by_role("row", name=re.compile("gates-value"))).to_contain_text("PROTOBUF")
    visitor.page.get_by_role("link", name="tickets-value").click()
    version = visitor.page.get_by_role("region", name="Version 1")
    expect(version).to_contain_text('"logicalType": "decimal"')
    visitor.go("schemas/gates-value")
    expect(visitor.page.get_by_role("region", name="Version 1")).to_contain_text("repeated int32 flights = 2;")
    assert visitor.findings() == []


def test_connectors(visitor):
    visitor.go("connectors")
    expect(rows(visitor)).to_have_count(2)
    row = visitor.page.get_by_role("row", name=re.compile("^airports"))
    expect(row).to_contain_text("FileStreamSource")
    expect(row.get_by_text("RUNNING")).to_have_count(2)  # the connector, and its task
    expect(visitor.page.get_by_role("row", name=re.compile("^delays-to-file")).get_by_text("FAILED")).to_be_visible()
    expect(visitor.page.get_by_role("row", name=re.compile("^delays-to-file"))).to_contain_text("No such file")
    assert visitor.findings() == []


def test_a_mirror(browser, busy, visitor):
    visitor.go("mirrors")
    expect(visitor.page.get_by_text("This lake follows no other one.")).to_be_visible()
    with running_console(busy.follower) as follower, visit(browser, follower.url) as other:
        other.go("mirrors")
        expect(rows(other)).to_have_count(1)
        expect(rows(other).first).to_contain_text(str(busy.folder))
        expect(rows(other).first).to_contain_text("running")
        assert other.findings() == []
        other.go("topics/flights/partitions")
        expect(rows(other)).to_have_count(PARTITIONS)


def test_an_open_transaction_and_a_member(visitor):
    visitor.go("transactions")
    row = visitor.page.get_by_role("row", name=re.compile("booking-desk-1"))
    expect(row).to_contain_text("bookings")
    visitor.go("groups/delays")
    expect(visitor.page.locator("main")).to_contain_text("Stable")
    expect(visitor.page.locator("main")).to_contain_text("board")


@pytest.mark.parametrize(
    ("topic", "form", "shown", "whole"),
    [
        ("tickets", "avro", "Ada Lovelace", '"price": '),
        ("gates", "protobuf", "C11", '"flights": ['),
    ],
)
def test_values_with_a_schema_are_shown_decoded(visitor, topic, form, shown, whole):
    page = visitor.page
    visitor.go(f"topics/{topic}/records")
    expect(rows(visitor).filter(has_text=shown).first.locator("td.payload").last).to_contain_text(shown)
    page.get_by_role("button", name=re.compile("^Open record")).first.click()
    expect(page.get_by_role("dialog")).to_contain_text(re.compile(rf"{form}, schema \d"))
    expect(page.get_by_role("region", name="Value")).to_contain_text(whole)
    assert visitor.findings() == []
    page.get_by_role("dialog").get_by_label("Shown as").select_option("hex")
    expect(page.get_by_role("region", name="Value")).to_contain_text(re.compile("^00000000"))
    page.keyboard.press("Escape")
    visitor.fill("JSON path", "$.passenger=Grace Hopper" if topic == "tickets" else "$.name=C3")
    visitor.press("Show")
    expect(rows(visitor)).to_have_count(5 if topic == "tickets" else 1)


def test_a_topics_rate_is_shown(visitor, console):
    visitor.go("topics")
    rate = visitor.page.get_by_role("row", name=re.compile("^flights")).locator("td").nth(4)
    expect(rate).to_have_text(re.compile(r"^[1-9][\d.,]*/s$"))


@pytest.mark.parametrize(("name", "route", "dark"), PICTURES, ids=[name for name, _, _ in PICTURES])
def test_pictures_of_the_documentation(visitors, busy, name, route, dark):
    visitor = visitors[0][dark]
    visitor.go(route)
    if visitor.page.locator("main .chart").count():
        expect(visitor.page.locator("main .chart canvas").first).to_be_visible()
    else:
        expect(rows(visitor).first).to_be_visible()
    visitor.call(str(busy.folder.parent), "/srv")
    visitor.shot(name)
    assert visitor.overflow() == 0


def test_a_picture_of_sql(visitors, busy):
    visitor = visitors[0][False]
    visitor.go("sql")
    visitor.fill("Query", QUERY)
    visitor.press("Run")
    expect(rows(visitor)).to_have_count(8)
    visitor.call(str(busy.folder.parent), "/srv")
    visitor.shot("console-sql")


def test_a_picture_of_a_value(visitors, busy):
    visitor = visitors[0][True]
    visitor.go("topics/tickets/records")
    visitor.page.get_by_role("button", name=re.compile("^Open record")).first.click()
    expect(visitor.page.get_by_role("region", name="Value")).to_contain_text("passenger")
    visitor.call(str(busy.folder.parent), "/srv")
    visitor.shot("console-value")
    visitor.page.keyboard.press("Escape")


@pytest.mark.parametrize("route", ["overview", "topics", "topics/flights/records", "groups/delays"])
def test_pages_with_real_data_fit_a_phone(visitors, busy, route):
    visitor = visitors[1]
    visitor.go(route)
    expect(visitor.page.locator("main .tile, main tbody tr").first).to_be_visible()
    visitor.call(str(busy.folder.parent), "/srv")
    visitor.shot(f"console-phone-{route.replace('/', '-')}")
    assert visitor.findings() == []
    assert visitor.overflow() == 0
