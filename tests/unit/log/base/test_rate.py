"""A rate: how long callers wait for what may pass."""

from support.logs import FakeClock

from tidelog.log.base.rate import Rate


def test_a_rate_holds_over_all_calls() -> None:
    clock = FakeClock()
    rate = Rate(clock, 1_000)
    began_s = clock.elapsed_s()
    for _ in range(10):
        rate.take(500)
    assert 4.5 <= clock.elapsed_s() - began_s <= 5


def test_what_was_not_used_passes_later_as_far_as_it_is_a_burst() -> None:
    clock = FakeClock()
    rate = Rate(clock, 1_000, burst_s=0.1)
    rate.take(100)
    clock.pass_s(60)
    began_s = clock.elapsed_s()
    rate.take(100)
    assert clock.elapsed_s() == began_s
    rate.take(100)
    assert round(clock.elapsed_s() - began_s, 6) == 0.1


def test_without_a_limit_no_caller_waits() -> None:
    clock = FakeClock()
    began_s = clock.elapsed_s()
    Rate(clock, None).take(10**12)
    assert clock.elapsed_s() == began_s
