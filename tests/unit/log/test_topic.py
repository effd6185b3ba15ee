"""A topic's handle: what an append answers, what a read gives, and what becomes of a handle of another life."""

import logging
from typing import Any

import pyarrow as pa
import pytest
from support.logs import START_MS, Calls, memory_lake, open_lake, read, read_offsets, values

from tidelog.log.base.errors import (
    InvalidConfigError,
    InvalidRecordError,
    OffsetOutOfRangeError,
    StaleBatchError,
    UnknownPartitionError,
)
from tidelog.log.delta.schema import RECORDS, RECORDS_WITH_HEADERS
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import Marker, parse_acks


def lake_with(partitions: int = 1, **config: str) -> Lake:
    lake, _, _ = memory_lake()
    lake.create_topic("t", partitions=partitions, config={k.replace("_", "."): v for k, v in config.items()})
    return lake


# --- append ------------------------------------------------------------------------------------------------


def test_an_append_answers_with_each_partitions_range() -> None:
    topic = lake_with(3).topic("t")
    assert topic.append(values("a", "b", "c", partition=[2, 0, 2])) == {0: (0, 1), 2: (0, 2)}
    assert topic.append(values("d", partition=[2])) == {2: (2, 3)}
    assert topic.offsets() == {0: (0, 1), 1: (0, 0), 2: (0, 3)}


def test_a_record_batch_is_a_table() -> None:
    batch = pa.record_batch({"value": [b"a"]})
    assert lake_with().topic("t").append(batch) == {0: (0, 1)}


@pytest.mark.parametrize("wrong", [[b"a"], {"value": [b"a"]}, None, pa.array([b"a"])])
def test_anything_else_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidRecordError, match=r"append takes a pyarrow Table or RecordBatch, .* not"):
        lake_with().topic("t").append(wrong)


def test_records_keep_their_order_within_a_partition() -> None:
    lake = lake_with(2)
    lake.topic("t").append(values(*"abcdef", partition=[0, 1, 0, 1, 0, 1]))
    lake.topic("t").append(values(*"gh", partition=[1, 0]))
    assert (read(lake, "t", 0), read(lake, "t", 1)) == (list("aceh"), list("bdfg"))


def test_keys_choose_the_partition_and_nulls_go_in_turn() -> None:
    lake = lake_with(8)
    topic = lake.topic("t")
    assert topic.append(values("a", key=[b"foobar"])).keys() == {6}  # Kafka's murmur2 vector
    assert topic.append(values("a", key=[b"foobar"]), partitioner="murmur3").keys() != {6}
    chosen = [set(topic.append(values("x", "y"))) for _ in range(8)]
    assert all(len(c) == 1 for c in chosen)
    assert len(set.union(*chosen)) == 8


def test_no_records_change_nothing() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t")
    topic, calls = lake.topic("t"), Calls()
    storage.hook = calls
    assert topic.append(values()) == {}
    assert topic.append(values(), acks=0) == {}
    assert calls.take() == []
    with pytest.raises(InvalidRecordError, match="no column 'value'"):
        topic.append(pa.table({"key": pa.array([], pa.binary())}))


def test_no_records_create_no_topic() -> None:
    lake, _, _ = memory_lake()
    assert lake.topic("t").append(values()) == {}
    assert lake.topics() == []


def test_an_empty_batch_with_a_marker_leaves_the_marker() -> None:
    lake = lake_with()
    assert lake.topic("t").append(values(), marker=Marker("q", 3, strict=True)) == {}
    assert lake.topic("t").state().txn("q") == 3


def test_a_marked_batch_is_appended_once() -> None:
    lake = lake_with()
    topic = lake.topic("t")
    assert topic.append(values("a"), marker=Marker("q", 0, strict=True)) == {0: (0, 1)}
    assert topic.append(values("a"), marker=Marker("q", 0, strict=True)) == {}
    assert topic.append(values("b"), marker=Marker("q", 1, strict=True)) == {0: (1, 2)}
    with pytest.raises(StaleBatchError):
        topic.append(values("a"), marker=Marker("q", 0, strict=True))
    assert read(lake, "t") == ["a", "b"]


@pytest.mark.parametrize(
    ("acks", "parsed"), [(0, 0), ("0", 0), (1, 1), ("1", 1), (-1, -1), ("-1", -1), ("all", -1), (" ALL ", -1)]
)
def test_acks(acks: Any, parsed: int) -> None:
    assert parse_acks(acks) == parsed
    lake = lake_with()
    lake.topic("t").append(values("a"), acks=acks)
    lake.close()
    assert read(lake, "t") == ["a"]


@pytest.mark.parametrize("acks", [2, "two", None, 1.5, ""])
def test_acks_that_are_none(acks: Any) -> None:
    with pytest.raises(InvalidConfigError, match=r"for acks: it is 0, 1, -1 or 'all'"):
        lake_with().topic("t").append(values("a"), acks=acks)


def test_acks_0_tells_nobody_but_the_log(caplog: pytest.LogCaptureFixture) -> None:
    lake = lake_with()
    with caplog.at_level(logging.WARNING, "tidelog.log"):
        assert lake.topic("t").append(values("a", partition=[7]), acks=0) == {}
        lake.close()
    assert "An append with acks=0 to topic 't' failed; its records are lost." in caplog.text
    assert read(lake, "t") == []


def test_what_is_synced_when() -> None:
    """acks=1: the entry alone. acks=all: its segments, and those of earlier entries, of every writer."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    mine, theirs, calls = lake.topic("t"), open_lake(storage, clock).topic("t"), Calls()
    storage.hook = calls
    mine.append(values("a"), acks=1)
    assert "sync" not in calls.take()
    theirs.append(values("b"), acks=1)
    calls.take()
    mine.append(values("c"), acks="all")
    synced = [path for method, path in calls.seen if method == "sync"]
    assert len(set(synced)) == 3
    calls.take()
    theirs.append(values("d"), acks="all")
    assert calls.take().count("sync") == 1


def test_an_append_after_appends_of_others_makes_these_durable_too() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    for i in range(3):
        open_lake(storage, clock).topic("t").append(values(f"{i}"), acks=1)
    lake.topic("t").append(values("all"), acks="all")
    open_lake(storage, clock).topic("t").append(values("later"), acks=1)
    storage.inner.lose_power()  # type: ignore[attr-defined]
    fresh = open_lake(storage, clock)
    assert read(fresh, "t", 0, 0, 4) == ["0", "1", "2", "all"]
    assert fresh.offsets("t") == {0: (0, 5)}  # the entry of acks=1 is durable, its segment was not


# --- the calls that it takes -------------------------------------------------------------------------------


def test_an_append_is_two_puts() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t")
    topic, calls = lake.topic("t"), Calls()
    topic.append(values("a"), acks=1)
    storage.hook = calls
    topic.append(values("b"), acks=1)
    assert calls.take() == ["put", "put_if_absent"]
    topic.append(values("c"), acks="all")
    assert sorted(calls.take()) == ["put", "put_if_absent", "sync", "sync", "sync"]
    topic.append(values("d"), acks="all")
    assert calls.take() == ["put", "sync", "put_if_absent"]


def test_an_append_behind_somebody_else_looks_at_the_log_first_from_then_on() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    mine, theirs, calls = lake.topic("t"), open_lake(storage, clock).topic("t"), Calls()
    mine.append(values("a"), acks=1)
    mine.append(values("b"), acks=1)
    theirs.append(values("x"), acks=1)
    storage.hook = calls
    mine.append(values("c"), acks=1)  # a lost race; what is there is read, the log to its head, and it is put again
    assert calls.take() == ["put", "put_if_absent", "get", "get", "get", "put_if_absent"]
    mine.append(values("d"), acks=1)  # others are at work
    assert calls.take() == ["put", "get", "put_if_absent"]
    mine.append(values("e"), acks=1)  # they have gone
    assert calls.take() == ["put", "put_if_absent"]


def test_an_idle_look_is_one_get_and_a_read_lists_nothing() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t")
    topic, calls = lake.topic("t"), Calls()
    topic.append(values("a"))
    storage.hook = calls
    topic.state()
    assert calls.take() == ["get"]
    list(topic.read(0))
    assert calls.take() == ["get", "get"]
    topic.offsets()
    assert calls.take() == ["get"]


def test_reading_on_takes_one_get_an_entry() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    behind = open_lake(storage, clock).topic("t")
    for _ in range(5):
        lake.topic("t").append(values("a"))
    calls = Calls()
    storage.hook = calls
    behind.offsets()
    assert calls.take() == ["get"] * 6


# --- read --------------------------------------------------------------------------------------------------


def test_a_read_gives_the_sources_columns() -> None:
    lake = lake_with()
    headers = pa.array([[("h", b"1")]], pa.map_(pa.string(), pa.binary()))
    lake.topic("t").append(values("v", key=[b"k"], headers=headers, timestamp=[START_MS - 1]))
    (batch,) = lake.topic("t").read(0)
    assert batch.schema == RECORDS
    found = batch.to_pylist()[0]
    assert {k: found[k] for k in ("key", "value", "topic", "partition", "offset", "timestampType")} == {
        "key": b"k",
        "value": b"v",
        "topic": "t",
        "partition": 0,
        "offset": 0,
        "timestampType": 0,
    }
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [(START_MS - 1) * 1000]
    (batch,) = lake.topic("t").read(0, include_headers=True)
    assert batch.schema == RECORDS_WITH_HEADERS
    assert batch.column("headers").to_pylist() == [[{"key": "h", "value": b"1"}]]


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (4, None), (2, 1), (0, -1), (5, 5)])
def test_a_read_out_of_range(start: int, end: int | None) -> None:
    lake = lake_with()
    lake.topic("t").append(values("a", "b", "c"))
    with pytest.raises(OffsetOutOfRangeError, match=rf"offsets {start} to {end} are asked for, but it has 0 to 3"):
        lake.topic("t").read(0, start, end)


def test_a_read_past_the_end_stops_there_and_at_the_end_is_empty() -> None:
    lake = lake_with()
    lake.topic("t").append(values("a", "b", "c"))
    assert read(lake, "t", 0, 1, 99) == ["b", "c"]
    assert read(lake, "t", 0, 3) == []
    assert read(lake, "t", 0, 1, 1) == []


def test_a_read_below_the_log_start() -> None:
    lake = lake_with()
    lake.topic("t").append(values("a", "b", "c"))
    lake.delete_records("t", {0: 2})
    with pytest.raises(OffsetOutOfRangeError, match="deleted by retention or delete_records"):
        lake.topic("t").read(0, 1)
    assert read_offsets(lake, "t") == [(2, "c")]


@pytest.mark.parametrize("partition", [-1, 1])
def test_a_read_of_no_such_partition(partition: int) -> None:
    lake = lake_with()
    with pytest.raises(UnknownPartitionError):
        lake.topic("t").read(partition)
    with pytest.raises(UnknownPartitionError):
        lake.topic("t").offsets_for_times({partition: 0})


def test_a_read_that_began_goes_on_while_others_append() -> None:
    lake = lake_with()
    lake.topic("t").append(values("a"))
    lake.topic("t").append(values("b"))
    batches = lake.topic("t").read(0)
    first = next(batches)
    lake.topic("t").append(values("c"))
    assert [first.column("value")[0].as_py(), *(b.column("value")[0].as_py() for b in batches)] == [b"a", b"b"]
