"""What may leave storage: the rules, one line each."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import START_MS, end_txn, entry

from tidelog.log.checkpoints.reading import Checkpoint
from tidelog.log.delta import layout
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import ObjectInfo
from tidelog.log.upkeep.replaced_files import Gone, Kept
from tidelog.log.upkeep.trim import Seen, plan_trim
from tidelog.retention.purge.plan import (
    ORPHAN_AGE_MS,
    Facts,
    LogPlan,
    Times,
    decide_purge_floor,
    kept_after,
    known_version,
    plan_files,
    plan_log,
)

MIN_AGE_MS = 10_000
DELAY_MS = 60_000
HOUR_MS = 3_600_000


def name(known: int, partition: int = 0) -> str:
    """A data file whose writer knew that version."""
    return layout.segment_path(partition, known, f"00000000-0000-4000-8000-{known:012d}")


# --- how far the log goes ----------------------------------------------------------------------------------


def log_of(ages: Mapping[int, int]) -> list[ObjectInfo]:
    """Entries by {version: age in s}."""
    return [ObjectInfo(f"t/{layout.entry_path(v)}", 1, START_MS - s * 1000) for v, s in ages.items()]


RESTING = {v: 109 - v for v in range(10)}  # entries 0 to 9, the newest 100 s old
FRESH = {v: 9 - v for v in range(10)}
# Entries {version: age in s}, checkpoints, entries that removed files, the floor, a hold -> checkpoint, floor.
LOG_PLANS: dict[str, tuple[dict[int, int], set[int], list[int], int, int | None, LogPlan]] = {
    "files wait: a checkpoint of the newest old entry": (RESTING, set(), [7], -1, None, LogPlan(9, 8)),
    "nothing waits": (RESTING, set(), [], -1, None, LogPlan(None, -1)),
    "an old checkpoint is there": (RESTING, {5}, [], -1, None, LogPlan(None, 4)),
    "what a checkpoint already passed needs none": (RESTING, {8}, [7], -1, None, LogPlan(None, 7)),
    "a removal after the checkpoint": (RESTING, {5}, [7], -1, None, LogPlan(9, 8)),
    "a removal that the floor has passed": ({v: 109 - v for v in range(9, 12)}, {9}, [], 8, None, LogPlan(None, 8)),
    "too young": (FRESH, set(), [2], -1, None, LogPlan(None, -1)),
    "a hold": (RESTING, set(), [3, 7], -1, 5, LogPlan(5, 4)),
    "a hold before every removal": (RESTING, set(), [3], -1, 2, LogPlan(None, -1)),
    "a hold behind the floor never lowers it": ({v: 109 - v for v in range(5, 10)}, {5}, [7], 4, 2, LogPlan(None, 4)),
    "many entries are worth a checkpoint": ({v: 160 - v for v in range(50)}, set(), [], -1, None, LogPlan(49, 48)),
}


@pytest.mark.parametrize(("ages", "checkpoints", "removed", "floor", "held", "plan"), LOG_PLANS.values(), ids=LOG_PLANS)
def test_how_far_the_log_goes(
    ages: dict[int, int], checkpoints: set[int], removed: list[int], floor: int, held: int | None, plan: LogPlan
) -> None:
    seen = Seen(max(ages), START_MS)
    assert plan_log(log_of(ages), checkpoints, removed, floor, seen, held, MIN_AGE_MS, 50) == plan


def test_only_what_was_there_at_the_look_is_at_rest() -> None:
    """Entry 9 came after the look at 8, so the silence after it proves nothing, of any of them."""
    listing = log_of({**RESTING, 9: 0})
    assert plan_log(listing, [], [9], -1, Seen(8, START_MS - 90_000), None, MIN_AGE_MS, 50) == LogPlan(None, -1)
    assert plan_log(listing, [], [8], -1, Seen(8, START_MS - 90_000), None, MIN_AGE_MS, 50) == LogPlan(8, 7)


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=12).map(sorted),
    st.sets(st.integers(0, 11)),
    st.integers(-1, 11),
    st.none() | st.integers(-1, 11),
)
def test_trimming_does_what_the_plan_says(ages: list[int], marked: set[int], floor: int, held: int | None) -> None:
    """The plan and `trim`, which looks for itself, agree once the plan's checkpoint is there."""
    listing = [o for o in log_of(dict(enumerate(reversed(ages)))) if (layout.version_of(o.path) or 0) > floor]
    versions = [layout.version_of(o.path) or 0 for o in listing]
    checkpoints = marked & set(versions)
    seen = Seen(max(versions, default=-1), START_MS)
    plan = plan_log(listing, checkpoints, versions, floor, seen, held, MIN_AGE_MS, 50)
    if plan.checkpoint is not None:
        checkpoints = checkpoints | {plan.checkpoint}
    from_trim = plan_trim(
        listing, [_checkpoint(v) for v in sorted(checkpoints)], floor, START_MS, MIN_AGE_MS, seen, held
    )
    assert plan.floor == from_trim.floor
    assert plan.floor >= floor
    if held is not None:
        assert plan.floor <= max(floor, held - 1)


def _checkpoint(version: int) -> Checkpoint:
    return Checkpoint(version, (f"{version:020d}.checkpoint.parquet",))


# --- which files go ----------------------------------------------------------------------------------------

OLD = 2 * HOUR_MS
YOUNG = HOUR_MS // 2


def facts(files: Mapping[str, int], kept: Kept, **more: object) -> Facts:
    """Files by {path: age in ms}, seen just now."""
    infos = {path: ObjectInfo(f"t/{path}", 10, START_MS - age_ms) for path, age_ms in files.items()}
    times = Times(START_MS, START_MS, MIN_AGE_MS, DELAY_MS)
    fields = {"live": frozenset(), "head": 20, "entry_ms": {}, "times": times, **more}
    return Facts(infos, kept=kept, **fields)  # type: ignore[arg-type]


def removed_ago(ms: int) -> Gone:
    return Gone(START_MS - ms, START_MS)


NOTHING = Kept(5, {}, {})
A, FOREIGN = name(1), "partition=0/base_offset=0/part-00000-c000.zstd.parquet"
UUID = "6992039f-e942-4398-bfae-e4fb7893cd64"
OTHERS = [
    f"partition=0/base_offset=0/part-00000-{UUID}-c000.zstd.parquet",
    f"partition=0/base_offset=0/part-00000-{UUID}.c000.snappy.parquet",
    f"partition=0/base_offset=0/.part-00000-{UUID}.c000.snappy.parquet.crc",
    f"partition=0/base_offset=0/part-00000-{UUID}-c000.zstd.parquet#1",
    f"partition=__HIVE_DEFAULT_PARTITION__/base_offset=__HIVE_DEFAULT_PARTITION__/part-00003-{UUID}.c000.parquet",
    f"base_offset=7/part-00000-{UUID}.c000.snappy.parquet",
    f"part-00000-{UUID}-c000.snappy.parquet",
    f"deletion_vector_{UUID}.bin",
]
STRANGE = ["notes.txt", "partition=0/notes.parquet", f"backup/part-00000-{UUID}.c000.parquet", "part-1.parquet"]
# Files {path: age}, what the log says, more -> what goes as removed, what as orphans, what waits.
FILES: dict[str, tuple[dict[str, int], Kept, dict[str, object], list[str], list[str], list[str]]] = {
    "removed before all that is kept": ({A: OLD}, Kept(5, {}, {A: removed_ago(DELAY_MS)}), {}, [A], [], []),
    "not long enough ago": ({A: OLD}, Kept(5, {}, {A: removed_ago(DELAY_MS - 1)}), {}, [], [], [A]),
    "removed, but a version that can be read names it": ({A: OLD}, Kept(5, {A: 7}, {}), {}, [], [], [A]),
    "removed, and taken back": ({A: OLD}, Kept(5, {}, {A: removed_ago(OLD)}), {"live": {A}}, [], [], []),
    "removed, taken back, removed again": ({A: OLD}, Kept(5, {A: 7}, {A: removed_ago(OLD)}), {}, [], [], [A]),
    "removed and gone": ({}, Kept(5, {}, {A: removed_ago(OLD)}), {}, [], [], []),
    "another engine's, removed": ({FOREIGN: OLD}, Kept(5, {}, {FOREIGN: removed_ago(OLD)}), {}, [FOREIGN], [], []),
    "another engine's, which it was refused to commit": ({FOREIGN: OLD}, NOTHING, {}, [], [FOREIGN], []),
    "another engine's, at work": ({FOREIGN: YOUNG}, NOTHING, {}, [], [], []),
    "another engine's, live": ({FOREIGN: OLD}, NOTHING, {"live": {FOREIGN}}, [], [], []),
    "another engine's, of a partition that is spared": ({FOREIGN: OLD}, NOTHING, {"spare": frozenset({0})}, [], [], []),
    "of any name of theirs": (dict.fromkeys(OTHERS, OLD), NOTHING, {}, [], sorted(OTHERS), []),
    "of a name that is nobody's": (dict.fromkeys(STRANGE, OLD), NOTHING, {}, [], [], []),
    "named by nobody": ({A: OLD}, NOTHING, {}, [], [A], []),
    "live": ({A: OLD}, NOTHING, {"live": {A}}, [], [], []),
    "of a log that was taken back": ({name(6): OLD, name(7): OLD}, NOTHING, {"head": 6}, [], [name(6)], []),
    "a writer may be at work": ({A: YOUNG}, NOTHING, {}, [], [], []),
    "a running job may commit it": ({A: OLD}, NOTHING, {"holds": [(1, "merge")]}, [], [], []),
    "a running job knows later versions only": ({A: OLD}, NOTHING, {"holds": [(2, "merge")]}, [], [A], []),
    "of a partition that is spared": (
        {A: OLD, name(2, 1): OLD, name(3, 1): OLD},
        Kept(5, {}, {A: removed_ago(OLD), name(2, 1): removed_ago(OLD)}),
        {"spare": {1}},
        [A],
        [],
        [name(2, 1)],
    ),
}


@pytest.mark.parametrize(("files", "kept", "more", "removed", "orphans", "waiting"), FILES.values(), ids=FILES)
def test_which_files_go(
    files: dict[str, int],
    kept: Kept,
    more: dict[str, object],
    removed: list[str],
    orphans: list[str],
    waiting: list[str],
) -> None:
    plan = plan_files(facts(files, kept, **more))
    assert [r.path for r in plan.removed] == removed
    assert [o.path for o in plan.orphans] == orphans
    assert [w.path for w in plan.waiting] == waiting
    assert (plan.floor is None) == all(known_version(path) is None for path in orphans)


def test_the_purge_floor_is_just_above_the_orphans() -> None:
    plan = plan_files(facts({name(3): OLD, name(8): OLD, name(11): YOUNG}, NOTHING))
    assert ([known_version(o.path) for o in plan.orphans], plan.floor) == ([3, 8], 9)


def test_a_file_that_came_after_the_look_is_no_orphan_whatever_counts_for_now() -> None:
    times = Times(START_MS + 10 * OLD, START_MS, MIN_AGE_MS, DELAY_MS)
    files = {name(1): 0, name(2): -1}
    assert [o.path for o in plan_files(facts(files, NOTHING, times=times)).orphans] == [name(1)]


def test_an_orphan_is_as_old_as_removed_files_get() -> None:
    times = Times(START_MS, START_MS, MIN_AGE_MS, 2 * ORPHAN_AGE_MS)
    young, old = {name(1): 2 * ORPHAN_AGE_MS - 1}, {name(1): 2 * ORPHAN_AGE_MS}
    assert plan_files(facts(young, NOTHING, times=times)).orphans == ()
    assert plan_files(facts(old, NOTHING, times=times)).floor == 2


# When the file was stored, when its remover says, when the checkpoint that tells so was stored -> what counts.
REMOVAL_TIMES = {
    "borne out": (100, 300, 500, 300),
    "before the file was there": (100, 50, 500, 500),
    "after the checkpoint was there": (100, 900, 500, 500),
    "never said": (100, 0, 500, 500),
}


@pytest.mark.parametrize(("made", "said", "written", "counts"), REMOVAL_TIMES.values(), ids=REMOVAL_TIMES)
def test_the_removers_clock_counts_where_the_store_bears_it_out(
    made: int, said: int, written: int, counts: int
) -> None:
    assert Gone(said, written).removed_ms(made) == counts


NAMES = {
    "partition=0/17-15b1877b-7923-4ea2-b092-83ab9158ec3e.parquet": 17,
    "rows/3-15b1877b-7923-4ea2-b092-83ab9158ec3e.parquet": 3,
    "partition=0/part-00000-6992039f-e942-4398-bfae-e4fb7893cd64-c000.zstd.parquet": None,
    "partition=0/00000-15b1877b-7923-4ea2-b092-83ab9158ec3e-c000.parquet": None,
    "partition=0/base_offset=0/17-15b1877b-7923-4ea2-b092-83ab9158ec3e.parquet": None,
    "17-15b1877b-7923-4ea2-b092-83ab9158ec3e.parquet": None,
}


@pytest.mark.parametrize(("path", "version"), NAMES.items())
def test_tidelogs_own_names(path: str, version: int | None) -> None:
    assert known_version(path) == version


def test_what_waits_says_for_what_and_until_when() -> None:
    kept = Kept(5, {name(1): 7, name(2): 9}, {name(3): removed_ago(1000)})
    files = {name(i): OLD for i in (1, 2, 3)}
    more = {"entry_ms": {7: START_MS - 5000, 9: START_MS}, "holds": [(8, "merge")]}
    waiting = plan_files(facts(files, kept, **more)).waiting
    assert [(w.why, w.until_ms) for w in waiting] == [
        ("time travel (log.min.age.ms)", START_MS - 5000 + DELAY_MS),
        ("a running job (merge)", None),
        ("file.delete.delay.ms", START_MS - 1000 + DELAY_MS),
    ]


def test_what_the_floor_passes_is_gone_since_its_entry() -> None:
    kept = Kept(0, {"a": 3, "b": 4, "c": 5}, {})
    after = kept_after(kept, 3, {3: 300, 4: 400, 5: 500})
    assert after == Kept(4, {"c": 5}, {"a": Gone(300, 300), "b": Gone(400, 400)})
    assert kept_after(after, 3, {}) == after


@pytest.mark.parametrize(("before", "asked", "then"), [(None, 4, 4), (7, 4, 7), (4, 7, 7)])
def test_the_purge_floor_never_falls(before: int | None, asked: int, then: int) -> None:
    state = TopicState()
    if before is not None:
        state.apply(entry(0, end_txn(0, 0), decide_purge_floor(state, before, (), {}).actions[0]))
    (action,) = decide_purge_floor(state, asked, (), {}).actions
    assert (action.app_id, action.version, action.last_updated_ms) == (layout.PURGE_TXN, then, None)
