"""Decoding what `write_tiny` writes without Arrow's Parquet reader, which takes longer to start than this to finish.

Such a file is recognised by its footer, which is sealed: all of it is as the writer writes it, but for numbers. The
numbers of a page's header are compared with the footer's, and a page's bytes with its checksum.
"""

import re
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tidelog.log.base.parquet_checksums import SEAL_BYTES, seal_of
from tidelog.log.segments import tiny_footer as footer
from tidelog.log.segments import tiny_pages as pages
from tidelog.log.segments.thrift import ANY_8_BYTES, ANY_INTEGER, integer_of, pattern
from tidelog.log.segments.tiny_parquet import MAGIC, one_timestamp_type

_CODEC_NAMES: Final = {number: pages.arrows_name(name) for name, number in pages.CODECS.items()}
_TIMESTAMP_TYPES: Final = (0, 1)
# Arrow's reader is as fast for more records.
MOST_RECORDS: Final = 50


def _chunk(column: bytes) -> bytes:
    """A ColumnChunk of any numbers: the codec, how many values, their size, that as stored, where the pages are."""
    statistics = footer.bounds(ANY_8_BYTES, ANY_8_BYTES) if column in (footer.POSITION, footer.TIMESTAMP) else b""
    places = ANY_INTEGER, ANY_INTEGER if column == footer.TIMESTAMP_TYPE else b""
    return footer.column_chunk(footer.about(column, *[ANY_INTEGER] * 4), *places, statistics)


_METADATA: Final = pattern(footer.metadata(ANY_INTEGER, ANY_INTEGER, [_chunk(column) for column in footer.COLUMNS]))
# Where a column's numbers begin: the first is how many records the file has.
_KEY, _VALUE, _HEADER_KEY, _HEADER_VALUE, _TIMESTAMP, _TIMESTAMP_TYPE = range(6, 36, 5)
# Behind the metadata: their length, and the magic.
_CLOSING_BYTES: Final = 4 + len(MAGIC)
_ANY_PAGE: Final = {"count": ANY_INTEGER, "size": ANY_INTEGER, "stored": ANY_INTEGER, "checksum": ANY_INTEGER}
_PLAIN_PAGE: Final = pattern(pages.data_page_header(encoding=pages.PLAIN, **_ANY_PAGE))
_DELTAS_PAGE: Final = pattern(pages.data_page_header(encoding=pages.DELTA_BINARY_PACKED, **_ANY_PAGE))

_DELTAS: Final = pattern(pages.BLOCKS + ANY_INTEGER * 3)


class _NotTinyError(Exception):
    """The file, or what is wanted of it, is not what is decoded here."""


def read_tiny(data: bytes, count: int, wanted: Sequence[str]) -> dict[str, Sequence[Any]] | None:
    """Columns of a file of `count` records, at most `MOST_RECORDS`; not `position`, which counts them from 0.

    Timestamps are in us since the epoch.
    None for a file that `write_tiny` did not write, or that is not sound, or has other than `count` records, and for
    one with headers, if they are wanted, or timestamps of two types: Arrow's reader reads it, or says what is wrong.
    """
    at = len(data) - _CLOSING_BYTES - int.from_bytes(data[-_CLOSING_BYTES:][:4], "little")
    end = data[at:] if at > SEAL_BYTES else b""
    metadata = _METADATA.fullmatch(end, 0, len(end) - _CLOSING_BYTES)
    if metadata is None or data[at - SEAL_BYTES : at] != seal_of(end):
        return None
    file = _TinyFile(data, metadata.groups())
    if file.count != count:
        return None
    try:
        return {name: _READERS[name](file) for name in wanted}
    except _NotTinyError:
        return None


class _TinyFile:
    """A file whose footer is right, and the numbers of that."""

    def __init__(self, data: bytes, numbers: Sequence[bytes]) -> None:
        self.data = data
        self.numbers = numbers
        self.count = integer_of(numbers[0])

    def page(self, column: int, header: re.Pattern[bytes]) -> bytes:
        """A column's one page, decompressed, once all that its header says is found to be right."""
        codec, size, stored, at = (integer_of(self.numbers[column + i]) for i in (0, 2, 3, 4))
        fields = header.match(self.data, at)
        if fields is None:
            raise _NotTinyError
        unpacked, packed, checksum, count = map(integer_of, fields.groups())
        begin = fields.end()
        content = self.data[begin : at + stored]
        right = (count, packed, unpacked) == (self.count, len(content), size - (begin - at))
        if not right or zlib.crc32(content) != checksum & 0xFFFFFFFF:
            raise _NotTinyError
        return pa.Codec(_CODEC_NAMES[codec]).decompress(content, unpacked, asbytes=True) if codec else content


# --- columns ------------------------------------------------------------------------------------------------


def _binaries(column: int, file: _TinyFile) -> Sequence[bytes | None]:
    return _values(file.page(column, _PLAIN_PAGE), file.count)


def _values(content: bytes, count: int) -> list[bytes | None]:
    """Values, each behind its length, behind levels: 1 where there is one, 0 for null."""
    levels, at = _levels(content, count)
    values: list[bytes | None] = []
    for level in levels:
        if level:
            begin = at + 4
            at = begin + int.from_bytes(content[at:begin], "little")
            values.append(content[begin:at])
        else:
            values.append(None)
    return values


def _levels(content: bytes, count: int) -> tuple[Sequence[int], int]:
    """Levels of 0 or 1, and where they end."""
    for level in (1, 0):
        same = pages.same_level(level, count)
        if content.startswith(same):
            return [level] * count, len(same)
    end = 4 + int.from_bytes(content[:4], "little")
    bits = np.frombuffer(content, np.uint8, end - 5, 5)  # behind how many there are, which is in one byte
    return np.unpackbits(bits, count=count, bitorder="little").tolist(), end


def _no_headers(file: _TinyFile) -> Sequence[None]:
    nulls = pages.same_level(0, file.count) * 2
    if any(file.page(column, _PLAIN_PAGE) != nulls for column in (_HEADER_KEY, _HEADER_VALUE)):
        raise _NotTinyError
    return [None] * file.count


def _timestamps(file: _TinyFile) -> Sequence[int]:
    content = file.page(_TIMESTAMP, _DELTAS_PAGE)
    return _numbers(content[len(pages.same_level(1, file.count)) :], file.count)


def _numbers(packed: bytes, count: int) -> list[int]:
    """Numbers of 64 bits that are kept as differences from one to the next above the least of them."""
    if count == 1:
        return [integer_of(packed[len(pages.BLOCKS) + 1 :])]
    deltas = _DELTAS.match(packed)
    if deltas is None:
        raise ValueError("numbers are not kept as the page's header says")
    number, least, at = integer_of(deltas[2]), integer_of(deltas[3]), deltas.end()
    width = packed[at]  # of the first of a block's miniblocks: there are no numbers for a second one
    block = int.from_bytes(packed[at + pages.BLOCK // pages.MINIBLOCK :], "little")
    numbers = [number]
    for place in range(count - 1):
        number += least + (block >> place * width & (1 << width) - 1)
        numbers.append((number + (1 << 63)) % (1 << 64) - (1 << 63))
    return numbers


def _one_timestamp_type(file: _TinyFile) -> Sequence[int]:
    """One type for all: as many bytes can be nothing else."""
    stored, at = (integer_of(file.numbers[_TIMESTAMP_TYPE + i]) for i in (3, 5))
    for kind in _TIMESTAMP_TYPES:
        if file.data[at : at + stored] == b"".join(one_timestamp_type(file.count, kind).pages):
            return [kind] * file.count
    raise _NotTinyError


_READERS: Final[dict[str, Callable[[_TinyFile], Sequence[Any]]]] = {
    "key": partial(_binaries, _KEY),
    "value": partial(_binaries, _VALUE),
    "headers": _no_headers,
    "timestamp": _timestamps,
    "timestamp_type": _one_timestamp_type,
}
