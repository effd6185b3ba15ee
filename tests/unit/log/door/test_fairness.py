"""Which writer goes first: writers at different distances from the store, in virtual time."""

import heapq
import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tidelog.log.door.fairness import ALONE_EVERY, FORGIVEN_S, PAUSE_S, SHARED_EVERY, FairnessBackoff

NEAR, FAR = 0.06, 0.2


class Log:
    """A log behind a network; `trips` are its writers' round trips, `wins` when each got an entry in, `puts` all tries.

    All writers always have records to commit. A writer stages, looks for entries until none is there, puts the next.
    """

    def __init__(self, trips: list[float], seconds: float, seed: int = 1) -> None:
        self.chance = random.Random(seed)
        self.head = self.puts = 0
        self.seconds = seconds
        self.wins: list[list[float]] = [[] for _ in trips]
        writers = [self.write(i, trip) for i, trip in enumerate(trips)]
        due = [(next(writer), i) for i, writer in enumerate(writers)]
        heapq.heapify(due)
        while due[0][0] < seconds:
            now, i = heapq.heappop(due)
            heapq.heappush(due, (now + writers[i].send(now), i))

    def write(self, i: int, trip: float) -> Iterator[float]:
        def half() -> float:
            return trip / 2 * (0.8 + 0.4 * self.chance.random())

        fairness, known = FairnessBackoff(), 0
        now = yield self.chance.random()
        while True:
            now = yield 2 * half()
            while True:
                now = yield half()
                seen = self.head
                now = yield half()
                if seen > known:
                    known = seen
                    fairness.saw(known)
                    continue
                if wait_s := fairness.wait_s(known + 1, now):
                    now = yield wait_s
                    continue
                now = yield half()
                self.puts += 1
                won = self.head == known
                self.head += won
                now = yield half()
                if won:
                    break
            known += 1
            fairness.committed(now)
            self.wins[i].append(now)

    def share(self, i: int) -> float:
        """How many entries a writer got, as a share of those that it would get if all got as many."""
        return len(self.wins[i]) * len(self.wins) / self.head

    def longest_wait_s(self, i: int) -> float:
        times = [0.0, *self.wins[i], self.seconds]
        return max(b - a for a, b in pairwise(times))


@pytest.mark.parametrize("near", [1, 3, 7])
@pytest.mark.parametrize("seed", range(3))
def test_a_writer_far_from_the_store_is_not_starved(near: int, seed: int):
    log = Log([NEAR] * near + [FAR], 600, seed)
    assert log.share(near) >= (0.2 if near > 1 else 0.1)
    assert log.longest_wait_s(near) <= 40


def test_without_turns_it_would_be(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FairnessBackoff, "wait_s", lambda *_: 0.0)
    log = Log([NEAR] * 7 + [FAR], 600)
    assert log.share(7) < 0.01


@pytest.mark.parametrize("writers", [2, 8, 20])
def test_writers_at_the_same_distance_share_alike(writers: int):
    log = Log([NEAR] * writers, 300)
    assert min(log.share(i) for i in range(writers)) >= 0.8
    assert max(log.longest_wait_s(i) for i in range(writers)) <= 15


def test_fewer_races_are_lost(monkeypatch: pytest.MonkeyPatch):
    """Of writers that have waited equally long, fewer try at once: each try is a request that is paid for."""
    polite = Log([NEAR] * 8, 300)
    monkeypatch.setattr(FairnessBackoff, "wait_s", lambda *_: 0.0)
    rude = Log([NEAR] * 8, 300)
    assert polite.puts / polite.head < rude.puts / rude.head


def test_a_writer_alone_hardly_waits(monkeypatch: pytest.MonkeyPatch):
    polite = Log([NEAR], 300)
    monkeypatch.setattr(FairnessBackoff, "wait_s", lambda *_: 0.0)
    assert polite.head > 0.95 * Log([NEAR], 300).head


# --- one writer's rules ------------------------------------------------------------------------------------


def waits(fairness: FairnessBackoff, now_s: float, versions: range) -> list[int]:
    """For which of these entries it would wait."""
    return [version for version in versions if fairness.wait_s(version, now_s)]


def test_who_has_never_committed_waits_for_nobody():
    fairness = FairnessBackoff()
    fairness.saw(5)
    assert waits(fairness, 100.0, range(1000)) == []


def test_entries_that_are_left_to_others():
    fairness = FairnessBackoff()
    fairness.committed(100.0)
    assert waits(fairness, 100.0, range(1, 300)) == [ALONE_EVERY, 2 * ALONE_EVERY]
    fairness.saw(300)
    assert waits(fairness, 100.0, range(300, 330)) == [304, 312, 320, 328]
    assert waits(fairness, 100.0, range(440, 600)) == [ALONE_EVERY * 4]


@pytest.mark.parametrize(
    ("since_s", "pause_s"), [(0, PAUSE_S), (FORGIVEN_S / 2, PAUSE_S / 2), (FORGIVEN_S, 0), (99, 0)]
)
def test_the_longer_ago_the_shorter(since_s: float, pause_s: float):
    fairness = FairnessBackoff()
    fairness.committed(100.0)
    fairness.saw(1)
    assert fairness.wait_s(SHARED_EVERY, 100.0 + since_s) == pytest.approx(pause_s)


def test_a_wait_is_over_when_its_time_is():
    fairness = FairnessBackoff()
    fairness.committed(100.0)
    fairness.saw(1)
    assert [fairness.wait_s(8, now) for now in (100.0, 100.75, 101.0)] == pytest.approx([PAUSE_S, PAUSE_S / 4, 0])
