"""A checkpoint's segments as columns: where they lie is read at once, what else is said of them when it is asked for.

A topic of 100,000 segments is opened to be appended to, or read at its end. Paths and statistics are most of its
checkpoint, and only those of the segments that are read are needed.
"""

import io
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidelog.log.base.parquet_checksums import parquet_part
from tidelog.log.checkpoints.rows import CHECKSUMS, WORTH_A_GROUP
from tidelog.log.delta import layout
from tidelog.log.state.add_columns import I64, FileColumns, FileGroup
from tidelog.log.storage.ranged import Piece, RangedFile

# Partition, base offset and end of each row.
Bounds = tuple[I64, I64, I64]

_MAPS: Final = ("partitionValues", "tags")
_FILES: Final = ("path", "size", "modificationTime", "dataChange", "stats")
_NEVER_NULL: Final = ("path", "size", "modificationTime", "dataChange")
_KEYS: Final = [f"add.{name}.key_value.key" for name in _MAPS]
# Of numbers that 64 bits hold, whatever their digits are.
_MOST_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class LateAdds:
    """The segments of a row group: where they lie, and what can say the rest."""

    bounds: Bounds
    files: FileGroup


def late_adds(source: Any, metadata: pq.FileMetaData, group: int) -> LateAdds | None:
    """The segments of a row group that has nothing else; None where they are to be read at once.

    Its bytes are kept in memory, and checked against the sum in the footer, so that what is decoded later is sound.
    Raises OSError for bytes that are not.
    """
    chunks = metadata.row_group(group)
    checksum = _checksum(metadata, group)
    if checksum is None or chunks.num_rows < WORTH_A_GROUP:
        return None
    leaves = {chunks.column(leaf).path_in_schema: chunks.column(leaf) for leaf in range(chunks.num_columns)}
    newest_ms = _newest_ms(leaves)
    if newest_ms is None:
        return None
    held = _GroupBytes(source, leaves.values())
    if zlib.crc32(held.data) != checksum:
        raise OSError(f"row group {group} does not have the bytes that were written")
    bounds = bounds_of(held.read(metadata, group, _MAPS))
    if bounds is None:
        return None
    decode = partial(_decoded, held, metadata, group)
    return LateAdds(bounds, FileGroup(chunks.num_rows, newest_ms, decode))


def _checksum(metadata: pq.FileMetaData, group: int) -> int | None:
    sums = (metadata.metadata or {}).get(CHECKSUMS, b"").split(b",")
    return int(sums[group]) if len(sums) == metadata.num_row_groups and sums[group] else None


def _newest_ms(leaves: Mapping[str, pq.ColumnChunkMetaData]) -> int | None:
    """The largest time that a row group's statistics say; None where they don't, or a row may lack what it must say."""
    for name in _NEVER_NULL:
        column = leaves.get(f"add.{name}")
        statistics = None if column is None else column.statistics
        if statistics is None or not statistics.has_null_count or statistics.null_count:
            return None
    statistics = leaves["add.modificationTime"].statistics
    return int(statistics.max) if statistics.has_min_max and "add.stats" in leaves else None


def _decoded(held: "_GroupBytes", metadata: pq.FileMetaData, group: int) -> FileColumns:
    return file_columns(held.read(metadata, group, _FILES))


def file_columns(rows: pa.StructArray) -> FileColumns:
    """What rows of `add` say of their files, but for where in the log they lie."""
    size, modified = (_integers(rows.field(name)) for name in ("size", "modificationTime"))
    return FileColumns(rows.field("path"), size, modified, rows.field("dataChange"), rows.field("stats"))


class _GroupBytes:
    """The bytes of a row group. Raises OSError where the file does not have all of them."""

    def __init__(self, source: Any, chunks: Collection[pq.ColumnChunkMetaData]) -> None:
        pages = [chunk.data_page_offset for chunk in chunks]
        pages += [chunk.dictionary_page_offset for chunk in chunks if chunk.has_dictionary_page]
        first, size = min(pages), sum(chunk.total_compressed_size for chunk in chunks)
        if not 0 <= first <= first + size <= source.seek(0, io.SEEK_END):
            raise OSError("a row group is said to end past the end of the file")
        source.seek(first)
        self.data = source.read(size)
        self._piece = Piece(first, self.data, first + size, None)

    def read(self, metadata: pq.FileMetaData, group: int, names: tuple[str, ...]) -> pa.StructArray:
        """Columns of `add`; keys of maps as a dictionary."""
        file = parquet_part(RangedFile(self, "", self._piece), metadata, _KEYS)
        table = file.read_row_group(group, columns=[f"add.{name}" for name in names], use_threads=False)
        rows = table.column("add")
        return rows.chunk(0) if rows.num_chunks == 1 else rows.combine_chunks()

    def read_range(self, path: str, start: int, end: int, e_tag: str | None) -> Piece:  # noqa: ARG002 - a port's
        """See `Ranges`: there are no others."""
        raise OSError(f"the bytes from {start} to {end} are none of the row group")


def bounds_of(rows: pa.StructArray) -> Bounds | None:
    """Where the rows of `add` lie; None where that needs a look at each."""
    present = {field.name for field in rows.type}
    if not present.issuperset(_MAPS):
        return None
    places = numbers_of(rows.field("partitionValues"), "partition", "base_offset")
    ends = numbers_of(rows.field("tags"), layout.END_TAG)
    return None if places is None or ends is None else (places[0], places[1], ends[0])


def numbers_of(maps: pa.MapArray, *keys: str) -> list[I64] | None:
    """The number that each map has under each of these keys.

    None where a map is null, or has a key twice or not at all, or where any value of a map is no number.
    """
    offsets = _integers(maps.offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    texts, names = (part.slice(first, last - first) for part in (maps.items, maps.keys))
    if maps.null_count or not are_numbers(texts):
        return None
    values = _integers(texts)
    numbers = []
    for key in keys:
        hits = _places_of(names, key)
        if len(hits) != len(maps) or not np.all((hits >= offsets[:-1] - first) & (hits < offsets[1:] - first)):
            return None
        numbers.append(values[hits])
    return numbers


def _integers(array: pa.Array) -> I64:
    """An array without nulls, as 64 bits. `to_numpy` loads pandas, which takes longer than to read a large topic."""
    return cast(I64, np.from_dlpack(array.cast(pa.int64())))


def _places_of(texts: pa.Array, text: str) -> I64:
    if isinstance(texts, pa.DictionaryArray):
        known = texts.dictionary.to_pylist()
        return np.flatnonzero(_integers(texts.indices) == (known.index(text) if text in known else -1))
    return np.flatnonzero(pc.equal(texts, text).to_numpy(zero_copy_only=False))


def are_numbers(texts: pa.Array) -> bool:
    """Whether `partition_value` takes each of these texts for a number, of a size that 64 bits hold.

    By their bytes: a regular expression takes fifteen times as long.
    """
    if texts.null_count:
        return False
    texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(ends)
    digits = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]] - np.uint8(ord("0"))
    return bool(np.all((lengths >= 1) & (lengths <= _MOST_DIGITS)) and np.all(digits < 10))
