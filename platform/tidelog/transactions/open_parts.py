"""What open transactions have added so far: the rows of kind `part`, and what they add up to (docs/format.md, 13.2).

A broker writes such a row before it answers a request of a transaction, so that any other broker can end it. A row is
replaced by a later transaction's row of the same place, so that an id holds no more rows than its largest transaction.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tidelog.log.rows.schema import Row
from tidelog.log.segments.writer import Staged
from tidelog.transactions.model import IntentPart, Transactional, TransactionKey

PART = "part"
# The slot of the row that says that a partition was added; segments have those from 1 on.
ADDED = 0
NO_SEQUENCE = -1

# (topic id, partition)
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class HeldPlace:
    """What the rows say of one partition: of the newest transaction that added it, `segments` in their order.

    `last_sequence`: the last one of the epoch, `NO_SEQUENCE` for none. `taken`: that transaction's highest slot.
    `slots`: the highest of all that have a row, and `is_marked`: there is a row in slot `ADDED` too.
    """

    topic: str
    epoch: int
    number: int
    began_ms: int
    segments: tuple[Staged, ...] = ()
    last_sequence: int = NO_SEQUENCE
    taken: int = ADDED
    slots: int = ADDED
    is_marked: bool = False

    @property
    def rows(self) -> range:
        """The slots that have a row."""
        return range(ADDED if self.is_marked else ADDED + 1, self.slots + 1)


@dataclass(frozen=True, slots=True)
class HeldGroup:
    """The newest transaction that added the offsets of a group."""

    epoch: int
    number: int
    began_ms: int


@dataclass(frozen=True, slots=True)
class Held:
    """What the rows say of one transactional id."""

    places: Mapping[Place, HeldPlace] = field(default_factory=dict)
    groups: Mapping[str, HeldGroup] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.groups) + sum(len(one.rows) for one in self.places.values())

    def taken(self, row: Row) -> "Held":
        """After another row."""
        if "groups" in row:
            return self._with_group(row)
        part = row["parts"][0]
        place = part["topic_id"], part["segments"][0]["partition"]
        if row.get("deleted"):
            return replace(self, places={one: held for one, held in self.places.items() if one != place})
        epoch, number, slot, now_ms = row["epoch"], row["number"], row["sequence"], row["update_time"]
        held = self.places.get(place) or HeldPlace(part["topic"], epoch, number, now_ms)
        if held.epoch != epoch:
            held = replace(held, last_sequence=NO_SEQUENCE)
        if (held.epoch, held.number) != (epoch, number):
            held = replace(held, epoch=epoch, number=number, began_ms=now_ms, segments=(), taken=ADDED)
        held = replace(held, slots=max(held.slots, slot), taken=max(held.taken, slot))
        if slot == ADDED:
            held = replace(held, is_marked=True)
        else:
            segments = tuple(Staged(**segment, topic_id=place[0]) for segment in part["segments"])
            held = replace(held, segments=held.segments + segments, last_sequence=row["batch"])
        return replace(self, places={**self.places, place: held})

    def _with_group(self, row: Row) -> "Held":
        group = row["groups"][0]["group"]
        if row.get("deleted"):
            return replace(self, groups={one: held for one, held in self.groups.items() if one != group})
        held = HeldGroup(row["epoch"], row["number"], row["update_time"])
        return replace(self, groups={**self.groups, group: held})

    def ended(self, epoch: int, number: int) -> "Held":
        """After transactions up to this one have ended: their segments are no part's any more."""
        if not any(one.segments and (one.epoch, one.number) <= (epoch, number) for one in self.places.values()):
            return self
        places = {
            place: replace(one, segments=()) if (one.epoch, one.number) <= (epoch, number) else one
            for place, one in self.places.items()
        }
        return replace(self, places=places)

    def gone_rows(self, transactional_id: str) -> Iterator[Row]:
        """The rows that remove all of them."""
        for (topic_id, partition), part in self.places.items():
            for slot in part.rows:
                yield {
                    "kind": PART,
                    "id": transactional_id,
                    "sequence": slot,
                    "parts": [{"topic": part.topic, "topic_id": topic_id, "segments": [_nothing(partition)]}],
                    "deleted": True,
                }
        for group in self.groups:
            yield {"kind": PART, "id": transactional_id, "groups": [{"group": group}], "deleted": True}


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that has added something and is not decided.

    `places`: {(topic id, partition): what is in it}; `began_ms`: ms since the epoch, by the first broker's clock.
    """

    key: TransactionKey
    began_ms: int
    places: Mapping[Place, HeldPlace]
    groups: tuple[str, ...]

    @property
    def parts(self) -> tuple[IntentPart, ...]:
        """What its commit appends, by topic."""
        segments: dict[tuple[str, str], list[Staged]] = {}
        for (topic_id, _), one in sorted(self.places.items()):
            if one.segments:
                segments.setdefault((one.topic, topic_id), []).extend(one.segments)
        return tuple(IntentPart(topic, topic_id, tuple(own)) for (topic, topic_id), own in sorted(segments.items()))

    @property
    def partitions(self) -> Sequence[tuple[str, int]]:
        """The (topic, partition)s that were added, sorted."""
        return sorted((one.topic, partition) for (_, partition), one in self.places.items())


def opened(transactional: Transactional, held: Held | None) -> OpenTransaction | None:
    """What an id has open; None for nothing."""
    if held is None:
        return None
    key = transactional.key(transactional.number + 1)
    now = key.epoch, key.number
    places = {place: p for place, p in held.places.items() if (p.epoch, p.number) == now}
    groups = {name: g for name, g in held.groups.items() if (g.epoch, g.number) == now}
    if not places and not groups:
        return None
    began_ms = min([p.began_ms for p in places.values()] + [g.began_ms for g in groups.values()])
    return OpenTransaction(key, began_ms, places, tuple(sorted(groups)))


# --- rows --------------------------------------------------------------------------------------------------


def added_row(key: TransactionKey, topic: str, place: Place, now_ms: int) -> Row:
    """The row that says that a partition was added, before there are records for it."""
    return _row(key, now_ms) | {
        "sequence": ADDED,
        "parts": [{"topic": topic, "topic_id": place[0], "segments": [_nothing(place[1])]}],
    }


def segments_row(
    key: TransactionKey, slot: int, topic: str, topic_id: str, segments: Sequence[Staged], last: int, now_ms: int
) -> Row:
    """The row of staged segments of one partition; `last`: the sequence of their last record."""
    items = [{name: getattr(segment, name) for name in _nothing(0)} for segment in segments]
    return _row(key, now_ms) | {
        "sequence": slot,
        "batch": last,
        "parts": [{"topic": topic, "topic_id": topic_id, "segments": items}],
    }


def group_row(key: TransactionKey, group: str, now_ms: int) -> Row:
    """The row that says that offsets of a group wait for the transaction."""
    return _row(key, now_ms) | {"groups": [{"group": group}]}


def part_key(row: Row) -> tuple[Any, ...]:
    """What tells the rows of an id apart."""
    if "groups" in row:
        return (row["groups"][0]["group"],)
    part = row["parts"][0]
    return part["topic_id"], part["segments"][0]["partition"], row["sequence"]


def _row(key: TransactionKey, now_ms: int) -> dict[str, Any]:
    return {
        "kind": PART,
        "id": key.transactional_id,
        "event": PART,
        "epoch": key.epoch,
        "number": key.number,
        "update_time": now_ms,
    }


def _nothing(partition: int) -> dict[str, Any]:
    """A partition without a segment."""
    return {
        "partition": partition,
        "path": "",
        "records": 0,
        "size": 0,
        "min_timestamp_ms": 0,
        "max_timestamp_ms": 0,
        "known_version": 0,
    }
