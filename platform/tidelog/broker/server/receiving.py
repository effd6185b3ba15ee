"""What a client sends, cut into frames. Memory grows with what has come, never with what was announced.

A client whose frames were large before gets as much at once for the next one, up to `TRUSTED_ROOM`, so that it is not
moved. Room is not filled with zeros first: a frame is handed out when all of it has come.
"""

import asyncio
import select
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from tidelog.broker.wire.frames import LENGTH, REQUEST_MAX, size_of

# What is read at once of small frames.
READ_AT_ONCE: Final = 256 * 1024
# The least room for a frame that did not come at once, unless it is smaller.
LEAST_ROOM = 64 * 1024
# The most room at once for a frame of a client that has sent as large ones.
TRUSTED_ROOM: Final = 2 * 1024 * 1024
# Room grows to this multiple of what has come, so that a large frame is copied a few times at most.
_GROWTH = 4
# What a poll says of a socket whose other end is closed; the first of them is Linux's.
_GONE: Final = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


class FrameReceiver:
    """One connection's frames: `space` says where its next bytes go, `received` takes them.

    `scratch` is where small frames are read. The connections of one loop share it: the loop hands each read out before
    the next one. Those of another loop have their own.
    """

    __slots__ = ("_filled", "_frame", "_most_bytes", "_scratch", "_setting", "_size", "_start", "_trusted")

    def __init__(self, most_bytes: int, scratch: memoryview) -> None:
        self._scratch = scratch
        self.bound(most_bytes)
        self._start = b""  # of a length, which has come in part
        # The frame that has come in part: its size, its bytes so far, and room for more.
        self._frame: npt.NDArray[np.uint8] | None = None
        self._size = 0
        self._trusted = LEAST_ROOM
        self._filled = 0

    @property
    def room(self) -> int:
        """The bytes of memory that the frame takes which has come in part."""
        return 0 if self._frame is None else len(self._frame)

    def may_be_one(self, count: int) -> bool:
        """Whether the `count` bytes that have just come may be a whole frame."""
        return self._frame is None and not self._start and count - LENGTH.size <= self._most_bytes

    def bound(self, most_bytes: int, setting: str = REQUEST_MAX) -> None:
        """The most that a frame may have from now on, and the setting that says so."""
        self._most_bytes, self._setting = most_bytes, setting

    def space(self) -> memoryview:
        """Where the next bytes go: a large frame's own place, or the one that connections share."""
        frame = self._frame
        if frame is None:
            return self._scratch
        if self._filled == len(frame):
            larger = np.empty(min(self._size, _GROWTH * self._filled), np.uint8)
            larger[: self._filled] = frame
            frame = self._frame = larger
        return frame.data[self._filled :]

    def received(self, count: int) -> Iterable[memoryview]:
        """The frames that are whole, now that `count` bytes have come. Raises `MalformedRequestError`."""
        frame = self._frame
        if frame is None:
            if not self._start and count > LENGTH.size:
                (size,) = LENGTH.unpack_from(self._scratch)
                if size == count - LENGTH.size and size <= self._most_bytes:  # one frame, as most are
                    return (memoryview(bytes(self._scratch[LENGTH.size : count])),)
            return self._cut(self._scratch[:count])
        self._filled += count
        if self._filled < self._size:
            return ()
        self._frame = None
        self._trusted = min(max(self._trusted, self._size), TRUSTED_ROOM)
        return (frame.data.toreadonly(),)  # as the codec demands

    def drop(self) -> None:
        """Drop what has come in part."""
        self._frame, self._start = None, b""

    def _cut(self, data: memoryview) -> Iterator[memoryview]:
        at = 0
        while at < len(data):
            missing = LENGTH.size - len(self._start)
            start = self._start + data[at : at + missing]
            at += missing
            if len(start) < LENGTH.size:
                self._start = start
                return
            self._start = b""
            size = size_of(start, self._most_bytes, self._setting)
            end = at + size
            if end > len(data):
                self._begin(size, data[at:])
                return
            yield memoryview(bytes(data[at:end]))
            at = end

    def _begin(self, size: int, data: memoryview) -> None:
        """Keep what has come of a frame of `size` bytes."""
        self._size, self._filled = size, len(data)
        self._frame = np.empty(min(size, max(self._trusted, _GROWTH * len(data))), np.uint8)
        self._frame.data[: len(data)] = data


def has_gone(transport: asyncio.Transport) -> bool:
    """Whether the other end has closed the connection, of a transport that does not read and so would not notice."""
    socket = transport.get_extra_info("socket")
    if socket is None or socket.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(socket.fileno(), _GONE)
    return bool(poll.poll(0))
