"""Tasks of a batch: Kafka's own cuts by offsets, ours by bytes; both read every offset once."""

from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.sources.offset_json import TopicPartition
from tidelog.sources.planning import Range
from tidelog.sources.splitting import split_by_bytes, split_by_offsets


class File(NamedTuple):
    base_offset: int
    end: int
    size: int


@pytest.mark.parametrize(
    ("ranges", "min_partitions", "max_records", "parts"),
    # as Spark 4.2's KafkaOffsetRangeCalculator answers
    [
        ([(0, 0, 10), (1, 5, 5), (2, 7, 3), (3, 1, 2)], None, None, [(0, 0, 10), (3, 1, 2)]),
        ([(0, 0, 10), (1, 0, 1)], 2, None, [(0, 0, 10), (1, 0, 1)]),
        ([(0, 0, 10)], 4, None, [(0, 0, 2), (0, 2, 4), (0, 4, 7), (0, 7, 10)]),
        ([(0, 0, 10)], 3, None, [(0, 0, 3), (0, 3, 6), (0, 6, 10)]),
        (
            [(0, 0, 1000), (1, 0, 10), (2, 5, 25)],
            6,
            None,
            [(0, 0, 250), (0, 250, 500), (0, 500, 750), (0, 750, 1000), (1, 0, 10), (2, 5, 25)],
        ),
        ([(0, 0, 10), (1, 100, 104)], None, 4, [(0, 0, 3), (0, 3, 6), (0, 6, 10), (1, 100, 104)]),
        ([(0, 0, 103)], None, 50, [(0, 0, 34), (0, 34, 68), (0, 68, 103)]),
        (
            [(0, 0, 100), (1, 0, 10)],
            6,
            40,
            [(0, 0, 16), (0, 16, 33), (0, 33, 49), (0, 49, 66), (0, 66, 83), (0, 83, 100), (1, 0, 10)],
        ),
        ([(0, 0, 100), (1, 0, 10)], 2, 40, [(0, 0, 33), (0, 33, 66), (0, 66, 100), (1, 0, 10)]),
        ([(0, 0, 3)], 10, None, [(0, 0, 1), (0, 1, 2), (0, 2, 3)]),
        (
            [(0, 0, 50), (1, 0, 50), (2, 0, 50), (3, 0, 50)],
            5,
            None,
            [(0, 0, 50), (1, 0, 50), (2, 0, 50), (3, 0, 50)],
        ),
    ],
)
def test_by_offsets_as_kafkas_source(
    ranges: list[tuple[int, int, int]],
    min_partitions: int | None,
    max_records: int | None,
    parts: list[tuple[int, int, int]],
) -> None:
    split = split_by_offsets([Range("t", *wanted) for wanted in ranges], min_partitions, max_records)
    assert [part[1:] for part in split] == parts


A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def by_bytes(
    ranges: list[Range], files: dict[TopicPartition, list[File]], cores: int, row_group: int = 100, least: int = 1
) -> list[tuple[Range, ...]]:
    return split_by_bytes(ranges, files, cores=cores, row_group_records=row_group, min_bytes=least, max_bytes=1_000_000)


def test_one_partition_feeds_all_cores_with_cuts_between_row_groups() -> None:
    tasks = by_bytes([Range("t", 0, 50, 1000)], {A: [File(0, 1000, 1000)]}, cores=3)
    assert tasks == [(Range("t", 0, 50, 400),), (Range("t", 0, 400, 700),), (Range("t", 0, 700, 1000),)]


def test_cuts_lie_between_segments_when_those_are_near() -> None:
    files = {A: [File(0, 490, 490), File(490, 1000, 510)]}
    assert by_bytes([Range("t", 0, 0, 1000)], files, cores=2, row_group=1000) == [
        (Range("t", 0, 0, 490),),
        (Range("t", 0, 490, 1000),),
    ]


def test_large_records_are_cut_inside_a_row_group_rather_than_not_at_all() -> None:
    tasks = by_bytes([Range("t", 0, 0, 8)], {A: [File(0, 8, 800)]}, cores=4, row_group=131_072)
    assert [task[0].size for task in tasks] == [2, 2, 2, 2]


def test_small_partitions_share_a_task() -> None:
    files = {TopicPartition("t", number): [File(0, 10, 100)] for number in range(8)}
    ranges = [Range("t", number, 0, 10) for number in range(8)]
    assert by_bytes(ranges, files, cores=2) == [tuple(ranges[:4]), tuple(ranges[4:])]
    assert by_bytes(ranges, files, cores=2, least=1_000) == [tuple(ranges)]


def test_uneven_partitions_give_even_tasks() -> None:
    files = {A: [File(0, 900, 900)], B: [File(0, 100, 100)]}
    tasks = by_bytes([Range("t", 0, 0, 900), Range("t", 1, 0, 100)], files, cores=2)
    assert tasks == [(Range("t", 0, 0, 500),), (Range("t", 0, 500, 900), Range("t", 1, 0, 100))]


def test_tasks_stay_below_the_most_bytes_whatever_the_cores() -> None:
    files = {A: [File(0, 1000, 5_000_000)]}
    assert len(by_bytes([Range("t", 0, 0, 1000)], files, cores=1)) == 5


def test_offsets_between_segments_are_read_too() -> None:
    files = {A: [File(10, 20, 100), File(30, 40, 100)]}
    assert by_bytes([Range("t", 0, 5, 50)], files, cores=1) == [(Range("t", 0, 5, 50),)]
    assert by_bytes([Range("t", 0, 5, 50)], {}, cores=4) == [(Range("t", 0, 5, 50),)]
    assert by_bytes([Range("t", 0, 5, 5)], files, cores=4) == []


@st.composite
def stored_ranges(draw: st.DrawFn) -> tuple[list[Range], dict[TopicPartition, list[File]]]:
    ranges: list[Range] = []
    files: dict[TopicPartition, list[File]] = {}
    for partition in range(draw(st.integers(1, 4))):
        base = draw(st.sampled_from([0, 7, 2**60]))
        edges = sorted({base + edge for edge in draw(st.lists(st.integers(0, 500), min_size=2, max_size=8))})
        files[TopicPartition("t", partition)] = [
            File(low, high, draw(st.integers(1, 2_000))) for low, high in pairwise(edges) if draw(st.booleans())
        ]
        start = base + draw(st.integers(0, 500))
        ranges.append(Range("t", partition, start, start + draw(st.integers(0, 500))))
    return ranges, files


@given(stored_ranges(), st.integers(1, 9), st.integers(1, 200), st.integers(1, 500))
def test_every_offset_is_read_once_in_order_by_at_most_as_many_tasks(
    stored: tuple[list[Range], dict[TopicPartition, list[File]]], cores: int, row_group: int, least: int
) -> None:
    ranges, files = stored
    tasks = by_bytes(ranges, files, cores, row_group, least)
    assert len(tasks) <= max(cores, 1)
    assert all(tasks)
    assert all(part.size > 0 for task in tasks for part in task)
    joined: list[Range] = []
    for part in (part for task in tasks for part in task):
        if joined and joined[-1][:2] == part[:2]:
            assert joined[-1].end == part.start
            joined[-1] = joined[-1]._replace(end=part.end)
        else:
            joined.append(part)
    assert joined == [wanted for wanted in ranges if wanted.size > 0]


@given(
    st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 400)), max_size=5),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1, 100),
)
def test_by_offsets_reads_every_offset_once_and_keeps_to_the_most(
    spans: list[tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    ranges = [Range("t", number, start, start + size) for number, (start, size) in enumerate(spans)]
    parts = split_by_offsets(ranges, min_partitions, max_records)
    for wanted in ranges:
        mine = [part for part in parts if part.partition == wanted.partition]
        edges = [wanted.start, *(part.end for part in mine)] if mine else []
        assert [part.start for part in mine] == edges[:-1]
        assert not mine or edges[-1] == wanted.end
        assert bool(mine) == (wanted.size > 0)
    assert max_records is None or all(part.size <= max_records for part in parts)
