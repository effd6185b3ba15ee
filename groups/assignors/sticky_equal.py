"""Sticky assignment where all members subscribe to the same topics: exact quotas, one pass."""

from collections import deque

from tidelog.groups.assignors.input_view import AssignorInput, Holdings, Partition
from tidelog.groups.assignors.java_order import hash_order, utf16_key


def balance_equal(view: AssignorInput) -> Holdings:
    """Give everybody `partitions // members` partitions, and one more to as many members as the rest needs.

    Members keep what they own up to their quota. Example: `a` owns t0 to t3, `b` joins and `t` has grown to 5: of
    quotas 3 and 2, `a` keeps t0, t1 and t2; `b` gets t3 and t4. Source: `AbstractStickyAssignor`, constrained case.
    """
    if not view.topics:
        return {}
    quota, extra = divmod(sum(view.counts.values()), len(view.topics))
    holdings = _kept(view, quota, extra)
    held: set[Partition] = set().union(*holdings.values())
    left = [partition for partition in view.partitions(sorted(view.counts)) if partition not in held]
    _deal(left, holdings, quota)
    return holdings


def _kept(view: AssignorInput, quota: int, extra: int) -> Holdings:
    """What members keep of what they own: the lowest numbers, as far as the quota goes.

    The first `extra` members that own more than the quota keep one partition above it; first in a HashMap's walk.
    """
    holdings: Holdings = {}
    for member in hash_order(view.topics):
        owned = sorted(view.owned(member), key=lambda partition: (partition[1], partition[0]))
        above = extra > 0 and len(owned) > quota
        extra -= above
        holdings[member] = set(owned[: quota + above])
    return holdings


def _deal(left: list[Partition], holdings: Holdings, quota: int) -> None:
    """Hand out what is left: in turn to members below their quota, then one each to members that have just theirs.

    Members take turns by id. Those who reach their quota here queue for one more behind those who came with it.
    """
    members = sorted(holdings, key=utf16_key)
    below = [member for member in members if len(holdings[member]) < quota]
    exact = deque(member for member in members if len(holdings[member]) == quota)
    turn = 0
    for partition in left:
        if not below:
            holdings[exact.popleft()].add(partition)
            continue
        turn %= len(below)
        member = below[turn]
        holdings[member].add(partition)
        if len(holdings[member]) == quota:
            exact.append(below.pop(turn))
        else:
            turn += 1
