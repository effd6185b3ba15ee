"""Thrift's compact protocol, as far as a Parquet file's headers and footer need it.

A field is given as (number, kind, payload); a struct is its fields, in the order of their numbers, and `STOP`.
"""

import re
from collections.abc import Sequence
from typing import Final

TRUE: Final = 1
I32: Final = 5
I64: Final = 6
BINARY: Final = 8
LIST: Final = 9
STRUCT: Final = 12

STOP: Final = b"\0"

Field = tuple[int, int, bytes]

# For `pattern`: a payload of an I32 or I64, and eight bytes.
ANY_INTEGER: Final = b"<integer>"
ANY_8_BYTES: Final = b"<bytes8>"

_BYTES: Final = [bytes((number,)) for number in range(256)]
_MOST_ITEMS: Final = 14


def varint(number: int) -> bytes:
    """A number from 0, seven bits a byte, the lowest first."""
    out = b""
    while number >= 0x80:
        out += _BYTES[number & 0x7F | 0x80]
        number >>= 7
    return out + _BYTES[number]


def integer(number: int) -> bytes:
    """The payload of an I32 or I64: the sign is the lowest bit."""
    return varint(number << 1 if number >= 0 else ~number << 1 | 1)


def integer_of(payload: bytes) -> int:
    """The number of which `payload` is the payload.

    >>> integer_of(integer(-300))
    -300
    """
    number = 0
    for byte in reversed(payload):
        number = number << 7 | byte & 0x7F
    return number >> 1 ^ -(number & 1)


def binary(data: bytes) -> bytes:
    """The payload of a BINARY, or a text."""
    return varint(len(data)) + data


def list_of(kind: int, payloads: Sequence[bytes]) -> bytes:
    """The payload of a LIST of one kind. Raises ValueError for more than 14 items: they have another form."""
    if len(payloads) > _MOST_ITEMS:
        raise ValueError(f"A list has {len(payloads)} items, and at most {_MOST_ITEMS} fit.")
    return _BYTES[len(payloads) << 4 | kind] + b"".join(payloads)


def fields(*given: Field, before: int = 0) -> bytes:
    """Fields of a struct. `before`: the number of the one that comes before them."""
    out = b""
    for number, kind, payload in given:
        out += _BYTES[number - before << 4 | kind] + payload
        before = number
    return out


def structure(*given: Field) -> bytes:
    """The payload of a STRUCT."""
    return fields(*given) + STOP


def pattern(template: bytes) -> re.Pattern[bytes]:
    """What matches the template with any payload, which is a group, for each `ANY_INTEGER`, and any `ANY_8_BYTES`."""
    escaped = re.escape(template).replace(ANY_INTEGER, rb"([\x80-\xff]*[\x00-\x7f])")
    return re.compile(escaped.replace(ANY_8_BYTES, b".{8}"), re.DOTALL)
