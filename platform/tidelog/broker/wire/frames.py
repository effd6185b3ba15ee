"""Frames and headers: requests and answers as a connection has them.

A frame is its length (int32, big-endian) and its bytes. A request's begin with its header: API key and version
(int16), correlation id (int32), client id (nullable string), and tagged fields where the version is flexible.
Source: Kafka's protocol guide, `RequestHeader.json`, `ResponseHeader.json`, KIP-482, KIP-511.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tidelog.broker.wire.apis import ApiKey, is_offered
from tidelog.broker.wire.errors import MalformedRequestError, UnsupportedVersionError
from tidelog.broker.wire.messages import is_flexible

LENGTH: Final = struct.Struct(">i")
# The settings that bound a request, and one of a client that is not logged in yet.
REQUEST_MAX: Final = "socket.request.max.bytes"
LOGIN_MAX: Final = "sasl.server.max.receive.size"
# Tagged fields of a header; Kafka's requests have none.
_MOST_TAGS: Final = 64
_HEADER: Final = struct.Struct(">hhih")
_ANSWER: Final = struct.Struct(">ii")
_KEYS: Final = {int(key): key for key in ApiKey}
# How other protocols' first messages begin.
_STRANGERS: Final = (
    (b"\x16\x03", "TLS"),
    *((method, "HTTP") for method in (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI ")),
    (b"SSH-", "SSH"),
)


@dataclass(slots=True)
class Header:
    """A request's header. `end`: where its body begins in the frame.

    `raw`: the frame has none, nor has its answer: it is a message of SASL's alone, after a SaslHandshake 0.
    """

    key: ApiKey
    version: int
    correlation_id: int
    client_id: str | None
    end: int
    raw: bool = False

    @property
    def is_offered(self) -> bool:
        """Whether the broker offers this version."""
        return is_offered(self.key, self.version)


def size_of(start: bytes | bytearray, most_bytes: int, setting: str = REQUEST_MAX) -> int:
    """The size of the request's frame that begins with these four bytes.

    Raises `MalformedRequestError` for one above `most_bytes`, which the setting has, and says what it may be instead:
    programs of other protocols reach the port, too.
    """
    (size,) = LENGTH.unpack(start)
    if 0 <= size <= most_bytes:
        return int(size)
    said = f"announces a request of {size} bytes, and {setting} is {most_bytes}"
    for begins, what in _STRANGERS:
        if bytes(start).startswith(begins):
            raise MalformedRequestError(f"speaks {what} on a PLAINTEXT listener ({said})")
    raise MalformedRequestError(f"{said}; it may speak another protocol than Kafka's")


def header_of(frame: memoryview) -> Header:
    """The header of a request's frame.

    Its `end` counts only where the version `is_offered`. Raises `MalformedRequestError`, and `UnsupportedVersionError`
    for an API that is not offered.
    """
    try:
        number, version, correlation_id, length = _HEADER.unpack_from(frame)
    except struct.error as e:
        raise MalformedRequestError(f"A request of {len(frame)} bytes has no header.") from e
    end = _HEADER.size + max(length, 0)
    if end > len(frame):
        raise MalformedRequestError(f"A request's client id has {length} bytes, its frame {len(frame)}.")
    key = _KEYS.get(number)
    if key is None:
        raise UnsupportedVersionError(f"The API {number} is not offered.")
    try:
        client_id = None if length < 0 else str(frame[_HEADER.size : end], "utf-8")
    except UnicodeDecodeError as e:
        raise MalformedRequestError("A request's client id is not UTF-8.") from e
    if is_offered(key, version) and is_flexible(key, version):
        end = _after_tags(frame, end)
    return Header(key, version, correlation_id, client_id, end)


def framed(header: Header, body: Sequence[bytes | memoryview]) -> list[bytes | memoryview]:
    """An answer's frame, in pieces: its length and header, and the pieces of its body."""
    if header.raw:
        return [LENGTH.pack(sum(map(len, body))), *body]
    flexible = _is_answered_flexibly(header.key, header.version)
    length = 4 + flexible + sum(map(len, body))
    start = _ANSWER.pack(length, header.correlation_id)
    return [start + b"\0" if flexible else start, *body]


# Versions are what clients ask for: no more of them are remembered.
@lru_cache(1024)
def _is_answered_flexibly(key: ApiKey, version: int) -> bool:
    """Whether an answer's header has tagged fields.

    That of ApiVersions is the oldest: a client reads it before it knows what the broker speaks (KIP-511).
    """
    return is_offered(key, version) and key is not ApiKey.API_VERSIONS and is_flexible(key, version)


def _after_tags(frame: memoryview, at: int) -> int:
    """Where the tagged fields that begin here end. No request header has one that is known: they are passed over."""
    if at < len(frame) and not frame[at]:
        return at + 1
    count, at = _uvarint(frame, at)
    if count > _MOST_TAGS:
        raise MalformedRequestError(f"A request's header claims {count} tagged fields.")
    for _ in range(count):
        _, at = _uvarint(frame, at)
        size, at = _uvarint(frame, at)
        at += size
        if at > len(frame):
            raise MalformedRequestError("A request's header ends within a tagged field.")
    return at


def _uvarint(frame: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(frame) and shift < 35:
        byte = frame[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise MalformedRequestError("A request's header ends within a number.")
