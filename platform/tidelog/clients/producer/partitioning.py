"""The partitioners that a producer can name: librdkafka's, over whole Arrow columns, and tidelog's own.

A null in the answer leaves the record to the sticky partition, which changes from entry to entry: librdkafka's
"random" with sticky partitioning. Source: librdkafka's `rdkafka_msg.c`, `rdfnv1a.c`.
"""

import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.records.key_hashes import U32, murmur2
from tidelog.log.records.partitioners import Partitioner

_PRIME: Final = np.uint32(16_777_619)
_BASIS: Final = np.uint32(2_166_136_261)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)


def crc32(keys: pa.Array) -> U32:
    """CRC-32 of each key; a null key's is that of an empty one, 0."""
    return np.fromiter((zlib.crc32(key or b"") for key in keys.to_pylist()), np.uint32, len(keys))


def fnv1a(keys: pa.Array) -> U32:
    """FNV-1a of each key with the sign dropped, as Sarama and librdkafka have it: `b"kafka"` gives 0xd33c4e1.

    A null key's is that of an empty one.
    """
    keys = pc.fill_null(keys.cast(pa.large_binary()), b"")
    _, offset_buffer, data_buffer = keys.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(keys) + 1, keys.offset * 8)
    data = np.frombuffer(data_buffer or b"", np.uint8)
    lengths = np.diff(offsets)
    hashes = np.full(len(keys), _BASIS, np.uint32)
    # The longest first, so that those with a byte i are a prefix.
    order = np.argsort(-lengths, kind="stable")
    starts, counts = offsets[:-1][order], lengths[order]
    for i in range(int(counts[0]) if len(counts) else 0):
        many = int(np.searchsorted(-counts, -i, side="left"))
        hashes[:many] ^= data[starts[:many] + i]
        hashes[:many] *= _PRIME
    unordered = np.empty_like(hashes)
    unordered[order] = hashes
    return np.abs(unordered.view(np.int32)).view(np.uint32)


def _murmur2(keys: pa.Array) -> U32:
    return murmur2(pc.fill_null(keys, b"") if keys.null_count else keys) & _POSITIVE


def _everywhere(hashed: Callable[[pa.Array], U32]) -> Partitioner:
    """Every key by its hash, a null one as if it were empty."""
    return lambda keys, n: pa.array((hashed(keys) % np.uint32(n)).astype(np.int32))


def _keyed(hashed: Callable[[pa.Array], U32], without: Callable[[pa.Array], pa.Array]) -> Partitioner:
    """Keys by their hash, and those that `without` marks anywhere."""

    def rule(keys: pa.Array, n: int) -> pa.Array:
        mask: npt.NDArray[np.bool_] = np.asarray(without(keys))
        return pa.array((hashed(keys) % np.uint32(n)).astype(np.int32), mask=mask)

    return rule


def _is_empty(keys: pa.Array) -> pa.Array:
    return pc.fill_null(pc.equal(pc.binary_length(keys), 0), True)


_RULES: Final[Mapping[str, str | Partitioner]] = {
    "random": lambda keys, _: pa.nulls(len(keys), pa.int32()),
    "consistent": _everywhere(crc32),
    "consistent_random": _keyed(crc32, _is_empty),
    "murmur2": _everywhere(_murmur2),
    # The log's own name for the Java client's rule: null keys to the sticky partition
    "murmur2_random": "murmur2",
    "fnv1a": _everywhere(fnv1a),
    "fnv1a_random": _keyed(fnv1a, lambda keys: keys.is_null()),
    "murmur3": "murmur3",
    "round_robin": "round_robin",
}


def rule_of(partitioner: str | Callable[..., Any]) -> str | Partitioner:
    """What `partitioners.assign` takes for a producer's `partitioner`: a librdkafka name or a callable."""
    return _RULES[partitioner] if isinstance(partitioner, str) else partitioner
