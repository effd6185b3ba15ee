"""Record batches and their parts for tests: as a client packs them, byte by byte, and as columns."""

import struct

import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from crc32c import crc32c
from hypothesis import strategies as st

from tidelog.broker.records.batches import CHECKED_FROM, HEADER
from tidelog.log.delta import schema

some_bytes = st.none() | st.binary(max_size=200)
some_headers = st.lists(st.tuples(st.text(max_size=5), some_bytes), max_size=3)


def lists_of_records(headers: st.SearchStrategy) -> st.SearchStrategy:
    """Lists of (timestamp in ms, key, value, headers)."""
    return st.lists(st.tuples(st.integers(0, 2**42), some_bytes, some_bytes, headers), min_size=1, max_size=20)


some_records = lists_of_records(some_headers)
plain_records = lists_of_records(st.just([]))


def built(records, codec=0):
    """A batch as a client of aiokafka's sends it, at offset 0."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 30)
    for row, (ms, key, value, headers) in enumerate(records):
        builder.append(row, ms, key, value, headers)
    return bytes(builder.build())


def packed(body, codec, count, last_delta=None):
    """A batch whose records are these bytes, as they are, with a checksum that is right."""
    delta = count - 1 if last_delta is None else last_delta
    batch = bytearray(HEADER.pack(0, HEADER.size + len(body) - 12, -1, 2, 0, codec, delta, 0, 0, -1, -1, -1, count))
    batch += body
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[CHECKED_FROM:])))
    return bytes(batch)


def rows_of(table):
    headers = ([(h["key"], h["value"]) for h in row or ()] for row in table["headers"].to_pylist())
    return list(
        zip(table["timestamp"].to_pylist(), table["key"].to_pylist(), table["value"].to_pylist(), headers, strict=True)
    )


def stored(records, offsets=None, kind=schema.CREATE_TIME):
    """Records as a reader of segments gets them."""
    count = len(records)
    columns = {
        "key": pa.array([r[1] for r in records], pa.binary()),
        "value": pa.array([r[2] for r in records], pa.binary()),
        "topic": pa.array(["flights"] * count),
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(range(count) if offsets is None else offsets, pa.int64()),
        "timestamp": pa.array([r[0] * 1000 for r in records], pa.int64()).cast(schema.TIMESTAMP),
        "timestampType": pa.array([kind] * count, pa.int32()),
        "headers": pa.array([r[3] or None for r in records], schema.HEADERS),
    }
    return pa.record_batch(columns, schema=schema.RECORDS_WITH_HEADERS)


def varint(number):
    coded, out = (number << 1) ^ (number >> 63), b""
    while coded >= 128:
        out, coded = out + bytes([coded & 127 | 128]), coded >> 7
    return out + bytes([coded])


def padded(number, size):
    """The number in more bytes than it needs, which say nothing."""
    coded = (number << 1) ^ (number >> 63)
    return bytes(coded >> 7 * place & 127 | (128 if place < size - 1 else 0) for place in range(size))


def record_of(delta, *, key=b"\x01", value=b"\x01", headers=b"\x00", ms=0, size=varint):
    ms, delta = (varint(one) if isinstance(one, int) else one for one in (ms, delta))
    body = b"\0" + ms + delta + key + value + headers
    return size(len(body)) + body
