"""The answer of Fetch in bytes, in pieces: cached batches are written as they are, and not copied.

By hand, since it is flat and asked for all the time; it is, byte for byte, what kio makes of it.
Source: `FetchResponse.json` of Kafka 4.2; KIP-482 (tagged fields), KIP-951 (leaders in answers).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from tidelog.broker.wire.endpoints import Endpoint, tagged_endpoints
from tidelog.broker.wire.primitives import compact_string, string, uvarint

_FLEXIBLE: Final = 12
_TOPIC_IDS: Final = 13
_NODES: Final = 16
_INT: Final = struct.Struct(">i")
_HEAD: Final = struct.Struct(">ihi")
# Partition, error code, high watermark, last stable offset; the log start offset since version 5; the number of aborted
# transactions, none of which there ever is; the preferred replica since 11; the length of the records.
_V4: Final = struct.Struct(">ihqqii")
_V5: Final = struct.Struct(">ihqqqii")
_V11: Final = struct.Struct(">ihqqqiii")
_V12: Final = struct.Struct(">ihqqqBi")
# A tagged field: one of them, the current leader (1), 9 bytes of it, and no tagged fields within.
_LEADER: Final = struct.Struct(">BBBiiB")
_NO_TAGS: Final = b"\0"

Piece = bytes | memoryview


@dataclass(slots=True)
class PartitionAnswer:
    """What is answered of a partition. `size`: the bytes of its `records`; `current_leader`: (broker, epoch)."""

    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: Sequence[bytes | memoryview] = ()
    size: int = 0
    preferred_read_replica: int = -1
    current_leader: tuple[int, int] | None = None


@dataclass(slots=True)
class FetchAnswer:
    """An answer. `topics`: by name, from version 13 on by id; `nodes`: where the leaders are that it names.

    `read_committed`: the list of aborted transactions is there, and empty; else it is null.
    """

    topics: Sequence[tuple[str | UUID, Sequence[PartitionAnswer]]] = ()
    error_code: int = 0
    session_id: int = 0
    throttle_ms: int = 0
    read_committed: bool = False
    nodes: Sequence[Endpoint] = ()


def encode_fetch(version: int, answer: FetchAnswer) -> list[Piece]:
    """The bytes of an answer, without a header."""
    flexible = version >= _FLEXIBLE
    pieces: list[Piece] = []
    head = bytearray(_INT.pack(answer.throttle_ms))
    if version > 6:
        head = bytearray(_HEAD.pack(answer.throttle_ms, answer.error_code, answer.session_id))
    head += _count(len(answer.topics), flexible=flexible)
    for topic, partitions in answer.topics:
        if isinstance(topic, UUID):
            head += topic.bytes
        else:
            head += compact_string(topic) if flexible else string(topic)
        head += _count(len(partitions), flexible=flexible)
        for partition in partitions:
            head += _partition(version, partition, read_committed=answer.read_committed)
            if partition.records:
                pieces.append(bytes(head))
                pieces += partition.records
                head.clear()
            if flexible:
                head += _tags(partition)
        if flexible:
            head += _NO_TAGS
    if flexible:
        head += tagged_endpoints(answer.nodes if version >= _NODES else ())
    pieces.append(bytes(head))
    return pieces


def _partition(version: int, p: PartitionAnswer, *, read_committed: bool) -> bytes:
    """A partition up to its records."""
    if version >= _FLEXIBLE:
        numbers = (p.partition, p.error_code, p.high_watermark, p.last_stable_offset, p.log_start_offset)
        return _V12.pack(*numbers, 1 if read_committed else 0, p.preferred_read_replica) + uvarint(p.size + 1)
    aborted = 0 if read_committed else -1
    offsets = (p.high_watermark, p.last_stable_offset)
    if version < 5:
        return _V4.pack(p.partition, p.error_code, *offsets, aborted, p.size)
    numbers = (p.partition, p.error_code, *offsets, p.log_start_offset)
    if version < 11:
        return _V5.pack(*numbers, aborted, p.size)
    return _V11.pack(*numbers, aborted, p.preferred_read_replica, p.size)


def _tags(p: PartitionAnswer) -> bytes:
    return _NO_TAGS if p.current_leader is None else _LEADER.pack(1, 1, 9, *p.current_leader, 0)


def _count(number: int, *, flexible: bool) -> bytes:
    return uvarint(number + 1) if flexible else _INT.pack(number)
