"""Batches of clients before their records are looked at: what is taken, what is refused, how they are patched."""

import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from crc32c import crc32c

from tidelog.broker.records.batches import CHECKED_FROM, HEADER, check, header_of, patched, require_one, split
from tidelog.log.base.errors import TidelogError

# Where fields of a batch begin, and their format (Kafka's message format v2).
FIELDS = {
    "base_offset": (0, ">q"),
    "length": (8, ">i"),
    "leader_epoch": (12, ">i"),
    "magic": (16, ">b"),
    "crc": (17, ">I"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "count": (57, ">i"),
}


def batch_of(count=3, codec=0, producer=(-1, -1, -1)):
    builder = DefaultRecordBatchBuilder(2, codec, 0, *producer, 1 << 30)
    for row in range(count):
        builder.append(row, 1000 + row, b"k%d" % row, b"v" * 50, [("h", None), ("h", b"1")])
    return bytes(builder.build())


def with_fields(batch, *, seal=True, **values):
    changed = bytearray(batch)
    for name, value in values.items():
        at, form = FIELDS[name]
        struct.pack_into(form, changed, at, value)
    if seal:
        struct.pack_into(">I", changed, 17, crc32c(bytes(changed[CHECKED_FROM:])))
    return bytes(changed)


def code_of(batch, most_bytes=1_048_588, version=13):
    """Kafka's code of what a Produce request with this batch is refused for; 0: it is taken."""
    try:
        header, whole = require_one(split(batch), version)
        check(header, whole, topic="flights", most_bytes=most_bytes)
    except TidelogError as e:
        return e.kafka_code
    return 0


GOOD = batch_of()
IDEMPOTENT = batch_of(producer=(77, 0, 12))
CORRUPT, TOO_LARGE, OLD_FORMAT, CODEC, INVALID, TIMESTAMP = 2, 10, 43, 76, 87, 32


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        (GOOD, 0),
        (IDEMPOTENT, 0),
        (with_fields(GOOD, leader_epoch=9), 0),
        (b"", INVALID),
        (GOOD + GOOD, INVALID),
        (with_fields(GOOD, base_offset=5), INVALID),
        (with_fields(GOOD, magic=0), OLD_FORMAT),
        (with_fields(GOOD, magic=1), OLD_FORMAT),
        (with_fields(GOOD, magic=3), CORRUPT),
        (with_fields(GOOD, magic=-1), CORRUPT),
        (with_fields(GOOD, crc=1, seal=False), CORRUPT),
        (with_fields(GOOD, length=-1), CORRUPT),
        (with_fields(GOOD, length=20), CORRUPT),
        (with_fields(GOOD[:61], length=20)[:32], CORRUPT),
        (with_fields(GOOD, length=len(GOOD)), CORRUPT),
        (with_fields(GOOD, count=0, last_offset_delta=-1), INVALID),
        (with_fields(GOOD, count=0), INVALID),
        (with_fields(GOOD, count=-1), INVALID),
        (with_fields(GOOD, count=4), INVALID),
        (with_fields(GOOD, last_offset_delta=1), INVALID),
        (with_fields(GOOD, attributes=0x20), INVALID),
        (with_fields(GOOD, attributes=0x10), INVALID),
        (with_fields(IDEMPOTENT, attributes=0x10), 0),
        (with_fields(GOOD, attributes=0x08), TIMESTAMP),
        (with_fields(GOOD, attributes=5), CODEC),
        (with_fields(GOOD, attributes=7), CODEC),
        (with_fields(IDEMPOTENT, base_sequence=-1), INVALID),
        (with_fields(IDEMPOTENT, producer_epoch=-1), INVALID),
    ],
)
def test_batches_are_refused_by_the_codes_of_kafka(batch, code):
    assert code_of(batch) == code


def test_the_size_of_the_whole_batch_counts():
    assert code_of(GOOD, most_bytes=len(GOOD)) == 0
    assert code_of(GOOD, most_bytes=len(GOOD) - 1) == TOO_LARGE


def test_zstd_needs_version_7():
    zstd = batch_of(codec=4)
    assert (code_of(zstd, version=6), code_of(zstd, version=7)) == (CODEC, 0)
    assert code_of(batch_of(codec=3), version=6) == 0


def test_a_request_s_batches_are_slices_of_it():
    whole = memoryview(GOOD + IDEMPOTENT)
    (first, one), (second, two) = split(whole)
    assert (first.count, second.count, second.producer_id, second.base_sequence) == (3, 3, 77, 12)
    assert (one, two) == (GOOD, IDEMPOTENT)
    assert one.obj is whole.obj
    assert two.obj is whole.obj
    assert (first.size, first.last_offset, first.first_timestamp, first.max_timestamp) == (len(GOOD), 2, 1000, 1002)
    assert split(None) == []


@pytest.mark.parametrize("records", [GOOD, GOOD + IDEMPOTENT], ids=["one", "two"])
def test_torn_batches_are_refused(records):
    whole = {0, *((len(GOOD),) if len(records) > len(GOOD) else ())}
    for end in range(len(records)):
        if end in whole:
            continue
        with pytest.raises(TidelogError) as refused:
            split(records[:end])
        assert refused.value.kafka_code == CORRUPT


@pytest.mark.parametrize("codec", range(5))
def test_every_flipped_bit_is_refused_or_changes_nothing(codec):
    batch = batch_of(codec=codec, producer=(77, 0, 12))
    for at in range(len(batch)):
        for bit in range(8):
            flipped = bytearray(batch)
            flipped[at] ^= 1 << bit
            changes_nothing = 12 <= at < 16  # the leader epoch, which brokers write
            assert (code_of(bytes(flipped)) == 0) == changes_nothing, (at, bit)


def test_a_patched_batch_keeps_what_the_producer_packed():
    batch = batch_of(codec=4)
    placed = patched(memoryview(batch), 1234, 7)
    assert (header_of(placed).base_offset, header_of(placed).leader_epoch) == (1234, 7)
    assert (placed[16:], placed[8:12]) == (batch[16:], batch[8:12])
    read = DefaultRecordBatch(placed)
    assert read.validate_crc()
    assert [(r.offset, r.timestamp, r.timestamp_type) for r in read] == [(1234 + n, 1000 + n, 0) for n in range(3)]


def test_log_append_time_is_patched_in_with_its_checksum():
    batch = batch_of(codec=1)
    placed = patched(batch, 1234, 7, append_ms=5555)
    assert placed[HEADER.size :] == batch[HEADER.size :]
    read = DefaultRecordBatch(placed)
    assert read.validate_crc()
    assert [(r.offset, r.timestamp, r.timestamp_type) for r in read] == [(1234 + n, 5555, 1) for n in range(3)]
