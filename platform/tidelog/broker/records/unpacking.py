"""The records of a batch, unpacked up to a bound: a small batch that unpacks to gigabytes never gets the memory."""

import struct
import zlib
from typing import Final

import cramjam
import numpy as np
import pyarrow as pa

from tidelog.broker.records.batches import CODECS, GZIP, HEADER, LZ4, NONE, SNAPPY, ZSTD, header_of, sealed
from tidelog.broker.records.errors import CorruptBatchError
from tidelog.log.base.native_code import native_module

NATIVE_LZ4, _ = native_module("tidelog.broker.records.native_lz4", "native_lz4.pyx")
_LZ4: Final = pa.Codec("lz4")
# At most this much is unpacked at once.
_MOST_AT_ONCE: Final = 4 * 1024 * 1024
_LEAST_AT_ONCE: Final = 64 * 1024
_LEAST_SHORT: Final = 16 * 1024
# What an LZ4 frame of up to this size unpacks to is added up sooner than a stream begins.
_MOST_ADDED_UP: Final = 32 * 1024
# What a Zstandard frame begins with, and the longest head that it has.
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_HEAD: Final = 18
# A stream of Java's Snappy library: this, two versions, then blocks of which each has its length before it.
_XERIAL: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER_BYTES = 16
_BLOCK = struct.Struct(">I")
# Three bytes copy 64 at most, so that a block which claims more lies.
_MOST_SNAPPY_GROWTH = 22
# Producers write one member; each further one costs a copy of all that follows it.
_MOST_MEMBERS = 64
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
# More than any batch of a client has: its size is an INT.
_MOST_REPACKED: Final = 2**31 - 1


def unpacked(codec: int, packed: memoryview, most_bytes: int) -> bytes | memoryview:
    """The bytes that were packed by the codec; raises `CorruptBatchError` where they are more than `most_bytes`."""
    if codec == NONE:
        return packed
    try:
        if codec == GZIP:
            return _gunzipped(packed, most_bytes)
        if codec == SNAPPY:
            return _unsnapped(packed, most_bytes)
        if codec == LZ4 and (data := _at_its_size(packed, most_bytes)) is not None:
            return data
        if codec == ZSTD and (short := _short(packed, most_bytes)) is not None:
            return short
        if codec in (LZ4, ZSTD):
            return _streamed(CODECS[codec], packed, most_bytes)
    except (zlib.error, cramjam.DecompressionError, struct.error, OSError) as e:
        raise CorruptBatchError(f"A record batch can't be unpacked as {CODECS[codec]}: {e}.") from e
    raise CorruptBatchError(f"A record batch is packed by the unknown codec {codec}.")


def repacked(batch: bytes | memoryview, codec: int) -> bytes | memoryview:
    """A batch with its records packed by a codec, all else as it was. It was unpacked before, within bounds."""
    header = header_of(batch)
    if header.codec == codec:
        return batch
    packed = memoryview(batch)[HEADER.size :]
    return sealed(header, unpacked(header.codec, packed, _MOST_REPACKED), codec)


def _too_large(codec: int, packed: memoryview, most_bytes: int) -> CorruptBatchError:
    return CorruptBatchError(
        f"A record batch of {len(packed)} bytes, packed by {CODECS[codec]}, unpacks to more than {most_bytes}: it is"
        " refused as what was made to fill the memory. Make the producer's batches smaller."
    )


def _at_once(packed: memoryview) -> int:
    return min(max(_LEAST_AT_ONCE, 8 * len(packed)), _MOST_AT_ONCE)


def _gunzipped(packed: memoryview, most_bytes: int) -> bytes:
    """One or more members, as Java reads them."""
    pieces, size, step, rest = [], 0, _at_once(packed), packed
    for _ in range(_MOST_MEMBERS):
        member = zlib.decompressobj(_GZIP_WINDOW)
        while not member.eof:
            piece = member.decompress(rest, min(step, most_bytes - size + 1))
            rest = memoryview(member.unconsumed_tail)
            size += len(piece)
            if size > most_bytes:
                raise _too_large(GZIP, packed, most_bytes)
            if not piece and not member.eof:
                raise zlib.error("it ends early")
            pieces.append(piece)
        rest = memoryview(member.unused_data)
        if not rest:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    raise zlib.error(f"it has more than {_MOST_MEMBERS} members")


def _at_its_size(packed: memoryview, most_bytes: int) -> bytes | None:
    """What a small LZ4 frame unpacks to: beginning a stream takes longer than all of it. None where it is not plain."""
    if NATIVE_LZ4 is None or len(packed) > _MOST_ADDED_UP:
        return None
    size = NATIVE_LZ4.unpacked_size(packed, min(most_bytes, _MOST_AT_ONCE))
    if size < 0:
        return None
    try:
        data: bytes = _LZ4.decompress(packed, size, asbytes=True)
    except OSError:  # the stream says why
        return None
    return data


def _short(packed: memoryview, most_bytes: int) -> memoryview | None:
    """What Zstandard unpacks to, where that is little, or claimed: beginning a stream takes longer than all of it."""
    claimed, usual = _claimed_by_zstd(packed), max(_LEAST_SHORT, 8 * len(packed))
    size = claimed if 0 < claimed <= 2 * usual else usual  # it may be a lie
    data = np.empty(min(size, most_bytes), np.uint8).data
    try:
        return data[: cramjam.zstd.decompress_into(packed, data)]
    except cramjam.DecompressionError:
        return None


def _claimed_by_zstd(packed: memoryview) -> int:
    """The bytes that a Zstandard frame says it unpacks to; 0 where it says nothing. Source: RFC 8878, 3.1.1.1."""
    head = packed[:_ZSTD_HEAD].tobytes()
    if len(head) < _ZSTD_HEAD or not head.startswith(_ZSTD_MAGIC):
        return 0
    descriptor = head[4]
    is_single, dictionary = bool(descriptor & 0x20), (0, 1, 2, 4)[descriptor & 3]
    count = (int(is_single), 2, 4, 8)[descriptor >> 6]
    at = 5 + (not is_single) + dictionary
    return int.from_bytes(head[at : at + count], "little") + (256 if count == 2 else 0)


def _streamed(name: str, packed: memoryview, most_bytes: int) -> bytes:
    pieces, size, step = [], 0, _at_once(packed)
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(packed)), name) as stream:
        while piece := stream.read(min(step, most_bytes - size + 1)):
            size += len(piece)
            if size > most_bytes:
                raise _too_large(CODECS.index(name), packed, most_bytes)
            pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _unsnapped(packed: memoryview, most_bytes: int) -> bytes:
    """Raw Snappy, or blocks of it in the frame of Java's library; each block says its size, which is checked first."""
    if not _is_xerial(packed):
        return _block(packed, packed, most_bytes)
    pieces, size, at = [], 0, _XERIAL_HEADER_BYTES
    while at < len(packed):
        if _is_xerial(packed[at:]):  # streams may follow one another
            at += _XERIAL_HEADER_BYTES
            continue
        (length,) = _BLOCK.unpack_from(packed, at)
        at += _BLOCK.size
        if at + length > len(packed):
            raise cramjam.DecompressionError("a block ends early")
        pieces.append(_block(packed[at : at + length], packed, most_bytes - size))
        size += len(pieces[-1])
        at += length
    return b"".join(pieces)


def _is_xerial(packed: memoryview) -> bool:
    return packed[: len(_XERIAL)].tobytes() == _XERIAL


def _block(block: memoryview, packed: memoryview, most_bytes: int) -> bytes:
    claimed = cramjam.snappy.decompress_raw_len(block)
    if claimed > _MOST_SNAPPY_GROWTH * len(block):
        raise cramjam.DecompressionError(f"{len(block)} bytes claim to hold {claimed}")
    if claimed > most_bytes:
        raise _too_large(SNAPPY, packed, most_bytes)
    return bytes(cramjam.snappy.decompress_raw(block))
