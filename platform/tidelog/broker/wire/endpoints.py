"""Where brokers are reached, as the answers of Produce and Fetch name the leaders of their partitions (KIP-951)."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidelog.broker.wire.primitives import compact_string, uvarint

_INT32: Final = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a broker is reached."""

    id: int
    host: str
    port: int
    rack: str | None


def tagged_endpoints(endpoints: Sequence[Endpoint]) -> bytes:
    """The tagged fields of an answer that have `NodeEndpoints`, field 0, and nothing else; none without endpoints."""
    if not endpoints:
        return b"\0"
    body = bytearray(uvarint(len(endpoints) + 1))
    for one in endpoints:
        body += _INT32.pack(one.id) + compact_string(one.host) + _INT32.pack(one.port)
        body += compact_string(one.rack) + b"\0"
    return b"\1\0" + uvarint(len(body)) + bytes(body)
