"""Tiny segments, which are written without Arrow's Parquet writer: whatever they hold, they are what it would write."""

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.tiny_segments import CODECS, RECORDS, record, records_of

from tidelog.log.base.parquet_checksums import open_parquet
from tidelog.log.config.topics_and_lakes import Codec, UnaskedCodec
from tidelog.log.segments import thrift, tiny_pages, tiny_parquet
from tidelog.log.segments.tiny_parquet import MOST_BYTES, MOST_RECORDS, write_tiny
from tidelog.log.segments.writer import SegmentWriter, write_small_segment


def by_arrow(records: pa.Table, codec: Codec) -> memoryview:
    writer = SegmentWriter(pa.BufferOutputStream(), codec)
    writer.write(records)
    writer.close()
    return writer.data


def opened(file: bytes | memoryview) -> pq.ParquetFile:
    """The file, once its seal is right; reading it compares the checksums of the pages."""
    return open_parquet(pa.BufferReader(file), size=len(file), sealed=True)


def described(file: pq.ParquetFile) -> list[Any]:
    """All that pyarrow reports of a file, but for sizes, places, and codecs: a page that is hardly there has none."""
    said: list[Any] = [file.schema, file.metadata.num_rows, file.metadata.num_row_groups, file.metadata.format_version]
    for i in range(file.metadata.num_columns):
        column = file.metadata.row_group(0).column(i)
        said += [column.path_in_schema, column.physical_type, column.num_values, set(column.encodings)]
        said += [column.statistics, column.has_dictionary_page]
    return said


@given(st.lists(record, min_size=1, max_size=MOST_RECORDS), st.sampled_from(CODECS), st.integers(0, 3))
@example([(b"k", b"v", None, 0, 0)] * MOST_RECORDS, CODECS[0], 0)
@example([(None, None, [("", None)] * 4, -(2**63), 1)], CODECS[1], 0)
@example([(None, b"", [], 2**63 - 1, 0), (b"", None, None, -(2**63), 1)] * 50, CODECS[2], 1)
def test_a_tiny_segment_is_what_arrows_writer_would_write(rows: list[Any], codec: Codec, skipped: int) -> None:
    """As a table, in what is said of it, in its statistics; slices and chunks are as good as whole columns."""
    records = records_of([*rows[:skipped], *rows]).slice(min(skipped, len(rows)))
    if skipped > 1:
        records = pa.concat_tables([records.slice(0, 1), records.slice(1)])
    tiny = write_tiny(records, codec)
    own, arrows = opened(tiny.data), opened(by_arrow(records, codec))
    assert described(own) == described(arrows)
    read = own.read(use_threads=False)
    assert read == arrows.read(use_threads=False)
    assert read.drop_columns("position").cast(RECORDS) == records
    assert read.column("position").to_pylist() == list(range(len(rows)))
    assert (tiny.low_us, tiny.high_us) == (min(row[3] for row in rows), max(row[3] for row in rows))


@given(st.lists(record, min_size=1, max_size=20), st.sampled_from(CODECS), st.data())
def test_a_turned_bit_is_refused_or_changes_nothing(rows: list[Any], codec: Codec, chosen: st.DataObject) -> None:
    records = records_of(rows)
    file = bytearray(write_tiny(records, codec).data)
    bit = chosen.draw(st.integers(0, 8 * len(file) - 1))
    file[bit // 8] ^= 1 << bit % 8
    try:
        read = opened(bytes(file)).read(use_threads=False)
    except (OSError, pa.ArrowException):
        return
    assert read.drop_columns("position").cast(RECORDS) == records


@pytest.mark.parametrize(
    ("count", "size", "writer"),
    [
        (1, 10, "tidelog version 2"),
        (MOST_RECORDS, 10, "tidelog version 2"),
        (MOST_RECORDS + 1, 10, "tidelog version 2"),
        (16_384, 10, "tidelog version 2"),
        (16_385, 10, "parquet-cpp-arrow"),
        (1_000, 1_000, "tidelog version 2"),
        (1_000, 1_100, "parquet-cpp-arrow"),
        (10, MOST_BYTES // 20, "tidelog version 2"),
        (10, MOST_BYTES // 10, "parquet-cpp-arrow"),
    ],
)
def test_segments_that_are_not_large_are_written_so(
    count: int, size: int, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiny_parquet, "NATIVE", None)
    written = write_small_segment(records_of([(None, bytes(size), None, 5_999, 0)] * count), Codec("none", None))
    assert pq.ParquetFile(io.BytesIO(written.data)).metadata.created_by.startswith(writer)
    assert (written.records, written.min_timestamp_ms, written.max_timestamp_ms) == (count, 5, 5)


@pytest.mark.parametrize(("codec", "told"), [(Codec, ["ZSTD"] * 5), (UnaskedCodec, ["UNCOMPRESSED", "ZSTD"] * 1)])
def test_a_page_of_few_bytes_is_compressed_for_who_asks(codec: type[Codec], told: list[str]) -> None:
    records = records_of([(b"k", b"v" * 100, None, 7, 0)] * 90)
    group = opened(write_tiny(records, codec("zstd", None)).data).metadata.row_group(0)
    found = [group.column(i).compression for i in range(1, 6)]
    assert found[: len(told)] == told


def rows_of(count: int, random: np.random.Generator, headers: Any) -> list[Any]:
    """Records of which lengths, nulls and timestamps differ."""
    lengths, nulls = random.integers(0, 300, count).tolist(), random.integers(0, 5, count).tolist()
    times = random.choice([0, 1_000, 70_000, 2**40], count).cumsum().tolist()
    return [
        (None if null == 1 else random.bytes(8), None if null == 2 else random.bytes(length), headers, micros, null % 2)
        for length, null, micros in zip(lengths, nulls, times, strict=True)
    ]


@pytest.mark.parametrize("count", [101, 257, 258, 3_000])
@pytest.mark.parametrize("headers", [None, [("a", b"b"), ("c", None)]], ids=["no headers", "headers"])
@pytest.mark.parametrize("codec", [Codec("none", None), Codec("zstd", None), Codec("lz4", None)])
def test_a_segment_of_more_records_is_what_arrows_writer_would_write(count: int, headers: Any, codec: Codec) -> None:
    records = records_of(rows_of(count, np.random.default_rng(count), headers))
    own, arrows = opened(write_tiny(records, codec).data), opened(by_arrow(records, codec))
    assert described(own) == described(arrows)
    assert own.read(use_threads=False) == arrows.read(use_threads=False)


@pytest.mark.parametrize("length", [0, 100, 5_000])
def test_values_of_one_length_and_in_several_pages(length: int) -> None:
    values = np.random.default_rng(length).bytes(length * 200)
    rows = [(None, values[at * length : (at + 1) * length], None, 5_000 + at, 0) for at in range(200)]
    records = records_of([(None, b"skipped", None, 0, 0), *rows]).slice(1)
    read = opened(write_tiny(records, Codec("none", None)).data).read(use_threads=False)
    assert read.drop_columns("position").cast(RECORDS) == records


@pytest.mark.parametrize("keys", [[None], [b"a"]], ids=["null", "alike"])
def test_keys_that_repeat_have_a_dictionary_and_nulls_have_none(keys: list[bytes | None]) -> None:
    written = write_small_segment(records_of([(keys[0], b"v", None, 0, 0)] * 200), Codec("none", None)).data
    column = opened(written).metadata.row_group(0).column(1)
    assert column.has_dictionary_page == (keys != [None])


# --- the small parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001"), (-64, "7f"), (-65, "8101"), (2**31 - 1, "feffffff0f"),
     (-(2**31), "ffffffff0f"), (-(2**63), "ffffffffffffffffff01")],
)  # fmt: skip
def test_integers_of_thrifts_compact_protocol(number: int, encoded: str) -> None:
    assert thrift.integer(number).hex() == encoded


def test_a_list_that_has_no_short_form_is_refused() -> None:
    with pytest.raises(ValueError, match="15 items"):
        thrift.list_of(thrift.I32, [b"\0"] * 15)


@pytest.mark.parametrize(
    ("numbers", "encoded"),
    [
        ([7], "80020401" + "0e"),
        ([7, 7, 7], "80020403" + "0e" + "00" + "00000000"),
        ([1, 2, 3], "80020403" + "02" + "02" + "00000000"),
        ([7, 5, 3, 1, 2, 3, 4, 5], "80020408" + "0e" + "03" + "08000000" + "00000003030303" + "00" * 57),
        ([0, 300, 0], "80020403" + "00" + "d704" + "10000000" + "58020000" + "00" * 124),
        ([-(2**63), 2**63 - 1], "80020402" + "ffffffffffffffffff01" + "01" + "00000000"),
    ],
    ids=["one", "the same", "rising", "as in Parquet's description", "two bytes each", "a difference past 64 bits"],
)
def test_differences_of_numbers(numbers: list[int], encoded: str) -> None:
    assert tiny_pages.delta_packed(np.array(numbers, np.int64)).hex() == encoded
