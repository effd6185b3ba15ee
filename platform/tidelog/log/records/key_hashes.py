"""Key hashes over whole Arrow columns: Kafka's murmur2 without a Python loop per record, murmur3 by mmh3.

murmur2 eats a key four bytes at a time. So the keys of a block are ordered by their number of words, longest
first, and step i folds word i into the hashes of all keys that still have one: a prefix of the block.
"""

from typing import Final

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]

# Rows hashed at once: their temporaries stay in the second-level cache.
_BLOCK: Final = 1 << 15
# Fewer keys than this with more words left than this are finished one by one, so that one key of a megabyte
# does not cost a numpy step per word.
_STRAGGLERS: Final = 64

_SEED: Final = np.uint32(0x9747B28C)
_M: Final = np.uint32(0x5BD1E995)


def _mix(words: U32) -> None:
    """Scramble words in place, each by itself."""
    words *= _M
    words ^= words >> np.uint32(24)
    words *= _M


def murmur2(keys: pa.Array | pa.ChunkedArray) -> U32:
    """Kafka's murmur2 of each key, before masking.

    `keys`: of type binary or null. The result has one number per key; a null key's is 0.
    `murmur2(pa.array([b"abc"]))` is `[479470107]`. Source: `org.apache.kafka.common.utils.Utils.murmur2`.
    """
    chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    hashes = [_hash_array(array) for array in chunks]
    return hashes[0] if len(hashes) == 1 else np.concatenate([np.zeros(0, np.uint32), *hashes])


def murmur3(keys: pa.Array | pa.ChunkedArray) -> U32:
    """MurmurHash3 (x86, 32 bits, seed 0) of each key: `mmh3.hash(key, signed=False)`; a null key's is 0."""
    hashes = [mmh3.hash(key, signed=False) if key is not None else 0 for key in keys.to_pylist()]
    return np.array(hashes, np.uint32)


def _hash_array(array: pa.Array) -> U32:
    hashes = np.zeros(len(array), np.uint32)
    if array.null_count == len(array):
        return hashes
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32, len(array) + 1, array.offset * 4)
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
        hashes[first : first + _BLOCK] = _hash_block(words, bounds[:-1], bounds[1:])
    if array.null_count:
        hashes[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes


def _hash_block(words: U32, starts: I64, ends: I64) -> U32:
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
    hashes = lengths ^ _SEED
    for i in range(most):
        many = int(active[i])
        if many < _STRAGGLERS < most - i:
            _finish_stragglers(words, starts[:many] + 4 * i, counts[:many] - i, hashes)
            break
        mixed = words[starts[:many] + 4 * i]
        _mix(mixed)
        hashes[:many] *= _M
        hashes[:many] ^= mixed
    rest_counts = lengths & np.uint32(3)
    # The bytes left over are in the upper part of the word that ends with the key. Two shifts, because one of
    # 32 bits is not defined.
    rests = (words[ends - 4] >> np.uint32(8)) >> (np.uint32(24) - np.uint32(8) * rest_counts)
    hashes ^= rests
    np.multiply(hashes, _M, out=hashes, where=rest_counts != 0)
    hashes ^= hashes >> np.uint32(13)
    hashes *= _M
    hashes ^= hashes >> np.uint32(15)
    if order is None:
        return hashes
    unordered = np.empty_like(hashes)
    unordered[order] = hashes
    return unordered


def _finish_stragglers(words: U32, starts: I64, counts: I64, hashes: U32) -> None:
    """Fold the last `counts` words, from byte `starts`, into the first hashes, one key after the other."""
    for row, (start, count) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
        mixed = words[start : start + 4 * count : 4].copy()
        _mix(mixed)
        value, m = int(hashes[row]), int(_M)
        for word in mixed.tolist():
            value = (value * m & 0xFFFFFFFF) ^ word
        hashes[row] = value
