"""The pages of a Parquet file of few records: levels, values, checksums.

Definition levels say how much of a column's path is there for a value, repetition levels where a list goes on.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.log.segments.thrift import I32, STOP, STRUCT, fields, integer, structure, varint

Integers = npt.NDArray[np.integer]

# Encodings, by Parquet's numbers.
PLAIN: Final = 0
RLE: Final = 3
DELTA_BINARY_PACKED: Final = 5
RLE_DICTIONARY: Final = 8

_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
# How a page's two kinds of levels are encoded.
_BY_RUNS: Final = fields((3, I32, integer(RLE)), (4, I32, integer(RLE)), before=2)
_LENGTH: Final = struct.Struct("<I").pack
# Blocks and miniblocks of DELTA_BINARY_PACKED, of the sizes that Arrow's writer takes.
_BLOCK: Final = 256
_MINIBLOCK: Final = 64
_BLOCKS: Final = varint(_BLOCK) + varint(_BLOCK // _MINIBLOCK)
MOST_DELTAS: Final = _BLOCK


def data_page(count: int, encoding: int, content: bytes, compressor: pa.Codec | None = None) -> tuple[bytes, int]:
    """A page of `count` levels and their values, and its size before it is compressed."""
    about = fields((1, I32, integer(count)), (2, I32, integer(encoding))) + _BY_RUNS + STOP
    return _page(_DATA_PAGE, (5, STRUCT, about), content, compressor)


def dictionary_page(count: int, content: bytes) -> tuple[bytes, int]:
    """A page of the `count` values of a dictionary, and its size."""
    about = structure((1, I32, integer(count)), (2, I32, integer(PLAIN)))
    return _page(_DICTIONARY_PAGE, (7, STRUCT, about), content, None)


def _page(kind: int, about: tuple[int, int, bytes], content: bytes, compressor: pa.Codec | None) -> tuple[bytes, int]:
    stored = compressor.compress(content, asbytes=True) if compressor else content
    checksum = zlib.crc32(stored)
    header = structure(
        (1, I32, integer(kind)),
        (2, I32, integer(len(content))),
        (3, I32, integer(len(stored))),
        (4, I32, integer(checksum - (1 << 32) if checksum >> 31 else checksum)),
        about,
    )
    return header + stored, len(header) + len(content)


# --- levels -------------------------------------------------------------------------------------------------


def same_level(level: int, count: int) -> bytes:
    """One level, `count` times."""
    return _behind_its_length(varint(count << 1) + bytes((level,)))


def mixed_levels(levels: Integers, most: int) -> bytes:
    """Levels from 0 to `most`."""
    return _behind_its_length(_bit_packed(levels, most.bit_length()))


def _bit_packed(numbers: Integers, width: int) -> bytes:
    """Numbers of `width` bits each, in groups of eight."""
    groups = -(-len(numbers) // 8)
    bits = numbers[:, None] >> np.arange(width) & 1
    packed = np.packbits(bits.astype(np.uint8), bitorder="little").tobytes()
    return varint(groups << 1 | 1) + packed.ljust(groups * width, b"\0")


def _behind_its_length(encoded: bytes) -> bytes:
    return _LENGTH(len(encoded)) + encoded


# --- values -------------------------------------------------------------------------------------------------


def plain_binaries(values: Sequence[bytes | None]) -> bytes:
    """Each value behind its length; nulls are left out."""
    return b"".join([part for value in values if value is not None for part in (_LENGTH(len(value)), value)])


def dictionary_indices(indices: Integers, most: int) -> bytes:
    """Places in a dictionary, from 0 to `most`, behind their width."""
    width = max(1, most.bit_length())
    return bytes((width,)) + _bit_packed(indices, width)


def delta_packed(numbers: npt.NDArray[np.int64]) -> bytes:
    """Numbers, at least one and `MOST_DELTAS` more, as differences from one to the next above the least of them."""
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
