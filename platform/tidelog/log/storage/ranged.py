"""A file that is read by requests for ranges: as few of them as may be, since each costs money and a round trip."""

import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

# A request brings this much at least.
READ_AT_LEAST_BYTES = 256 * 1024
# A file of a known size is read whole up to this; of a larger one its end comes first, where Parquet says the rest.
_WHOLE_BYTES = 1024 * 1024
_END_BYTES = 64 * 1024
_END_SHARE = 1024
# Ranges that lie no farther apart than this are read together, and of more than this at once nothing is held.
GAP_BYTES = 256 * 1024
_AHEAD_BYTES = 64 * 1024 * 1024


@runtime_checkable
class ReadsAhead(Protocol):
    """A file of a store where each read is a request: it wants to know what is read next."""

    def will_read(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Have these ranges [start, end), which rise, brought with as few requests as may be.

        What was brought so for an earlier call is let go.
        """


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of an object from `start` on; the whole object's size and tag, as the answer said."""

    start: int
    data: bytes
    size: int
    e_tag: str | None

    def holds(self, start: int, end: int) -> bool:
        """Whether [start, end) lies inside."""
        return self.start <= start <= end <= self.start + len(self.data)


class Ranges(Protocol):
    """Where a file's bytes come from."""

    def read_range(self, path: str, start: int, end: int, e_tag: str | None) -> Piece:
        """The bytes [start, end) of the object, or up to its end; of the one with this tag, if one is given."""


def first_range(size: int | None) -> tuple[int, int]:
    """What to read when a file of this size (None: unknown) is opened.

    >>> first_range(None), first_range(1000), first_range(2_000_000), first_range(1 << 30)
    ((0, 262144), (0, 1000), (1934464, 2000000), (1072693248, 1073741824))
    """
    if size is None:
        return 0, READ_AT_LEAST_BYTES
    return 0 if size <= _WHOLE_BYTES else size - max(_END_BYTES, size // _END_SHARE), size


def together(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges that rise, those that lie close together as one.

    >>> together([(4, 10), (10, 20), (30, 50), (900_000, 900_001)])
    [(4, 50), (900000, 900001)]
    """
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and start - joined[-1][1] <= GAP_BYTES:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


class RangedFile(io.RawIOBase):
    """One version of an object as a file to read. `first`: what opening it has brought.

    Not `io.BufferedReader`: that one splits a large read into two requests.
    """

    def __init__(self, source: Ranges, path: str, first: Piece) -> None:
        self._source = source
        self._path = path
        self._size = first.size
        self._e_tag = first.e_tag
        self._position = 0
        self._first = first
        self._last = first  # of reads that were not announced
        self._ahead: list[Piece] = []

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """The position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go somewhere; costs nothing."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def will_read(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Bring these ranges now."""
        self._ahead = []
        wanted = [(start, end) for start, end in together(ranges) if self._held(start, end) is None]
        if sum(end - start for start, end in wanted) <= _AHEAD_BYTES:
            self._ahead = [self._fetch(start, end) for start, end in wanted]

    def read(self, size: int | None = -1, /) -> bytes:
        """Exactly `size` bytes, or all up to the end; less at the end only."""
        start = self._position
        end = self._size if size is None or size < 0 else min(start + size, self._size)
        if end <= start:
            return b""
        piece = self._held(start, end)
        if piece is None:
            piece = self._fetch(start, min(max(end, start + READ_AT_LEAST_BYTES), self._size))
            if len(piece.data) > end - start:
                self._last = piece
        self._position = end
        if len(piece.data) == end - start:
            return piece.data
        return piece.data[start - piece.start : end - piece.start]

    def _held(self, start: int, end: int) -> Piece | None:
        return next((p for p in (self._last, *self._ahead, self._first) if p.holds(start, end)), None)

    def _fetch(self, start: int, end: int) -> Piece:
        return self._source.read_range(self._path, start, end, self._e_tag)

    def readall(self) -> bytes:
        """All up to the end."""
        return self.read()

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer; how many bytes it got."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)
