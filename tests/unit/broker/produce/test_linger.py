"""When what waits for a topic is due: a table, and what it costs in files when time passes."""

import pytest

from tidelog.broker.base.settings import Linger
from tidelog.broker.produce.handlers import _DISTANT_LINGER
from tidelog.broker.produce.linger import FileBudget, NextRound, Overlap, due_in_s, file_rate, small_files

MIB = 1024 * 1024
LINGER = Linger()


def busy(now_s):
    """The load of a process that has no time to spare."""
    return 1.0


@pytest.mark.parametrize(
    ("files_left", "waiting_bytes", "waited_s", "due_s"),
    [
        # A lone producer, or a few: nothing waits while the budget is rather full.
        (2_000, 100, 0.0, 0.0),
        (1_000, 100, 0.0, 0.0),
        # The budget shrinks: records linger for others.
        (999, 100, 0.0, 0.005),
        (999, 100, 0.003, 0.002),
        (0, 100, 0.005, 0.0),
        # In debt: until it is paid.
        (-20, 100, 0.0, 0.1),
        (-20, 100, 0.05, 0.1),
        (-0.2, 100, 0.001, 0.004),
        # Never later than half a second after the first.
        (-2_000, 100, 0.0, 0.5),
        (-2_000, 100, 0.4, 0.1),
        (-2_000, 100, 0.5, 0.0),
        (-2_000, 100, 9.0, 0.0),
        # A full entry is free of charge.
        (-2_000, 16 * MIB, 0.0, 0.0),
        (-2_000, 16 * MIB - 1, 0.0, 0.5),
    ],
)
def test_due(files_left, waiting_bytes, waited_s, due_s):
    assert due_in_s(LINGER, files_left, LINGER.file_rate, waiting_bytes, waited_s) == pytest.approx(due_s)


@pytest.mark.parametrize(
    ("load", "rate"),
    [(0.0, 1_000), (0.5, 1_000), (0.6, 600), (0.69, 240), (0.7, 200), (1.0, 200), (3.0, 200)],
)
def test_files_are_few_where_the_process_has_little_time_to_spare(load, rate):
    assert file_rate(LINGER, load) == pytest.approx(rate, abs=0.5)


def test_a_debt_is_paid_sooner_where_there_is_time():
    assert due_in_s(LINGER, -20, 1_000, 100, 0.0) == pytest.approx(0.02)


def test_an_object_store_lingers_longer():
    assert due_in_s(Linger(linger_s=0.05), 999, 200, 100, 0.0) == 0.05


@pytest.mark.parametrize(
    ("sizes", "files"),
    [
        ([], 0),
        ([(0, 100)], 1),
        ([(0, 100), (0, 100), (3, 100)], 2),
        ([(0, MIB // 4), (1, MIB // 4 - 1)], 1),
        ([(0, MIB // 8), (0, MIB // 8)], 0),
    ],
)
def test_only_small_files_count(sizes, files):
    assert small_files(LINGER, sizes) == files


def test_the_budget_refills_up_to_its_burst():
    budget = FileBudget(LINGER, 10.0, busy)
    budget.take(2_100, 10.0)
    found = [budget.left(now_s) for now_s in (10.0, 10.5, 11.0)]
    assert found == pytest.approx([-100, 0, 100], abs=0.01)
    assert budget.left(1_000.0) == 2_000


def test_the_budget_refills_sooner_where_there_is_time():
    loads = {10.0: 1.0, 11.0: 0.2}
    budget = FileBudget(LINGER, 10.0, loads.__getitem__)
    budget.take(3_000, 10.0)
    assert budget.left(11.0) == pytest.approx(0, abs=0.01)


def test_with_their_checkpoints_small_entries_stay_within_the_rate():
    budget, now_s, files = FileBudget(LINGER, 0.0, busy), 0.0, 0
    budget.take(2_000, now_s)
    for entry in range(15_000):
        now_s += max(0.0, -budget.left(now_s) / LINGER.file_rate)
        budget.take(8, now_s)
        files += 8 + (entry % 150 == 149)
    assert files / LINGER.file_rate == pytest.approx(now_s, abs=0.05)


def test_an_entry_without_small_files_is_free_of_charge():
    budget = FileBudget(LINGER, 0.0, busy)
    budget.take(0, 0.0)
    assert budget.left(0.0) == 2_000


@pytest.mark.parametrize(
    ("partitions", "most_entries_per_s", "most_wait_s"), [(1, 200, 0.01), (8, 26, 0.05), (100, 3, 0.5)]
)
def test_a_thousand_small_producers_stay_within_the_budget(partitions, most_entries_per_s, most_wait_s):
    budget, now_s, oldest_s, entries, files, longest_s = FileBudget(LINGER, 0.0, busy), 0.0, None, 0, 0, 0.0
    for step in range(60_000):  # a record a millisecond, a minute long
        now_s = step / 1_000
        if now_s == 30.0:
            entries, files, longest_s = 0, 0, 0.0
        oldest_s = now_s if oldest_s is None else oldest_s
        if due_in_s(LINGER, budget.left(now_s), budget.rate(now_s), 100, now_s - oldest_s) == 0:
            budget.take(partitions, now_s)
            longest_s = max(longest_s, now_s - oldest_s)
            oldest_s, entries, files = None, entries + 1, files + partitions
    assert files / 30 <= 205
    assert entries / 30 <= most_entries_per_s
    assert longest_s <= most_wait_s


def test_an_entry_waits_a_little_for_those_whom_the_one_before_has_answered():
    nobody = NextRound()
    assert nobody.left_s(1, 10.0) == 0
    four = NextRound()
    four.answered(4, 1, 0.008, 10.0)
    assert [four.left_s(waiting, 10.0) for waiting in (0, 1, 4, 5, 6)] == pytest.approx([0.002] * 3 + [0.0] * 2)
    assert [four.left_s(1, now_s) for now_s in (10.0015, 10.002, 11.0)] == pytest.approx([0.0005, 0.0, 0.0])
    assert [four.completed_by(waiting) for waiting in (4, 5, 6)] == [False, True, False]
    four.answered(4, 0, 1.0, 20.0)
    assert four.left_s(1, 20.0) == pytest.approx(0.005)


@pytest.mark.parametrize("window", [1, 5, 40])
def test_the_requests_that_a_producer_has_on_their_way_share_an_entry(window):
    entry_s, round_trip_s, next_round = 0.02, 0.002, NextRound()
    arrivals, now_s, units = [0.001 * at for at in range(window)], 0.0, []  # the first window comes bit by bit
    while len(units) < 100:
        now_s = max(now_s, arrivals[0])
        waiting = sum(at_s <= now_s for at_s in arrivals)
        if next_round.left_s(waiting, now_s) > 0:
            now_s += 0.0001
            continue
        units.append(waiting)
        now_s += entry_s
        waits = sum(at_s <= now_s for at_s in arrivals) - units[-1]
        next_round.answered(units[-1], waits, entry_s, now_s)
        arrivals = sorted([*arrivals[units[-1] :], *[now_s + round_trip_s] * units[-1]])
    assert units[2:] == [window] * 98


# --- the next entry, staged while one is committed ---------------------------------------------------------


def test_the_next_entry_is_staged_as_late_as_its_commit_allows():
    overlap = Overlap(LINGER)
    assert overlap.begins_in_s(is_staged=False) is None
    overlap.wrote(0.040)  # half of it is taken for the commit
    assert overlap.begins_in_s(is_staged=False) == pytest.approx(0.020)
    overlap.staged(0.004)
    overlap.committed(0.028)
    assert overlap.begins_in_s(is_staged=True) == pytest.approx(0.012)
    overlap.staged(1.0)
    assert overlap.begins_in_s(is_staged=True) == 0.0


def test_nothing_overlaps_a_short_commit():
    overlap = Overlap(LINGER)
    overlap.wrote(0.008)
    assert overlap.begins_in_s(is_staged=False) is None
    assert Overlap(Linger(overlap_s=0.0)).begins_in_s(is_staged=False) == 0.0


def test_nothing_overlaps_where_each_entry_is_paid_for():
    overlap = Overlap(_DISTANT_LINGER)
    overlap.wrote(0.2)
    assert overlap.begins_in_s(is_staged=False) is None
