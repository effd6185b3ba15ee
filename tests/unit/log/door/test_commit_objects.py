"""What a commit brings must be in storage: however it is brought, and whichever process wrote it."""

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa
import pytest
from obstore.store import MemoryStore
from support.group_commits import drive, engine, lake_with, sent
from support.logs import Calls, memory_lake, open_lake, quiet, read, values
from support.row_tables import Table, put
from support.shares import commit_alone
from support.transactions import SharedLake, stage

from tidelog.jobs.on_spark import executor
from tidelog.log.base.errors import MissingSegmentError, StorageUnavailableError
from tidelog.log.config.topics_and_lakes import Codec, TopicConfig
from tidelog.log.lake import Lake
from tidelog.log.records.checks import to_records
from tidelog.log.segments.writer import Staged
from tidelog.log.storage import MemoryStorage, ObjectStorage
from tidelog.log.storage.requests import RequestKind, Requests
from tidelog.log.topic import Marker, Topic
from tidelog.retention.rewrites.execute import execute_unit
from tidelog.retention.rewrites.executors import Task
from tidelog.retention.rewrites.units import unit_of
from tidelog.sinks.options import parse_batch
from tidelog.sinks.tasks import open_target
from tidelog.sinks.tasks import stage as stage_for_spark
from tidelog.transactions.lifecycle import TransactionPhase
from tidelog.transactions.staged_topics import StagedTopics

Takes = Callable[[str, str, str], None]


def staged_by(topic: Topic, *texts: str) -> list[Staged]:
    """Segments that some process has staged."""
    stager = topic.stager()
    table = values(*texts, partition=[n % 2 for n in range(len(texts))])
    records = to_records(table, topic.name, topic.config(), 0)
    stager.add(records, np.array([n % 2 for n in range(len(texts))], np.int32))
    return stager.finish()


# --- every way ---------------------------------------------------------------------------------------------


def takes_files(of: Any, times: int = 1) -> Takes:
    """A store's hook: the first Parquet files that are stored are gone at once."""
    left = [times]

    def hook(method: str, path: str, phase: str) -> None:
        if left[0] and method in ("put", "create") and phase == "after" and path.endswith(".parquet"):
            left[0] -= 1
            of.inner.delete(path)

    return hook


def by_append() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t", 2)
    storage.hook = takes_files(storage)
    lake.topic("t").append(values("a"))


def by_commit(acks: int | str) -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t", 2)
    staged = staged_by(lake.topic("t"), "a", "b")
    storage.delete(f"t/{staged[1].path}")
    lake.topic("t").commit(staged, acks=acks)


def by_a_torn_file() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t", 2)
    (staged,) = staged_by(lake.topic("t"), "a")
    storage.put(f"t/{staged.path}", storage.get(f"t/{staged.path}")[:-1])
    lake.topic("t").commit([staged], acks=1)


def by_a_share() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t", 2)
    topic = lake.topic("t")
    (staged,) = staged_by(topic, "a")
    storage.delete(f"t/{staged.path}")
    commit_alone(topic, [staged])


def by_a_row() -> None:
    table = Table()
    put(table.log, before=1)
    table.storage.hook = takes_files(table.storage)
    put(table.log, word=1)


def by_a_transaction() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1")
    shared.storage.hook = takes_files(shared.storage)
    try:
        producer.commit()
    finally:
        assert producer.phase is TransactionPhase.OPEN  # nothing is decided
        producer.abort()
        assert shared.seen() == [[], []]


def by_a_transaction_of_others_segments() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    staged = staged_by(shared.process().lake.topic("a"), "1")
    shared.storage.delete(f"a/{staged[0].path}")
    producer.begin()
    producer.add_staged("a", staged)
    producer.commit()


def by_a_task_of_the_sink(folder: Path) -> None:
    lake = Lake(str(folder / "lake"))
    options = parse_batch({"lake": lake.uri, "topic": "t"}, None)
    target = open_target(lake, "t", None)
    lake.storage = Forgetful("m")
    stage_for_spark(values("a").to_batches(), ["value"], options, lake, target, 0)


class Forgetful(MemoryStorage):
    """A store that keeps no segment."""

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Nothing."""


WAYS: dict[str, Callable[[], None]] = {
    "append": by_append,
    "commit, acks=all": lambda: by_commit("all"),
    "commit, acks=1": lambda: by_commit(1),
    "commit of a torn file": by_a_torn_file,
    "a share": by_a_share,
    "rows": by_a_row,
    "a transaction": by_a_transaction,
    "a transaction, staged by others": by_a_transaction_of_others_segments,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_no_commit_succeeds_without_its_segment(way: Callable[[], None]) -> None:
    with pytest.raises(MissingSegmentError, match=r"not in storage: \S+ (is not there|has \d+ bytes)") as caught:
        way()
    assert "Nothing was committed" in str(caught.value)
    assert "Write the records again" in str(caught.value)


def test_a_task_of_the_sink_that_finds_nothing_of_what_it_staged_fails(tmp_path: Path) -> None:
    with pytest.raises(MissingSegmentError, match="is not there"):
        by_a_task_of_the_sink(tmp_path)


def test_nothing_is_in_the_log_after_it() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 2)
    topic = lake.topic("t")
    staged = staged_by(topic, "a", "b", "c")
    storage.delete(f"t/{staged[0].path}")
    with pytest.raises(MissingSegmentError, match=rf"t/{staged[0].path} is not there"):
        topic.commit(staged)
    assert open_lake(storage, clock).offsets("t") == {0: (0, 0), 1: (0, 0)}
    topic.append(values("d"))


def test_a_unit_of_maintenance_whose_output_is_gone_fails_and_stages_nothing() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t")
    for text in "ab":
        lake.topic("t").append(values(text))
    state = lake.topic("t").state()
    unit = unit_of(state, "t", list(state.live(0)), TopicConfig.parse({}), Codec("none", None))
    storage.hook = takes_files(storage)
    done = execute_unit(storage, unit, lake.ids)
    assert (done.outputs, "not in storage" in (done.failure or "")) == ((), True)


class OneTask:
    """A frame of Spark's with one unit, whose task runs on a machine that has the lake's folder for itself."""

    sparkContext = None  # noqa: N815 - Spark's own name

    def __init__(self, task: Task, folder: Path) -> None:
        self._rows = pa.record_batch([pa.array([pickle.dumps(task)], pa.binary())], names=["value"])
        self._folder = folder

    def mapInArrow(self, function: Callable[..., Any], _: str) -> Self:  # noqa: N802 - Spark's own name
        """Run the task; what it writes is not where the driver looks."""
        before = set(self._folder.rglob("*.parquet"))
        self._done = list(function(iter([self._rows])))
        for path in set(self._folder.rglob("*.parquet")) - before:
            path.unlink()
        return self

    def collect(self) -> list[tuple[bytes]]:
        """The task's answer."""
        return [(batch.column(0)[0].as_py(),) for batch in self._done]


def test_a_unit_that_a_spark_task_wrote_elsewhere_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(str(tmp_path))
    lake.create_topic("t")
    for text in "ab":
        lake.topic("t").append(values(text))
    state = lake.topic("t").state()
    frame = OneTask(
        Task(unit_of(state, "t", list(state.live(0)), TopicConfig.parse({}), Codec("none", None))), tmp_path
    )
    monkeypatch.setattr(executor, "numbered", lambda *_: frame)
    (done,) = executor.SparkExecutor(cast(Any, frame), str(tmp_path)).run([Task(cast(Any, None))])
    assert (done.outputs, "not in storage" in (done.failure or "")) == ((), True)


# --- what goes on all the same -----------------------------------------------------------------------------


def test_a_segment_of_an_earlier_entry_that_is_lost_stops_nobody() -> None:
    """That is what a power cut does to acks=1; readers of that segment get an error."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    lake.topic("t").append(values("lost"), acks=1)
    storage.inner.lose_power()  # type: ignore[attr-defined]
    for writer in (lake, open_lake(storage, clock)):
        writer.topic("t").append(values("after"))
    assert read(lake, "t", start=1) == ["after", "after"]


def test_a_producer_stages_its_records_again() -> None:
    lake, storage, clock = lake_with()
    storage.hook = takes_files(storage, 3)
    group = engine(lake, clock)
    entry = group.begin(sent(7, 0, "a"))
    drive(entry, clock)
    assert (entry.outcomes.ranges, read(lake, "t")) == ({0: (0, 1)}, ["a"])


def test_a_producer_in_doubt_stages_again_once_it_is_sure() -> None:
    """The put had no answer and stored nothing; by the time that is known, the segment is gone."""
    lake, storage, clock = lake_with(1)
    group = engine(lake, clock)
    lake.topic("t").append(values("before"))
    entry = group.begin(sent(7, 0, "a"))
    puts: list[str] = []

    def hook(method: str, path: str, phase: str) -> None:
        if method == "put" and phase == "after":
            puts.append(path)
        if method == "put_if_absent" and len(puts) == 1:
            raise StorageUnavailableError("no answer")

    storage.hook = hook
    entry.advance()
    storage.hook = quiet
    storage.delete(puts[0])
    open_lake(storage, clock).topic("t").append(values("somebody else's"))  # at the place of the put
    drive(entry, clock)
    assert read(lake, "t") == ["before", "somebody else's", "a"]


# --- what it costs -----------------------------------------------------------------------------------------


def test_a_commit_looks_up_each_segment_once_whatever_races_it_loses() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 2)
    topic, other = lake.topic("t"), open_lake(storage, clock).topic("t")
    staged = staged_by(topic, "a", "b")
    races = iter(range(3))

    def hook(method: str, path: str, phase: str) -> None:
        calls(method, path, phase)
        if (method, phase) == ("put_if_absent", "before") and next(races, None) is not None:
            storage.hook = calls
            other.append(values("first"), acks=1)
            storage.hook = hook

    calls = Calls()
    storage.hook = hook
    topic.commit(staged)
    assert sorted(path for method, path in calls.seen if method == "head") == sorted(f"t/{s.path}" for s in staged)


def test_a_repeat_looks_up_nothing() -> None:
    """Its segments, those of a run before, may be merged and purged by now."""
    lake, storage, _ = memory_lake()
    lake.create_topic("t", 2)
    topic, marker = lake.topic("t"), Marker("app", 1, strict=False)
    staged = staged_by(topic, "a")
    topic.commit(staged, marker=marker)
    again = staged_by(topic, "a")  # another run of the same batch
    for segment in (*staged, *again):
        storage.delete(f"t/{segment.path}")
    assert (topic.commit(staged, marker=marker), topic.commit(again, marker=marker)) == ({0: (0, 1)}, {})


def asked(act: Callable[[Topic], Sequence[Any] | object]) -> list[str]:
    """What an object store is asked for segments."""
    seen: list[tuple[RequestKind, str]] = []
    storage = ObjectStorage("s3://b/l", store=MemoryStore(), requests=Requests(lambda *call: seen.append(call)))
    lake = Lake("s3://b/l", storage=storage)
    lake.create_topic("t", 2)
    topic = lake.topic("t")
    seen.clear()
    act(topic)
    return sorted(kind.value for kind, path in seen if "/partition=" in path)


def test_an_object_store_is_asked_by_one_head_a_segment_and_only_for_what_others_staged() -> None:
    assert asked(lambda topic: topic.append(values("a", "b", partition=[0, 1]))) == ["put", "put"]
    assert asked(lambda topic: topic.commit(staged_by(topic, "a", "b"))) == ["head", "head", "put", "put"]


def test_of_a_transaction_an_object_store_is_asked_for_what_others_staged() -> None:
    def commit(topic: Topic) -> None:
        staged = StagedTopics(cast(Lake, topic._lake))
        staged.add("t", values("a"), np.zeros(1, np.int32))
        staged.add_staged("t", staged_by(topic, "b", "c"))
        assert len(staged.parts()[0].segments) == 3

    assert asked(commit) == ["head", "head", "put", "put", "put"]


def test_an_object_store_tells_of_what_is_not_there() -> None:
    def commit(topic: Topic) -> None:
        staged = staged_by(topic, "a", "b", "c", "d")
        for segment in staged:
            topic._lake.storage.delete(f"t/{segment.path}")
        topic.commit(staged)

    with pytest.raises(MissingSegmentError, match=r"is not there, and 1 more like it"):
        asked(commit)
