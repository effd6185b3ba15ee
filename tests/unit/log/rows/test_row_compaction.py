"""Compaction of tables of rows: which files, and that nothing changes but their number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.row_tables import WORDS, WordsFold, says

from tidelog.log.rows.compaction import RowCompactionPlan, compact_rows, plan_row_compaction
from tidelog.log.rows.rules import row_stats_json
from tidelog.log.state.topic_state import Segment


def files(*sizes: int) -> list[Segment]:
    """Files with these numbers of rows, end to end."""
    found, base = [], 0
    for size in sizes:
        stats = row_stats_json(size, 0, size - 1)
        found.append(Segment(f"rows/{base}.parquet", 0, base, base + size, 100, 0, stats))
        base += size
    return found


@pytest.mark.parametrize(
    ("sizes", "live", "chosen"),
    [
        ([], 0, None),
        ([1] * 15, 15, None),  # too few to bother
        ([1] * 16, 16, 16),
        ([100] + [1] * 15, 115, None),
        ([100] + [1] * 16, 116, 16),  # the large one waits until its neighbours have grown
        ([16] + [1] * 16, 32, 17),
        ([1000, 30] + [1] * 30, 1060, 31),
        ([5000, 5000], 1000, 2),  # mostly replaced rows: all of it
        ([10_000], 1000, None),  # one file is compact, whatever it says of itself
    ],
)
def test_the_plan(sizes: list[int], live: int, chosen: int | None) -> None:
    plan = plan_row_compaction(files(*sizes), live)
    if chosen is None:
        assert plan is None
    else:
        assert plan == RowCompactionPlan(tuple(files(*sizes)[-chosen:]), chosen == len(sizes))


def test_a_table_that_grows_is_rewritten_seldom() -> None:
    """100,000 rows, all of them live, 500 a run: each is written a few times, not 200 times."""
    sizes: list[int] = []
    written = 0
    for _ in range(200):
        sizes += [1] * 500
        plan = plan_row_compaction(files(*sizes), sum(sizes))
        assert plan is not None
        merged = sum(sizes[-len(plan.files) :])
        sizes[-len(plan.files) :] = [merged]
        written += merged
        assert len(sizes) < 20
    assert written < 12 * 100_000


ROWS = st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.integers(0, 9)), min_size=2, max_size=30)


@given(ROWS, st.data())
def test_compaction_changes_nothing_that_the_log_says(rows: list[tuple[str, int | None]], data: st.DataObject) -> None:
    log = [(order, says(key, value)) for order, (key, value) in enumerate(rows)]
    first = data.draw(st.integers(0, len(log) - 2))
    last = data.draw(st.integers(first + 2, len(log)))
    plan = RowCompactionPlan((), whole=first == 0)
    kept = compact_rows(WORDS, plan, log[first:last])
    assert [order for order, _ in kept] == sorted({order for order, _ in kept})
    assert kept[-1][0] == last - 1  # the end of what the file covers
    assert set(map(str, kept)) <= set(map(str, log))

    def fold(some: list) -> WordsFold:
        state = WordsFold()
        state.take([row for _, row in some])
        return state

    assert fold([*log[:first], *kept, *log[last:]]) == fold(log)


def test_tombstones_go_only_when_nothing_older_is_left() -> None:
    log = [(0, says("a", 1)), (1, says("a", None)), (2, says("b", 2))]
    assert compact_rows(WORDS, RowCompactionPlan((), whole=True), log) == [log[2]]
    assert compact_rows(WORDS, RowCompactionPlan((), whole=False), log) == [log[1], log[2]]
