"""When a broker counts as dead: both signs, by the observer's own clock."""

import pytest

from tidelog.log.storage.leases import SilenceTimers

SILENCE_S = 2.0
STEP_S = 0.25


class Observer:
    """Looks every quarter of a second at one broker."""

    def __init__(self) -> None:
        self.timers = SilenceTimers()
        self.now_s = 100.0
        self.counter = 0

    def watch(self, seconds: float, *, beats: bool, answers: bool) -> float | None:
        """Look for so long; after how many seconds the broker was dead, None when it was not."""
        began_s = self.now_s
        while self.now_s < began_s + seconds:
            if self.look(beats=beats, answers=answers):
                return self.now_s - began_s
            self.now_s += STEP_S
        return None

    def look(self, *, beats: bool, answers: bool) -> bool:
        self.counter += beats
        if answers:
            self.timers.forget("r")
            return False
        return self.timers.look("r", self.counter, SILENCE_S, self.now_s)


@pytest.fixture
def observer() -> Observer:
    return Observer()


def test_a_broker_that_neither_beats_nor_answers_is_dead_after_the_silence(observer):
    assert observer.watch(60, beats=True, answers=True) is None
    assert observer.watch(60, beats=False, answers=False) == SILENCE_S


def test_a_broken_link_alone_is_no_death(observer):
    assert observer.watch(600, beats=True, answers=False) is None


def test_a_lease_that_stands_still_alone_is_no_death(observer):
    assert observer.watch(600, beats=False, answers=True) is None


def test_a_link_that_comes_back_begins_the_silence_again(observer):
    assert observer.watch(SILENCE_S - STEP_S, beats=False, answers=False) is None
    assert observer.watch(STEP_S, beats=False, answers=True) is None
    assert observer.watch(60, beats=False, answers=False) == SILENCE_S


def test_a_beat_begins_the_silence_again(observer):
    assert observer.watch(SILENCE_S - STEP_S, beats=False, answers=False) is None
    assert observer.watch(STEP_S, beats=True, answers=False) is None
    assert observer.watch(60, beats=False, answers=False) == SILENCE_S - STEP_S  # the beat was seen a step before


def test_an_observer_that_was_frozen_itself_begins_again(observer):
    assert observer.watch(1, beats=False, answers=False) is None
    observer.now_s += 3600
    assert observer.watch(60, beats=False, answers=False) == SILENCE_S


def test_a_registration_is_watched_by_itself():
    timers = SilenceTimers()
    for now_s in (0.0, 1.0):
        assert not timers.look("old", 5, SILENCE_S, now_s)
    assert not timers.look("new", 5, SILENCE_S, 2.0)
    assert timers.look("old", 5, SILENCE_S, 2.0)


def test_what_is_forgotten_begins_at_zero():
    timers = SilenceTimers()
    timers.look("r", 5, SILENCE_S, 0.0)
    timers.look("r", 5, SILENCE_S, 1.0)
    assert timers.due_s() == SILENCE_S
    timers.keep([])
    assert timers.due_s() is None
    assert not timers.look("r", 5, SILENCE_S, 2.0)


def test_no_lease_at_all_is_silence_too(observer):
    observer.counter = None  # type: ignore[assignment]
    assert [observer.timers.look("r", None, SILENCE_S, now_s) for now_s in (0.0, 1.0, 2.0)] == [False, False, True]
