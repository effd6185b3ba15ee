"""A broker's connections without sockets: what a client would send goes in, what it would get comes out."""

import asyncio
import struct
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from tidelog.access.quotas import Limits
from tidelog.broker.access.throttling import Throttling
from tidelog.broker.base.calls import Call
from tidelog.broker.base.meter import BrokerMeter
from tidelog.broker.base.settings import Bounds, QuotaSettings
from tidelog.broker.server.connections import Connections
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.base.clock import processor_s


def request(key: ApiKey, version: int, correlation_id: int, body: bytes = b"") -> bytes:
    """A request's frame; its header is the older one, without tagged fields."""
    frame = struct.pack(">hhih", key, version, correlation_id, -1) + body
    return struct.pack(">i", len(frame)) + frame


class FakeClock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def now_ms(self) -> int:
        return int(self.now_s * 1000)

    def elapsed_s(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class FakeTransport(asyncio.Transport):
    """Keeps what is written, until `take`; tells the protocol when much is waiting, as a real one does."""

    def __init__(self, host: str = "10.0.0.1", high: int = 65536) -> None:
        super().__init__({"peername": (host, 5)})
        self.protocol: Any = None
        self.high = high
        self.unsent = b""
        self.reading = True
        self.closing = False
        self.lost = False

    def write(self, data):
        self.writelines([data])

    def writelines(self, pieces):
        self.unsent += b"".join(pieces)
        if len(self.unsent) > self.high:
            self.protocol.pause_writing()

    def take(self, count: int | None = None) -> bytes:
        """The client takes so much of its answers."""
        was_high = len(self.unsent) > self.high
        taken, self.unsent = (
            self.unsent[: count or len(self.unsent)],
            b"" if count is None else self.unsent[count:],
        )
        if was_high and len(self.unsent) <= self.high // 4:
            self.protocol.resume_writing()
        if self.closing and not self.unsent:
            self._lose()
        return taken

    def get_write_buffer_size(self):
        return len(self.unsent)

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        assert not self.reading
        self.reading = True

    def is_closing(self):
        return self.closing

    def close(self):
        self.closing = True
        if not self.unsent:
            self._lose()

    def abort(self):
        self.closing = True
        self._lose()

    def _lose(self):
        if not self.lost:
            self.lost = True
            self.protocol.connection_lost(None)


class Client:
    """One connection, from its client's side."""

    def __init__(self, connections: Connections, **transport: Any) -> None:
        self.protocol = connections.new("PLAINTEXT")
        self.transport = FakeTransport(**transport)
        self.transport.protocol = self.protocol
        self.protocol.connection_made(self.transport)
        self.transport.reading = True  # uvloop begins to read now, whatever was asked for before

    def send(self, data: bytes) -> None:
        """Send bytes; they come in as many reads as the broker's buffers take."""
        while data and not self.transport.closing:
            space = self.protocol.get_buffer(-1)
            count = min(len(space), len(data))
            space[:count] = data[:count]
            del space
            self.protocol.buffer_updated(count)
            data = data[count:]

    async def answered(self) -> list[int]:
        """The correlation ids of the answers that are there once all that can go on has gone on."""
        await settle()
        data, found = self.transport.take(), []
        while data:
            size, correlation_id = struct.unpack_from(">ii", data)
            found.append(correlation_id)
            data = data[4 + size :]
        return found


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


class Handler:
    """A handler whose requests end when the test says so. `begun`: the requests, in the order in which they began."""

    def __init__(self, reply: Any = None) -> None:
        self.begun: list[Call] = []
        self.cancelled = 0
        self.reply = reply
        self._ends: dict[int, asyncio.Future[Any]] = {}

    async def __call__(self, call: Call) -> Any:
        self.begun.append(call)
        end = self._ends[len(self.begun) - 1] = asyncio.get_running_loop().create_future()
        try:
            return await end
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    def end(self, at: int, reply: Any = None) -> None:
        """End the request that was begun as number `at`."""
        self._ends[at].set_result(self.reply if reply is None else reply)

    def fail(self, at: int, error: Exception) -> None:
        self._ends[at].set_exception(error)


def connections(
    handlers: Mapping[ApiKey, Callable[[Call], Any]],
    limits: Limits | None = None,
    clock: FakeClock | None = None,
    processor_s: Callable[[], float] = processor_s,
    **bounds: Any,
) -> Connections:
    """A broker's connections, for the loop that runs. `limits`: its quotas."""
    clock = clock or FakeClock()
    throttling = Throttling(lambda: limits or {}, clock, QuotaSettings(), processor_s)
    return Connections(handlers, clock, Bounds(**bounds), BrokerMeter(), throttling)


def produce(correlation_id: int, size: int = 0) -> bytes:
    """A request Produce 3 without topics; `size` bytes of it are its transactional id."""
    name = struct.pack(">h", -1) if not size else struct.pack(">h", size) + b"x" * size
    return request(ApiKey.PRODUCE, 3, correlation_id, name + struct.pack(">hii", 1, 1000, 0))


def fetch(correlation_id: int) -> bytes:
    """A request Fetch 4 of no partition."""
    return request(ApiKey.FETCH, 4, correlation_id, struct.pack(">iiiibi", -1, 500, 1, 1 << 20, 0, 0))


def list_groups(correlation_id: int) -> bytes:
    """A request ListGroups 0."""
    return request(ApiKey.LIST_GROUPS, 0, correlation_id)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run the scenario in a loop, and see that nothing of it was left or fell silently."""

    async def whole() -> None:
        unhandled: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: unhandled.append(what))
        await scenario()
        await settle()
        assert unhandled == []

    asyncio.run(whole())
