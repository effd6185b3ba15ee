"""Large requests, of every API and every array that it has: others are answered meanwhile.

The measure is the processor time that the broker's loop spends on one of its passes. A busy machine does not change it.
"""

import asyncio
import gc
import socket
import struct
import time
from collections.abc import Iterator

import pytest
from kio.index import load_request_schema
from support.broker_processes import connect
from support.brokers import running_broker
from support.strange_requests import arrays_of, encoded, large

from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.codec import is_flexible
from tidelog.broker.wire.slicing import DEPTHS, TAKEN_WHOLE
from tidelog.log.lake import Lake

MANY = 6_000
# What a pass may take here. Requests that are gone through at once take several times as long.
LONGEST_S = 0.15
LITTLE_S = 0.02
# Those that are decided as a whole, and that must come before them.
WHOLE = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS}
CASES = [
    (key, versions.last, path)
    for key, versions in OFFERED.items()
    if key not in WHOLE
    for path in arrays_of(load_request_schema(key, versions.last))
]


class MeasuredLoop(asyncio.SelectorEventLoop):
    """A loop that knows how much processor time its longest pass took."""

    longest_s = total_s = 0.0

    def _run_once(self) -> None:
        began_s = time.thread_time()
        super()._run_once()
        took_s = time.thread_time() - began_s
        self.longest_s, self.total_s = max(self.longest_s, took_s), self.total_s + took_s


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, MeasuredLoop]]:
    loop = MeasuredLoop()
    with Lake(tmp_path_factory.mktemp("large") / "lake") as lake:
        lake.create_topic("n0")
        with running_broker(lake, lambda: loop) as address:
            gc.disable()  # a pass over all that pytest holds is not the broker's
            try:
                yield address, loop
            finally:
                gc.enable()


def answered(client: socket.socket, key: ApiKey, version: int, body: bytes) -> bytes:
    """The answer's frame; empty where the broker closes the connection instead."""
    header = struct.pack(">hhih", key, version, 7, -1) + (b"\0" if is_flexible(key, version) else b"")
    client.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
    with client.makefile("rb") as stream:
        start = stream.read(4)
        return stream.read(*struct.unpack(">i", start)) if start else b""


@pytest.mark.parametrize(("key", "version", "path"), CASES, ids=lambda one: getattr(one, "name", str(one)))
def test_no_large_request_holds_the_loop(
    broker: tuple[str, MeasuredLoop], key: ApiKey, version: int, path: tuple[str, ...]
) -> None:
    address, loop = broker
    # Topics of such names are refused, and need not be made and deleted.
    name = "n/{}" if key in (ApiKey.CREATE_TOPICS, ApiKey.METADATA) else "n{}"
    body = encoded(large(load_request_schema(key, version), path, MANY, name.format))
    with connect(address) as client:
        loop.longest_s = loop.total_s = 0.0
        assert answered(client, key, version, body)
    assert loop.longest_s < LONGEST_S
    if key in TAKEN_WHOLE or len(path) <= DEPTHS.get(key, 0):
        # Whatever the machine's speed is, no pass does much of the whole.
        assert loop.longest_s < max(LITTLE_S, loop.total_s / 4)
