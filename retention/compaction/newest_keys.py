"""The newest offset of each key, over whole Arrow columns: exact keys, no digests that could collide."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Offsets = npt.NDArray[np.int64]

# What a key costs beyond its own bytes: its offset, its bounds, and Arrow's table of hashes while it looks keys up.
KEY_OVERHEAD_BYTES: Final = 64
# Bytes of keys that wait at most, or as many as are known: each time all of those are hashed again.
_LEAST_WAITING_BYTES: Final = 4 * 1024 * 1024


class NewestKeys:
    """{key: its newest offset} of the records added so far, in memory: the caller compares `size` with its limit."""

    def __init__(self) -> None:
        self._keys = pa.array([], pa.binary())
        self._offsets: Offsets = np.zeros(0, np.int64)
        self._waiting: list[tuple[pa.Array, Offsets]] = []
        self._waiting_bytes = 0

    @property
    def size(self) -> int:
        """The bytes that it holds, about."""
        return int(self._keys.nbytes) + KEY_OVERHEAD_BYTES * len(self._offsets) + self._waiting_bytes

    @property
    def keys(self) -> pa.Array:
        """Each key once, of type binary."""
        self._take_in()
        return self._keys

    @property
    def offsets(self) -> Offsets:
        """The newest offset of each of `keys`."""
        self._take_in()
        return self._offsets

    def add(self, keys: pa.Array, offsets: Offsets) -> None:
        """Take records, in any order; `keys` of type binary. Null keys count for nothing."""
        if keys.null_count:
            there = keys.is_valid()
            keys, offsets = keys.filter(there), offsets[there.to_numpy(zero_copy_only=False)]
        self._waiting.append((keys, offsets))
        self._waiting_bytes += keys.nbytes + offsets.nbytes
        if self._waiting_bytes >= max(_LEAST_WAITING_BYTES, self._keys.nbytes):
            self._take_in()

    def newest(self, keys: pa.Array) -> Offsets:
        """The newest offset of each of `keys` (binary), -1 where the key was never added."""
        places = pc.fill_null(pc.index_in(keys, value_set=self.keys, skip_nulls=True), -1).to_numpy()
        newest: Offsets = np.append(self._offsets, np.int64(-1))[places]
        return newest

    def _take_in(self) -> None:
        if not self._waiting:
            return
        # The dictionary is in the order of first appearance, so keys that are known keep their places.
        encoded = pa.concat_arrays([self._keys, *(keys for keys, _ in self._waiting)]).dictionary_encode()
        count = len(self._offsets)
        newest = np.full(len(encoded.dictionary), -1, np.int64)
        newest[:count] = self._offsets
        np.maximum.at(
            newest, encoded.indices.to_numpy()[count:], np.concatenate([offsets for _, offsets in self._waiting])
        )
        self._keys, self._offsets = encoded.dictionary, newest
        self._waiting, self._waiting_bytes = [], 0
