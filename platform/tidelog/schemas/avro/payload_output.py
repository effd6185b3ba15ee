"""Bytes of many payloads, written at many places at once.

What is written at a place may spill over up to 16 bytes behind its value: a payload is written from its first byte to
its last, so that the next value overwrites what was spilt, and as many bytes are left between payloads.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.schemas.avro.payload_bytes import Mask, Words, words_of
from tidelog.schemas.base.framing import Bytes, Places, cut

SPILL: Final = 16
# Bytes up to this many are copied as words, for all payloads at once; longer ones one after the other.
_SHORT: Final = 48
_TOP_BITS: Final = np.uint64(0x8080808080808080)
_TOP: Final = np.uint64(0x80)
_SEVEN: Final = np.uint64(0x7F)
_NEXT_SEVEN: Final = np.uint64(0x3F80)
_ONE: Final = np.uint64(1)
_STEPS: Final = tuple(
    (np.uint64(stays), np.uint64(moves), np.uint64(by))
    for stays, moves, by in (
        (0x000000000FFFFFFF, 0x00FFFFFFF0000000, 4),
        (0x00003FFF00003FFF, 0x0FFFC0000FFFC000, 2),
        (0x007F007F007F007F, 0x3F803F803F803F80, 1),
    )
)


class PayloadOutput:
    """`size` bytes to write to, and `SPILL` more."""

    def __init__(self, size: int) -> None:
        self.bytes = np.empty(size + 2 * SPILL, np.uint8)
        self.words = words_of(self.bytes)

    def byte(self, at: Places, value: Bytes | int) -> Places:
        """Write a byte each; the places behind them."""
        self.bytes[at] = value
        return at + 1

    def numbers(self, at: Places, values: Words) -> Places:
        """Write numbers, zigzag already, as Avro's `int` and `long`; the places behind them."""
        most = int(values.max()) if len(values) else 0
        if most < 1 << 7:
            self.bytes[at] = values
            return at + 1
        if most < 1 << 14:
            more = values >= _TOP
            self.words[at] = np.where(more, (values & _SEVEN) | _TOP | ((values & _NEXT_SEVEN) << _ONE), values)
            return at + 1 + more
        word = values
        size = np.ones(len(values), np.int64)
        for bits in range(7, min(most.bit_length(), 63), 7):
            size += values >= np.uint64(1 << bits)
        for stays, moves, by in _STEPS:
            word = (word & stays) | ((word & moves) << by)
        shift = np.maximum(72 - 8 * size, 8).astype(np.uint64)  # all but the last byte have their top bit
        self.words[at] = word | np.where(size > 1, _TOP_BITS >> shift, 0)
        long = np.flatnonzero(size > 8) if most >= 1 << 56 else ()
        if len(long):
            self.bytes[at[long] + 7] |= np.uint8(0x80)
            rest = values[long] >> np.uint64(56)
            more = rest >= 0x80
            self.bytes[at[long] + 8] = rest & np.uint64(0x7F) | np.where(more, np.uint64(0x80), np.uint64(0))
            self.bytes[at[long] + 9] = 1
            size[long] = np.where(more, 10, 9)
        return at + size

    def copy(self, at: Places, source: Bytes, starts: Places, sizes: Places) -> Places:
        """Write `sizes` bytes of `source` each; the places behind them. `source` has 8 bytes behind the last piece."""
        words = words_of(source)
        longest = int(sizes.max()) if len(sizes) else 0
        if longest <= _SHORT:
            for done in range(0, longest, 8):
                live = np.flatnonzero(sizes > done) if done else slice(None)
                self.words[at[live] + done] = words[starts[live] + done]
            return at + sizes
        short = sizes <= _SHORT
        for done in range(0, _SHORT, 8):
            live = np.flatnonzero(short & (sizes > done))
            self.words[at[live] + done] = words[starts[live] + done]
        for row in np.flatnonzero(~short).tolist():
            place, start, size = int(at[row]), int(starts[row]), int(sizes[row])
            self.bytes[place : place + size] = source[start : start + size]
        return at + sizes

    def payloads(self, starts: Places, ends: Places) -> pa.BinaryArray:
        """What lies from `starts` to `ends`."""
        return cut(self.bytes, pa.binary(), starts, ends)


def values_of(values: pa.Array, kind: npt.DTypeLike) -> npt.NDArray[np.generic]:
    """The values behind an array of a fixed width, with any value where it is null."""
    buffer = values.buffers()[1]
    if buffer is None or len(values) == 0:
        return np.zeros(len(values), kind)
    return np.frombuffer(buffer, kind)[values.offset : values.offset + len(values)]


def bytes_of(values: pa.Array, null: Mask | None) -> tuple[Bytes, Places, Places]:
    """The bytes behind an array of binary or strings, with 8 more, where each value begins, and how long it is."""
    offsets = np.zeros(len(values) + 1, np.int64)
    if len(values):
        offsets[:] = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    data = values.buffers()[2]
    first, last = int(offsets[0]), int(offsets[-1])
    copied = np.zeros(last - first + 8, np.uint8)
    if data is not None and last > first:
        copied[:-8] = np.frombuffer(data, np.uint8, last - first, first)
    sizes = np.diff(offsets)
    return copied, offsets[:-1] - first, sizes if null is None else np.where(null, 0, sizes)
