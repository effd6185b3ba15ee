"""Segments that are read without Arrow: the batches that are made of them are those that Arrow's reader leads to."""

import random
import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.fetched import records_of as fetched
from support.native import native_records
from support.tiny_segments import CODECS, record, records_of

from tidelog.broker.fetch.segment_rows import NotPlainError, SegmentRows
from tidelog.broker.records.batches import LZ4, NONE
from tidelog.log.config.topics_and_lakes import Codec
from tidelog.log.segments import fetch
from tidelog.log.segments.fetch import FetchPlan
from tidelog.log.segments.writer import SegmentWriter, write_small_segment
from tidelog.log.state.topic_state import Segment
from tidelog.log.storage.memory import MemoryStorage

NO_STOP = 2**63 - 1
PLAIN = Codec("none", None)
# As Arrow's writer has it: pages of 256 KiB, dictionaries of keys, row groups.
MANY = [(b"k%d" % (n % 7) if n % 11 else None, b"v%d" % n * (n % 90), None, n * 1_000_003, n % 2) for n in range(9_000)]


class Log:
    """Segments of a partition, one behind the other."""

    def __init__(self):
        self.storage = MemoryStorage("lake")
        self.segments = []
        self.end = 100

    def add(self, data, records, offsets=None):
        """A segment's file of `records`; `offsets`: how many it covers, as many by default."""
        path, begin = f"{len(self.segments)}.parquet", self.end
        self.storage.put(f"t/{path}", bytes(data))
        self.end += records if offsets is None else offsets
        self.segments.append(Segment(path, 0, begin, self.end, len(data), 0, f'{{"numRecords": {records}}}'))

    def plan(self, start=100, end=None):
        return FetchPlan(0, start, self.end if end is None else end, tuple(self.segments))

    def rows(self, plan=None):
        return SegmentRows(self.storage, "t", plan or self.plan(), native_records().rows())

    def read(self, plan=None, most=2**62, groups=2**31 - 1, codec=NONE):
        """All batches, some at a time. Raises `NotPlainError`."""
        pages, found = self.rows(plan), []
        while not pages.is_through or pages.rows.next_offset >= 0:
            pages.fill(most, groups)
            if pages.rows.next_offset >= 0:
                found += pages.rows.batches(3, codec, 4096, most, NO_STOP)
        assert pages.rows.size == 0
        return found

    def by_arrow(self, plan=None, codec=NONE):
        """All batches as Arrow's reader leads to them."""
        plan = plan or self.plan()
        parts = list(fetch.fetch(self.storage, "t", "t", plan, include_headers=True))
        if not parts:
            return []
        table = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
        return native_records().batches(table, 3, codec, 4096)


def written(rows, codec=PLAIN, positions=None, each=None):
    """A segment's file by the writer of large ones; `each`: records of a row group."""
    sink = pa.BufferOutputStream()
    writer = SegmentWriter(sink, codec)
    positions = np.arange(len(rows)) if positions is None else positions
    for at in range(0, len(rows), each or len(rows)):
        writer.write(records_of(rows[at : at + (each or len(rows))]), positions[at : at + (each or len(rows))])
    writer.close()
    return writer.data


def is_plain(rows):
    """Whether all headers have keys: a broker writes no others."""
    return all(one is not None and one[0] is not None for row in rows for one in row[2] or ())


def sent_records(batches):
    return [record for batch in batches for record in fetched(batch.data)]


segments = st.lists(
    st.tuples(st.lists(record, min_size=1, max_size=30), st.sampled_from(CODECS), st.sampled_from([0, 1, 7])),
    min_size=1,
    max_size=3,
)


@given(segments, st.data())
@example([([(None, None, None, 0, 0)] * 30, CODECS[0], 0), (MANY[:30], CODECS[6], 7)], None)
def test_batches_are_those_of_arrows_reader(given_segments, data):
    """Segments of the small writer (0) and of the large one, with row groups of 1 and 7 records."""
    log = Log()
    for rows, codec, each in given_segments:
        file = written(rows, codec, each=each) if each else write_small_segment(records_of(rows), codec).data
        log.add(file, len(rows))
    start = 100 if data is None else data.draw(st.integers(100, log.end))
    plan = log.plan(start)
    try:
        assert log.read(plan) == log.by_arrow(plan)
    except NotPlainError:
        assert not all(is_plain(rows) for rows, _, _ in given_segments)


@given(st.lists(record, min_size=1, max_size=40).filter(is_plain), st.sets(st.integers(0, 2000)), st.booleans())
def test_offsets_are_those_that_compaction_has_left(rows, gaps, grouped):
    positions = np.array(sorted(set(range(len(rows) + 2000)) - gaps)[: len(rows)], np.int64)
    log = Log()
    log.add(written(rows, positions=positions, each=5 if grouped else None), len(rows), int(positions[-1]) + 2)
    plan = log.plan(100 + int(positions[len(rows) // 2]))
    assert log.read(plan) == log.by_arrow(plan)


@pytest.mark.parametrize("codec", [Codec(name, None) for name in ("none", "snappy", "gzip", "lz4", "zstd")], ids=str)
def test_many_pages_row_groups_and_dictionaries(codec):
    log = Log()
    log.add(written(MANY * 2, codec, each=7_000), 2 * len(MANY))
    log.add(write_small_segment(records_of(MANY), codec).data, len(MANY))
    assert log.read() == log.by_arrow()
    assert log.read(log.plan(8_000)) == log.by_arrow(log.plan(8_000))
    assert log.read(codec=LZ4) == log.by_arrow(codec=LZ4)


def test_a_large_file_is_read_by_row_groups(monkeypatch):
    monkeypatch.setattr("tidelog.broker.fetch.segment_rows.WHOLE_BYTES", 1)
    log = Log()
    log.add(written(MANY, each=1_000), len(MANY))
    assert log.read(log.plan(5_500)) == log.by_arrow(log.plan(5_500))


@pytest.mark.parametrize("headers", [False, True])
def test_bytes_are_bounded_and_the_rest_is_kept(headers):
    rows = [(*row[:2], [("h", b"%d" % n)] * (n % 3) if headers else None, *row[3:]) for n, row in enumerate(MANY)]
    log = Log()
    for at in range(0, 9_000, 30):
        log.add(write_small_segment(records_of(rows[at : at + 30]), PLAIN).data, 30)
    pages, found = log.rows(), []
    while not pages.is_through or pages.rows.next_offset >= 0:
        pages.fill(20_000, 16)
        batches = pages.rows.batches(3, NONE, 4_096, 20_000, NO_STOP)
        assert 0 < sum(len(batch.data) for batch in batches) <= 20_000
        assert batches[0].first == (found[-1].last + 1 if found else 100)
        found += batches
    assert found[-1].last == 9_099
    expected = sent_records(log.by_arrow())
    assert sent_records(found) == expected
    assert len(expected) == 9_000


def test_nothing_is_written_from_the_stop_on():
    log = Log()
    log.add(written(MANY), len(MANY))
    pages = log.rows()
    pages.fill(2**40, 9)
    assert pages.rows.batches(3, NONE, 4_096, 2**40, 777)[-1].last == 776
    assert pages.rows.next_offset == 777
    assert pages.rows.batches(3, NONE, 4_096, 2**40, 777) == []


def test_a_record_that_is_larger_than_all_bounds_is_alone():
    log = Log()
    log.add(written([(None, b"x" * 50_000, None, 0, 0), *MANY[:3]]), 4)
    pages = log.rows()
    pages.fill(1, 9)
    (batch,) = pages.rows.batches(3, NONE, 4_096, 1, NO_STOP)
    assert (batch.first, batch.last) == (100, 100)


def test_bytes_that_were_turned_are_left_to_arrow():
    log, file = Log(), bytes(written(MANY[:50], Codec("zstd", None), each=20))
    log.add(file, 50)
    expected = log.read()
    for at in range(len(file)):
        log.storage.put("t/0.parquet", file[:at] + bytes([file[at] ^ 1 << at % 8]) + file[at + 1 :])
        try:
            assert log.read() == expected
        except NotPlainError:
            continue


@pytest.mark.parametrize("file", [b"", b"PAR1", b"PAR1" * 9, bytes(40), b"\xff" * 40])
def test_what_is_no_file_of_ours_is_left_to_arrow(file):
    log = Log()
    log.add(file, 1)
    with pytest.raises(NotPlainError):
        log.read()


def test_a_segment_that_is_gone_or_has_other_records_than_its_entry_says_is_left_to_arrow():
    log = Log()
    log.add(written(MANY[:5]), 6)
    with pytest.raises(NotPlainError):
        log.read()
    log.storage.delete("t/0.parquet")
    with pytest.raises(NotPlainError):
        log.read()


def test_pages_of_any_bytes_are_refused_or_read(monkeypatch):
    """Mutated pages, whose checksums are not looked at: nothing but a refusal or rows comes of them."""
    draw, taken = random.Random(7), 0
    columns = []
    pages_of = SegmentRows._pages_of
    monkeypatch.setattr(
        SegmentRows, "_pages_of", lambda self, *args: columns.append(pages_of(self, *args)) or columns[-1]
    )
    headers = [(b"k", b"v" * (n % 9), [("h", None)] * (n % 3), n, n % 2) for n in range(200)]
    files = [written(rows, positions=np.arange(0, 400, 2)) for rows in (MANY[:200], headers)]
    files += [bytes(write_small_segment(records_of(MANY[:200]), PLAIN).data)]
    for file in files:
        del columns[:]
        log = Log()
        log.add(file, 200, 400)
        log.read()
        for _ in range(3_000):
            mutated = [list(pages) for pages in columns]
            for _ in range(draw.randint(1, 3)):
                pages = draw.choice(mutated)
                at = draw.randrange(len(pages))
                content, count, encoding, is_dictionary = pages[at]
                data = bytearray(content)
                how = draw.random()
                if how < 0.6 and data:
                    data[draw.randrange(min(len(data), 40) if how < 0.3 else len(data))] = draw.randrange(256)
                elif how < 0.8:
                    data = data[: draw.randrange(len(data) + 1)]
                elif how < 0.9:
                    count = draw.choice([0, count - 1, count + 1, 2**31, 2**62])
                else:
                    encoding = draw.choice([0, 2, 5, 8])
                pages[at] = memoryview(bytes(data)), count, encoding, is_dictionary
            rows = native_records().rows()
            if rows.add(200, mutated, 100, -1, 100, 500):
                taken += 1
                rows.batches(3, NONE, 4_096, 2**40, NO_STOP)
    assert taken > 100


def test_pages_that_unpack_to_more_than_the_footer_says_are_left_to_arrow(monkeypatch):
    """Each page alone may be as large as a row group: together they are bounded, too."""
    pages_of = SegmentRows._pages_of
    log = Log()
    log.add(written(MANY[:50]), 50)
    monkeypatch.setattr(SegmentRows, "_pages_of", lambda self, *args: pages_of(self, *args[:-1], 1))
    with pytest.raises(NotPlainError):
        log.read()


@given(st.binary(max_size=60))
def test_thrift_of_any_bytes_is_refused_or_read(data):
    rows = native_records().rows()
    try:
        _, end = rows.thrift(memoryview(data), 0, len(data))
    except ValueError:
        return
    assert 0 < end <= len(data)


def test_a_checksum_is_asked_of_each_page(monkeypatch):
    log = Log()
    log.add(written(MANY[:50]), 50)
    monkeypatch.setattr("tidelog.broker.fetch.segment_rows.zlib.crc32", lambda data: zlib.adler32(data) + 1)
    with pytest.raises(NotPlainError):
        log.read()
