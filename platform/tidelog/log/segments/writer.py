"""Segments: Parquet files of one partition's records, written in offset order.

A writer does not know its offsets: the file holds `position` 0, 1, 2 ..., the log entry gives the base.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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
from tidelog.log.segments.noted import NotedPart
from tidelog.log.segments.write_options import keys_repeat, noted_keys_repeat, options_of
from tidelog.log.typed.placing import widened

# Rows and bytes of a row group: what a reader of a range decodes at least, and a writer holds in memory.
ROW_GROUP_RECORDS = 131_072
ROW_GROUP_BYTES = 16 * 1024 * 1024
# What a small segment loses to a codec is time, and what it would gain is a few blocks of a disk until it is merged.
_WORTH_COMPRESSING_BYTES = 16 * 1024
_PLAIN = Codec("none", None)
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
    """Writes one segment to `file`, which stays open. `columns`: a plain topic's, or its `Typing.segment`.

    `lasting`: whether it takes the place of others, as merged ones do, and is worth more time.

    Records have these columns without `position`, or those of an earlier schema of their table.
    What was written so far: `records`, `size` in bytes, and the smallest and largest timestamp in ms. Once a segment is
    closed whose `file` is a `pa.BufferOutputStream`, it is in `data`.
    """

    def __init__(self, file: Any, codec: Codec, columns: pa.Schema = schema.SEGMENT, *, lasting: bool = False) -> None:
        self.records = 0
        self.size = 0
        self.data = memoryview(b"")
        self.min_timestamp_ms = 2**63 - 1
        self.max_timestamp_ms = -(2**63)
        self._codec = codec
        self._columns = columns
        self._lasting = lasting
        self._sink = file if isinstance(file, pa.BufferOutputStream) else SealingSink(file)
        self._writer: pq.ParquetWriter | None = None

    def _begun(self, records: pa.Table) -> pq.ParquetWriter:
        """The Parquet writer; how it writes is chosen by the first records."""
        if self._writer is None:
            options = options_of(self._columns, self._codec, records, lasting=self._lasting)
            self._writer = pq.ParquetWriter(self._sink, self._columns, **options)
        return self._writer

    def write(self, records: pa.Table, positions: npt.NDArray[np.int64] | None = None) -> None:
        """Write records, in their order, as one row group or several.

        `positions` rise, over all writes; None: the next ones.
        """
        if records.num_rows == 0:
            return
        if positions is None:
            positions = np.arange(self.records, self.records + records.num_rows, dtype=np.int64)
        wanted = self._columns
        if wanted is not schema.SEGMENT:
            names = [name for name in records.schema.names if name != "position"]
            records = widened(records.select(names), wanted.remove(0))
        columns = [pa.array(positions), *(records.column(name) for name in wanted.names[1:])]
        table = pa.Table.from_arrays(columns, schema=wanted)
        self._begun(records).write_table(table, row_group_records(records))
        low, high = timestamp_range_ms(records.column("timestamp"))
        self.min_timestamp_ms = min(self.min_timestamp_ms, low)
        self.max_timestamp_ms = max(self.max_timestamp_ms, high)
        self.records += records.num_rows
        self.size = self._sink.tell()

    def close(self) -> None:
        """Write the footer."""
        writer = self._writer or self._begun(self._columns.empty_table())
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


def _worth(codec: Codec, size: int) -> Codec:
    """The codec, or none for few bytes that its caller has not asked to compress."""
    return _PLAIN if isinstance(codec, UnaskedCodec) and size < _WORTH_COMPRESSING_BYTES else codec


class SmallSegment(NamedTuple):
    """A segment in memory: its bytes, how many records it has, and their smallest and largest timestamp in ms."""

    data: bytes | memoryview
    records: int
    min_timestamp_ms: int
    max_timestamp_ms: int


def write_small_segment(
    records: pa.Table, codec: Codec, size: int | None = None, columns: pa.Schema = schema.SEGMENT
) -> SmallSegment:
    """A segment of at least one record, in memory. One of few bytes is compressed only where that was asked for.

    `size`: the records' bytes, about, where the caller knows them. `columns` as `SegmentWriter` takes them.
    """
    size = records.nbytes if size is None else size
    codec = _worth(codec, size)
    if columns is schema.SEGMENT and not keys_repeat(records):
        tiny = tiny_parquet.write_if_small(records, codec, size)
        if tiny is not None:
            return SmallSegment(tiny.data, records.num_rows, tiny.low_us // 1000, tiny.high_us // 1000)
    writer = SegmentWriter(pa.BufferOutputStream(), codec, columns)
    writer.write(records)
    writer.close()
    return SmallSegment(writer.data, writer.records, writer.min_timestamp_ms, writer.max_timestamp_ms)


def write_noted_segment(parts: Sequence[NotedPart], codec: Codec, size: int) -> SmallSegment | None:
    """As `write_small_segment` for plain records of a plain topic; None where that needs their columns."""
    count = sum([part.count for part in parts])
    if noted_keys_repeat(parts, count):
        return None
    pieces = [piece for part in parts for piece in part.pieces]
    tiny = tiny_parquet.write_noted(pieces, _worth(codec, size), count, size)
    return None if tiny is None else SmallSegment(tiny.data, count, tiny.low_us // 1000, tiny.high_us // 1000)
