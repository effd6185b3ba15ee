"""How an answer is filled: limits, turns, and what is missing."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.broker.base.batch_runs import BatchRun
from tidelog.broker.fetch.filling import Wanted, fill

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
