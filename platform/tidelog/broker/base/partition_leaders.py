"""Which brokers lead a topic's partitions: dealt in turn, so that the busiest leads one partition more than the idlest.

The answer follows from the brokers, the topic's id and the partition's number. It knows neither how many partitions a
topic has nor which other topics there are: a leader that moved when these change would move under an epoch that clients
know, and they would not follow.

A topic seats the brokers that the cluster knows, running or not, in an order of its own. Partitions are dealt to seats
in rounds, each of which every seat has one partition of. The rounds of one seat more are made of those before with as
few changes as that takes (`seats_in_turn`), so that a broker that comes takes its share and leaves the rest. The
partitions of a broker that is down go to the others in the same way, and back to it when it returns.
"""

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from typing import Final, TypeVar

T = TypeVar("T")

# From this number of partitions on, rounds repeat: leaders stay even, and more of them move when brokers come.
MOST_IN_TURN: Final = 4096


def in_rounds(wanted: Sequence[T | None], everyone: Sequence[T]) -> list[T]:
    """One round: of as many `wanted` as there are, each is kept that wasn't there before; the missing ones fill in."""
    missing = dict.fromkeys(everyone)
    kept: list[T | None] = []
    for broker in wanted:
        is_missing = broker is not None and broker in missing
        kept.append(broker if is_missing else None)
        if is_missing:
            del missing[broker]  # type: ignore[arg-type]
    left = iter(missing)
    return [next(left) if broker is None else broker for broker in kept]


@cache
def seats_in_turn(seats: int) -> Sequence[int]:
    """The seat, from 0, of partition 0, 1, 2 … among as many `seats`; from its length on it repeats."""
    if seats > MOST_IN_TURN:
        return range(seats)
    turns: Sequence[int] = [0] * MOST_IN_TURN
    for count in range(2, seats + 1):
        everyone, size, before = range(count), MOST_IN_TURN // count * count, len(turns)
        turns = [
            seat
            for first in range(0, size, count)
            for seat in in_rounds([turns[n % before] for n in range(first, first + count)], everyone)
        ]
    return tuple(turns)


def seated(key: bytes, ids: Sequence[int]) -> list[int]:
    """The ids of all brokers in the order of a key's seats: any order is as likely as any other.

    One above all others takes some seat, and the former holder gets the new seat; nothing else changes.
    """
    order: list[int] = []
    for place, broker_id in enumerate(sorted(ids)):
        digest = blake2b(key, digest_size=8, salt=broker_id.to_bytes(8, "big", signed=True)).digest()
        seat = int.from_bytes(digest, "big") * (place + 1) >> 64
        order.append(broker_id)
        order[place], order[seat] = order[seat], broker_id
    return order


class Dealt:
    """A topic's partitions, dealt to the brokers of `serving`, at least one; `known` has them all, and others.

    `order`: those that serve, in the topic's order. `leaders`: how many of them lead; all, where there are fewer.
    """

    def __init__(self, topic: bytes, known: Sequence[int], serving: Sequence[int], leaders: int | None = None) -> None:
        seats = seated(topic, known)
        serves = set(serving)
        self.order = [one for one in seats if one in serves]
        if leaders is not None and leaders < len(self.order):
            others = iter([one for one in seats[leaders:] if one in serves])
            seats = [one if one in serves else next(others) for one in seats[:leaders]]
            serves = set(seats)
        self._seats = seats
        self._leads = [one for one in self.order if one in serves]
        self._is_full = len(self._leads) == len(seats)

    def leader(self, partition: int) -> int:
        """The id of the broker that leads a partition, of any number."""
        turns, seats, count = seats_in_turn(len(self._seats)), self._seats, len(self._leads)
        if self._is_full:
            return seats[turns[partition % len(turns)]]
        partition %= max(1, len(turns) // count) * count
        first = partition - partition % count
        wanted = [seats[turns[n % len(turns)]] for n in range(first, first + count)]
        return in_rounds(wanted, self._leads)[partition - first]
