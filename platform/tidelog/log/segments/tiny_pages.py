"""The pages of a Parquet file of few records: levels, values, checksums.

Definition levels say how much of a column's path is there for a value, repetition levels where a list goes on.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.log.config.topics_and_lakes import Codec, UnaskedCodec
from tidelog.log.segments.thrift import I32, STRUCT, Field, integer, structure, varint

Integers = npt.NDArray[np.integer]

# Encodings, by Parquet's numbers.
PLAIN: Final = 0
RLE: Final = 3
DELTA_BINARY_PACKED: Final = 5
RLE_DICTIONARY: Final = 8

UNCOMPRESSED: Final = Codec("none", None)
# Codecs by Parquet's numbers; lz4 is the raw one there.
CODECS: Final = {"none": 0, "snappy": 1, "gzip": 2, "zstd": 6, "lz4": 7}
# A page below this is smaller than what a codec makes of it, or hardly larger, and a codec takes time to start.
_WORTH_COMPRESSING_BYTES: Final = 512

_LENGTH: Final = struct.Struct("<I").pack
# Blocks and miniblocks of DELTA_BINARY_PACKED, of the sizes that Arrow's writer takes.
BLOCK: Final = 256
MINIBLOCK: Final = 64
BLOCKS: Final = varint(BLOCK) + varint(BLOCK // MINIBLOCK)


class Page(NamedTuple):
    """A page with its header, its size before it is compressed, and Parquet's number of its codec."""

    data: bytes
    size: int
    codec: int


def data_page(count: int, encoding: int, content: bytes, codec: Codec = UNCOMPRESSED) -> Page:
    """A page of `count` levels and their values. A codec that no caller named is not started for few bytes."""
    if isinstance(codec, UnaskedCodec) and len(content) < _WORTH_COMPRESSING_BYTES:
        codec = UNCOMPRESSED
    return _page(0, _about_data(integer(count), encoding), content, codec)


def data_page_header(count: bytes, encoding: int, size: bytes, stored: bytes, checksum: bytes) -> bytes:
    """The header of such a page, its numbers encoded; `size` before it is compressed, `stored` after."""
    return _header(0, size, stored, checksum, _about_data(count, encoding))


def _about_data(count: bytes, encoding: int) -> Field:
    levels = integer(RLE)
    return 5, STRUCT, structure((1, I32, count), (2, I32, integer(encoding)), (3, I32, levels), (4, I32, levels))


def dictionary_page(count: int, content: bytes) -> Page:
    """A page of the `count` values of a dictionary."""
    about = structure((1, I32, integer(count)), (2, I32, integer(PLAIN)))
    return _page(2, (7, STRUCT, about), content, UNCOMPRESSED)


def arrows_name(codec: str) -> str:
    """What Arrow calls a codec of a page."""
    return "lz4_raw" if codec == "lz4" else codec


def _header(kind: int, size: bytes, stored: bytes, checksum: bytes, about: Field) -> bytes:
    return structure((1, I32, integer(kind)), (2, I32, size), (3, I32, stored), (4, I32, checksum), about)


def _page(kind: int, about: Field, content: bytes, codec: Codec) -> Page:
    name = arrows_name(codec.name)
    stored = content if name == "none" else pa.Codec(name, codec.level).compress(content, asbytes=True)
    (checksum,) = struct.unpack("<i", _LENGTH(zlib.crc32(stored)))
    header = _header(kind, integer(len(content)), integer(len(stored)), integer(checksum), about)
    return Page(header + stored, len(header) + len(content), CODECS[codec.name])


# --- levels -------------------------------------------------------------------------------------------------


def same_level(level: int, count: int) -> bytes:
    """One level, `count` times."""
    run = varint(count << 1) + bytes((level,))
    return _LENGTH(len(run)) + run


def mixed_levels(levels: Integers, most: int) -> bytes:
    """Levels from 0 to `most`."""
    packed = _bit_packed(levels, most.bit_length())
    return _LENGTH(len(packed)) + packed


def _bit_packed(numbers: Integers, width: int) -> bytes:
    """Numbers of `width` bits each, in groups of eight."""
    groups = -(-len(numbers) // 8)
    bits = numbers[:, None] >> np.arange(width) & 1
    packed = np.packbits(bits.astype(np.uint8), bitorder="little").tobytes()
    return varint(groups << 1 | 1) + packed.ljust(groups * width, b"\0")


# --- values -------------------------------------------------------------------------------------------------


def plain_binaries(values: Sequence[bytes | None]) -> bytes:
    """Each value behind its length; nulls are left out."""
    return b"".join([part for value in values if value is not None for part in (_LENGTH(len(value)), value)])


def dictionary_indices(indices: Integers, most: int) -> bytes:
    """Places in a dictionary, from 0 to `most`, behind their width."""
    width = max(1, most.bit_length())
    return bytes((width,)) + _bit_packed(indices, width)


def delta_packed(numbers: npt.NDArray[np.int64]) -> bytes:
    """From 1 to 257 numbers, as differences from one to the next above the least of them."""
    header = BLOCKS + varint(len(numbers)) + integer(int(numbers[0]))
    if len(numbers) == 1:
        return header
    deltas = np.diff(numbers)
    least = deltas.min()
    above: list[int] = (deltas - least).view(np.uint64).tolist()
    widths, packed = bytearray(BLOCK // MINIBLOCK), b""
    for i, start in enumerate(range(0, len(above), MINIBLOCK)):
        block = above[start : start + MINIBLOCK]
        width = widths[i] = max(block).bit_length()
        bits = sum(number << place * width for place, number in enumerate(block)) if width else 0
        packed += bits.to_bytes(width * MINIBLOCK // 8, "little")
    return header + integer(int(least)) + bytes(widths) + packed
