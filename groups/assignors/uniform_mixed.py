"""`uniform` where members subscribe to different topics: balance first, then few moves. Pure.

Its steps are those of Kafka's `UniformHeterogeneousAssignmentBuilder` (kafka 4.0); which of several balanced
assignments comes out differs.
"""

import heapq
from collections.abc import Mapping, Sequence

# As often each topic is balanced at most: subscriptions that overlap may take very long to come to rest.
MOST_ROUNDS = 16

IdPartition = tuple[str, int]


def balance_mixed(
    members: Sequence[tuple[str, frozenset[str], frozenset[IdPartition]]], partitions: Mapping[str, int]
) -> dict[str, frozenset[IdPartition]]:
    """The shares of members (id, topics subscribed to, what it had), of all partitions that a member subscribes to.

    Topics with most partitions a subscriber come first: what fewest members can take is placed before the rest.
    """
    subscribers = {
        topic: [place for place, (_, topics, _) in enumerate(members) if topic in topics]
        for topic in frozenset().union(*(topics for _, topics, _ in members))
    }
    order = sorted(
        subscribers, key=lambda topic: (-partitions[topic] / len(subscribers[topic]), len(subscribers[topic]), topic)
    )
    owners: dict[str, list[int | None]] = {topic: [None] * partitions[topic] for topic in order}
    sizes = [0] * len(members)
    for place, (_, topics, had) in enumerate(members):
        for topic, number in had:
            if topic in topics and number < partitions[topic]:
                owners[topic][number] = place
                sizes[place] += 1
    for topic in order:
        _place(owners[topic], subscribers[topic], sizes)
    shared = [topic for topic in order if len(subscribers[topic]) > 1]
    for _ in range(MOST_ROUNDS):
        if not sum([_even_out(owners[topic], subscribers[topic], sizes) for topic in shared]):
            break
    shares: list[set[IdPartition]] = [set() for _ in members]
    for topic, owned in owners.items():
        for number, owner in enumerate(owned):
            if owner is not None:
                shares[owner].add((topic, number))
    return {name: frozenset(share) for (name, _, _), share in zip(members, shares, strict=True)}


def _place(owned: list[int | None], subscribers: Sequence[int], sizes: list[int]) -> None:
    """Give each partition without an owner to the subscriber with fewest partitions."""
    least = [(sizes[place], place) for place in subscribers]
    heapq.heapify(least)
    for number, owner in enumerate(owned):
        if owner is None:
            size, place = least[0]
            owned[number], sizes[place] = place, size + 1
            heapq.heapreplace(least, (size + 1, place))


def _even_out(owned: list[int | None], subscribers: Sequence[int], sizes: list[int]) -> int:
    """Move partitions of a topic from subscribers with most to those with fewest, while that balances; how many."""
    mine: dict[int, list[int]] = {}
    for number, owner in enumerate(owned):
        if owner is not None:
            mine.setdefault(owner, []).append(number)
    least = [(sizes[place], place) for place in subscribers]
    most = [(-sizes[place], place) for place in mine]
    heapq.heapify(least)
    heapq.heapify(most)
    moved = 0
    while most:
        size, giver = heapq.heappop(most)
        if -size != sizes[giver]:  # it has given or taken since
            heapq.heappush(most, (-sizes[giver], giver))
            continue
        if not mine[giver]:
            continue
        while least[0][0] != sizes[least[0][1]]:
            heapq.heapreplace(least, (sizes[least[0][1]], least[0][1]))
        taker = least[0][1]
        if sizes[giver] - sizes[taker] <= 1:
            break
        number = mine[giver].pop()
        owned[number] = taker
        mine.setdefault(taker, []).append(number)
        sizes[giver] -= 1
        sizes[taker] += 1
        moved += 1
        heapq.heappush(most, (-sizes[giver], giver))
    return moved
