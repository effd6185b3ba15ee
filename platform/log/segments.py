"""Segments: Parquet files of one partition's records, written in offset order and read by range.

A writer does not know its offsets: the file holds `position` 0, 1, 2 ..., the log entry gives the base.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidelog.log import schema
from tidelog.log.config import Codec
from tidelog.log.errors import CorruptSegmentError, ObjectNotFoundError
from tidelog.log.state import Segment
from tidelog.log.storage.port import Storage
from tidelog.log.timestamps import format_utc_ms

# Rows and bytes of a row group: what a reader of a range decodes at least, and a writer holds in memory.
ROW_GROUP_RECORDS = 131_072
ROW_GROUP_BYTES = 16 * 1024 * 1024
# Bytes that a reader holds at once of a segment, about: its batches are cut to that, whatever wrote the row group.
BATCH_BYTES = 16 * 1024 * 1024
# A dictionary of keys is worth making where they repeat: where at most half of the first ones are different.
_SAMPLED_KEYS = 1_024
_FEWEST_SAMPLED_KEYS = 64
# Columns of which the encoding leaves nothing to compress: a codec that is started for them costs a small segment
# time. Not so timestamps, which come in bursts and in whole milliseconds.
_UNCOMPRESSED = ("position", "timestamp_type")
_COMPRESSED = ("key", "value", "headers.list.element.key", "headers.list.element.value", "timestamp")
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


def stats_json(records: int, last_position: int, min_timestamp_ms: int, max_timestamp_ms: int) -> str:
    """Delta's statistics of a segment ("Per-file Statistics" of the Delta protocol)."""
    low: dict[str, Any] = {"position": 0}
    high: dict[str, Any] = {"position": last_position}
    if min_timestamp_ms >= _STATS_LOW_MS and max_timestamp_ms <= _STATS_HIGH_MS:
        low["timestamp"] = format_utc_ms(min_timestamp_ms)
        high["timestamp"] = format_utc_ms(max_timestamp_ms)
    return orjson.dumps({"numRecords": records, "minValues": low, "maxValues": high}).decode()


class _Sink:
    """Counts the bytes of a segment on their way, and drops them once it is given up.

    Not every store's file can tell its size, and Arrow's writer writes a footer even when it is abandoned.
    """

    closed = False

    def __init__(self, file: Any) -> None:
        self.file = file
        self.size = 0

    def write(self, data: Any) -> int:
        if self.file is not None:
            self.file.write(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Nothing: whoever opened the file closes it."""


class SegmentWriter:
    """Writes one segment to `file`, which stays open. Columns as `tidelog.log.schema.SEGMENT` without `position`.

    What was written so far: `records`, `size` in bytes, and the smallest and largest timestamp in ms.
    """

    def __init__(self, file: Any, codec: Codec) -> None:
        self.records = 0
        self.size = 0
        self.min_timestamp_ms = 2**63 - 1
        self.max_timestamp_ms = -(2**63)
        self._codec = codec
        self._sink = file if isinstance(file, pa.BufferOutputStream) else _Sink(file)
        self._writer: pq.ParquetWriter | None = None

    def _begun(self, records: pa.Table) -> pq.ParquetWriter:
        """The Parquet writer; how it writes is chosen by the first records."""
        if self._writer is None:
            level = self._codec.level
            self._writer = pq.ParquetWriter(
                self._sink,
                schema.SEGMENT,
                compression={**dict.fromkeys(_COMPRESSED, self._codec.name), **dict.fromkeys(_UNCOMPRESSED, "none")},
                compression_level=None if level is None else dict.fromkeys(_COMPRESSED, level),
                use_dictionary=["timestamp_type", *(["key"] if _keys_repeat(records) else [])],
                column_encoding={"position": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
                write_statistics=["position", "timestamp"],
                store_schema=False,
            )
        return self._writer

    def write(self, records: pa.Table) -> None:
        """Write records, in their order, as one row group or several."""
        if records.num_rows == 0:
            return
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
        self._begun(schema.SEGMENT.empty_table()).close()
        self.size = self._sink.tell()

    def abandon(self) -> None:
        """Write nothing more, whatever was begun."""
        if isinstance(self._sink, _Sink):
            self._sink.file = None
        if self._writer is not None:
            self._writer.close()


def _keys_repeat(records: pa.Table) -> bool:
    sample = records.column("key").slice(0, _SAMPLED_KEYS)
    if len(sample) < _FEWEST_SAMPLED_KEYS:
        return False
    return bool(2 * pc.count_distinct(sample, mode="all").as_py() <= len(sample))


def row_group_records(records: pa.Table) -> int:
    """How many of these records make a row group: as many as its bytes allow, on average."""
    fitting: int = ROW_GROUP_BYTES * records.num_rows // max(records.nbytes, 1)
    return max(1, min(ROW_GROUP_RECORDS, fitting))


def timestamp_range_ms(timestamps: pa.ChunkedArray) -> tuple[int, int]:
    """The smallest and the largest timestamp, rounded down to ms since the epoch."""
    bounds = pc.min_max(timestamps.cast(pa.int64()))
    return bounds["min"].as_py() // 1000, bounds["max"].as_py() // 1000


def write_small_segment(records: pa.Table, codec: Codec) -> tuple[bytes, SegmentWriter]:
    """A segment in memory: its bytes and the writer that counted it."""
    sink = pa.BufferOutputStream()
    writer = SegmentWriter(sink, codec)
    writer.write(records)
    writer.close()
    return sink.getvalue().to_pybytes(), writer


def read_segment(
    storage: Storage,
    folder: str,
    segment: Segment,
    start: int,
    end: int,
    columns: Iterable[str],
    batch_records: int = ROW_GROUP_RECORDS,
    batch_bytes: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The segment's records with offsets in [start, end), as batches of `position` and `columns`.

    Row groups outside the range are not read; batches of at most `batch_records`, and of fewer where records are
    large (about `batch_bytes` at most, by default `BATCH_BYTES`), are cut to the range.
    Raises `CorruptSegmentError` naming the segment when it is missing, truncated or not a segment.
    """
    path = f"{folder}/{unquote(segment.path)}"
    low, high = start - segment.base_offset, end - segment.base_offset
    wanted = ["position", *(c for c in columns if c != "position")]
    try:
        with storage.open(path) as source, pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as file:
            _check(file, segment, wanted)
            for group in _row_groups(file, low, high):
                records = _batch_records(file.metadata.row_group(group), batch_records, batch_bytes)
                for batch in file.iter_batches(records, row_groups=[group], columns=wanted, use_threads=False):
                    cut = _cut(_as_kept(batch, wanted), low, high, dense=segment.proven)
                    if cut.num_rows:
                        yield cut
    except ObjectNotFoundError as e:
        raise _corrupt(segment, folder, "is missing") from e
    except (pa.ArrowException, KeyError, OSError) as e:
        raise _corrupt(segment, folder, f"can't be read ({e})") from e


def _check(file: pq.ParquetFile, segment: Segment, wanted: list[str]) -> None:
    """Whether it is the file that the log entry speaks of; raises KeyError for a column, OSError for records."""
    names = set(file.schema_arrow.names)
    missing = [name for name in wanted if name not in names]
    if missing:
        raise KeyError(f"it has no column '{missing[0]}'")
    expected, found = segment.stats.records, file.metadata.num_rows
    if expected is not None and expected != found:
        raise OSError(f"it has {found} records, its log entry says {expected}")


def _batch_records(group: Any, batch_records: int, batch_bytes: int | None) -> int:
    """How many records a batch of a row group may have so that it holds about `batch_bytes`."""
    fitting: int = (batch_bytes or BATCH_BYTES) * group.num_rows // max(group.total_byte_size, 1)
    return max(1, min(batch_records, fitting))


def _row_groups(file: pq.ParquetFile, low: int, high: int) -> list[int]:
    metadata = file.metadata
    index = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == "position")
    chosen = []
    for i in range(metadata.num_row_groups):
        statistics = metadata.row_group(i).column(index).statistics
        if statistics is None or not statistics.has_min_max or (statistics.max >= low and statistics.min < high):
            chosen.append(i)
    return chosen


def _as_kept(batch: pa.RecordBatch, wanted: list[str]) -> pa.RecordBatch:
    """The batch with the types of a segment: other engines have their own for the same columns."""
    kept = _kept(tuple(wanted))
    if batch.schema.names != wanted:
        batch = batch.select(wanted)
    return batch if batch.schema.types == kept.types else batch.cast(kept)


@cache
def _kept(wanted: tuple[str, ...]) -> pa.Schema:
    return pa.schema([schema.SEGMENT.field(name) for name in wanted])


def _cut(batch: pa.RecordBatch, low: int, high: int, *, dense: bool) -> pa.RecordBatch:
    """The records at positions [low, high); `dense` says that positions rise, so that their ends tell of gaps."""
    positions = batch.column(0)
    count = len(positions)
    if count == 0:
        return batch
    first, last = positions[0].as_py(), positions[count - 1].as_py()
    if dense and last - first == count - 1:  # as in every segment that was never compacted
        begin = max(0, low - first)
        return batch.slice(begin, max(0, min(count, high - first) - begin))
    return batch.filter(pc.and_(pc.greater_equal(positions, low), pc.less(positions, high)))


def _corrupt(segment: Segment, folder: str, what: str) -> CorruptSegmentError:
    return CorruptSegmentError(
        f"Segment {folder}/{segment.path} (partition {segment.partition}, offsets {segment.base_offset} to"
        f" {segment.end}) {what}. Its records can't be served: restore the file from a copy, or give them up with"
        f" delete_records before offset {segment.end}. 'tidelog check --deep' finds every such file.",
    )
