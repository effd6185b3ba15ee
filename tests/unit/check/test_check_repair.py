"""Repair: what it mends, what it leaves alone, and that nothing is lost on the way."""

from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from support import corruptions_of_contents
from support.careless_engines import careless
from support.corruptible_lakes import CorruptibleLake, found, kinds, objects
from support.corruptions import CHECKPOINT, CORRUPTIONS, CUTS, ENTRY, HOUR_S, Corruption, foreign_add, torn, without
from support.logs import read, values

from tidelog.check.lake import Kind, Repair, check_lake, repair
from tidelog.log.base.errors import ForeignEntryError, OutcomeUnknownError, StorageUnavailableError, TornEntryError
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.retention.lost_segments import give_up

assert corruptions_of_contents.deep  # its corruptions are noted in CORRUPTIONS when it is imported

WHOLE = {"in the last line", "one bracket short"}  # cuts that lose nothing but a part of commitInfo
ALL = ["a", "b"] * 3


def mend(corruptible: CorruptibleLake, execute: bool = True) -> Repair:
    return repair(corruptible.storage, execute=execute, clock=corruptible.clock)


def all_read(corruptible: CorruptibleLake) -> list[str]:
    return read(corruptible.reopened(), "orders", 0)


# --- what holds of every corruption ------------------------------------------------------------------------------


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=[f"{d.kind}-{i}" for i, d in enumerate(CORRUPTIONS)])
def test_a_plan_writes_nothing_comes_true_and_makes_nothing_worse(corruption: Corruption) -> None:
    corruptible = corruption.do()
    wrong = kinds(corruptible.check())
    before = objects(corruptible.storage.inner)
    plan = mend(corruptible, execute=False)
    assert objects(corruptible.storage.inner) == before
    done = mend(corruptible)
    assert (plan.executed, done.executed) == (False, True)
    assert (plan.steps, plan.refusals, plan.skipped) == (done.steps, done.refusals, ())
    assert plan.report.findings == done.report.findings == corruptible.check().findings
    assert kinds(done.report) <= wrong
    again = mend(corruptible)
    assert (again.steps, again.report) == ((), done.report)


MENDED = {
    d.kind: d
    for d in reversed(CORRUPTIONS)
    if d.kind in (Kind.ENTRY_TORN, Kind.ENTRY_FOREIGN, Kind.TEMPORARY_FILES, Kind.HINT_DANGLING)
    or d.kind in (Kind.CHECKPOINT_DIFFERS, Kind.CHECKPOINT_UNREADABLE)
}


@pytest.mark.parametrize("corruption", MENDED.values(), ids=MENDED)
def test_a_repair_killed_anywhere_is_finished_by_the_next(corruption: Corruption) -> None:
    finished = mend(corruption.do()).report
    for survived in range(100):
        corruptible = corruption.do()
        left = [survived]

        def die(method: str, path: str, phase: str, left: list[int] = left) -> None:
            if method in ("put", "put_if_absent", "delete", "sync"):
                left[0] -= 1
                if left[0] < 0:
                    raise StorageUnavailableError(f"killed {phase} {method} of {path}")

        corruptible.storage.hook = die
        try:
            mend(corruptible)
            assert survived > 0
            return
        except (StorageUnavailableError, OutcomeUnknownError):
            corruptible.storage.hook = lambda *call: None
        assert kinds(mend(corruptible).report) == kinds(finished)
    pytest.fail("repair has no end")


# --- torn entries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", CUTS)
def test_a_torn_entry_at_the_head(cut: str) -> None:
    corruptible = torn(CUTS[cut])
    bytes_left = corruptible.get(ENTRY.format(3))
    with pytest.raises(TornEntryError):
        corruptible.reopened().topic("orders")
    done = mend(corruptible)
    assert [s.where for s in done.steps] == ["entry 3"]
    assert done.report.green
    (aside,) = corruptible.storage.list_after("orders/_tidelog/torn")
    assert corruptible.storage.get(aside.path) == bytes_left
    assert all_read(corruptible) == (ALL if cut in WHOLE else ALL[:4])
    assert done.steps[0].risk
    corruptible.append(lake=corruptible.reopened())
    assert read(corruptible.reopened(), "orders", 0)[-2:] == ["a", "b"]
    assert corruptible.check(deep=True).green


def test_the_version_of_a_torn_entry_is_never_free() -> None:
    """A frozen writer, or a stream that read the torn entry as empty, would meet another one under its name."""
    corruptible = torn(CUTS["empty"])
    free = []

    def watch(method: str, path: str, phase: str) -> None:
        if phase == "after" and path == f"orders/{ENTRY.format(3)}":
            free.append(corruptible.storage.inner.put_if_absent(path, b""))

    corruptible.storage.hook = watch
    mend(corruptible)
    assert free
    assert not any(free)
    assert corruptible.reopened().topic("orders").state().version == 3


@pytest.mark.parametrize("cut", sorted(WHOLE))
def test_a_torn_entry_whose_segment_is_gone_is_not_completed(cut: str) -> None:
    corruptible = CorruptibleLake()
    path = next(x["add"]["path"] for x in corruptible.lines(3) if "add" in x)
    corruptible.delete(path)
    corruptible.put(ENTRY.format(3), CUTS[cut](corruptible.get(ENTRY.format(3))))
    done = mend(corruptible)
    assert path in done.steps[0].what
    assert done.report.green
    assert all_read(corruptible) == ALL[:4]


@pytest.mark.parametrize("cut", CUTS)
def test_a_torn_entry_that_others_were_built_on(cut: str) -> None:
    corruptible = torn(CUTS[cut], 2)
    before = objects(corruptible.storage.inner)
    done = mend(corruptible)
    if cut in WHOLE:
        assert done.report.green
        assert all_read(corruptible) == ALL
    else:
        assert [(r.where, "entry 3 of tidelog follows it" in r.why) for r in done.refusals] == [("entry 2", True)]
        assert objects(corruptible.storage.inner) == before


def test_two_torn_entries_at_the_head() -> None:
    corruptible = torn(CUTS["empty"]).put(ENTRY.format(2), b"")
    done = mend(corruptible)
    assert [s.where for s in done.steps] == ["entry 2"]
    assert "entry 2, 3" in done.steps[0].what
    assert done.report.green
    assert all_read(corruptible) == ALL[:2]


def test_a_torn_creation_leaves_no_topic() -> None:
    corruptible = CorruptibleLake(0)
    corruptible.put(ENTRY.format(0), corruptible.get(ENTRY.format(0))[:50])
    assert mend(corruptible).report.green
    lake = corruptible.reopened()
    assert lake.topics() == []
    lake.create_topic("orders", 1)


def test_a_torn_creation_that_lost_little_is_completed() -> None:
    corruptible = CorruptibleLake(0)
    corruptible.put(ENTRY.format(0), corruptible.get(ENTRY.format(0))[:-9])
    assert mend(corruptible).report.green
    assert corruptible.reopened().topics() == ["orders"]


def test_a_torn_entry_that_a_checkpoint_is_past() -> None:
    corruptible = CorruptibleLake(4).checkpoint(3).put(ENTRY.format(2), b"")
    done = mend(corruptible)
    assert done.steps == ()
    assert "nothing needs the entry" in done.refusals[0].why
    assert kinds(done.report) == {Kind.ENTRY_TORN}
    assert all_read(corruptible) == ["a", "b"] * 4


def test_what_changed_meanwhile_is_skipped() -> None:
    corruptible = torn(CUTS["empty"])

    def restore(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent" and phase == "after":
            corruptible.storage.inner.put(f"orders/{ENTRY.format(3)}", b"restored meanwhile")

    corruptible.storage.hook = restore
    done = mend(corruptible)
    assert [s.where for s in done.skipped] == ["entry 3"]
    assert corruptible.get(ENTRY.format(3)) != b""


# --- entries of others ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("times", [1, 3])
def test_what_deltalake_wrote_is_found_refused_and_taken_back(tmp_path: Path, times: int, checkpoint: bool) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lake.create_topic("orders", 1)
    for value in ("a", "b"):
        lake.topic("orders").append(values(value))
    table = tmp_path / "lake" / "orders"
    rows = {"partition": pa.array([0], pa.int32()), "base_offset": [0], "position": [0], "value": [b"x"]}
    with careless(table) as address:
        for _ in range(times):
            write_deltalake(address, pa.table(rows), mode="append", schema_mode="merge")
            DeltaTable(address).delete("base_offset = 1")
    assert sorted(r["value"] for r in DeltaTable(str(table)).to_pyarrow_table().to_pylist()) == [b"a", *[b"x"] * times]
    head = 2 + DeltaTable(str(table)).version() - 2
    if checkpoint:
        DeltaTable(str(table)).create_checkpoint()
    handle, other = lake.topic, Lake(str(tmp_path / "lake"))
    for use in (lambda: lake.offsets("orders"), lambda: other.topic("orders")):
        with pytest.raises(ForeignEntryError, match=rf"Log entries 3 to {head} were not written by tidelog \(WRITE by"):
            use()
    assert [f.where for f in found(check_lake(lake), Kind.ENTRY_FOREIGN)] == ["entry 3"]
    done = repair(lake, execute=True)
    assert done.report.green, done.report.findings
    assert read(other, "orders") == ["a", "b"]
    assert handle("orders").append(values("c")) == {0: (2, 3)}
    assert DeltaTable(str(table)).version() == head + 2
    assert sorted(r["value"] for r in DeltaTable(str(table)).to_pyarrow_table().to_pylist()) == [b"a", b"b", b"c"]
    inserted = DeltaTable(str(table), version=head).to_pyarrow_table()  # kept for people that want to produce them
    assert sorted(r["value"] for r in inserted.to_pylist()) == [b"a", *[b"x"] * times]
    assert check_lake(Lake(str(tmp_path / "lake")), deep=True).green


def test_an_entry_of_tidelog_that_breaks_the_format_is_left_alone() -> None:
    corruptible = CorruptibleLake().edit_add(3, base=2)
    done = mend(corruptible)
    assert done.steps == ()
    assert "tidelog wrote it" in done.refusals[0].why


def test_a_missing_entry_is_left_alone() -> None:
    done = mend(CorruptibleLake().delete(ENTRY.format(2)))
    assert done.steps == ()
    assert [r.where for r in done.refusals] == ["entry 2"]


def test_an_entry_of_others_under_one_of_tidelog_is_left_alone() -> None:
    """It took the place of tidelog's own, whose records are nowhere else."""
    corruptible = CorruptibleLake()
    last = corruptible.get(ENTRY.format(3))
    corruptible.foreign(3, foreign_add(0, 0)).put(ENTRY.format(4), last)
    assert kinds(corruptible.check()) == {Kind.ENTRY_BROKEN, Kind.ENTRY_FOREIGN}
    done = mend(corruptible)
    assert done.steps == ()
    assert ["tidelog wrote it" in r.why for r in done.refusals] == [True]


@pytest.mark.parametrize("twice", [False, True])
def test_writers_and_readers_go_on_by_themselves_while_it_is_taken_back(twice: bool) -> None:
    """Of two repairs at once one commits; programs that met the entry go on from the log as it is."""
    corruptible = CorruptibleLake(3)
    handle = corruptible.lake.topic("orders")
    corruptible.foreign(4, {"remove": {"path": corruptible.segment().path}}, foreign_add(0, 0))
    with pytest.raises(ForeignEntryError):
        handle.append(values("x", partition=[0]))

    def another_repair(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before") and path.endswith(ENTRY.format(5)):
            corruptible.storage.hook = lambda *call: None
            assert mend(corruptible).steps

    if twice:
        corruptible.storage.hook = another_repair
    done = mend(corruptible)
    assert (len(done.steps), len(done.skipped)) == ((0, 1) if twice else (1, 0))
    assert corruptible.lines(5)[-1]["commitInfo"]["operation"] == "REPAIR"
    assert handle.append(values("x", partition=[0])) == {0: (6, 7)}
    assert read(corruptible.lake, "orders", 0) == [*ALL, "x"]
    assert corruptible.check(deep=True).green


def test_what_comes_in_during_a_repair_is_taken_back_with_the_rest() -> None:
    corruptible = CorruptibleLake(3).foreign(4, foreign_add(0, 0))

    def one_more(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before") and path.endswith(ENTRY.format(5)):
            corruptible.storage.hook = lambda *call: None
            corruptible.foreign(5, {"metaData": {"configuration": {}}})

    corruptible.storage.hook = one_more
    assert mend(corruptible).report.green
    assert corruptible.lines(6)[-1]["commitInfo"]["operationParameters"] == {"entries": "4, 5"}
    assert all_read(corruptible) == ALL


# --- checkpoints ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("older", [None, 2])
def test_a_bad_checkpoint_goes_when_the_topic_opens_without_it(older: int | None) -> None:
    corruptible = CorruptibleLake(5)
    if older is not None:
        corruptible.checkpoint(older).trim()
    corruptible.checkpoint(4).put(CHECKPOINT.format(4), b"nothing like it")
    done = mend(corruptible)
    assert [s.where for s in done.steps] == ["checkpoint 4"]
    assert done.report.green
    assert done.report.topics[0].checkpoint == older
    (aside,) = corruptible.storage.list_after("orders/_tidelog/torn")
    assert corruptible.storage.get(aside.path) == b"nothing like it"
    assert all_read(corruptible) == ["a", "b"] * 5


def test_a_bad_checkpoint_that_is_the_only_way_stays() -> None:
    corruptible = CorruptibleLake(5).checkpoint(2).trim().put(CHECKPOINT.format(2), b"nothing like it")
    before = objects(corruptible.storage.inner)
    done = mend(corruptible)
    assert [(r.where, "can't be read without it" in r.why) for r in done.refusals] == [("checkpoint 2", True)]
    assert objects(corruptible.storage.inner) == before


def test_an_old_bad_checkpoint_goes_when_a_newer_one_is_good() -> None:
    corruptible = CorruptibleLake(5).checkpoint(2).trim().checkpoint(4).put(CHECKPOINT.format(2), b"")
    done = mend(corruptible)
    assert [s.where for s in done.steps] == ["checkpoint 2"]
    assert done.report.green
    assert corruptible.reopened().offsets("orders") == {0: (0, 10), 1: (0, 10)}


def test_two_checkpoints_that_disagree_and_neither_is_sound() -> None:
    corruptible = CorruptibleLake(5).checkpoint(2).trim().edit_checkpoint(2, without("add")).checkpoint(4)
    corruptible.edit_checkpoint(4, without("add", 1))
    done = mend(corruptible)
    assert done.steps == ()
    assert "neither can be trusted" in done.refusals[0].why


def test_a_checkpoint_stays_when_the_entries_against_it_are_not_sound() -> None:
    corruptible = CorruptibleLake(5).checkpoint(4)
    corruptible.edit(0, lambda lines: lines[1]["metaData"].update(schemaString="{}"))
    done = mend(corruptible)
    assert done.steps == ()
    assert "neither can be trusted" in done.refusals[0].why
    assert all_read(corruptible) == ["a", "b"] * 5


def test_a_torn_entry_and_the_checkpoint_that_holds_it_stay() -> None:
    corruptible = CorruptibleLake(3).checkpoint(3).put(ENTRY.format(3), b"")
    corruptible.delete(corruptible.segment().path)
    done = mend(corruptible)
    assert done.steps == ()
    assert corruptible.reopened().offsets("orders") == {0: (0, 6), 1: (0, 6)}


def test_last_checkpoint_never_names_what_is_being_deleted() -> None:
    corruptible = CorruptibleLake(5).checkpoint(2).checkpoint(4).edit_checkpoint(4, without("add"))
    named = []

    def watch(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("delete", "before") and path.endswith(CHECKPOINT.format(4)):
            named.append(corruptible.storage.inner.get(f"orders/{layout.LAST_CHECKPOINT}"))

    corruptible.storage.hook = watch
    mend(corruptible)
    assert named == [b'{"version":2,"size":8}']


def test_last_checkpoint_is_written_for_the_newest() -> None:
    corruptible = CorruptibleLake(5).checkpoint(2).checkpoint(4)
    written = orjson.loads(corruptible.get(layout.LAST_CHECKPOINT))
    corruptible.clock.pass_s(61)
    done = mend(corruptible.delete(layout.LAST_CHECKPOINT))
    assert [s.where for s in done.steps] == [layout.LAST_CHECKPOINT]
    assert orjson.loads(corruptible.get(layout.LAST_CHECKPOINT)) == {k: written[k] for k in ("version", "size")}


# --- files ---------------------------------------------------------------------------------------------------


def test_lost_records_are_named_and_not_mended() -> None:
    corruptible = CorruptibleLake()
    path = corruptible.segment(1, 1).path
    done = mend(corruptible.delete(path))
    assert done.steps == ()
    assert [r.where for r in done.refusals] == [path]
    assert "offsets 2 to 4 of partition 1 are lost" in done.refusals[0].why
    assert "'tidelog check --repair --give-up'" in done.refusals[0].why
    give_up(corruptible.reopened(), "orders", [path], execute=True)
    assert corruptible.check(deep=True).green


def test_old_unfinished_files_are_deleted_on_a_disk(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lake.create_topic("orders", 1)
    lake.topic("orders").append(values("a"))
    places = ["", "orders/_delta_log", "orders/partition=0", "orders"]
    left = [tmp_path / "lake" / place / ".0b5e-77-1.tmp" for place in places]
    for path in left:
        path.write_bytes(b"half")
    assert repair(lake, execute=True).steps == ()
    later = FrozenClock(lake.clock.now_ms() + (HOUR_S + 60) * 1000)
    report = check_lake(lake, clock=later)
    assert [(f.kind, f.topic) for f in report.findings] == [
        (Kind.TEMPORARY_FILES, ""),
        (Kind.TEMPORARY_FILES, "orders"),
    ]
    repair(lake, clock=later)
    assert all(path.exists() for path in left)
    done = repair(lake, execute=True, clock=later)
    assert not any(path.exists() for path in left)
    assert done.report.findings == ()


class FrozenClock:
    """A wall clock that stands still."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def elapsed_s(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        return


def test_a_repair_turns_into_json() -> None:
    body = mend(torn(CUTS["empty"]), execute=False).to_dict()
    assert set(body) == {"lake", "executed", "steps", "skipped", "refusals", "report"}
    assert set(body["steps"][0]) == {"topic", "where", "what", "risk"}
    assert body["report"]["green"]
