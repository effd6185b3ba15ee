"""Checkpoints and trimming in the background: when they are due, by whom, and that they fail in silence."""

import logging
from concurrent.futures import Executor, Future
from itertools import pairwise
from typing import Any

import pytest
from support.logs import Calls, FakeClock, memory_lake, open_lake, read, values

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.checkpoints.reading import newest_checkpoint_version
from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.delta import layout
from tidelog.log.door.topic_machine import stored_config
from tidelog.log.lake import Lake
from tidelog.log.storage import MemoryStorage
from tidelog.log.upkeep import background
from tidelog.log.upkeep.background import LEAST_CHECKPOINT_SPACING_S, UpkeepRules, due_version

RULES = UpkeepRules(interval=500, min_age_ms=300_000)


@pytest.mark.parametrize(
    ("interval", "head", "newest", "due"),
    [
        (500, 498, -1, None),
        (500, 499, -1, 399),
        (500, 500, -1, 400),
        (500, 500, 0, 400),
        (500, 899, 400, None),
        (500, 900, 400, 800),
        (500, 5000, 400, 4900),
        (10, 9, -1, 7),
        (10, 8, -1, None),
        (10, 10, 0, 8),
        (10, 17, 8, None),
        (10, 18, 8, 16),
    ],
)
def test_a_checkpoint_is_due_an_interval_after_the_last_and_pinned_behind_the_head(
    interval: int, head: int, newest: int, due: int | None
) -> None:
    assert due_version(head, newest, UpkeepRules(interval, 1)) == due


class AtOnce(Executor):
    """Does what is submitted before `submit` returns."""

    def __init__(self) -> None:
        self.done = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.done += 1
        fn(*args, **kwargs)
        return Future()


class Written:
    """A checkpointer that counts."""

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage
        self.versions: list[int] = []

    def __call__(self, folder: str, version: int, now_ms: int) -> None:
        self.versions.append(version)
        write_checkpoint(self._storage, folder, version, now_ms)


def lake_of(interval: int = 10, **config: str) -> tuple[Lake, Written, MemoryStorage, FakeClock]:
    _, storage, clock = memory_lake()
    inner = storage.inner
    assert isinstance(inner, MemoryStorage)
    written = Written(inner)
    lake = open_lake(inner, clock, checkpointer=written)
    lake.background = AtOnce()
    lake.create_topic("t", config={"log.checkpoint.interval": str(interval), **config})
    return lake, written, inner, clock


def append(lake: Lake, clock: FakeClock, times: int, seconds: float = 1.0) -> None:
    for i in range(times):
        lake.topic("t").append(values(f"{i}"))
        clock.pass_s(seconds)


def test_whoever_commits_a_due_version_writes_a_checkpoint() -> None:
    lake, written, storage, clock = lake_of()
    append(lake, clock, 40)
    assert written.versions == [8, 18, 28, 38]
    assert newest_checkpoint_version(storage, "t") == 38


def test_log_checkpoint_interval() -> None:
    lake, written, _, clock = lake_of(interval=20)
    append(lake, clock, 40)
    assert written.versions == [16, 36]


def test_at_full_speed_time_spaces_checkpoints_too() -> None:
    lake, written, _, clock = lake_of()
    append(lake, clock, 300, seconds=0.01)
    assert 1 < len(written.versions) <= 2 + 3 / LEAST_CHECKPOINT_SPACING_S


@pytest.mark.parametrize(("took_s", "between"), [(0.1, 10), (3, 20), (15, 30)])
def test_slow_checkpoints_are_spaced_by_what_they_take_and_how_long_the_log_grows(took_s: float, between: int) -> None:
    """An entry a second, and one is due every 10."""
    _, written, storage, clock = lake_of()

    def slow(folder: str, version: int, now_ms: int) -> None:
        written(folder, version, now_ms)
        clock.pass_s(took_s)

    busy = open_lake(storage, clock, checkpointer=slow)
    busy.background = AtOnce()
    append(busy, clock, 400)
    assert {later - earlier for earlier, later in pairwise(written.versions[2:])} == {between}


def test_however_many_write_a_checkpoint_is_written_when_it_is_due() -> None:
    """Each due version is another process's, and none of them wrote the checkpoint before."""
    _, written, storage, clock = lake_of(interval=20)
    others = [open_lake(storage, clock, checkpointer=written) for _ in range(7)]
    for other in others:
        other.background = AtOnce()
    for i in range(300):
        others[i % 7].topic("t").append(values("x"))
        clock.pass_s(1)
    assert written.versions == list(range(16, 300, 20))


def test_whoever_only_reads_writes_no_checkpoint() -> None:
    """However overdue one is: opening a topic to look at it must not take longer for that."""
    lake, _, storage, clock = lake_of()
    append(lake, clock, 9)
    written = Written(storage)
    lazy = open_lake(storage, clock, checkpointer=lambda *_: None)
    lazy.background = AtOnce()
    append(lazy, clock, 40)
    with open_lake(storage, clock, checkpointer=written) as reader:
        assert reader.topic("t").state().version == 49
    assert written.versions == []
    with open_lake(storage, clock, checkpointer=written) as writer:
        writer.topic("t").append(values("x"))
    assert written.versions == [48]


def test_a_checkpoint_syncs_each_segment_once_and_none_after_its_version() -> None:
    """With two writers that take turns, too: what the other's checkpoint synced is not synced again."""
    first, storage, clock = memory_lake()
    lakes = [first, open_lake(storage, clock)]
    calls = Calls()
    storage.hook = calls
    for lake in lakes:
        lake.background = AtOnce()
    first.create_topic("t", config={"log.checkpoint.interval": "20"})
    for i in range(100):
        lakes[i // 3 % 2].topic("t").append(values("x"), acks=1)
        clock.pass_s(1)
    assert newest_checkpoint_version(storage, "t") == 96
    synced = [path for method, path in calls.seen if method == "sync" and "partition=" in path]
    assert len(synced) == len(set(synced)) == 96


def test_a_change_of_configuration_may_be_what_is_due() -> None:
    lake, written, _, clock = lake_of()
    append(lake, clock, 9)
    lake.alter_topic("t", config={"retention.ms": "5"})
    assert written.versions == [8]


def test_where_somebody_has_written_a_checkpoint_of_the_head_nothing_is_to_be_done(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lake, written, storage, clock = lake_of()
    append(lake, clock, 19)
    submit = lake.background.submit

    def behind_a_job(fn: Any, /, *args: Any) -> Future[Any]:
        write_checkpoint(storage, "t", lake.topic("t").state().version, clock.now_ms())
        return submit(fn, *args)

    monkeypatch.setattr(lake.background, "submit", behind_a_job)
    append(lake, clock, 1)
    assert newest_checkpoint_version(storage, "t") == 20
    assert written.versions == [8]
    assert not caplog.records


def test_two_processes_write_one_checkpoint_each_in_turn_not_one_each_at_once() -> None:
    one, written, storage, clock = lake_of()
    other = open_lake(storage, clock, checkpointer=written)
    other.background = AtOnce()
    for i in range(100):
        (one if i % 7 else other).topic("t").append(values("x"))
        clock.pass_s(1)
    assert written.versions == sorted(set(written.versions))
    assert len(written.versions) >= 6


def test_a_committer_that_ends_writes_an_overdue_one() -> None:
    _, storage, clock = memory_lake()[0:3]
    inner = storage.inner
    written = Written(inner)
    for i in range(12):  # a command each: none of them is there for long
        with open_lake(inner, clock, checkpointer=written) as lake:
            lake.ensure_topic("t")
            if i == 0:
                lake.alter_topic("t", config={"log.checkpoint.interval": "10"})
            lake.topic("t").append(values(f"{i}"))
    assert len(written.versions) == 1
    assert read(open_lake(inner, clock), "t") == [str(i) for i in range(12)]


def test_trimming_follows_checkpoints_and_keeps_log_min_age_ms() -> None:
    lake, _, storage, clock = lake_of(**{"log.min.age.ms": "20000"})
    append(lake, clock, 100)
    entries = [layout.version_of(o.path) for o in storage.list_after("t/_delta_log") if o.path.endswith(".json")]
    assert 20 <= len(entries) <= 65
    longer, _, storage, clock = lake_of(**{"log.min.age.ms": "200000"})
    append(longer, clock, 100)
    assert len([o for o in storage.list_after("t/_delta_log") if o.path.endswith(".json")]) == 101


def test_what_opens_at_a_checkpoint_has_every_segment_synced() -> None:
    """A program that starts from it no longer sees which entries were appended with acks=1."""
    lake, written, storage, clock = lake_of()
    for i in range(20):
        lake.topic("t").append(values(f"{i}"), acks=1)
        clock.pass_s(1)
    newest = written.versions[-1]
    with open_lake(storage, clock) as other:
        other.topic("t").append(values("all"), acks="all")
    storage.lose_power()
    assert newest > 0
    assert read(open_lake(storage, clock), "t") == [*map(str, range(20)), "all"]


def test_a_checkpoint_that_took_long_while_the_log_was_trimmed_stays() -> None:
    """Another process may have written the same one meanwhile, and trimmed up to it."""
    _, written, storage, clock = lake_of()

    def slow(folder: str, version: int, now_ms: int) -> None:
        written(folder, version, now_ms)
        clock.pass_s(60)
        storage.put_if_absent(f"t/{layout.floor_path(7)}", b"")

    frozen = open_lake(storage, clock, checkpointer=slow)
    frozen.background = AtOnce()
    append(frozen, clock, 12)
    names = [o.path for o in storage.list_after("t/_delta_log")]
    assert written.versions == [8]
    assert f"t/{layout.checkpoint_path(8)}" in names
    assert open_lake(storage, clock).offsets("t") == {0: (0, 12)}


def test_a_checkpointer_that_fails_does_not_fail_the_append(caplog: pytest.LogCaptureFixture) -> None:
    lake, _, storage, clock = lake_of()

    def fail(folder: str, version: int, now_ms: int) -> None:
        raise OSError("disk full")

    broken = open_lake(storage, clock, checkpointer=fail)
    broken.background = AtOnce()
    with caplog.at_level(logging.WARNING, "tidelog.log"):
        append(broken, clock, 12)
    assert len(read(lake, "t")) == 12
    assert "Upkeep of t failed; it is tried again later." in caplog.text
    append(lake, clock, 10)
    assert newest_checkpoint_version(storage, "t") == 18


def test_a_configuration_that_is_set_wrong_puts_upkeep_off_and_fails_nothing(caplog: pytest.LogCaptureFixture) -> None:
    lake, written, _, clock = lake_of()
    upkeep = lake._logs["t"].upkeep

    def wrong() -> UpkeepRules:
        raise InvalidConfigError("set wrong")

    upkeep._rules = wrong
    with caplog.at_level(logging.WARNING, "tidelog.log"):
        append(lake, clock, 12)
        upkeep.catch_up()
    assert written.versions == []
    assert "Upkeep of t is put off." in caplog.text


def test_the_rules_are_read_once_for_each_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    lake, _, _, clock = lake_of()
    asked: list[str] = []

    def counted(topic: str, *more: Any) -> Any:
        asked.append(topic)
        return stored_config(topic, *more)

    monkeypatch.setattr(background, "stored_config", counted)
    append(lake, clock, 5)
    assert not asked  # the topic's creation has
    lake.alter_topic("t", config={"log.min.age.ms": "400000"})
    append(lake, clock, 5)
    lake.alter_config({"log.checkpoint.interval": "20"})
    append(lake, clock, 5)
    assert (asked, lake._logs["t"].upkeep._rules()) == (["t"] * 2, UpkeepRules(10, 400_000))


def test_an_append_to_a_closed_lake_is_there_and_its_segments_too() -> None:
    _, storage, clock = memory_lake()
    lake = open_lake(storage.inner, clock)
    lake.create_topic("t", config={"log.checkpoint.interval": "10"})
    topic = lake.topic("t")
    lake.close()
    for i in range(12):
        topic.append(values(f"{i}"))
    assert len(read(open_lake(storage.inner, clock), "t")) == 12


def test_a_commit_looks_at_no_checkpoint() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t")
    calls = Calls()
    storage.hook = calls
    lake.topic("t").append(values("x"), acks=1)
    assert [path for _, path in calls.seen if "checkpoint" in path] == []
