"""A group as an assignor sees it: the topics of each member, their partition counts, and the holders of partitions."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidelog.log.base.errors import InvalidPartitionsError

Partition = tuple[str, int]
# What each member of the group is to read; every member has an entry.
Holdings = dict[str, set[Partition]]


@dataclass(frozen=True, slots=True)
class AssignorInput:
    """Checked input of an assignor; `assignor_input` makes it.

    `topics`: all that each member subscribes to, topics that don't exist too. `counts`: partitions, above 0, of the
    topics that exist and that a member subscribes to. `claims`: existing partitions of those topics that each member
    says it owns. `contested`: partitions claimed more than once. `static_ids`: by member, for static members only.
    """

    topics: Mapping[str, frozenset[str]]
    counts: Mapping[str, int]
    claims: Mapping[str, frozenset[Partition]]
    contested: frozenset[Partition]
    static_ids: Mapping[str, str]

    @property
    def equal(self) -> bool:
        """Whether all members subscribe to the same topics, those that don't exist counted."""
        return len(set(self.topics.values())) <= 1

    def owned(self, member: str) -> frozenset[Partition]:
        """Return the partitions that the member alone claims; a contested one is no member's."""
        return self.claims[member] - self.contested

    def partitions(self, topics: Iterable[str]) -> list[Partition]:
        """All partitions of `topics`, in the order of `topics`, numbers rising."""
        return [(topic, number) for topic in topics for number in range(self.counts[topic])]


def assignor_input(
    subscriptions: Mapping[str, Iterable[str]],
    partition_counts: Mapping[str, int],
    owned: Mapping[str, Iterable[Partition]],
    static_ids: Mapping[str, str | None],
) -> AssignorInput:
    """Check an assignor's input and drop what does not count.

    Dropped are claims of members that are gone, and of partitions that are gone: of a topic that no member subscribes
    to, or numbered past the topic's count, as after a topic was deleted and created again smaller (Kafka hands such
    a partition out). Raises InvalidPartitionsError for a count below 0; 0 is a topic that does not exist.
    """
    for topic, count in partition_counts.items():
        if count < 0:
            raise InvalidPartitionsError(
                f"Topic {topic!r} was given {count} partitions: a topic has at least 1, 0 is for a topic that "
                "does not exist. Give the number that the topic has."
            )
    shared: dict[frozenset[str], frozenset[str]] = {}  # one set for all members that want the same
    topics = {member: shared.setdefault(wanted := frozenset(names), wanted) for member, names in subscriptions.items()}
    wanted_by_any = frozenset().union(*shared)
    counts = {topic: count for topic, count in partition_counts.items() if count and topic in wanted_by_any}
    listed = {
        member: [(topic, number) for topic, number in owned.get(member, ()) if 0 <= number < counts.get(topic, 0)]
        for member in subscriptions
    }
    claimed = Counter(partition for partitions in listed.values() for partition in partitions)
    return AssignorInput(
        topics=topics,
        counts=counts,
        claims={member: frozenset(partitions) for member, partitions in listed.items()},
        contested=frozenset(partition for partition, times in claimed.items() if times > 1),
        static_ids={member: name for member, name in static_ids.items() if name is not None},
    )
