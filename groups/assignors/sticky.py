"""The sticky assignors: as even as can be, and what is held stays where it is as far as that allows."""

from collections import defaultdict

from tidelog.groups.assignors.input_view import AssignorInput, Holdings, Partition
from tidelog.groups.assignors.sticky_equal import balance_equal
from tidelog.groups.assignors.sticky_general import balance_general


def sticky(view: AssignorInput) -> Holdings:
    """Share out all partitions at once: members give up everything before they join again (eager).

    Example: `a`, `b` and `c` hold t0 and t1, t2 and t3, t4 and t5. When `b` leaves, `a` gets t2 and `c` gets t3.
    Source: `StickyAssignor`, `AbstractStickyAssignor`. A member that subscribes to nothing gets nothing, whereas
    Kafka may take its group for one of equal subscriptions, by the place of its id in a HashMap.
    """
    return balance_equal(view) if view.equal else balance_general(view)


def cooperative_sticky(view: AssignorInput) -> Holdings:
    """Share out as `sticky` does, but withhold what another member still owns until it has given it up.

    Members go on reading what they keep. Who sees that it lost a partition stops reading it and joins again, and
    the next assignment hands it out. Example: `a` owns t0 and t1 when `b` joins: `a` gets t0, `b` gets nothing;
    `a` joins again with t0, and `b` gets t1. Source: `CooperativeStickyAssignor`.
    """
    claimants: defaultdict[Partition, set[str]] = defaultdict(set)
    for member, partitions in view.claims.items():
        for partition in partitions:
            claimants[partition].add(member)
    # With equal subscriptions Kafka lets nobody have a contested partition before all have given it up; otherwise
    # one of those who claim it may go on at once.
    frozen = view.contested if view.equal else frozenset()
    return {
        member: {
            partition
            for partition in partitions
            if partition not in frozen and (partition not in claimants or member in claimants[partition])
        }
        for member, partitions in sticky(view).items()
    }
