"""One client's connection: frames in, answers out in the order of their requests.

As Kafka does, the next request of a connection begins when the one before is answered. Produce requests are the
exception: all that a client has sent go into the next entry together, and are answered in order.
"""

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol, cast

from tidelog.broker.base.calls import Call, Encoded, Handlers, Peer, Reply
from tidelog.broker.base.settings import Bounds
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.codec import decode, encode
from tidelog.broker.wire.errors import ClosedConnectionError, MalformedRequestError, UnsupportedVersionError
from tidelog.broker.wire.frames import LENGTH, Header, framed, header_of
from tidelog.log.base.clock import Clock

logger = logging.getLogger(__name__)

# What is read at once of small frames, by all connections: the loop hands each read out before the next one.
_SCRATCH = bytearray(256 * 1024)
_READ_AT_ONCE = memoryview(_SCRATCH)
# The most requests of a connection that wait: it reads no further before one is answered.
MOST_WAITING = 64


class Server(Protocol):
    """What a connection needs of the broker."""

    handlers: Handlers
    clock: Clock
    bounds: Bounds

    def opened(self, connection: "ClientConnection") -> bool:
        """A connection has come; False refuses it."""

    def closed(self, connection: "ClientConnection") -> None:
        """It is gone."""


@dataclass(slots=True)
class _Received:
    """A request from its arrival until its answer is written."""

    header: Header
    frame: memoryview
    task: asyncio.Task[Reply] | None = field(default=None)


class ClientConnection(asyncio.BufferedProtocol):
    """The broker's end of one client's connection."""

    def __init__(self, server: Server, listener: str) -> None:
        self._server = server
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.peer = Peer(listener)
        self.heard_s = server.clock.elapsed_s()
        # The frame that is being received: its bytes so far, once its length is known.
        self._frame: bytearray | None = None
        self._filled = 0
        self._rest = bytearray()  # of a length
        self._waiting: deque[_Received] = deque()
        self._paused = False
        self._may_write = True

    # --- for the loop --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless there are too many already."""
        self._transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("peername")
        self.peer = Peer(self._listener, str(name[0]) if isinstance(name, tuple) else "")
        if not self._server.opened(self):
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why does not matter
        """End what goes on for this client."""
        self._transport = None
        for waiting in self._waiting:
            if waiting.task is not None:
                waiting.task.cancel()
        self._waiting.clear()
        self._server.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the frame says
        """Where the next bytes go: a large frame's own place, or the shared one."""
        if self._frame is not None:
            return memoryview(self._frame)[self._filled :]
        return _READ_AT_ONCE

    def buffer_updated(self, nbytes: int) -> None:
        """Take what has come."""
        self.heard_s = self._server.clock.elapsed_s()
        try:
            if self._frame is None:
                self._take(_READ_AT_ONCE[:nbytes])
            else:
                self._filled += nbytes
                if self._filled == len(self._frame):
                    frame, self._frame = self._frame, None
                    self._received(memoryview(frame))
        except MalformedRequestError as e:
            self.close(str(e))
            return
        self._advance()

    def eof_received(self) -> bool:
        """A client that has ended its side gets no more answers."""
        return False

    def pause_writing(self) -> None:
        """The client reads slowly: no more answers for now."""
        self._may_write = False

    def resume_writing(self) -> None:
        """Go on."""
        self._may_write = True
        self._advance()

    # --- frames --------------------------------------------------------------------------------------------

    def _take(self, data: memoryview) -> None:
        """Cut what has come into frames; of the last one, keep what is there."""
        at = 0
        while at < len(data):
            missing = LENGTH.size - len(self._rest)
            self._rest += data[at : at + missing]
            at += missing
            if len(self._rest) < LENGTH.size:
                return
            (size,) = LENGTH.unpack(self._rest)
            self._rest.clear()
            if not 0 <= size <= self._server.bounds.request_max_bytes:
                raise MalformedRequestError(
                    f"A request of {size} bytes was announced; socket.request.max.bytes is"
                    f" {self._server.bounds.request_max_bytes}. It may be no request of Kafka's protocol at all."
                )
            if at + size <= len(data):
                self._received(memoryview(bytes(data[at : at + size])))
                at += size
            else:
                self._frame = bytearray(size)
                self._filled = len(data) - at
                self._frame[: self._filled] = data[at:]
                return

    def _received(self, frame: memoryview) -> None:
        try:
            header = header_of(frame)
        except UnsupportedVersionError as e:  # as Kafka does: a client knows what is offered
            raise MalformedRequestError(str(e)) from e
        self._waiting.append(_Received(header, frame))

    # --- requests ------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Write the answers that are due, begin the requests whose turn has come, and read on where there is room."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        while self._waiting and self._may_write:
            first = self._waiting[0]
            if first.task is None or not first.task.done():
                break
            self._waiting.popleft()
            if not self._write(first.header, first.task):
                return
        for at, waiting in enumerate(self._waiting):
            produces = waiting.header.key is ApiKey.PRODUCE
            if waiting.task is None and (at == 0 or produces):
                self._begin(waiting)
            if not produces:
                break
        crowded = len(self._waiting) >= MOST_WAITING or not self._may_write
        if crowded != self._paused:
            self._paused = crowded
            (transport.pause_reading if crowded else transport.resume_reading)()

    def _begin(self, waiting: _Received) -> None:
        waiting.task = self._loop.create_task(self._answer(waiting.header, waiting.frame))
        waiting.frame = memoryview(b"")
        waiting.task.add_done_callback(lambda _: self._advance())

    async def _answer(self, header: Header, frame: memoryview) -> Reply:
        handler = self._server.handlers[header.key]
        payload = frame[header.end :]
        body = decode(header.key, header.version, payload) if header.is_offered else payload
        del frame, payload  # its memory is free as soon as the handler needs it no more
        now_s = self._server.clock.elapsed_s()
        return await handler(Call(header.key, header.version, header.client_id, body, self.peer, now_s))

    def _write(self, header: Header, task: "asyncio.Task[Reply]") -> bool:
        """Write an answer; False when the connection is closed instead."""
        if task.cancelled():
            self.close("The request was given up.")
            return False
        error = task.exception()
        if isinstance(error, ClosedConnectionError):
            self.close(str(error))
            return False
        if error is not None:
            logger.error("A request %s of version %d failed.", header.key.name, header.version, exc_info=error)
            self.close("The request failed.")
            return False
        reply = task.result()
        if reply is not None and self._transport is not None:
            body = reply.pieces if isinstance(reply, Encoded) else [encode(header.key, header.version, reply)]
            self._transport.writelines(framed(header, body))
        return True

    def close(self, reason: str) -> None:
        """Close the connection, and say why in the broker's log."""
        logger.info("Connection of %s closed: %s", self.peer.host or "a client", reason)
        if self._transport is not None:
            self._transport.close()
