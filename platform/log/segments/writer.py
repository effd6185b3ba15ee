"""Segments: Parquet files of one partition's records, written in offset order.

A writer does not know its offsets: the file holds `position` 0, 1, 2 ..., the log entry gives the base.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidelog.log.base.parquet_checksums import SealingSink, finish_in_memory
from tidelog.log.config.topics_and_lakes import Codec, UnaskedCodec
from tidelog.log.delta import schema
from tidelog.log.delta.timestamps import format_utc_ms
from tidelog.log.segments import tiny_parquet

# Rows and bytes of a row group: what a reader of a range decodes at least, and a writer holds in memory.
ROW_GROUP_RECORDS = 131_072
ROW_GROUP_BYTES = 16 * 1024 * 1024
# A dictionary of keys is worth making where they repeat: where at most half of the first ones are different.
_SAMPLED_KEYS = 1_024
_FEWEST_SAMPLED_KEYS = tiny_parquet.MOST_RECORDS + 1
# Columns of which the encoding leaves nothing to compress: a codec that is started for them costs a small segment
# time. Not so timestamps, which come in bursts and in whole milliseconds.
_UNCOMPRESSED = ("position", "timestamp_type")
_COMPRESSED = ("key", "value", "headers.list.element.key", "headers.list.element.value", "timestamp")
# What a small segment loses to a codec is time, and what it would gain is a few blocks of a disk until it is merged.
_WORTH_COMPRESSING_BYTES = 16 * 1024
_PLAIN = Codec("none", None)
# Bytes of a page before it is compressed. Pages of Parquet's usual 1 MiB leave the second-level cache on their way
# through the codec: a quarter of it makes writing an eighth cheaper, and files 1 % larger.
_PAGE_BYTES = 256 * 1024
# Timestamps outside years 1 to 9999 get no statistics: no engine's text form holds them.
_STATS_LOW_MS = -62_135_596_800_000
_STATS_HIGH_MS = 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class Staged:
    """A segment that is written and not committed: what its log entry will say, but for the offsets.

    `known_version` is the topic's version that its writer knew, `topic_id` the topic's life it is meant for.
    Timestamps in ms since the epoch.
    """

    partition: int
    path: str
    records: int
    size: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    known_version: int
    topic_id: str


def stats_json(
    records: int, last_position: int, min_timestamp_ms: int, max_timestamp_ms: int, first_position: int = 0
) -> str:
    """Delta's statistics of a segment ("Per-file Statistics" of the Delta protocol); of an empty one only that."""
    if not records:
        return orjson.dumps({"numRecords": 0}).decode()
    low: dict[str, Any] = {"position": first_position}
    high: dict[str, Any] = {"position": last_position}
    if min_timestamp_ms >= _STATS_LOW_MS and max_timestamp_ms <= _STATS_HIGH_MS:
        low["timestamp"] = format_utc_ms(min_timestamp_ms)
        high["timestamp"] = format_utc_ms(max_timestamp_ms)
    return orjson.dumps({"numRecords": records, "minValues": low, "maxValues": high}).decode()


class SegmentWriter:
    """Writes one segment to `file`, which stays open. Columns as `tidelog.log.delta.schema.SEGMENT` without `position`.

    What was written so far: `records`, `size` in bytes, and the smallest and largest timestamp in ms. Once a segment is
    closed whose `file` is a `pa.BufferOutputStream`, it is in `data`.
    """

    def __init__(self, file: Any, codec: Codec) -> None:
        self.records = 0
        self.size = 0
        self.data = memoryview(b"")
        self.min_timestamp_ms = 2**63 - 1
        self.max_timestamp_ms = -(2**63)
        self._codec = codec
        self._sink = file if isinstance(file, pa.BufferOutputStream) else SealingSink(file)
        self._writer: pq.ParquetWriter | None = None

    def _begun(self, records: pa.Table) -> pq.ParquetWriter:
        """The Parquet writer; how it writes is chosen by the first records."""
        if self._writer is None:
            options = _options(self._codec, _keys_repeat(records))
            self._writer = pq.ParquetWriter(self._sink, schema.SEGMENT, **options)
        return self._writer

    def write(self, records: pa.Table, positions: npt.NDArray[np.int64] | None = None) -> None:
        """Write records, in their order, as one row group or several.

        `positions` rise, over all writes; None: the next ones.
        """
        if records.num_rows == 0:
            return
        if positions is None:
            positions = np.arange(self.records, self.records + records.num_rows, dtype=np.int64)
        columns = [pa.array(positions), *(records.column(name) for name in schema.SEGMENT.names[1:])]
        table = pa.Table.from_arrays(columns, schema=schema.SEGMENT)
        self._begun(records).write_table(table, row_group_records(records))
        low, high = timestamp_range_ms(records.column("timestamp"))
        self.min_timestamp_ms = min(self.min_timestamp_ms, low)
        self.max_timestamp_ms = max(self.max_timestamp_ms, high)
        self.records += records.num_rows
        self.size = self._sink.tell()

    def close(self) -> None:
        """Write the footer."""
        writer = self._writer or self._begun(schema.SEGMENT.empty_table())
        if isinstance(self._sink, SealingSink):
            self._sink.finish(writer)
            self.size = self._sink.size
        else:
            self.data = finish_in_memory(writer, self._sink)
            self.size = len(self.data)

    def abandon(self) -> None:
        """Write nothing more, whatever was begun."""
        if isinstance(self._sink, SealingSink):
            self._sink.abandon(self._writer)


@cache
def _options(codec: Codec, keys_repeat: bool) -> dict[str, Any]:
    """How Parquet is written."""
    return {
        "compression": {**dict.fromkeys(_COMPRESSED, codec.name), **dict.fromkeys(_UNCOMPRESSED, "none")},
        "compression_level": None if codec.level is None else dict.fromkeys(_COMPRESSED, codec.level),
        "use_dictionary": ["timestamp_type", *(["key"] if keys_repeat else [])],
        "column_encoding": {"position": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
        "write_statistics": ["position", "timestamp"],
        "store_schema": False,
        "data_page_size": _PAGE_BYTES,
        "write_page_checksum": True,
    }


def _keys_repeat(records: pa.Table) -> bool:
    sample = records.column("key").slice(0, _SAMPLED_KEYS)
    if len(sample) < _FEWEST_SAMPLED_KEYS:
        return False
    return bool(2 * pc.count_distinct(sample, mode="all").as_py() <= len(sample))


def row_group_records(records: pa.Table) -> int:
    """How many of these records make a row group: as many as its bytes allow, on average."""
    if records.num_rows <= 1:
        return 1
    fitting: int = ROW_GROUP_BYTES * records.num_rows // max(records.nbytes, 1)
    return max(1, min(ROW_GROUP_RECORDS, fitting))


def timestamp_range_ms(timestamps: pa.ChunkedArray) -> tuple[int, int]:
    """The smallest and the largest timestamp, rounded down to ms since the epoch."""
    bounds = pc.min_max(timestamps)
    return bounds["min"].value // 1000, bounds["max"].value // 1000


class SmallSegment(NamedTuple):
    """A segment in memory: its bytes, how many records it has, and their smallest and largest timestamp in ms."""

    data: bytes | memoryview
    records: int
    min_timestamp_ms: int
    max_timestamp_ms: int


def write_small_segment(records: pa.Table, codec: Codec, size: int | None = None) -> SmallSegment:
    """A segment of at least one record, in memory. One of few bytes is compressed only where that was asked for.

    `size`: the records' bytes, about, where the caller knows them.
    """
    size = records.nbytes if size is None else size
    if isinstance(codec, UnaskedCodec) and size < _WORTH_COMPRESSING_BYTES:
        codec = _PLAIN
    if records.num_rows <= tiny_parquet.MOST_RECORDS and size <= tiny_parquet.MOST_BYTES:
        tiny = tiny_parquet.write_tiny(records, codec)
        return SmallSegment(tiny.data, records.num_rows, tiny.low_us // 1000, tiny.high_us // 1000)
    writer = SegmentWriter(pa.BufferOutputStream(), codec)
    writer.write(records)
    writer.close()
    return SmallSegment(writer.data, writer.records, writer.min_timestamp_ms, writer.max_timestamp_ms)
