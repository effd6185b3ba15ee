"""Segments: what a file holds, and reading a range of it without reading the rest."""

import io
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.faults import FaultyStorage
from support.logs import START_MS, quiet
from support.parquet import sealed_file

from tidelog.log.base.errors import CorruptSegmentError, ObjectNotFoundError, StoragePermissionError
from tidelog.log.config.topics_and_lakes import Codec, TopicConfig, UnaskedCodec
from tidelog.log.delta import schema
from tidelog.log.records.checks import to_records
from tidelog.log.segments import reader
from tidelog.log.segments import writer as segments_writer
from tidelog.log.segments.reader import read_segment
from tidelog.log.segments.writer import SegmentWriter, row_group_records, stats_json, write_small_segment
from tidelog.log.state.topic_state import Segment
from tidelog.log.storage import MemoryStorage, Storage

ZSTD = Codec("zstd", None)
DEFAULT = TopicConfig.parse({"max.message.bytes": str(2**31 - 1)})
COLUMNS = ["key", "value"]


def records(*values: bytes, **more: Any) -> pa.Table:
    return to_records(pa.table({"value": pa.array(values, pa.binary()), **more}), "t", DEFAULT, START_MS)


def segment(count: int, base: int = 100, path: str = "s.parquet", **more: Any) -> Segment:
    stats = stats_json(count, count - 1, START_MS, START_MS)
    return Segment(
        **{
            "path": path,
            "partition": 0,
            "base_offset": base,
            "end": base + count,
            "size": 0,
            "modification_ms": 0,
            "raw_stats": stats,
            **more,
        }
    )


def sized(storage: Storage, of: Segment) -> Segment:
    """The segment, with its file's size where it was given none."""
    with suppress(ObjectNotFoundError):
        return of if of.size else replace(of, size=storage.head(f"t/{unquote(of.path)}").size)
    return of


def stored(table: pa.Table, *, group: int = 1 << 30) -> Storage:
    """A store with the segment `t/s.parquet`, in row groups of `group` records."""
    storage = MemoryStorage("m")
    with storage.create("t/s.parquet") as file:
        writer = SegmentWriter(file, ZSTD)
        for start in range(0, table.num_rows, group):
            writer.write(table.slice(start, group))
        writer.close()
    return storage


def read(storage: Storage, of: Segment, start: int, end: int, **more: Any) -> list[tuple[int, bytes]]:
    batches = list(read_segment(storage, "t", sized(storage, of), start, end, COLUMNS, **more))
    assert all(b.schema.names == ["position", *COLUMNS] for b in batches)
    return [
        (of.base_offset + p, v)
        for b in batches
        for p, v in zip(b.column("position").to_pylist(), b.column("value").to_pylist(), strict=True)
    ]


# --- writing -----------------------------------------------------------------------------------------------


def test_a_file_is_as_the_format_says() -> None:
    headers = pa.array([[("a", b"1")], None], schema.HEADERS)
    written = write_small_segment(records(b"x", b"y", headers=headers, timestamp=[5, 3]), ZSTD)
    file = pq.ParquetFile(io.BytesIO(written.data))
    assert file.schema_arrow.names == ["position", "key", "value", "headers", "timestamp", "timestamp_type"]
    assert (written.records, written.min_timestamp_ms, written.max_timestamp_ms) == (2, 3, 5)
    group = file.metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    for name in ("position", "timestamp"):
        assert "DELTA_BINARY_PACKED" in columns[name].encodings
        assert columns[name].statistics.has_min_max
    assert "RLE_DICTIONARY" not in columns["value"].encodings
    assert columns["value"].statistics is None
    assert columns["value"].compression == "ZSTD"
    assert file.metadata.metadata is None or b"ARROW:schema" not in file.metadata.metadata
    assert file.read().column("position").to_pylist() == [0, 1]


@pytest.mark.parametrize(
    ("size", "codec", "told"),
    [(16_000, UnaskedCodec, "UNCOMPRESSED"), (16_000, Codec, "ZSTD"), (17_000, UnaskedCodec, "ZSTD")],
)
def test_few_bytes_are_compressed_where_that_is_asked_for(size: int, codec: type[Codec], told: str) -> None:
    data = write_small_segment(records(b"x" * size), codec("zstd", None)).data
    assert pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(2).compression == told


def test_positions_go_on_from_row_group_to_row_group() -> None:
    storage = stored(records(*(b"%d" % i for i in range(10))), group=3)
    assert read(storage, segment(10), 100, 110) == [(100 + i, b"%d" % i) for i in range(10)]


def test_no_records_are_no_row_group() -> None:
    writer = SegmentWriter(io.BytesIO(), ZSTD)
    writer.write(records())
    assert writer.records == 0
    writer.close()


def test_row_groups_are_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments_writer, "ROW_GROUP_BYTES", 10_000)
    writer = SegmentWriter(pa.BufferOutputStream(), Codec("none", None))
    writer.write(records(*[bytes(1000)] * 190))
    writer.close()
    metadata = pq.ParquetFile(io.BytesIO(writer.data)).metadata
    assert 20 <= metadata.num_row_groups <= 24
    assert row_group_records(records(bytes(50_000))) == 1
    assert row_group_records(records()) == 1


def test_a_writer_that_is_given_up_writes_no_footer() -> None:
    sink = io.BytesIO()
    writer = SegmentWriter(sink, ZSTD)
    writer.write(records(b"x"))
    size = len(sink.getvalue())
    writer.abandon()
    assert len(sink.getvalue()) == size
    writer.abandon()


STATS_TIMES = {
    "as Spark writes them": (0, 1_700_000_000_123, "1970-01-01T00:00:00.000Z", "2023-11-14T22:13:20.123Z"),
    "the last of the calendar": (0, 253_402_300_799_999, "1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"),
    "beyond it": (0, 253_402_300_800_000, None, None),
}


@pytest.mark.parametrize(("low", "high", "low_text", "high_text"), STATS_TIMES.values(), ids=STATS_TIMES)
def test_statistics(low: int, high: int, low_text: str | None, high_text: str | None) -> None:
    found = orjson.loads(stats_json(7, 9, low, high))
    assert (found["numRecords"], found["minValues"]["position"], found["maxValues"]["position"]) == (7, 0, 9)
    assert (found["minValues"].get("timestamp"), found["maxValues"].get("timestamp")) == (low_text, high_text)


# --- reading a range ---------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 40), unique=True, max_size=15).map(sorted),
    st.integers(1, 6),
    st.integers(1, 7),
    st.integers(-2, 45),
    st.integers(-2, 45),
)
def test_any_range_of_any_segment(positions: list[int], group: int, batch: int, low: int, high: int) -> None:
    """Compacted ones have gaps. The oracle is a list; batches are bounded, whatever the row groups."""
    storage = compacted(positions, group)
    of = segment(0, end=141, raw_stats=stats_json(len(positions), 40, 0, 0))
    wanted = [(100 + p, b"%d" % p) for p in positions if low <= p < high]
    assert read(storage, of, 100 + low, 100 + high, batch_records=batch) == wanted
    sizes = [b.num_rows for b in read_segment(storage, "t", sized(storage, of), 100 + low, 100 + high, COLUMNS, batch)]
    assert all(0 < n <= batch for n in sizes)


def compacted(positions: list[int], group: int) -> Storage:
    table = records(*(b"%d" % p for p in positions))
    columns = [pa.array(positions, pa.int64()), *(table.column(n) for n in schema.SEGMENT.names[1:])]
    storage = MemoryStorage("m")
    file = sealed_file(pa.Table.from_arrays(columns, schema=schema.SEGMENT), group, store_schema=False)
    storage.put("t/s.parquet", file)
    return storage


class Spy(io.RawIOBase):
    """A file that notes which bytes were read."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)
        self.ranges: list[tuple[int, int]] = []

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._data.seek(offset, whence)

    def tell(self) -> int:
        return self._data.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        start = self._data.tell()
        data = self._data.read(size)
        self.ranges.append((start, start + len(data)))
        return data


def test_only_the_row_groups_of_the_range_are_read() -> None:
    storage = stored(records(*(np.random.default_rng(i).bytes(20_000) for i in range(100))), group=10)
    data = storage.get("t/s.parquet")
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    assert metadata.num_row_groups == 10
    spies: list[Spy] = []

    class Spying(MemoryStorage):
        def open(self, path: str, size: int | None = None) -> Any:
            spies.append(Spy(data))
            return spies[-1]

    def group_range(i: int) -> tuple[int, int]:
        columns = [metadata.row_group(i).column(c) for c in range(metadata.num_columns)]
        starts = [c.dictionary_page_offset or c.data_page_offset for c in columns]
        return min(starts), max(s + c.total_compressed_size for s, c in zip(starts, columns, strict=True))

    assert len(read(Spying("spy"), segment(100, size=len(data)), 135, 145)) == 10
    touched = {
        i for i in range(10) for low, high in spies[0].ranges if low < group_range(i)[1] and high > group_range(i)[0]
    }
    assert touched - {9} == {3, 4}  # the footer is read with what is before it


def test_batches_hold_few_large_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BATCH_BYTES", 100_000)
    storage = stored(records(*(np.random.default_rng(i).bytes(10_000) for i in range(100))))
    sizes = [b.num_rows for b in read_segment(storage, "t", sized(storage, segment(100)), 100, 200, ["value"])]
    assert sum(sizes) == 100
    assert max(sizes) <= 10


def test_memory_is_bounded_by_batches_not_by_the_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BATCH_BYTES", 1_000_000)
    monkeypatch.setattr(segments_writer, "ROW_GROUP_BYTES", 2_000_000)
    storage = stored(records(*[bytes(100_000)] * 400))  # 40 MB, which compress to nothing
    pool = pa.default_memory_pool()
    before, most = pool.bytes_allocated(), 0
    for batch in read_segment(storage, "t", sized(storage, segment(400)), 100, 500, ["value"]):
        del batch
        most = max(most, pool.bytes_allocated() - before)
    assert most < 12_000_000


# --- damage, and files of others ---------------------------------------------------------------------------


def flipped(data: bytes) -> bytes:
    return data[:4] + b"\xff" * 200 + data[204:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "without its end": lambda data: data[:-1],
    "no Parquet": lambda data: b"x" * len(data),
    "pages overwritten": flipped,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_segment_is_named(damage: Callable[[bytes], bytes]) -> None:
    storage = stored(records(*[b"some record"] * 50))
    storage.put("t/s.parquet", damage(storage.get("t/s.parquet")))
    with pytest.raises(
        CorruptSegmentError, match=r"(?s)Segment t/s\.parquet \(partition 0, offsets 100 to 150\) can't be"
    ):
        read(storage, segment(50), 100, 150)


def test_a_missing_segment_is_named_with_what_to_do() -> None:
    with pytest.raises(
        CorruptSegmentError,
        match=r"is missing\. .*restore the file.*and no others, by .tidelog check --repair --give-up",
    ):
        read(MemoryStorage("m"), segment(50), 100, 150)


def test_another_file_in_its_place_is_told_by_its_count() -> None:
    with pytest.raises(CorruptSegmentError, match="it has 3 records, its log entry says 50"):
        read(stored(records(b"a", b"b", b"c")), segment(50), 100, 150)


def test_a_column_that_is_not_there() -> None:
    storage = MemoryStorage("m")
    storage.put("t/s.parquet", sealed_file(pa.table({"position": pa.array([0], pa.int64()), "value": [b"v"]})))
    with pytest.raises(CorruptSegmentError, match="it has no column 'key'"):
        read(storage, segment(1), 100, 101)


@pytest.mark.parametrize(("size", "how"), [(1, "get"), (1_000_000, "open")])
@pytest.mark.parametrize("error", [StoragePermissionError("denied"), ObjectNotFoundError("gone")])
def test_an_error_of_the_store_is_not_taken_for_damage(error: Exception, size: int, how: str) -> None:
    """A small segment is got whole, a larger one opened."""

    def hook(method: str, path: str, phase: str) -> None:
        if method == how:
            raise error

    storage = FaultyStorage(stored(records(b"a")), quiet)
    storage.hook = hook
    wanted = CorruptSegmentError if isinstance(error, ObjectNotFoundError) else type(error)
    with pytest.raises(wanted):
        read(storage, segment(1, size=size), 100, 101)


def test_positions_become_offsets_by_a_base() -> None:
    storage = stored(records(*(b"%d" % i for i in range(6))), group=3)
    batches = list(read_segment(storage, "t", sized(storage, segment(6)), 101, 105, ["value"], offsets=True))
    assert [p for b in batches for p in b.column("position").to_pylist()] == [101, 102, 103, 104]
    assert [v for b in batches for v in b.column("value").to_pylist()] == [b"1", b"2", b"3", b"4"]


def test_positions_alone() -> None:
    storage = stored(records(b"a", b"b"))
    batches = read_segment(storage, "t", sized(storage, segment(2)), 101, 102, [])
    assert [b.to_pydict() for b in batches] == [{"position": [1]}]


def test_a_path_of_the_log_is_url_encoded() -> None:
    storage = stored(records(b"a"))
    storage.put("t/partition=0/ä b.parquet", storage.get("t/s.parquet"))
    encoded = segment(1, path="partition=0/%C3%A4%20b.parquet")
    assert read(storage, encoded, 100, 101) == [(100, b"a")]


VARIANTS = {
    "INT96": {"use_deprecated_int96_timestamps": True},
    "nanoseconds": {"coerce_timestamps": None, "version": "2.6"},
    "views": {"store_schema": True},
}


@pytest.mark.parametrize("how", VARIANTS)
def test_a_file_of_another_writer_reads_with_a_segments_types(how: str) -> None:
    headers = pa.array([[("h", b"1")], None, []], schema.HEADERS)
    own = records(b"a", b"b", b"c", headers=headers, key=[b"k", None, b""])
    columns = [pa.array([0, 1, 2]), *(own.column(name) for name in schema.SEGMENT.names[1:])]
    table = pa.Table.from_arrays(columns, schema=schema.SEGMENT)
    if how == "nanoseconds":
        table = table.set_column(4, "timestamp", table.column("timestamp").cast(pa.timestamp("ns")))
    if how == "views":
        table = table.set_column(2, "value", table.column("value").cast(pa.binary_view()))
    storage = MemoryStorage("m")
    storage.put("t/s.parquet", sealed_file(table, **VARIANTS[how]))
    of = segment(3)
    (batch,) = read_segment(storage, "t", sized(storage, of), 100, 103, schema.SEGMENT.names)
    assert batch.schema.types == schema.SEGMENT.types
    assert batch.column("headers").to_pylist() == headers.to_pylist()
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [START_MS * 1000] * 3
    assert read(storage, of, 101, 102) == [(101, b"b")]
