"""Group commit: what becomes one entry, and who is told what."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.group_commits import engine, entries, lake_with, records, sent
from support.logs import Calls, memory_lake, read, values

from tidelog.log.base.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    OutOfOrderSequenceError,
    QueueFullError,
    RecordTooLargeError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.group_commit.engine import REPEATED, Landed, Submission
from tidelog.log.rules.sequences import ProducerBatch

# --- one entry ---------------------------------------------------------------------------------------------


def test_what_waits_becomes_one_entry_and_each_learns_its_offsets() -> None:
    lake, _, clock = lake_with()
    group = engine(lake, clock)
    before = entries(lake)
    futures = [
        group.submit(records("a", "b", "c", partition=[0, 1, 0])),
        group.submit(records("d", partition=1)),
        group.submit(records("e", "f", partition=[1, 0])),
    ]
    group.run_once()
    assert [f.result(0) for f in futures] == [
        Landed({0: (0, 2), 1: (0, 1)}),
        Landed({1: (1, 2)}),
        Landed({0: (2, 3), 1: (2, 3)}),
    ]
    assert (read(lake, "t", 0), read(lake, "t", 1)) == (["a", "c", "f"], ["b", "d", "e"])
    assert entries(lake) == before + 1
    assert [len(lake.topic("t").state().live(p)) for p in (0, 1)] == [1, 1]
    assert (group.due_s(), group.waiting_bytes) == (None, 0)


def test_helpers_write_the_segments() -> None:
    lake, _, clock = lake_with(4)
    with ThreadPoolExecutor(2) as helpers:
        group = engine(lake, clock, helpers)
        future = group.submit(records(*"abcdefgh", partition=[0, 1, 2, 3] * 2))
        group.run_once()
    assert future.result(0).ranges == dict.fromkeys(range(4), (0, 2))
    assert [read(lake, "t", p) for p in range(4)] == [["a", "e"], ["b", "f"], ["c", "g"], ["d", "h"]]


def test_when_it_is_due() -> None:
    lake, _, clock = lake_with()
    group = engine(lake, clock, linger_s=2.0, entry_bytes=100)
    assert group.due_s() is None
    group.submit(records("a"))
    assert group.due_s() == 2.0
    clock.pass_s(0.5)
    group.submit(records("b"))
    assert group.due_s() == 1.5
    group.submit(records("c" * 90))
    assert group.due_s() == 0.0
    group.run_once()
    assert group.due_s() == 2.0  # the last one was too many for one entry, and lingers for its own
    group.run_once()
    assert group.due_s() is None


def test_an_entry_takes_no_more_than_its_bytes_but_always_one_submission() -> None:
    lake, _, clock = lake_with(1)
    group = engine(lake, clock, entry_bytes=100)
    for text in ("a" * 200, "b" * 40, "c" * 40, "d" * 40):
        group.submit(records(text))
    ends = []
    while group.due_s() is not None:
        group.run_once()
        ends.append(lake.offsets("t")[0][1])
    assert ends == [1, 3, 4]


def test_memory_is_bounded() -> None:
    lake, _, clock = lake_with()
    group = engine(lake, clock, waiting_bytes=100)
    first = group.submit(records("a" * 150))  # alone, whatever its size
    with pytest.raises(QueueFullError, match="no more than 100 may"):
        group.submit(records("b"))
    group.run_once()
    assert first.done()
    group.submit(records("b"))


@pytest.mark.parametrize(
    ("acks", "durable"), [((1, 1), False), ((1, -1), True), ((-1, 1), True)], ids=["1, 1", "1, all", "all, 1"]
)
def test_an_entry_is_as_durable_as_anybody_wants(acks: tuple[int, int], durable: bool) -> None:
    calls = Calls()
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    for level in acks:
        group.submit(records("a", acks=level))
    storage.hook = calls
    group.run_once()
    assert ("sync" in calls.take()) == durable


def test_each_producer_gets_its_codec() -> None:
    lake, storage, clock = lake_with(1)
    written: list[bytes] = []

    def note(method: str, path: str, phase: str) -> None:
        if method == "put" and phase == "after":
            written.append(storage.inner.get(path))

    storage.hook = note
    group = engine(lake, clock)
    text = "x" * 10_000
    futures = [
        group.submit(records(text, compression="none")),
        group.submit(records(text, compression="gzip", compression_level=9)),
        group.submit(records(text, compression="none")),
    ]
    group.run_once()
    assert [f.result(0).ranges[0] for f in futures] == [(0, 1), (2, 3), (1, 2)]
    plain, packed = sorted(written, key=len, reverse=True)
    assert len(plain) > 20_000
    assert len(packed) < 3_000


WRONG = {
    "rows and partitions": records("a", "b", partition=[0]),
    "no rows": records(),
    "sequences for another partition": records("a", producer=ProducerBatch(1, 0, {1: (0, 1)})),
    "too many sequences": records("a", producer=ProducerBatch(1, 0, {0: (0, 2)})),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_submission_that_contradicts_itself(wrong: Submission) -> None:
    lake, _, clock = lake_with()
    with pytest.raises(InvalidRecordError):
        engine(lake, clock).submit(wrong)


# --- refused alone -----------------------------------------------------------------------------------------


def test_who_is_refused_fails_alone() -> None:
    lake, _, clock = lake_with(max_message_bytes="50")
    lake.topic("t").append(values("before", partition=[0]))
    group = engine(lake, clock)
    cases: list[tuple[Submission, Any]] = [
        (records("a"), {0: (1, 2)}),
        (records("b" * 51), RecordTooLargeError),
        (records("c", partition=2), UnknownPartitionError),
        (sent(7, 0, "d"), {0: (2, 3)}),
        (sent(7, 5, "e"), OutOfOrderSequenceError),
        (sent(7, 1, "f", "g", partition=[0, 0]), {0: (3, 5)}),
        (sent(7, 0, "d"), {0: REPEATED}),
        (sent(8, 0, "h", epoch=3), {0: (5, 6)}),
        (sent(8, 1, "i", epoch=2), InvalidProducerEpochError),
        (records("j"), {0: (6, 7)}),
    ]
    futures = [group.submit(submission) for submission, _ in cases]
    group.run_once()
    for future, (_, wanted) in zip(futures, cases, strict=True):
        if isinstance(wanted, dict):
            assert future.result(0).ranges == wanted
        else:
            assert type(future.exception(0)) is wanted
    assert read(lake, "t") == ["before", "a", "d", "f", "g", "h", "j"]


def test_a_part_that_is_there_already_is_left_out() -> None:
    lake, _, clock = lake_with()
    group = engine(lake, clock)
    group.submit(sent(7, 0, "a"))
    group.run_once()
    future = group.submit(sent(7, 0, "a", "b", partition=[0, 1]))
    group.run_once()
    assert future.result(0).ranges == {0: REPEATED, 1: (0, 1)}
    assert (read(lake, "t", 0), read(lake, "t", 1)) == (["a"], ["b"])


def test_when_all_are_refused_there_is_no_entry() -> None:
    lake, _, clock = lake_with()
    before = entries(lake)
    group = engine(lake, clock)
    future = group.submit(records("a", partition=9))
    group.run_once()
    assert isinstance(future.exception(0), UnknownPartitionError)
    assert (entries(lake), group.due_s()) == (before, None)


def test_no_topic_and_none_may_be_created() -> None:
    lake, _, clock = memory_lake()
    lake.alter_config({"auto.create.topics.enable": "false"})
    group = engine(lake, clock)
    future = group.submit(records("a"))
    group.run_once()
    assert isinstance(future.exception(0), UnknownTopicError)
    lake.create_topic("t")
    future = group.submit(records("a"))
    group.run_once()
    assert future.result(0).ranges == {0: (0, 1)}
