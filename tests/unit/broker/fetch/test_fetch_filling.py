"""How an answer is filled: limits, turns, and what is missing."""

from uuid import UUID

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from tidelog.broker.base.batch_runs import BatchRun
from tidelog.broker.fetch.filling import Wanted, fill
from tidelog.broker.records.batches import header_of, patched, split

PLACE = (UUID(int=1), 0, 0)


def wanted(*sizes: int, offset: int = 0, most: int = 1000, end: int | None = None, chunks: int = 1) -> Wanted:
    """A partition whose batches have these sizes and an offset each."""
    step = max(1, -(-len(sizes) // chunks))
    parts = [list(range(first, min(first + step, len(sizes)))) for first in range(0, len(sizes), step)]
    found = [
        BatchRun(PLACE, part[0], part[-1] + 1, part, [bytes([o]) * sizes[o] for o in part], sum(sizes[o] for o in part))
        for part in parts
    ]

    def find(at: int) -> BatchRun | None:
        return next((chunk for chunk in found if chunk.first <= at < chunk.end), None)

    return Wanted(offset, len(sizes) if end is None else end, most, find)


@pytest.mark.parametrize(
    ("partitions", "most", "sizes"),
    [
        ([wanted(10, 10, 10)], 100, [30]),
        ([wanted(10, 10, 10)], 25, [20]),
        ([wanted(10, 10, 10, most=15)], 100, [10]),
        ([wanted(50)], 10, [50]),  # KIP-74: the first batch of all
        ([wanted(50, most=10)], 100, [50]),
        ([wanted(50, 50, most=10)], 100, [50]),
        ([wanted(50), wanted(50)], 10, [50, 0]),  # and no other
        ([wanted(10), wanted(50, most=20)], 100, [10, 0]),
        ([wanted(), wanted(50)], 10, [0, 50]),
        ([wanted(10), wanted(10), wanted(10)], 20, [10, 10, 0]),
        ([wanted(10, 10, 10, 10, chunks=2)], 35, [30]),
        ([wanted(10, 10, 10, 10, chunks=4, offset=1)], 100, [30]),
        ([wanted(10)], 0, [10]),
    ],
)
def test_limits(partitions: list[Wanted], most: int, sizes: list[int]) -> None:
    assert fill(partitions, most) == sum(sizes)
    assert [p.size for p in partitions] == sizes
    assert [sum(map(len, p.batches)) for p in partitions] == sizes


def test_what_is_not_there_is_missing_where_it_is_needed() -> None:
    first, second, third = wanted(10, end=5), wanted(end=3), wanted(10, 10)
    assert fill([first, second, third], 1000) == 30
    assert [p.missing for p in (first, second, third)] == [1, 0, -1]
    assert [p.behind for p in (first, second, third)] == [1, 0, 2]


def test_nothing_is_missing_where_there_is_no_room() -> None:
    partitions = [wanted(10), wanted(end=3)]
    fill(partitions, 10)
    assert partitions[1].missing == -1


def batch_of(*sizes: int, base: int = 0) -> bytes:
    """A batch without a codec, with a record of each size."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 30)
    for row, size in enumerate(sizes):
        builder.append(row, 1000 + row, None, bytes([row]) * size, [])
    return patched(bytes(builder.build()), base, 7)


def of_one_batch(batch: bytes, offset: int, most: int, version: int = 3) -> Wanted:
    """A partition with this batch alone, read from segments as of a version."""
    header = header_of(batch)
    last = header.last_offset
    run = BatchRun(PLACE, header.base_offset, last + 1, [last], [batch], len(batch), version)
    return Wanted(offset, last + 1, most, lambda _: run)


def test_of_a_large_batch_of_segments_the_first_records_are_taken() -> None:
    batch = batch_of(30, 2000, 40, base=500)
    one = of_one_batch(batch, 500, 1000)
    fill([one], 5000)
    ((header, short),) = split(one.batches[0])
    assert (header.base_offset, header.last_offset, header.count, header.leader_epoch) == (500, 500, 1, 7)
    assert one.behind == 501
    assert len(short) < 1000


def test_a_batch_of_a_producer_is_taken_as_it_came() -> None:
    batch = batch_of(30, 2000)
    one = of_one_batch(batch, 0, 1000, version=-1)
    fill([one], 5000)
    assert one.batches == [batch]
    assert one.behind == 2


@given(st.lists(st.integers(0, 300), min_size=1, max_size=20), st.integers(0, 19), st.integers(0, 3000))
def test_what_is_taken_of_a_large_batch_is_whole_and_goes_on(sizes: list[int], asked: int, most: int) -> None:
    batch, offset = batch_of(*sizes, base=100), 100 + min(asked, len(sizes) - 1)
    one = of_one_batch(batch, offset, most)
    fill([one], 10_000)
    ((header, taken),) = split(one.batches[0])
    found = DefaultRecordBatch(bytes(taken))
    assert found.validate_crc()
    rows = [(record.offset, record.timestamp, record.value) for record in found]
    everything = [(100 + row, 1000 + row, bytes([row]) * size) for row, size in enumerate(sizes)]
    first = 0 if len(taken) == len(batch) else offset - 100
    assert rows == everything[first : first + len(rows)]
    assert header.base_offset == 100
    assert one.behind == header.last_offset + 1 == rows[-1][0] + 1 > offset
    assert header.max_timestamp == rows[-1][1]
    # No more than there is room for, but one; and as many as there is room for.
    assert len(rows) == 1 or len(taken) <= most
    if len(taken) < len(batch) and rows[-1] != everything[-1]:
        assert len(taken) + sizes[len(rows) + first] + 8 > most


@given(
    st.lists(st.tuples(st.lists(st.integers(1, 60), max_size=5), st.integers(0, 100)), max_size=5),
    st.integers(0, 200),
)
def test_no_limit_is_passed_but_by_the_first_batch(asked: list[tuple[list[int], int]], most: int) -> None:
    partitions = [wanted(*sizes, most=limit, chunks=2) for sizes, limit in asked]
    total = fill(partitions, most)
    first = next((p for p in partitions if p.batches), None)
    assert total <= max(most, len(first.batches[0]) if first else 0)
    for p, (sizes, limit) in zip(partitions, asked, strict=True):
        assert p.batches == [bytes([o]) * sizes[o] for o in range(len(p.batches))]
        assert p.size <= max(limit, sizes[0] if p is first else 0)
    assert bool(total) == any(sizes for sizes, _ in asked)


def test_no_record_is_in_an_answer_twice() -> None:
    """A batch of offsets 0 to 2 was produced here, and one of 0 to 4 was read from its segment before."""
    produced, read = (BatchRun(PLACE, 0, end, [end - 1], [bytes(8) + b"x"], 9) for end in (3, 5))
    first = Wanted(0, 5, 1000, lambda at: produced if at < 3 else read)
    assert fill([first], 1000) == 9
    assert (first.batches, first.behind) == (produced.batches, 3)
    second = Wanted(3, 5, 1000, lambda at: produced if at < 3 else read)
    assert fill([second], 1000) == 9
    assert (second.batches, second.behind) == (read.batches, 5)
