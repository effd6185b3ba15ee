"""Requests of Kafka's protocol made once, to be sent again and again, and what their answers say.

Produce is of version 9 and Fetch of version 12, both with names of topics and the compact lengths of KIP-482.
"""

import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from aiokafka.record.default_records import DefaultRecordBatchBuilder

VALUE_BYTES = 100
CODECS = {"none": 0, "lz4": 3}
NOT_LEADER = 6
MOST_PARTITIONS = 120  # so that their number is one byte
_PRODUCE, _PRODUCE_VERSION = 0, 9
_FETCH, _FETCH_VERSION = 1, 12
_ACKS_ALL, _TIMEOUT_MS = -1, 30_000
_CLIENT = b"bench"
# As Kafka's consumers ask by default.
_MOST_BYTES, _MOST_PARTITION_BYTES = 50 << 20, 1 << 20
# What a Produce answer has of a partition: index, error code, three numbers of 8 bytes, two empty lists, tags.
_TAKEN_BYTES = 4 + 2 + 3 * 8 + 3
_LENGTH = struct.Struct(">i")
_FETCHED = struct.Struct(">ihqqq")
_BATCH_HEAD = struct.Struct(">qi")
_BATCH_HEAD_BYTES, _LAST_OFFSET_AT = 61, 23
_LETTERS = bytes(65 + at % 26 for at in range(256))


class AnswerError(Exception):
    """A broker refused what was asked."""


@lru_cache(maxsize=256)
def batch(records: int, codec: str = "none", *, mixed: bool = False, seed: int = 0) -> bytes:
    """A batch of records without keys, of letters: 100 B each or, `mixed`, 50 to 150 B. Of no idempotent producer."""
    random = np.random.default_rng(seed)
    spread = VALUE_BYTES // 2 if mixed else 0
    lengths = random.integers(VALUE_BYTES - spread, VALUE_BYTES + spread, records, endpoint=True)
    letters = random.bytes(int(lengths.sum())).translate(_LETTERS)
    builder = DefaultRecordBatchBuilder(2, CODECS[codec], 0, -1, -1, -1, 1 << 30)
    now_ms, at = int(time.time() * 1e3), 0
    for number, length in enumerate(lengths.tolist()):
        builder.append(number, now_ms, None, letters[at : at + length], [])
        at += length
    return bytes(builder.build())


def produce(topic: str, batches: Mapping[int, bytes]) -> bytes:
    """A Produce request of a batch for each of some partitions, acks=all, as a connection has it."""
    parts = [
        b"\0", struct.pack(">hi", _ACKS_ALL, _TIMEOUT_MS),  # no transactional id
        b"\2", _name(topic), _count(len(batches)),
    ]  # fmt: skip
    for partition, records in batches.items():
        parts += [_LENGTH.pack(partition), _uvarint(len(records) + 1), records, b"\0"]
    return _framed(_PRODUCE, _PRODUCE_VERSION, [*parts, b"\0\0"])


def taken(answer: memoryview, topic: str) -> int:
    """How many partitions of a Produce request took their batch.

    Those that another broker leads by now are left out. Raises `AnswerError` for any other refusal.
    """
    at = 4 + 1 + 1 + 1 + len(topic.encode())  # correlation id, tags, one topic, its name
    count = answer[at] - 1
    codes = bytes(answer[at + 1 + 4 : at + 1 + count * _TAKEN_BYTES : _TAKEN_BYTES]) + bytes(
        answer[at + 1 + 5 : at + 1 + count * _TAKEN_BYTES : _TAKEN_BYTES]
    )
    if not any(codes):
        return count
    # With a refusal an answer may have texts, of any length: that of the first is enough to know.
    code = next(high << 8 | low for high, low in zip(codes[:count], codes[count:], strict=True) if high or low)
    if code != NOT_LEADER:
        raise AnswerError(f"a batch was refused with the code {code}")
    return 0


def fetch(topic: str, offsets: Mapping[int, int], max_wait_ms: int = 500) -> bytes:
    """A Fetch request outside of sessions, from these offsets of partitions on, of the sizes that consumers ask for."""
    parts = [
        struct.pack(">iiiibii", -1, max_wait_ms, 1, _MOST_BYTES, 0, 0, -1),
        b"\2", _name(topic), _count(len(offsets)),
    ]  # fmt: skip
    for partition, offset in offsets.items():
        parts.append(struct.pack(">iiqiqi", partition, -1, offset, -1, -1, _MOST_PARTITION_BYTES) + b"\0")
    return _framed(_FETCH, _FETCH_VERSION, [*parts, b"\0", b"\1", b"\1", b"\0"])


@dataclass(frozen=True)
class Fetched:
    """What a Fetch answer has of one partition; `end` is its high watermark, `records` are its batches."""

    partition: int
    code: int
    end: int
    records: memoryview

    def next_offset(self, offset: int) -> int:
        """The offset after the last whole batch, `offset` where there is none."""
        at, size = 0, len(self.records)
        while at + _BATCH_HEAD_BYTES <= size:
            base, length = _BATCH_HEAD.unpack_from(self.records, at)
            if at + _BATCH_HEAD.size + length > size:
                break
            offset = base + _LENGTH.unpack_from(self.records, at + _LAST_OFFSET_AT)[0] + 1
            at += _BATCH_HEAD.size + length
        return offset


def fetched(answer: memoryview) -> Iterator[Fetched]:
    """The partitions of a Fetch answer. Raises `AnswerError` for an error of the whole."""
    at = 4 + 1 + 4  # correlation id, tags, throttle time
    (code,) = struct.unpack_from(">h", answer, at)
    if code:
        raise AnswerError(f"a Fetch was refused with the code {code}")
    topics, at = _read_uvarint(answer, at + 2 + 4)
    for _ in range(topics - 1):
        length, at = _read_uvarint(answer, at)
        partitions, at = _read_uvarint(answer, at + length - 1)
        for _ in range(partitions - 1):
            partition, code, end, _, _ = _FETCHED.unpack_from(answer, at)
            aborted, at = _read_uvarint(answer, at + _FETCHED.size)
            at += max(0, aborted - 1) * (8 + 8 + 1) + 4  # and the preferred replica
            size, at = _read_uvarint(answer, at)
            size = max(0, size - 1)
            yield Fetched(partition, code, end, answer[at : at + size])
            at = _skip_tags(answer, at + size)
        at = _skip_tags(answer, at)


def _framed(key: int, version: int, parts: list[bytes]) -> bytes:
    header = struct.pack(">hhih", key, version, 1, len(_CLIENT)) + _CLIENT + b"\0"
    body = header + b"".join(parts)
    return _LENGTH.pack(len(body)) + body


def _name(topic: str) -> bytes:
    coded = topic.encode()
    return _uvarint(len(coded) + 1) + coded


def _count(partitions: int) -> bytes:
    if partitions > MOST_PARTITIONS:
        raise ValueError(f"{partitions} partitions: at most {MOST_PARTITIONS} go into a request")
    return _uvarint(partitions + 1)


def _uvarint(number: int) -> bytes:
    coded = bytearray()
    while number > 127:
        coded.append(number & 127 | 128)
        number >>= 7
    return bytes((*coded, number))


def _read_uvarint(data: memoryview, at: int) -> tuple[int, int]:
    """(the number, where it ends)."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7


def _skip_tags(data: memoryview, at: int) -> int:
    count, at = _read_uvarint(data, at)
    for _ in range(count):
        _, at = _read_uvarint(data, at)
        size, at = _read_uvarint(data, at)
        at += size
    return at
