"""A handle of another incarnation of its topic, what changes between staging and committing, and appends that fail."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from support.logs import START_MS, memory_lake, open_lake, quiet, read, read_offsets, stage, values
from support.rewrites import merge

from tidelog.log.base.errors import (
    InvalidConfigError,
    InvalidRecordError,
    OutcomeUnknownError,
    StorageError,
    StorageUnavailableError,
    TopicChangedError,
    UnknownTopicError,
)
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import Marker


def lake_with(partitions: int = 1, **config: str) -> Lake:
    lake, _, _ = memory_lake()
    lake.create_topic("t", partitions=partitions, config={k.replace("_", "."): v for k, v in config.items()})
    return lake


# --- lives -------------------------------------------------------------------------------------------------


def test_a_topic_is_created_by_its_first_append() -> None:
    lake, _, _ = memory_lake()
    topic = lake.topic("t")
    assert topic.id == ""
    with pytest.raises(UnknownTopicError):
        topic.offsets()
    assert topic.append(values("a")) == {0: (0, 1)}
    assert topic.id == lake.describe_topic("t").id != ""


def every_use(topic: Any) -> list[Any]:
    return [
        lambda: topic.append(values("x")),
        lambda: topic.commit(stage(topic, "x")),
        lambda: topic.append(values(), marker=Marker("q", 1, strict=True)),
        lambda: topic.read(0),
        lambda: topic.offsets(),
        lambda: topic.offsets_for_times({0: 0}),
        lambda: topic.state(),
    ]


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("elsewhere", [True, False])
@pytest.mark.parametrize("use", range(7))
def test_a_handle_of_another_life_is_told(again: bool, elsewhere: bool, use: int) -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    old = lake.topic("t")
    old.append(values("a", "b"))
    admin = open_lake(storage, clock) if elsewhere else lake
    admin.delete_topic("t")
    if again:
        admin.create_topic("t")
    with pytest.raises(TopicChangedError, match="deleted and created again" if again else "was deleted since"):
        every_use(old)[use]()
    if again:
        assert admin.offsets("t") == {0: (0, 0)}
        assert admin.topic("t").append(values("new")) == {0: (0, 1)}
        assert read(admin, "t") == ["new"]
    else:
        assert admin.topics() == []


def test_a_topic_created_again_is_another_topic() -> None:
    lake, storage, clock = memory_lake()
    first = lake.create_topic("t", partitions=3)
    lake.topic("t").append(values("a", "b", "c", partition=[0, 1, 2]))
    lake.delete_records("t", {1: 1})
    version = lake.topic("t").state().version
    lake.delete_topic("t")
    second = lake.create_topic("t", partitions=2)
    assert second.id != first.id
    assert lake.topic("t").state().version == version + 2
    assert open_lake(storage, clock).offsets("t") == {0: (0, 0), 1: (0, 0)}


# --- what changes between staging and committing -----------------------------------------------------------


def test_a_configuration_that_changes_meanwhile_counts() -> None:
    """Records that were checked against the old one are checked again."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    topic, other = lake.topic("t"), open_lake(storage.inner, clock)

    def shrink(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "after"):
            storage.hook = quiet
            other.alter_topic("t", config={"cleanup.policy": "compact"})

    storage.hook = shrink
    with pytest.raises(InvalidRecordError, match="compacted"):
        topic.append(values("no key"))
    assert [o.path for o in storage.list_after("t/partition=0")] == []
    assert topic.append(values("a", key=[b"k"])) == {0: (0, 1)}


def test_partitions_that_grow_meanwhile_are_used() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    topic = lake.topic("t")
    open_lake(storage, clock).alter_topic("t", partitions=4)
    topic.append(values("a", key=[b"k"]))
    assert len(topic.offsets()) == 4
    assert set(topic.append(values("a", key=[b"foobar"]))) == {2}  # 6 of 8, 2 of 4


def test_log_append_time_never_falls_whatever_the_writers_clocks_say() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", config={"message.timestamp.type": "LogAppendTime"})
    lake.topic("t").append(values("a"))
    behind = open_lake(storage, clock)
    clock.ms -= 5_000
    for _ in range(2):
        behind.topic("t").append(values("b", timestamp=[5]))
    clock.ms += 60_000
    lake.topic("t").append(values("c"))
    times = [t for b in lake.topic("t").read(0) for t in b.column("timestamp").cast(pa.int64()).to_pylist()]
    assert times == [START_MS * 1000] * 3 + [(START_MS + 55_000) * 1000]
    assert {k for b in lake.topic("t").read(0) for k in b.column("timestampType").to_pylist()} == {1}
    segments = [o.path for o in storage.inner.list_after("t/partition=0")]
    assert set(segments) >= {f"t/{s.path}" for s in lake.topic("t").state().all_segments()}


# --- staged segments ---------------------------------------------------------------------------------------


def test_staged_segments_are_nobodys_until_they_are_committed() -> None:
    lake = lake_with(2)
    topic = lake.topic("t")
    staged = stage(topic, "a", "b", partition=[0, 1])
    assert topic.offsets() == {0: (0, 0), 1: (0, 0)}
    assert topic.commit(staged) == {0: (0, 1), 1: (0, 1)}
    assert topic.commit([]) == {}


@pytest.mark.parametrize("error", [StorageError("refused"), KeyboardInterrupt()])
def test_an_append_that_fails_before_its_entry_leaves_no_files(error: BaseException) -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t", partitions=2)
    topic = lake.topic("t")
    puts: list[str] = []

    def fail_at_the_second(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before"):
            puts.append(path)
            if len(puts) == 2:
                raise error

    storage.hook = fail_at_the_second
    with pytest.raises(type(error)):
        topic.append(values("a", "b", partition=[0, 1]))
    storage.hook = quiet
    assert [list(storage.list_after(f"t/partition={p}")) for p in (0, 1)] == [[], []]
    assert topic.append(values("c", partition=[0])) == {0: (0, 1)}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), StorageUnavailableError("timed out")])
def test_segments_of_an_entry_that_may_be_there_stay(error: BaseException) -> None:
    """Ctrl-C, or no answer, after the store took the entry: deleting its segments would lose the records."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    topic = lake.topic("t")
    put: list[str] = []

    def lost(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "after"):
            put.append(path)
            raise error
        if method == "get" and put:
            raise error

    storage.hook = lost
    with pytest.raises((type(error), OutcomeUnknownError)):
        topic.append(values("a"))
    storage.hook = quiet
    assert read(open_lake(storage, clock), "t") == ["a"]


def test_a_store_that_fails_the_clean_up_too_does_not_hide_the_first_error() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t", partitions=2)
    puts: list[str] = []

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before"):
            puts.append(path)
        if len(puts) == 2 and phase == "before":
            raise StorageError(f"{method} fails")

    storage.hook = hook
    with pytest.raises(StorageError, match="put fails"):
        lake.topic("t").append(values("a", "b", partition=[0, 1]))


def test_a_partitioner_that_is_not_known() -> None:
    with pytest.raises(InvalidConfigError, match="Unknown partitioner 'murmur'"):
        lake_with().topic("t").append(values("a"), partitioner="murmur")


# --- many threads ------------------------------------------------------------------------------------------


def test_many_threads_share_a_handle() -> None:
    lake = lake_with(2)
    topic = lake.topic("t")
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda i: topic.append(values(f"{i}", partition=[i % 2])), range(60)))
        reads = list(threads.map(lambda _: len(read(lake, "t", 0)), range(8)))
    for partition in (0, 1):
        offsets = dict(read_offsets(lake, "t", partition))
        assert sorted(offsets) == list(range(30))
        mine = {answers[i][partition][0]: f"{i}" for i in range(60) if i % 2 == partition}
        assert mine == offsets
    assert set(reads) == {30}


def test_a_reader_among_rewrites_never_sees_a_hole() -> None:
    """The segments that leave and the ones that come are one change, in this process too."""
    lake = lake_with()
    for i in range(5):
        lake.topic("t").append(values(f"{i}"))
    topic, stop = lake.topic("t"), Event()

    def rewrite() -> None:
        while not stop.is_set():
            merge(lake, "t")

    with ThreadPoolExecutor(1) as threads:
        rewriting = threads.submit(rewrite)
        try:
            seen = {tuple(o for b in topic.read(0) for o in b.column("offset").to_pylist()) for _ in range(200)}
        finally:
            stop.set()
        rewriting.result()
    assert seen == {tuple(range(5))}


def test_appends_with_acks_0_wait_in_bounded_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a producer that is faster than its disk fills the memory."""
    monkeypatch.setattr("tidelog.log.topic.QUIET_APPENDS", 2)
    lake = lake_with()
    topic, disk = lake.topic("t"), Event()
    lake.background.submit(disk.wait)
    with ThreadPoolExecutor(1) as threads:
        for i in range(2):
            topic.append(values(f"{i}"), acks=0)
        third = threads.submit(topic.append, values("2"), acks=0)
        with pytest.raises(TimeoutError):
            third.result(timeout=0.05)
        disk.set()
        assert third.result(timeout=30) == {}
    lake.close()
    assert read(lake, "t") == ["0", "1", "2"]
