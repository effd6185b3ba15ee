"""The footer of a tiny segment: the same for all, but for numbers. Field numbers are parquet.thrift's.

Numbers are given encoded, so that one description makes both a footer and the pattern that recognises one.
"""

from collections.abc import Sequence
from typing import Final

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
POSITION: Final = _column(_INT64, _DELTAS, b"position")
KEY: Final = _column(_BYTE_ARRAY, _PLAINLY, b"key")
VALUE: Final = _column(_BYTE_ARRAY, _PLAINLY, b"value")
HEADER_KEY: Final = _column(_BYTE_ARRAY, _PLAINLY, b"headers", b"list", b"element", b"key")
HEADER_VALUE: Final = _column(_BYTE_ARRAY, _PLAINLY, b"headers", b"list", b"element", b"value")
TIMESTAMP: Final = _column(_INT64, _DELTAS, b"timestamp")
TIMESTAMP_TYPE: Final = _column(_INT32, (pages.PLAIN, pages.RLE, pages.RLE_DICTIONARY), b"timestamp_type")
COLUMNS: Final = (POSITION, KEY, VALUE, HEADER_KEY, HEADER_VALUE, TIMESTAMP, TIMESTAMP_TYPE)


# --- what is said of a file's columns -----------------------------------------------------------------------

_CHUNK: Final = fields((2, I64, integer(0)), (3, STRUCT, b""))
# Of FileMetaData: the version and the schema; the writer's name and the columns' orders, which are by their types.
HEAD: Final = fields((1, I32, integer(2)), (2, LIST, _SCHEMA))
_ORDERS: Final = list_of(STRUCT, [structure((1, STRUCT, _NOTHING))] * len(COLUMNS))
TAIL: Final = fields((6, BINARY, binary(_CREATED_BY)), (7, LIST, _ORDERS), before=4) + STOP


def about(column: bytes, codec: bytes, count: bytes, size: bytes, stored: bytes) -> bytes:
    """The beginning of a column's ColumnMetaData; `size` before its pages are compressed, `stored` after."""
    return column + fields((4, I32, codec), (5, I64, count), (6, I64, size), (7, I64, stored), before=3)


def bounds(low: bytes, high: bytes) -> bytes:
    """Statistics of values, none of them null: the least and the largest, which are eight bytes each."""
    return structure(
        (3, I64, integer(0)), (5, BINARY, binary(high)), (6, BINARY, binary(low)), (7, TRUE, b""), (8, TRUE, b"")
    )


def column_chunk(about: bytes, data_page: bytes, dictionary_page: bytes, statistics: bytes) -> bytes:
    """A ColumnChunk: what its column's `about` says, where its pages begin, and its statistics; b"" for what is not."""
    data: Field = (9, I64, data_page)
    dictionary: Field = (11, I64, dictionary_page)
    exact: Field = (12, STRUCT, statistics)
    place = fields(data, *[dictionary] * bool(dictionary_page), *[exact] * bool(statistics), before=7)
    return _CHUNK + about + place + STOP + STOP


def metadata(count: bytes, size: bytes, chunks: Sequence[bytes]) -> bytes:
    """The FileMetaData of `count` records, in pages of `size` before they are compressed."""
    group = structure((1, LIST, list_of(STRUCT, chunks)), (2, I64, size), (3, I64, count))
    return HEAD + fields((3, I64, count), (4, LIST, list_of(STRUCT, [group])), before=2) + TAIL
