"""Kafka's assignors: which member of a group reads which partition. Plain functions, the same everywhere.

The leader of a group calls `assign`; the same input gives the same answer in every process, in whatever order the
input is listed. The answers equal those of the Java client's assignors (kafka-clients 4.1) without racks.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import cycle
from typing import Final

from tidelog.groups.assignors.input_view import AssignorInput, Holdings, Partition, assignor_input
from tidelog.groups.assignors.java_order import utf16_key
from tidelog.groups.assignors.sticky import cooperative_sticky, sticky
from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.typed_values import nearest


def assign(
    strategy: str,
    subscriptions: Mapping[str, Iterable[str]],
    partition_counts: Mapping[str, int],
    owned: Mapping[str, Iterable[Partition]] | None = None,
    static_ids: Mapping[str, str | None] | None = None,
) -> dict[str, list[Partition]]:
    """Share out the partitions of the subscribed topics; each member's come sorted, `[]` for an idle member.

    `strategy`: one of ASSIGNORS. `subscriptions`: the topics of each member id. `partition_counts`: the partitions
    of each topic; a topic without a count does not exist and is left out. `owned`: what members hold from before,
    which the sticky strategies build on; members that left may be among them. `static_ids`: `group.instance.id` of the
    static members, by which `range` and `roundrobin` order them before all others.

    A partition that several members claim is taken from all of them, as Kafka does with claims of one generation.
    Where claims may be of several generations, pass the newest generation's only: in Kafka it wins.

    Example, a member joins two that hold two partitions each, and one partition moves:

        assign("sticky", {"a": ["t"], "b": ["t"], "c": ["t"]}, {"t": 4},
               owned={"a": [("t", 0), ("t", 2)], "b": [("t", 1), ("t", 3)]})
        == {"a": [("t", 0), ("t", 2)], "b": [("t", 1)], "c": [("t", 3)]}

    With `cooperative-sticky`, `c` gets `[]` at first: `t` 3 is withheld until `b` has given it up and the group
    assigns again. Raises InvalidConfigError for an unknown strategy, InvalidPartitionsError for a count below 0.
    Source: `ConsumerPartitionAssignor.assign` of each strategy's class.
    """
    rule = _rule(strategy)
    view = assignor_input(subscriptions, partition_counts, owned or {}, static_ids or {})
    holdings = rule(view)
    return {member: sorted(holdings[member]) for member in sorted(view.topics)}


def range_assignor(view: AssignorInput) -> Holdings:
    """Topic by topic, give each subscriber one run of neighbouring partitions; the first ones get one more.

    Example: `a` and `b` read `t` and `u` of 3 partitions each: `a` gets 0 and 1 of both, `b` gets 2 of both. So
    partitions of one number meet in one member where topics have equal counts and subscribers.
    Source: `RangeAssignor`.
    """
    holdings: Holdings = {member: set() for member in view.topics}
    ordered = _by_static_id(view)
    for topic, count in view.counts.items():
        members = [member for member in ordered if topic in view.topics[member]]
        each, extra = divmod(count, len(members))
        start = 0
        for place, member in enumerate(members[:count]):
            end = start + each + (place < extra)
            holdings[member].update((topic, number) for number in range(start, end))
            start = end
    return holdings


def roundrobin_assignor(view: AssignorInput) -> Holdings:
    """Deal out all partitions, sorted, to the members in turn, of those that subscribe to the topic.

    Example: `a` and `b` read `t` and `u` of 3 partitions each: `a` gets t0, t2, u1 and `b` gets t1, u0, u2.
    Source: `RoundRobinAssignor`.
    """
    holdings: Holdings = {member: set() for member in view.topics}
    turns = cycle(_by_static_id(view))
    for partition in view.partitions(sorted(view.counts)):
        member = next(member for member in turns if partition[0] in view.topics[member])
        holdings[member].add(partition)
    return holdings


def _by_static_id(view: AssignorInput) -> list[str]:
    """Return the members, static ones first by their static id, then the others by member id (`MemberInfo`)."""
    dynamic = sorted(view.topics.keys() - view.static_ids.keys(), key=utf16_key)
    static = sorted(
        view.topics.keys() & view.static_ids.keys(),
        key=lambda member: (utf16_key(view.static_ids[member]), utf16_key(member)),
    )
    return static + dynamic


_RULES: Final[Mapping[str, Callable[[AssignorInput], Holdings]]] = {
    "range": range_assignor,
    "roundrobin": roundrobin_assignor,
    "sticky": sticky,
    "cooperative-sticky": cooperative_sticky,
}

# The strategies by their names in Kafka's protocol.
ASSIGNORS: Final = tuple(_RULES)


def _rule(strategy: str) -> Callable[[AssignorInput], Holdings]:
    rule = _RULES.get(strategy)
    if rule is None:
        near = nearest(strategy, ASSIGNORS)
        hint = f" Did you mean {near!r}?" if near else ""
        raise InvalidConfigError(
            f"Unknown assignor {strategy!r}.{hint} All members of a group share one of Kafka's assignors: give one of "
            f"{', '.join(ASSIGNORS)}."
        )
    return rule
