"""Group commit when the log changes between staging and commit."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from support.faults import FaultyStorage
from support.group_commits import engine, lake_with, records, sent
from support.logs import START_MS, FakeClock, open_lake, quiet, read, values

from tidelog.log.base.errors import (
    RecordTooLargeError,
    UnknownPartitionError,
)
from tidelog.log.group_commit.engine import REPEATED, Landed, Submission
from tidelog.log.lake import Lake


def at_commit(storage: FaultyStorage, act: Callable[[], None]) -> None:
    """Do `act` once, when the first segment has just been written."""

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "after"):
            storage.hook = quiet
            act()

    storage.hook = hook


def raced(act: Callable[[Lake, FakeClock], None], *submissions: Submission, **config: str) -> tuple[Lake, list[Any]]:
    """What submissions get when somebody else acts between their staging and their commit."""
    lake, storage, clock = lake_with(**config)
    other = open_lake(storage, clock)
    group = engine(lake, clock)
    futures = [group.submit(s) for s in submissions]
    at_commit(storage, lambda: act(other, clock))
    group.run_once()
    assert all(f.done() for f in futures)
    return lake, [f.exception(0) or f.result(0) for f in futures]


def test_somebody_else_appends() -> None:
    lake, answers = raced(lambda other, _: other.topic("t").append(values("x", partition=[0])), records("a"))
    assert answers == [Landed({0: (1, 2)})]
    assert read(lake, "t") == ["x", "a"]


def test_the_topic_grows() -> None:
    lake, answers = raced(lambda other, _: other.alter_topic("t", partitions=5), records("a"))
    assert answers == [Landed({0: (0, 1)})]
    assert read(lake, "t") == ["a"]


def test_records_are_checked_by_the_configuration_that_they_land_under() -> None:
    lake, (small, large) = raced(
        lambda other, _: other.alter_topic("t", config={"max.message.bytes": "10"}), records("a"), records("b" * 11)
    )
    assert small == Landed({0: (0, 1)})
    assert isinstance(large, RecordTooLargeError)
    assert read(lake, "t") == ["a"]


def test_log_append_time_comes_on() -> None:
    lake, (answer,) = raced(
        lambda other, _: other.alter_topic("t", config={"message.timestamp.type": "LogAppendTime"}), records("a")
    )
    assert answer == Landed({0: (0, 1)}, append_ms=START_MS)
    assert next(lake.topic("t").read(0)).column("timestampType").to_pylist() == [1]


def test_log_append_time_of_somebody_with_a_later_clock() -> None:
    def append(other: Lake, clock: FakeClock) -> None:
        clock.ms += 700
        other.topic("t").append(values("x", partition=[0]))
        clock.ms -= 700

    lake, (answer,) = raced(append, records("a"), message_timestamp_type="LogAppendTime")
    assert answer == Landed({0: (1, 2)}, append_ms=START_MS + 700)
    (batch,) = lake.topic("t").read(0, 1)
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [(START_MS + 700) * 1000]


def test_the_topic_is_deleted_and_created_again() -> None:
    def replace(other: Lake, _: FakeClock) -> None:
        other.delete_topic("t")
        other.create_topic("t", 1)

    lake, (first, second) = raced(replace, records("a"), records("b", partition=1))
    assert first == Landed({0: (0, 1)})
    assert isinstance(second, UnknownPartitionError)
    assert read(lake, "t") == ["a"]


def test_the_same_records_land_by_another_hand() -> None:
    """A gateway died with the request, and its client sent it again through another one."""

    def repeat(other: Lake, clock: FakeClock) -> None:
        twin = engine(other, clock)
        twin.submit(sent(7, 0, "a"))
        twin.run_once()

    lake, answers = raced(repeat, sent(7, 0, "a"), sent(7, 1, "b"), sent(9, 0, "c"))
    assert answers == [Landed({0: REPEATED}), Landed({0: (1, 2)}), Landed({0: (2, 3)})]
    assert read(lake, "t") == ["a", "b", "c"]


def test_nothing_is_left_of_what_was_staged_twice() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    group.submit(records("a"))
    at_commit(storage, lambda: open_lake(storage, clock).alter_topic("t", partitions=3) and None)
    group.run_once()
    live = {s.path for s in lake.topic("t").state().all_segments()}
    assert {i.path.partition("/")[2] for i in storage.list_after("t/partition=0")} == live
