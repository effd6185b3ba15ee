"""Kafka's assignors of the consumer protocol (KIP-848), which the writer of an assignment computes. Pure.

`range`, and `uniform` where all members subscribe to the same topics, give what Kafka's give for members and topics in
the same order. Where Kafka takes them in the order of a hash table, members are taken static ones first, by instance
id, then the others by member id; topics are taken by their ids.

Source: `UniformAssignor`, `UniformHomogeneousAssignmentBuilder`, `RangeAssignor` (kafka 4.1).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tidelog.groups.assignors.uniform_mixed import balance_mixed

# (topic id, partition)
IdPartition: TypeAlias = tuple[str, int]
Shares: TypeAlias = Mapping[str, frozenset[IdPartition]]


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member: the ids of the topics that it subscribes to, and what it was assigned last."""

    member_id: str
    topics: frozenset[str]
    share: frozenset[IdPartition] = frozenset()
    instance_id: str | None = None


# The members, and {topic id: number of partitions} of all topics that they subscribe to.
Rule: TypeAlias = Callable[[Sequence[Subscriber], Mapping[str, int]], Shares]


def uniform(members: Sequence[Subscriber], partitions: Mapping[str, int]) -> Shares:
    """As many partitions for each member as for any other, one more or less; of these, those that it had."""
    ordered = in_order(members)
    if len({member.topics for member in ordered}) > 1:
        return balance_mixed([(m.member_id, m.topics, m.share) for m in ordered], partitions)
    topics = sorted(ordered[0].topics) if ordered else []
    every = [(topic, number) for topic in topics for number in range(partitions[topic])]
    least, more = divmod(len(every), len(ordered)) if ordered else (0, 0)
    had = frozenset().union(*(member.share for member in ordered))
    free = [place for place in every if place not in had]
    shares: dict[str, list[IdPartition]] = {}
    wanting: list[tuple[str, int]] = []
    there = frozenset(every)
    for number, member in enumerate(ordered):
        kept = sorted(member.share & there)
        quota = least + (more > 0)
        if more and len(kept) < quota and len(ordered) - number > more:
            quota = least  # one more goes to a member after it, which may have it already
        more -= quota - least
        shares[member.member_id] = kept[:quota]
        free.extend(kept[quota:])
        wanting.append((member.member_id, quota - min(quota, len(kept))))
    given = iter(free)
    for name, count in wanting:
        shares[name].extend(place for _, place in zip(range(count), given, strict=False))
    return {name: frozenset(share) for name, share in shares.items()}


def range_(members: Sequence[Subscriber], partitions: Mapping[str, int]) -> Shares:
    """Of each topic one range a subscriber, the first ones longer by one: topics of equal size are shared out alike."""
    ordered = in_order(members)
    shares: dict[str, set[IdPartition]] = {member.member_id: set() for member in ordered}
    for topic in {topic for member in ordered for topic in member.topics}:
        subscribers = [member for member in ordered if topic in member.topics]
        least, more = divmod(partitions[topic], len(subscribers))
        start = 0
        for number, member in enumerate(subscribers):
            end = start + least + (number < more)
            shares[member.member_id].update((topic, partition) for partition in range(start, end))
            start = end
    return {name: frozenset(share) for name, share in shares.items()}


def in_order(members: Sequence[Subscriber]) -> list[Subscriber]:
    """Static members by their instance ids, then the others by their member ids."""
    return sorted(members, key=lambda m: (m.instance_id is None, m.instance_id or m.member_id))


# By the names that clients give; the first one is taken where no member asks for one.
SERVER_ASSIGNORS: Final[Mapping[str, Rule]] = {"uniform": uniform, "range": range_}
