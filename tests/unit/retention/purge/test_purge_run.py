"""Purging, executed: in an order that loses nothing, by any process, at any time."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from support.logs import Calls, memory_lake, open_lake, quiet, read, values
from support.purges import (
    HOUR_S,
    LEFT,
    MIN_AGE_MS,
    REFUSED,
    STRANGER,
    data_files,
    everything_in,
    missing_files,
    purge_once,
    readable_states,
    resting_topic,
)

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import CorruptLogError, UnknownTopicError
from tidelog.log.checkpoints.entry_ranges import AT_ONCE
from tidelog.log.checkpoints.reading import newest_floor
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Txn, decode_entry
from tidelog.log.lake import Lake
from tidelog.log.upkeep.holds import Holder
from tidelog.retention.purge.run import Purger, purgeable


def live(lake: Lake) -> set[str]:
    return {s.path for s in lake.log("t").door.refresh().all_segments()}


# --- what goes ---------------------------------------------------------------------------------------------


def test_what_nobody_needs_goes() -> None:
    lake, storage, _ = resting_topic()
    before = data_files(storage)
    assert len(before) == 9  # six appended, one merged, an orphan, a stranger's
    done = purge_once(lake)
    assert data_files(storage) == live(lake) | {STRANGER}
    assert {d.path for d in done.deleted} == before - data_files(storage)
    assert sorted(d.why for d in done.deleted) == ["orphan"] + ["removed"] * 6
    assert (done.waiting, done.oldest, done.checkpoint, done.entries) == ((), 8, 8, 8)
    assert read(open_lake(storage, lake.clock), "t") == LEFT  # type: ignore[arg-type]


def test_what_a_refused_write_left_goes_after_an_hour() -> None:
    """Also where nothing else is to be deleted; it moves no purge floor."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    lake.topic("t").append(values("a"))
    left = [REFUSED, REFUSED.replace("/part-", "/.part-") + ".crc", "part-00000-x.c000.snappy.parquet"]
    for path in left:
        storage.put(f"t/{path}", b"rows")
    for passed_s, gone in ((HOUR_S - 60, []), (120, sorted(left))):
        clock.pass_s(passed_s)
        done = purge_once(open_lake(storage, clock))
        assert ([d.path for d in done.deleted], done.floor) == (gone, None)
    assert read(open_lake(storage, clock), "t") == ["a"]
    assert missing_files(storage) == set()


def test_a_purge_says_what_it_did_in_the_topics_history() -> None:
    lake, storage, _ = resting_topic()
    size = sum(d.size for d in purge_once(lake).deleted)
    entry = decode_entry(9, storage.get(f"t/{layout.entry_path(9)}"), "")
    assert entry.info.operation == "PURGE"
    assert entry.info.parameters == {"run": "run-1", "files": "7", "bytes": str(size)}
    assert entry.actions == (Txn(layout.PURGE_TXN, 7),)


def test_a_second_purge_does_nothing() -> None:
    lake, storage, _ = resting_topic()
    purge_once(lake)
    version = lake.log("t").door.refresh().version
    calls = Calls()
    storage.hook = calls
    done = purge_once(lake)
    assert (done.deleted, done.entries, done.checkpoint) == ((), 0, None)
    assert lake.log("t").door.refresh().version == version
    holds = f"t/{layout.HOLDS_FOLDER}"
    assert not [p for m, p in calls.seen if m in ("put", "put_if_absent", "delete") and not p.startswith(holds)]


def test_a_dry_run_says_the_same_and_changes_nothing() -> None:
    lake, storage, clock = resting_topic()
    inner = storage.inner
    before = everything_in(inner)
    dry = purge_once(lake, dry_run=True)
    assert everything_in(inner) == before
    done = purge_once(open_lake(storage, clock))
    assert (dry.deleted, dry.waiting, dry.oldest) == (done.deleted, done.waiting, done.oldest)


def test_first_the_floor_of_the_log_then_the_purge_floor_then_files() -> None:
    lake, storage, _ = resting_topic()
    calls = Calls()
    storage.hook = calls
    purge_once(lake)
    changes = [p for m, p in calls.seen if m in ("put_if_absent", "delete") and layout.HOLDS_FOLDER not in p]
    floor = changes.index(f"t/{layout.floor_path(7)}")
    entries = [i for i, p in enumerate(changes) if layout.LOG_FOLDER in p and layout.version_of(p) != 9]
    purge_floor = changes.index(f"t/{layout.entry_path(9)}")
    files = [i for i, p in enumerate(changes) if "/partition=" in p]
    assert floor < min(entries) < max(entries) < purge_floor < min(files)


def test_many_files() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 1)
    for i in range(AT_ONCE + 20):
        lake.topic("t").append(values(f"{i}"))
    lake.delete_records("t", {0: AT_ONCE + 19})
    clock.pass_s(HOUR_S)
    assert len(purge_once(open_lake(storage, clock)).deleted) == AT_ONCE + 19
    assert data_files(storage) == live(lake)


def test_what_time_travel_needs_waits() -> None:
    lake, storage, clock = resting_topic()
    lake.delete_records("t", {0: 6})
    clock.pass_s(11)
    lake.topic("t").append(values("young"))
    done = purge_once(open_lake(storage, clock))
    assert done.waiting == ()
    lake.delete_records("t", {0: 7})
    clock.pass_s(5)
    again = purge_once(open_lake(storage, clock))
    assert [(w.why, w.until_ms) for w in again.waiting] == [("time travel (log.min.age.ms)", clock.ms - 5000 + 10_000)]
    assert missing_files(storage) == set()
    clock.pass_s(15)
    assert [d.why for d in purge_once(open_lake(storage, clock)).deleted] == ["removed"]


def test_file_delete_delay_ms_is_waited_for() -> None:
    lake, storage, clock = resting_topic()
    lake.alter_topic("t", config={"file.delete.delay.ms": str(3 * 3_600_000)})
    clock.pass_s(20)
    done = purge_once(lake)
    assert done.deleted == ()
    assert done.oldest == 9
    assert {w.why for w in done.waiting} == {"file.delete.delay.ms"}
    clock.pass_s(HOUR_S)
    assert len(purge_once(open_lake(storage, clock)).deleted) == 7


def test_what_a_killed_writer_left_unfinished_is_discarded_too(tmp_path: Path) -> None:
    with Lake(tmp_path) as lake:
        lake.create_topic("t", 1)
        lake.topic("t").append(values("0"))
        names = [tmp_path / "t" / "partition=0" / f".x-{i}.tmp" for i in range(2)]
        for file in names:
            file.write_bytes(b"half")
        os.utime(names[0], (os.path.getmtime(names[1]) - HOUR_S - 10,) * 2)
        lake.clock = _Patient(lake.clock)
        assert purge_once(lake).unfinished == 1
    assert [file.exists() for file in names] == [False, True]


class _Patient:
    """A clock that does not really sleep."""

    def __init__(self, clock: Clock) -> None:
        self.now_ms, self.elapsed_s = clock.now_ms, clock.elapsed_s

    def sleep(self, seconds: float) -> None:
        """Not now."""


def test_what_never_was_a_topic() -> None:
    lake, storage, _ = resting_topic()
    with pytest.raises(UnknownTopicError):
        purge_once(lake, "nothing")
    assert storage.list_folders("nothing") == []


def test_a_log_that_lacks_an_entry_stops_the_purge() -> None:
    lake, storage, _ = resting_topic()
    storage.inner.delete(f"t/{layout.entry_path(4)}")
    before = data_files(storage)
    with pytest.raises(CorruptLogError, match="lacks entry 4"):
        purge_once(lake)
    assert data_files(storage) == before


# --- deleted topics ----------------------------------------------------------------------------------------


def test_a_deleted_topics_files_go_and_its_log_goes_on() -> None:
    lake, storage, clock = resting_topic()
    lake.delete_topic("t")
    clock.pass_s(20)
    version = lake.log("t").door.refresh().version
    lake = open_lake(storage, clock)
    assert purgeable(lake) == ["t"]
    assert lake.topics() == []
    done = purge_once(lake)
    assert data_files(storage) == {STRANGER}
    assert len(done.deleted) == 8
    assert newest_floor(storage, "t") == version - 1
    assert lake.log("t").door.refresh().version == version
    lake.create_topic("t")
    lake.topic("t").append(values("again"))
    assert lake.log("t").door.refresh().version == version + 2
    assert read(open_lake(storage, clock), "t") == ["again"]
    clock.pass_s(2 * HOUR_S)
    purge_once(open_lake(storage, clock))
    assert read(open_lake(storage, clock), "t") == ["again"]


# --- killed, and several at once ---------------------------------------------------------------------------


def calls_of_a_purge() -> int:
    lake, storage, _ = resting_topic()
    calls = Calls()
    storage.hook = calls
    purge_once(lake)
    return len(calls.seen)


@pytest.mark.parametrize("phase", ["before", "after", "power"])
def test_killed_anywhere_it_loses_nothing_and_the_next_one_finishes(phase: str) -> None:
    """`phase`: killed before a call or after it, or the power goes with it."""
    for killed_at in range(1, calls_of_a_purge() + 1, 4):
        loses_nothing(killed_at, phase)


def loses_nothing(killed_at: int, phase: str) -> None:
    """Killed at a call of the store."""
    lake, storage, clock = resting_topic()
    calls = [0]

    def hook(method: str, path: str, now: str) -> None:
        if now == ("before" if phase == "power" else phase):
            calls[0] += 1
            if calls[0] == killed_at:
                storage.hook = dead
                raise KeyboardInterrupt

    def dead(method: str, path: str, now: str) -> None:
        raise KeyboardInterrupt  # not even its hold is given back

    storage.hook = hook
    with suppress(KeyboardInterrupt):
        purge_once(lake)
    storage.hook = quiet
    if phase == "power":
        storage.inner.lose_power()  # type: ignore[attr-defined]
        clock.pass_s(2 * HOUR_S)
    assert missing_files(storage) == set()
    assert read(open_lake(storage, clock), "t") == LEFT
    clock.pass_s(600)  # a dead job's hold counts for nothing
    again = open_lake(storage, clock)
    purge_once(again)
    assert data_files(storage) == live(again) | {STRANGER}
    assert missing_files(storage) == set()
    assert read(open_lake(storage, clock), "t") == LEFT


def test_two_at_once() -> None:
    """One is overtaken by another, whole, at any of its calls."""
    for overtaken_at in range(1, calls_of_a_purge() + 1, 4):
        overtake(overtaken_at)


def overtake(overtaken_at: int) -> None:
    """At a call of the store."""
    lake, storage, clock = resting_topic()
    other = open_lake(storage, clock)
    calls = [0]

    def hook(method: str, path: str, phase: str) -> None:
        if phase == "before":
            calls[0] += 1
            if calls[0] == overtaken_at:
                storage.hook = quiet
                purge_once(other)
                storage.hook = hook

    storage.hook = hook
    purge_once(lake)
    storage.hook = quiet
    purge_once(open_lake(storage, clock))
    assert data_files(storage) == live(lake) | {STRANGER}
    assert missing_files(storage) == set()
    assert read(open_lake(storage, clock), "t") == LEFT


# --- holds, intents, partitions that failed ----------------------------------------------------------------


def test_a_running_job_keeps_what_its_version_names_and_what_it_staged() -> None:
    lake, storage, clock = resting_topic()
    job = Holder(storage, clock, lake.ids, "export")
    job.hold("t", lambda: 5)
    done = purge_once(lake)
    assert {w.why for w in done.waiting} == {"a running job (export)"}
    assert done.deleted == ()
    assert set(readable_states(storage)) >= {5, 6, 7, 8}
    assert missing_files(storage) == set()
    job.release()
    clock.pass_s(20)
    assert purge_once(open_lake(storage, clock)).waiting == ()


def test_a_job_that_is_gone_keeps_nothing() -> None:
    lake, storage, clock = resting_topic()
    Holder(storage, clock, lake.ids, "export").hold("t", lambda: 5)
    clock.pass_s(600)
    assert purge_once(lake).waiting == ()


def test_files_of_undone_decisions_stay() -> None:
    lake, storage, _ = resting_topic()
    (orphan,) = (d.path for d in purge_once(lake, dry_run=True).deleted if d.why == "orphan")
    asked = []

    def needed(topic: str, floor: int) -> set[str]:
        asked.append((topic, floor, newest_purge_floor(lake)))
        return {orphan}

    holder = Holder(storage, lake.clock, lake.ids, "purge")
    Purger(lake, holder, needed=needed).purge("t")
    assert orphan in data_files(storage)
    assert asked == [("t", 7, None)]  # before the topic refuses anything


def newest_purge_floor(lake: Lake) -> int | None:
    return lake.log("t").door.refresh().txn(layout.PURGE_TXN)


def test_nothing_of_a_partition_that_failed_goes() -> None:
    lake, storage, _ = resting_topic()
    before = data_files(storage)
    done = purge_once(lake, spare={0})
    assert done.deleted == ()
    assert data_files(storage) == before
    assert {w.why for w in done.waiting} == {"its partition could not be maintained"}


# --- another now -------------------------------------------------------------------------------------------


def test_another_now_moves_the_window_and_not_what_writers_rely_on() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 1, config={"log.min.age.ms": "3600000"})
    for i in range(3):
        lake.topic("t").append(values(f"{i}"))
    lake.delete_records("t", {0: 2})
    assert purge_once(lake).deleted == ()
    began_s = clock.elapsed_s()
    done = purge_once(open_lake(storage, clock), now_ms=clock.ms + 2 * 3_600_000)
    assert [d.why for d in done.deleted] == ["removed", "removed"]
    assert clock.elapsed_s() - began_s >= MIN_AGE_MS / 1000
    assert read(open_lake(storage, clock), "t") == ["2"]
    assert missing_files(storage) == set()


def test_a_now_in_the_past_lets_nothing_go() -> None:
    lake, _, clock = resting_topic()
    assert purge_once(lake, now_ms=clock.ms - 3 * 3_600_000).deleted == ()


def test_logs_that_were_looked_at_early_are_not_waited_for() -> None:
    lake, storage, clock = resting_topic()
    holder = Holder(storage, clock, lake.ids, "purge")
    purger = Purger(lake, holder)
    purger.look("t")
    clock.pass_s(11)
    began_s = clock.elapsed_s()
    assert len(purger.purge("t").deleted) == 7
    assert clock.elapsed_s() == began_s
