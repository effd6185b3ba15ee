"""Segments of few records, encoded without Arrow's Parquet writer, which takes longer to start than this to finish.

One row group, one page a column (and one of the dictionary of `timestamp_type`), as Arrow's writer would write them:
the same encodings, statistics, checksums and seal (docs/format.md, "Segments").
"""

import struct
from functools import cache, lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.base.parquet_checksums import seal_of
from tidelog.log.config.topics_and_lakes import Codec
from tidelog.log.segments import tiny_footer as footer
from tidelog.log.segments import tiny_pages as pages
from tidelog.log.segments.thrift import integer

# A tiny segment has at most this many records, and this many bytes of them.
MOST_RECORDS: Final = 100
MOST_BYTES: Final = 256 * 1024

_NAMES: Final = ("key", "value", "headers", "timestamp", "timestamp_type")
MAGIC: Final = b"PAR1"

# --- columns ------------------------------------------------------------------------------------------------


class _Chunk(NamedTuple):
    """A column's pages, and what the footer says of them: `about` up to where they are, then `statistics`.

    `size` is theirs before they are compressed; `dictionary` the bytes of a dictionary's page before the other.
    """

    pages: bytes
    size: int
    about: bytes
    statistics: bytes
    dictionary: int

    def described(self, at: int) -> bytes:
        """The chunk's ColumnChunk, where its pages begin at byte `at`."""
        places = integer(at + self.dictionary), integer(at) if self.dictionary else b""
        return footer.column_chunk(self.about, *places, self.statistics)


def _chunk(
    column: bytes, count: int, page: pages.Page, statistics: bytes = b"", dictionary: pages.Page | None = None
) -> _Chunk:
    first = dictionary or pages.Page(b"", 0, 0)
    whole, size = first.data + page.data, first.size + page.size
    numbers = integer(page.codec), integer(count), integer(size), integer(len(whole))
    return _Chunk(whole, size, footer.about(column, *numbers), statistics, len(first.data))


def _numbers(column: bytes, codec: Codec, numbers: npt.NDArray[np.int64], low: int, high: int) -> _Chunk:
    """64-bit numbers, none of them null, with exact bounds in the footer."""
    count = len(numbers)
    content = pages.same_level(1, count) + pages.delta_packed(numbers)
    statistics = footer.bounds(struct.pack("<q", low), struct.pack("<q", high))
    return _chunk(column, count, pages.data_page(count, pages.DELTA_BINARY_PACKED, content, codec), statistics)


@cache
def _positions(count: int) -> _Chunk:
    return _numbers(footer.POSITION, pages.UNCOMPRESSED, np.arange(count), 0, count - 1)


@cache
def one_timestamp_type(count: int, kind: int) -> _Chunk:
    """The column of `count` records of one type of timestamp."""
    return _timestamp_types(np.full(count, kind, np.int32))


def _timestamp_types(kinds: npt.NDArray[np.int32]) -> _Chunk:
    count = len(kinds)
    found, indices = np.unique(kinds, return_inverse=True)
    content = pages.same_level(1, count) + pages.dictionary_indices(indices, len(found) - 1)
    page = pages.data_page(count, pages.RLE_DICTIONARY, content)
    return _chunk(
        footer.TIMESTAMP_TYPE, count, page, b"", pages.dictionary_page(len(found), found.astype("<i4").tobytes())
    )


def _plain(column: bytes, codec: Codec, count: int, content: bytes) -> _Chunk:
    return _chunk(column, count, pages.data_page(count, pages.PLAIN, content, codec))


@lru_cache(maxsize=None, typed=True)  # equal codecs may differ in their type: whether a caller named them
def _nulls(column: bytes, codec: Codec, count: int, lists: int) -> _Chunk:
    """Nulls alone; `lists`: how many lists the column is inside of."""
    return _plain(column, codec, count, pages.same_level(0, count) * (1 + lists))


def _binaries(column: bytes, codec: Codec, values: pa.Array) -> _Chunk:
    count = len(values)
    if values.null_count == count:
        return _nulls(column, codec, count, 0)
    levels = pages.mixed_levels(_valid(values), 1) if values.null_count else pages.same_level(1, count)
    return _plain(column, codec, count, levels + pages.plain_binaries(values.to_pylist()))


def _headers(codec: Codec, lists: pa.Array) -> list[_Chunk]:
    """The headers' keys and their values: an optional list of optional structs of two optional fields."""
    if lists.null_count == len(lists):
        return [_nulls(column, codec, len(lists), 1) for column in (footer.HEADER_KEY, footer.HEADER_VALUE)]
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    places = np.maximum(lengths, 1)  # an empty list has a place, too, and a null one
    first = places.cumsum() - places
    repetition, definition = np.ones(places.sum(), np.int64), np.zeros(places.sum(), np.int64)
    repetition[first] = 0
    definition[first] = _valid(lists)
    of_elements = np.ones(len(repetition), np.bool_)
    of_elements[first] = lengths > 0
    elements = lists.flatten()
    chunks = []
    for column, leaves in zip((footer.HEADER_KEY, footer.HEADER_VALUE), elements.flatten(), strict=True):
        definition[of_elements] = 2 + _valid(elements) + _valid(leaves)
        levels = pages.mixed_levels(repetition, 1) + pages.mixed_levels(definition, 4)
        values = pages.plain_binaries(leaves.cast(pa.binary()).to_pylist())
        chunks.append(_plain(column, codec, len(repetition), levels + values))
    return chunks


def _valid(values: pa.Array) -> pages.Integers:
    """1 where there is a value, 0 for null."""
    return np.asarray(values.is_valid(), np.int64)


# --- the file -----------------------------------------------------------------------------------------------


class Tiny(NamedTuple):
    """A whole file, and its records' smallest and largest timestamp (us since the epoch)."""

    data: bytes
    low_us: int
    high_us: int


def write_tiny(records: pa.Table, codec: Codec) -> Tiny:
    """A segment of one record at least, and `MOST_RECORDS` at most.

    Columns as `tidelog.log.delta.schema.SEGMENT` without `position`, none of `timestamp` and `timestamp_type` null.
    """
    key, value, headers, timestamp, kind = (_whole(records.column(name)) for name in _NAMES)
    count = len(key)
    micros = np.frombuffer(timestamp.buffers()[1], np.int64, count, timestamp.offset * 8)
    times, kinds = micros.tolist(), kind.to_pylist()
    low, high, alike = min(times), max(times), kinds.count(kinds[0]) == count
    chunks = [
        _positions(count),
        _binaries(footer.KEY, codec, key),
        _binaries(footer.VALUE, codec, value),
        *_headers(codec, headers),
        _numbers(footer.TIMESTAMP, codec, micros, low, high),
        one_timestamp_type(count, kinds[0]) if alike else _timestamp_types(np.array(kinds, np.int32)),
    ]
    described, at = [], len(MAGIC)
    for chunk in chunks:
        described.append(chunk.described(at))
        at += len(chunk.pages)
    size = sum([chunk.size for chunk in chunks])
    metadata = footer.metadata(integer(count), integer(size), described)
    end = metadata + struct.pack("<I", len(metadata)) + MAGIC
    return Tiny(b"".join([MAGIC, *[chunk.pages for chunk in chunks], seal_of(end), end]), low, high)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
