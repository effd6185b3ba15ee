"""Large requests, of every API and every array that it has: others are answered meanwhile.

The measure is how many passes the broker's loop makes meanwhile: between two of them it answers others.
"""

import asyncio
import socket
import struct
from collections.abc import Iterator

import pytest
from kio.index import load_request_schema
from support.broker_processes import connect
from support.brokers import running_broker
from support.strange_requests import arrays_of, encoded, large

from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.messages import is_flexible
from tidelog.broker.wire.slicing import DEPTHS, SLICE
from tidelog.log.lake import Lake

MANY = 3_000
# A request that is gone through at once takes a few passes, and those of timers.
FEW_PASSES = MANY // SLICE
# Those that are decided as a whole, and that must come before them.
WHOLE = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS}
# Their handlers take turns by themselves.
TAKE_TURNS = {(ApiKey.FETCH, ("topics", "partitions")), (ApiKey.METADATA, ("topics",))}
CASES = [
    (key, versions.last, path)
    for key, versions in OFFERED.items()
    if key not in WHOLE
    for path in arrays_of(load_request_schema(key, versions.last))
]


class CountingLoop(asyncio.SelectorEventLoop):
    """A loop that counts its passes."""

    passes = 0

    def _run_once(self) -> None:
        super()._run_once()
        self.passes += 1


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, CountingLoop]]:
    loop = CountingLoop()
    with Lake(tmp_path_factory.mktemp("large") / "lake") as lake:
        lake.create_topic("n0")
        with running_broker(lake, lambda: loop) as address:
            yield address, loop


def answered(client: socket.socket, key: ApiKey, version: int, body: bytes) -> bytes:
    """The answer's frame; empty where the broker closes the connection instead."""
    header = struct.pack(">hhih", key, version, 7, -1) + (b"\0" if is_flexible(key, version) else b"")
    client.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
    with client.makefile("rb") as stream:
        start = stream.read(4)
        return stream.read(*struct.unpack(">i", start)) if start else b""


@pytest.mark.parametrize(("key", "version", "path"), CASES, ids=lambda one: getattr(one, "name", str(one)))
def test_no_large_request_holds_the_loop(
    broker: tuple[str, CountingLoop], key: ApiKey, version: int, path: tuple[str, ...]
) -> None:
    address, loop = broker
    # Topics of such names are refused, and need not be made and deleted.
    name = "n/{}" if key in (ApiKey.CREATE_TOPICS, ApiKey.METADATA) else "n{}"
    body = encoded(large(load_request_schema(key, version), path, MANY, name.format))
    with connect(address) as client:
        before = loop.passes
        assert answered(client, key, version, body)
    if (key, path) in TAKE_TURNS or len(path) <= DEPTHS.get(key, 0):
        assert loop.passes - before >= FEW_PASSES
