"""The native writer of small segments: what it writes is what the writer in Python does, byte for byte."""

import io
import zlib
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.native import native_segments
from support.tiny_segments import CODECS, data, micros, records_of

from tidelog.log.config.topics_and_lakes import Codec, UnaskedCodec
from tidelog.log.segments import tiny_parquet
from tidelog.log.segments.tiny_parquet import NATIVE, written_in_python, written_natively
from tidelog.log.segments.writer import write_small_segment

NONE = Codec("none", None)
PLAIN = st.tuples(data, data, st.none(), micros, st.just(1))


@pytest.fixture(autouse=True)
def _native() -> None:
    native_segments()


@given(st.lists(PLAIN, min_size=1, max_size=300), st.sampled_from(CODECS), st.lists(st.integers(0, 300), max_size=3))
def test_all_bytes_are_those_of_the_writer_in_python(rows: list[Any], codec: Codec, cuts: list[int]) -> None:
    """Records in one chunk, or in several, of which some are empty."""
    records = records_of([rows[0], *rows]).slice(1)
    borders = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    records = pa.concat_tables([records.slice(at, end - at) for at, end in pairwise(borders)])
    assert written_natively(records, codec) == written_in_python(records, codec)


@pytest.mark.parametrize("seed", range(60))
def test_so_they_are_of_many_records(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.choice([63, 64, 65, 99, 100, 101, 257, 258, 513, 2_000, 6_000]))
    longest = int(random.choice([1, 2, 30, 300]))
    lengths = random.integers(0, longest, count) if seed % 3 else np.full(count, longest)
    steps = random.choice([0, 1, 1_000, 70_000, 2**40, -5, 2**62], count) if seed % 2 else np.zeros(count, np.int64)
    nulls = random.random((2, count)) < random.choice([0, 0, 0.2, 1], (2, 1))
    rows = [
        (None if no_key else random.bytes(3), None if no_value else random.bytes(length), None, time, 0)
        for no_key, no_value, length, time in zip(
            *nulls.tolist(), lengths.tolist(), steps.cumsum().tolist(), strict=True
        )
    ]
    records = records_of(rows)
    cut = int(random.integers(0, count))
    records = pa.concat_tables([records.slice(0, cut), records.slice(cut)])
    for codec in (NONE, Codec("lz4", None), UnaskedCodec("zstd", None)):
        written = written_natively(records, codec)
        assert written is not None
        assert written == written_in_python(records, codec)


def test_checksums_are_those_of_zlib() -> None:
    """By the processor's instruction and by tables, of all lengths around its steps, wherever the bytes begin."""
    data = np.random.default_rng(5).bytes(70_000)
    for size in (*range(200), 1_023, 4_096, 65_537):
        for begin in (0, 1, 7):
            part = memoryview(data)[begin : begin + size]
            assert {NATIVE.crc32(part), NATIVE.crc32(part, by_tables=True)} == {zlib.crc32(part)}


def test_headers_and_several_types_of_timestamp_are_left_to_python() -> None:
    assert written_natively(records_of([(b"k", b"v", [("a", b"b")], 0, 0)]), NONE) is None
    assert written_natively(records_of([(b"k", b"v", None, 0, 0), (b"k", b"v", None, 0, 1)]), NONE) is None


def test_segments_of_up_to_a_row_group_are_written_so() -> None:
    for count, writer in ((2**17, "tidelog version 2"), (2**17 + 1, "parquet-cpp-arrow")):
        written = write_small_segment(records_of([(None, b"", None, 5_999, 0)] * count), NONE)
        assert pq.ParquetFile(io.BytesIO(written.data)).metadata.created_by.startswith(writer)
        assert (written.records, written.min_timestamp_ms, written.max_timestamp_ms) == (count, 5, 5)
    with_headers = records_of([(None, b"", [("a", b"b")], 0, 0)] * 16_385)
    written = write_small_segment(with_headers, NONE)
    assert pq.ParquetFile(io.BytesIO(written.data)).metadata.created_by.startswith("parquet-cpp-arrow")


def test_memory_is_given_back() -> None:
    records = records_of([(None, bytes(1 << 18), None, 0, 0)] * 4)
    before = _resident()
    for _ in range(200):
        written_natively(records, NONE)
        with pytest.raises(ZeroDivisionError):
            _that_fails(records)
    assert _resident() - before < 100 << 20


def _that_fails(records: pa.Table) -> None:
    batch = records.combine_chunks().to_batches()[0]

    def compress(content: memoryview) -> bytes:
        raise ZeroDivisionError

    assert tiny_parquet.NATIVE is not None
    footer = tiny_parquet.footer
    tiny_parquet.NATIVE.segment(
        [batch._export_to_c], footer.COLUMNS, footer.HEAD, footer.TAIL, tiny_parquet.seal_of, 7, compress, 0
    )


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
