"""Reading segments: the records of a range, without reading or decoding the rest."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidelog.log.base.errors import CorruptSegmentError, ObjectNotFoundError
from tidelog.log.base.parquet_checksums import open_parquet
from tidelog.log.segments.few_records import FewRecords
from tidelog.log.segments.tiny_parquet import MOST_BYTES
from tidelog.log.segments.tiny_reader import MOST_RECORDS, read_tiny
from tidelog.log.segments.wanted_columns import WantedColumns, wanted_columns
from tidelog.log.segments.writer import ROW_GROUP_RECORDS
from tidelog.log.state.topic_state import Segment
from tidelog.log.storage.port import Storage
from tidelog.log.storage.ranged import ReadsAhead
from tidelog.log.typed.value_typing import Typing

# Bytes that a reader holds at once of a segment, about: its batches are cut to that, whatever wrote the row group.
BATCH_BYTES = 16 * 1024 * 1024
# A file up to this size is got whole: one request, where opening it and finding its way takes three.
_SMALL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class _RowGroup:
    """A row group to read. `first`: its first position where each next record has the next one, else None."""

    number: int
    records: int
    size: int
    first: int | None


def read_segment(
    storage: Storage,
    folder: str,
    segment: Segment,
    start: int,
    end: int,
    columns: Iterable[str],
    batch_records: int = ROW_GROUP_RECORDS,
    batch_bytes: int | None = None,
    *,
    offsets: bool = False,
    few: bool = False,
    typing: Typing | None = None,
    stored: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The segment's records with offsets in [start, end), as batches of `position` and `columns`.

    `offsets`: the column `position` holds offsets instead. `few`: the caller takes `FewRecords`, too. `typing`: of a
    typed topic, whose segments have more columns (`Typing.segment`), null where this one lacks them. Values are what
    their producers sent; with `stored` they are null where they are derived.
    Row groups outside the range are not read; batches of at most `batch_records`, and of fewer where records are
    large (about `batch_bytes` at most, by default `BATCH_BYTES`), are cut to the range.
    Raises `CorruptSegmentError` naming the segment when it is missing, or is not, byte for byte, what was written.
    """
    path = f"{folder}/{unquote(segment.path)}"
    base = segment.base_offset if offsets else 0
    low, high = start - segment.base_offset, end - segment.base_offset
    wanted = wanted_columns(("position", *(c for c in columns if c != "position")), typing, stored=stored)
    most_bytes = batch_bytes or BATCH_BYTES
    try:
        source: Any
        if segment.size <= _SMALL_BYTES:
            data = storage.get(path)
            tiny = None
            if wanted.is_plain and most_bytes >= MOST_BYTES:
                tiny = _tiny(data, segment, wanted.names, batch_records, base)
            if tiny is not None:  # its positions are known: as many as offsets
                first = max(0, low)
                tiny = tiny.slice(first, max(0, high - first))
                if tiny.num_rows:
                    yield tiny if few else pa.RecordBatch.from_arrays(tiny.arrays(), schema=wanted.given)
                return
            source = pa.BufferReader(data)
        else:
            source = storage.open(path, segment.size)
        with source, open_parquet(source, size=segment.size, sealed=True) as file:
            _check(file, segment)
            for group in _row_groups(file.metadata, segment, low, high):
                about = file.metadata.row_group(group.number)
                read = wanted.read(about)
                if isinstance(source, ReadsAhead):
                    source.will_read(_ranges(about, read.names, known=group.first is not None))
                records = max(1, min(batch_records, most_bytes * group.records // max(group.size, 1)))
                for batch in _decoded(file, group, wanted, read, records, base):
                    for cut in _cut(batch, low + base, high + base):
                        yield wanted.made(cut)
    except ObjectNotFoundError as e:
        raise _corrupt(segment, folder, "is missing") from e
    except (pa.ArrowException, KeyError, OSError, ValueError) as e:
        raise _corrupt(segment, folder, f"can't be read ({e})") from e


def segment_codec(storage: Storage, folder: str, segment: Segment) -> str | None:
    """The codec that a segment's values are packed by, by Kafka's names; None where it can't be read any more.

    It is the one that most of its records came in, where their topic leaves it to producers and maintenance has not
    merged them.
    """
    try:
        source = storage.open(f"{folder}/{unquote(segment.path)}", segment.size)
        with source, open_parquet(source, size=segment.size, sealed=True) as file:
            group = file.metadata.row_group(0)
            values = [group.column(at) for at in range(group.num_columns)]
            codec = next((column.compression for column in values if column.path_in_schema == "value"), "UNCOMPRESSED")
    except (ObjectNotFoundError, pa.ArrowException, OSError, ValueError):
        return None
    return {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}.get(codec, codec.lower())


def _tiny(data: bytes, segment: Segment, wanted: tuple[str, ...], most: int, base: int) -> FewRecords | None:
    """The segment's records, if there are few and they can be decoded here."""
    count = segment.end - segment.base_offset
    if len(data) != segment.size or segment.stats.records != count or count > min(most, MOST_RECORDS):
        return None
    columns = read_tiny(data, count, wanted[1:])
    return None if columns is None else FewRecords(range(base, base + count), columns)


def _check(file: pq.ParquetFile, segment: Segment) -> None:
    """Whether it is the file that the log entry speaks of; raises OSError."""
    expected, found = segment.stats.records, file.metadata.num_rows
    if expected is not None and expected != found:
        raise OSError(f"it has {found} records, its log entry says {expected}")


def _row_groups(metadata: Any, segment: Segment, low: int, high: int) -> Iterator[_RowGroup]:
    """Those that may have positions in [low, high)."""
    # As many records as offsets, as in every segment that was never compacted: each position is known.
    whole = segment.stats.records == segment.end - segment.base_offset
    column = None if whole else _position_column(metadata)
    begun = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        records = group.num_rows
        bounds = _bounds(group.column(column)) if column is not None else (begun, begun + records - 1)
        begun += records
        if bounds is None:
            yield _RowGroup(number, records, group.total_byte_size, None)
        elif bounds[1] >= low and bounds[0] < high:
            dense = bounds[1] - bounds[0] == records - 1
            yield _RowGroup(number, records, group.total_byte_size, bounds[0] if dense else None)


def _ranges(group: Any, wanted: Sequence[str], *, known: bool) -> list[tuple[int, int]]:
    """Where in the file the wanted columns of a row group lie; positions that are known are not read."""
    names = wanted[1:] if known and len(wanted) > 1 else wanted
    ranges = []
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema.partition(".")[0] in names:
            pages = (column.dictionary_page_offset, column.data_page_offset)
            start = min(offset for offset in pages if offset)
            ranges.append((start, start + column.total_compressed_size))
    return sorted(ranges)


def _position_column(metadata: Any) -> int:
    for number in range(metadata.num_columns):
        if metadata.schema.column(number).path == "position":
            return number
    raise KeyError("it has no column 'position'")


def _bounds(column: Any) -> tuple[int, int] | None:
    """The smallest and the largest position of a row group; None where its statistics don't say."""
    statistics = column.statistics
    return (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else None


def _decoded(
    file: pq.ParquetFile, group: _RowGroup, wanted: WantedColumns, read: pa.Schema, most: int, base: int
) -> Iterator[pa.RecordBatch]:
    """The row group in batches of at most `most` records. Positions that are known need no decoding."""
    is_counted = group.first is not None and len(read) > 1
    position = base + (group.first or 0)
    columns = read.remove(0) if is_counted else read
    for batch in _batches(file, group, columns.names, most):
        rows = wanted.cast(batch, columns)
        if is_counted:
            arrays = [pa.array(np.arange(position, position + rows.num_rows)), *rows.columns]
            position += rows.num_rows
        else:
            arrays = [pc.add(rows.column(0), base), *rows.columns[1:]]
        yield pa.RecordBatch.from_arrays(arrays, schema=read)


def _batches(file: pq.ParquetFile, group: _RowGroup, names: list[str], most: int) -> Iterator[pa.RecordBatch]:
    if group.records > most:
        yield from file.iter_batches(most, row_groups=[group.number], columns=names, use_threads=False)
    else:  # in one go, which starts faster
        yield from file.read_row_group(group.number, columns=names, use_threads=False).to_batches()


def _cut(batch: pa.RecordBatch, low: int, high: int) -> Iterator[pa.RecordBatch]:
    """The records at positions [low, high), if there are any. Positions rise, so that their ends show gaps."""
    positions = batch.column(0)
    count = len(positions)
    if count == 0:
        return
    first, last = positions[0].as_py(), positions[count - 1].as_py()
    if last - first == count - 1:
        begin = max(0, low - first)
        cut = batch.slice(begin, max(0, min(count, high - first) - begin))
    else:
        cut = batch.filter(pc.and_(pc.greater_equal(positions, low), pc.less(positions, high)))
    if cut.num_rows:
        yield cut


def _corrupt(segment: Segment, folder: str, what: str) -> CorruptSegmentError:
    return CorruptSegmentError(
        f"Segment {folder}/{segment.path} (partition {segment.partition}, offsets {segment.base_offset} to"
        f" {segment.end}) {what}. Its records can't be served: restore the file from a copy, or give them up, and no"
        " others, by 'tidelog check --repair --give-up' (with --deep where the file is there). 'tidelog check --deep'"
        " finds every such file.",
    )
