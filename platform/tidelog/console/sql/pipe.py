"""Messages between the console and the process that runs a query: frames with a length before them."""

import struct
from typing import IO, Any, Final

import orjson

_LENGTH: Final = struct.Struct(">I")
# No message is larger: what a process says that has gone wild is not held.
MOST_BYTES: Final = 64 << 20
# Bytes that one message asks for of a file at most.
READ_BYTES: Final = 8 << 20


class FrameTooLargeError(Exception):
    """A message that no well-behaved process sends."""


def send(stream: IO[bytes], message: Any) -> None:
    """Send a message: bytes as they are, all else as JSON."""
    data = message if isinstance(message, bytes) else orjson.dumps(message)
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes], most: int = MOST_BYTES) -> bytes:
    """The next message, of `most` bytes. Raises EOFError where the other side is gone, and `FrameTooLargeError`."""
    (size,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    if size > most:
        raise FrameTooLargeError(f"a message of {size} bytes")
    return _exactly(stream, size)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
