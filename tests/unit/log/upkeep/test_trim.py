"""Trimming a log: what may go, in which order, and that killing it anywhere loses nothing."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.faults import FaultyStorage
from support.logs import START_MS, Calls, FakeClock, memory_lake, open_lake, put_checkpoint, quiet, read, values
from support.waiting import eventually

from tidelog.log.base.errors import StorageError
from tidelog.log.checkpoints.reading import Checkpoint, whole_checkpoints
from tidelog.log.delta import layout
from tidelog.log.storage.port import ObjectInfo
from tidelog.log.upkeep.trim import Seen, ages_ms, counted_ages_ms, old_version, plan_trim, trim

MIN_AGE_MS = 10_000
LOG = "t/_delta_log"


def listed(entries: dict[int, int], checkpoints: dict[int, int]) -> list[ObjectInfo]:
    """A log folder: {version: age in s} of entries and of checkpoints."""
    objects = [ObjectInfo(f"t/{layout.entry_path(v)}", 1, START_MS - age * 1000) for v, age in entries.items()]
    objects += [
        ObjectInfo(f"{LOG}/{v:020d}.checkpoint.parquet", 1, START_MS - age * 1000) for v, age in checkpoints.items()
    ]
    return sorted([*objects, ObjectInfo(f"{LOG}/_last_checkpoint", 1, START_MS)], key=lambda o: o.path)


# One entry a second up to now: version v is 30 - v s old. What more there is (entries, checkpoints {version: age in
# s}), the floor so far -> the floor, the versions that go: entries, then checkpoints.
EACH_SECOND = {v: 30 - v for v in range(31)}
PLANS: dict[str, tuple[dict[int, int], dict[int, int], int, int, list[int]]] = {
    "no checkpoint": (EACH_SECOND, {}, -1, -1, []),
    "a checkpoint of a young entry": (EACH_SECOND, {21: 60}, -1, -1, []),
    "a checkpoint of an old entry": (EACH_SECOND, {20: 0}, -1, 19, [*range(20)]),
    "the newest of an old entry": (EACH_SECOND, {5: 9, 20: 9, 21: 9}, -1, 19, [*range(20)]),
    "an old checkpoint goes with the entries": (EACH_SECOND, {5: 20, 20: 9}, -1, 19, [*range(20), 5]),
    "the floor never falls": ({v: 30 - v for v in range(20, 31)}, {20: 9}, 24, 24, [20]),
    "a stray below the floor": ({3: 12, **{v: 30 - v for v in range(15, 31)}}, {15: 9}, 14, 14, [3]),
    "a young stray": ({3: 2, **{v: 30 - v for v in range(15, 31)}}, {15: 9}, 14, 14, []),
    "a checkpoint whose entry is gone proves no age": ({v: 30 - v for v in range(16, 31)}, {15: 9}, 12, 12, []),
    "silence proves little": ({0: 900, 1: 800, 2: 0}, {1: 800}, -1, -1, []),
}


@pytest.mark.parametrize(("entries", "checkpoints", "floor", "new_floor", "gone"), PLANS.values(), ids=PLANS)
def test_plans(
    entries: dict[int, int], checkpoints: dict[int, int], floor: int, new_floor: int, gone: list[int]
) -> None:
    listing = listed(entries, checkpoints)
    plan = plan_trim(listing, whole_checkpoints(listing), floor, START_MS, MIN_AGE_MS)
    assert plan.floor == new_floor
    by_kind = sorted(plan.paths, key=lambda path: (not path.endswith(".json"), path))
    assert [layout.version_of(p) for p in by_kind] == gone


def test_another_engines_file_of_the_same_version_tells_nothing_of_an_entrys_age() -> None:
    listing = listed(EACH_SECOND, {20: 9})
    compacted = ObjectInfo(f"{LOG}/{0:020d}.{19:020d}.compacted.json", 1, START_MS)
    assert counted_ages_ms([*listing, compacted], -1, 1000) == counted_ages_ms(listing, -1, 1000)
    assert ages_ms([compacted, *listing], -1, 10_000, Seen(30, START_MS)) == ages_ms(
        listing, -1, 10_000, Seen(30, START_MS)
    )


AGES = st.lists(st.integers(0, 60), min_size=1, max_size=8).map(lambda ages: sorted(ages, reverse=True))


@given(AGES, st.sets(st.integers(0, 7)), st.integers(-1, 7))
def test_what_a_reader_of_the_last_seconds_needs_is_kept(ages: list[int], marked: set[int], floor: int) -> None:
    """From any version of the last `min_age_ms` one finds the newest checkpoint below it, and all entries after."""
    entries = {v: age for v, age in enumerate(ages) if v > floor}
    checkpoints = {v: 0 for v in marked if v in entries}
    listing = listed(entries, checkpoints)
    plan = plan_trim(listing, whole_checkpoints(listing), floor, START_MS, MIN_AGE_MS)
    gone = {layout.version_of(p) for p in plan.paths}
    assert plan.floor >= floor
    for version, age in entries.items():
        if age * 1000 < MIN_AGE_MS and floor < 0:
            base = max((c for c in checkpoints if c <= version and c not in gone), default=-1)
            assert base >= 0 or not gone
            assert not gone & set(range(base, version + 1))


def test_a_clock_that_jumped_makes_nothing_old() -> None:
    """A local disk's times come from a clock that may have been an hour ahead for a while."""
    times = [0, 1, 3_600_000, 2, 3]
    entries = [ObjectInfo(f"t/{layout.entry_path(v)}", 1, START_MS + ms) for v, ms in enumerate(times)]
    ages = counted_ages_ms(entries, -1, MIN_AGE_MS)
    assert max(ages.values()) <= MIN_AGE_MS + 1
    assert ages[4] == 0


# Entries {version: stored at, s}, what a patient trimmer saw (version, s) -> ages in s. Gaps count for a second else.
PATIENT: dict[str, tuple[dict[int, int], tuple[int, int] | None, dict[int, int]]] = {
    "nobody was patient": ({0: 0, 1: 50, 2: 90}, None, {0: 2, 1: 1, 2: 0}),
    "a log at rest": ({0: 0, 1: 50, 2: 90}, (2, 100), {0: 100, 1: 50, 2: 10}),
    "what came after the look counts as before": ({0: 0, 1: 50, 2: 90}, (1, 60), {0: 60, 1: 10, 2: 0}),
    "a clock that was ahead for a while": ({0: 0, 1: 80, 2: 20}, (2, 100), {0: 100, 1: 20, 2: 20}),
    "a look from before they came, by another clock": ({0: 50, 1: 60}, (1, 40), {0: 1, 1: 0}),
    "a look at what is gone": ({5: 0, 6: 50}, (2, 100), {5: 1, 6: 0}),
}


@pytest.mark.parametrize(("stored", "seen", "ages"), PATIENT.values(), ids=PATIENT)
def test_ages_that_a_patient_trimmer_may_go_by(
    stored: dict[int, int], seen: tuple[int, int] | None, ages: dict[int, int]
) -> None:
    listing = [ObjectInfo(f"t/{layout.entry_path(v)}", 1, START_MS + s * 1000) for v, s in stored.items()]
    look = None if seen is None else Seen(seen[0], START_MS + seen[1] * 1000)
    assert ages_ms(listing, -1, MIN_AGE_MS, look) == {v: s * 1000 for v, s in ages.items()}


def test_the_newest_version_that_is_old() -> None:
    assert old_version({3: 50, 4: 20, 5: 10}, 20) == 4
    assert old_version({3: 5}, 20) == -1


# --- executed ----------------------------------------------------------------------------------------------


def old_log(entries: int = 30, checkpoint: int = 20) -> tuple[FaultyStorage, FakeClock]:
    """A topic with a checkpoint, all of it a minute old, and one young entry."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", config={"log.min.age.ms": str(MIN_AGE_MS)})
    for i in range(entries):
        clock.pass_s(1)
        lake.topic("t").append(values(f"{i}"))
    put_checkpoint(storage.inner, "t", checkpoint)
    clock.pass_s(60)
    lake.topic("t").append(values("young"))
    return storage, clock


def kept(storage: FaultyStorage) -> list[int]:
    return [layout.version_of(o.path) or 0 for o in storage.inner.list_after(LOG) if o.path.endswith(".json")]


def test_the_floor_is_published_before_anything_goes() -> None:
    storage, clock = old_log()
    calls = Calls()
    storage.hook = calls
    assert trim(storage, "t", MIN_AGE_MS).floor == 19
    order = [m for m, path in calls.seen if m in ("put_if_absent", "delete")]
    assert order == ["put_if_absent"] + ["delete"] * 20
    assert (("put_if_absent", "t/_tidelog/floor/" + f"{19:020d}")) in calls.seen
    assert kept(storage) == list(range(20, 32))
    assert read(open_lake(storage, clock), "t")[-2:] == ["29", "young"]


def test_trimming_again_does_nothing() -> None:
    storage, _ = old_log()
    trim(storage, "t", MIN_AGE_MS)
    again = trim(storage, "t", MIN_AGE_MS)
    assert (again.floor, again.paths) == (19, ())


@pytest.mark.parametrize("killed_at", range(1, 50, 3))
def test_killed_anywhere_it_loses_nothing_and_the_next_one_finishes(killed_at: int) -> None:
    storage, clock = old_log()
    calls = [0]

    def hook(method: str, path: str, phase: str) -> None:
        if phase == "before":
            calls[0] += 1
            if calls[0] == killed_at:
                raise KeyboardInterrupt

    storage.hook = hook
    with suppress(KeyboardInterrupt):
        trim(storage, "t", MIN_AGE_MS)
    storage.hook = quiet
    wanted = [*map(str, range(30)), "young"]
    assert read(open_lake(storage, clock), "t") == wanted
    trim(storage, "t", MIN_AGE_MS)
    assert kept(storage) == list(range(20, 32))
    assert read(open_lake(storage, clock), "t") == wanted


def test_what_only_a_checkpoint_holds_goes_only_if_it_can_be_read() -> None:
    storage, _ = old_log()
    storage.inner.put(f"t/{layout.checkpoint_path(20)}", b"PAR1 but no more")
    trim(storage, "t", MIN_AGE_MS)
    assert kept(storage) == list(range(32))


def test_the_checkpoint_before_a_torn_one_stands_for_it() -> None:
    storage, clock = old_log(checkpoint=10)
    put_checkpoint(storage.inner, "t", 20)
    storage.inner.put(f"t/{layout.checkpoint_path(20)}", b"")
    trim(storage, "t", MIN_AGE_MS)
    assert kept(storage) == list(range(10, 32))
    assert read(open_lake(storage, clock), "t")[-2:] == ["29", "young"]


def test_what_only_a_checkpoint_holds_goes_only_when_that_survives_a_power_loss() -> None:
    storage, clock = old_log()
    trim(storage, "t", MIN_AGE_MS)
    storage.inner.lose_power()  # type: ignore[attr-defined]
    assert read(open_lake(storage, clock), "t")[-2:] == ["29", "young"]


def test_one_floor_is_left() -> None:
    storage, _ = old_log(checkpoint=10)
    trim(storage, "t", MIN_AGE_MS)
    put_checkpoint(storage.inner, "t", 20)
    trim(storage, "t", MIN_AGE_MS)
    assert [o.path for o in storage.list_after("t/_tidelog/floor")] == [f"t/{layout.floor_path(19)}"]


def test_a_log_that_is_not_there_is_left_alone() -> None:
    _, storage, _ = memory_lake()
    assert trim(storage, "nothing", MIN_AGE_MS).paths == ()


def test_a_store_that_refuses_the_floor_keeps_everything() -> None:
    storage, _ = old_log()

    def hook(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent":
            raise StorageError("denied")

    storage.hook = hook
    with pytest.raises(StorageError):
        trim(storage, "t", MIN_AGE_MS)
    assert kept(storage) == list(range(32))


def test_parts_of_a_checkpoint_count_when_all_are_there() -> None:
    names = [f"{LOG}/{5:020d}.checkpoint.{i:010d}.{3:010d}.parquet" for i in (1, 2, 3)]
    objects = [ObjectInfo(name, 1, 0) for name in names]
    assert whole_checkpoints(objects) == [Checkpoint(5, tuple(n.rpartition("/")[2] for n in names))]
    assert whole_checkpoints(objects[:2]) == []


def test_a_topic_with_a_day_of_time_travel_keeps_its_entries_beside_one_without() -> None:
    lake, _, clock = memory_lake()
    lake.alter_config({"log.checkpoint.interval": "10"})
    lake.create_topic("plain")
    lake.create_topic("day", config={"log.min.age.ms": "86400000"})

    def more_is_trimmed() -> bool:
        clock.pass_s(60)
        for topic in ("plain", "day"):
            lake.topic(topic).append(values("a"))
        return lake.oldest_version("plain") > 10

    # Entries are deleted in the background, as far as it comes.
    eventually(more_is_trimmed, "entries of the topic without time travel are deleted")
    lake.close()
    assert lake.oldest_version("day") == 0
