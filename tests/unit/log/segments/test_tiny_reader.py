"""Tiny segments, which are read without Arrow's Parquet reader: what is read of one is what that would read."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidelog.log.base.parquet_checksums import SEAL_BYTES, open_parquet, seal_of
from tidelog.log.config.topics_and_lakes import Codec, UnaskedCodec
from tidelog.log.delta import schema
from tidelog.log.segments.few_records import FewRecords
from tidelog.log.segments.tiny_parquet import write_tiny
from tidelog.log.segments.tiny_reader import MOST_RECORDS, read_tiny
from tidelog.log.segments.writer import SegmentWriter

COLUMNS = schema.SEGMENT.names[1:]
RECORDS = pa.schema([schema.SEGMENT.field(name) for name in COLUMNS])
NO_HEADERS = [name for name in COLUMNS if name != "headers"]
CODECS = (
    Codec("none", None), Codec("zstd", 19), Codec("gzip", None), Codec("snappy", None), Codec("lz4", None),
    UnaskedCodec("zstd", None),
)  # fmt: skip

data = st.none() | st.binary(max_size=40) | st.binary(min_size=1, max_size=4).map(lambda b: b * 300)
headers = st.none() | st.none() | st.lists(st.tuples(st.text(max_size=5), data), max_size=2)
micros = st.integers(-(2**63), 2**63 - 1) | st.integers(1_700_000_000_000_000, 1_700_000_000_001_000)
row = st.tuples(data, data, st.none(), micros, st.just(0)) | st.tuples(data, data, headers, micros, st.just(0))
rows_of_one_type = st.lists(row, min_size=1, max_size=MOST_RECORDS)


def table(rows: list[Any]) -> pa.Table:
    columns = [pa.array(column, RECORDS.field(i).type) for i, column in enumerate(zip(*rows, strict=True)) if i != 3]
    columns.insert(3, pa.array([row[3] for row in rows], pa.int64()).cast(schema.TIMESTAMP))
    return pa.Table.from_arrays(columns, schema=RECORDS)


def by_arrow(file: bytes, columns: list[str]) -> pa.Table:
    with open_parquet(pa.BufferReader(file), size=len(file), sealed=True) as opened:
        read = opened.read(columns=columns, use_threads=False).select(columns)
    return read.cast(pa.schema([RECORDS.field(name) for name in columns]))


def read(file: bytes, count: int, columns: list[str]) -> pa.Table | None:
    found = read_tiny(file, count, columns)
    if found is None:
        return None
    arrays = FewRecords(range(count), found).arrays()[1:]
    return pa.Table.from_arrays(arrays, schema=pa.schema(map(RECORDS.field, columns)))


@given(rows_of_one_type, st.sampled_from(CODECS), st.sampled_from([0, 1]))
@example([(b"k", b"v", None, 7, 0)] * MOST_RECORDS, CODECS[0], 1)
@example([(None, None, None, -(2**63), 0), (b"", b"v", None, 2**63 - 1, 0)] * 25, CODECS[1], 0)
def test_records_are_what_arrows_reader_reads(rows: list[Any], codec: Codec, kind: int) -> None:
    """It reads every file that `write_tiny` wrote, but for headers."""
    file = write_tiny(table([(*row[:4], kind) for row in rows]), codec).data
    assert read(file, len(rows), NO_HEADERS) == by_arrow(file, NO_HEADERS)
    without = all(row[2] is None for row in rows)
    assert read(file, len(rows), COLUMNS) == (by_arrow(file, COLUMNS) if without else None)


ROWS = {
    "a record": [(b"key", b"value", None, 1_700_000_000_000_000, 0)],
    "nulls among others": [(None, b"v%d" % i if i % 3 else None, None, i * i, 1) for i in range(9)],
    "headers": [(b"k", b"v" * 9, [("h", b"w")], i, 0) for i in range(3)],
}


@pytest.mark.parametrize("codec", [Codec("none", None), Codec("zstd", None)], ids=lambda codec: codec.name)
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_every_turned_bit_that_arrows_reader_refuses_is_left_to_it(rows: list[Any], codec: Codec) -> None:
    sound = write_tiny(table(rows), codec).data
    columns = NO_HEADERS if rows[0][2] else COLUMNS
    expected, taken = read(sound, len(rows), columns), 0
    assert expected is not None
    for bit in range(8 * len(sound)):
        turned = bytearray(sound)
        turned[bit // 8] ^= 1 << bit % 8
        found = read(bytes(turned), len(rows), columns)
        if found is not None:
            taken += 1
            assert found == expected == by_arrow(bytes(turned), columns)
    assert taken < 0.3 * 8 * len(sound)


@pytest.mark.parametrize("cut", [0, 1, 3, 8, 11, 12, 40, 300])
def test_a_file_that_ends_early_is_left_to_arrows_reader(cut: int) -> None:
    assert read(write_tiny(table(ROWS["a record"]), Codec("none", None)).data[:cut], 1, COLUMNS) is None


def test_another_count_of_records_is_left_to_arrows_reader() -> None:
    assert read(write_tiny(table(ROWS["a record"]), Codec("none", None)).data, 2, COLUMNS) is None


def test_timestamps_of_two_types_are_left_to_arrows_reader() -> None:
    rows = [(b"k", b"v", None, 7, kind) for kind in (0, 1)]
    assert read(write_tiny(table(rows), Codec("none", None)).data, 2, COLUMNS) is None


def test_a_file_of_arrows_writer_is_left_to_arrows_reader() -> None:
    writer = SegmentWriter(pa.BufferOutputStream(), Codec("none", None))
    writer.write(table(ROWS["a record"]))
    writer.close()
    assert read(bytes(writer.data), 1, COLUMNS) is None


def test_a_sealed_footer_with_another_word_in_it_is_left_to_arrows_reader() -> None:
    """A file of another version, or of columns by another name, is none that is known here."""
    sound = write_tiny(table(ROWS["a record"]), Codec("none", None)).data
    for word, other in ((b"tidelog version", b"another version"), (b"timestamp_type", b"timestamp_kind")):
        at = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
        end = sound[at:].replace(word, other)
        assert end != sound[at:]
        file = sound[: at - SEAL_BYTES] + seal_of(end) + end
        assert by_arrow(file, ["value"]).num_rows == 1
        assert read(file, 1, ["value"]) is None
