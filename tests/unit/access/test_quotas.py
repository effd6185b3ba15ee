"""Quotas: which limit holds for a client, and how long it has to wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.access.quotas import (
    DEFAULT,
    Entity,
    Quota,
    SampledRate,
    TokenBucket,
    limit_of,
    limit_of_address,
    require_valid,
)
from tidelog.log.base.errors import InvalidConfigError

RATE = Quota.PRODUCER_BYTE_RATE
# From the most specific to the least; the limit says which one was taken.
LEVELS = [
    Entity("alice", "app"),
    Entity("alice", DEFAULT),
    Entity("alice"),
    Entity(DEFAULT, "app"),
    Entity(DEFAULT, DEFAULT),
    Entity(DEFAULT),
    Entity(None, "app"),
    Entity(None, DEFAULT),
]
# Clients with whom one counts together, by level.
SHARED = [
    Entity("alice", "app"),
    Entity("alice", "app"),
    Entity("alice"),
    Entity("alice", "app"),
    Entity("alice", "app"),
    Entity("alice"),
    Entity(None, "app"),
    Entity(None, "app"),
]


@pytest.mark.parametrize("first", range(len(LEVELS)))
def test_the_most_specific_of_eight_levels_decides(first: int) -> None:
    limits = {entity: {RATE: float(number)} for number, entity in enumerate(LEVELS, 1) if number > first}
    assert limit_of(limits, RATE, "alice", "app") == (SHARED[first], first + 1)


def test_a_level_without_this_quota_is_passed_over() -> None:
    limits = {Entity("alice", "app"): {Quota.CONSUMER_BYTE_RATE: 1.0}, Entity("alice"): {RATE: 2.0}}
    assert limit_of(limits, RATE, "alice", "app") == (Entity("alice"), 2.0)
    assert limit_of(limits, RATE, "bob", "app") is None


def test_an_address_has_its_own_limit_or_the_default() -> None:
    limits = {Entity(ip="10.0.0.1"): {Quota.CONNECTION_CREATION_RATE: 5.0}}
    assert limit_of_address(limits, "10.0.0.1") == 5.0
    assert limit_of_address(limits, "10.0.0.2") is None
    limits[Entity(ip=DEFAULT)] = {Quota.CONNECTION_CREATION_RATE: 7.0}
    assert limit_of_address(limits, "10.0.0.2") == 7.0


@pytest.mark.parametrize(
    ("entity", "limits", "why"),
    [
        (Entity(), {RATE: 1}, "for a user"),
        (Entity("alice", ip="10.0.0.1"), {Quota.CONNECTION_CREATION_RATE: 1}, "by itself"),
        (Entity(ip="10.0.0.1"), {RATE: 1}, "users and client ids"),
        (Entity("alice"), {Quota.CONNECTION_CREATION_RATE: 1}, "an address"),
        (Entity("alice"), {RATE: 0}, "above 0"),
        (Entity("alice"), {RATE: float("nan")}, "above 0"),
    ],
)
def test_a_quota_that_would_never_hold_is_refused(entity: Entity, limits: dict[Quota, float], why: str) -> None:
    with pytest.raises(InvalidConfigError, match=why):
        require_valid(entity, limits)


# --- buckets -----------------------------------------------------------------------------------------------


def taken_in(seconds: float, *, limit: float, request: float, connections: int, latency_s: float) -> float:
    """What clients take in a time that ask on as soon as they may."""
    bucket, free_s, taken = TokenBucket(0.0, 1.0), [0.0] * connections, 0.0
    while (now_s := min(free_s)) < seconds:
        taken += request
        free_s[free_s.index(now_s)] = now_s + latency_s + bucket.take(request, now_s, limit)
    return taken


@pytest.mark.parametrize("connections", [1, 10, 50])
@pytest.mark.parametrize("request_bytes", [10_000, 100_000, 300_000])
def test_clients_are_held_within_ten_percent(request_bytes: int, connections: int) -> None:
    limit = 5_000_000.0
    taken = taken_in(
        60, limit=limit, request=request_bytes, connections=connections, latency_s=0.004 if connections == 1 else 0.1
    )
    fastest = connections * request_bytes / (0.004 if connections == 1 else 0.1)
    assert taken / 60 == pytest.approx(min(limit, fastest), rel=0.1)


@pytest.mark.parametrize("request_bytes", [1_000_000, 20_000_000])
def test_a_request_above_a_windows_bytes_is_taken_and_paid_for(request_bytes: int) -> None:
    taken = taken_in(600, limit=1e6, request=request_bytes, connections=1, latency_s=0.01)
    assert taken / 600 == pytest.approx(1e6, rel=0.1)


def test_a_silent_client_may_take_what_one_window_brings() -> None:
    bucket = TokenBucket(0.0, 1.0)
    assert bucket.take(100, 50.0, 100.0) == 0.0
    assert bucket.take(1, 50.0, 100.0) == pytest.approx(0.01)
    assert bucket.wait_s(50.0, 100.0) == pytest.approx(0.01)
    assert bucket.wait_s(50.01, 100.0) == pytest.approx(0.0)
    assert bucket.left(90.0, 100.0) == 100.0


def test_a_rate_is_what_was_taken_over_its_samples() -> None:
    rate = SampledRate(11, 1.0)
    assert rate.rate(0.0) == 0.0
    for second in range(30):
        rate.add(500, float(second))
    assert rate.rate(29.5) == pytest.approx(500, rel=0.15)
    assert rate.rate(100.0) == 0.0


@given(
    st.lists(st.tuples(st.floats(0, 2), st.floats(0, 500)), min_size=1, max_size=60),
    st.floats(1, 1000),
)
def test_whatever_comes_a_client_that_waits_gets_no_more_than_its_limit(
    asked: list[tuple[float, float]], limit: float
) -> None:
    """`asked`: (how long after it may, how much)."""
    bucket, now_s, taken = TokenBucket(0.0, 1.0), 0.0, 0.0
    for later_s, amount in asked:
        now_s += later_s
        taken += amount
        now_s += bucket.take(amount, now_s, limit)
        # Once it may go on: all that it took, within what the time has brought and one window before.
        assert taken <= limit * (now_s + 1.0) * (1 + 1e-9) + 1e-6
    assert bucket.wait_s(now_s, limit) == pytest.approx(0, abs=1e-6)
