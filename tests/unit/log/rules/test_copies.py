"""The rules of a copy: a partition keeps the offsets of another log, its gaps and its log start, or is refused."""

from typing import Any

import pytest
from support.logs import START_MS, add, apply_all, created, end_txn, entry, start_txn
from support.shares import decide_alone

from tidelog.log.base.errors import CopyPositionError, CorruptLogError, NotACopyError, SegmentTooOldError
from tidelog.log.delta.actions import Action, Add, Txn
from tidelog.log.rules.copies import StagedRun, copied_to, decide_copy
from tidelog.log.segments.writer import Staged, stats_json
from tidelog.log.state.topic_state import TopicState
from tidelog.log.state.verify import verify_entry

NOW = START_MS + 1000


def there(*more: Action) -> TopicState:
    return apply_all(TopicState(), [created(), *([entry(1, *more)] if more else [])])


def run(p: int, base: int, end: int, records: int, first: int | None = None, last: int | None = None) -> StagedRun:
    staged = Staged(p, f"partition={p}/0-{base}.parquet", records, 10, NOW, NOW, 0, "id-1")
    return StagedRun(p, base, end, staged, base if first is None else first, end - 1 if last is None else last)


def copy(state: TopicState, *runs: StagedRun) -> tuple[Action, ...]:
    actions = decide_copy(state, "t", "id-1", runs, now_ms=NOW).actions
    following = entry(state.version + 1, *actions)
    verify_entry(state, following, "t")
    state.apply(following)
    return actions


def test_a_new_partition_begins_where_the_other_log_does_and_keeps_its_gaps() -> None:
    state = there()
    actions = copy(state, run(0, 5000, 5010, 3, 5002, 5008), run(1, 0, 4, 4))
    added = [a for a in actions if isinstance(a, Add)]
    assert [(a.partition, a.base_offset, a.end) for a in added] == [(0, 5000, 5010), (1, 0, 4)]
    assert '"minValues":{"position":2,' in (added[0].stats or "")
    assert '"maxValues":{"position":8,' in (added[0].stats or "")
    assert (state.start(0), state.end(0), state.start(1), state.end(1)) == (5000, 5010, 0, 4)
    assert (copied_to(state, "t", 0), copied_to(state, "t", 1)) == (5010, 4)


def test_a_copy_goes_on_at_its_end_and_no_gap_is_too_small_or_too_large() -> None:
    state = there()
    copy(state, run(0, 7, 9, 2))
    copy(state, run(0, 9, 10, 0, 9, 9))  # a marker of a transaction
    copy(state, run(0, 10, 2**40, 1, 10, 10))
    assert (state.start(0), state.end(0), len(state.live(0))) == (7, 2**40, 3)


def test_an_empty_log_that_begins_later_has_no_segment() -> None:
    state = there()
    actions = copy(state, StagedRun(0, 5000, 5000, None))
    assert not [a for a in actions if isinstance(a, Add)]
    assert (state.start(0), state.end(0)) == (5000, 5000)
    copy(state, run(0, 5000, 5001, 1))
    assert state.end(0) == 5001


def test_two_processes_that_copy_bring_each_record_once() -> None:
    state = there()
    copy(state, run(0, 0, 5, 5))
    with pytest.raises(CopyPositionError, match=r"ends at offset 5, and records from 0 on"):
        decide_copy(state, "t", "id-1", [run(0, 0, 5, 5)], now_ms=NOW)
    with pytest.raises(CopyPositionError):  # nor a gap that no decision made
        decide_copy(state, "t", "id-1", [run(0, 6, 7, 1)], now_ms=NOW)


@pytest.mark.parametrize("copied", [None, 3])
def test_a_partition_with_records_of_its_own_is_refused_by_name(copied: int | None) -> None:
    state = there()
    if copied:
        copy(state, run(0, 0, copied, copied))
    own = Staged(0, "partition=0/0-own.parquet", 2, 10, NOW, NOW, 0, "id-1")
    following = entry(state.version + 1, *decide_alone(state, [own], now_ms=NOW).actions)
    verify_entry(state, following, "t")
    state.apply(following)
    with pytest.raises(
        NotACopyError, match=r"Topic 't', partition 0 (holds records of its own|was a copy up to offset 3)"
    ):
        decide_copy(state, "t", "id-1", [run(0, state.end(0), state.end(0) + 1, 1)], now_ms=NOW)


def test_a_purge_that_took_the_file_refuses_the_copy() -> None:
    state = there(Txn("tidelog/purge", 5))
    with pytest.raises(SegmentTooOldError):
        decide_copy(state, "t", "id-1", [run(0, 0, 1, 1)], now_ms=NOW)


def copied(p: int, to: int) -> Txn:
    return Txn(f"tidelog/copied/{p}", to)


def gapped(p: int, base: int, end: int, records: int) -> Add:
    return add(p, base, end, stats=stats_json(records, end - base - 1, START_MS, START_MS))


ENTRIES: dict[str, tuple[tuple[Action, ...], str]] = {
    "a gap in an append that is no copy": ((gapped(0, 0, 5, 3), end_txn(0, 5)), "covers 5 offsets, but holds 3"),
    "a gap in another partition": (
        (gapped(0, 0, 5, 3), end_txn(0, 5), add(1, 0, 1), end_txn(1, 1), copied(1, 1)),
        "covers 5 offsets, but holds 3",
    ),
    "more records than offsets": ((gapped(0, 0, 5, 6), end_txn(0, 5), copied(0, 5)), "covers 5 offsets, but holds 6"),
    "another end": ((add(0, 0, 5), end_txn(0, 5), copied(0, 4)), "a copy up to 4, which is not its end"),
    "a start that the segments don't have": (
        (add(0, 0, 5), start_txn(0, 3), end_txn(0, 5), copied(0, 5)),
        "at offset 0, but the partition ends at 3",
    ),
    "a beginning without a copy": ((add(0, 3, 5), start_txn(0, 3), end_txn(0, 5)), "at offset 3, but the partition"),
    "an end without segments": ((start_txn(0, 3), end_txn(0, 5), copied(0, 5)), "sets the end of partition 0 to 5"),
    "no partition": ((Txn("tidelog/copied/x", 5),), "names no partition"),
}


@pytest.mark.parametrize(("actions", "says"), ENTRIES.values(), ids=ENTRIES)
def test_entries_that_break_a_rule_of_copies(actions: tuple[Action, ...], says: str) -> None:
    with pytest.raises(CorruptLogError, match=says):
        verify_entry(there(), entry(1, *actions), "t")


def test_a_partition_with_records_becomes_no_copy_by_an_entry() -> None:
    state: Any = there(add(0, 0, 5), end_txn(0, 5))
    with pytest.raises(CorruptLogError, match="which has records that are not of a copy"):
        verify_entry(state, entry(2, gapped(0, 5, 9, 1), end_txn(0, 9), copied(0, 9)), "t")
