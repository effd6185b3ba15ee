"""Transactions as rows: the columns of `__transaction_state`, and the fold of its rows (docs/format.md)."""

from collections import ChainMap
from collections.abc import Hashable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple, Self

import pyarrow as pa

from tidelog.log.delta.schema import TIMESTAMP
from tidelog.log.rows.schema import Row, RowSchema, list_of
from tidelog.log.rows.state import RowKind
from tidelog.log.segments.writer import Staged
from tidelog.transactions.model import Intent, IntentPart, Transactional, Verdict
from tidelog.transactions.open_parts import PART, Held, OpenTransaction, opened, part_key

TRANSACTION = "transaction"
FLOOR = "floor"
EXPIRED = "forgotten"


# Columns of a transactional id that are its fields, and those of a staged segment: its part has the topic's id.
_FIELDS = ("producer_id", "epoch", "timeout_ms", "number", "sequence", "batch")
_SEGMENT = {
    "partition": pa.int32(),
    "path": pa.string(),
    "records": pa.int64(),
    "size": pa.int64(),
    "min_timestamp_ms": pa.int64(),
    "max_timestamp_ms": pa.int64(),
    "known_version": pa.int64(),
}

# `kind` transaction: all but topic and version; kind floor: these; kind forgotten: epoch and sequence; kind part: id,
# event, epoch, number, sequence (its place), batch (a sequence), update_time, and one of parts or one of groups.
SCHEMA = RowSchema(
    {
        "kind": pa.string(),
        "id": pa.string(),
        "event": pa.string(),
        "producer_id": pa.int64(),
        "epoch": pa.int32(),
        "timeout_ms": pa.int32(),
        "number": pa.int64(),
        "outcome": pa.string(),
        "sequence": pa.int64(),
        "batch": pa.int64(),
        "update_time": TIMESTAMP,
        "intent_epoch": pa.int32(),
        "intent_number": pa.int64(),
        "parts": list_of(topic=pa.string(), topic_id=pa.string(), segments=list_of(**_SEGMENT)),
        "groups": list_of(group=pa.string()),
        "topic": pa.string(),
        "version": pa.int64(),
        "deleted": pa.bool_(),
    }
)


class Floor(NamedTuple):
    """The purge floor of a topic id: no new intent names a segment of a lower version."""

    topic: str
    version: int


class Expired(NamedTuple):
    """No transactional id that has expired had a higher epoch, or a later intent."""

    epoch: int = -1
    sequence: int = 0


class TransactionsFold:
    """The newest row of each transactional id, of each topic's purge floor, and of each part of an open transaction."""

    def __init__(
        self,
        ids: MutableMapping[str, Transactional | None] | None = None,
        floors: Mapping[str, Floor] | None = None,
        expired: Expired | None = None,
        sequence: int = 0,
        held: MutableMapping[str, Held | None] | None = None,
        held_rows: int = 0,
    ) -> None:
        self._ids: MutableMapping[str, Transactional | None] = {} if ids is None else ids
        self._held: MutableMapping[str, Held | None] = {} if held is None else held
        self._held_rows = held_rows
        self.floors: dict[str, Floor] = dict(floors or {})
        self.expired = expired or Expired()
        # Of the newest intent of all.
        self.sequence = sequence

    def get(self, transactional_id: str) -> Transactional | None:
        """What is known of a transactional id."""
        return self._ids.get(transactional_id)

    def all(self) -> Iterator[Transactional]:
        """Every transactional id, sorted."""
        for name in sorted(self._ids):
            found = self._ids[name]
            if found is not None:
                yield found

    def incomplete(self, topic_id: str | None = None) -> Iterator[Transactional]:
        """Those with an intent that is not marked complete, or only those whose intent names a topic."""
        for one in self.all():
            if one.intent is not None and (topic_id is None or one.intent.names(topic_id)):
                yield one

    def held(self, transactional_id: str) -> Held | None:
        """What the rows of kind `part` say of a transactional id, its ended transactions' too."""
        return self._held.get(transactional_id)

    def open(self, transactional_id: str) -> OpenTransaction | None:
        """What a transactional id has open, as far as it was added in the log; None for nothing."""
        one = self._ids.get(transactional_id)
        return None if one is None else opened(one, self._held.get(transactional_id))

    def all_open(self) -> Iterator[OpenTransaction]:
        """Every open transaction that has added something in the log, by transactional id."""
        for name in sorted(self._held):
            found = self.open(name)
            if found is not None:
                yield found

    def take(self, rows: Sequence[Row]) -> None:
        """Apply rows, in log order."""
        for row in rows:
            if row["kind"] == FLOOR:
                self._take_floor(row)
            elif row["kind"] == EXPIRED:
                self.expired = Expired(row["epoch"], row["sequence"])
                self.sequence = max(self.sequence, row["sequence"])
            elif row["kind"] == PART:
                self._hold(row["id"], (self._held.get(row["id"]) or Held()).taken(row))
            elif not row.get("deleted"):
                transactional = _transactional(row)
                self._ids[transactional.transactional_id] = transactional
                self.sequence = max(self.sequence, transactional.sequence)
                held = self._held.get(transactional.transactional_id)
                if held is not None:
                    self._hold(transactional.transactional_id, held.ended(transactional.epoch, transactional.number))
            elif isinstance(self._ids, ChainMap):
                self._ids[row["id"]] = None
            else:
                self._ids.pop(row["id"], None)

    def _hold(self, name: str, held: Held) -> None:
        before = self._held.get(name)
        self._held_rows += held.rows - (0 if before is None else before.rows)
        if held.rows:
            self._held[name] = held
        elif isinstance(self._held, ChainMap):
            self._held[name] = None
        else:
            self._held.pop(name, None)

    def _take_floor(self, row: Row) -> None:
        if row.get("deleted"):
            self.floors.pop(row["id"], None)
        else:
            self.floors[row["id"]] = Floor(row["topic"], row["version"])

    def fork(self) -> Self:
        """A copy that changes by itself."""
        ids, held = ChainMap({}, self._ids), ChainMap({}, self._held)
        return type(self)(ids, self.floors, self.expired, self.sequence, held, self._held_rows)

    def copy(self) -> Self:
        """One that stays as it is when this one goes on."""
        return type(self)(dict(self._ids), self.floors, self.expired, self.sequence, dict(self._held), self._held_rows)

    def __len__(self) -> int:
        return len(self._ids) + len(self.floors) + (self.expired != Expired()) + self._held_rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TransactionsFold) and self._all() == other._all()

    __hash__ = None  # type: ignore[assignment] # it changes

    def _all(self) -> tuple[Any, ...]:
        held = {name: held for name, held in self._held.items() if held is not None}
        return list(self.all()), self.floors, self.expired, self.sequence, held


def key(row: Row) -> Hashable:
    """A row's key: a transactional id, a part of one, a topic's purge floor, or what expired ids left."""
    if row["kind"] == PART:
        return (PART, row["id"], *part_key(row))
    return (row["kind"], row.get("id"))


KIND: RowKind[TransactionsFold] = RowKind("transactions", SCHEMA, TransactionsFold, key)


# --- to rows and back --------------------------------------------------------------------------------------


def transactional_row(event: str, transactional: Transactional) -> Row:
    """The row of an event: what the id is from then on."""
    row: dict[str, Any] = {
        "kind": TRANSACTION,
        "id": transactional.transactional_id,
        "event": event,
        **{name: getattr(transactional, name) for name in _FIELDS},
        "update_time": transactional.updated_ms,
    }
    if transactional.outcome is not None:
        row["outcome"] = transactional.outcome.value
    if transactional.intent is not None:
        row["intent_epoch"] = transactional.intent.epoch
        row["intent_number"] = transactional.intent.number
        row["parts"] = [_part_item(part) for part in transactional.intent.parts]
        row["groups"] = [{"group": group} for group in transactional.intent.groups]
    return row


def gone_row(transactional_id: str) -> Row:
    """The row that removes a transactional id."""
    return {"kind": TRANSACTION, "id": transactional_id, "deleted": True}


def expired_row(expired: Expired) -> Row:
    """The row that keeps what expired ids leave behind."""
    return {"kind": EXPIRED, "epoch": expired.epoch, "sequence": expired.sequence}


def floor_row(topic_id: str, floor: Floor | None) -> Row:
    """The row of a topic's purge floor; None says that the topic is gone."""
    if floor is None:
        return {"kind": FLOOR, "id": topic_id, "deleted": True}
    return {"kind": FLOOR, "id": topic_id, "topic": floor.topic, "version": floor.version}


def _part_item(part: IntentPart) -> Row:
    segments = [{name: getattr(segment, name) for name in _SEGMENT} for segment in part.segments]
    return {"topic": part.topic, "topic_id": part.topic_id, "segments": segments}


def _transactional(row: Row) -> Transactional:
    outcome = row.get("outcome")
    return Transactional(
        row["id"],
        outcome=None if outcome is None else Verdict(outcome),
        updated_ms=row["update_time"],
        intent=_intent(row),
        **{name: row[name] for name in _FIELDS},
    )


# A row has all of them or none.
_INTENT = ("intent_epoch", "intent_number", "parts", "groups")


def _intent(row: Row) -> Intent | None:
    if row.keys().isdisjoint(_INTENT):
        return None
    return Intent(
        row["intent_epoch"],
        row["intent_number"],
        row["sequence"],
        tuple(_part(item) for item in row["parts"]),
        tuple(item["group"] for item in row["groups"]),
    )


def _part(item: Row) -> IntentPart:
    segments = tuple(Staged(**segment, topic_id=item["topic_id"]) for segment in item["segments"])
    return IntentPart(item["topic"], item["topic_id"], segments)
