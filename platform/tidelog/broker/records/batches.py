"""Record batches, Kafka's message format v2: split, checked, and patched at their places in the log.

The checks are those that a Kafka broker does before it looks at single records (KIP-98, KIP-467). Checks of single
records need the batch unpacked and are in `tidelog.broker.records.columns`.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import cramjam
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode
from aiokafka.record.util import decode_varint
from crc32c import crc32c

from tidelog.broker.records.errors import (
    CorruptBatchError,
    UnsupportedCompressionError,
    UnsupportedMessageFormatError,
)
from tidelog.broker.records.reader import NATIVE
from tidelog.log.base.errors import InvalidRecordError, InvalidTimestampError, RecordTooLargeError

MAGIC: Final = 2
# base offset, length after it, leader epoch, magic, checksum, attributes, last offset delta, first and max timestamp,
# producer id, producer epoch, base sequence, count
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
# What comes before the bytes that `length` counts: base offset and length itself.
LENGTH_END: Final = 12
# The checksum covers all from here on.
CHECKED_FROM: Final = 21
# Bits of `attributes`.
CODEC_BITS: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
# How records are packed here. The levels are low: catching up is bound by the processor, and more would gain little.
# Java wants Snappy in its library's frame, and LZ4 in blocks that don't refer to each other.
_PACK: Final[Mapping[int, Callable[[bytes | memoryview], bytes]]] = {
    NONE: bytes,
    GZIP: lambda body: gzip_encode(body, 1),
    SNAPPY: lambda body: snappy_encode(body, xerial_compatible=True),
    LZ4: lambda body: lz4_encode(bytes(body), 1),
    ZSTD: lambda body: bytes(cramjam.zstd.compress(body, level=1)),
}
# The first version of Produce whose batches may be packed by zstd (KIP-110).
_ZSTD_SINCE = 7
# The least that any message format's batch takes after its length, as Kafka reads it.
_LEAST_LENGTH = 14
_MAGIC_AT = 16
_HEAD = struct.Struct(">qii")
# Where a batch has its leader's epoch, which no checksum covers.
_EPOCH: Final = slice(12, 16)
_CHECKSUM = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_MAX_TIMESTAMP_AT = 35
_LONG = struct.Struct(">q")


class BatchHeader(NamedTuple):
    """The fields of a batch before its records. `size`: bytes of the whole batch; timestamps: ms since the epoch."""

    base_offset: int
    size: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    first_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # a tuple's own count() is not missed

    @property
    def codec(self) -> int:
        """How its records are packed: an index of `CODECS`; 5 to 7 are unknown."""
        return self.attributes & CODEC_BITS

    @property
    def is_transactional(self) -> bool:
        """Whether it is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Whether it holds markers of a transaction's end, which only brokers write."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_log_append_time(self) -> bool:
        """Whether all its records carry the broker's time, `max_timestamp`, in place of their own."""
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def last_offset(self) -> int:
        """The offset of its last record, or beyond where compaction took that one."""
        return self.base_offset + self.last_offset_delta


def header_of(batch: bytes | memoryview, at: int = 0) -> BatchHeader:
    """The header of the batch that begins at `at`. Raises `struct.error` where there are less than 61 bytes."""
    base_offset, length, *rest = HEADER.unpack_from(batch, at)
    return BatchHeader(base_offset, length + LENGTH_END, *rest)


def split(records: bytes | memoryview | None) -> list[tuple[BatchHeader, memoryview]]:
    """The batches of a request's records, each with its bytes, which are slices of `records`; none for none.

    Raises `UnsupportedMessageFormatError` for an older message format, and `CorruptBatchError` for what is no whole
    number of batches. A Kafka broker drops a torn batch behind a whole one without a word; here it is refused.
    """
    view = memoryview(records or b"")
    batches, at, end = [], 0, len(view)
    while at < end:
        if end - at <= _MAGIC_AT:
            raise CorruptBatchError(f"A record batch is torn: {end - at} bytes are left, less than a batch's header.")
        _, length, _ = _HEAD.unpack_from(view, at)
        if length < _LEAST_LENGTH:
            raise CorruptBatchError(f"A record batch claims a length of {length} bytes, less than any batch has.")
        magic = view[at + _MAGIC_AT]
        if magic < MAGIC:
            raise UnsupportedMessageFormatError(
                f"Records in message format {magic} can't be taken: Kafka 4 has formats from {MAGIC} on, which clients"
                " since 0.11 write. Use a newer client, or take away the message format it is set to."
            )
        if magic > MAGIC:
            raise CorruptBatchError(f"A record batch has magic {magic}, which no message format of Kafka has.")
        size = length + LENGTH_END
        if size < HEADER.size or at + size > end:
            raise CorruptBatchError(f"A record batch claims {size} bytes, and {end - at} are there: it is torn.")
        batches.append((header_of(view, at), view[at : at + size]))
        at += size
    return batches


def require_one(batches: Sequence[tuple[BatchHeader, memoryview]], version: int) -> tuple[BatchHeader, memoryview]:
    """The batch of one partition in a Produce request of this version: exactly one, as Kafka has it since version 3.

    Raises `InvalidRecordError`, and `UnsupportedCompressionError` for zstd in a version that has it not.
    """
    if len(batches) != 1:
        raise InvalidRecordError(
            f"Produce requests with version {version} hold exactly one record batch for a partition, and not"
            f" {len(batches)}."
        )
    ((header, batch),) = batches
    if header.codec == ZSTD and version < _ZSTD_SINCE:
        raise UnsupportedCompressionError(
            f"Produce requests with version {version} can't hold records packed by zstd: version {_ZSTD_SINCE} is the"
            " first that can. Use a newer client, or another codec."
        )
    return header, batch


def check(header: BatchHeader, batch: bytes | memoryview, *, topic: str, most_bytes: int) -> None:
    """Refuse a client's batch that a Kafka broker would refuse, its records still packed.

    `most_bytes`: the topic's `max.message.bytes`, which holds for the batch as it comes. Raises `InvalidRecordError`,
    `RecordTooLargeError`, `CorruptBatchError`, `UnsupportedCompressionError`, `InvalidTimestampError`.
    """
    if NATIVE is None or not NATIVE.is_good(batch, most_bytes):
        _check(header, batch, topic, most_bytes)


def _check(header: BatchHeader, batch: bytes | memoryview, topic: str, most_bytes: int) -> None:
    """See `check`."""
    if header.base_offset != 0:
        raise InvalidRecordError(
            f"The base offset of a record batch for topic '{topic}' should be 0, but it is {header.base_offset}:"
            " offsets are given when the batch is appended."
        )
    if header.size > most_bytes:
        raise RecordTooLargeError(
            f"A record batch for topic '{topic}' has {header.size} bytes, more than the topic's"
            f" max.message.bytes={most_bytes}. Raise it, or make the producer's batches smaller."
        )
    if header.crc != crc32c(memoryview(batch)[CHECKED_FROM:]):
        raise CorruptBatchError(
            f"A record batch for topic '{topic}' is corrupt: its checksum is not {header.crc:#010x}, as it says."
        )
    if header.codec >= len(CODECS):
        raise UnsupportedCompressionError(
            f"A record batch for topic '{topic}' is packed by the unknown codec {header.codec}: Kafka has"
            f" {', '.join(CODECS)}."
        )
    _check_fields(header, topic)


def _check_fields(header: BatchHeader, topic: str) -> None:
    """Kafka's rules for fields that have to fit together."""
    problem = ""
    if header.count <= 0:
        problem = f"has {header.count} records"
    elif header.count != header.last_offset_delta + 1:
        problem = f"has {header.count} records and offsets up to {header.last_offset_delta}, which don't fit together"
    elif header.is_control:
        problem = "is a control batch, which clients are not allowed to write"
    elif header.producer_id >= 0 and header.base_sequence < 0:
        problem = f"has sequence {header.base_sequence} with producer id {header.producer_id}"
    elif header.producer_id >= 0 and header.producer_epoch < 0:
        problem = f"has epoch {header.producer_epoch} with producer id {header.producer_id}"
    elif header.is_transactional and header.producer_id < 0:
        problem = "is part of a transaction and names no producer id"
    if problem:
        raise InvalidRecordError(f"A record batch for topic '{topic}' {problem}.")
    if header.is_log_append_time:
        raise InvalidTimestampError(
            f"A record batch for topic '{topic}' says LogAppendTime, which only brokers do. Send it with CreateTime."
        )


def patched(batch: bytes | memoryview, base_offset: int, leader_epoch: int, append_ms: int | None = None) -> bytes:
    """A copy of a batch at its place in the log; what the producer packed stays as it is.

    `append_ms`: the time of all its records, ms since the epoch, where the topic has LogAppendTime; this alone needs a
    new checksum.
    """
    view = memoryview(batch)
    (length,) = struct.unpack_from(">i", view, 8)
    head = _HEAD.pack(base_offset, length, leader_epoch)
    if append_ms is None:
        return b"".join((head, view[len(head) :]))
    copy = bytearray(view)
    copy[: len(head)] = head
    (attributes,) = _ATTRIBUTES.unpack_from(copy, CHECKED_FROM)
    _ATTRIBUTES.pack_into(copy, CHECKED_FROM, attributes | LOG_APPEND_TIME_BIT)
    _LONG.pack_into(copy, _MAX_TIMESTAMP_AT, append_ms)
    _CHECKSUM.pack_into(copy, CHECKED_FROM - _CHECKSUM.size, crc32c(memoryview(copy)[CHECKED_FROM:]))
    return bytes(copy)


def epoch_of(batch: bytes | memoryview) -> int:
    """The leader epoch that a batch, or the first of several, was encoded in."""
    return int.from_bytes(batch[_EPOCH], signed=True)


def of_epoch(batches: Sequence[bytes | memoryview], leader_epoch: int) -> Sequence[bytes | memoryview]:
    """Batches as the leader of an epoch sends them, whichever epoch they were encoded in.

    An item may be several batches that follow one another, all of one epoch.

    librdkafka and Java take a position of an earlier epoch for one that they are past: of batches whose epochs fall, it
    would store no offset, and commit none (KIP-320).
    """
    epoch = leader_epoch.to_bytes(_EPOCH.stop - _EPOCH.start, signed=True)
    if all(batch[_EPOCH] == epoch for batch in batches):
        return batches
    return [patched(batch, header.base_offset, leader_epoch) for item in batches for header, batch in split(item)]


def shortened(batch: bytes | memoryview, offset: int, most_bytes: int) -> tuple[int, bytes] | None:
    """Some records of a batch that was made here: (last offset, a batch of `most_bytes` at most with its base offset).

    They are the first ones at or behind `offset`, one at least, whatever that takes; as compaction leaves a batch, it
    begins before its first record. None where nothing can be left out: of one record, or of a batch that is packed.
    """
    header, view = header_of(batch), memoryview(batch)
    if header.count <= 1 or header.codec != NONE:
        return None
    start = at = HEADER.size
    count, last, newest = 0, -1, header.first_timestamp
    for _ in range(header.count):
        size, begin = decode_varint(view, at)
        # Behind its length and attributes a record has how far its time and its offset are behind the batch's.
        later_ms, further = decode_varint(view, begin + 1)
        delta, _ = decode_varint(view, further)
        end = begin + size
        if count and HEADER.size + end - start > most_bytes:
            break
        at = end
        if header.base_offset + delta < offset:
            start = end
            continue
        count, last, newest = count + 1, delta, max(newest, header.first_timestamp + later_ms)
    if count in (0, header.count):
        return None
    if header.is_log_append_time:
        newest = header.max_timestamp
    header = header._replace(last_offset_delta=last, max_timestamp=newest, count=count)
    return header.last_offset, sealed(header, view[start:at], NONE)


def sealed(header: BatchHeader, body: bytes | memoryview, codec: int) -> bytes:
    """A batch of this header and these records, packed by the codec; `size`, codec and `crc` are filled in."""
    if codec != NONE:
        body = _PACK[codec](body)
    header = header._replace(attributes=header.attributes & ~CODEC_BITS | codec)
    size = HEADER.size + len(body)
    header = header._replace(size=size - LENGTH_END)
    checked = HEADER.pack(*header)[CHECKED_FROM:]
    header = header._replace(crc=crc32c(body, crc32c(checked)))
    return b"".join((HEADER.pack(*header), body))
