"""The answer of Produce as bytes, in every version: made for each request of a producer, so it is written by hand.

What the version lacks is left out. Versions 0 to 2 are written too: they are refused, in a form their clients read.
Source: `ProduceResponse.json`; tagged fields and compact types: KIP-482; leaders: KIP-951.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from tidelog.broker.wire.endpoints import Endpoint, tagged_endpoints
from tidelog.broker.wire.primitives import compact_string, string, uvarint

_INT32: Final = struct.Struct(">i")
# Index, error code, base offset, and where the version has them LogAppendTime and log start offset.
_PARTITION: Final = (struct.Struct(">ihq"), struct.Struct(">ihqq"), struct.Struct(">ihqqq"))
_LEADER: Final = struct.Struct(">ii")
_NONE: Final = struct.Struct(">h").pack(-1)

_THROTTLED_SINCE: Final = 1
_APPEND_TIME_SINCE: Final = 2
_LOG_START_SINCE: Final = 5
_RECORD_ERRORS_SINCE: Final = 8
_FLEXIBLE_SINCE: Final = 9
_LEADERS_SINCE: Final = 10
_TOPIC_IDS_SINCE: Final = 13
_NO_ID: Final = bytes(16)


@dataclass(slots=True)
class ProducedPartition:
    """What became of one partition's records. Offsets and times (ms since the epoch) are -1 where there is none.

    `record_errors`: (index in the batch, why) of the records to blame. `leader`: (id, epoch) of the broker to go to.
    """

    index: int
    error_code: int = 0
    base_offset: int = -1
    append_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str | None]] = ()
    error_message: str | None = None
    leader: tuple[int, int] | None = None


def produce_answer(
    version: int,
    topics: Iterable[tuple[str | UUID, Sequence[ProducedPartition]]],
    endpoints: Sequence[Endpoint] = (),
    throttle_ms: int = 0,
) -> bytes:
    """The answer: topics by name, by id from version 13 on, with their partitions.

    `endpoints`: the leaders that partitions name.
    """
    topics = list(topics)
    out = bytearray()
    if version < _FLEXIBLE_SINCE:
        out += _INT32.pack(len(topics))
        for name, partitions in topics:
            out += string(str(name))
            out += _INT32.pack(len(partitions))
            for partition in partitions:
                _put_partition(out, version, partition)
        if version >= _THROTTLED_SINCE:
            out += _INT32.pack(throttle_ms)
        return bytes(out)
    out += uvarint(len(topics) + 1)
    for name, partitions in topics:
        out += compact_string(str(name)) if version < _TOPIC_IDS_SINCE else _topic_id(name)
        out += uvarint(len(partitions) + 1)
        for partition in partitions:
            _put_compact_partition(out, version, partition)
        out.append(0)
    out += _INT32.pack(throttle_ms)
    out += tagged_endpoints(endpoints if version >= _LEADERS_SINCE else ())
    return bytes(out)


def throttle_at(version: int, answer: bytes, endpoints: Sequence[Endpoint] = ()) -> int:
    """Where the answer has its throttle time, -1 where the version has none. `endpoints`: those it was made with."""
    if version < _THROTTLED_SINCE:
        return -1
    behind = 0
    if version >= _FLEXIBLE_SINCE:
        behind = len(tagged_endpoints(endpoints if version >= _LEADERS_SINCE else ()))
    return len(answer) - behind - _INT32.size


def _put_numbers(out: bytearray, version: int, partition: ProducedPartition) -> None:
    numbers = partition.index, partition.error_code, partition.base_offset
    if version >= _LOG_START_SINCE:
        out += _PARTITION[2].pack(*numbers, partition.append_ms, partition.log_start_offset)
    elif version >= _APPEND_TIME_SINCE:
        out += _PARTITION[1].pack(*numbers, partition.append_ms)
    else:
        out += _PARTITION[0].pack(*numbers)


def _put_partition(out: bytearray, version: int, partition: ProducedPartition) -> None:
    _put_numbers(out, version, partition)
    if version >= _RECORD_ERRORS_SINCE:
        out += _INT32.pack(len(partition.record_errors))
        for index, why in partition.record_errors:
            out += _INT32.pack(index) + (_NONE if why is None else string(why))
        out += _NONE if partition.error_message is None else string(partition.error_message)


def _put_compact_partition(out: bytearray, version: int, partition: ProducedPartition) -> None:
    _put_numbers(out, version, partition)
    has_errors = partition.error_code or partition.record_errors or partition.error_message is not None
    if not has_errors and partition.leader is None:
        out += b"\1\0\0"  # no errors of records, no message, no tagged fields
        return
    out += uvarint(len(partition.record_errors) + 1)
    for index, why in partition.record_errors:
        out += _INT32.pack(index) + compact_string(why) + b"\0"
    out += compact_string(partition.error_message)
    if version >= _LEADERS_SINCE and partition.leader is not None:
        out += bytes((1, 0, _LEADER.size + 1)) + _LEADER.pack(*partition.leader) + b"\0"
    else:
        out.append(0)


def _topic_id(given: str | UUID) -> bytes:
    return given.bytes if isinstance(given, UUID) else _NO_ID
