"""The native reader and writer of batches: what they do is what aiokafka's classes do, with any bytes."""

import threading

import pyarrow as pa
import pytest
from crc32c import crc32c
from support.native import native_records
from support.record_batches import built, packed, record_of, rows_of, stored, varint
from support.strange_batches import compare

from tidelog.broker.records.batches import NONE, check, header_of
from tidelog.broker.records.columns import COLUMNS
from tidelog.log.delta import schema

HEADERS = [("h", b"1"), ("ключ", None)]
RECORDS = [(n, b"k%d" % n if n % 3 else None, b"v" * (n % 70), HEADERS[: n % 3]) for n in range(900)]


@pytest.fixture
def native():
    native_records()
    from tidelog.broker.records import native

    return native


@pytest.mark.parametrize("seed", range(4))
def test_strange_batches_are_read_checked_and_written_as_by_aiokafka(seed):
    """Mutated batches, 6,000 in all: see strange_batches.py. `make fuzz` has a million."""
    found = compare(seed, 1500, native_records())
    assert not found.differences, "\n\n".join(found.differences)[:5000]
    assert min(found.taken, found.refused) > 300
    assert min(found.good, found.encoded, found.noted) > 80


def test_what_is_plain_is_left_to_no_other_reader(monkeypatch):
    records = native_records()
    for name in ("_read_alone", "_one_by_one"):
        monkeypatch.delattr(f"tidelog.broker.records.aiokafka_records.{'Decoding.' * (name == '_read_alone')}{name}")
    batches = [built(RECORDS, codec) for codec in range(5)]
    columns = records.columns(batches)
    assert (columns.counts, columns.refused, columns.table.schema) == ([900] * 5, {}, COLUMNS)
    assert rows_of(columns.table) == RECORDS * 5
    for table in (stored(RECORDS), stored(RECORDS).slice(7, 300), stored(RECORDS).drop_columns("headers")):
        written = records.batches(table, 3, NONE, 20_000)
        assert sum(header_of(batch.data).count for batch in written) == table.num_rows


def test_other_columns_than_those_of_segments_are_written_too():
    table = stored(RECORDS)
    few = table.drop_columns(["topic", "partition"])
    assert native_records().batches(few, 0, NONE, 10_000) == native_records().batches(table, 0, NONE, 10_000)


def test_columns_are_kept_when_the_batches_are_gone():
    table = native_records().columns([built(RECORDS, codec) for codec in (0, 4)]).table
    rows = table.slice(850, 100)
    del table
    rows.validate(full=True)
    assert rows_of(rows) == (RECORDS * 2)[850:950]


def test_memory_of_columns_is_given_back(native):
    batch = memoryview(built([(1, None, bytes(1 << 20), [])]))
    before = _resident()
    for at in range(300):  # also where nothing was imported
        notes = native.read([batch], [None], -1)
        notes.columns(pa.RecordBatch._import_from_c if at % 2 else lambda *_: None, COLUMNS, 0, 1)
    assert _resident() - before < 100 << 20


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_an_importer_that_fails_costs_no_memory(native):
    def fails(address, wanted):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        native.read([memoryview(built(RECORDS))], [None], -1).columns(fails, COLUMNS, 0, 1)


def test_threads_read_at_once():
    """The lock is given up, and each call has its own memory."""
    records, batches, read = native_records(), [built(RECORDS)] * 5, []
    threads = [threading.Thread(target=lambda: read.append(records.columns(batches).table)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [rows_of(table) == RECORDS * 5 for table in read] == [True] * 8


@pytest.mark.parametrize("by_tables", [False, True])
def test_the_checksum_is_crc_32c(native, by_tables):
    data = bytes(at * 7 & 255 for at in range(50_000))
    assert native.crc32c(b"123456789", by_tables) == 0xE3069283  # the check value of catalogues
    for size in (*range(900), 3 * 256, 3 * 4096 - 1, 3 * 4096, 3 * 4096 + 1, 50_000):
        assert native.crc32c(data[3 : 3 + size], by_tables) == crc32c(data[3 : 3 + size]), size


def test_the_check_takes_what_producers_send(native):
    for codec in range(5):
        batch = built(RECORDS, codec)
        assert native.is_good(batch, len(batch))
        assert not native.is_good(batch, len(batch) - 1)
        check(header_of(batch), memoryview(batch), topic="flights", most_bytes=len(batch))
    assert not any(native.is_good(batch[:size], 1 << 20) for size in range(len(batch)))


@pytest.mark.parametrize(
    ("key", "taken"),
    [
        (b"", True),
        ("ключ \ud7ff\ue000\uffff\U00010000\U0010ffff".encode(), True),
        (b"\x80", False),
        (b"\xc1\xbf", False),  # longer than it need be
        (b"\xe0\x9f\xbf", False),
        (b"\xf0\x8f\xbf\xbf", False),
        (b"\xed\xa0\x80", False),  # a surrogate
        (b"\xf4\x90\x80\x80", False),  # beyond Unicode
        (b"\xf5\x80\x80\x80", False),
        (b"\xe2\x82", False),  # torn
        (b"\xe2\x28\xa1", False),
    ],
)
def test_keys_of_headers_are_utf_8(native, key, taken):
    body = record_of(0, headers=varint(1) + varint(len(key)) + key + varint(-1))
    counts = native.read([memoryview(packed(body, 0, 1))], [None], -1).counts
    assert counts == [int(taken)]


def test_log_append_time_is_one_batch_a_time():
    records = [(5, None, b"a", []), (5, None, b"b", []), (9, None, b"c", [])]
    table = stored(records, kind=schema.LOG_APPEND_TIME)
    assert [(batch.first, batch.last) for batch in native_records().batches(table, 0, NONE, 1000)] == [(0, 1), (2, 2)]
