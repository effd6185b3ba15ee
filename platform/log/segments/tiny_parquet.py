"""Segments of few records, encoded without Arrow's Parquet writer, which takes longer to start than this to finish.

One row group, one page a column (and one of the dictionary of `timestamp_type`), as Arrow's writer would write them:
the same encodings, statistics, checksums and seal (docs/format.md, "Segments"). Field numbers are parquet.thrift's.
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
from tidelog.log.delta.disk_format import FORMAT_VERSION
from tidelog.log.segments import tiny_pages as pages
from tidelog.log.segments.thrift import (
    BINARY,
    I32,
    I64,
    LIST,
    STOP,
    STRUCT,
    TRUE,
    Field,
    binary,
    fields,
    integer,
    list_of,
    structure,
)  # fmt: skip

# A tiny segment has at most this many records, and this many bytes of them.
MOST_RECORDS: Final = 100
MOST_BYTES: Final = 256 * 1024

_NAMES: Final = ("key", "value", "headers", "timestamp", "timestamp_type")
_MAGIC: Final = b"PAR1"
_CREATED_BY: Final = b"tidelog version %d" % FORMAT_VERSION

# --- the schema ---------------------------------------------------------------------------------------------

_INT32, _INT64, _BYTE_ARRAY = 1, 2, 6  # Type
_NOTHING: Final = structure()


def _element(name: bytes, kind: int = 0, repetition: int = 1, children: int = 0, *more: Field) -> bytes:
    """A SchemaElement: a leaf of a `kind`, or a group of `children`; optional, or repeated (2). `more`: its meaning."""
    given = ((1, I32, kind), (3, I32, repetition), (4, BINARY, name), (5, I32, children))
    return structure(*[(n, k, binary(v) if isinstance(v, bytes) else integer(v)) for n, k, v in given if v], *more)


def _meaning(converted: int, number: int, logical: bytes = _NOTHING) -> tuple[Field, Field]:
    """What an element means: its ConvertedType, by which older readers go, and its LogicalType."""
    return (6, I32, integer(converted)), (10, STRUCT, structure((number, STRUCT, logical)))


_UTC_MICROS: Final = structure((1, TRUE, b""), (2, STRUCT, structure((2, STRUCT, _NOTHING))))
_SCHEMA: Final = list_of(
    STRUCT,
    [
        _element(b"schema", 0, 0, 6),
        _element(b"position", _INT64),
        _element(b"key", _BYTE_ARRAY),
        _element(b"value", _BYTE_ARRAY),
        _element(b"headers", 0, 1, 1, *_meaning(3, 3)),
        _element(b"list", 0, 2, 1),
        _element(b"element", 0, 1, 2),
        _element(b"key", _BYTE_ARRAY, 1, 0, *_meaning(0, 1)),
        _element(b"value", _BYTE_ARRAY),
        _element(b"timestamp", _INT64, 1, 0, *_meaning(10, 8, _UTC_MICROS)),
        _element(b"timestamp_type", _INT32),
    ],
)


def _column(kind: int, encodings: tuple[int, ...], *path: bytes) -> bytes:
    """The fields of ColumnMetaData that a column always has: its type, encodings and path."""
    names = list_of(BINARY, [binary(name) for name in path])
    return fields((1, I32, integer(kind)), (2, LIST, list_of(I32, [integer(e) for e in encodings])), (3, LIST, names))


_DELTAS: Final = (pages.RLE, pages.DELTA_BINARY_PACKED)
_PLAINLY: Final = (pages.RLE, pages.PLAIN)
_POSITION: Final = _column(_INT64, _DELTAS, b"position")
_KEY: Final = _column(_BYTE_ARRAY, _PLAINLY, b"key")
_VALUE: Final = _column(_BYTE_ARRAY, _PLAINLY, b"value")
_HEADER_KEY: Final = _column(_BYTE_ARRAY, _PLAINLY, b"headers", b"list", b"element", b"key")
_HEADER_VALUE: Final = _column(_BYTE_ARRAY, _PLAINLY, b"headers", b"list", b"element", b"value")
_TIMESTAMP: Final = _column(_INT64, _DELTAS, b"timestamp")
_TIMESTAMP_TYPE: Final = _column(_INT32, (pages.PLAIN, pages.RLE, pages.RLE_DICTIONARY), b"timestamp_type")
_CHUNK: Final = fields((2, I64, integer(0)), (3, STRUCT, b""))
# Of FileMetaData: the version and the schema; the writer's name and the columns' orders, which are by their types.
_HEAD: Final = fields((1, I32, integer(2)), (2, LIST, _SCHEMA))
_ORDERS: Final = list_of(STRUCT, [structure((1, STRUCT, _NOTHING))] * 7)
_TAIL: Final = fields((6, BINARY, binary(_CREATED_BY)), (7, LIST, _ORDERS), before=4) + STOP


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
        data: Field = (9, I64, integer(at + self.dictionary))
        dictionary: Field = (11, I64, integer(at))
        statistics: Field = (12, STRUCT, self.statistics)
        place = fields(data, *[dictionary] * bool(self.dictionary), *[statistics] * bool(self.statistics), before=7)
        return _CHUNK + self.about + place + STOP + STOP


def _chunk(
    column: bytes, count: int, page: pages.Page, statistics: bytes = b"", dictionary: pages.Page | None = None
) -> _Chunk:
    first = dictionary or pages.Page(b"", 0, 0)
    whole, size = first.data + page.data, first.size + page.size
    about = ((4, I32, page.codec), (5, I64, count), (6, I64, size), (7, I64, len(whole)))
    known = column + fields(*[(n, kind, integer(value)) for n, kind, value in about], before=3)
    return _Chunk(whole, size, known, statistics, len(first.data))


def _numbers(column: bytes, codec: Codec, numbers: npt.NDArray[np.int64], low: int, high: int) -> _Chunk:
    """64-bit numbers, none of them null, with exact bounds in the footer."""
    count = len(numbers)
    content = pages.same_level(1, count) + pages.delta_packed(numbers)
    bounds = [(number, BINARY, binary(struct.pack("<q", bound))) for number, bound in ((5, high), (6, low))]
    statistics = structure((3, I64, integer(0)), *bounds, (7, TRUE, b""), (8, TRUE, b""))
    return _chunk(column, count, pages.data_page(count, pages.DELTA_BINARY_PACKED, content, codec), statistics)


@cache
def _positions(count: int) -> _Chunk:
    return _numbers(_POSITION, pages.UNCOMPRESSED, np.arange(count), 0, count - 1)


@cache
def _one_timestamp_type(count: int, kind: int) -> _Chunk:
    return _timestamp_types(np.full(count, kind, np.int32))


def _timestamp_types(kinds: npt.NDArray[np.int32]) -> _Chunk:
    count = len(kinds)
    found, indices = np.unique(kinds, return_inverse=True)
    content = pages.same_level(1, count) + pages.dictionary_indices(indices, len(found) - 1)
    page = pages.data_page(count, pages.RLE_DICTIONARY, content)
    return _chunk(_TIMESTAMP_TYPE, count, page, b"", pages.dictionary_page(len(found), found.astype("<i4").tobytes()))


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
        return [_nulls(column, codec, len(lists), 1) for column in (_HEADER_KEY, _HEADER_VALUE)]
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
    for column, leaves in zip((_HEADER_KEY, _HEADER_VALUE), elements.flatten(), strict=True):
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
    low, high = int(micros.min()), int(micros.max())
    kinds = np.frombuffer(kind.buffers()[1], np.int32, count, kind.offset * 4)
    alike = bool((kinds == kinds[0]).all())
    chunks = [
        _positions(count),
        _binaries(_KEY, codec, key),
        _binaries(_VALUE, codec, value),
        *_headers(codec, headers),
        _numbers(_TIMESTAMP, codec, micros, low, high),
        _one_timestamp_type(count, int(kinds[0])) if alike else _timestamp_types(kinds),
    ]
    described, at = [], len(_MAGIC)
    for chunk in chunks:
        described.append(chunk.described(at))
        at += len(chunk.pages)
    size = sum([chunk.size for chunk in chunks])
    group = structure((1, LIST, list_of(STRUCT, described)), (2, I64, integer(size)), (3, I64, integer(count)))
    metadata = _HEAD + fields((3, I64, integer(count)), (4, LIST, list_of(STRUCT, [group])), before=2) + _TAIL
    footer = metadata + struct.pack("<I", len(metadata)) + _MAGIC
    return Tiny(b"".join([_MAGIC, *[chunk.pages for chunk in chunks], seal_of(footer), footer]), low, high)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
