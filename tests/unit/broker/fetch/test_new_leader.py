"""A new leader that has not heard of what the last one acknowledged: no consumer hears that the log is shorter."""

import threading
from contextlib import contextmanager

import pytest
from support.broker_fetches import append, fetch
from support.broker_requests import Requests
from support.logs import memory_lake, open_lake

from tidelog.broker.wire.apis import ApiKey
from tidelog.log.follow.tailing import Tailing


@pytest.fixture
def requests(monkeypatch):
    """A broker to which its store reports nothing until it closes, and that knows of three records of topic t."""
    closing = threading.Event()
    monkeypatch.setattr(Tailing, "wait", lambda *_: closing.wait() and ())
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    append(lake, "t", b"0", b"1", b"2")
    with Requests(lake) as requests, closing_at_the_end(closing):
        assert fetch(requests, {"t": {0: 0}}, 12)["t", 0].high_watermark == 3
        append(open_lake(storage, clock), "t", b"3", b"4")
        assert fetch(requests, {"t": {0: 0}}, 12)["t", 0].high_watermark == 3
        yield requests


@contextmanager
def closing_at_the_end(closing):
    try:
        yield
    finally:
        closing.set()


def test_an_epoch_ends_where_the_log_does(requests):
    asked = {"partition": 0, "leader_epoch": 0, "current_leader_epoch": -1}
    body = {"replica_id": -1, "topics": [{"topic": "t", "partitions": [asked]}]}
    ((answer,),) = [t.partitions for t in requests.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, body).topics]
    assert (answer.error_code.value, answer.end_offset) == (0, 5)


def test_the_latest_offset_is_behind_all_records(requests):
    body = {"replica_id": -1, "topics": [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}]}
    (answer,) = requests.ask(ApiKey.LIST_OFFSETS, 7, body).topics
    assert [(p.error_code.value, p.offset) for p in answer.partitions] == [(0, 5)]


def test_a_consumer_that_has_read_further_is_in_range(requests):
    answer = fetch(requests, {"t": {0: 5}}, 12)["t", 0]
    assert (answer.error_code.value, answer.high_watermark) == (0, 5)
    assert fetch(requests, {"t": {0: 6}}, 12)["t", 0].error_code.value == 1
