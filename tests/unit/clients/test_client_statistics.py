"""`stats_cb`: librdkafka's statistics, with the figures of a lake.

`vectors/librdkafka_statistics.json`: the fields of each part and their types, as librdkafka 2.16 tells them.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.consumers import PATIENCE_S, at, consumer, fill
from support.producers import live_lake, producer
from support.waiting import eventually

from tidelog.aio import AIOConsumer, AIOProducer
from tidelog.clients.consumer.consumer_statistics import ConsumerStatistics
from tidelog.clients.producer.producer import Producer
from tidelog.clients.traffic import Window
from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.lake import Lake

FIELDS = json.loads((Path(__file__).parents[1] / "vectors" / "librdkafka_statistics.json").read_text(encoding="utf-8"))
QUICK = {"statistics.interval.ms": 1}


class Told:
    """Keeps its last argument, and can poll until that is as a test wants it."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str) -> None:
        self.texts = [text]

    def when(self, poll: Callable[[float], Any], condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        def found() -> Any:
            if self.texts and condition(document := json.loads(self.texts[0])):
                return document
            poll(0.05)
            return None

        return eventually(found, "statistics as the test wants them")


def parts(kind: str, document: dict[str, Any]) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """(librdkafka's fields of a part, the part here)."""
    known = FIELDS[kind]
    yield known["top"], document
    for name in ("eos", "cgrp"):
        if name in known:
            yield known[name], document[name]
    (broker,) = document["brokers"].values()
    yield known["broker"], broker
    for window in ("int_latency", "outbuf_latency", "rtt", "throttle"):
        yield known["window"], broker[window]
    for topic in document["topics"].values():
        yield known["topic"], topic
        yield known["window"], topic["batchsize"]
        for partition in topic["partitions"].values():
            yield known["partition"], partition


def has_librdkafkas_form(kind: str, document: dict[str, Any]) -> bool:
    for fields, part in parts(kind, document):
        assert {name: type(value).__name__ for name, value in part.items()} == fields
    return document["type"] == kind


def lake_with(partitions: int) -> Lake:
    lake, _ = live_lake()
    lake.create_topic("t", partitions)
    return lake


def test_a_producers_figures() -> None:
    lake, told = lake_with(2), Told()
    conf = {"linger_ms": 60_000, "client_id": "shop", "statistics_interval_ms": 1}
    with producer(lake, stats_cb=told, **conf) as p:
        for i in range(5):
            p.produce("t", b"abc", key=b"k", partition=i % 2)
        before = told.when(p.poll, lambda one: one["msg_cnt"] == 5)
        assert (before["msg_size"], before["msg_max"], before["msg_size_max"]) == (20, 100_000, 1 << 30)
        waiting = before["topics"]["t"]["partitions"]["-1"]
        assert (waiting["msgq_cnt"], waiting["msgq_bytes"]) == (5, 20)
        assert (before["txmsgs"], before["eos"]["idemp_state"]) == (0, "Assigned")
        p.flush()
        after = told.when(p.poll, lambda one: (one["txmsgs"], one["msg_cnt"]) == (5, 0))
    assert has_librdkafkas_form("producer", after)
    assert after["name"].startswith("shop#producer-")
    assert (after["client_id"], after["msg_cnt"], after["tx"], after["txmsg_bytes"]) == ("shop", 0, 1, 20)
    (broker,) = after["brokers"].values()
    assert (broker["nodeid"], broker["state"], broker["req"], broker["txerrs"]) == (0, "UP", {"Produce": 1}, 0)
    assert set(broker["toppars"]) == {"t-0", "t-1"}
    partition = after["topics"]["t"]["partitions"]["0"]
    assert (partition["txmsgs"], partition["txbytes"], partition["hi_offset"]) == (3, 12, 3)
    assert partition["next_ack_seq"] == 3
    assert after["eos"]["producer_id"] > 0


def test_windows_hold_what_came_since_the_last_time() -> None:
    lake, seen = lake_with(1), []

    def told(*path: str) -> int:
        """How many values a window had, over all times."""
        return sum(_at(one, *path, "cnt") for one in seen)

    with producer(lake, stats_cb=lambda text: seen.append(json.loads(text)), statistics_interval_ms=1) as p:
        p.produce("t", b"abc")
        p.flush()
        eventually(lambda: (p.poll(0.05), told("topics", "t", "batchcnt"))[1], "the batch is counted")
        counted = len(seen)
        eventually(lambda: (p.poll(0.05), len(seen) > counted)[1], "the next statistics come")
    broker = ("brokers", next(iter(seen[0]["brokers"])))
    windows = [("topics", "t", "batchcnt"), ("topics", "t", "batchsize"), (*broker, "rtt"), (*broker, "int_latency")]
    assert [told(*path) for path in windows] == [1, 1, 1, 1]
    assert max(_at(one, "topics", "t", "batchsize", "max") for one in seen) == 3


def _at(document: dict[str, Any], *path: str) -> int:
    found: Any = document
    for name in path:
        found = found.get(name, {})
    return found or 0


def test_requests_that_fail_and_are_tried_again_are_counted() -> None:
    lake, storage = live_lake()
    lake.create_topic("t", 1)
    told = Told()

    def away(method: str, path: str, phase: str) -> None:
        if method == "put":
            raise StorageUnavailableError("no answer")

    conf = {"statistics_interval_ms": 1, "retries": 1, "retry_backoff_ms": 1, "linger_ms": 0}
    with producer(lake, stats_cb=told, **conf) as p:
        storage.hook = away
        p.produce("t", b"a")
        document = told.when(p.poll, lambda one: next(iter(one["brokers"].values()))["txerrs"] > 0)
    (broker,) = document["brokers"].values()
    assert broker["txretries"] >= 1
    assert (document["rx"], document["txmsgs"]) == (0, 0)


def test_a_consumers_figures(tmp_path: Path) -> None:
    told = Told()
    with Lake(str(tmp_path)) as lake:
        lake.create_topic("t", 1)
        fill(lake, "t", *"abcde")
        conf = {"statistics_interval_ms": 1, "enable_auto_commit": False, "enable_partition_eof": True}
        with consumer(lake, stats_cb=told, **conf) as c:
            c.subscribe(["t"])
            while (message := c.poll(PATIENCE_S)) is not None and message.error() is None:
                c.commit(message, asynchronous=False)
            document = told.when(c.poll, lambda one: _partition(one)["committed_offset"] == 5)
    assert has_librdkafkas_form("consumer", document)
    partition = _partition(document)
    assert [partition[f"{name}_offset"] for name in ("app", "stored", "committed", "eof", "lo", "hi", "next")] == [
        *(5, 5, 5, 5),
        *(0, 5, 5),
    ]
    assert (partition["consumer_lag"], partition["consumer_lag_stored"], partition["fetch_state"]) == (0, 0, "active")
    assert (partition["rxmsgs"], partition["fetchq_cnt"], document["rxmsgs"]) == (5, 0, 5)
    assert (document["cgrp"]["state"], document["cgrp"]["join_state"]) == ("up", "steady")
    assert (document["cgrp"]["rebalance_cnt"], document["cgrp"]["rebalance_reason"]) == (1, "assigned")
    (broker,) = document["brokers"].values()
    assert broker["req"]["Fetch"] >= 1
    assert broker["req"]["OffsetCommit"] >= 1


def _partition(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["topics"]["t"]["partitions"]["0"]
    return found


def test_records_that_wait_are_a_fetch_queue(tmp_path: Path) -> None:
    with Lake(str(tmp_path)) as lake:
        lake.create_topic("t", 1)
        fill(lake, "t", *"abcde")
        with consumer(lake, stats_cb=print, statistics_interval_ms=60_000, enable_auto_commit=False) as c:
            c.assign([at(2)])
            assert c.poll(PATIENCE_S) is not None
            statistics = c._rebalancing.statistics
            assert isinstance(statistics, ConsumerStatistics)
            partition = _partition(statistics.document())
    assert (partition["fetchq_cnt"], partition["app_offset"], partition["committed_offset"]) == (2, 3, -1001)
    assert (partition["consumer_lag"], partition["consumer_lag_stored"]) == (-1, 2)


def test_nobody_is_told_where_one_of_the_two_keys_is_missing() -> None:
    told = Told()
    for conf in ({"stats_cb": told}, {"statistics_interval_ms": 1}):
        with producer(lake_with(1), **conf) as p:
            p.produce("t", b"a")
            p.flush()
            assert p.poll(0.02) == 0
            assert p._shared.traffic is None
    assert told.texts == []


def test_what_it_raises_is_raised_by_the_call_that_serves_it() -> None:
    seen: list[str] = []

    def raising_once(text: str) -> None:
        seen.append(text)
        if len(seen) == 1:
            raise ValueError("no")

    with Producer({"lake": lake_with(1), "stats_cb": raising_once, **QUICK}) as p:
        with pytest.raises(ValueError, match="no"):
            eventually(lambda: p.poll(0.05), "the statistics are due")
        eventually(lambda: (p.poll(0.05), len(seen) > 1)[1], "the next statistics come")


def test_with_asyncio_it_may_be_a_coroutine_function_and_comes_while_nothing_else_happens(tmp_path: Path) -> None:
    kinds = set()

    async def tell(text: str) -> None:
        await asyncio.sleep(0)
        kinds.add(json.loads(text)["type"])

    Lake(str(tmp_path)).close()

    async def main() -> None:
        conf = {"lake": str(tmp_path), "group.id": "g", "stats_cb": tell, **QUICK}
        async with AIOProducer(conf), AIOConsumer(conf) as reader:
            async with asyncio.timeout(PATIENCE_S):
                while kinds != {"producer", "consumer"}:
                    await reader.poll(0.01)

    asyncio.run(main())


# --- windows -----------------------------------------------------------------------------------------------


def test_a_window_tells_how_values_spread() -> None:
    window = Window()
    window.add(np.arange(1, 101))
    window.add(7)
    found = window.take()
    assert (found["cnt"], found["min"], found["max"], found["sum"]) == (101, 1, 100, 5057)
    assert (found["avg"], found["p50"], found["p95"], found["p99_99"]) == (50, 50, 95, 100)
    assert found["stddev"] == int(np.std([*range(1, 101), 7]))
    assert set(window.take().values()) == {0}


def test_a_window_keeps_three_digits_of_many_values() -> None:
    window = Window()
    window.add([123_456, 123_499, 0])
    found = window.take()
    assert (found["min"], found["max"], found["sum"]) == (0, 123_000, 246_955)
    window.add(np.arange(1_000_000))
    assert len(window._counts) <= 10 + 900 * 5
