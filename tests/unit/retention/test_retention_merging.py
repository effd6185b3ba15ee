"""Merging: which segments become one, as tables over sizes and times; and that a fed topic is written a few times."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import add, apply_all, created, end_txn, entry

from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta.actions import Txn
from tidelog.log.segments.writer import stats_json
from tidelog.log.state.topic_state import TopicState
from tidelog.retention.merging import Shape, plan_merges, shape_of

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOW_MS = 100 * DAY_MS


def state_of(sizes: list[int], times_ms: list[tuple[int, int]] | None = None, clean: int = 0) -> TopicState:
    """One partition with segments of ten records and these bytes; `times_ms`: (oldest, newest) of each."""
    times_ms = times_ms or [(0, 0)] * len(sizes)
    adds = [
        add(0, 10 * i, 10 * i + 10, size=size, stats=stats_json(10, 9, *times))
        for i, (size, times) in enumerate(zip(sizes, times_ms, strict=True))
    ]
    notes = [Txn("tidelog/clean/0", clean)] if clean else []
    state = apply_all(TopicState(), [created(partitions=2), entry(1, *adds, end_txn(0, 10 * len(sizes)))])
    return apply_all(state, [entry(2, *notes)]) if notes else state


def merged(state: TopicState, **config: str) -> list[list[int]]:
    """The numbers of the segments that each unit takes."""
    parsed = TopicConfig.parse({"segment.bytes": "100", **{k.replace("_", "."): v for k, v in config.items()}})
    return [[s.base_offset // 10 for s in unit.inputs] for unit in plan_merges(state, "t", parsed, NOW_MS)]


@pytest.mark.parametrize(
    ("why", "sizes", "units"),
    [
        ("nothing there", [], []),
        ("one is one", [1], []),
        ("small ones become one", [1, 1, 1], [[0, 1, 2]]),
        ("large ones stay", [50, 99, 400], []),
        ("a large one parts its neighbours", [1, 1, 60, 1, 1], [[0, 1], [3, 4]]),
        ("one small one between large ones stays", [60, 1, 60], []),
        ("as many as make a segment", [40, 40, 20, 40, 40], [[0, 1, 2], [3, 4]]),
        ("never more than that", [40, 40, 40, 40, 40], [[0, 1], [2, 3]]),
        ("one that is larger than all after it waits", [30, 10, 10], [[1, 2]]),
        ("one that is larger by a byte or two does not", [22, 21], [[0, 1]]),
        ("until they have grown as large", [30, 10, 10, 10], [[0, 1, 2, 3]]),
        ("no two are worth it yet", [30, 10, 5], []),
        ("what is full is done with, whatever its sizes", [40, 30, 20, 10, 1], [[0, 1, 2, 3]]),
        ("what lies before a large one is done with", [30, 10, 80], [[0, 1]]),
        ("a small one before a larger one goes with it", [1, 10, 3], [[0, 1, 2]]),
        ("empty ones go with their neighbours", [0, 0, 0], [[0, 1, 2]]),
    ],
)
def test_which_become_one(why: str, sizes: list[int], units: list[list[int]]) -> None:
    assert merged(state_of(sizes)) == units, why


@pytest.mark.parametrize(
    ("why", "times_ms", "config", "units"),
    [
        ("within segment.ms", [(0, 1), (1, 2), (2, DAY_MS)], {}, [[0, 1, 2]]),
        ("further apart", [(0, 1), (1, 2), (2, DAY_MS)], {"segment_ms": str(HOUR_MS)}, [[0, 1]]),
        ("retention.ms is shorter", [(0, 1), (1, 2), (2, DAY_MS)], {"retention_ms": str(HOUR_MS)}, [[0, 1]]),
        ("one that takes long by itself stays apart", [(0, DAY_MS), (0, 1), (0, 1)], {"segment_ms": "60000"}, [[1, 2]]),
        ("nothing expires by time", [(0, 1), (1, DAY_MS)], {"segment_ms": "1", "retention_ms": "-1"}, [[0, 1]]),
        ("nothing is deleted", [(0, 1), (1, DAY_MS)], {"segment_ms": "1", "cleanup_policy": ""}, [[0, 1]]),
    ],
)
def test_what_is_merged_expires_in_time(
    why: str, times_ms: list[tuple[int, int]], config: dict[str, str], units: list[list[int]]
) -> None:
    assert merged(state_of([1] * len(times_ms), times_ms), **config) == units, why


def test_the_newest_segment_of_a_compacted_topic_and_the_border_of_what_is_compacted_stay() -> None:
    assert merged(state_of([1] * 6, clean=30), cleanup_policy="compact") == [[0, 1, 2], [3, 4]]
    assert merged(state_of([1] * 6), cleanup_policy="compact") == [[0, 1, 2, 3, 4]]
    assert merged(state_of([1] * 6, clean=30)) == [[0, 1, 2, 3, 4, 5]]


@pytest.mark.parametrize(
    ("why", "ages_h", "units"),
    [
        ("what may be compacted goes together, however long it took", [900, 400, 11, 0], [[0, 1, 2]]),
        ("what is younger than the lag stays apart from it", [30, 20, 9, 8, 0], [[0, 1], [2, 3]]),
        ("and from what is older by more than the lag", [9, 4, 2, 1, 0], [[0, 1, 2, 3]]),
        ("that comes behind a younger one", [9, 22, 21, 8, 0], [[1, 2]]),
        ("or before one with a timestamp in the future", [9, 4, -5, -6, 0], [[0, 1], [2, 3]]),
    ],
)
def test_a_merge_keeps_no_record_from_compaction_for_ever(why: str, ages_h: list[int], units: list[list[int]]) -> None:
    """With min.compaction.lag.ms at ten hours; the last segment is the newest, which stays."""
    times_ms = [(NOW_MS - age * HOUR_MS, NOW_MS - age * HOUR_MS) for age in ages_h]
    state = state_of([1] * len(ages_h), times_ms)
    assert merged(state, cleanup_policy="compact", min_compaction_lag_ms=str(10 * HOUR_MS)) == units, why


def test_read_amplification_is_files_for_each_that_is_needed() -> None:
    config = TopicConfig.parse({"segment.bytes": "100"})
    before = shape_of(state_of([10] * 40), config)
    assert before == Shape({0: (40, 400), 1: (0, 0)}, 100)
    assert (before.files, before.bytes, before.read_amplification) == (40, 400, 10.0)
    assert shape_of(state_of([]), config).read_amplification == 1.0
    units = plan_merges(state_of([10] * 40), "t", config, NOW_MS)
    after = before.replaced((unit, 1, 90) for unit in units)
    assert (after.files, after.bytes, after.read_amplification) == (4, 360, 1.0)


@given(st.lists(st.integers(0, 120), max_size=40))
def test_units_are_runs_of_small_neighbours_and_no_larger_than_a_segment(sizes: list[int]) -> None:
    units = merged(state_of(sizes))
    taken = [number for unit in units for number in unit]
    assert taken == sorted(set(taken))
    for unit in units:
        assert len(unit) > 1
        assert all(later == earlier + 1 for earlier, later in pairwise(unit))
        assert sum(sizes[n] for n in unit) <= 100
        assert all(2 * sizes[n] < 100 for n in unit)


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=20, max_size=40))
def test_a_topic_that_is_fed_and_merged_for_ever_is_written_a_few_times(runs: list[list[int]]) -> None:
    sizes: list[int] = []
    written = 0
    for appended in runs:
        sizes.extend(appended)
        for unit in reversed(merged(state_of(sizes), segment_bytes="1000")):
            size = sum(sizes[n] for n in unit)
            written += size
            sizes[unit[0] : unit[-1] + 1] = [size]
    total = sum(sizes)
    assert written <= total * 9  # log2 of segment.bytes over an append, about, whatever the number of runs
    assert len(sizes) <= total // 500 + 12


def test_planning_ten_thousand_segments_takes_no_square_of_time() -> None:
    state = state_of([10] * 10_000)
    assert [len(unit) for unit in merged(state, segment_bytes="1000000")] == [1_000] * 10
