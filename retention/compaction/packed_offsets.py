"""Delta-encoded offset lists: rising offsets as differences, in as few bytes as the largest of them takes."""

from typing import Final

import numpy as np

from tidelog.retention.compaction.newest_keys import Offsets

_WIDTHS: Final = (np.dtype("<u1"), np.dtype("<u2"), np.dtype("<u4"), np.dtype("<u8"))


def pack(offsets: Offsets) -> bytes:
    """Rising offsets as bytes: `unpack` gives them back. Some 1 or 2 bytes an offset, where they are close."""
    if not len(offsets):
        return b""
    steps = np.diff(offsets)
    largest = int(steps.max()) if len(steps) else 0
    width = next(w for w in _WIDTHS if largest <= np.iinfo(w).max)
    return bytes([width.itemsize]) + int(offsets[0]).to_bytes(8, "little") + steps.astype(width).tobytes()


def unpack(packed: bytes) -> Offsets:
    """The offsets of `pack`."""
    if not packed:
        return np.zeros(0, np.int64)
    steps = np.frombuffer(packed, np.dtype(f"<u{packed[0]}"), offset=9).astype(np.int64)
    return np.cumsum(np.concatenate([[int.from_bytes(packed[1:9], "little")], steps]))
