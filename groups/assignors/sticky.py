"""The sticky assignors: as even as can be, and what is held stays where it is as far as that allows."""

from collections import defaultdict, deque

from tidelog.groups.assignors.input_view import AssignorInput, Holdings, Partition
from tidelog.groups.assignors.java_order import hash_order, utf16_key
from tidelog.groups.assignors.sticky_general import balance_general


def sticky(view: AssignorInput) -> Holdings:
    """Share out all partitions at once: members give up everything before they join again (eager).

    Example: `a`, `b` and `c` hold t0 and t1, t2 and t3, t4 and t5. When `b` leaves, `a` gets t2 and `c` gets t3.
    Source: `StickyAssignor`, `AbstractStickyAssignor`. A member that subscribes to nothing gets nothing, whereas
    Kafka may take its group for one of equal subscriptions, by the place of its id in a HashMap.
    """
    return _balance_equal(view) if view.equal else balance_general(view)


def cooperative_sticky(view: AssignorInput) -> Holdings:
    """Share out as `sticky` does, but withhold what another member still owns until it has given it up.

    Members go on reading what they keep. A member that has lost a partition stops reading it and joins again, and
    the next assignment hands it out. Example: `a` owns t0 and t1 when `b` joins: `a` gets t0, `b` gets nothing;
    `a` joins again with t0, and `b` gets t1. Source: `CooperativeStickyAssignor`.
    """
    claimants: defaultdict[Partition, set[str]] = defaultdict(set)
    for member, partitions in view.claims.items():
        for partition in partitions:
            claimants[partition].add(member)
    # With equal subscriptions Kafka lets no member have a contested partition before all have given it up; otherwise
    # one of the members that claim it may go on at once.
    frozen = view.contested if view.equal else frozenset()
    return {
        member: {
            partition
            for partition in partitions
            if partition not in frozen and (partition not in claimants or member in claimants[partition])
        }
        for member, partitions in sticky(view).items()
    }


def _balance_equal(view: AssignorInput) -> Holdings:
    """Exact quotas, in one pass, where all members subscribe to the same topics.

    Every member gets `partitions // members` partitions, and one more to as many members as the rest needs.

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

    Members take turns by id. Those that reach their quota here queue for one more behind those that came with it.
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
