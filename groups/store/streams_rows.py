"""Streams groups as rows: one of the group, one of its topology, one of each member, one of each member's target.

Their kinds are others than those of groups of the type consumer, so that each row says by itself of what it is.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson
import pyarrow as pa

from tidelog.groups.model import StreamsGroup, StreamsMember
from tidelog.groups.topology import InnerTopic, StreamsTask, StreamsTopology, Subtopology, Tasks
from tidelog.log.rows.schema import Row, list_of

GROUP: Final = "group"
TOPOLOGY: Final = "topology"
MEMBER: Final = "streams_member"
TARGET: Final = "streams_target"
# `type` of such a group's row.
STREAMS: Final = "streams"

# Tasks [start, end) of a subtopology, in a role.
_RANGES = list_of(role=pa.string(), subtopology=pa.string(), start=pa.int32(), end=pa.int32())
_ROLES: Final = ("active", "standby", "warmup")

# What these rows add to the table (docs/format.md, R12).
COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "topology": pa.string(),
    "topology_epoch": pa.int32(),
    "ready": pa.bool_(),
    "shutdown_by": pa.string(),
    "process_id": pa.string(),
    "endpoint_host": pa.string(),
    "endpoint_port": pa.int32(),
    "tags": list_of(name=pa.string(), value=pa.string()),
    "tasks": _RANGES,
    "revoking_tasks": _RANGES,
}
_SAME: Final = (
    "client_id", "host", "session_timeout_ms", "rebalance_timeout_ms", "rack", "process_id", "topology_epoch",
    "previous_epoch",
)  # fmt: skip


@dataclass(slots=True)
class StreamsParts:
    """What rows say of a streams group, to be changed."""

    group: StreamsGroup | None = None
    topology: StreamsTopology | None = None
    members: dict[str, StreamsMember] = field(default_factory=dict)
    targets: dict[str, Tasks] = field(default_factory=dict)

    @classmethod
    def of(cls, group: StreamsGroup) -> "StreamsParts":
        """The parts of a group."""
        return cls(group, group.topology, dict(group.members), dict(group.targets))

    def whole(self, group_id: str) -> StreamsGroup | None:
        """The group, None where nothing is said of one."""
        if self.group is None and not self.members and not self.targets and self.topology is None:
            return None
        group = self.group or StreamsGroup(group_id)
        return replace(group, topology=self.topology, members=self.members, targets=self.targets)

    def take(self, row: Row) -> None:
        """Go on by a row of any of the four kinds. Raises ValueError, KeyError for one that is none."""
        gone, kind = bool(row.get("deleted")), row["kind"]
        if kind == GROUP:
            self.group = _group(row)
        elif kind == TOPOLOGY:
            self.topology = None if gone else read_topology(row["topology"])
        elif kind == MEMBER:
            _put(self.members, row["member_id"], None if gone else _member(row))
        else:
            _put(self.targets, row["member_id"], None if gone else _tasks(row["tasks"]))


def _put(mapping: dict[str, Any], name: str, value: object) -> None:
    if value is None:
        mapping.pop(name, None)
    else:
        mapping[name] = value


def streams_rows(before: StreamsGroup | None, after: StreamsGroup | None, group_id: str) -> Iterator[Row]:
    """The rows that lead from one group to another: only what changes. None: there is no such group."""
    old, new = before or StreamsGroup(group_id), after or StreamsGroup(group_id)
    if after is not None and (before is None or _header(old) != _header(new)):
        yield _header(new)
    if old.topology != new.topology:
        named: dict[str, Any] = {"kind": TOPOLOGY, "group": group_id}
        yield named | ({"topology": topology_text(new.topology)} if new.topology else {"deleted": True})
    for name, member in new.members.items():
        if member != old.members.get(name):
            yield _member_row(group_id, member)
    for name, target in new.targets.items():
        if target != old.targets.get(name):
            yield {"kind": TARGET, "group": group_id, "member_id": name, "tasks": _ranges(target)}
    for kind, gone in ((MEMBER, old.members.keys() - new.members), (TARGET, old.targets.keys() - new.targets)):
        for name in sorted(gone):
            yield {"kind": kind, "group": group_id, "member_id": name, "deleted": True}


def _header(group: StreamsGroup) -> dict[str, Any]:
    return {
        "kind": GROUP,
        "group": group.group_id,
        "type": STREAMS,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "metadata_hash": group.metadata_hash,
        "ready": group.ready,
        "shutdown_by": group.shutdown_by,
        "empty_since": group.empty_since_ms,
    }


def _group(row: Row) -> StreamsGroup:
    return StreamsGroup(
        row["group"],
        row["group_epoch"],
        row["assignment_epoch"],
        metadata_hash=row["metadata_hash"],
        ready=row["ready"],
        shutdown_by=row.get("shutdown_by"),
        empty_since_ms=row.get("empty_since"),
    )


def _member_row(group_id: str, member: StreamsMember) -> Row:
    host, port = member.endpoint or (None, None)
    return {
        "kind": MEMBER,
        "group": group_id,
        "member_id": member.member_id,
        **{name: getattr(member, name) for name in _SAME},
        "member_epoch": member.epoch,
        "endpoint_host": host,
        "endpoint_port": port,
        "tags": [{"name": name, "value": value} for name, value in member.tags],
        "tasks": _ranges(member.assigned),
        "revoking_tasks": _ranges(member.revoking),
    }


def _member(row: Row) -> StreamsMember:
    same: dict[str, Any] = {name: row.get(name) if name == "rack" else row[name] for name in _SAME}
    host = row.get("endpoint_host")
    return StreamsMember(
        row["member_id"],
        epoch=row["member_epoch"],
        endpoint=None if host is None else (host, row["endpoint_port"]),
        tags=tuple((one["name"], one["value"]) for one in row["tags"]),
        assigned=_tasks(row["tasks"]),
        revoking=_tasks(row["revoking_tasks"]),
        **same,
    )


def _ranges(tasks: Tasks) -> list[dict[str, Any]]:
    ranges: list[dict[str, Any]] = []
    for role in _ROLES:
        for name, number in sorted(getattr(tasks, role)):
            last = ranges[-1] if ranges else {}
            if (last.get("role"), last.get("subtopology"), last.get("end")) == (role, name, number):
                last["end"] += 1
            else:
                ranges.append({"role": role, "subtopology": name, "start": number, "end": number + 1})
    return ranges


def _tasks(ranges: Iterable[Row]) -> Tasks:
    by_role: dict[str, set[StreamsTask]] = {role: set() for role in _ROLES}
    for one in ranges:
        by_role[one["role"]].update(
            StreamsTask(one["subtopology"], number) for number in range(one["start"], one["end"])
        )
    return Tasks(**{role: frozenset(tasks) for role, tasks in by_role.items()})


# --- the topology ------------------------------------------------------------------------------------------


def topology_text(topology: StreamsTopology) -> str:
    """A topology as the JSON of its row."""
    parts = [
        {
            "id": part.name,
            "sources": part.sources,
            "repartition_sources": [_inner_json(topic) for topic in part.repartition_sources],
            "repartition_sinks": part.repartition_sinks,
            "changelogs": [_inner_json(topic) for topic in part.changelogs],
            "copartitioned": part.copartitioned,
        }
        for part in topology.subtopologies
    ]
    return orjson.dumps({"epoch": topology.epoch, "subtopologies": parts}).decode()


def read_topology(text: str) -> StreamsTopology:
    """The topology of a row. Raises ValueError, KeyError, TypeError for what is none."""
    body = orjson.loads(text)
    return StreamsTopology(
        body["epoch"],
        tuple(
            Subtopology(
                part["id"],
                tuple(part["sources"]),
                tuple(map(_inner, part["repartition_sources"])),
                tuple(part["repartition_sinks"]),
                tuple(map(_inner, part["changelogs"])),
                tuple(map(tuple, part["copartitioned"])),
            )
            for part in body["subtopologies"]
        ),
    )


def _inner_json(topic: InnerTopic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "config": topic.config,
    }


def _inner(body: Mapping[str, Any]) -> InnerTopic:
    config = tuple((name, value) for name, value in body["config"])
    return InnerTopic(body["name"], body["partitions"], body["replication_factor"], config)
