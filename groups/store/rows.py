"""Groups as rows: the columns of `__consumer_offsets`, and the groups that its rows make (docs/format.md, "Groups")."""

from collections import ChainMap
from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, Self

import pyarrow as pa

from tidelog.groups.model import (
    AnyGroup,
    CommittedOffset,
    ConsumerGroup,
    Decision,
    EpochGroup,
    Group,
    GroupPhase,
    GroupView,
    Member,
    PendingPlace,
    StreamsGroup,
    TopicPartition,
)
from tidelog.groups.store import modern_rows, streams_rows
from tidelog.groups.store.modern_rows import MEMBER, TARGET, Parts
from tidelog.groups.store.streams_rows import STREAMS, StreamsParts
from tidelog.log.delta.schema import TIMESTAMP
from tidelog.log.rows.schema import Row, RowSchema, list_of
from tidelog.log.rows.state import RowKind
from tidelog.transactions.model import TransactionKey

OFFSET = "offset"
GROUP = "group"
PENDING = "pending"
# Kinds of rows that say of themselves that they are a streams group's.
_OF_STREAMS = (streams_rows.TOPOLOGY, streams_rows.MEMBER, streams_rows.TARGET)
CONFIG = "config"


# Columns that are fields: all of a member, and most of an offset.
_MEMBER = {
    "member_id": pa.string(),
    "instance_id": pa.string(),
    "client_id": pa.string(),
    "host": pa.string(),
    "session_timeout_ms": pa.int32(),
    "rebalance_timeout_ms": pa.int32(),
    "protocols": list_of(name=pa.string(), metadata=pa.binary()),
    "assignment": pa.binary(),
    "joined": pa.bool_(),
    "turn": pa.int64(),
}
_OFFSET = ("offset", "leader_epoch", "metadata", "generation", "topic_id")

# `kind` offset: up to topic_id; kind group: generation, and what follows topic_id; kind pending: as offset, and the
# transaction that it waits for.
SCHEMA = RowSchema(
    {
        "kind": pa.string(),
        "group": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "leader_epoch": pa.int32(),
        "metadata": pa.string(),
        "generation": pa.int32(),
        "commit_time": TIMESTAMP,
        "topic_id": pa.string(),
        "phase": pa.string(),
        "protocol_type": pa.string(),
        "protocol": pa.string(),
        "leader": pa.string(),
        "members": list_of(**_MEMBER),
        "turns": pa.int64(),
        "empty_since": TIMESTAMP,
        "deleted": pa.bool_(),
        "transactional_id": pa.string(),
        "producer_id": pa.int64(),
        "producer_epoch": pa.int32(),
        "transaction": pa.int64(),
    },
    growth=(modern_rows.COLUMNS, modern_rows.FURTHER_COLUMNS, streams_rows.COLUMNS),
)


class GroupsFold:
    """All groups of a table: what the newest row of each group, and of each of its partitions, says."""

    def __init__(self, views: MutableMapping[str, GroupView] | None = None) -> None:
        self._views: MutableMapping[str, GroupView] = {} if views is None else views

    def view(self, group_id: str) -> GroupView:
        """What is known of a group. It stays as it is whatever comes later."""
        return self._views.get(group_id, _NOTHING)

    def group_ids(self) -> list[str]:
        """Every group that has members or a generation, or offsets; in order of their ids."""
        return sorted(group_id for group_id, view in self._views.items() if view.exists)

    def configured(self) -> list[str]:
        """Every group that has a configuration, be it there or not; in order of their ids."""
        return sorted(group_id for group_id, view in self._views.items() if view.config)

    def take(self, rows: Sequence[Row]) -> None:
        """Go on by rows, in log order."""
        for group_id, of_group in _by_group(rows):
            view = _after(self.view(group_id), group_id, of_group)
            if view == _NOTHING and not isinstance(self._views, ChainMap):
                self._views.pop(group_id, None)
            else:
                self._views[group_id] = view

    def fork(self) -> Self:
        """One that goes its own way from here."""
        return type(self)(ChainMap({}, self._views))

    def copy(self) -> Self:
        """One that stays as it is when this one goes on."""
        return type(self)(dict(self._views))

    def __len__(self) -> int:
        return sum(
            len(view.offsets) + len(view.pending) + _size(view.group) + bool(view.config)
            for view in self._views.values()
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GroupsFold) and self._views == other._views

    __hash__ = None  # type: ignore[assignment] # it changes


_NOTHING = GroupView()


def _size(group: AnyGroup | None) -> int:
    """How many rows it takes to say what a group is."""
    if isinstance(group, EpochGroup):
        return 1 + len(group.members) + len(group.targets) + (isinstance(group, StreamsGroup) and bool(group.topology))
    return 0 if group is None else 1


def _by_group(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    by_group: dict[str, list[Row]] = {}
    for row in rows:
        by_group.setdefault(row["group"], []).append(row)
    return iter(by_group.items())


def _after(view: GroupView, group_id: str, rows: Iterable[Row]) -> GroupView:
    group, offsets, pending, config = view.group, dict(view.offsets), view.pending, view.config
    parts = Parts.of(group) if isinstance(group, ConsumerGroup) else None
    streams = StreamsParts.of(group) if isinstance(group, StreamsGroup) else None
    for row in rows:
        if row["kind"] in _OF_STREAMS or row.get("type") == STREAMS:
            streams = streams or StreamsParts()
            streams.take(row)
            continue
        if row["kind"] == GROUP:  # of another type from here on
            streams = None
        if row["kind"] in (MEMBER, TARGET) or (row["kind"] == GROUP and "type" in row):
            parts = parts or Parts()
            parts.take(row)
        elif row["kind"] == GROUP:
            parts = None
            group = None if row.get("deleted") else _group(row)
        elif row["kind"] == CONFIG:
            config = {one["name"]: one["value"] for one in row.get("config", ())}
        elif row["kind"] == PENDING:
            pending = _with_pending(pending, row)
        elif row.get("deleted"):
            offsets.pop((row["topic"], row["partition"]), None)
        else:
            offsets[row["topic"], row["partition"]] = _offset(row)
    modern = (streams.whole(group_id) if streams else None) or (parts.whole(group_id) if parts else None)
    return GroupView(modern or group, offsets, pending, config)


def _with_pending(pending: Mapping[PendingPlace, CommittedOffset], row: Row) -> dict[PendingPlace, CommittedOffset]:
    transaction = TransactionKey(row["transactional_id"], row["producer_id"], row["producer_epoch"], row["transaction"])
    place = (transaction, (row["topic"], row["partition"]))
    left = {other: committed for other, committed in pending.items() if other != place}
    if not row.get("deleted"):
        left[place] = _offset(row)
    return left


# A group; a group's offset of a partition; one that waits for a transaction; a member, and its target.
_KEY = (
    "kind", "group", "topic", "partition", "transactional_id", "producer_id", "producer_epoch", "transaction",
    "member_id",
)  # fmt: skip


def key(row: Row) -> Hashable:
    """What a row is about: a group, an offset of a partition, one that waits for a transaction, a member, a target."""
    return tuple(map(row.get, _KEY))


KIND: RowKind[GroupsFold] = RowKind("groups", SCHEMA, GroupsFold, key)


# --- to rows and back --------------------------------------------------------------------------------------


def group_row(group: Group) -> Row:
    """The row of a group; that of a dead one says that it is gone."""
    if group.phase is GroupPhase.DEAD:
        return {"kind": GROUP, "group": group.group_id, "deleted": True}
    return {
        "kind": GROUP,
        "group": group.group_id,
        "generation": group.generation,
        "phase": group.phase.value,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "leader": group.leader,
        "members": [_member_item(m) for m in group.members.values()],
        "turns": group.turns,
        "empty_since": group.empty_since_ms,
    }


def offset_row(group_id: str, place: TopicPartition, committed: CommittedOffset | None) -> Row:
    """The row of a committed offset; None says that it is gone."""
    row: dict[str, Any] = {"kind": OFFSET, "group": group_id, "topic": place[0], "partition": place[1]}
    if committed is None:
        return {**row, "deleted": True}
    return row | {name: getattr(committed, name) for name in _OFFSET} | {"commit_time": committed.commit_ms}


def pending_row(group_id: str, place: PendingPlace, committed: CommittedOffset | None) -> Row:
    """The row of an offset that waits for a transaction; None says that it waits no more."""
    transaction, partition = place
    return {
        **offset_row(group_id, partition, committed),
        "kind": PENDING,
        "transactional_id": transaction.transactional_id,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.epoch,
        "transaction": transaction.number,
    }


def config_row(group_id: str, config: Mapping[str, str]) -> Row:
    """The row of what a group is configured with; of nothing, it says that it has no configuration any more."""
    named = {"kind": CONFIG, "group": group_id}
    pairs = [{"name": name, "value": value} for name, value in sorted(config.items())]
    return {**named, "config": pairs} if pairs else {**named, "deleted": True}


def _member_item(member: Member) -> Row:
    protocols = [{"name": name, "metadata": metadata} for name, metadata in member.protocols]
    return {name: getattr(member, name) for name in _MEMBER} | {"protocols": protocols}


def _group(row: Row) -> Group:
    return Group(
        row["group"],
        GroupPhase(row["phase"]),
        row["generation"],
        row["protocol_type"],
        row.get("protocol"),
        row.get("leader"),
        {item["member_id"]: _member(item) for item in row["members"]},
        row["turns"],
        row.get("empty_since"),
    )


def _member(item: Row) -> Member:
    protocols = tuple((p["name"], p["metadata"]) for p in item["protocols"])
    values = {name: item.get(name) if name == "instance_id" else item[name] for name in _MEMBER}
    return Member(**values | {"protocols": protocols})


def _offset(row: Row) -> CommittedOffset:
    return CommittedOffset(commit_ms=row["commit_time"], **{name: row[name] for name in _OFFSET})


def changes(view: GroupView, group_id: str, decision: Decision[Any], now_ms: int) -> list[Row]:
    """The rows that a decision over `view` makes: only what it changes. Offsets without a time get `now_ms`."""
    rows = [] if decision.group is None else _group_changes(view.group, decision.group)
    rows.extend(
        offset_row(group_id, place, None if committed is None else _dated(committed, now_ms))
        for place, committed in decision.offsets.items()
        if committed is not None or place in view.offsets
    )
    rows.extend(
        pending_row(group_id, place, None if committed is None else _dated(committed, now_ms))
        for place, committed in decision.pending.items()
        if committed is not None or place in view.pending
    )
    if decision.config is not None and decision.config != view.config:
        rows.append(config_row(group_id, decision.config))
    return rows


def _group_changes(before: AnyGroup | None, after: AnyGroup) -> list[Row]:
    """The rows that lead from one group to another, which may be of another type."""
    own, other = (group if isinstance(group, ConsumerGroup) else None for group in (before, after))
    streams, streams_after = (group if isinstance(group, StreamsGroup) else None for group in (before, after))
    rows = list(modern_rows.modern_rows(own, other, after.group_id))
    # What says of which type the group is comes after what says that it is of another one no more.
    theirs = list(streams_rows.streams_rows(streams, streams_after, after.group_id))
    rows = [*theirs, *rows] if streams_after is None else [*rows, *theirs]
    if not isinstance(after, Group) or after == before or (after.phase is GroupPhase.DEAD and before is None):
        return rows
    return [group_row(after), *rows]


def _dated(committed: CommittedOffset, now_ms: int) -> CommittedOffset:
    return committed if committed.commit_ms else replace(committed, commit_ms=now_ms)
