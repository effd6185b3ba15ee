"""Tables of rows are purged as topics are: replaced files, orphans behind the purge floor, entries."""

from support.faults import FaultyStorage
from support.logs import FakeClock, memory_lake, open_lake, quiet
from support.purges import HOUR_S, REFUSED
from support.row_tables import NAME, WORDS, put, words

from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.upkeep.holds import Holder
from tidelog.retention.maintenance import maintain
from tidelog.retention.purge.run import Purged, Purger


def rows_files(storage: FaultyStorage) -> set[str]:
    return {o.path.removeprefix(f"{NAME}/") for o in storage.list_after(f"{NAME}/{layout.ROWS_FOLDER}")}


def purge_rows(lake: Lake, **options: object) -> Purged:
    holder = Holder(lake.storage, lake.clock, lake.ids, "purge")
    try:
        return Purger(lake, holder, "run-1").purge_rows(lake.row_log(NAME, WORDS), **options)  # type: ignore[arg-type]
    finally:
        holder.release()


def resting_table() -> tuple[Lake, FaultyStorage, FakeClock]:
    """A table whose 20 files were made one; and an orphan."""
    lake, storage, clock = memory_lake()
    log = lake.row_log(NAME, WORDS)
    for i in range(20):
        put(log, **{f"k{i % 3}": i})
    assert log.chores.compact()
    storage.put(f"{NAME}/{layout.rows_path(3, lake.ids.new())}", b"of a committer that was killed")
    clock.pass_s(2 * HOUR_S)
    return open_lake(storage, clock), storage, clock


def test_what_a_refused_write_left_goes() -> None:
    _, storage, clock = resting_table()
    left = f"base_offset=0/{REFUSED.rpartition('/')[2]}"
    storage.put(f"{NAME}/{left}", b"rows")
    clock.pass_s(2 * HOUR_S)
    assert left in {d.path for d in purge_rows(open_lake(storage, clock)).deleted}
    assert words(open_lake(storage, clock).row_log(NAME, WORDS)) == {"k0": 18, "k1": 19, "k2": 17}


def test_what_nobody_needs_goes() -> None:
    lake, storage, clock = resting_table()
    assert len(rows_files(storage)) == 22
    dry = purge_rows(lake, dry_run=True)
    done = purge_rows(open_lake(storage, clock))
    assert dry.deleted == done.deleted
    assert sorted(d.why for d in done.deleted) == ["orphan"] + ["removed"] * 20
    log = open_lake(storage, clock).row_log(NAME, WORDS)
    assert words(log) == {"k0": 18, "k1": 19, "k2": 17}
    put(log, n=1)
    assert words(open_lake(storage, clock).row_log(NAME, WORDS))["n"] == 1


def test_many_tables_wait_together() -> None:
    lake, storage, clock = memory_lake()
    lake.alter_config({"offsets.topic.num.partitions": "4"})
    lake.create_topic("t", partitions=1)
    groups = GroupLog(lake)
    for n in range(40):
        groups.commit_offsets(f"g{n % 4}", {("t", 0): CommittedOffset(0, commit_ms=clock.now_ms())})
    assert not maintain(lake, only=["offsets"], groups=groups).failed
    clock.pass_s(2 * HOUR_S)
    began_s = clock.elapsed_s()
    later = open_lake(storage, clock)
    report = maintain(later, only=["offsets"], groups=GroupLog(later)).offsets
    assert report is not None
    assert report.failures == []
    used = {groups.table(f"g{n}") for n in range(4)}
    assert {purged.topic for purged in report.purged if purged.deleted} == used
    assert 1 < len(used) < 4  # and what was never written to is no failure
    assert 0 < clock.elapsed_s() - began_s <= 10


def test_a_committer_whose_file_was_taken_for_an_orphan_writes_it_again() -> None:
    lake, storage, clock = resting_table()
    committer = open_lake(storage, clock)
    log = committer.row_log(NAME, WORDS)
    before = rows_files(storage)
    slept = []

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before") and layout.LOG_FOLDER in path and not slept:
            storage.hook = quiet
            slept.extend(rows_files(storage) - before)
            clock.pass_s(3 * HOUR_S)
            assert {d.path for d in purge_rows(lake).deleted} >= set(slept)
            storage.hook = hook

    storage.hook = hook
    put(log, late=7)
    storage.hook = quiet
    assert len(slept) == 1
    reopened = open_lake(storage, clock).row_log(NAME, WORDS)
    assert words(reopened) == {"k0": 18, "k1": 19, "k2": 17, "late": 7}
    named = {s.path for s in reopened.door.state.files}
    assert named <= rows_files(storage)
    assert not named & set(slept)
