"""A look that costs much is taken less often."""

from support.logs import FakeClock

from tidelog.log.base.poll_backoff import PollBackoff


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
