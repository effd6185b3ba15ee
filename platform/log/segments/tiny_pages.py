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
from tidelog.log.segments.thrift import I32, STRUCT, integer, structure, varint

Integers = npt.NDArray[np.integer]

# Encodings, by Parquet's numbers.
PLAIN: Final = 0
RLE: Final = 3
DELTA_BINARY_PACKED: Final = 5
RLE_DICTIONARY: Final = 8

UNCOMPRESSED: Final = Codec("none", None)
# Codecs by Parquet's numbers; lz4 is the raw one there.
_CODECS: Final = {"none": 0, "snappy": 1, "gzip": 2, "zstd": 6, "lz4": 7}
# A page below this is smaller than what a codec makes of it, or hardly larger, and a codec takes time to start.
_WORTH_COMPRESSING_BYTES: Final = 512

_LENGTH: Final = struct.Struct("<I").pack
# Blocks and miniblocks of DELTA_BINARY_PACKED, of the sizes that Arrow's writer takes.
_BLOCK: Final = 256
_MINIBLOCK: Final = 64
_BLOCKS: Final = varint(_BLOCK) + varint(_BLOCK // _MINIBLOCK)


class Page(NamedTuple):
    """A page with its header, its size before it is compressed, and Parquet's number of its codec."""

    data: bytes
    size: int
    codec: int


def data_page(count: int, encoding: int, content: bytes, codec: Codec = UNCOMPRESSED) -> Page:
    """A page of `count` levels and their values. A codec that no caller named is not started for few bytes."""
    about = structure(
        (1, I32, integer(count)), (2, I32, integer(encoding)), (3, I32, integer(RLE)), (4, I32, integer(RLE))
    )
    if isinstance(codec, UnaskedCodec) and len(content) < _WORTH_COMPRESSING_BYTES:
        codec = UNCOMPRESSED
    return _page(0, 5, about, content, codec)


def dictionary_page(count: int, content: bytes) -> Page:
    """A page of the `count` values of a dictionary."""
    return _page(2, 7, structure((1, I32, integer(count)), (2, I32, integer(PLAIN))), content, UNCOMPRESSED)


def _page(kind: int, field: int, about: bytes, content: bytes, codec: Codec) -> Page:
    name = "lz4_raw" if codec.name == "lz4" else codec.name
    stored = content if name == "none" else pa.Codec(name, codec.level).compress(content, asbytes=True)
    (checksum,) = struct.unpack("<i", _LENGTH(zlib.crc32(stored)))
    header = structure(
        (1, I32, integer(kind)),
        (2, I32, integer(len(content))),
        (3, I32, integer(len(stored))),
        (4, I32, integer(checksum)),
        (field, STRUCT, about),
    )
    return Page(header + stored, len(header) + len(content), _CODECS[codec.name])


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
    header = _BLOCKS + varint(len(numbers)) + integer(int(numbers[0]))
    if len(numbers) == 1:
        return header
    deltas = np.diff(numbers)
    least = deltas.min()
    above: list[int] = (deltas - least).view(np.uint64).tolist()
    widths, packed = bytearray(_BLOCK // _MINIBLOCK), b""
    for i, start in enumerate(range(0, len(above), _MINIBLOCK)):
        block = above[start : start + _MINIBLOCK]
        width = widths[i] = max(block).bit_length()
        bits = sum(number << place * width for place, number in enumerate(block)) if width else 0
        packed += bits.to_bytes(width * _MINIBLOCK // 8, "little")
    return header + integer(int(least)) + bytes(widths) + packed
