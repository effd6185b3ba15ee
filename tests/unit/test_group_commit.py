"""Group commit: what becomes one entry, who is told what, and what happens when the log or the store is unkind."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.faults import FaultyStorage
from support.logs import START_MS, Calls, CountingIds, FakeClock, memory_lake, open_lake, quiet, read, values

from tidelog.log.errors import (
    DeliveryTimeoutError,
    InvalidRecordError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    QueueFullError,
    RecordTooLargeError,
    StorageFullError,
    StorageUnavailableError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.group_commit import REPEATED, GroupCommit, Landed, Limits, Submission
from tidelog.log.lake import Lake
from tidelog.log.sequences import ProducerBatch


def lake_with(partitions: int = 2, hook: Callable[..., None] = quiet, **config: str) -> tuple[Lake, Any, FakeClock]:
    lake, storage, clock = memory_lake(hook)
    lake.create_topic("t", partitions, {k.replace("_", "."): v for k, v in config.items()})
    return lake, storage, clock


def engine(lake: Lake, clock: FakeClock, helpers: Any = None, **limits: Any) -> GroupCommit:
    def open_topic() -> Any:
        lake.ensure_topic("t")
        return lake.topic("t")

    return GroupCommit(open_topic, clock, CountingIds(5_000_000), Limits(**limits), helpers)


def records(*texts: str, partition: int | Sequence[int] = 0, **more: Any) -> Submission:
    chosen = [partition] * len(texts) if isinstance(partition, int) else partition
    return Submission(values(*texts), np.array(chosen, np.int32), **more)


def sent(
    producer: int, first: int, *texts: str, epoch: int = 0, partition: int | Sequence[int] = 0, **more: Any
) -> Submission:
    """Records of a producer, each partition's from sequence `first`."""
    one = records(*texts, partition=partition, **more)
    counts = {int(p): int((one.partitions == p).sum()) for p in np.unique(one.partitions)}
    batch = ProducerBatch(producer, epoch, {p: (first, n) for p, n in counts.items()})
    return records(*texts, partition=partition, producer=batch, **more)


def entries(lake: Lake) -> int:
    return lake.topic("t").state().version


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
        (sent(8, 1, "i", epoch=2), ProducerFencedError),
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


# --- the log changes between staging and commit ------------------------------------------------------------


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


# --- the store fails ---------------------------------------------------------------------------------------


def failing(times: int, method: str, phase: str, error: type[Exception] = StorageUnavailableError) -> Any:
    """A hook that fails the first `times` calls about the topic's log or segments."""
    left = [times]

    def hook(called: str, path: str, at: str) -> None:
        if (called, at) == (method, phase) and path.startswith("t/") and left[0]:
            left[0] -= 1
            raise error("the store says no")

    return hook


def drive(group: GroupCommit, clock: FakeClock, future: Future[Landed], most: int = 200) -> None:
    for _ in range(most):
        if future.done():
            return
        due = group.due_s()
        assert due is not None
        clock.pass_s(due)
        group.run_once()
    pytest.fail("it goes on for ever")


@pytest.mark.parametrize("producer", [None, 7], ids=["plain", "idempotent"])
@pytest.mark.parametrize(
    ("method", "phase"), [("put", "before"), ("put_if_absent", "before"), ("put_if_absent", "after")]
)
@pytest.mark.parametrize("times", [1, 60])
def test_a_store_that_fails_and_recovers(times: int, method: str, phase: str, producer: int | None) -> None:
    """60 times is more than one commit's patience."""
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    first = group.submit(sent(7, 0, "a") if producer else records("a"))
    later = group.submit(sent(7, 1, "b") if producer else records("b"))
    storage.hook = failing(times, method, phase)
    drive(group, clock, first)
    drive(group, clock, later)
    assert read(lake, "t") == ["a", "b"]
    ranges = [f.result(0).ranges[0] for f in (first, later)]
    # An idempotent producer may learn that it landed without learning where.
    assert ranges == [(0, 1), (1, 2)] or (producer and ranges == [REPEATED, REPEATED])


def test_order_is_kept_through_failures() -> None:
    lake, storage, clock = lake_with(1)
    group = engine(lake, clock, entry_bytes=1)
    futures = [group.submit(sent(7, i, str(i))) for i in range(6)]
    storage.hook = failing(45, "put_if_absent", "before")
    for future in futures:
        drive(group, clock, future)
    assert read(lake, "t") == [str(i) for i in range(6)]


def test_what_takes_too_long_is_given_up() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    short, long = group.submit(records("a", timeout_s=5)), group.submit(records("b", timeout_s=60))
    storage.hook = failing(10**9, "put", "before")
    drive(group, clock, short)
    error = short.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert not error.maybe_persisted
    assert 5 <= clock.elapsed_s() - 1000 <= 6
    storage.hook = quiet
    drive(group, clock, long)
    assert read(lake, "t") == ["b"]


def test_what_may_be_there_is_said_to_be() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    short, long = group.submit(sent(7, 0, "a", timeout_s=5)), group.submit(sent(8, 0, "b", timeout_s=500))
    storage.hook = failing(10**9, "put_if_absent", "after")
    drive(group, clock, short)
    error = short.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert error.maybe_persisted
    storage.hook = quiet
    drive(group, clock, long)
    assert read(lake, "t") == ["a", "b"]
    again = group.submit(sent(7, 0, "a"))
    drive(group, clock, again)
    assert again.result(0).ranges == {0: REPEATED}


def test_a_full_disk_is_told_at_once() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    future = group.submit(records("a"))
    storage.hook = failing(1, "put", "before", StorageFullError)
    group.run_once()
    assert isinstance(future.exception(0), StorageFullError)
    assert group.due_s() is None


def test_retries_are_counted() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock, retries=2)
    future = group.submit(records("a"))
    calls = [0]

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before"):
            calls[0] += 1
            raise StorageUnavailableError("no")

    storage.hook = hook
    drive(group, clock, future)
    assert isinstance(future.exception(0), StorageUnavailableError)
    assert calls == [3]


def test_the_pause_between_attempts_grows() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock, backoff_s=1.0, most_backoff_s=4.0)
    group.submit(records("a"))
    storage.hook = failing(10**9, "put", "before")
    pauses = []
    for _ in range(5):
        group.run_once()
        pauses.append(group.due_s())
        clock.pass_s(pauses[-1] or 0)
    assert pauses == [1.0, 2.0, 4.0, 4.0, 4.0]


def test_before_its_time_nothing_is_tried() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    group.submit(records("a"))
    storage.hook = failing(1, "put", "before")
    group.run_once()
    calls = storage.hook = Calls()
    group.run_once()
    assert calls.take() == []


def test_a_fault_in_the_program_is_told_to_all_who_wait() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    futures = [group.submit(records("a")), group.submit(records("b"))]
    storage.hook = failing(1, "put", "before", ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        group.run_once()
    assert [type(f.exception(0)) for f in futures] == [ZeroDivisionError] * 2
    assert group.due_s() is None


def test_cancelling() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock, entry_bytes=1)
    on_its_way, queued = group.submit(records("a")), group.submit(records("b"))
    storage.hook = failing(1, "put", "before")
    group.run_once()
    group.cancel(TimeoutError("enough"))
    assert isinstance(queued.exception(0), TimeoutError)
    assert not on_its_way.done()
    group.cancel(TimeoutError("enough"), in_flight=True)
    assert isinstance(on_its_way.exception(0), TimeoutError)
    clock.pass_s(5)
    group.run_once()
    assert (group.due_s(), read(lake, "t")) == (None, [])


def test_an_answer_is_not_waited_for_longer_than_the_records_have_time() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    future = group.submit(records("a", timeout_s=3))
    storage.hook = failing(10**9, "put_if_absent", "before")
    began = clock.elapsed_s()
    drive(group, clock, future)
    assert isinstance(future.exception(0), DeliveryTimeoutError)
    assert clock.elapsed_s() - began < 6  # a commit's own patience is 30 s
