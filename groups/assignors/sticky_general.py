"""Sticky assignment where subscriptions differ: step by step towards the most even sharing that they allow."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable

from tidelog.groups.assignors.input_view import AssignorInput, Holdings, Partition
from tidelog.groups.assignors.java_order import utf16_key
from tidelog.groups.assignors.partition_movements import Movements


def balance_general(view: AssignorInput) -> Holdings:
    """Keep what is owned, hand out the rest, then move single partitions as long as that evens things out.

    Example: `a` reads `t` of 1 partition, `b` reads `t` and `u` of 2, `c` reads `t`, `u` and `v` of 3 partitions:
    `a` gets t0, `b` both of `u`, `c` all of `v`. Source: `AbstractStickyAssignor`, general case, for claims of one
    generation: then no member has a previous holder's right to a partition. A move from its holder always evens
    out, so that Kafka's step back to the state before the moves has no work left and is left out.
    """
    sharing = _Sharing(view)
    spare = [partition for partition in sharing.partitions if partition not in sharing.holder]
    sharing.hand_out(spare)
    if not _lost_a_subscription(view):
        sharing.even_out(spare)
    sharing.even_out(sharing.partitions)
    return sharing.held


def _lost_a_subscription(view: AssignorInput) -> bool:
    """Whether a member owns a partition of a topic that it no longer subscribes to."""
    return any(topic not in view.topics[member] for member in view.topics for topic, _ in view.owned(member))


class _Sharing:
    """The holders of partitions while they are being evened out.

    Members that have no topic in common with others can't take part; nothing below ever moves theirs.
    """

    def __init__(self, view: AssignorInput) -> None:
        self._members = sorted(view.topics, key=utf16_key)
        self._rank = {member: rank for rank, member in enumerate(self._members)}
        self._topics = {member: view.topics[member] & view.counts.keys() for member in self._members}
        subscribers = Counter(topic for topics in self._topics.values() for topic in topics)
        self._shared = {topic for topic, members in subscribers.items() if members > 1}
        # topics with the fewest subscribers come first: they leave the least choice
        self.partitions = view.partitions(sorted(view.counts, key=lambda topic: (subscribers[topic], topic)))
        self.held: Holdings = {
            member: {partition for partition in view.owned(member) if partition[0] in view.topics[member]}
            for member in self._members
        }
        self.holder = {partition: member for member, partitions in self.held.items() for partition in partitions}
        self._held_of = Counter((member, topic) for (topic, _), member in self.holder.items())
        self._by_load = sorted((len(self.held[member]), rank) for member, rank in self._rank.items())
        self._movements = Movements()
        self._strayed = False  # a move of this pass took from a third member
        self._circling = False  # such moves have led back to where they began
        self._fewest: dict[str, int] = {}  # per shared topic: how many partitions its least loaded subscriber has
        self._uneven: set[str] = set()  # shared topics of which a partition can move to a member with two less

    def hand_out(self, spare: Iterable[Partition]) -> None:
        """Give each partition to its least loaded subscriber."""
        for partition in spare:
            self._put(partition, self._least_loaded(partition[0]))
        self._measure(self._shared)

    def even_out(self, partitions: list[Partition]) -> None:
        """Move partitions from members that have at least two more than another subscriber, until none can be.

        Ends always: a move from the holder to a member with two less makes the sum of the squared loads smaller. A
        move that takes from a third member may not, and Kafka can go round in a circle of them for ever; when a
        state comes again, such moves are no longer made.
        """
        moved = True
        seen = set()
        while moved:
            moved = False
            for partition in partitions:
                if not self._uneven:
                    return
                if self._may_move(partition):
                    self._move(partition)
                    moved = True
            if self._strayed:
                self._strayed = False
                state = frozenset(self.holder.items()), self._movements.state()
                self._circling = state in seen
                seen.add(state)

    def _may_move(self, partition: Partition) -> bool:
        topic = partition[0]
        return topic in self._uneven and len(self.held[self.holder[partition]]) > self._fewest[topic] + 1

    def _move(self, partition: Partition) -> None:
        taker = self._least_loaded(partition[0])
        cheapest = self._movements.cheapest(partition, self.holder[partition], taker)
        if self.holder[cheapest] == self.holder[partition]:
            partition = cheapest
        elif not self._circling:
            self._strayed = True
            partition = cheapest
        giver = self.holder[partition]
        self._movements.record(partition, giver, taker)
        self._put(partition, taker)
        self._measure(self._shared & (self._topics[giver] | self._topics[taker]))

    def _put(self, partition: Partition, member: str) -> None:
        topic = partition[0]
        giver = self.holder.get(partition)
        if giver is not None:
            self._reload(giver, -1)
            self.held[giver].remove(partition)
            self._held_of[giver, topic] -= 1
        self._reload(member, 1)
        self.held[member].add(partition)
        self._held_of[member, topic] += 1
        self.holder[partition] = member

    def _reload(self, member: str, change: int) -> None:
        load, rank = len(self.held[member]), self._rank[member]
        del self._by_load[bisect_left(self._by_load, (load, rank))]
        insort(self._by_load, (load + change, rank))

    def _least_loaded(self, topic: str) -> str:
        return next(self._members[rank] for _, rank in self._by_load if topic in self._topics[self._members[rank]])

    def _most_loaded_holder(self, topic: str) -> str:
        return next(
            self._members[rank]
            for _, rank in reversed(self._by_load)
            if self._held_of.get((self._members[rank], topic))
        )

    def _measure(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._fewest[topic] = len(self.held[self._least_loaded(topic)])
            if len(self.held[self._most_loaded_holder(topic)]) > self._fewest[topic] + 1:
                self._uneven.add(topic)
            else:
                self._uneven.discard(topic)
