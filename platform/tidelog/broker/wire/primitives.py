"""Kafka's primitive types as bytes, for answers that are written by hand. Source: Kafka's protocol guide, KIP-482."""

import struct
from functools import lru_cache
from typing import Final

_INT16: Final = struct.Struct(">h")
# The longest string of the older form.
_LONGEST: Final = 2**15 - 1


def uvarint(value: int) -> bytes:
    """An unsigned number, seven bits a byte, the lowest first.

    >>> uvarint(300)
    b'\\xac\\x02'
    """
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@lru_cache(1024)
def string(text: str) -> bytes:
    """A string of the versions before flexible ones; what is longer than 32,767 bytes loses its end.

    >>> string("ab")
    b'\\x00\\x02ab'
    """
    data = text.encode()
    if len(data) > _LONGEST:
        data = data[:_LONGEST].decode(errors="ignore").encode()
    return _INT16.pack(len(data)) + data


@lru_cache(1024)
def compact_string(text: str | None) -> bytes:
    """A string, or none, of flexible versions.

    >>> compact_string("ab"), compact_string(None)
    (b'\\x03ab', b'\\x00')
    """
    if text is None:
        return b"\0"
    data = text.encode()
    return uvarint(len(data) + 1) + data
