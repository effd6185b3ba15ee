"""A console over a lake on S3: topics that no page shows are asked for every 30 s at most, and requests are counted."""

from collections import Counter

import pytest
from support.console import running_console
from support.passing_clock import PassingClock
from support.waiting import eventually

from tidelog.console.records.tails import Tails
from tidelog.console.sampler import Sampler

TOPICS = tuple(f"t{number}" for number in range(6))
PAGES = (
    "/api/overview",
    "/api/overview/history",
    "/api/topics",
    "/api/topics?sort=rate",
    "/api/groups",
    "/api/brokers",
    "/api/requests",
)


@pytest.fixture
def running(s3):
    with running_console(s3.uri, options=s3.options) as console:
        for name in TOPICS:
            console.lake.create_topic(name, 1)
            console.lake.topic(name).append([{"value": "1"}])
        console.lake.clock = PassingClock(console.lake.clock)
        console.server.console.part(Sampler).sample()
        yield console


def sent(console):
    return console.lake.storage.requests.counts().total


def test_pages_ask_the_store_for_nothing_within_thirty_seconds(running):
    with running.client() as page:
        page.ok("GET", "/api/overview")
        before = sent(running)
        for _ in range(20):
            for path in PAGES:
                page.ok("GET", path)
            running.lake.clock.passed_s += 1
        assert sent(running) == before
        running.lake.clock.passed_s += 10
        page.ok("GET", "/api/overview")
        looked = sent(running) - before
        assert len(TOPICS) <= looked <= 4 * len(TOPICS) + 20
        page.ok("GET", "/api/overview")
        assert sent(running) == before + looked


def test_a_page_that_follows_a_topic_asks_for_no_other(running):
    asked, note = Counter(), running.lake.storage.requests.note

    def noted(kind, path, **more):
        asked[path.split("/")[0]] += 1
        note(kind, path, **more)

    with running.client() as page:
        page.ok("GET", "/api/overview")
        running.lake.storage.requests.note = noted
        tails, came = running.server.console.part(Tails), []
        tails.follow("t1", came.append)
        page.ok("GET", "/api/topics")
        eventually(lambda: asked["t1"] >= 3, "the followed topic is asked for")
        tails.leave("t1", came.append)
        assert not set(TOPICS) - {"t1"} & asked.keys()


def test_requests_are_told_to_pages_and_to_prometheus(running):
    with running.client() as page:
        page.ok("GET", "/api/overview")
        running.lake.clock.passed_s += 60
        page.ok("GET", "/api/overview")
        found = page.ok("GET", "/api/requests")
    assert (found["requests"], found["looks"]) == (sent(running), running.server.console.reader.reads)
    told = {family.name: family.samples for family in running.server.metrics()}
    assert told["tidelog_console_store_requests"] == [({}, found["requests"])]
    assert told["tidelog_console_looks"] == [({}, found["looks"])] == [({}, 2)]
