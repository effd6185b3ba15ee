"""Records between connectors, transforms and topics."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from tidelog.connect.data.schema import ConnectSchema

# A topic's name and a partition's number.
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ConnectHeader:
    """A header: a key, a value, and the value's schema if there is one."""

    key: str
    value: Any
    schema: ConnectSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectRecord:
    """What sources' and sinks' records have in common: transforms take either.

    `partition`: None lets the worker choose, by the key. `timestamp_ms`: since 1970 UTC. A schema of None says that the
    data has none.
    """

    topic: str
    partition: int | None = None
    key: Any = None
    key_schema: ConnectSchema | None = None
    value: Any = None
    value_schema: ConnectSchema | None = None
    timestamp_ms: int | None = None
    headers: tuple[ConnectHeader, ...] = ()

    def but(self, **changes: Any) -> Self:
        """The same record with other values of some fields, as transforms make it."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord(ConnectRecord):
    """A record of a source task.

    `source_partition`: which part of the source it is of (a file, a table); `source_offset`: how far the source is
    read with it. Both are JSON objects; the worker keeps the newest offset of each partition with the records.
    """

    source_partition: Mapping[str, Any] = field(default_factory=dict)
    source_offset: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRecord(ConnectRecord):
    """A record for a sink task.

    `offset`: in its partition. The three originals are where it was read: transforms may change topic and partition
    (KIP-793), but offsets count in the originals.
    """

    offset: int
    original_topic: str
    original_partition: int

    @property
    def original(self) -> Partition:
        """The topic and the partition that the record was read from."""
        return self.original_topic, self.original_partition
