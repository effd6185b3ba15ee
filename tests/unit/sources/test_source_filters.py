"""Filters as bounds: never narrower than the filter, and as narrow as they can be."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
)

from tidelog.log.segments.writer import stats_json
from tidelog.log.state.topic_state import Segment
from tidelog.sources.filters import RowBounds, wanted_by
from tidelog.sources.offset_json import TopicPartition
from tidelog.sources.planning import Range

OFFSET, PARTITION, TOPIC, TIMESTAMP = ("offset",), ("partition",), ("topic",), ("timestamp",)
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


def in_tokyo(at: datetime) -> datetime:
    return at.astimezone(timezone(timedelta(hours=9)))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], RowBounds()),
        ([EqualTo(OFFSET, 5)], RowBounds(offsets=(5, 5))),
        ([EqualNullSafe(OFFSET, 5)], RowBounds(offsets=(5, 5))),
        ([EqualNullSafe(OFFSET, None)], RowBounds()),
        ([GreaterThan(OFFSET, 5), LessThan(OFFSET, 9)], RowBounds(offsets=(6, 8))),
        ([GreaterThanOrEqual(OFFSET, 5), LessThanOrEqual(OFFSET, 9)], RowBounds(offsets=(5, 9))),
        ([GreaterThan(OFFSET, 5), GreaterThan(OFFSET, 3)], RowBounds(offsets=(6, None))),
        ([In(OFFSET, (7, 3, 5))], RowBounds(offsets=(3, 7))),
        ([In(OFFSET, (7, None))], RowBounds()),
        ([EqualTo(PARTITION, 1)], RowBounds(partitions=frozenset({1}))),
        ([In(PARTITION, (1, 2)), In(PARTITION, (2, 3))], RowBounds(partitions=frozenset({2}))),
        ([EqualTo(TOPIC, "t")], RowBounds(topics=frozenset({"t"}))),
        ([EqualTo(TIMESTAMP, NOON)], RowBounds(micros=(NOON_MS * 1000, NOON_MS * 1000))),
        ([GreaterThan(TIMESTAMP, in_tokyo(NOON))], RowBounds(micros=(NOON_MS * 1000 + 1, None))),
        ([LessThan(TIMESTAMP, NOON.replace(tzinfo=None))], RowBounds(micros=(None, NOON_MS * 1000 - 1))),
        # what says nothing about where records lie
        ([Not(EqualTo(OFFSET, 5)), IsNotNull(OFFSET), StringContains(TOPIC, "t")], RowBounds()),
        ([EqualTo(("value",), b"1"), GreaterThan(("key",), b"1"), EqualTo(("headers", "offset"), 5)], RowBounds()),
        ([GreaterThan(PARTITION, 1)], RowBounds()),
    ],
)
def test_filters_become_bounds(filters: list[Filter], expected: RowBounds) -> None:
    assert wanted_by(filters) == expected


NUMBERS = st.integers(-3, 12)
COMPARISONS: dict[Any, Any] = {
    EqualTo: lambda x, y: x == y,
    EqualNullSafe: lambda x, y: x == y,
    GreaterThan: lambda x, y: x > y,
    GreaterThanOrEqual: lambda x, y: x >= y,
    LessThan: lambda x, y: x < y,
    LessThanOrEqual: lambda x, y: x <= y,
}


@given(
    st.lists(st.tuples(st.sampled_from(sorted(COMPARISONS, key=str)), NUMBERS), max_size=4),
    st.integers(0, 10),
    st.integers(0, 10),
)
def test_a_cut_range_holds_every_offset_that_matches(asked: list[tuple[Any, int]], start: int, size: int) -> None:
    cut = wanted_by([kind(OFFSET, number) for kind, number in asked]).range(Range("t", 0, start, start + size))
    matching = [n for n in range(start, start + size) if all(COMPARISONS[kind](n, number) for kind, number in asked)]

    covered = range(cut.start, cut.end) if cut else range(0)
    assert matching == [n for n in covered if n in matching]
    assert list(covered) == matching  # comparisons of one column leave one interval, so nothing else is read
    assert cut is None or cut.size > 0


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (RowBounds(topics=frozenset({"t"}), partitions=frozenset({0})), True),
        (RowBounds(topics=frozenset({"u"})), False),
        (RowBounds(partitions=frozenset({1, 2})), False),
    ],
)
def test_ranges_of_other_topics_and_partitions_are_dropped(wanted: RowBounds, expected: bool) -> None:
    part = Range("t", 0, 0, 5)
    assert wanted.range(part) == (part if expected else None)


def segment(base: int, low_ms: int | None, high_ms: int | None) -> Segment:
    stats = None if low_ms is None or high_ms is None else stats_json(1, 0, low_ms, high_ms)
    return Segment(f"{base}", 0, base, base + 1, 1, 0, stats)


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        ([], [0, 1, 2, 3]),
        ([GreaterThanOrEqual(TIMESTAMP, NOON)], [1, 2, 3]),
        ([LessThanOrEqual(TIMESTAMP, NOON)], [0, 1, 3]),
        ([LessThan(TIMESTAMP, NOON)], [0, 3]),
        # statistics are rounded down to ms: the newest record may lie up to 999 µs later
        ([GreaterThan(TIMESTAMP, NOON + timedelta(microseconds=998))], [1, 2, 3]),
        ([GreaterThan(TIMESTAMP, NOON + timedelta(microseconds=999))], [2, 3]),
    ],
)
def test_segments_without_a_matching_time_are_left_out(filters: list[Filter], kept: list[int]) -> None:
    live = [
        segment(0, NOON_MS - 2000, NOON_MS - 1000),
        segment(1, NOON_MS, NOON_MS),
        segment(2, NOON_MS + 1000, NOON_MS + 2000),
        segment(3, None, None),
    ]
    found = wanted_by(filters).segments({TopicPartition("t", 0): live})
    assert [s.base_offset for s in found[TopicPartition("t", 0)]] == kept
