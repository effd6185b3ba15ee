"""The bytes of many payloads, read at many places at once: numbers, words and pieces.

A place that a payload does not have is `nowhere`: behind all payloads, where every byte is 0. A cursor only grows, so
one that is at the end of its payload after the last field has read that payload and nothing else.
"""

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.schemas.base.framing import Bytes, Places, cut

Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.signedinteger[Any]]

# Zeros before the first payload and behind the last: what is read around a place never leaves the array.
_FRONT: Final = 16
_BACK: Final = 48
_NOWHERE: Final = 8  # behind the last payload

_TOP_BITS: Final = np.uint64(0x8080808080808080)
_ONES: Final = np.uint64(0x0101010101010101)
_ONE: Final = np.uint64(1)
# A word's seven-bit groups move together in three steps: (what stays, what moves, by how many bits).
_STEPS: Final = tuple(
    (np.uint64(stays), np.uint64(moves), np.uint64(by))
    for stays, moves, by in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)


def words_of(data: Bytes) -> Words:
    """The 8 bytes from each place of `data` on as one number, little-endian; a view that also writes."""
    return np.ndarray((max(0, len(data) - 7),), "<u8", data.data, strides=(1,))


class PayloadBytes:
    """The bytes from the first payload of a batch to its last."""

    def __init__(self, data: Bytes) -> None:
        self.bytes = np.zeros(_FRONT + len(data) + _BACK, np.uint8)
        self.bytes[_FRONT : _FRONT + len(data)] = data
        self.words = words_of(self.bytes)
        self.first = _FRONT
        self.nowhere = _FRONT + len(data) + _NOWHERE

    @cached_property
    def last_bytes(self) -> Places:
        """Where a byte is without its top bit: the last byte of each number, if all are numbers."""
        return np.flatnonzero(self.bytes < 0x80)

    def within(self, at: Places) -> Places:
        """Places, none behind `nowhere`."""
        return np.minimum(at, self.nowhere) if len(at) and at.max() > self.nowhere else at

    def numbers(self, at: Places) -> tuple[Numbers, Places]:
        """The zigzag numbers (`int` and `long`) at places, and the places behind them.

        The numbers are int8, int16 or int64, whichever holds them all. A number of more than 10 bytes, or beyond 64
        bits, has the place `nowhere`.
        """
        first = self.bytes[at]
        many = first >= 0x80
        if not np.count_nonzero(many):
            return _unzigzag(first), self.within(at + 1)
        second = self.bytes[at + 1]
        if not np.count_nonzero(many & (second >= 0x80)):
            # Bytes that are got one by one are there sooner than words from odd places.
            low = (first & np.uint8(0x7F)).astype(np.uint16)
            after = at + 1
            after += many
            return _unzigzag(low | (second * many).astype(np.uint16) << np.uint16(7)), self.within(after)
        word = self.words[at]
        stop = ~word & _TOP_BITS
        used = (stop & (~stop + _ONE)) * np.uint64(2) - _ONE  # all bits up to the first byte without its top bit
        value = word & used
        for stays, moves, by in _STEPS:
            value = (value & stays) | ((value & moves) >> by)
        size = ((used & _ONES) * _ONES) >> np.uint64(56)
        after = at + size.astype(np.int64)
        long = np.flatnonzero(stop == 0)
        if len(long):
            ninth, tenth = self.bytes[at[long] + 8], self.bytes[at[long] + 9]
            more = ninth >= 0x80
            value[long] |= (ninth & np.uint8(0x7F)).astype(np.uint64) << np.uint64(56)
            value[long] |= np.where(more, tenth, 0).astype(np.uint64) << np.uint64(63)
            after[long] = np.where(more & (tenth > 1), self.nowhere, at[long] + np.where(more, 10, 9))
        return _unzigzag(value), self.within(after)

    def pieces(self, kind: pa.DataType, starts: Places, sizes: Places) -> pa.Array:
        """Bytes from `starts` on, as an array of `kind` (binary or string, unchecked). Places only grow."""
        return cut(self.bytes, kind, starts, starts + sizes)


def _unzigzag(value: npt.NDArray[np.unsignedinteger[Any]]) -> Numbers:
    one = value.dtype.type(1)
    return ((value >> one) ^ -(value & one)).view(f"i{value.dtype.itemsize}")


def zigzag(values: Places) -> Words:
    """Numbers as Avro's `long` has them before they are cut into bytes."""
    return ((values << 1) ^ (values >> 63)).view(np.uint64)
