"""Group commit when the log changes between staging and commit."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from support.faults import FaultyStorage
from support.group_commits import answers, committed, engine, lake_with, records, sent
from support.logs import START_MS, FakeClock, open_lake, quiet, read, values

from tidelog.log.base.errors import (
    RecordTooLargeError,
    UnknownPartitionError,
)
from tidelog.log.group_commit.requests import ProduceRequests
from tidelog.log.lake import Lake


def at_commit(storage: FaultyStorage, act: Callable[[], None]) -> None:
    """Do `act` once, when the first segment has just been written."""

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "after"):
            storage.hook = quiet
            act()

    storage.hook = hook


def raced(
    act: Callable[[Lake, FakeClock], None], *requests: ProduceRequests, **config: str
) -> tuple[Lake, list[Any], Any]:
    """The outcomes of requests when another process acts between their staging and their commit, and LogAppendTime."""
    lake, storage, clock = lake_with(**config)
    other = open_lake(storage, clock)
    group = engine(lake, clock)
    at_commit(storage, lambda: act(other, clock))
    entry = committed(group, *requests)
    return lake, answers(entry, *requests), entry.outcomes.append_ms


def test_another_process_appends() -> None:
    lake, found, _ = raced(lambda other, _: other.topic("t").append(values("x", partition=[0])), records("a"))
    assert found == [[1]]
    assert read(lake, "t") == ["x", "a"]


def test_a_partition_that_is_younger_than_the_last_look() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    committed(group, records("a"))
    open_lake(storage, clock).alter_topic("t", partitions=5)
    grown = records("b", partition=4)
    assert answers(committed(group, grown), grown) == [[0]]


def test_the_topic_grows() -> None:
    lake, found, _ = raced(lambda other, _: other.alter_topic("t", partitions=5), records("a"))
    assert found == [[0]]
    assert read(lake, "t") == ["a"]


def test_records_are_checked_by_the_configuration_that_they_land_under() -> None:
    lake, found, _ = raced(
        lambda other, _: other.alter_topic("t", config={"max.message.bytes": "10"}), records("a"), records("b" * 11)
    )
    assert found == [[0], RecordTooLargeError]
    assert read(lake, "t") == ["a"]


def test_log_append_time_comes_on() -> None:
    lake, found, append_ms = raced(
        lambda other, _: other.alter_topic("t", config={"message.timestamp.type": "LogAppendTime"}), records("a")
    )
    assert (found, append_ms) == ([[0]], START_MS)
    assert next(lake.topic("t").read(0)).column("timestampType").to_pylist() == [1]


def test_log_append_time_of_another_process_with_a_later_clock() -> None:
    def append(other: Lake, clock: FakeClock) -> None:
        clock.ms += 700
        other.topic("t").append(values("x", partition=[0]))
        clock.ms -= 700

    lake, found, append_ms = raced(append, records("a"), message_timestamp_type="LogAppendTime")
    assert (found, append_ms) == ([[1]], START_MS + 700)
    (batch,) = lake.topic("t").read(0, 1)
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [(START_MS + 700) * 1000]


def test_the_topic_is_deleted_and_created_again() -> None:
    def replace(other: Lake, _: FakeClock) -> None:
        other.delete_topic("t")
        other.create_topic("t", 1)

    lake, found, _ = raced(replace, records("a"), records("b", partition=1))
    assert found == [[0], UnknownPartitionError]
    assert read(lake, "t") == ["a"]


def test_the_same_records_land_by_another_process() -> None:
    """A broker died with the request, and its client sent it again through another one."""

    def repeat(other: Lake, clock: FakeClock) -> None:
        committed(engine(other, clock), sent(7, 0, "a"))

    lake, found, _ = raced(repeat, sent(7, 0, "a"), sent(7, 1, "b"), sent(9, 0, "c"))
    assert found == [[-1], [1], [2]]
    assert read(lake, "t") == ["a", "b", "c"]


def test_nothing_is_left_of_what_was_staged_twice() -> None:
    lake, storage, clock = lake_with()
    at_commit(storage, lambda: open_lake(storage, clock).alter_topic("t", partitions=3) and None)
    committed(engine(lake, clock), records("a"))
    live = {s.path for s in lake.topic("t").state().all_segments()}
    assert {i.path.partition("/")[2] for i in storage.list_after("t/partition=0")} == live
