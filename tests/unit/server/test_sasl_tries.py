"""How often one address may fail."""

import pytest
from support.broker_connections import FakeClock

from tidelog.server.base.tries import MOST_ADDRESSES, FailedTries, network_of


def test_so_many_failures_within_a_minute_and_no_more():
    clock = FakeClock()
    tries = FailedTries(60, clock)
    for _ in range(60):
        assert not tries.is_over("10.0.0.1")
        tries.failed("10.0.0.1")
    assert tries.is_over("10.0.0.1")
    assert not tries.is_over("10.0.0.2")
    clock.now_s += 0.9
    assert tries.is_over("10.0.0.1")
    clock.now_s += 0.2
    assert not tries.is_over("10.0.0.1")
    tries.failed("10.0.0.1")
    assert tries.is_over("10.0.0.1")
    clock.now_s += 60
    for _ in range(60):
        assert not tries.is_over("10.0.0.1")
        tries.failed("10.0.0.1")
    assert tries.is_over("10.0.0.1")


def test_one_failure_alone_may_be_all():
    clock = FakeClock()
    tries = FailedTries(1, clock)
    assert not tries.is_over("a")
    tries.failed("a")
    assert tries.is_over("a")
    clock.now_s += 61
    assert not tries.is_over("a")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("", "", True),
    ],
)
def test_addresses_that_count_as_one(one, other, same):
    assert (network_of(one) == network_of(other)) == same


def test_the_memory_of_addresses_is_bounded():
    tries = FailedTries(1, FakeClock())
    for number in range(MOST_ADDRESSES + 100):
        tries.failed(f"host {number}")
    assert len(tries) == MOST_ADDRESSES
    assert not tries.is_over("host 0")
    assert tries.is_over(f"host {MOST_ADDRESSES}")
