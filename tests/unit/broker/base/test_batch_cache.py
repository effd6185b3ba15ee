"""The cache of record batches: what it gives for an offset, and what it lets go."""

import gc
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.broker.base import batch_runs
from tidelog.broker.base.batch_cache import BatchCache
from tidelog.broker.base.batch_runs import BATCH_OVERHEAD, BatchRun, Found

T, U = UUID(int=1), UUID(int=2)
LARGE = 1 << 20


def chunk(partition: int, first: int, end: int, batches: list[tuple[int, bytes]]) -> BatchRun:
    lasts, data = [last for last, _ in batches], [batch for _, batch in batches]
    return BatchRun((T, partition, 0), first, end, lasts, data, sum(map(len, data)))


def read(cache: BatchCache, partition: int, offset: int, most: int = 0, at_least_one: bool = False) -> Found | None:
    found = cache.find((T, partition, 0), offset)
    return None if found is None else found.read(offset, most, at_least_one=at_least_one)


def test_the_batch_that_holds_the_offset_is_given_whole() -> None:
    cache = BatchCache(LARGE)
    cache.add(T, 0, 10, 14, b"ten")
    cache.add(T, 0, 15, 15, b"fifteen")
    assert [cache.get(T, 0, offset) for offset in (9, 10, 13, 14, 15, 16)] == [
        None, b"ten", b"ten", b"ten", b"fifteen", None,
    ]  # fmt: skip
    assert cache.get(T, 1, 10) is cache.get(U, 0, 10) is None


@pytest.mark.parametrize(
    ("offset", "most", "at_least_one", "expected"),
    [
        (0, 9, False, Found([b"aaa", b"bbb", b"ccc"], 9, 6)),
        (1, 8, False, Found([b"aaa", b"bbb"], 6, 4)),
        (2, 100, False, Found([b"bbb", b"ccc"], 6, 6)),
        (4, 2, False, Found([], 0, 4)),
        (4, 2, True, Found([b"ccc"], 3, 6)),
        (0, 4, True, Found([b"aaa"], 3, 2)),
    ],
)
def test_as_many_as_fit(offset: int, most: int, at_least_one: bool, expected: Found) -> None:
    cache = BatchCache(LARGE)
    for first, batch in ((0, b"aaa"), (2, b"bbb"), (4, b"ccc")):
        cache.add(T, 0, first, first + 1, batch)
    assert read(cache, 0, offset, most, at_least_one) == expected


def test_an_offset_in_a_gap_is_answered_with_what_comes_next() -> None:
    cache = BatchCache(LARGE)
    cache.add_read(chunk(0, 0, 20, [(4, b"to 4"), (12, b"to 12")]))
    assert cache.get(T, 0, 7) == b"to 12"
    assert read(cache, 0, 13, 100) == Found((), 0, 20)
    assert cache.get(T, 0, 13) is None


def test_what_was_produced_here_is_preferred() -> None:
    cache = BatchCache(LARGE)
    cache.add_read(chunk(0, 0, 10, [(9, b"read")]))
    cache.add(T, 0, 4, 6, b"produced")
    assert [cache.get(T, 0, offset) for offset in (3, 4, 6, 7)] == [b"read", b"produced", b"produced", b"read"]


def test_what_is_known_already_is_kept_once() -> None:
    cache = BatchCache(LARGE)
    cache.add(T, 0, 0, 4, b"first")
    cache.add(T, 0, 4, 5, b"again")
    assert cache.get(T, 0, 4) == b"first"
    assert cache.get(T, 0, 5) is None


def test_a_later_reading_replaces_what_it_overlaps() -> None:
    cache = BatchCache(LARGE)
    for first in (0, 10, 20, 30):
        cache.add_read(chunk(0, first, first + 10, [(first + 9, b"old")]))
    cache.add_read(chunk(0, 5, 25, [(24, b"new")]))
    assert [cache.get(T, 0, offset) for offset in (4, 5, 24, 25, 35)] == [None, b"new", b"new", None, b"old"]
    assert cache.size == 6 + 4 * BATCH_OVERHEAD


def test_the_least_recently_used_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_runs, "CHUNK_BYTES", 0)
    cache = BatchCache(3 * (1 + 2 * BATCH_OVERHEAD))
    for first in range(3):
        cache.add(T, 0, first, first, b"x")
    cache.get(T, 0, 0)
    cache.add(T, 1, 0, 0, b"y")
    assert [cache.get(T, 0, offset) for offset in range(3)] == [b"x", None, b"x"]
    assert cache.get(T, 1, 0) == b"y"


def test_the_garbage_collector_forgets_the_batches_of_full_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_runs, "CHUNK_BYTES", 3 * (BATCH_OVERHEAD + 5))
    cache = BatchCache(LARGE)
    for offset in range(6):
        cache.add(T, 0, offset, offset, b"batch")
    cache.add_read(chunk(1, 0, 2, [(0, b"a"), (1, b"b")]))
    gc.collect()
    runs = [cache.find((T, partition, 0), offset) for partition, offset in ((0, 0), (0, 2), (0, 4), (1, 0))]
    assert [run is not None and (gc.is_tracked(run.batches), len(run.batches)) for run in runs] == [
        (False, 2), (False, 2), (True, 2), (False, 2),
    ]  # fmt: skip
    assert [cache.get(T, 0, offset) for offset in range(6)] == [b"batch"] * 6


def test_each_half_is_sure_of_its_own() -> None:
    cache = BatchCache(4 * (1000 + 2 * BATCH_OVERHEAD))
    batch = bytes(1000)
    for first in (0, 2):
        cache.add(T, first, 0, 0, batch)
    for first in range(20):  # a reader that catches up
        cache.add_read(chunk(9, first, first + 1, [(first, batch)]))
    assert cache.get(T, 0, 0) == cache.get(T, 2, 0) == batch
    for first in range(20):  # a busy producer
        cache.add(T, 5 + first, 0, 0, batch)
    assert cache.get(T, 9, 19) == batch
    assert cache.size <= cache.most_bytes


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 1), st.integers(1, 3), st.integers(0, 2), st.integers(1, 40)),
        max_size=60,
    ),
    st.integers(200, 3000),
)
def test_every_answer_is_what_was_kept(steps: list[tuple[bool, int, int, int, int]], most: int) -> None:
    """Whatever is let go: a batch that is given holds the offset, or nothing lies between."""
    cache, ends, known = BatchCache(most), [0, 0], dict[tuple[int, int], tuple[int, bytes]]()
    for number, (produced, partition, count, gap, size) in enumerate(steps):
        first = ends[partition]
        last = first + count - 1
        batch = number.to_bytes(2, "big") * size
        for offset in range(first, last + 1 + (0 if produced else gap)):
            known[partition, offset] = (last, batch)
        if produced:
            cache.add(T, partition, first, last, batch)
        else:
            cache.add_read(chunk(partition, first, last + 1 + gap, [(last, batch)]))
        ends[partition] = last + 1 + gap
        assert cache.size <= most
        for (at, offset), (end, expected) in known.items():
            found = read(cache, at, offset, at_least_one=True)
            if found is not None and found.batches:
                assert offset <= end
                assert list(found.batches) == [expected]
            elif found is not None:
                assert offset > end
