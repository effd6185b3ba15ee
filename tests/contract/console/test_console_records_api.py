"""Records by the console: pages, filters, forms, one record whole, downloads, new records as they come."""

import io
import json

import httpx
import pyarrow.parquet as pq
import pytest
from support.console import running_console
from support.page_tails import Tailing
from support.passing_clock import PassingClock
from support.registry_servers import running_registry
from support.waiting import eventually

from tidelog.console.records.tails import MOST_A_SECOND


@pytest.fixture
def running(tmp_path):
    with running_console(tmp_path / "lake") as console:
        yield console


@pytest.fixture
def page(running):
    with running.client() as client:
        yield client


def offsets(answer):
    return [(one["partition"], one["offset"]) for one in answer["records"]]


def fill(lake, name, count, partitions=1):
    lake.create_topic(name, partitions)
    topic = lake.topic(name)
    rows = [
        {
            "key": b"k%d" % at,
            "value": json.dumps({"n": at, "inner": {"even": at % 2 == 0}}).encode(),
            "headers": [{"key": "source", "value": b"web" if at % 3 else b"app"}],
            "partition": at % partitions,
            "timestamp": 1_700_000_000_000 + at,
        }
        for at in range(count)
    ]
    topic.append(rows)
    return topic


def test_pages_go_back_from_the_newest_and_forward_again(running, page):
    fill(running.lake, "orders", 10)
    newest = page.ok("GET", "/api/topics/orders/records", limit=4)
    assert offsets(newest) == [(0, 9), (0, 8), (0, 7), (0, 6)]
    assert newest["next"] is None
    older = page.ok("GET", "/api/topics/orders/records", limit=4, cursor=newest["previous"])
    assert offsets(older) == [(0, 5), (0, 4), (0, 3), (0, 2)]
    oldest = page.ok("GET", "/api/topics/orders/records", limit=4, cursor=older["previous"])
    assert offsets(oldest) == [(0, 1), (0, 0)]
    assert (oldest["previous"], oldest["ended"]) == (None, True)
    again = page.ok("GET", "/api/topics/orders/records", limit=3, cursor=older["next"])
    assert offsets(again) == [(0, 6), (0, 7), (0, 8)]


def test_pages_over_all_partitions_are_in_the_order_of_time(running, page):
    fill(running.lake, "orders", 12, partitions=3)
    first = page.ok("GET", "/api/topics/orders/records", **{"from": "earliest"}, limit=5)
    assert [one["timestamp"] - 1_700_000_000_000 for one in first["records"]] == [0, 1, 2, 3, 4]
    second = page.ok("GET", "/api/topics/orders/records", cursor=first["next"], limit=50)
    assert [one["timestamp"] - 1_700_000_000_000 for one in second["records"]] == [*range(5, 12)]
    assert second["ended"]
    at = page.ok("GET", "/api/topics/orders/records", **{"from": "time:1700000000009"}, limit=50)
    assert [one["timestamp"] - 1_700_000_000_000 for one in at["records"]] == [9, 10, 11]
    one = page.ok("GET", "/api/topics/orders/records", **{"from": "2"}, partition=1)
    assert offsets(one) == [(1, 2), (1, 3)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"key": "k1"}, {1, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}),
        ({"text": '"n": 7'}, {7}),
        ({"header": "source:app", "key": "k1"}, {12, 15, 18}),
        ({"header": "other"}, set()),
        ({"path": "$.n=5"}, {5}),
        ({"path": "$.inner.even=true", "key": "k1"}, {10, 12, 14, 16, 18}),
        ({"path": "$.inner.odd"}, set()),
    ],
)
def test_filters(running, page, query, found):
    fill(running.lake, "orders", 20)
    answer = page.ok("GET", "/api/topics/orders/records", **query)
    assert {one["offset"] for one in answer["records"]} == found
    assert (answer["looked_at"], answer["ended"]) == (20, True)


def test_values_are_shown_in_the_form_that_is_asked_for(running, page):
    running.lake.create_topic("orders", 1)
    running.lake.topic("orders").append(
        [{"value": b'{"a": 1}'}, {"value": b"\x00\xff"}, {"value": None}, {"value": b""}]
    )
    shown = [one["value"] for one in page.ok("GET", "/api/topics/orders/records", **{"from": "earliest"})["records"]]
    assert shown == [
        {"as": "json", "text": '{"a": 1}', "size": 8, "cut": False},
        {"as": "hex", "text": "00ff", "size": 2, "cut": False},
        None,
        {"as": "text", "text": "", "size": 0, "cut": False},
    ]
    hexed = page.ok("GET", "/api/topics/orders/records", **{"from": "earliest"}, format="hex")["records"][0]["value"]
    assert (hexed["as"], bytes.fromhex(hexed["text"])) == ("hex", b'{"a": 1}')


def test_values_of_the_lakes_schemas_are_read(running, page, tmp_path):
    with running_registry(tmp_path / "lake") as registry:
        body = {"schema": '{"type":"record","name":"Order","fields":[{"name":"sum","type":"int"}]}'}
        number = httpx.post(f"{registry.url}/subjects/orders-value/versions", json=body).json()["id"]
    running.lake.create_topic("orders", 1)
    running.lake.topic("orders").append([{"value": b"\0" + number.to_bytes(4, "big") + b"\x0e"}])
    (found,) = page.ok("GET", "/api/topics/orders/records", path="$.sum=7")["records"]
    assert found["value"] == {"as": "avro", "text": '{"sum":7}', "size": 6, "cut": False, "schema": number}
    (plain,) = page.ok("GET", "/api/topics/orders/records", format="text")["records"]
    assert plain["value"]["as"] == "text"


def test_a_record_of_ten_megabytes_is_cut_in_lists_and_whole_alone(running, page):
    running.lake.create_topic("large", 1, {"max.message.bytes": "20000000"})
    value = '{"text":"' + "ä" * 5_000_000 + '"}'
    produced = page.ok("POST", "/api/topics/large/records", {"key": {"text": "k"}, "value": {"text": value}})
    assert produced == {"partition": 0, "offset": 0}
    (listed,) = page.ok("GET", "/api/topics/large/records")["records"]
    assert (listed["value"]["cut"], listed["value"]["size"]) == (True, 10_000_011)
    assert 2_000 < len(listed["value"]["text"]) <= 4_096
    whole = page.ok("GET", "/api/topics/large/records/0/0")["value"]
    assert (whole["as"], whole["cut"], whole["text"]) == ("json", False, value)
    raw = page.get("/api/topics/large/records/0/0/raw")
    assert raw.content == value.encode()
    assert raw.headers["content-disposition"] == 'attachment; filename="large-0-0.value"'


def test_a_record_is_produced_as_it_is_given(running, page):
    running.lake.create_topic("orders", 2)
    body = {"partition": 1, "key": None, "value": {"base64": "/w=="}, "headers": [["<b>", {"text": "x"}], ["n", None]]}
    assert page.ok("POST", "/api/topics/orders/records", body) == {"partition": 1, "offset": 0}
    (found,) = page.ok("GET", "/api/topics/orders/records")["records"]
    assert (found["key"], found["value"]["text"]) == (None, "ff")
    assert found["headers"] == [["<b>", {"as": "text", "text": "x", "size": 1, "cut": False}], ["n", None]]


def test_downloads_hold_the_records_that_pass(running, page):
    fill(running.lake, "orders", 30, partitions=2)
    lines = page.get("/api/topics/orders/download", params={"format": "jsonl", "path": "$.inner.even=true"})
    assert [json.loads(line)["key"] for line in lines.text.splitlines()] == [f"k{at}" for at in range(0, 30, 2)]
    parquet = page.get("/api/topics/orders/download", params={"format": "parquet", "partition": 1, "limit": 5})
    table = pq.read_table(io.BytesIO(parquet.content))
    assert table.column("offset").to_pylist() == [0, 1, 2, 3, 4]
    assert table.column("key")[0].as_py() == b"k1"
    assert parquet.headers["content-disposition"] == 'attachment; filename="orders.parquet"'


@pytest.fixture
def tailing(running):
    opened = []

    def tailed(topic, **query):
        opened.append(Tailing(f"{running.url}/api/topics/{topic}/tail", **query))
        opened[-1].wait("heartbeat", 1)
        return opened[-1]

    yield tailed
    running.server.drain()
    for one in opened:
        one.close()


def test_new_records_come_to_all_pages_by_one_follower(running, page, tailing):
    topic = fill(running.lake, "orders", 3, partitions=2)
    both, even = tailing("orders"), tailing("orders", path="$.inner.even=true")
    topic.append([{"value": b'{"inner": {"even": true}, "n": "new"}', "partition": 1}, {"value": b"x", "partition": 0}])
    assert {one["value"]["text"] for one in both.wait("record", 2)} == {'{"inner": {"even": true}, "n": "new"}', "x"}
    assert [one["partition"] for one in even.wait("record", 1)] == [1]


def test_a_flood_is_counted_not_sent(running, tailing):
    running.lake.clock = PassingClock(running.lake.clock)  # all of it comes within a second
    topic = fill(running.lake, "orders", 1)
    tail = tailing("orders")
    topic.append([{"value": b"%d" % at} for at in range(5_000)])

    def dropped():
        return sum(one["count"] for one in tail.named("dropped"))

    eventually(lambda: len(tail.named("record")) + dropped() == 5_000, "each is sent or counted")
    assert len(tail.named("record")) == MOST_A_SECOND


@pytest.mark.parametrize(
    ("status", "path"),
    [
        (404, "/api/topics/none/records"),
        (404, "/api/topics/orders/records?partition=9"),
        (404, "/api/topics/orders/records/0/99"),
        (404, "/api/topics/orders/records/9/0"),
        (400, "/api/topics/orders/records/x/0"),
        (400, "/api/topics/orders/records?partition=-1"),
        (400, "/api/topics/orders/records?from=-5"),
        (400, "/api/topics/orders/records?from=9999999999999999999999"),
        (400, "/api/topics/orders/records?from=time:never"),
        (400, "/api/topics/orders/records?limit=0"),
        (400, "/api/topics/orders/records?limit=501"),
        (400, "/api/topics/orders/records?limit=%C2%B2"),
        (400, "/api/topics/orders/records?cursor=x"),
        (400, "/api/topics/orders/records?cursor=f:1-"),
        (400, "/api/topics/orders/records?path=a.b"),
        (400, "/api/topics/orders/records?path=$.."),
        (400, "/api/topics/orders/records?path=$.a[b"),
        (400, "/api/topics/orders/records?format=html"),
        (400, "/api/topics/orders/records?direction=up"),
        (400, "/api/topics/orders/download?format=csv"),
        (400, "/api/topics/orders/records/0/0/raw?part=topic"),
        (404, "/api/topics/orders/records/0/0/raw?part=key&x=/../.."),
        (404, "/api/topics/..%2F..%2Fetc/nothing"),
        (400, "/api/topics/..%2F..%2Fetc/records"),
        (400, "/api/topics/%00/records"),
        (400, "/api/topics/%FF/config"),
        (400, "/api/topics/" + "a" * 300),
        (404, "/../../../etc/passwd"),
        (404, "/..%2f..%2fetc/passwd"),
        (404, "/api/"),
        (405, "/index.html"),
    ],
)
def test_hostile_requests_are_refused_in_words(running, page, status, path):
    running.lake.create_topic("orders", 1)
    running.lake.topic("orders").append([{"value": b"v"}])
    method = "POST" if status == 405 else "GET"
    assert page.refused(status, method, path) != ""


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"value": "text"},
        {"value": {"text": 5}},
        {"value": {"base64": "!"}},
        {"value": {"text": "a", "base64": "YQ=="}},
        {"value": None, "partition": True},
        {"value": None, "headers": [["a"]]},
        {"value": None, "headers": [[1, None]]},
        {"value": None, "topic": "x"},
        {"value": None, "partition": 10**30},
    ],
)
def test_what_is_no_record_is_not_produced(running, page, body):
    running.lake.create_topic("orders", 1)
    assert page.refused(400, "POST", "/api/topics/orders/records", body)
    assert running.lake.offsets("orders") == {0: (0, 0)}
