"""Segments that are in memory whole, encoded without Arrow's Parquet writer, which takes several times as long.

In native code where that was built, and in Python else, or where records have headers. One row group, as Arrow's writer
would write it: the same encodings, statistics, checksums and seal (docs/format.md, "Segments"). In Python, columns in
which all records are alike are kept, by how many records there are.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.base.native_code import native_module
from tidelog.log.base.parquet_checksums import seal_of
from tidelog.log.config.topics_and_lakes import Codec
from tidelog.log.segments import tiny_footer as footer
from tidelog.log.segments import tiny_pages as pages
from tidelog.log.segments.noted import NotedPiece
from tidelog.log.segments.thrift import integer

# A tiny segment has at most this many records, and this many bytes of them.
MOST_RECORDS: Final = 100
MOST_BYTES: Final = 256 * 1024
# (records, bytes) of any other one that is written here: with more, Arrow's writer takes no longer than Python does.
_IN_PYTHON: Final = 16_384, 2**20
# Segments of more are written by row groups.
_NATIVELY: Final = 2**17, 2**24
NATIVE, _ = native_module("tidelog.log.segments.native_tiny", "native_tiny.pyx", "crc32.h")
# Bytes of a page before it is compressed, about.
_PAGE_BYTES: Final = 256 * 1024
_KEPT: Final = 4_096

_NAMES: Final = ("key", "value", "headers", "timestamp", "timestamp_type")
MAGIC: Final = b"PAR1"

# --- columns ------------------------------------------------------------------------------------------------


def _fits(count: int, size: int, most: tuple[int, int]) -> bool:
    """Whether `count` records of `size` bytes are written here: few of them are to be few bytes, too."""
    if count <= MOST_RECORDS:
        return size <= MOST_BYTES
    return count <= most[0] and size <= most[1]


class _Chunk(NamedTuple):
    """A column's pages, and what the footer says of them: `about` up to where they are, then `statistics`.

    `size` is theirs before they are compressed, `stored` after; `dictionary` the bytes of a dictionary's page before
    the others.
    """

    pages: tuple[pages.Bytes, ...]
    stored: int
    size: int
    about: bytes
    statistics: bytes
    dictionary: int

    def described(self, at: int) -> bytes:
        """The chunk's ColumnChunk, where its pages begin at byte `at`."""
        places = integer(at + self.dictionary), integer(at) if self.dictionary else b""
        return footer.column_chunk(self.about, *places, self.statistics)


def _chunk(
    column: bytes,
    count: int,
    data_pages: Sequence[pages.Page],
    statistics: bytes = b"",
    dictionary: pages.Page | None = None,
) -> _Chunk:
    whole = [dictionary, *data_pages] if dictionary else data_pages
    parts, stored, size, codec = whole[0] if len(whole) == 1 else _together(whole)
    about = footer.about(column, integer(codec), integer(count), integer(size), integer(stored))
    return _Chunk(parts, stored, size, about, statistics, dictionary.stored if dictionary else 0)


def _together(data_pages: Sequence[pages.Page]) -> pages.Page:
    parts = tuple([part for page in data_pages for part in page.parts])
    stored, size = sum([page.stored for page in data_pages]), sum([page.size for page in data_pages])
    return pages.Page(parts, stored, size, data_pages[-1].codec)


def _numbers(column: bytes, codec: Codec, numbers: npt.NDArray[np.int64], low: int, high: int) -> _Chunk:
    """64-bit numbers, none of them null, with exact bounds in the footer."""
    count = len(numbers)
    levels, values = pages.same_level(1, count), pages.delta_packed(numbers)
    statistics = footer.bounds(struct.pack("<q", low), struct.pack("<q", high))
    codec = pages.codec_for(len(levels) + len(values), codec)
    return _chunk(column, count, [pages.data_page(count, pages.DELTA_BINARY_PACKED, levels, values, codec)], statistics)


@lru_cache(_KEPT)
def _positions(count: int) -> _Chunk:
    return _numbers(footer.POSITION, pages.UNCOMPRESSED, np.arange(count), 0, count - 1)


@lru_cache(_KEPT)
def one_timestamp_type(count: int, kind: int) -> _Chunk:
    """The column of `count` records of one type of timestamp."""
    return _timestamp_type_chunk(count, np.array([kind]), pages.one_index(count))


def _timestamp_types(kinds: npt.NDArray[np.int32]) -> _Chunk:
    found, indices = np.unique(kinds, return_inverse=True)
    return _timestamp_type_chunk(len(kinds), found, pages.dictionary_indices(indices, len(found) - 1))


def _timestamp_type_chunk(count: int, kinds: pages.Integers, indices: bytes) -> _Chunk:
    page = pages.data_page(count, pages.RLE_DICTIONARY, pages.same_level(1, count), indices)
    dictionary = pages.dictionary_page(len(kinds), kinds.astype("<i4").tobytes())
    return _chunk(footer.TIMESTAMP_TYPE, count, [page], b"", dictionary)


def _plain(column: bytes, codec: Codec, count: int, levels: bytes, values: pages.Bytes = b"") -> _Chunk:
    codec = pages.codec_for(len(levels) + len(values), codec)
    return _chunk(column, count, [pages.data_page(count, pages.PLAIN, levels, values, codec)])


@lru_cache(_KEPT, typed=True)  # equal codecs may differ in their type: whether a caller named them
def _nulls(column: bytes, codec: Codec, count: int, lists: int) -> _Chunk:
    """Nulls alone; `lists`: how many lists the column is inside of."""
    return _plain(column, codec, count, pages.same_level(0, count) * (1 + lists))


def _binaries(column: bytes, codec: Codec, values: pa.Array) -> _Chunk:
    count = len(values)
    if values.null_count == count:
        return _nulls(column, codec, count, 0)
    if count <= MOST_RECORDS:
        return _plain(column, codec, count, _levels(values), pages.plain_binaries(values))
    ends = np.frombuffer(values.buffers()[1], np.int32, count + 1, values.offset * 4)
    size = 4 * count + int(ends[-1] - ends[0])
    codec = pages.codec_for(size, codec)
    each = -(-count // -(-size // _PAGE_BYTES))
    return _chunk(column, count, [_binary_page(values[at : at + each], codec) for at in range(0, count, each)])


def _binary_page(values: pa.Array, codec: Codec) -> pages.Page:
    return pages.data_page(len(values), pages.PLAIN, _levels(values), pages.plain_binaries(values), codec)


def _levels(values: pa.Array) -> bytes:
    return pages.mixed_levels(_valid(values), 1) if values.null_count else pages.same_level(1, len(values))


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
        chunks.append(_plain(column, codec, len(repetition), levels, pages.plain_binaries(leaves.cast(pa.binary()))))
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


def write_if_small(records: pa.Table, codec: Codec, size: int) -> Tiny | None:
    """As `write_tiny`; None where Arrow's writer is sooner done. `size`: the records' bytes, about."""
    count = records.num_rows
    if _fits(count, size, _NATIVELY) and (written := written_natively(records, codec)) is not None:
        return written
    return written_in_python(records, codec) if _fits(count, size, _IN_PYTHON) else None


def write_tiny(records: pa.Table, codec: Codec) -> Tiny:
    """A segment of one record at least.

    Columns as `tidelog.log.delta.schema.SEGMENT` without `position`, none of `timestamp` and `timestamp_type` null.
    """
    return written_natively(records, codec) or written_in_python(records, codec)


def written_natively(records: pa.Table, codec: Codec) -> Tiny | None:
    """See `write_tiny`; None where records have headers, or several types of timestamp, or there is no native code."""
    if NATIVE is None:
        return None
    if tuple(records.column_names) != _NAMES:
        records = records.select(_NAMES)
    return _written_natively([batch._export_to_c for batch in records.to_batches() if batch.num_rows], codec)


def _written_natively(parts: Sequence[Any], codec: Codec) -> Tiny | None:
    """`parts`: as `native_tiny.segment` takes them."""
    compress = None if codec.name == "none" else partial(pages.compressed, codec)
    assert NATIVE is not None
    written = NATIVE.segment(
        parts, footer.COLUMNS, footer.HEAD, footer.TAIL, seal_of, pages.CODECS[codec.name], compress,
        pages.least_compressed(codec),
    )  # fmt: skip
    return None if written is None else Tiny(*written)


def write_noted(pieces: Sequence[NotedPiece], codec: Codec, count: int, size: int) -> Tiny | None:
    """As `write_if_small` for plain records, `count` of them; None where they must become a table for it."""
    if NATIVE is None or not _fits(count, size, _NATIVELY):
        return None
    return _written_natively([piece.notes.part(piece.first, piece.end) for piece in pieces], codec)


def written_in_python(records: pa.Table, codec: Codec) -> Tiny:
    """See `write_tiny`."""
    key, value, headers, timestamp, kind = (_whole(records.column(name)) for name in _NAMES)
    count = len(key)
    micros = np.frombuffer(timestamp.buffers()[1], np.int64, count, timestamp.offset * 8)
    kinds = np.frombuffer(kind.buffers()[1], np.int32, count, kind.offset * 4)
    low, high = _extremes(micros)
    alike = kinds.tobytes() == kinds[:1].tobytes() * count
    chunks = [
        _positions(count),
        _binaries(footer.KEY, codec, key),
        _binaries(footer.VALUE, codec, value),
        *_headers(codec, headers),
        _numbers(footer.TIMESTAMP, codec, micros, low, high),
        one_timestamp_type(count, int(kinds[0])) if alike else _timestamp_types(kinds),
    ]
    described: list[bytes] = []
    parts: list[pages.Bytes] = [MAGIC]
    at = len(MAGIC)
    for chunk in chunks:
        described.append(chunk.described(at))
        parts += chunk.pages
        at += chunk.stored
    size = sum([chunk.size for chunk in chunks])
    metadata = footer.metadata(integer(count), integer(size), described)
    end = metadata + struct.pack("<I", len(metadata)) + MAGIC
    return Tiny(b"".join([*parts, seal_of(end), end]), low, high)


def _extremes(numbers: npt.NDArray[np.int64]) -> tuple[int, int]:
    """The least and the largest. Of few numbers Python finds them before numpy begins."""
    listed = numbers.tolist() if len(numbers) <= MOST_RECORDS else [numbers.min(), numbers.max()]
    return int(min(listed)), int(max(listed))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
