"""Produce requests of versions 0 to 2, which are shown to clients and refused: which partitions they are about."""

import struct
from collections.abc import Sequence
from typing import Final

from tidelog.broker.wire.errors import MalformedRequestError

_ACKS_AND_TIMEOUT: Final = struct.Struct(">hi")
# The most topics and partitions that are answered one by one: their client speaks no newer version.
_MOST: Final = 1_000
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


def partitions_of(payload: memoryview) -> tuple[int, Sequence[tuple[str, Sequence[int]]]]:
    """(acks, [(topic, partitions)]) of a request of version 0, 1 or 2. Raises `MalformedRequestError`."""
    try:
        return _read(payload)
    except (struct.error, UnicodeDecodeError) as e:
        raise MalformedRequestError(f"A request PRODUCE of {len(payload)} bytes can't be read: {e}.") from e


def _read(payload: memoryview) -> tuple[int, Sequence[tuple[str, Sequence[int]]]]:
    acks, _ = _ACKS_AND_TIMEOUT.unpack_from(payload)
    at = _ACKS_AND_TIMEOUT.size
    (count,) = _INT32.unpack_from(payload, at)
    at += _INT32.size
    topics, left = [], _MOST
    for _ in range(count):
        (length,) = _INT16.unpack_from(payload, at)
        at += _INT16.size
        if length < 0:
            raise MalformedRequestError(f"A request PRODUCE of {len(payload)} bytes has a topic without a name.")
        name = str(payload[at : at + length], "utf-8")
        at += length
        (parts,) = _INT32.unpack_from(payload, at)
        at += _INT32.size
        left -= 1 + max(parts, 0)
        if left < 0:
            raise MalformedRequestError(f"A request PRODUCE has more than {_MOST} topics and partitions.")
        partitions = []
        for _ in range(parts):
            (partition,) = _INT32.unpack_from(payload, at)
            (size,) = _INT32.unpack_from(payload, at + _INT32.size)
            partitions.append(partition)
            at += 2 * _INT32.size + max(size, 0)
        topics.append((name, partitions))
    return acks, topics
