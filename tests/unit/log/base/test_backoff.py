"""Pauses grow with failures, and with what a look costs."""

import pytest
from support.logs import FakeClock

from tidelog.log.base.backoff import Backoff, BackoffRule, PollBackoff


@pytest.mark.parametrize(
    ("rule", "pauses"),
    [
        (BackoffRule(1, 3), [1, 2, 3, 3]),
        (BackoffRule(1, 3, times=1.5), [1, 1.5, 2.25, 3]),
        (BackoffRule(4, 3), [3, 3, 3, 3]),
        (BackoffRule(0, 3), [0, 0, 0, 0]),
        (BackoffRule(1, 3, least=0.0, spread=1.0), [0.5, 1, 1.5, 1.5]),
        (BackoffRule(1, 3, least=0.5, spread=0.5), [0.75, 1.5, 2.25, 2.25]),
    ],
)
def test_pauses_grow_up_to_the_longest(rule: BackoffRule, pauses: list[float]) -> None:
    assert [rule.pause_s(attempt, 0.5) for attempt in (1, 2, 3, 4)] == pauses
    assert rule.pause_s(10**9, 0.5) == pauses[-1]


def test_pauses_begin_again() -> None:
    backoff = Backoff(1, 3)
    assert [backoff.next_s() for _ in range(4)] == [1, 2, 3, 3]
    backoff.reset()
    assert backoff.next_s() == 1


def test_looks_take_a_tenth_of_the_time() -> None:
    clock = FakeClock()
    backoff = PollBackoff(clock)
    assert backoff.is_due
    with backoff.poll():
        clock.pass_s(0.02)
    assert not backoff.is_due
    clock.pass_s(0.17)
    assert not backoff.is_due
    clock.pass_s(0.02)
    assert backoff.is_due


def test_no_pause_is_long() -> None:
    clock = FakeClock()
    backoff = PollBackoff(clock)
    with backoff.poll():
        clock.pass_s(20)
    clock.pass_s(0.3)
    assert backoff.is_due


def test_a_look_that_costs_nothing_is_due_again_at_once() -> None:
    backoff = PollBackoff(FakeClock())
    with backoff.poll():
        pass
    assert backoff.is_due


def test_something_to_see_makes_the_next_look_due() -> None:
    clock = FakeClock()
    backoff = PollBackoff(clock)
    with backoff.poll():
        clock.pass_s(10)
    backoff.reset()
    assert backoff.is_due
