"""One topic by the console: partitions, configuration, history, consumers; names that no topic should have."""

import pytest
from support.console import running_console

from tidelog.clients.consumer.consumer import Consumer


@pytest.fixture
def running(tmp_path):
    with running_console(tmp_path / "lake") as console:
        yield console


@pytest.fixture
def page(running):
    with running.client() as client:
        yield client


def test_a_topic_has_its_partitions_and_figures(running, page):
    running.lake.create_topic("orders", 2)
    rows = [{"value": b"v", "partition": 1, "timestamp": 1_700_000_000_000 + at} for at in range(7)]
    running.lake.topic("orders").append(rows)
    found = page.ok("GET", "/api/topics/orders")
    assert [(one["start"], one["end"], one["records"]) for one in found["partitions"]] == [(0, 0, 0), (0, 7, 7)]
    assert [one["newest_ms"] for one in found["partitions"]] == [None, 1_700_000_000_006]
    assert (found["name"], found["typed"], found["table"]) == ("orders", False, f"{running.lake.uri}/orders")
    assert page.ok("PATCH", "/api/topics/orders", {"partitions": 4})["partitions"][3]["end"] == 0
    assert "only" in page.refused(400, "PATCH", "/api/topics/orders", {"partitions": 1})


def test_a_configuration_says_where_each_value_was_set(running, page):
    running.lake.create_topic("orders", 1)
    running.lake.alter_config({"log.retention.ms": "5000"})
    rows = {row["name"]: row for row in page.ok("GET", "/api/topics/orders/config")["configs"]}
    assert (rows["retention.ms"]["value"], rows["retention.ms"]["source"]) == ("5000", "lake")
    assert rows["retention.ms"]["default"] == "604800000"
    changes = {"set": {"retention.ms": "7000", "cleanup.policy": "compact"}, "reset": []}
    rows = {row["name"]: row for row in page.ok("PATCH", "/api/topics/orders/config", changes)["configs"]}
    assert (rows["retention.ms"]["value"], rows["retention.ms"]["source"]) == ("7000", "topic")
    assert rows["cleanup.policy"]["value"] == "compact"
    rows = {
        row["name"]: row
        for row in page.ok("PATCH", "/api/topics/orders/config", {"reset": ["retention.ms"]})["configs"]
    }
    assert rows["retention.ms"]["source"] == "lake"
    for wrong in (
        {"set": {"no.such.key": "1"}},
        {"set": {"retention.ms": "x"}},
        {"set": {"retention.ms": 5}},
        {"reset": "retention.ms"},
        {"set": {"retention.ms": "1"}, "reset": ["retention.ms"]},
        {"config": {}},
    ):
        assert page.refused(400, "PATCH", "/api/topics/orders/config", wrong)


def test_a_history_has_the_newest_entries_first(running, page):
    running.lake.create_topic("orders", 1)
    for _ in range(3):
        running.lake.topic("orders").append([{"value": b"v"}])
    running.lake.alter_topic("orders", config={"retention.ms": "1000"})
    entries = page.ok("GET", "/api/topics/orders/history")["entries"]
    assert [one["version"] for one in entries] == [4, 3, 2, 1, 0]
    assert "configuration" in entries[0]["what"]
    assert entries[1]["what"].startswith("1 offsets in 1 partitions")
    assert {one["who"] for one in entries} == {"tidelog"}
    assert [one["version"] for one in page.ok("GET", "/api/topics/orders/history", limit=2)["entries"]] == [4, 3]


def test_consumers_of_a_topic_and_their_lag(running, page):
    running.lake.create_topic("orders", 1)
    running.lake.topic("orders").append([{"value": b"v"}] * 5)
    consumer = Consumer({"lake": running.lake, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert consumer.consume(2, timeout=60)
    consumer.commit(asynchronous=False)
    running.server.console.invalidate()
    (group,) = page.ok("GET", "/api/topics/orders/consumers")["groups"]
    assert (group["group"], group["members"]) == ("readers", 1)
    assert group["lag"] < 5
    assert page.ok("GET", "/api/topics/orders")["groups"] == 1
    consumer.close()
    running.server.console.invalidate()
    assert page.ok("GET", "/api/overview")["groups"] == 1


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"name": ""},
        {"name": "a/b"},
        {"name": "<script>"},
        {"name": "a:b"},
        {"name": "."},
        {"name": "x" * 250},
        {"name": 5},
        {"name": "a", "partitions": 0},
        {"name": "a", "partitions": 10**9},
        {"name": "a", "partitions": "3"},
        {"name": "a", "partitions": True},
        {"name": "a", "config": {"no.such": "1"}},
        {"name": "a", "config": {"retention.ms": 5}},
        {"name": "a", "config": "x"},
        {"name": "a", "more": 1},
    ],
)
def test_what_is_no_topic_is_not_created(running, page, body):
    assert page.refused(400, "POST", "/api/topics", body)
    assert running.lake.topics() == []


def test_a_body_that_is_no_json_or_too_large_is_refused(running, page):
    for content, kind, status in (
        (b"{", "application/json", 400),
        (b"\xff", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"{}", "text/plain", 415),
        (b'{"name": "' + b"a" * 2**20 + b'"}', "application/json", 413),
    ):
        answer = page.post("/api/topics", content=content, headers={"content-type": kind})
        assert answer.status_code == status, answer.text
    packed = {"content-type": "application/json", "content-encoding": "gzip"}
    assert page.post("/api/topics", content=b"{}", headers=packed).status_code == 415
    assert running.lake.topics() == []


def test_topics_are_sorted_and_given_in_pages(running, page):
    for at, name in enumerate(("b", "a", "c")):
        running.lake.create_topic(name, 3 - at, {"retention.ms": ["-1", "5", "9"][at]})
        running.lake.topic(name).append([{"value": b"v"}] * at)
    running.server.console.invalidate()

    def names(**query):
        return [one["name"] for one in page.ok("GET", "/api/topics", **query)["topics"]]

    assert names() == ["a", "b", "c"]
    assert names(sort="partitions", order="desc") == ["b", "a", "c"]
    assert names(sort="records") == ["b", "a", "c"]
    assert names(sort="retention") == ["a", "c", "b"]
    assert names(offset=1, limit=1) == ["b"]
    assert page.ok("GET", "/api/topics", limit=1)["total"] == 3
    for wrong in ({"sort": "x"}, {"order": "up"}, {"limit": "-1"}, {"offset": "x"}):
        assert page.refused(400, "GET", "/api/topics", **wrong)


def test_requests_to_the_store_are_none_on_a_disk(running, page):
    found = page.ok("GET", "/api/requests")
    assert (found["requests"], found["requests_per_minute"]) == (None, None)
    assert found["looks"] >= 1
