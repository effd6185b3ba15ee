"""All connections of a broker: how many there may be, what they hold together, which are dropped, how they end."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tidelog.broker.access.throttling import Throttling
from tidelog.broker.base.calls import Handlers, Peer, ShortWay, SingleWay
from tidelog.broker.base.meter import BrokerMeter
from tidelog.broker.base.settings import Bounds
from tidelog.broker.sasl.login import ConnectionLogin
from tidelog.broker.server.answering import LargeRequests
from tidelog.broker.server.budget import Budget
from tidelog.broker.server.connection import ClientConnection
from tidelog.broker.server.connection_lines import ConnectionLines
from tidelog.broker.server.received import log_failure
from tidelog.broker.server.receiving import READ_AT_ONCE
from tidelog.broker.server.tls_handshake import TlsHandshake
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.base.clock import Clock

logger = logging.getLogger(__name__)

# How often idle and stalled clients are looked for; Kafka's brokers look at every poll.
LOOK_S = 5.0


def _no_login(listener: str, logged_in: Callable[[str], None]) -> None:
    """No listener has SASL."""


class Connections:
    """The connections of a broker's listeners. For the loop's thread. `login`: as `Server.login`."""

    def __init__(
        self,
        handlers: Handlers,
        clock: Clock,
        bounds: Bounds,
        meter: BrokerMeter,
        throttling: Throttling,
        login: Callable[[str, Callable[[str], None]], ConnectionLogin | None] = _no_login,
        large: LargeRequests | None = None,
        at_disconnect: Sequence[Callable[[Peer], None]] = (),
    ) -> None:
        self.handlers = handlers
        ways: Mapping[ApiKey, object] = handlers
        self.short: Mapping[ApiKey, ShortWay] = {key: way for key, way in ways.items() if isinstance(way, ShortWay)}
        singles = handlers.get(ApiKey.PRODUCE)
        self.single: SingleWay | None = singles if isinstance(singles, SingleWay) else None
        self._ended: list[Any] = []
        self.login = login
        self.large = large or LargeRequests()
        self._at_disconnect = at_disconnect
        self.clock = clock
        self.bounds = bounds
        self.meter = meter
        self.throttling = throttling
        self.lines = ConnectionLines(clock)
        # Requests that came and are not answered; answers that their clients have not taken.
        self.requests = Budget(bounds.queued_max_bytes, self._requests_are_full)
        self.answers = Budget(bounds.unsent_max_bytes)
        self.scratch = memoryview(bytearray(READ_AT_ONCE))
        self._open: dict[ClientConnection | TlsHandshake, None] = {}
        self._by_host: Counter[str] = Counter()
        self._fewer = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._look: asyncio.TimerHandle | None = None
        self.is_draining = False

    def __len__(self) -> int:
        return len(self._open)

    @property
    def waiting(self) -> int:
        """How many requests have come and are not answered."""
        return sum(connection.waiting for connection in list(self._open))

    def new(self, listener: str) -> ClientConnection:
        """The protocol of a connection that comes by a listener."""
        return ClientConnection(self, listener)

    def opened(self, connection: ClientConnection | TlsHandshake) -> str:
        """A connection has come; why it is refused, "" when it is not."""
        if connection in self._open:  # it was let in with its handshake
            return ""
        host = connection.peer.host
        self._open[connection] = None
        self._by_host[host] += 1
        self._empty.clear()
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(LOOK_S, self._look_and_go_on)
        self.meter.connections_opened += 1
        refused = ""
        if len(self._open) > self.bounds.max_connections:
            refused = f"max.connections is {self.bounds.max_connections}"
        elif self._by_host[host] > self.bounds.max_connections_per_ip:
            refused = f"max.connections.per.ip is {self.bounds.max_connections_per_ip}"
        self.meter.connections_refused += bool(refused)
        return refused

    def ended(self, request: Any) -> None:
        """A request of the single way is through: those of an entry are answered together, soon."""
        self._ended.append(request)
        if len(self._ended) == 1:
            asyncio.get_running_loop().call_soon(self._answer_ended)

    def _answer_ended(self) -> None:
        ended, self._ended = self._ended, []
        meter, now_s = self.meter.api(ApiKey.PRODUCE.name), self.clock.elapsed_s()
        for request in ended:
            try:
                if request.refusal is None:
                    meter.errors[0] += 1
                elif self.single is not None:
                    reply = self.single.refused_single(request)
                    request.pieces = reply.pieces
                    for code, count in reply.errors.items():
                        meter.errors[code] += count
                request.is_done = True
                request.connection.ended_single(request, meter, now_s)
            except Exception as e:  # the others are answered all the same
                log_failure(request.peer, request.header, e)
                request.connection.abort("its request PRODUCE failed")

    def secured(self, handshake: TlsHandshake, connection: ClientConnection) -> None:
        """The handshake's place is the connection's from now on."""
        del self._open[handshake]
        self._open[connection] = None

    def closed(self, connection: ClientConnection | TlsHandshake) -> None:
        """A connection is gone."""
        if connection in self._open:
            del self._open[connection]
            host = connection.peer.host
            self._by_host[host] -= 1
            if not self._by_host[host]:
                del self._by_host[host]
            for forget in self._at_disconnect:
                forget(connection.peer)
        self._fewer.set()
        if not self._open:
            self._empty.set()

    def look(self) -> None:
        """Drop clients that are idle, or that take nothing of their answers."""
        now_s = self.clock.elapsed_s()
        for connection in list(self._open):
            connection.look(now_s)
        self.lines.look()

    async def until_left(self, most: int, within_s: float) -> None:
        """Wait until no more than `most` are open, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while len(self._open) > most:
                    self._fewer.clear()
                    await self._fewer.wait()

    async def drain(self, grace_s: float) -> None:
        """Read no further requests, answer those that have come, and close; what is open after `grace_s` is cut."""
        self.is_draining = True
        for connection in list(self._open):
            connection.drain()
        try:
            await asyncio.wait_for(self._empty.wait(), grace_s)
        except TimeoutError:
            logger.warning("Drained: %d connections were still busy after %g s.", len(self._open), grace_s)
        for connection in list(self._open):
            connection.abort("the broker stops")
        self.lines.finish()
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _look_and_go_on(self) -> None:
        self._look = None
        self.look()
        if self._open or self.lines.has_counts:
            self._look = asyncio.get_running_loop().call_later(LOOK_S, self._look_and_go_on)

    def _requests_are_full(self) -> None:
        """Let no connection read a request that it has not begun to read."""
        logger.info("Requests take %d bytes: queued.max.request.bytes is reached, reading stops.", self.requests.used)
        for connection in self._open:
            connection.wait_for_room()
