"""The records of connect-offsets and their fold (Connect's `KafkaOffsetBackingStore`); a sink's offsets, of its group.

Key: the JSON array `["X", {source partition}]`; value: the JSON object of the source offset, null: reset.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidelog.connect.data.records import Partition
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.operations import groups

SourceObject = Mapping[str, Any]


def canonical(partition: SourceObject) -> str:
    """One text for all orders of a source partition's keys. Raises `ValueError`, `TypeError` for what is no JSON."""
    return json.dumps(partition, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def offset_record(connector: str, partition: SourceObject, offset: SourceObject | None) -> tuple[bytes, bytes | None]:
    """Key and value. Raises `ValueError`, `TypeError` for what is no JSON."""
    key = f"[{json.dumps(connector, ensure_ascii=False)},{canonical(partition)}]"
    return key.encode("utf-8", "surrogatepass"), None if offset is None else canonical(offset).encode()


@dataclass(slots=True)
class OffsetState:
    """The fold: source offsets by connectors and canonical source partitions."""

    offsets: dict[str, dict[str, tuple[SourceObject, SourceObject]]] = field(default_factory=dict)

    def take(self, key: bytes | None, value: bytes | None, offset: int, at_ms: int = 0) -> None:  # noqa: ARG002
        """Take the next record of its partition. Records of other forms are passed over."""
        try:
            named = json.loads(key or b"")
            source_offset = None if value is None else json.loads(value)
        except (ValueError, RecursionError):
            return
        if not (isinstance(named, list) and len(named) == 2 and isinstance(named[1], dict)):
            return
        of_connector = self.offsets.setdefault(str(named[0]), {})
        if isinstance(source_offset, dict):
            of_connector[canonical(named[1])] = (named[1], source_offset)
        elif source_offset is None:
            of_connector.pop(canonical(named[1]), None)

    def of(self, connector: str) -> list[tuple[SourceObject, SourceObject]]:
        """The source partitions of a connector, each with its offset."""
        return list(self.offsets.get(connector, {}).values())

    def get(self, connector: str, partition: SourceObject) -> SourceObject | None:
        """The offset of a source partition."""
        found = self.offsets.get(connector, {}).get(canonical(partition))
        return None if found is None else found[1]


def committed_offsets(lake: Lake, group: str) -> dict[Partition, int]:
    """{partition: offset} of a group, {} for one that is not there."""
    return {partition: committed.offset for partition, committed in sorted(GroupLog(lake).offsets(group).items())}


def set_offsets(lake: Lake, group: str, wanted: Mapping[Partition, int], gone: Collection[Partition] = ()) -> None:
    """Set some offsets of a group without members, and take out others. Raises as `GroupLog.commit_offsets` does."""
    log = GroupLog(lake)
    if wanted:
        offsets = {partition: CommittedOffset(offset) for partition, offset in wanted.items()}
        groups.set_offsets(lake, log, group, offsets)
    if gone:
        groups.delete_offsets(lake, log, group, gone)
