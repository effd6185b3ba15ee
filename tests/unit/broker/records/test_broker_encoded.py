"""Arrow columns into batches: what other readers make of them, one record at a time and many at once."""

import numpy as np
import pyarrow as pa
import pytest
from aiokafka.record.default_records import _DefaultRecordBatchPy
from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch
from support.produce_requests import batch as sent_batch
from support.record_batches import rows_of, some_records, stored

from tidelog.broker.records import arrow_batches
from tidelog.broker.records.aiokafka_records import AiokafkaRecords
from tidelog.broker.records.batches import NONE, ZSTD, check, header_of
from tidelog.broker.records.unpacking import repacked
from tidelog.log.delta import schema

RECORDS = AiokafkaRecords()
AT_ONCE = AiokafkaRecords(many_rows=0)
ONE_BY_ONE = AiokafkaRecords(many_rows=1 << 30)
MIB = 1024 * 1024


def read_by_aiokafka(data):
    batch = _DefaultRecordBatchPy(data)
    assert batch.validate_crc()
    return [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in batch]


@given(some_records, st.data(), st.sampled_from([NONE, ZSTD]), st.integers(100, 1000), st.booleans())
def test_what_is_encoded_is_read_alike_by_others(records, data, codec, most_bytes, at_once):
    gaps = data.draw(st.lists(st.integers(1, 2**40), min_size=len(records), max_size=len(records)))
    offsets = np.cumsum(gaps).tolist()
    encoded = (AT_ONCE if at_once else ONE_BY_ONE).batches(stored(records, offsets), 6, codec, most_bytes)
    read, low = [], 0
    for batch in encoded:
        rows = read_by_aiokafka(batch.data)
        header = header_of(batch.data)
        assert (header.base_offset, header.leader_epoch, header.producer_id) == (batch.first, 6, -1)
        assert (rows[0][0], rows[-1][0], header.last_offset) == (batch.first, batch.last, batch.last)
        assert header.max_timestamp == max(row[1] for row in rows)
        assert len(batch.data) == header.size
        assert low <= batch.first <= batch.last
        if header.codec == NONE:  # what is packed may be a little larger than it was
            assert len(batch.data) <= most_bytes or len(rows) == 1
        low = batch.last + 1
        read += rows
        if header.codec == NONE:  # kio reads what is not packed
            theirs, end = read_batch(batch.data, 0)
            assert end == len(batch.data)
            assert [
                (r.offset, r.key, r.value, [(h.key.decode(), h.value) for h in r.headers]) for r in theirs.records
            ] == [(row[0], *row[2:]) for row in rows]
    assert read == [(offset, *record) for offset, record in zip(offsets, records, strict=True)]


@given(some_records, st.data(), st.integers(61, 1000), st.integers(0, 19))
def test_records_encoded_at_once_are_the_bytes_of_those_encoded_one_by_one(records, data, most_bytes, cut):
    offsets = np.cumsum(data.draw(st.lists(st.integers(1, 2**31), min_size=len(records), max_size=len(records))))
    batch = stored(records, offsets.tolist(), data.draw(st.sampled_from([schema.CREATE_TIME, schema.LOG_APPEND_TIME])))
    batch = batch.slice(cut)
    assert AT_ONCE.batches(batch, 3, NONE, most_bytes) == ONE_BY_ONE.batches(batch, 3, NONE, most_bytes)


def test_both_stop_at_the_same_byte():
    batch = stored([(0, None, None, [])] * 9)
    for most_bytes in range(61, 130):
        assert AT_ONCE.batches(batch, 3, NONE, most_bytes) == ONE_BY_ONE.batches(batch, 3, NONE, most_bytes)


@pytest.mark.parametrize("joined_bytes", [1, 120_000, arrow_batches._JOINED_BYTES])
def test_many_records_are_the_same_bytes_too(monkeypatch, joined_bytes):
    """However many bodies are joined at once."""
    monkeypatch.setattr(arrow_batches, "_JOINED_BYTES", joined_bytes)
    rng = np.random.default_rng(5)
    records = [
        (int(rng.integers(2**41)), rng.bytes(n % 9) or None, rng.bytes(n % 300), [("h", b"1"), ("h", None)][: n % 3])
        for n in range(3000)
    ]
    batch = stored(records)
    encoded = RECORDS.batches(batch, 3, NONE, 50_000)
    assert encoded == ONE_BY_ONE.batches(batch, 3, NONE, 50_000)
    assert len(encoded) > 8
    assert RECORDS.batches(batch.drop_columns("headers"), 3, NONE, MIB) == ONE_BY_ONE.batches(
        batch.drop_columns("headers"), 3, NONE, MIB
    )


@given(some_records, st.sampled_from([NONE, ZSTD]))
def test_what_is_encoded_is_taken_again(records, codec):
    (batch,) = RECORDS.batches(stored(records), 0, codec, MIB)
    check(header_of(batch.data), batch.data, topic="flights", most_bytes=MIB)
    columns = RECORDS.columns([batch.data])
    assert (rows_of(columns.table), columns.counts) == (records, [len(records)])


def test_no_records_are_no_batches():
    assert RECORDS.batches(stored([]), 0, NONE, MIB) == []
    assert RECORDS.columns([]).table.num_rows == 0


@pytest.mark.parametrize("codec", range(5))
def test_records_are_packed_by_any_codec_however_little_that_gains(codec):
    for value in (b"x", b"x" * 1000):
        (made,) = RECORDS.batches(stored([(1, None, value, [])]), 0, codec, MIB)
        assert header_of(made.data).codec == codec
        assert rows_of(RECORDS.columns([made.data]).table) == [(1, None, value, [])]
        assert (len(made.data) < 200) == (codec != NONE or len(value) < 100)


@pytest.mark.parametrize("target", range(5))
@pytest.mark.parametrize("codec", range(5))
def test_a_batch_is_packed_again_and_is_else_as_it_was(codec, target):
    sent = sent_batch(b"a" * 300, b"b", codec=codec, producer=(7, 1, 5), headers=[("h", b"1")])
    made = bytes(repacked(sent, target))
    header = header_of(made)
    check(header, made, topic="t", most_bytes=MIB)
    assert header.codec == target
    assert header._replace(attributes=0, size=0, crc=0) == header_of(sent)._replace(attributes=0, size=0, crc=0)
    assert rows_of(RECORDS.columns([made]).table) == rows_of(RECORDS.columns([sent]).table)


both = pytest.mark.parametrize("codec", [AT_ONCE, ONE_BY_ONE], ids=["at once", "one by one"])


@both
def test_records_of_log_append_time_share_a_batch_while_their_time_is_one(codec):
    records = [(5, None, b"a", []), (5, None, b"b", []), (9, None, b"c", [])]
    encoded = codec.batches(stored(records, kind=schema.LOG_APPEND_TIME), 0, NONE, MIB)
    assert [(b.first, b.last, header_of(b.data).is_log_append_time) for b in encoded] == [(0, 1, True), (2, 2, True)]
    assert [row[1] for b in encoded for row in read_by_aiokafka(b.data)] == [5, 5, 9]


@both
def test_a_batch_has_one_type_of_timestamps(codec):
    records = stored([(5, None, b"a", []), (5, None, b"b", [])])
    mixed = records.set_column(6, "timestampType", pa.array([0, 1], pa.int32()))
    encoded = codec.batches(mixed, 0, NONE, MIB)
    assert [header_of(batch.data).is_log_append_time for batch in encoded] == [False, True]


@both
def test_an_offset_too_far_for_a_batch_begins_the_next(codec):
    encoded = codec.batches(stored([(5, None, b"a", [])] * 3, [10, 10 + 2**31 - 1, 10 + 2**31]), 0, NONE, MIB)
    assert [(batch.first, batch.last) for batch in encoded] == [(10, 10 + 2**31 - 1), (10 + 2**31, 10 + 2**31)]


@both
def test_the_first_record_of_a_batch_may_have_no_time(codec):
    (encoded,) = codec.batches(stored([(-1, None, b"a", []), (7, None, b"b", []), (-1, None, b"c", [])]), 0, NONE, MIB)
    assert [row[1] for row in read_by_aiokafka(encoded.data)] == [-1, 7, -1]
