"""Groups of the type consumer as rows: one of the group, one of each member, one of each member's target.

So a change of one member doesn't write the others. Rows may come back in any order of their kinds: a rewrite keeps the
newest row of each key at its place, and that of a group is mostly newer than those of its members.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from tidelog.groups.model import AssignedPartition, Assignment, ConsumerGroup, ConsumerMember
from tidelog.log.rows.schema import Row, list_of

GROUP: Final = "group"
MEMBER: Final = "member"
TARGET: Final = "target"
# `type` of a group's row; absent: of the classic protocol.
CONSUMER: Final = "consumer"

_NAMES = list_of(name=pa.string())
# Partitions [start, end) of the topic of an id, and of the name that it had then.
_RANGES = list_of(topic=pa.string(), topic_id=pa.string(), start=pa.int32(), end=pa.int32())

# What the second version of these tables adds (docs/format.md, R12).
COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "type": pa.string(),
    "group_epoch": pa.int32(),
    "assignment_epoch": pa.int32(),
    "assignor": pa.string(),
    "metadata_hash": pa.int64(),
    "member_id": pa.string(),
    "instance_id": pa.string(),
    "rack": pa.string(),
    "client_id": pa.string(),
    "host": pa.string(),
    "session_timeout_ms": pa.int32(),
    "rebalance_timeout_ms": pa.int32(),
    "topics": _NAMES,
    "regex": pa.string(),
    "matched": _NAMES,
    "member_epoch": pa.int32(),
    "previous_epoch": pa.int32(),
    "assigned": _RANGES,
    "revoking": _RANGES,
    "target": _RANGES,
}
# What the third version adds: what a group is configured with; what a member of the classic protocol says of itself.
FURTHER_COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "config": list_of(name=pa.string(), value=pa.string()),
    "protocols": list_of(name=pa.string(), metadata=pa.binary()),
}
_SAME: Final = (
    "instance_id", "rack", "client_id", "host", "session_timeout_ms", "rebalance_timeout_ms", "regex", "assignor",
    "previous_epoch",
)  # fmt: skip


@dataclass(slots=True)
class Parts:
    """What rows say of a group, to be changed: its own row, None where there is none; members; targets."""

    group: ConsumerGroup | None = None
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    targets: dict[str, Assignment] = field(default_factory=dict)

    @classmethod
    def of(cls, group: ConsumerGroup) -> "Parts":
        """The parts of a group."""
        return cls(group, dict(group.members), dict(group.targets))

    def whole(self, group_id: str) -> ConsumerGroup | None:
        """The group, None where nothing is said of one."""
        if self.group is None and not self.members and not self.targets:
            return None
        return replace(self.group or ConsumerGroup(group_id), members=self.members, targets=self.targets)

    def take(self, row: Row) -> None:
        """Go on by a row of any of the three kinds. Raises ValueError, KeyError for one that is none."""
        if row["kind"] == GROUP:
            self.group = _group(row)
        elif row["kind"] == MEMBER and row.get("deleted"):
            self.members.pop(row["member_id"], None)
        elif row["kind"] == MEMBER:
            self.members[row["member_id"]] = _member(row)
        elif row.get("deleted"):
            self.targets.pop(row["member_id"], None)
        else:
            self.targets[row["member_id"]] = frozenset(_partitions(row["target"]))


def modern_rows(before: ConsumerGroup | None, after: ConsumerGroup | None, group_id: str) -> Iterator[Row]:
    """The rows that lead from one group to another: only what changes. None: there is no such group."""
    old, new = before or ConsumerGroup(group_id), after or ConsumerGroup(group_id)
    if after is not None and (before is None or _header(old) != _header(new)):
        yield _header(new)
    for name, member in new.members.items():
        if member != old.members.get(name):
            yield _member_row(group_id, member)
    for name, target in new.targets.items():
        if target != old.targets.get(name):
            yield {"kind": TARGET, "group": group_id, "member_id": name, "target": _ranges(target)}
    for kind, gone in ((MEMBER, old.members.keys() - new.members), (TARGET, old.targets.keys() - new.targets)):
        for name in sorted(gone):
            yield {"kind": kind, "group": group_id, "member_id": name, "deleted": True}


def _header(group: ConsumerGroup) -> dict[str, Any]:
    return {
        "kind": GROUP,
        "group": group.group_id,
        "type": CONSUMER,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor": group.assignor,
        "metadata_hash": group.metadata_hash,
        "empty_since": group.empty_since_ms,
    }


def _group(row: Row) -> ConsumerGroup:
    if row["type"] != CONSUMER:
        raise ValueError(f"group {row['group']!r} is of type {row['type']!r}")
    return ConsumerGroup(
        row["group"],
        row["group_epoch"],
        row["assignment_epoch"],
        row.get("assignor"),
        row["metadata_hash"],
        empty_since_ms=row.get("empty_since"),
    )


def _member_row(group_id: str, member: ConsumerMember) -> Row:
    return {
        "kind": MEMBER,
        "group": group_id,
        "member_id": member.member_id,
        **{name: getattr(member, name) for name in _SAME},
        "member_epoch": member.epoch,
        "topics": _names(member.topics),
        "matched": _names(member.matched),
        "assigned": _ranges(member.assigned),
        "revoking": _ranges(member.revoking),
        "protocols": [{"name": name, "metadata": data} for name, data in member.protocols] or None,
    }


def _member(row: Row) -> ConsumerMember:
    same: dict[str, Any] = {name: row.get(name) for name in _SAME}
    topics, matched = (frozenset(one["name"] for one in row[column]) for column in ("topics", "matched"))
    assigned, revoking = (frozenset(_partitions(row[column])) for column in ("assigned", "revoking"))
    protocols = tuple((one["name"], one["metadata"]) for one in row.get("protocols") or ())
    return ConsumerMember(
        member_id=row["member_id"],
        epoch=row["member_epoch"],
        topics=topics,
        matched=matched,
        assigned=assigned,
        revoking=revoking,
        protocols=protocols,
        **same,
    )


def _names(names: Iterable[str]) -> list[Row]:
    return [{"name": name} for name in sorted(names)]


def _ranges(partitions: Assignment) -> list[dict[str, Any]]:
    ranges: list[dict[str, Any]] = []
    for topic_id, topic, number in sorted(partitions):
        last = ranges[-1] if ranges else {}
        if (last.get("topic_id"), last.get("topic"), last.get("end")) == (topic_id, topic, number):
            last["end"] += 1
        else:
            ranges.append({"topic": topic, "topic_id": topic_id, "start": number, "end": number + 1})
    return ranges


def _partitions(ranges: Iterable[Row]) -> Iterator[AssignedPartition]:
    for one in ranges:
        for number in range(one["start"], one["end"]):
            yield AssignedPartition(one["topic_id"], one["topic"], number)
