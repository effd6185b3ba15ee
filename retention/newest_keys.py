"""The newest offset of each key, over whole Arrow columns: exact keys, no digests that could collide."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Offsets = npt.NDArray[np.int64]

# What a key costs beyond its own bytes: its offset, its bounds, and Arrow's table of hashes while it looks keys up.
KEY_OVERHEAD_BYTES: Final = 64


class NewestKeys:
    """{key: its newest offset} of the records added so far. Null keys count for nothing.

    Stays small by itself only in so far as keys repeat: whoever adds asks for `size` (bytes, about).
    """

    def __init__(self) -> None:
        self.keys = pa.array([], pa.binary())
        self.offsets: Offsets = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def size(self) -> int:
        """The bytes that it holds, about."""
        return int(self.keys.nbytes) + KEY_OVERHEAD_BYTES * len(self)

    def add(self, keys: pa.Array, offsets: Offsets) -> None:
        """Take records, `keys` of type binary without nulls; in any order."""
        # The dictionary is in the order of first appearance, so keys that are known keep their places.
        encoded = pa.concat_arrays([self.keys, keys]).dictionary_encode()
        known = len(self)
        newest = np.full(len(encoded.dictionary), -1, np.int64)
        newest[:known] = self.offsets
        np.maximum.at(newest, encoded.indices.to_numpy()[known:], offsets)
        self.keys, self.offsets = encoded.dictionary, newest

    def newest(self, keys: pa.Array) -> Offsets:
        """The newest offset of each of `keys` (binary), -1 where the key was never added."""
        places = pc.fill_null(pc.index_in(keys, value_set=self.keys, skip_nulls=True), -1).to_numpy()
        newest: Offsets = np.append(self.offsets, np.int64(-1))[places]
        return newest
