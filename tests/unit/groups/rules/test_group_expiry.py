"""When a committed offset is no longer kept: Kafka's rule as a table. Times in minutes, retention 10."""

import pytest

from tidelog.groups.consumer_protocol import Subscription, encode_subscription
from tidelog.groups.model import CommittedOffset, Group, GroupPhase, GroupView, Member
from tidelog.groups.rules.expiry import expire

MINUTE = 60_000
OFFSETS = {("t", 0): CommittedOffset(1, commit_ms=0), ("u", 0): CommittedOffset(1, commit_ms=5 * MINUTE)}
T, U = ("t", 0), ("u", 0)


def empty(since: int | None, protocol_type: str = "consumer") -> Group:
    since_ms = None if since is None else since * MINUTE
    return Group("g", GroupPhase.EMPTY, 3, protocol_type, empty_since_ms=since_ms)


def live(phase: GroupPhase, subscription: bytes, protocol_type: str = "consumer") -> Group:
    member = Member("m", "c", "/h", 1, 1, (("range", subscription),))
    return Group("g", phase, 3, protocol_type, "range", "m", {"m": member})


READS_T = encode_subscription(Subscription(("t",)))


@pytest.mark.parametrize(
    ("group", "now", "expired", "forgotten"),
    [
        # never had members: each offset's own time
        (None, 9, [], False),
        (None, 10, [T], False),
        (None, 15, [T, U], False),
        (empty(None, ""), 10, [T], False),
        (empty(None, ""), 15, [T, U], True),
        # had members: from when the last one left, whatever the commits' times
        (empty(4), 13, [], False),
        (empty(4), 14, [T, U], True),
        (empty(None), 10, [T], False),
        # has members: what they read stays, the rest goes by its own time
        (live(GroupPhase.STABLE, READS_T), 1_000, [U], False),
        (live(GroupPhase.STABLE, READS_T), 14, [], False),
        (live(GroupPhase.PREPARING, READS_T), 1_000, [], False),
        (live(GroupPhase.COMPLETING, READS_T), 1_000, [], False),
        # members that don't say what they read keep everything
        (live(GroupPhase.STABLE, b"\x00"), 1_000, [], False),
        (live(GroupPhase.STABLE, READS_T, "connect"), 1_000, [], False),
    ],
)
def test_the_rule(group: Group | None, now: int, expired: list, forgotten: bool) -> None:
    decision = expire(GroupView(group, OFFSETS), now * MINUTE, 10 * MINUTE)
    assert decision.response == expired
    assert decision.offsets == dict.fromkeys(expired)
    assert (decision.group is not None and decision.group.phase is GroupPhase.DEAD) == forgotten


@pytest.mark.parametrize(("now", "forgotten"), [(13, False), (14, True)])
def test_a_group_without_offsets_is_forgotten_as_late(now: int, forgotten: bool) -> None:
    decision = expire(GroupView(empty(4), {}), now * MINUTE, 10 * MINUTE)
    assert (decision.group is not None, decision.offsets) == (forgotten, {})


def test_a_group_that_nobody_knows_stays_unknown() -> None:
    assert expire(GroupView(), 10**6, 1).group is None
