"""Batches of clients into Arrow columns: what is read, what is refused, and in how much memory."""

import struct
import tracemalloc
import zlib

import cramjam
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.record_batches import built, packed, padded, plain_records, record_of, rows_of, some_records, varint

from tidelog.broker.records.aiokafka_records import AiokafkaRecords
from tidelog.broker.records.arrow_columns import arrow_columns
from tidelog.broker.records.batches import HEADER, ZSTD, header_of
from tidelog.broker.records.codec import record_codec
from tidelog.broker.records.columns import COLUMNS, RecordRules
from tidelog.broker.records.errors import CorruptBatchError
from tidelog.broker.records.unpacking import unpacked
from tidelog.log.config.topics_and_lakes import TopicConfig

RECORDS = AiokafkaRecords()
TOGETHER = AiokafkaRecords(many_rows=0)
# The quickest that this installation has.
INSTALLED = record_codec()
CORRUPT, INVALID, TIMESTAMP = 2, 87, 32
MIB = 1024 * 1024


some_batches = st.lists(plain_records.map(built), min_size=1, max_size=5)


@given(st.lists(st.tuples(some_records, st.integers(0, 4)), max_size=5))
def test_what_clients_pack_is_read(batches):
    columns = RECORDS.columns([built(records, codec) for records, codec in batches], RULES)
    assert rows_of(columns.table) == [record for records, _ in batches for record in records]
    assert columns.table.schema == COLUMNS
    assert columns.counts == [len(records) for records, _ in batches]
    assert columns.refused == {}


@given(st.lists(st.tuples(plain_records, st.integers(0, 4)), min_size=1, max_size=5), st.data())
def test_records_read_together_are_those_read_one_by_one(batches, data):
    packs = [built(records, codec) for records, codec in batches]
    if data.draw(st.booleans()):  # something in one of them is wrong, or another one than before
        at = data.draw(st.integers(0, len(packs) - 1))
        count, codec = header_of(packs[at]).count, header_of(packs[at]).codec
        body = bytearray(packs[at][HEADER.size :])
        body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        packs[at] = packed(bytes(body), codec, count)
    one_by_one, together = RECORDS.columns(packs), TOGETHER.columns(packs)
    together.table.validate(full=True)
    assert rows_of(together.table) == rows_of(one_by_one.table)
    assert together.counts == one_by_one.counts
    assert [(at, str(e)) for at, e in together.refused.items()] == [
        (at, str(e)) for at, e in one_by_one.refused.items()
    ]


@given(some_batches)
def test_plain_batches_are_read_together(batches):
    read = arrow_columns([header_of(batch) for batch in batches], [batch[HEADER.size :] for batch in batches])
    assert read is not None
    assert rows_of(read) == rows_of(RECORDS.columns(batches).table)


@pytest.mark.parametrize("codec", range(5))
def test_a_large_batch_is_read_in_order(codec):
    records = [(n, b"k%d" % n, b"v" * (n % 50), [("h", b"%d" % n)] if n % 7 == 0 else []) for n in range(10_000)]
    small = [(5, None, b"small", [])]
    columns = RECORDS.columns([built(small), built(records, codec), built(small, codec)])
    assert rows_of(columns.table) == [*small, *records, *small]
    assert columns.counts == [1, 10_000, 1]


# --- what can't be read --------------------------------------------------------------------------------


GOOD = record_of(0) + record_of(1)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (GOOD, 1),
        (GOOD, 3),
        (GOOD + b"\0", 2),
        (GOOD[:-1], 2),
        (b"", 1),
        (GOOD, 2**31 - 1),
        (record_of(0) + record_of(0), 2),
        (record_of(1) + record_of(2), 2),
        (record_of(0) + record_of(2), 2),
        (record_of(0) + record_of(2**40), 2),
        (record_of(0, key=varint(1000)), 1),
        (record_of(0, key=varint(2**62)), 1),
        (record_of(0, value=varint(2**31)), 1),
        (record_of(0, value=varint(2**63 - 40)), 1),  # with what is before it, it is beyond 64 bits
        (record_of(0, key=varint(2**63 - 1)), 1),
        (record_of(0, headers=varint(1) + varint(0) + varint(2**63 - 40)), 1),
        (record_of(0, headers=varint(1) + varint(2**63 - 40) + varint(0)), 1),
        (varint(2**63 - 1) + record_of(0)[1:], 1),
        (record_of(0, headers=varint(-1)), 1),
        (record_of(0, headers=varint(2**31 - 1)), 1),
        (record_of(0, headers=varint(2**62)), 1),
        (record_of(0, headers=varint(1) + varint(-1) + varint(-1)), 1),
        (record_of(0, headers=varint(1) + varint(1) + b"\xff" + varint(-1)), 1),
        (varint(3) + record_of(0)[1:], 1),
        (b"\x0d" + record_of(0)[1:], 1),  # its length is below 0
        (record_of(0)[:1] + b"\x80" + record_of(0)[2:], 1),  # attributes that nothing has
        (record_of(0, headers=varint(1)) + record_of(1), 2),
        (b"\xff" * 40, 1),
        (b"\x80" * 40, 1),
    ],
)
@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize("how", [RECORDS, TOGETHER, INSTALLED], ids=["one by one", "together", "installed"])
def test_records_that_make_no_sense_are_refused(body, count, codec, how):
    assert RECORDS.columns([packed(GOOD, 0, 2)]).counts == [2]
    if codec:
        body = bytes(cramjam.zstd.compress(body))
    columns = how.columns([packed(GOOD, 0, 2), packed(body, codec, count), packed(GOOD, 0, 2)])
    assert {index: error.kafka_code for index, error in columns.refused.items()} == {1: INVALID}
    assert (columns.counts, columns.table.num_rows) == ([2, 0, 2], 4)


def with_long_number(field, size):
    """A record whose number there takes `size` bytes, and what it holds."""
    one = padded(1, size)
    return {
        "size": lambda: record_of(0, size=lambda number: padded(number, size)),
        "time": lambda: record_of(0, ms=padded(0, size)),
        "offset": lambda: record_of(padded(0, size)),
        "key": lambda: record_of(0, key=one + b"x"),
        "null key": lambda: record_of(0, key=padded(-1, size)),
        "value": lambda: record_of(0, value=one + b"x"),
        "headers": lambda: record_of(0, headers=one + varint(0) + varint(-1)),
        "header's key": lambda: record_of(0, headers=varint(1) + one + b"x" + varint(-1)),
        "header's value": lambda: record_of(0, headers=varint(1) + varint(0) + one + b"x"),
    }[field]()


@pytest.mark.parametrize(
    "field", ["size", "time", "offset", "key", "null key", "value", "headers", "header's key", "header's value"]
)
@pytest.mark.parametrize("how", [RECORDS, TOGETHER, INSTALLED], ids=["one by one", "together", "installed"])
def test_a_number_takes_no_more_bytes_than_every_client_reads(field, how):
    """Five, and ten of a timestamp: consumers get the batch as it came, and one that can't read it would never end."""
    most = 10 if field == "time" else 5
    for size in range(1, most + 1):
        assert how.columns([packed(with_long_number(field, size), 0, 1)]).counts == [1], size
    columns = how.columns([packed(with_long_number(field, most + 1), 0, 1), packed(GOOD, 0, 2)])
    assert {index: error.kafka_code for index, error in columns.refused.items()} == {0: INVALID}
    assert columns.counts == [0, 2]


@pytest.mark.parametrize("how", [RECORDS, TOGETHER, INSTALLED], ids=["one by one", "together", "installed"])
def test_a_number_has_32_bits_for_every_client(how):
    """Java drops what is beyond, and would see another length than a reader with 64 bits does."""
    beyond = b"\x81\x80\x80\x80\x10"  # negative by 64 bits, as that of a null key is; -1 by 32
    assert how.columns([packed(record_of(0, key=padded(-1, 5)), 0, 1)]).counts == [1]
    assert how.columns([packed(record_of(0, key=beyond), 0, 1)]).counts == [0]


@pytest.mark.parametrize("how", [RECORDS, TOGETHER, INSTALLED], ids=["one by one", "together", "installed"])
def test_long_runs_of_high_bytes_are_no_long_numbers(how):
    records = [(at, b"\xff" * 20, "длинный текст".encode() * 3, [("h", b"\x80" * 9)] * (at % 2)) for at in range(9)]
    assert rows_of(how.columns([built(records)]).table) == records


@pytest.mark.parametrize("codec", range(1, 5))
def test_what_is_packed_wrongly_is_corrupt_and_alone(codec):
    good = built([(1, b"k" * 20, b"v" * 200, [])] * 5, codec)
    body = good[HEADER.size :]
    for broken in (body[:-1], body[: len(body) // 2], body[:1], b"\xff" + body[1:], b"garbage" * 10):
        columns = RECORDS.columns([good, packed(broken, codec, 5), good])
        (error,) = columns.refused.values()
        assert (error.kafka_code, columns.counts) == (CORRUPT, [5, 0, 5]), broken


@given(some_records, st.integers(0, 4), st.data())
def test_no_bytes_bring_the_reader_down(records, codec, data):
    """Behind a checksum that is right, anything may stand: it is read as something or refused, and ends no process."""
    body = bytearray(built(records, codec)[HEADER.size :])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    columns = data.draw(st.sampled_from([RECORDS, TOGETHER])).columns([packed(bytes(body), codec, len(records))])
    columns.table.validate(full=True)
    assert columns.counts == [columns.table.num_rows]
    assert all(error.kafka_code in (CORRUPT, INVALID) for error in columns.refused.values())
    assert bool(columns.refused) == (columns.counts == [0])


def test_a_record_that_breaks_off_a_large_batch_takes_back_all_of_it():
    rows = b"".join(record_of(n) for n in range(9000))
    columns = RECORDS.columns([packed(GOOD, 0, 2), packed(rows + b"\0", 0, 9001), packed(GOOD, 0, 2)])
    assert (columns.counts, columns.table.num_rows, list(columns.refused)) == ([2, 0, 2], 4, [1])


def test_headers_of_a_refused_batch_are_nowhere():
    with_headers = record_of(0, headers=varint(1) + varint(1) + b"h" + varint(-1))
    columns = RECORDS.columns([packed(with_headers + record_of(0), 0, 2), packed(GOOD, 0, 2)])
    assert (list(columns.refused), rows_of(columns.table)) == ([0], [(0, None, None, [])] * 2)


# --- snappy and gzip have several forms -------------------------------------------------------------------

XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


def blocks(body, size):
    parts = (bytes(cramjam.snappy.compress_raw(body[at : at + size])) for at in range(0, len(body), size))
    return b"".join(struct.pack(">i", len(part)) + part for part in parts)


def gzipped(body):
    packer = zlib.compressobj(wbits=31)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("codec", "form"),
    [
        (2, lambda body: bytes(cramjam.snappy.compress_raw(body))),
        (2, lambda body: XERIAL + blocks(body, 7)),
        (2, lambda body: XERIAL + blocks(body[:9], 100) + XERIAL + blocks(body[9:], 100)),
        (1, gzipped),
        (1, lambda body: gzipped(body[:9]) + gzipped(body[9:])),
        (3, lambda body: bytes(cramjam.lz4.compress(body[:9])) + bytes(cramjam.lz4.compress(body[9:]))),
        (4, lambda body: bytes(cramjam.zstd.compress(body[:9])) + bytes(cramjam.zstd.compress(body[9:]))),
    ],
    ids=["raw snappy", "xerial", "xerial twice", "gzip", "two members", "two lz4 frames", "two zstd frames"],
)
def test_all_forms_of_a_codec_are_read(codec, form):
    columns = RECORDS.columns([packed(form(GOOD), codec, 2)])
    assert (columns.refused, columns.counts) == ({}, [2])


# --- bounds -----------------------------------------------------------------------------------------------

ZEROS = bytes(64 * MIB)


def snappy_claiming(size):
    coded = b""
    while size >= 128:
        coded, size = coded + bytes([size & 127 | 128]), size >> 7
    return coded + bytes([size]) + b"\0\0"


@pytest.mark.parametrize(
    ("codec", "bomb"),
    [
        (1, lambda: gzipped(ZEROS)),
        (2, lambda: bytes(cramjam.snappy.compress_raw(ZEROS))),
        (2, lambda: XERIAL + blocks(ZEROS, 32 * 1024)),
        (2, lambda: snappy_claiming(2**32 - 1)),
        (2, lambda: XERIAL + struct.pack(">i", 7) + snappy_claiming(2**32 - 1)),
        (3, lambda: bytes(cramjam.lz4.compress(ZEROS))),
        (4, lambda: bytes(cramjam.zstd.compress(ZEROS))),
    ],
    ids=["gzip", "snappy", "xerial", "snappy's claim", "xerial's claim", "lz4", "zstd"],
)
def test_a_bomb_is_refused_before_it_has_its_memory(codec, bomb):
    batch, good = packed(bomb(), codec, 1), packed(GOOD, 0, 2)
    usual = 16 * len(batch)
    tracemalloc.start()
    try:
        before = pa.total_allocated_bytes()
        columns = AiokafkaRecords(shared_bytes=MIB).columns([good, batch, batch, batch, good])
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert {index: error.kafka_code for index, error in columns.refused.items()} == dict.fromkeys((1, 2, 3), CORRUPT)
    assert columns.counts == [2, 0, 0, 0, 2]
    assert peak < 2 * usual + 4 * MIB
    assert kept + pa.total_allocated_bytes() - before < MIB // 4


@pytest.mark.parametrize("size", [1, 255, 256, 65_791, 65_792, 300_000])
def test_zstandard_gets_the_room_that_its_frame_asks_for(size, monkeypatch):
    body, rooms, real = np.random.default_rng(size).bytes(size), [], cramjam.zstd.decompress_into

    def decompress_into(data, room):
        rooms.append(len(room))
        return real(data, room)

    monkeypatch.setattr(cramjam.zstd, "decompress_into", decompress_into)
    frame = bytes(cramjam.zstd.compress(body))
    assert bytes(unpacked(ZSTD, memoryview(frame), 2 * size)) == body
    assert rooms == [size if size > 1 else 2 * size]  # too short a frame is not asked


@pytest.mark.parametrize("told", [5, 70_000, 2**40])
def test_a_zstandard_frame_that_lies_about_its_size_gets_no_more_room(told):
    frame = bytes(cramjam.zstd.compress(bytes(70_000)))
    assert frame[4] & 0xE0 == 0xA0  # the size is in the four bytes behind
    lying = frame[:4] + bytes([frame[4] | 0xC0]) + told.to_bytes(8, "little") + frame[9:]
    tracemalloc.start()
    try:
        if told == 70_000:
            assert bytes(unpacked(ZSTD, memoryview(lying), 100_000)) == bytes(70_000)
        else:
            with pytest.raises(CorruptBatchError):
                unpacked(ZSTD, memoryview(lying), 100_000)
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


def test_what_was_unpacked_of_a_torn_batch_is_not_kept():
    batch = packed(gzipped(ZEROS)[:-1], 1, 1)
    tracemalloc.start()
    try:
        columns = RECORDS.columns([batch])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert columns.refused[0].kafka_code == CORRUPT
    assert kept < MIB


def test_gzip_of_very_many_members_is_refused():
    columns = RECORDS.columns([packed(gzipped(b"") * 50_000, 1, 1)])
    assert columns.refused[0].kafka_code == CORRUPT


def test_batches_of_a_call_share_what_they_unpack_to_beyond_the_usual():
    beyond = built([(1, None, bytes(MIB), [])], 4)
    usual = built([(1, None, np.random.default_rng(1).bytes(MIB), [])], 4)
    counts = AiokafkaRecords(shared_bytes=int(2.5 * MIB)).columns([beyond, beyond, beyond, usual]).counts
    assert counts == [1, 1, 0, 1]


def test_very_many_tiny_records_count_by_what_they_take_in_memory():
    body = b"".join(record_of(n) for n in range(50_000))
    batch = packed(bytes(cramjam.zstd.compress(body, level=19)), 4, 50_000)
    assert AiokafkaRecords(shared_bytes=len(body)).columns([batch]).refused[0].kafka_code == CORRUPT
    assert RECORDS.columns([batch]).counts == [50_000]


# --- rules of topics --------------------------------------------------------------------------------------

NOW_MS = 2**42
DAY_MS = 86_400_000
RULES = RecordRules.of("flights", TopicConfig.parse({}), NOW_MS)


def rules(**config):
    return RecordRules.of(
        "flights", TopicConfig.parse({k.replace("_", "."): str(v) for k, v in config.items()}), NOW_MS
    )


def errors_of(records, how):
    columns = RECORDS.columns([built(records)], how)
    return {(error.kafka_code, row) for error in columns.refused.values() for row, _ in error.record_errors}


def test_compacted_topics_name_each_record_without_a_key():
    records = [(1, b"k", b"v", []), (1, None, b"v", []), (1, b"", None, []), (1, None, None, [])]
    assert errors_of(records, rules(cleanup_policy="compact")) == {(INVALID, 1), (INVALID, 3)}
    assert errors_of(records, rules(cleanup_policy="compact,delete")) == {(INVALID, 1), (INVALID, 3)}
    assert errors_of(records, rules()) == set()
    columns = RECORDS.columns([built(records)], rules(cleanup_policy="compact"))
    assert "flights" in columns.refused[0].record_errors[0][1]


def test_timestamps_out_of_range_are_named():
    config = {"message_timestamp_before_max_ms": DAY_MS, "message_timestamp_after_max_ms": 1000}
    times = [NOW_MS, NOW_MS - DAY_MS, NOW_MS - DAY_MS - 1, NOW_MS + 1000, NOW_MS + 1001, -1]
    records = [(ms, b"k", b"v", []) for ms in times]
    assert errors_of(records, rules(**config)) == {(TIMESTAMP, 2), (TIMESTAMP, 4)}
    assert errors_of(records, rules(**config, message_timestamp_type="LogAppendTime")) == set()
    assert errors_of([(-2, b"k", b"v", [])], rules()) == {(TIMESTAMP, 0)}
    far = rules(message_timestamp_after_max_ms=2**63 - 1)
    assert errors_of([(2**62, b"k", b"v", [])], far) == {(TIMESTAMP, 0)}
    assert errors_of([((2**63 - 1) // 1000, b"k", b"v", [])], far) == set()


def test_a_key_that_is_missing_counts_first_and_one_wrong_time_makes_it_a_matter_of_time():
    how = rules(cleanup_policy="compact")
    records = [(NOW_MS * 2, None, b"v", []), (NOW_MS * 2, b"k", b"v", [])]
    assert errors_of(records, how) == {(TIMESTAMP, 0), (TIMESTAMP, 1)}
    columns = RECORDS.columns([built(records)], how)
    assert ["key" in text for _, text in columns.refused[0].record_errors] == [True, False]


def test_batches_beside_a_refused_one_are_taken():
    good, bad = built([(1, b"k", b"v", [])] * 3), built([(1, b"k", b"v", []), (1, None, b"v", [])])
    columns = RECORDS.columns([good, bad, good, bad], rules(cleanup_policy="compact"))
    assert (columns.counts, columns.table.num_rows, sorted(columns.refused)) == ([3, 0, 3, 0], 6, [1, 3])
    assert {row for error in columns.refused.values() for row, _ in error.record_errors} == {1}


@pytest.mark.parametrize("how", [RECORDS, TOGETHER, INSTALLED], ids=["one by one", "together", "installed"])
def test_a_record_without_a_timestamp_has_null(how):
    columns = how.columns([packed(record_of(0, ms=-1) + record_of(1, ms=7), 0, 2)], RULES)
    assert columns.table["timestamp"].to_pylist() == [None, 7]


@pytest.mark.parametrize("lengths", [(300, 1, 400), (1, 999), (3000,), (10, 20, 700, 5), (257, 257)])
def test_runs_of_records_of_one_length_are_those_read_one_by_one(lengths):
    """Records of a batch that are of one length in parts, so that runs of them are found at once."""
    values = [bytes([at % 251]) * (50 + 80 * part) for part, count in enumerate(lengths) for at in range(count)]
    batches = [built([(7 + at, None, value, []) for at, value in enumerate(values)]) for _ in range(2)]
    one_by_one, together = AiokafkaRecords(many_rows=1 << 30).columns(batches), TOGETHER.columns(batches)
    assert together.refused == {}
    assert rows_of(together.table) == rows_of(one_by_one.table)
    assert (
        arrow_columns([header_of(batch) for batch in batches], [batch[HEADER.size :] for batch in batches]) is not None
    )


@given(st.integers(256, 400), st.data())
def test_a_run_that_something_breaks_is_read_as_one_by_one(count, data):
    """A byte of many records of one length is another one: a length, so that the run ends there, or a part of it."""
    batch = built([(7, b"k", b"v" * 20, []) for _ in range(count)])
    body = bytearray(batch[HEADER.size :])
    body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    broken = packed(bytes(body), 0, count)
    one_by_one, together = AiokafkaRecords(many_rows=1 << 30).columns([broken]), TOGETHER.columns([broken])
    assert rows_of(together.table) == rows_of(one_by_one.table)
    assert [str(error) for error in together.refused.values()] == [str(error) for error in one_by_one.refused.values()]
