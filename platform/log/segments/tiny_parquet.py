"""Segments of few records, encoded without Arrow's Parquet writer, which takes longer to start than this to finish.

One row group, one page a column (and one of the dictionary of `timestamp_type`), as Arrow's writer would write them:
the same encodings, statistics, checksums and seal (docs/format.md, "Segments"). Field numbers are parquet.thrift's.
"""

import struct
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.base.parquet_checksums import seal_of
from tidelog.log.config.topics_and_lakes import Codec, UnaskedCodec
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
)

# A tiny segment has at most this many records, and this many bytes of them.
MOST_RECORDS: Final = 100
MOST_BYTES: Final = 256 * 1024

_NAMES: Final = ("key", "value", "headers", "timestamp", "timestamp_type")
_MAGIC: Final = b"PAR1"
_CREATED_BY: Final = b"tidelog version %d" % FORMAT_VERSION
_CODECS: Final = {"none": 0, "snappy": 1, "gzip": 2, "zstd": 6, "lz4": 7}
_ARROWS_NAMES: Final = {"lz4": "lz4_raw"}
_PLAIN: Final = Codec("none", None)
# A page below this is smaller than what a codec makes of it, or hardly larger, and a codec takes time to start.
_WORTH_COMPRESSING_BYTES: Final = 512

# --- the schema ---------------------------------------------------------------------------------------------

_INT32, _INT64, _BYTE_ARRAY = 1, 2, 6  # Type
_OPTIONAL, _REPEATED = 1, 2  # FieldRepetitionType
_NOTHING: Final = structure()


def _element(
    name: bytes,
    *,
    kind: int | None = None,
    repetition: int | None = _OPTIONAL,
    children: int | None = None,
    converted: int | None = None,
    logical: Field | None = None,
) -> bytes:
    """A SchemaElement: a leaf of a `kind`, or a group of `children` elements. `converted` is for older readers."""
    given: list[Field] = []
    for number, value in ((1, kind), (3, repetition)):
        if value is not None:
            given.append((number, I32, integer(value)))
    given.append((4, BINARY, binary(name)))
    for number, value in ((5, children), (6, converted)):
        if value is not None:
            given.append((number, I32, integer(value)))
    if logical is not None:
        given.append((10, STRUCT, structure(logical)))
    return structure(*given)


_UTC_MICROS: Final = structure((1, TRUE, b""), (2, STRUCT, structure((2, STRUCT, _NOTHING))))
_SCHEMA: Final = list_of(
    STRUCT,
    [
        _element(b"schema", repetition=None, children=6),
        _element(b"position", kind=_INT64),
        _element(b"key", kind=_BYTE_ARRAY),
        _element(b"value", kind=_BYTE_ARRAY),
        _element(b"headers", children=1, converted=3, logical=(3, STRUCT, _NOTHING)),
        _element(b"list", repetition=_REPEATED, children=1),
        _element(b"element", children=2),
        _element(b"key", kind=_BYTE_ARRAY, converted=0, logical=(1, STRUCT, _NOTHING)),
        _element(b"value", kind=_BYTE_ARRAY),
        _element(b"timestamp", kind=_INT64, converted=10, logical=(8, STRUCT, _UTC_MICROS)),
        _element(b"timestamp_type", kind=_INT32),
    ],
)
_COLUMNS: Final = 7
# ColumnOrder: each column's statistics are by its type's own order.
_ORDERS: Final = list_of(STRUCT, [structure((1, STRUCT, _NOTHING))] * _COLUMNS)


def _column(kind: int, encodings: tuple[int, ...], *path: bytes) -> bytes:
    """The fields of ColumnMetaData that a column always has."""
    return fields(
        (1, I32, integer(kind)),
        (2, LIST, list_of(I32, [integer(e) for e in encodings])),
        (3, LIST, list_of(BINARY, [binary(name) for name in path])),
    )


_DELTAS: Final = (pages.RLE, pages.DELTA_BINARY_PACKED)
_PLAINLY: Final = (pages.RLE, pages.PLAIN)
_POSITION: Final = _column(_INT64, _DELTAS, b"position")
_KEY: Final = _column(_BYTE_ARRAY, _PLAINLY, b"key")
_VALUE: Final = _column(_BYTE_ARRAY, _PLAINLY, b"value")
_HEADER_KEY: Final = _column(_BYTE_ARRAY, _PLAINLY, b"headers", b"list", b"element", b"key")
_HEADER_VALUE: Final = _column(_BYTE_ARRAY, _PLAINLY, b"headers", b"list", b"element", b"value")
_TIMESTAMP: Final = _column(_INT64, _DELTAS, b"timestamp")
_TIMESTAMP_TYPE: Final = _column(_INT32, (pages.PLAIN, pages.RLE, pages.RLE_DICTIONARY), b"timestamp_type")


# --- columns ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Chunk:
    """A column's pages, and what the footer says of them: `about` up to where they are, then `statistics`.

    `size` is theirs before they are compressed; `dictionary` the bytes of a dictionary's page before the others.
    """

    pages: bytes
    size: int
    about: bytes
    statistics: bytes = b""
    dictionary: int = 0

    def described(self, at: int) -> bytes:
        """The chunk's ColumnChunk, where its pages begin at byte `at`."""
        place: list[Field] = [(9, I64, integer(at + self.dictionary))]
        if self.dictionary:
            place.append((11, I64, integer(at)))
        if self.statistics:
            place.append((12, STRUCT, self.statistics))
        return _CHUNK + self.about + fields(*place, before=7) + STOP + STOP


_CHUNK: Final = fields((2, I64, integer(0)), (3, STRUCT, b""))


def _chunk(
    column: bytes, codec: Codec, count: int, page: bytes, size: int, *, statistics: bytes = b"", dictionary: int = 0
) -> _Chunk:
    about = fields(
        (4, I32, integer(_CODECS[codec.name])),
        (5, I64, integer(count)),
        (6, I64, integer(size)),
        (7, I64, integer(len(page))),
        before=3,
    )
    return _Chunk(page, size, column + about, statistics, dictionary)


def _bounds(low: int, high: int) -> bytes:
    """Statistics of 64-bit numbers, none of them null: the least and the largest."""
    exact = [(number, BINARY, binary(struct.pack("<q", value))) for number, value in ((5, high), (6, low))]
    return structure((3, I64, integer(0)), *exact, (7, TRUE, b""), (8, TRUE, b""))


@cache
def _positions(count: int) -> _Chunk:
    content = pages.same_level(1, count) + pages.delta_packed(np.arange(count))
    page, size = pages.data_page(count, pages.DELTA_BINARY_PACKED, content)
    return _chunk(_POSITION, _PLAIN, count, page, size, statistics=_bounds(0, count - 1))


@cache
def _one_timestamp_type(count: int, kind: int) -> _Chunk:
    return _timestamp_types(np.full(count, kind, np.int32))


def _timestamp_types(kinds: npt.NDArray[np.int32]) -> _Chunk:
    count = len(kinds)
    found, indices = np.unique(kinds, return_inverse=True)
    dictionary, dictionary_size = pages.dictionary_page(len(found), found.astype("<i4").tobytes())
    content = pages.same_level(1, count) + pages.dictionary_indices(indices, len(found) - 1)
    page, size = pages.data_page(count, pages.RLE_DICTIONARY, content)
    return _chunk(_TIMESTAMP_TYPE, _PLAIN, count, dictionary + page, dictionary_size + size, dictionary=len(dictionary))


def _nulls(column: bytes, codec: Codec, count: int, lists: int) -> _Chunk:
    """Nulls alone; `lists`: how many lists the column is inside of."""
    return _encoded_nulls(
        column, _worth(codec, b""), count, lists
    )  # equal codecs may differ in whether a caller named them


@cache
def _encoded_nulls(column: bytes, codec: Codec, count: int, lists: int) -> _Chunk:
    return _plain(column, codec, count, pages.same_level(0, count) * (1 + lists))


def _plain(column: bytes, codec: Codec, count: int, content: bytes) -> _Chunk:
    codec = _worth(codec, content)
    return _chunk(column, codec, count, *pages.data_page(count, pages.PLAIN, content, _compressor(codec)))


def _worth(codec: Codec, content: bytes) -> Codec:
    """The codec for a page: one that no caller named is not started for few bytes."""
    return _PLAIN if isinstance(codec, UnaskedCodec) and len(content) < _WORTH_COMPRESSING_BYTES else codec


def _binaries(column: bytes, codec: Codec, values: pa.Array) -> _Chunk:
    count = len(values)
    if values.null_count == count:
        return _nulls(column, codec, count, 0)
    levels = pages.mixed_levels(_valid(values), 1) if values.null_count else pages.same_level(1, count)
    return _plain(column, codec, count, levels + pages.plain_binaries(values.to_pylist()))


def _timestamps(codec: Codec, micros: npt.NDArray[np.int64], low: int, high: int) -> _Chunk:
    count = len(micros)
    content = pages.same_level(1, count) + pages.delta_packed(micros)
    codec = _worth(codec, content)
    page, size = pages.data_page(count, pages.DELTA_BINARY_PACKED, content, _compressor(codec))
    return _chunk(_TIMESTAMP, codec, count, page, size, statistics=_bounds(low, high))


def _headers(codec: Codec, lists: pa.Array) -> list[_Chunk]:
    """The headers' keys and their values: an optional list of optional structs of two optional fields."""
    if lists.null_count == len(lists):
        return [_nulls(column, codec, len(lists), 1) for column in (_HEADER_KEY, _HEADER_VALUE)]
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    places = np.maximum(lengths, 1)  # an empty list has a place, too, and a null one
    first = places.cumsum() - places
    repetition = np.ones(places.sum(), np.int64)
    repetition[first] = 0
    definition = np.zeros(len(repetition), np.int64)
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


def _compressor(codec: Codec) -> pa.Codec | None:
    return None if codec.name == "none" else pa.Codec(_ARROWS_NAMES.get(codec.name, codec.name), codec.level)


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
        _timestamps(codec, micros, low, high),
        _one_timestamp_type(count, int(kinds[0])) if alike else _timestamp_types(kinds),
    ]
    described, at = [], len(_MAGIC)
    for chunk in chunks:
        described.append(chunk.described(at))
        at += len(chunk.pages)
    group = structure(
        (1, LIST, list_of(STRUCT, described)),
        (2, I64, integer(sum([chunk.size for chunk in chunks]))),
        (3, I64, integer(count)),
    )
    metadata = _HEAD + fields((3, I64, integer(count)), (4, LIST, list_of(STRUCT, [group])), before=2) + _TAIL
    footer = metadata + struct.pack("<I", len(metadata)) + _MAGIC
    return Tiny(b"".join([_MAGIC, *[chunk.pages for chunk in chunks], seal_of(footer), footer]), low, high)


# Of FileMetaData: the version and the schema; the writer's name and the columns' orders.
_HEAD: Final = fields((1, I32, integer(2)), (2, LIST, _SCHEMA))
_TAIL: Final = fields((6, BINARY, binary(_CREATED_BY)), (7, LIST, _ORDERS), before=4) + STOP


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
