"""Rewrites: what a unit's outputs cover, how they get into the log, and what is left out when another was faster."""

import pickle
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import SupportsIndex, overload

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import (
    START_MS,
    CountingIds,
    add,
    apply_all,
    created,
    end_txn,
    entry,
    memory_lake,
    read_offsets,
    start_txn,
    values,
)

from tidelog.log.base.errors import TopicChangedError, UnknownTopicError
from tidelog.log.config.topics_and_lakes import Codec, TopicConfig
from tidelog.log.delta.actions import Add, Remove, Txn
from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.state.verify import verify_entry
from tidelog.retention.compaction.plan import PartitionCompaction
from tidelog.retention.compaction.units import PartitionWork, decide_compaction
from tidelog.retention.predicates.where import IsIn, RecordKey
from tidelog.retention.rewrites import execute
from tidelog.retention.rewrites.execute import Drop, Keep, KeepOffsets, execute_if_found, execute_unit, probe_unit
from tidelog.retention.rewrites.executors import LocalExecutor, Task, run_bounded
from tidelog.retention.rewrites.units import (
    Output,
    Rewritten,
    Unit,
    decide_rewrite,
    plan_cuts,
    rewrite_codec,
    runs,
    unit_of,
)

CONFIG = TopicConfig.parse({})
NOW_MS = 1_700_000_100_000


def state_of(*bounds: int, start: int = 0, **facts: str) -> TopicState:
    """One partition with segments between these offsets: (0, 10, 20) are two."""
    adds = [add(0, low, high) for low, high in pairwise(bounds)]
    state = apply_all(TopicState(), [created(partitions=1, **facts), entry(1, *adds, end_txn(0, bounds[-1]))])
    return apply_all(state, [entry(2, start_txn(0, start))]) if start else state


def done(unit: Unit, *bounds: int, records: int = 5) -> Rewritten:
    """The unit executed, with outputs between these offsets."""
    outputs = tuple(
        Output(
            f"partition=0/3-{low}.parquet",
            low,
            high,
            10,
            min(records, high - low),
            0,
            high - low - 1,
            START_MS,
            START_MS,
            3,
        )
        for low, high in pairwise(bounds)
    )
    return Rewritten(unit, outputs, 10, sum(output.records for output in outputs))


def unit(state: TopicState, first: int = 0, last: int | None = None) -> Unit:
    return unit_of(state, "t", state.live(0)[first:last], CONFIG, Codec("zstd", 9))


def landed(state: TopicState, *rewritten: Rewritten, **more: object) -> tuple[list[str], list[str]]:
    """Commit, with the log's own check as the judge: (paths that landed, why others were lost)."""
    outcome = decide_rewrite(state, "t", rewritten, now_ms=NOW_MS, operation="OPTIMIZE", **more)  # type: ignore[arg-type]
    if outcome.actions:
        after = entry(state.version + 1, *outcome.actions, operation=outcome.operation)
        verify_entry(state, after, "t")
        state.apply(after)
    return (
        [o.path for d in outcome.response.landed for o in d.outputs],
        [d.failure or "lost" for d in outcome.response.lost],
    )


def covered(state: TopicState) -> list[tuple[int, int]]:
    return [(s.base_offset, s.end) for s in state.live(0)]


# --- the decision ------------------------------------------------------------------------------------------


def test_outputs_take_the_place_of_inputs() -> None:
    state = state_of(0, 10, 20, 30)
    assert landed(state, done(unit(state, 0, 2), 0, 20)) == (["partition=0/3-0.parquet"], [])
    assert covered(state) == [(0, 20), (20, 30)]


def test_the_entry_changes_no_data_and_says_what_it_did() -> None:
    state = state_of(0, 10, 20)
    outcome = decide_rewrite(
        state, "t", [done(unit(state), 0, 20)], now_ms=NOW_MS, operation="OPTIMIZE", parameters={"run": "r1"}
    )
    assert not outcome.blind_append
    assert [type(a) for a in outcome.actions] == [Remove, Remove, Add]
    assert not any(a.data_change for a in outcome.actions if isinstance(a, Add | Remove))
    assert outcome.operation == "OPTIMIZE"
    assert outcome.parameters == {
        "run": "r1",
        "removedFiles": "2",
        "addedFiles": "1",
        "removedBytes": "200",
        "addedBytes": "10",
        "removedRecords": "5",
        "keptRecords": "5",
    }


def test_a_unit_that_somebody_else_has_done_is_left_out_and_the_others_land() -> None:
    state = state_of(0, 10, 20, 30, 40)
    first, second = unit(state, 0, 2), unit(state, 2, 4)
    landed(state, done(unit(state, 1, 3), 10, 30))
    assert landed(state, done(first, 0, 20)) == ([], ["lost"])
    other = unit(state, 0, 1)
    assert landed(state, done(second, 20, 40), done(other, 0, 10)) == (["partition=0/3-0.parquet"], ["lost"])
    assert covered(state) == [(0, 10), (10, 30), (30, 40)]


def test_two_units_over_the_same_segments_land_once() -> None:
    state = state_of(0, 10, 20)
    assert landed(state, done(unit(state), 0, 20), done(unit(state), 0, 10, 20)) == (
        ["partition=0/3-0.parquet"],
        ["lost"],
    )


def test_a_unit_that_failed_never_lands() -> None:
    state = state_of(0, 10, 20)
    assert landed(state, Rewritten(unit(state), failure="is missing")) == ([], ["is missing"])
    assert covered(state) == [(0, 10), (10, 20)]


def test_what_was_staged_below_the_purge_floor_never_lands() -> None:
    state = state_of(0, 10, 20)
    planned = unit(state)
    state.apply(entry(2, Txn("tidelog/purge", 2)))
    assert landed(state, done(planned, 0, 20)) == ([], ["lost"])
    assert landed(state, done(unit(state), 0, 20)) == (["partition=0/3-0.parquet"], [])


def test_a_start_that_moved_meanwhile_changes_nothing() -> None:
    state = state_of(0, 10, 20)
    planned = unit(state)
    state.apply(entry(2, start_txn(0, 5)))
    assert landed(state, done(planned, 0, 20))[1] == []
    assert covered(state) == [(0, 20)]


def test_an_output_that_the_start_has_passed_meanwhile_is_left_out() -> None:
    state = state_of(0, 10)
    planned = unit(state)
    state.apply(entry(2, start_txn(0, 6)))
    assert landed(state, done(planned, 0, 3, 6, 8, 10))[1] == []
    assert covered(state) == [(6, 8), (8, 10)]


def test_how_far_it_is_compacted_is_noted() -> None:
    state = state_of(0, 10, 20)
    state.apply(entry(2, Txn("tidelog/clean/0", 5)))
    landed(state, done(unit(state), 0, 20), extra={0: [Txn("tidelog/clean/0", 20)]})
    assert state.cleans == {0: 20}


@pytest.mark.parametrize(("clean", "noted"), [(5, 10), (20, 20)])
def test_how_far_it_is_compacted_never_falls(clean: int, noted: int) -> None:
    state = state_of(0, 10, 20)
    plan = PartitionCompaction(0, 0, 0, 10, 0, None, ())
    state.apply(entry(2, Txn("tidelog/clean/0", clean)))
    work = [PartitionWork(plan, ())]
    outcome = decide_compaction(state, "t", work, [], topic_id=state.topic_id, planned_ms=NOW_MS, now_ms=NOW_MS)
    state.apply(entry(3, *outcome.actions))
    assert state.cleans == {0: noted}


def test_how_far_it_is_compacted_is_not_noted_for_a_partition_that_lost_a_unit() -> None:
    state = state_of(0, 10, 20)
    notes = {0: [Txn("tidelog/clean/0", 20)]}
    landed(state, done(unit(state, 0, 1), 0, 10), Rewritten(unit(state, 1), failure="no"), extra=notes)
    assert state.cleans == {}


@pytest.mark.parametrize("records", [0, 5])
def test_append_times_do_not_fall_below_a_newest_record_that_left(records: int) -> None:
    state = state_of(0, 10, 20)
    newest_ms = state.last_timestamp_ms(0)
    landed(state, done(unit(state), 0, 20, records=records))
    assert state.last_timestamp_ms(0) == newest_ms


def test_another_life_of_the_topic_is_refused() -> None:
    planned = unit(state_of(0, 10, 20))
    with pytest.raises(TopicChangedError):
        landed(state_of(0, 10, 20, topic_id="id-2"), done(planned, 0, 20))
    with pytest.raises(UnknownTopicError):
        landed(TopicState(), done(planned, 0, 20))


# --- which segments ----------------------------------------------------------------------------------------


def test_runs_end_at_holes() -> None:
    state = apply_all(
        TopicState(),
        [
            created(partitions=1),
            entry(1, add(0, 0, 10), add(0, 10, 20), add(0, 20, 30), add(0, 30, 40), end_txn(0, 40)),
            entry(2, Remove("partition=0/0-10-20.parquet", 0, 10, 100, 0, True)),
        ],
    )
    assert [[s.base_offset for s in run] for run in runs(state, 0)] == [[0], [20, 30]]


@pytest.mark.parametrize(
    ("start", "cut"),
    [(0, []), (10, []), (13, [(10, 20)]), (20, [])],
)
def test_only_a_segment_that_the_start_cuts_is_cut(start: int, cut: list[tuple[int, int]]) -> None:
    state = state_of(0, 10, 20)
    gone = [Remove(s.path, 0, s.base_offset, s.size, 0, False) for s in state.live(0) if s.end <= start]
    state.apply(entry(2, start_txn(0, start), *gone))
    assert [(u.inputs[0].base_offset, u.end) for u in plan_cuts(state, "t", CONFIG)] == cut


@pytest.mark.parametrize(
    ("config", "codec"),
    [
        ({}, ("zstd", 9)),
        ({"merge.compression.level": "15"}, ("zstd", 15)),
        ({"compression.type": "zstd", "compression.zstd.level": "19"}, ("zstd", 19)),
        ({"compression.type": "uncompressed"}, ("none", None)),
        ({"compression.type": "gzip"}, ("gzip", None)),
    ],
)
def test_rewritten_segments_are_compressed_harder(config: dict[str, str], codec: tuple[str, int | None]) -> None:
    assert rewrite_codec(TopicConfig.parse(config)) == codec


# --- executing ---------------------------------------------------------------------------------------------


def topic_with(*appends: tuple[str, ...], **config: str) -> Lake:
    lake, _, _ = memory_lake()
    lake.create_topic("t", partitions=1, config={k.replace("_", "."): v for k, v in config.items()})
    for texts in appends:
        lake.topic("t").append(values(*texts, key=[t[:1] for t in texts]))
    return lake


def carry(lake: Lake, keep: Keep | None = None, segment_bytes: int = 1 << 30) -> Rewritten:
    """Carry one unit of all segments out and commit it."""
    state = lake.topic("t").state()
    planned = unit_of(state, "t", state.live(0), lake.topic_config("t"), Codec("zstd", 9))
    planned = Unit(**{**planned.__dict__, "segment_bytes": segment_bytes})
    found = execute_unit(lake.storage, planned, CountingIds(500_000), keep)
    if found.failure is None:
        outcome = lake.commit("t", lambda s: decide_rewrite(s, "t", [found], now_ms=NOW_MS, operation="OPTIMIZE"))
        assert outcome.response.lost == ()
    return found


@pytest.mark.parametrize(("key", "left"), [(b"a", 3), (b"x", 6)])
def test_a_unit_is_probed_before_it_is_written_again(key: bytes, left: int) -> None:
    lake = topic_with(("a1", "b1"), ("c1",), ("a2", "a3", "b2"))
    state = lake.topic("t").state()
    unit = unit_of(state, "t", state.live(0), lake.topic_config("t"), Codec("zstd", 9))
    keep = pickle.loads(pickle.dumps(Drop(IsIn(RecordKey(), frozenset([key])))))
    before = len(list(lake.storage.list_after("t/partition=0", "")))
    probed = probe_unit(lake.storage, unit, CountingIds(500_000), keep)
    assert (probed.records_in, probed.records_out, probed.outputs) == (6, left, ())
    assert len(list(lake.storage.list_after("t/partition=0", ""))) == before
    found = execute_if_found(lake.storage, unit, CountingIds(500_000), keep)
    assert (found.records_in, found.records_out, len(found.outputs)) == (6, left, int(left < 6))


def test_of_calls_so_many_run_at_once_and_each_is_taken_when_a_thread_is_free() -> None:
    taken: list[int] = []
    running: set[int] = set()
    both = threading.Barrier(2)

    def call(number: int) -> int:
        running.add(number)
        assert len(running) <= 2
        both.wait(timeout=60)
        running.discard(number)
        both.wait(timeout=60)
        return number

    def calls() -> Iterator[Callable[[], int]]:
        for number in range(6):
            taken.append(number)
            yield partial(call, number)

    answers = run_bounded(2, calls())
    assert taken == []
    first = next(answers)
    assert taken == [0, 1]
    assert sorted([first, *answers]) == list(range(6))


def test_an_error_of_a_call_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(run_bounded(2, [lambda: 1 // 0, lambda: 1]))


def test_a_merge_changes_no_record_and_no_offset() -> None:
    lake = topic_with(("a1", "b1"), ("c1",), ("a2", "a3", "b2"))
    before = read_offsets(lake, "t")
    found = carry(lake)
    assert read_offsets(lake, "t") == before
    assert (found.records_in, found.records_out, len(found.outputs)) == (6, 6, 1)
    assert covered(lake.topic("t").state()) == [(0, 6)]
    lake.topic("t").append(values("d1"))
    assert read_offsets(lake, "t")[-1] == (6, "d1")


@pytest.mark.parametrize(
    ("segment_bytes", "ages_s"), [(1 << 30, {(0, 6): 0}), (1, {(0, 5): 0, (5, 6): 120})], ids=["one", "two"]
)
def test_an_output_is_as_old_as_the_oldest_segment_of_which_it_holds_records(
    monkeypatch: pytest.MonkeyPatch, segment_bytes: int, ages_s: dict[tuple[int, int], int]
) -> None:
    """Else Delta's streams would deliver it after newer records."""
    monkeypatch.setattr(execute, "ROW_GROUP_RECORDS", 4)
    lake, _, clock = memory_lake()
    lake.create_topic("t", partitions=1)
    for texts in (("a1", "b1", "c1"), ("d1", "e1"), ("f1",)):
        lake.topic("t").append(values(*texts, key=[t[:1] for t in texts]))
        clock.pass_s(60)
    carry(lake, segment_bytes=segment_bytes)
    live = lake.topic("t").state().live(0)
    assert {(s.base_offset, s.end): (s.modification_ms - START_MS) // 1000 for s in live} == ages_s


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        (Drop(IsIn(RecordKey(), frozenset([b"a"]))), [(1, "b1"), (2, "c1"), (5, "b2")]),
        (
            Drop(IsIn(RecordKey(), frozenset([b"x"]))),
            [(0, "a1"), (1, "b1"), (2, "c1"), (3, "a2"), (4, "a3"), (5, "b2")],
        ),
        (KeepOffsets(np.array([2, 4])), [(2, "c1"), (4, "a3")]),
        (KeepOffsets(np.array([], np.int64)), []),
    ],
)
def test_what_does_not_stay_leaves_its_offset_as_a_hole(keep: Keep, left: list[tuple[int, str]]) -> None:
    lake = topic_with(("a1", "b1"), ("c1",), ("a2", "a3", "b2"))
    found = carry(lake, pickle.loads(pickle.dumps(keep)))
    assert read_offsets(lake, "t") == left
    assert read_offsets(lake, "t", start=2, end=5) == [pair for pair in left if 2 <= pair[0] < 5]
    assert covered(lake.topic("t").state()) == [(0, 6)]
    assert (found.records_in, found.records_out) == (6, len(left))
    lake.topic("t").append(values("d1"))
    assert read_offsets(lake, "t")[-1] == (6, "d1")


def test_records_below_the_log_start_are_cut_off() -> None:
    lake = topic_with(("a1", "b1", "c1"), ("d1",))
    lake.delete_records("t", {0: 2})
    (planned,) = plan_cuts(lake.topic("t").state(), "t", CONFIG)
    (found,) = LocalExecutor(lake.storage, lake.ids).run([Task(planned)])
    lake.commit("t", lambda s: decide_rewrite(s, "t", [found], now_ms=NOW_MS, operation="RETENTION"))
    state = lake.topic("t").state()
    assert covered(state) == [(2, 3), (3, 4)]
    assert [s.stats.records for s in state.live(0)] == [1, 1]
    assert read_offsets(lake, "t") == [(2, "c1"), (3, "d1")]
    assert plan_cuts(state, "t", CONFIG) == []


def test_a_segment_that_cannot_be_read_is_named_and_nothing_is_staged() -> None:
    lake = topic_with(("a1", "b1"), ("c1",))
    first, second = lake.topic("t").state().live(0)
    lake.storage.delete(f"t/{second.path}")
    found = carry(lake)
    assert found.failure is not None
    assert second.path in found.failure
    assert found.outputs == ()
    assert [o.path for o in lake.storage.list_after("t/partition=0")] == [f"t/{first.path}"]


def test_a_unit_goes_as_it_came_over_the_wire() -> None:
    state = state_of(0, 10, 20)
    assert state.live(0)[0].stats.records == 10
    assert pickle.loads(pickle.dumps(Task(unit(state)))) == Task(unit(state))


BIG = "x" * 3_000_000


def test_outputs_end_at_segment_bytes_and_lie_end_to_end() -> None:
    lake = topic_with(
        *[(f"{i}{BIG}",) * 6 for i in range(3)], compression_type="uncompressed", max_message_bytes="9999999"
    )
    before = read_offsets(lake, "t")
    state = lake.topic("t").state()
    planned = Unit(**{**unit_of(state, "t", state.live(0), CONFIG, Codec("none", None)).__dict__, "segment_bytes": 1})
    found = execute_unit(lake.storage, planned, CountingIds(500_000))
    assert len(found.outputs) > 1
    lake.commit("t", lambda s: decide_rewrite(s, "t", [found], now_ms=NOW_MS, operation="OPTIMIZE"))
    assert read_offsets(lake, "t") == before


@given(
    appends=st.lists(st.integers(1, 6), min_size=1, max_size=8),
    data=st.data(),
)
def test_any_history_rewritten_reads_the_same_but_for_what_was_dropped(appends: list[int], data: st.DataObject) -> None:
    lake = topic_with(*[tuple(f"k{i}" for i in range(n)) for n in appends])
    end = sum(appends)
    start = data.draw(st.integers(0, end))
    lake.delete_records("t", {0: start})
    before = read_offsets(lake, "t")
    live = lake.topic("t").state().live(0)
    if not live:
        return
    first = data.draw(st.integers(0, len(live) - 1))
    last = data.draw(st.integers(first + 1, len(live)))
    kept = sorted(data.draw(st.sets(st.integers(0, end))))
    planned = unit_of(lake.topic("t").state(), "t", live[first:last], CONFIG, Codec("zstd", 9))
    found = execute_unit(lake.storage, planned, lake.ids, KeepOffsets(np.array(kept, np.int64)))
    lake.commit("t", lambda s: decide_rewrite(s, "t", [found], now_ms=NOW_MS, operation="COMPACT"))
    assert read_offsets(lake, "t") == [
        (o, v) for o, v in before if o in kept or not planned.base_offset <= o < planned.end
    ]


class LookedAt(list[Segment]):
    """Segments that count how many of them are looked at."""

    count = 0

    @overload
    def __getitem__(self, at: SupportsIndex) -> Segment: ...
    @overload
    def __getitem__(self, at: slice) -> list[Segment]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> Segment | list[Segment]:
        found = super().__getitem__(at)
        self.count += len(found) if isinstance(found, list) else 1
        return found

    def __iter__(self) -> Iterator[Segment]:
        self.count += len(self)
        return super().__iter__()


def test_a_rewrite_of_a_few_segments_looks_at_a_few() -> None:
    """A rewrite that takes long to decide and to verify loses every race for the next entry of a busy topic."""
    state = state_of(*range(0, 50_000, 5))
    rewritten = done(unit(state, 4_000, 4_100), 20_000, 20_500)
    state.segments[0] = looked_at = LookedAt(state.segments[0])
    outcome = decide_rewrite(state, "t", [rewritten], now_ms=NOW_MS, operation="MERGE")
    assert [len(d.unit.inputs) for d in outcome.response.landed] == [100]
    verify_entry(state, entry(state.version + 1, *outcome.actions), "t")
    assert looked_at.count < 1_000
