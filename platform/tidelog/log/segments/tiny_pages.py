"""The pages of a Parquet file that is written in one go: levels, values, checksums.

Definition levels say how much of a column's path is there for a value, repetition levels where a list goes on.
"""

import struct
import zlib
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
_NO_WIDTHS: Final = bytes(BLOCK // MINIBLOCK)
# Bytes of differences above the least, by how many bits the largest has. Whole bytes are written at once.
_SIZES: Final = (0, *[1] * 8, *[2] * 8, *[4] * 16, *[8] * 32)
# Values that Python puts in a row sooner than Arrow begins to.
_FEW: Final = 150


Bytes = bytes | memoryview


class Page(NamedTuple):
    """A page with its header, in parts of `stored` bytes, its size before it is compressed, and its codec's number."""

    parts: tuple[Bytes, ...]
    stored: int
    size: int
    codec: int


def codec_for(size: int, codec: Codec) -> Codec:
    """How a column of `size` bytes is compressed. A codec that no caller named is not started for few bytes."""
    return UNCOMPRESSED if size < least_compressed(codec) else codec


def least_compressed(codec: Codec) -> int:
    """The bytes from which on a column is compressed."""
    return _WORTH_COMPRESSING_BYTES if isinstance(codec, UnaskedCodec) else 0


def compressed(codec: Codec, content: Bytes) -> bytes:
    """A page's content, packed."""
    packed: bytes = pa.Codec(arrows_name(codec.name), codec.level).compress(content, asbytes=True)
    return packed


def data_page(count: int, encoding: int, levels: bytes, values: Bytes, codec: Codec = UNCOMPRESSED) -> Page:
    """A page of `count` levels and the values that are there."""
    return _page(0, _about_data(integer(count), encoding), (levels, values), codec)


def data_page_header(count: bytes, encoding: int, size: bytes, stored: bytes, checksum: bytes) -> bytes:
    """The header of such a page, its numbers encoded; `size` before it is compressed, `stored` after."""
    return _header(0, size, stored, checksum, _about_data(count, encoding))


def _about_data(count: bytes, encoding: int) -> Field:
    levels = integer(RLE)
    return 5, STRUCT, structure((1, I32, count), (2, I32, integer(encoding)), (3, I32, levels), (4, I32, levels))


def dictionary_page(count: int, content: bytes) -> Page:
    """A page of the `count` values of a dictionary."""
    about = structure((1, I32, integer(count)), (2, I32, integer(PLAIN)))
    return _page(2, (7, STRUCT, about), (content,), UNCOMPRESSED)


def arrows_name(codec: str) -> str:
    """What Arrow calls a codec of a page."""
    return "lz4_raw" if codec == "lz4" else codec


def _header(kind: int, size: bytes, stored: bytes, checksum: bytes, about: Field) -> bytes:
    return structure((1, I32, integer(kind)), (2, I32, size), (3, I32, stored), (4, I32, checksum), about)


def _page(kind: int, about: Field, content: tuple[Bytes, ...], codec: Codec) -> Page:
    """What is not compressed is not copied."""
    size = stored = sum(map(len, content))
    if codec.name != "none":
        content = (compressed(codec, b"".join(content)),)
        stored = len(content[0])
    sum_of = 0
    for part in content:
        sum_of = zlib.crc32(part, sum_of)
    checksum = sum_of - (sum_of >> 31 << 32)  # an I32
    header = _header(kind, integer(size), integer(stored), integer(checksum), about)
    return Page((header, *content), len(header) + stored, len(header) + size, CODECS[codec.name])


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


def plain_binaries(values: pa.BinaryArray) -> Bytes:
    """Each value behind its length; nulls are left out."""
    if len(values) <= _FEW:  # sooner than Arrow begins
        listed = values.to_pylist()
        return b"".join([part for value in listed if value is not None for part in (_LENGTH(len(value)), value)])
    if values.null_count:
        values = values.drop_null()
    count = len(values)
    if not count:
        return b""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32, count + 1, values.offset * 4)
    lengths = np.diff(ends).astype("<i4", copy=False)
    size = int(ends[-1] - ends[0])
    if (lengths == lengths[0]).all():
        rows = np.empty((count, 4 + int(lengths[0])), np.uint8)
        rows[:, :4] = lengths[:1].view(np.uint8)
        rows[:, 4:] = np.frombuffer(data or b"", np.uint8, size, int(ends[0])).reshape(count, -1)
        return rows.data.cast("B")
    # Arrow puts a value behind another without a look at either, and each is four bytes of a length here.
    fours = pa.py_buffer(np.arange(0, 4 * count + 1, 4, dtype=np.int32))
    prefixes = pa.BinaryArray.from_buffers(pa.binary(), count, [None, fours, pa.py_buffer(lengths)])
    return memoryview(pc.binary_join_element_wise(prefixes, values, b"").buffers()[2])[: size + 4 * count]


def dictionary_indices(indices: Integers, most: int) -> bytes:
    """Places in a dictionary, from 0 to `most`, behind their width."""
    width = max(1, most.bit_length())
    return bytes((width,)) + _bit_packed(indices, width)


def one_index(count: int) -> bytes:
    """The first place in a dictionary, `count` times."""
    return b"\1" + varint(count << 1) + b"\0"


def delta_packed(numbers: npt.NDArray[np.int64]) -> bytes:
    """Numbers, as differences from one to the next above the least of their block, in whole bytes."""
    header = BLOCKS + varint(len(numbers)) + integer(int(numbers[0]))
    if len(numbers) == 1:
        return header
    deltas = numbers[1:] - numbers[:-1]
    if len(deltas) <= BLOCK:
        return header + _delta_block(int(deltas.min()), deltas)
    if (deltas == deltas[0]).all():
        return header + (integer(int(deltas[0])) + _NO_WIDTHS) * -(-len(deltas) // BLOCK)
    blocks = np.arange(0, len(deltas), BLOCK)
    least = np.minimum.reduceat(deltas, blocks).tolist()
    return header + b"".join(map(_delta_block, least, (deltas[at : at + BLOCK] for at in blocks.tolist())))


def _delta_block(least: int, deltas: npt.NDArray[np.int64]) -> bytes:
    above = (deltas - least).view(np.uint64)
    size = _SIZES[int(above.max()).bit_length()]
    if not size:
        return integer(least) + _NO_WIDTHS
    used = -(-len(deltas) // MINIBLOCK)
    widths = bytes((8 * size,)) * used + _NO_WIDTHS[used:]
    return integer(least) + widths + above.astype(f"<u{size}").tobytes().ljust(used * MINIBLOCK * size, b"\0")
