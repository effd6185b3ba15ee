"""A Produce request as plain producers send it, read straight from its bytes, without kio.

Plain is what most requests are: no transactional id, no tagged fields, a few partitions, and nothing behind the end.
For all else the answer is None, and the request goes the general way, which also says what is wrong with it. What is
read here is what kio reads. Source: `ProduceRequest.json`; compact types: KIP-482.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from tidelog.log.base.native_code import native_module

# What reads requests of one batch, and writes their answers, in native code.
NATIVE, _ = native_module("tidelog.broker.wire.native_produce", "native_produce.pyx")

_FLEXIBLE_SINCE: Final = 9
_TOPIC_IDS_SINCE: Final = 13
# Topics and partitions together: as many as the loop takes in without a pause.
_MOST: Final = 250
# Transactional id, acks, timeout, topics: null or the length of a string first.
_HEAD: Final = struct.Struct(">hhii")
_COMPACT_HEAD: Final = struct.Struct(">BhiB")
_MS: Final = timedelta(milliseconds=1)
_LENGTH: Final = struct.Struct(">h")
_COUNT: Final = struct.Struct(">i")
_PARTITION: Final = struct.Struct(">ii")
_COMPACT_PARTITION: Final = struct.Struct(">iB")

Partitions = Sequence[tuple[int, bytes | memoryview | None]]


@dataclass(slots=True)
class ProduceBody:
    """What a request asks: `topics` by name, by id from version 13 on, with (partition, records) of each."""

    acks: int
    timeout_ms: float
    topics: Sequence[tuple[str | UUID, Partitions]]
    transactional_id: str | None = None


class _OtherWayError(Exception):
    """The request goes the general way."""


def plain_produce(version: int, body: memoryview) -> ProduceBody | None:
    """The request of an offered version that the bytes are; None where it is not a plain one. No record is copied."""
    try:
        return _compact(version, body) if version >= _FLEXIBLE_SINCE else _older(body)
    except (_OtherWayError, IndexError, struct.error, UnicodeDecodeError):
        return None


def read_produce(version: int, request: Any) -> ProduceBody:
    """The same of a request that kio has read."""
    topics: list[tuple[str | UUID, Partitions]] = [
        (
            (one.topic_id or UUID(int=0)) if version >= _TOPIC_IDS_SINCE else one.name,
            [(partition.index, partition.records) for partition in one.partition_data],
        )
        for one in request.topic_data
    ]
    return ProduceBody(request.acks, request.timeout / _MS, topics, request.transactional_id)


def _compact(version: int, body: memoryview) -> ProduceBody:
    """Lengths and counts are compact: the number and 1."""
    transactional_id, acks, timeout_ms, count = _COMPACT_HEAD.unpack_from(body)
    if transactional_id or not 0 < count < 0x80:
        raise _OtherWayError
    at, end = _COMPACT_HEAD.size, len(body)
    topics: list[tuple[str | UUID, Partitions]] = []
    for _ in range(count - 1):
        topic: str | UUID
        if version >= _TOPIC_IDS_SINCE:
            topic, at = topic_id(bytes(body[at : at + 16])), at + 16
        else:
            length = body[at]
            at += length
            if not 0 < length < 0x80 or at > end:
                raise _OtherWayError
            topic = str(body[at - length + 1 : at], "utf-8")
        of_topic = body[at]
        at += 1
        if not 0 < of_topic < 0x80:
            raise _OtherWayError
        partitions: list[tuple[int, bytes | memoryview | None]] = []
        for _ in range(of_topic - 1):
            partition, size = _COMPACT_PARTITION.unpack_from(body, at)
            at += 5
            if size >= 0x80:
                size, at = _rest(size, body, at)
            if not size:
                partitions.append((partition, None))
            else:
                partitions.append((partition, body[at : at + size - 1]))
                at += size - 1
            if body[at]:  # tagged fields
                raise _OtherWayError
            at += 1
        if body[at]:
            raise _OtherWayError
        at += 1
        topics.append((topic, partitions))
    if body[at] or at + 1 != end:
        raise _OtherWayError
    return _bounded(ProduceBody(acks, timeout_ms, topics))


def _older(body: memoryview) -> ProduceBody:
    transactional_id, acks, timeout_ms, count = _HEAD.unpack_from(body)
    if transactional_id != -1 or not 0 <= count <= _MOST:
        raise _OtherWayError
    at, end = _HEAD.size, len(body)
    topics: list[tuple[str | UUID, Partitions]] = []
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size + length
        if length < 0 or at > end:
            raise _OtherWayError
        topic = str(body[at - length : at], "utf-8")
        (of_topic,) = _COUNT.unpack_from(body, at)
        at += _COUNT.size
        if not 0 <= of_topic <= _MOST:
            raise _OtherWayError
        partitions: list[tuple[int, bytes | memoryview | None]] = []
        for _ in range(of_topic):
            partition, size = _PARTITION.unpack_from(body, at)
            at += _PARTITION.size
            if size == -1:
                partitions.append((partition, None))
                continue
            if size < 0 or at + size > end:
                raise _OtherWayError
            partitions.append((partition, body[at : at + size]))
            at += size
        topics.append((topic, partitions))
    if at != end:
        raise _OtherWayError
    return _bounded(ProduceBody(acks, timeout_ms, topics))


def _rest(value: int, body: memoryview, at: int) -> tuple[int, int]:
    """(an unsigned number of which the first byte is read, where it ends)."""
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 2**31:  # no length of bytes is larger
                break
            return value, at
    raise _OtherWayError


def _bounded(request: ProduceBody) -> ProduceBody:
    if sum(1 + len(partitions) for _, partitions in request.topics) > _MOST:
        raise _OtherWayError
    return request


@lru_cache(1024)
def topic_id(data: bytes) -> UUID:
    """The id of these bytes."""
    if len(data) < 16:
        raise _OtherWayError
    return UUID(bytes=data)
