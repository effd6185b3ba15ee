"""A look that costs much is taken less often."""

from support.logs import FakeClock

from tidelog.log.base.poll_backoff import Sparing


def test_looks_take_a_tenth_of_the_time() -> None:
    clock = FakeClock()
    sparing = Sparing(clock)
    assert sparing.is_due
    with sparing.look():
        clock.pass_s(0.02)
    assert not sparing.is_due
    clock.pass_s(0.17)
    assert not sparing.is_due
    clock.pass_s(0.02)
    assert sparing.is_due


def test_no_pause_is_long() -> None:
    clock = FakeClock()
    sparing = Sparing(clock)
    with sparing.look():
        clock.pass_s(20)
    clock.pass_s(0.3)
    assert sparing.is_due


def test_a_look_that_costs_nothing_is_due_again_at_once() -> None:
    sparing = Sparing(FakeClock())
    with sparing.look():
        pass
    assert sparing.is_due


def test_something_to_see_makes_the_next_look_due() -> None:
    clock = FakeClock()
    sparing = Sparing(clock)
    with sparing.look():
        clock.pass_s(10)
    sparing.look_now()
    assert sparing.is_due
