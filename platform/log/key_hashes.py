"""Kafka's key hashes over whole Arrow columns: no Python loop per record.

Both hashes eat a key four bytes at a time. So the keys of a block are ordered by their number of words, longest
first, and step i folds word i into the hashes of all keys that still have one: a prefix of the block.
"""

from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.log.errors import InvalidRecordError

U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]

# Rows hashed at once: their temporaries stay in the second-level cache.
_BLOCK: Final = 1 << 15
# Fewer keys than this with more words left than this are finished one by one, so that one key of a megabyte
# does not cost a numpy step per word.
_STRAGGLERS: Final = 64


class _WordHash(Protocol):
    """A hash over 32-bit little-endian words; arrays are changed in place where nothing is returned."""

    def start(self, lengths: U32) -> U32:
        """Return the hashes before the first word, by the keys' lengths in bytes."""

    def mix(self, words: U32) -> None:
        """Scramble words, each by itself."""

    def fold(self, hashes: U32, mixed: U32) -> None:
        """Take one mixed word into each hash."""

    def fold_one(self, value: int, mixed: list[int]) -> int:
        """Take all mixed words of one key into its hash."""

    def tail(self, hashes: U32, rests: U32, counts: U32) -> None:
        """Take the last `counts` bytes (0 to 3) into each hash; `rests` holds them as a number."""

    def finish(self, hashes: U32, lengths: U32) -> None:
        """Scramble the result."""


class _Murmur2:
    """Kafka's `Utils.murmur2`: Austin Appleby's MurmurHash2 with Kafka's seed."""

    SEED = np.uint32(0x9747B28C)
    M = np.uint32(0x5BD1E995)

    def start(self, lengths: U32) -> U32:
        return lengths ^ self.SEED

    def mix(self, words: U32) -> None:
        words *= self.M
        words ^= words >> np.uint32(24)
        words *= self.M

    def fold(self, hashes: U32, mixed: U32) -> None:
        hashes *= self.M
        hashes ^= mixed

    def fold_one(self, value: int, mixed: list[int]) -> int:
        m = int(self.M)
        for word in mixed:
            value = (value * m & 0xFFFFFFFF) ^ word
        return value

    def tail(self, hashes: U32, rests: U32, counts: U32) -> None:
        hashes ^= rests
        np.multiply(hashes, self.M, out=hashes, where=counts != 0)

    def finish(self, hashes: U32, lengths: U32) -> None:
        del lengths
        hashes ^= hashes >> np.uint32(13)
        hashes *= self.M
        hashes ^= hashes >> np.uint32(15)


class _Murmur3:
    """MurmurHash3_x86_32 with seed 0, what `mmh3.hash` computes."""

    C1 = np.uint32(0xCC9E2D51)
    C2 = np.uint32(0x1B873593)
    STEP = np.uint32(0xE6546B64)

    def start(self, lengths: U32) -> U32:
        return np.zeros_like(lengths)

    def mix(self, words: U32) -> None:
        words *= self.C1
        _rotate_left(words, 15)
        words *= self.C2

    def fold(self, hashes: U32, mixed: U32) -> None:
        hashes ^= mixed
        _rotate_left(hashes, 13)
        hashes *= np.uint32(5)
        hashes += self.STEP

    def fold_one(self, value: int, mixed: list[int]) -> int:
        step = int(self.STEP)
        for word in mixed:
            value ^= word
            value = (value << 13 | value >> 19) & 0xFFFFFFFF
            value = (value * 5 + step) & 0xFFFFFFFF
        return value

    def tail(self, hashes: U32, rests: U32, counts: U32) -> None:
        del counts  # no bytes left are a rest of 0, which mixes to 0 and changes nothing
        self.mix(rests)
        hashes ^= rests

    def finish(self, hashes: U32, lengths: U32) -> None:
        hashes ^= lengths
        hashes ^= hashes >> np.uint32(16)
        hashes *= np.uint32(0x85EBCA6B)
        hashes ^= hashes >> np.uint32(13)
        hashes *= np.uint32(0xC2B2AE35)
        hashes ^= hashes >> np.uint32(16)


def murmur2(keys: pa.Array | pa.ChunkedArray) -> U32:
    """Kafka's murmur2 of each key, before masking.

    `keys`: binary or string of any width, view, fixed-size or dictionary type. The result has one number per key; a
    null key's is 0. `murmur2(pa.array([b"abc"]))` is `[479470107]`. Raises InvalidRecordError for other types.
    Source: `org.apache.kafka.common.utils.Utils.murmur2`.
    """
    return _hash(keys, _Murmur2())


def murmur3(keys: pa.Array | pa.ChunkedArray) -> U32:
    """MurmurHash3 (x86, 32 bits, seed 0) of each key: `mmh3.hash(key, signed=False)`; a null key's is 0."""
    return _hash(keys, _Murmur3())


def null_mask(keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_] | None:
    """Return which of `keys` are null, or None when none is."""
    chunks = list(_plain_chunks(keys))
    if not any(chunk.null_count for chunk in chunks):
        return None
    return np.concatenate([chunk.is_null().to_numpy(zero_copy_only=False) for chunk in chunks])


def _rotate_left(words: U32, bits: int) -> None:
    high = words >> np.uint32(32 - bits)
    words <<= np.uint32(bits)
    words |= high


def _plain_chunks(keys: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    """Yield `keys` as arrays of type null, or of bytes with 32- or 64-bit offsets."""
    for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
        array = chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
        kind = array.type
        if (
            pa.types.is_null(kind)
            or pa.types.is_binary(kind)
            or pa.types.is_string(kind)
            or pa.types.is_large_binary(kind)
            or pa.types.is_large_string(kind)
        ):
            yield array
        elif pa.types.is_binary_view(kind) or pa.types.is_string_view(kind) or pa.types.is_fixed_size_binary(kind):
            yield array.cast(pa.large_binary())
        else:
            raise InvalidRecordError(
                f"Keys of type {chunk.type} can't be hashed: a key is a string of bytes. Cast the key column to "
                "binary or string."
            )


def _hash(keys: pa.Array | pa.ChunkedArray, function: _WordHash) -> U32:
    hashes = [_hash_array(array, function) for array in _plain_chunks(keys)]
    return hashes[0] if len(hashes) == 1 else np.concatenate([np.zeros(0, np.uint32), *hashes])


def _hash_array(array: pa.Array, function: _WordHash) -> U32:
    hashes = np.zeros(len(array), np.uint32)
    if array.null_count == len(array):
        return hashes
    _, offset_buffer, data_buffer = array.buffers()
    large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    wide = np.dtype(np.int64 if large else np.int32)
    offsets = np.frombuffer(offset_buffer, wide, count=len(array) + 1, offset=array.offset * wide.itemsize)
    data = np.frombuffer(data_buffer or b"", np.uint8)
    shift = 0
    if offsets[0] < 4 or len(data) < 4:
        # A key's last bytes are read as the word that ends with them: give the first keys room in front.
        shift = 4
        data = np.concatenate([np.zeros(shift, np.uint8), data])
    # Every word of the data, at every byte: nothing is copied, the words overlap.
    words = np.ndarray((len(data) - 3,), np.dtype("<u4"), buffer=data, strides=(1,))
    for first in range(0, len(array), _BLOCK):
        bounds = offsets[first : first + _BLOCK + 1].astype(np.int64) + shift
        hashes[first : first + _BLOCK] = _hash_block(words, bounds[:-1], bounds[1:], function)
    if array.null_count:
        hashes[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes


def _hash_block(words: U32, starts: I64, ends: I64, function: _WordHash) -> U32:
    """Hash the keys at bytes [starts, ends) of the data whose overlapping words are `words`."""
    counts = (ends - starts) >> 2
    most = int(counts.max())
    order: I64 | None = None
    if most != int(counts.min()):
        # numpy sorts 16-bit numbers by radix
        rank = most - counts
        order = np.argsort(rank.astype(np.uint16) if most < 1 << 16 else rank, kind="stable")
        starts, ends, counts = starts[order], ends[order], counts[order]
    # active[i]: how many keys have a word i
    active = len(counts) - np.cumsum(np.bincount(counts, minlength=most + 1))
    lengths = (ends - starts).astype(np.uint32)
    hashes = function.start(lengths)
    for i in range(most):
        many = int(active[i])
        if many < _STRAGGLERS < most - i:
            _finish_stragglers(words, starts[:many] + 4 * i, counts[:many] - i, hashes, function)
            break
        mixed = words[starts[:many] + 4 * i]
        function.mix(mixed)
        function.fold(hashes[:many], mixed)
    rest_counts = lengths & np.uint32(3)
    # The bytes left over stand in the upper part of the word that ends with the key. Two shifts, because one of
    # 32 bits is not defined.
    rests = (words[ends - 4] >> np.uint32(8)) >> (np.uint32(24) - np.uint32(8) * rest_counts)
    function.tail(hashes, rests, rest_counts)
    function.finish(hashes, lengths)
    if order is None:
        return hashes
    unordered = np.empty_like(hashes)
    unordered[order] = hashes
    return unordered


def _finish_stragglers(words: U32, starts: I64, counts: I64, hashes: U32, function: _WordHash) -> None:
    """Fold the last `counts` words, from byte `starts`, into the first hashes, one key after the other."""
    for row, (start, count) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
        mixed = words[start : start + 4 * count : 4].copy()
        function.mix(mixed)
        hashes[row] = function.fold_one(int(hashes[row]), mixed.tolist())
