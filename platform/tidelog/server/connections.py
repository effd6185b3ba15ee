"""Connections of HTTP with bounds, and with refusals in the API's form: what uvicorn leaves to proxies before it."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

# How long a connection may take to end: its last answer is on the way, and what the client still sends is dropped.
LINGER_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class HttpBounds:
    """What one registry lets clients hold; settings of brokers in the comments.

    `idle_s`: between requests. `request_s`: from a request's first byte to its last one. `headers`: bytes of headers
    and of the line before them. `body`: bytes of one body; `bodies`: of all that are held at a time.
    """

    connections: int = 10_000  # max.connections
    connections_per_host: int = 10_000  # max.connections.per.ip
    idle_s: float = 600.0  # connections.max.idle.ms
    request_s: float = 60.0
    headers: int = 64 * 2**10
    body: int = 16 * 2**20
    bodies: int = 256 * 2**20


class HttpCounts:
    """Connections that are open, by host; for the loop's thread. `refused`: by a bound; `slow`: by `request_s`."""

    def __init__(self) -> None:
        self.open: Counter[str] = Counter()
        self.opened = self.refused = self.slow = self.malformed = 0


def bounded(
    bounds: HttpBounds, counts: HttpCounts, media_type: str = "application/vnd.schemaregistry.v1+json"
) -> type[H11Protocol]:
    """uvicorn's protocol with bounds. `media_type`: of refusals."""
    more = {"bounds": bounds, "counts": counts, "media_type": media_type.encode()}
    return type("BoundedHttp", (_BoundedProtocol,), more)


class _BoundedProtocol(H11Protocol):
    bounds: HttpBounds
    counts: HttpCounts
    media_type: bytes
    _arrival: asyncio.TimerHandle | None = None
    _host: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Lingering(transport, self.loop, self._is_sending))
        self.counts.opened += 1
        host = self.client[0] if self.client else ""
        if self.counts.open.total() >= self.bounds.connections:
            refused = True
        else:
            refused = self.counts.open[host] >= self.bounds.connections_per_host
        if refused:
            self.counts.refused += 1
            transport.abort()
            return
        self._host = host
        self.counts.open[host] += 1
        self.timeout_keep_alive_task = self.loop.call_later(self.bounds.idle_s, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._host is not None:
            self.counts.open[self._host] -= 1
            if not self.counts.open[self._host]:
                del self.counts.open[self._host]
        self._stop_timing()
        self.transport.abort()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.transport.is_closing():  # what comes after a last answer is dropped
            super().data_received(data)

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client that says that it sends no more is answered all the same, and then the connection ends."""
        waits = self.cycle is not None and not self.cycle.response_complete and not self._is_sending()
        if waits:
            self.cycle.keep_alive = False
        return waits

    def handle_events(self) -> None:
        super().handle_events()
        if not self._is_sending():
            self._stop_timing()
        elif self._arrival is None:
            self._arrival = self.loop.call_later(self.bounds.request_s, self._too_slow)

    def shutdown(self) -> None:
        """End as soon as what has arrived is answered; what has not is not waited for."""
        if self._is_sending():
            self._refuse(503, "The server stops. Send the request to another one, or again.")
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        self.counts.malformed += 1
        self._refuse(400, f"HTTP 400 Bad Request: {msg}")

    def _unsupported_upgrade_warning(self) -> None:
        """Clients of HTTP/2 ask for it: no reason for a line in the log."""

    def _is_sending(self) -> bool:
        """Whether a request has begun to arrive, and not ended."""
        state = self.conn.their_state
        return state is h11.SEND_BODY or (state is h11.IDLE and bool(self.conn.trailing_data[0]))

    def _too_slow(self) -> None:
        self._arrival = None
        self.counts.slow += 1
        self._refuse(408, f"The request did not arrive within {self.bounds.request_s:g} s.")

    def _stop_timing(self) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _refuse(self, status: int, message: str) -> None:
        """Answer before the application does, which hears that the client is gone; then end the connection."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        body = json.dumps({"error_code": status, "message": message}).encode()
        headers = [
            (b"content-type", self.media_type),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        answer = h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status])
        try:
            for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            pass  # an answer has begun, or it is one without a body
        self.transport.close()


class _Lingering(asyncio.Transport):
    """A transport that ends only when the client has seen its last answer: one that is still sending would not.

    Ended at once, the system tells such a client of a connection that was reset, and it may never read the answer.
    """

    def __init__(self, own: asyncio.Transport, loop: asyncio.AbstractEventLoop, sending: Callable[[], bool]) -> None:
        super().__init__()
        self._own = own
        self._loop = loop
        self._sending = sending
        self._end: asyncio.TimerHandle | None = None

    def close(self) -> None:
        if self._end is not None:
            return
        self._end = self._loop.call_later(LINGER_S, self._own.abort)
        if not self._sending():
            self._own.close()
            return
        if self._own.can_write_eof():
            self._own.write_eof()
        self._own.resume_reading()

    def abort(self) -> None:
        if self._end is not None:
            self._end.cancel()
        self._own.abort()

    def is_closing(self) -> bool:
        return self._end is not None or self._own.is_closing()

    def write(self, data: Any) -> None:
        self._own.write(data)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._own.get_extra_info(name, default)

    def pause_reading(self) -> None:
        if self._end is None:
            self._own.pause_reading()

    def resume_reading(self) -> None:
        self._own.resume_reading()
