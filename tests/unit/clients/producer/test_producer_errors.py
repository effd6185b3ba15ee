"""What becomes of a producer's records when something is wrong: with one of them, with the topic, with the store."""

import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.logs import quiet, read
from support.producers import Delivered, live_lake, producer

from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.log.base.clock import SystemClock
from tidelog.log.base.errors import StorageFullError, StorageUnavailableError
from tidelog.log.records.partitioners import partition


def failing(times: int, method: str, phase: str = "before", error: type[Exception] = StorageUnavailableError) -> Any:
    """A hook that fails the first `times` such calls about topic t."""
    left = [times]

    def hook(called: str, path: str, at: str) -> None:
        if (called, at) == (method, phase) and path.startswith("t/") and left[0]:
            left[0] -= 1
            raise error("the store says no")

    return hook


# --- one record --------------------------------------------------------------------------------------------


def test_a_record_that_is_refused_fails_alone() -> None:
    lake, _ = live_lake()
    lake.create_topic("t", 2, {"max.message.bytes": "100"})
    told = Delivered()
    records: list[tuple[dict[str, Any], int | None]] = [
        ({"value": b"a", "partition": 0}, None),
        ({"value": b"b" * 101, "partition": 0}, KafkaError.MSG_SIZE_TOO_LARGE),
        ({"value": b"c", "partition": 0}, None),
        ({"value": b"d", "partition": 2}, KafkaError._UNKNOWN_PARTITION),
        ({"value": b"e", "partition": -5}, KafkaError._UNKNOWN_PARTITION),
        ({"value": b"f", "partition": 1, "timestamp": 2**60}, KafkaError.INVALID_TIMESTAMP),
        ({"value": b"g", "partition": 1, "timestamp": -7}, KafkaError.INVALID_TIMESTAMP),
        ({"value": b"h", "partition": 1}, None),
        ({"value": b"i" * 101, "partition": 1}, KafkaError.MSG_SIZE_TOO_LARGE),
        ({"value": b"j", "partition": 0}, None),
    ]
    with producer(lake, linger_ms=600_000, delivery_timeout_ms=900_000, on_delivery=told) as p:
        for record, _ in records:
            p.produce("t", **record)
    assert told.codes == [code for _, code in records]
    assert [m.offset() for e, m in told.all if e is None] == [0, 1, 0, 2]
    assert all(m.error() is e for e, m in told.all)
    assert told.all[3][1].partition() == 2
    assert (read(lake, "t", 0), read(lake, "t", 1)) == (["a", "c", "j"], ["h"])
    with producer(lake) as p:  # the sequences of those that failed were never used
        p.produce("t", b"k", partition=0, callback=told)
    assert told.codes[-1] is None


def test_a_compacted_topic_takes_no_record_without_a_key() -> None:
    lake, _ = live_lake()
    lake.create_topic("t", 1, {"cleanup.policy": "compact"})
    told = Delivered()
    with producer(lake, on_delivery=told) as p:
        p.produce("t", b"a", b"k")
        p.produce("t", b"b")
        p.produce("t", b"c", b"k")
    assert told.codes == [None, KafkaError.INVALID_RECORD, None]


def test_a_partitioner_that_answers_nonsense() -> None:
    lake, _ = live_lake()
    lake.create_topic("t", 2)
    told = Delivered()
    with producer(lake, partitioner=lambda keys, n: [n] * len(keys), on_delivery=told) as p:
        p.produce("t", b"a")
    ((error, _),) = told.all
    assert "Partition 2 in row 0 does not exist" in error.str()
    with producer(lake, partitioner=lambda keys, n: 1 / 0, on_delivery=told) as p:
        p.produce("t", b"a")
    assert "ZeroDivisionError" in told.all[1][0].str()


# --- the topic ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["lake", "producer"])
def test_no_topic_and_none_may_be_created(who: str) -> None:
    lake, _ = live_lake()
    if who == "lake":
        lake.alter_config({"auto.create.topics.enable": "false"})
    told = Delivered()
    with producer(lake, on_delivery=told, allow_auto_create_topics=who == "lake") as p:
        p.produce("t", b"a")
        p.flush()
        assert told.codes == [KafkaError.UNKNOWN_TOPIC_OR_PART]
        lake.create_topic("t", 1)
        p.produce("t", b"b")
    assert told.codes[1:] == [None]
    assert read(lake, "t") == ["b"]


def test_a_topic_that_is_deleted_and_created_again_with_fewer_partitions() -> None:
    lake, _ = live_lake()
    lake.create_topic("t", 8)
    told = Delivered()
    with producer(lake, on_delivery=told) as p:
        for key in (b"a", b"b", b"c"):
            p.produce("t", key, key)
        p.flush()
        lake.delete_topic("t")
        lake.create_topic("t", 1)
        for key in (b"a", b"b", b"c"):
            p.produce("t", key, key)
        p.produce("t", b"x", partition=7)
    assert told.codes == [None] * 6 + [KafkaError._UNKNOWN_PARTITION]
    assert read(lake, "t") == ["a", "b", "c"]


def test_new_partitions_are_used() -> None:
    lake, _ = live_lake()
    lake.create_topic("t", 1)
    with producer(lake) as p:
        p.produce("t", b"a")
        p.flush()
        lake.alter_topic("t", partitions=3)
        p.produce("t", b"b", partition=2)
        p.flush()
    assert read(lake, "t", 2) == ["b"]


# --- the store ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize(
    ("method", "phase"), [("put", "before"), ("put_if_absent", "before"), ("put_if_absent", "after")]
)
def test_a_store_that_recovers_gets_each_record_once_in_order(method: str, phase: str, idempotent: bool) -> None:
    lake, storage = live_lake()
    lake.create_topic("t", 1)
    told = Delivered()
    with producer(lake, on_delivery=told, enable_idempotence=idempotent, retry_backoff_ms=1) as p:
        for i in range(30):
            if i % 10 == 0:
                p.flush()
                storage.hook = failing(5, method, phase)
            p.produce("t", str(i))
        p.flush()
        storage.hook = quiet
    assert told.codes == [None] * 30
    assert read(lake, "t") == [str(i) for i in range(30)]
    assert [m.offset() for _, m in told.all] == list(range(30))


def test_records_time_out_and_later_ones_do_not() -> None:
    lake, storage = live_lake()
    lake.create_topic("t", 1)
    told = Delivered()
    with producer(lake, on_delivery=told, delivery_timeout_ms=300, linger_ms=0, retry_backoff_ms=1) as p:
        storage.hook = failing(10**9, "put")
        p.produce("t", b"a")
        p.produce("t", b"b")
        while len(told.all) < 2:
            p.poll(10)
        assert told.codes == [KafkaError._MSG_TIMED_OUT] * 2
        storage.hook = quiet
        p.produce("t", b"c")
    assert told.codes[2:] == [None]
    assert read(lake, "t") == ["c"]


class Ahead(SystemClock):
    """A clock that a test puts forward."""

    ahead_s = 0.0

    def elapsed_s(self) -> float:
        return super().elapsed_s() + self.ahead_s


def test_what_follows_a_delivery_without_an_answer_is_no_repeat_of_it() -> None:
    """It had landed, under the sequence that the producer would give to the next record but for a new epoch."""
    clock = Ahead()
    lake, storage = live_lake(clock=clock)
    lake.create_topic("t", 1)
    delivered = Delivered()

    def lands_in_silence(method: str, path: str, phase: str) -> None:
        if path.startswith("t/_delta_log/0") and (method, phase) == ("put_if_absent", "after"):
            clock.ahead_s = 1_000
        if path.startswith("t/_delta_log/0") and clock.ahead_s:
            raise StorageUnavailableError("no answer")

    with producer(lake, linger_ms=0, delivery_timeout_ms=60_000, on_delivery=delivered) as p:
        for value, hook in ((b"first", quiet), (b"unanswered", lands_in_silence), (b"next", quiet)):
            storage.hook = hook
            p.produce("t", value)
            p.flush()
    assert delivered.codes == [None, KafkaError._MSG_TIMED_OUT, None]
    assert read(lake, "t") == ["first", "unanswered", "next"]


def test_a_store_without_room() -> None:
    lake, storage = live_lake()
    lake.create_topic("t", 1)
    told = Delivered()
    with producer(lake, on_delivery=told) as p:
        storage.hook = failing(1, "put", "before", StorageFullError)
        p.produce("t", b"a")
        p.flush()
        p.produce("t", b"b")
    assert told.codes == [KafkaError.KAFKA_STORAGE_ERROR, None]
    assert read(lake, "t") == ["b"]


def test_retries_are_counted() -> None:
    lake, storage = live_lake()
    lake.create_topic("t", 1)
    told = Delivered()
    with producer(lake, on_delivery=told, retries=2, retry_backoff_ms=1) as p:
        storage.hook = failing(3, "put")
        p.produce("t", b"a")
        p.flush()
        p.produce("t", b"b")
    assert told.codes == [KafkaError.KAFKA_STORAGE_ERROR, None]


def test_acks_0_tells_at_once_and_nothing_of_failures(caplog: pytest.LogCaptureFixture) -> None:
    lake, storage = live_lake()
    lake.create_topic("t", 1)
    gate, told = threading.Event(), Delivered()

    def closed(method: str, path: str, phase: str) -> None:
        if method == "put":
            gate.wait(30)
            raise StorageFullError("no")

    storage.hook = closed
    with caplog.at_level(logging.WARNING, "tidelog.clients"), producer(lake, acks=0, on_delivery=told) as p:
        p.produce("t", b"a")
        assert p.flush() == 0
        gate.set()
    ((error, message),) = told.all
    assert (error, message.offset(), message.value()) == (None, None, b"a")
    assert "1 records for topic 't' were lost, as acks=0 allows" in caplog.text
    assert read(lake, "t") == []


@pytest.mark.parametrize(("acks", "synced"), [("all", True), (1, False)])
def test_acks(acks: Any, synced: bool) -> None:
    seen = []
    lake, storage = live_lake()
    lake.create_topic("t", 1)
    storage.hook = lambda method, path, phase: seen.append(method)
    with producer(lake, acks=acks) as p:
        p.produce("t", b"a")
        p.flush()
    assert ("sync" in seen) == synced


# --- giving up ---------------------------------------------------------------------------------------------


def stuck() -> tuple[Any, Callable[[], None], threading.Event]:
    """A lake whose segments wait at the store; how to open it; set once the first is there."""
    lake, storage = live_lake()
    lake.create_topic("t", 1)
    gate, arrived = threading.Event(), threading.Event()

    def wait(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before"):
            arrived.set()
            gate.wait(30)

    storage.hook = wait
    return lake, gate.set, arrived


def test_flush_gives_up_waiting_and_says_how_many_are_left() -> None:
    lake, release, arrived = stuck()
    p = producer(lake, linger_ms=0)
    p.produce("t", b"a")
    assert arrived.wait(30)
    p.produce("t", b"b")
    assert p.flush(0.05) == 2
    release()
    assert p.flush() == 0
    p.close()
    assert read(lake, "t") == ["a", "b"]


@pytest.mark.parametrize(
    ("what", "codes"),
    [
        ({"in_flight": False}, [None, KafkaError._PURGE_QUEUE]),
        ({"in_queue": False}, [KafkaError._PURGE_INFLIGHT, None]),
        ({}, [KafkaError._PURGE_INFLIGHT, KafkaError._PURGE_QUEUE]),
    ],
)
def test_purge(what: dict[str, bool], codes: list[int | None]) -> None:
    lake, release, arrived = stuck()
    told = Delivered()
    p = producer(lake, linger_ms=0, on_delivery=told)
    p.produce("t", b"0")
    assert arrived.wait(30)
    p.produce("t", b"1")
    p.purge(**what)
    release()
    assert p.flush() == 0
    assert {int(m.value()): None if e is None else e.code() for e, m in told.all} == dict(enumerate(codes))
    p.produce("t", b"2")  # what is on its way may land all the same: a new epoch needs no answer
    p.close()
    assert told.codes[-1] is None


def test_closing_gives_up_what_the_time_does_not_suffice_for() -> None:
    lake, release, arrived = stuck()
    told = Delivered()
    p = producer(lake, linger_ms=0, on_delivery=told)
    p.produce("t", b"0")
    assert arrived.wait(30)
    p.produce("t", b"1")
    threading.Timer(0.2, release).start()
    p.close(0.05)
    assert sorted(code for code in told.codes if code) == [KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT]
    assert len(p) == 0


# --- tables ------------------------------------------------------------------------------------------------


def test_a_table_lands_between_the_records_before_and_after() -> None:
    lake, _ = live_lake()
    lake.create_topic("t", 2)
    told = Delivered()
    with producer(lake, on_delivery=told) as p:
        p.produce("t", b"before", partition=0)
        future = p.produce_table("t", pa.table({"value": [b"a", b"b", b"c"], "partition": [0, 1, 0]}))
        p.produce("t", b"after", partition=0)
    assert future.result(0) == {0: (1, 3), 1: (0, 1)}
    assert (read(lake, "t", 0), read(lake, "t", 1)) == (["before", "a", "c", "after"], ["b"])
    assert [place[1] for place in told.places] == [0, 3]


def test_a_large_table_is_several_entries() -> None:
    lake, _ = live_lake()
    lake.create_topic("t", 1)
    with producer(lake) as p:
        future = p.produce_table("t", pa.table({"value": pa.array(range(600_000)).cast(pa.string())}))
        assert len(p) == 600_000
        assert p.flush() == 0
    assert future.result(0) == {0: (0, 600_000)}
    assert lake.topic("t").state().version >= 3


def test_every_part_of_a_table_goes_by_its_keys() -> None:
    lake, _ = live_lake()
    lake.create_topic("t", 3)
    keys = pa.array([b"%d" % (i % 100) for i in range(600_000)])
    with producer(lake) as p:
        p.produce_table("t", pa.table({"key": keys, "value": pa.array(range(600_000)).cast(pa.string())}))
    chosen = partition(keys, 3)
    for number in range(3):
        batches = lake.topic("t").read(number)
        found = np.concatenate([batch.column("value").cast(pa.string()).cast(pa.int64()) for batch in batches])
        assert (found == np.flatnonzero(chosen == number)).all()


def test_a_table_with_a_wrong_row_fails_from_its_part_on() -> None:
    lake, _ = live_lake()
    lake.create_topic("t", 1, {"max.message.bytes": "1000"})
    values = [b"x"] * 600_000
    values[300_000] = b"x" * 1001
    with producer(lake) as p:
        future = p.produce_table("t", pa.table({"value": pa.array(values)}))
        after = p.produce_table("t", pa.record_batch({"value": [b"after"]}))
    with pytest.raises(KafkaException) as refused:
        future.result(0)
    assert refused.value.args[0] == KafkaError.MSG_SIZE_TOO_LARGE
    ((first, end),) = after.result(0).values()
    assert 0 < first == end - 1 < 300_000


WRONG: list[tuple[Any, type[Exception], str]] = [
    ([b"a"], TypeError, "takes a pyarrow Table"),
    (pa.table({"key": [b"a"]}), KafkaException, "no column 'value'"),
    (pa.table({"value": [b"a"], "amount": [1]}), KafkaException, "amount"),
]


@pytest.mark.parametrize(("table", "error", "says"), WRONG)
def test_what_is_no_table_of_records(table: Any, error: type[Exception], says: str) -> None:
    lake, _ = live_lake()
    with producer(lake) as p, pytest.raises(error, match=says):
        p.produce_table("t", table)


def test_an_empty_table_is_nothing_to_do() -> None:
    lake, _ = live_lake()
    with producer(lake) as p:
        assert p.produce_table("t", pa.table({"value": pa.array([], pa.binary())})).result(0) == {}
    assert lake.topics() == []


def test_a_table_waits_for_room() -> None:
    lake, release, arrived = stuck()
    p = producer(lake, queue_buffering_max_kbytes=1)
    table = pa.table({"value": [b"x" * 2000]})
    first = p.produce_table("t", table)  # alone, whatever its size
    assert arrived.wait(30)
    with pytest.raises(BufferError):
        p.produce_table("t", table)
    release()
    p.flush()
    p.produce_table("t", table)
    p.close()
    assert first.done()
