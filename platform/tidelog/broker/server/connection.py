"""One client's connection: frames in, answers out in the order of their requests.

As Kafka does, the next request of a connection begins when the one before is answered. Produce requests are the
exception: all that a client has sent go into the next entry together, and are answered in order.
"""

import asyncio
import logging
from dataclasses import replace
from functools import partial
from typing import Any, cast

from tidelog.broker.base.calls import Call, Encoded, Peer
from tidelog.broker.base.meter import RequestMeter
from tidelog.broker.server.answering import Answering, Pieces
from tidelog.broker.server.connection_port import Server
from tidelog.broker.server.received import Received, log_failure, outliving, request_id
from tidelog.broker.server.receiving import FrameReceiver, has_gone
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import (
    UNKNOWN_SERVER_ERROR,
    ClosedConnectionError,
    LargeRequestError,
    MalformedRequestError,
    UnsupportedVersionError,
)
from tidelog.broker.wire.frames import LOGIN_MAX, header_of
from tidelog.broker.wire.messages import decode
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.request_ids import REQUEST

logger = logging.getLogger(__name__)

# The most requests of a connection that wait: it reads no further before one is answered.
MOST_WAITING = 64
# A client that takes nothing of its answers for so long is dropped, where no fetch begins because of them.
HELD_UP_S = 5.0
TOO_MANY = "its address is over its connection_creation_rate"
# Their handlers answer versions that are not offered: KIP-511, KAFKA-18659.
_ANSWER_ANY_VERSION = frozenset({ApiKey.API_VERSIONS, ApiKey.PRODUCE})


class ClientConnection(asyncio.BufferedProtocol):
    """The broker's end of one client's connection."""

    __slots__ = (
        "_closed_s",
        "_decoding",
        "_draining",
        "_frames",
        "_held",
        "_left",
        "_login",
        "_loop",
        "_may_write",
        "_muted",
        "_muted_until_s",
        "_opened_s",
        "_paused",
        "_server",
        "_sizes",
        "_taken_s",
        "_tasks",
        "_transport",
        "_unsent",
        "_waiting",
        "heard_s",
        "peer",
    )

    def __init__(self, server: Server, listener: str) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.peer = Peer(listener)
        self.heard_s = self._opened_s = server.clock.elapsed_s()
        self._frames = FrameReceiver(server.bounds.request_max_bytes, server.scratch)
        self._login = server.login(listener, self._logged_in)
        if self._login is not None:
            self._frames.bound(self._login.most_bytes, LOGIN_MAX)
        self._waiting: list[Any] = []  # `Received`, or what the single way has of them
        self._tasks = 0  # requests whose task is not done
        self._sizes = 0  # bytes of those that wait
        self._held = 0  # bytes in the broker's budget of requests
        self._paused = False
        self._draining = False
        self._decoding: asyncio.Event | None = None  # until a large request is decoded
        self._closed_s: float | None = None
        # The end of the time for which its client is over a quota, and until when that is.
        self._muted: asyncio.TimerHandle | None = None
        self._muted_until_s = 0.0
        # While the client takes its answers too slowly: bytes in the budget of answers, bytes left, since when.
        self._may_write = True
        self._unsent = self._left = 0
        self._taken_s = 0.0

    # --- for the loop --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless there are too many already."""
        self._transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("peername")
        if isinstance(name, tuple):
            self.peer = replace(self.peer, host=str(name[0]), port=int(name[1]))
        refused = self._server.opened(self)
        if refused:
            self._server.lines.say("refused", self.peer, refused, logging.WARNING)
            self._transport.abort()
        elif wait_s := self._counted_wait_s():
            self._keep_out(self._transport, wait_s)
        elif self._server.requests.is_full:
            self.wait_for_room()
            self._loop.call_soon(self._pause_again)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why does not matter
        """End what waits for this client."""
        self._transport = None
        if self._muted is not None:
            self._muted.cancel()
        self._server.requests.forget(self._advance)
        self._server.answers.forget(self._advance)
        self._server.answers.give_back(self._unsent)
        self._unsent = 0
        self._frames.drop()
        is_logged_in = self._login is None or self._login.is_done
        self._waiting = outliving(self._waiting, begins=is_logged_in and not self._draining and self._closed_s is None)
        self._sizes = sum(waiting.size for waiting in self._waiting)  # they hold their memory until then
        self._account()
        self._server.closed(self)
        self._begin_next()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the frame says
        """Where the next bytes go."""
        return self._frames.space()

    def buffer_updated(self, nbytes: int) -> None:
        """Take what has come."""
        self.heard_s = self._server.clock.elapsed_s()
        if self._begun_single(nbytes):
            return
        try:
            for frame in self._frames.received(nbytes):
                header = header_of(frame) if self._login is None else self._login.header_of(frame)
                self._waiting.append(Received(header, frame, self.heard_s))
                self._sizes += len(frame)
                if len(self._waiting) > MOST_WAITING and self._login is not None and not self._login.is_done:
                    raise MalformedRequestError(f"it sent more than {MOST_WAITING} requests before it had logged in")
        except (MalformedRequestError, UnsupportedVersionError) as e:  # as Kafka does: a client knows what is offered
            self._refuse(e)
            return
        self._account()
        self._advance()

    def eof_received(self) -> bool:
        """A client that has ended its side gets no more answers."""
        return False

    def pause_writing(self) -> None:
        """The client reads slowly: no more answers for now."""
        self._may_write = False
        if self._transport is not None:
            self._unsent = self._left = self._transport.get_write_buffer_size()
            self._taken_s = self._server.clock.elapsed_s()
            self._server.answers.take(self._unsent)

    def resume_writing(self) -> None:
        """Go on."""
        self._may_write = True
        self._server.answers.give_back(self._unsent)
        self._unsent = 0
        self._advance()

    # --- for the broker ------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many of its requests are not answered."""
        return len(self._waiting)

    def look(self, now_s: float) -> None:
        """Drop a client that has been idle for too long, or that takes nothing of what it asked for."""
        transport, bounds = self._transport, self._server.bounds
        if transport is None:
            return
        if self._login is not None and not self._login.is_done and now_s - self._opened_s >= self._login.within_s:
            self.abort(f"it did not log in within {self._login.within_s:g} s")
        elif not self._may_write:
            left = transport.get_write_buffer_size()
            if left != self._left:
                self._left, self._taken_s = left, now_s
            elif now_s - self._taken_s >= (patience_s := self._patience_s()):
                self.abort(f"{left} bytes of its answers were not taken for {patience_s:g} s")
        elif self._closed_s is not None:
            if now_s - self._closed_s >= bounds.stalled_s:
                self.abort("its last answer was not taken")
        elif now_s - self.heard_s >= bounds.idle_s and (
            not self._waiting if self._muted is None else has_gone(transport)
        ):
            self.close(f"idle for {bounds.idle_s:g} s, which is connections.max.idle.ms")

    def _patience_s(self) -> float:
        """How long this client may take nothing: less where others have to wait because of its answers."""
        stalled_s = self._server.bounds.stalled_s
        return min(stalled_s, HELD_UP_S) if self._server.answers.is_full else stalled_s

    def wait_for_room(self) -> None:
        """Read no further request until there is room for it; one that has come in part may come whole."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            self._set_reading(transport)

    def drain(self) -> None:
        """Read no more, answer what was asked, then close."""
        self._draining = True
        self._advance()

    def close(self, reason: str, *, level: int = logging.INFO) -> None:
        """Close the connection once what is written is sent, and say why in the broker's log."""
        if self._transport is not None and self._closed_s is None:
            self._closed_s = self._server.clock.elapsed_s()
            self._server.lines.say("closed", self.peer, reason, level)
            self._transport.close()

    def abort(self, reason: str) -> None:
        """Cut the connection, whatever is not sent yet."""
        if self._transport is not None:
            self._server.meter.connections_dropped += 1
            self._server.lines.say("closed", self.peer, reason, logging.WARNING)
            self._transport.abort()

    def _refuse(self, why: object) -> None:
        self._server.meter.connections_dropped += 1
        self.close(str(why), level=logging.WARNING)

    def _logged_in(self, principal: str) -> None:
        self.peer = replace(self.peer, principal=principal)
        self._frames.bound(self._server.bounds.request_max_bytes)

    # --- quotas --------------------------------------------------------------------------------------------

    def _counted_wait_s(self) -> float:
        """Count the connection; for how long its address has to wait. What a TLS handshake has counted is not again."""
        return self._server.throttling.connection(self.peer.host)

    def _keep_out(self, transport: asyncio.Transport, wait_s: float) -> None:
        """Read nothing of a client whose address opens connections too quickly, and close it in a while."""
        self._server.meter.connections_refused += 1
        self._draining = True
        self._set_reading(transport)
        self._loop.call_soon(self._pause_again)
        self._muted = self._loop.call_later(wait_s, lambda: self.close(TOO_MANY, level=logging.WARNING))

    def _pause_again(self) -> None:
        """Pause what `connection_made` has paused: uvloop begins to read once that has returned."""
        if self._paused and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _mute(self, until_s: float) -> None:
        """Read nothing until then, and begin no request but those of Produce that came."""
        left_s = until_s - self._server.clock.elapsed_s()
        if until_s <= self._muted_until_s or left_s <= 0:
            return
        self._muted_until_s = until_s
        if self._muted is not None:
            self._muted.cancel()
        self._muted = self._loop.call_later(left_s, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        self._advance()

    # --- requests ------------------------------------------------------------------------------------------

    def _account(self) -> None:
        """Tell the broker's budget what this connection's requests take now."""
        change = self._frames.room + self._sizes - self._held
        self._held += change
        if change > 0:
            self._server.requests.take(change)
        elif change:
            self._server.requests.give_back(-change)

    def _advance(self) -> None:
        """Write the answers that are due, begin the requests whose turn has come, and read on where there is room."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        answered = False
        while self._waiting and self._may_write and (first := self._waiting[0]).is_done:
            del self._waiting[0]
            self._sizes -= first.size
            answered = True
            if not self._write(transport, first):
                return
            if first.throttled is not None:
                self._mute(first.throttled.until_s)
        if answered:
            self._account()
        for at, waiting in enumerate(self._waiting[:MOST_WAITING]):
            key = waiting.header.key
            if self._muted is not None and key is not ApiKey.PRODUCE and not self._draining:
                break
            if not waiting.has_begun and (at == 0 or key is ApiKey.PRODUCE):
                if key is ApiKey.FETCH and self._server.answers.is_full:
                    self._server.answers.wait(self._advance)
                    break
                self._begin(waiting)
            if key is not ApiKey.PRODUCE:
                break
        if self._draining and not self._waiting:
            self.close("the broker stops")
        else:
            self._set_reading(transport)

    def _set_reading(self, transport: asyncio.Transport) -> None:
        """Read, or don't: neither for a client that has much to wait for, nor where there is no room for a request."""
        no_room = self._server.requests.is_full and not self._frames.room
        if no_room:
            self._server.requests.wait(self._advance)
        # As Kafka does, a client that is not logged in has one request at a time.
        most = MOST_WAITING if self._login is None or self._login.is_done else 1
        pause = no_room or self._draining or not self._may_write or len(self._waiting) >= most
        pause = pause or self._muted is not None
        if pause != self._paused:
            self._paused = pause
            (transport.pause_reading if pause else transport.resume_reading)()

    def _begin(self, waiting: Received) -> None:
        waiting.began_s = self._server.clock.elapsed_s()
        header = waiting.header
        if self._login is None or self._login.is_done:
            waiting.throttled = self._server.throttling.request(
                header.key, header.version, self.peer, header.client_id, waiting.size
            )
        throttled = waiting.throttled
        if throttled is not None:
            self._mute(throttled.until_s)
        if (tracing := self._server.meter.tracing) is not None:
            waiting.trace(tracing, self.peer)
        frame, waiting.frame, waiting.has_begun = waiting.frame, memoryview(b""), True
        if throttled is None and not self._tasks and self._begin_shortly(waiting, frame):
            return
        self._tasks += 1
        waiting.task = self._loop.create_task(self._answer(waiting, frame))

        def ended(task: "asyncio.Task[Pieces]") -> None:
            self._tasks -= 1
            waiting.error = asyncio.CancelledError() if task.cancelled() else task.exception()
            if waiting.error is None:
                waiting.pieces = task.result()
            self._ended(waiting)

        waiting.task.add_done_callback(ended)

    def _begin_shortly(self, waiting: Received, frame: memoryview) -> bool:
        """Begin a request without a task, where that can be; requests of tasks are not overtaken."""
        header = waiting.header
        short = self._server.short.get(header.key)
        if short is None or not header.is_offered or (self._login is not None and not self._login.is_valid):
            return False
        call = Call(header.key, header.version, header.client_id, frame[header.end :], self.peer, waiting.came_s)
        token = REQUEST.set(request_id(self.peer, header, waiting.span))
        try:
            waiting.reply = short.begin(call, partial(self._loop.call_soon, self._ended_shortly, waiting))
        except Exception as e:
            waiting.error = e
            self._loop.call_soon(self._ended, waiting)
            return True
        finally:
            REQUEST.reset(token)
        return waiting.reply is not None

    def _begun_single(self, count: int) -> bool:
        """Begin the request that the bytes which have just come are, if it can be without the stages of others."""
        server, waiting = self._server, self._waiting
        others = self._login is not None or self._tasks > 0 or self._muted is not None or self._draining
        others = others or (bool(waiting) and not (waiting[-1].lets_follow and len(waiting) < MOST_WAITING))
        if others or server.single is None or not self._frames.may_be_one(count) or not server.throttling.is_open:
            return False
        request = server.single.single(server.scratch, count, self.heard_s, self.peer, server.ended)
        if request is None:
            return False
        request.connection = self
        waiting.append(request)
        self._sizes += request.size
        self._account()
        if (server.requests.is_full or len(waiting) >= MOST_WAITING) and self._transport is not None:
            self._set_reading(self._transport)
        return True

    def ended_single(self, request: Any, meter: RequestMeter, now_s: float) -> None:
        """A request of the single way is through: answer it, if those before it are answered."""
        transport, waiting = self._transport, self._waiting
        is_next = waiting and waiting[0] is request and request.refusal is None and self._may_write
        if not is_next or transport is None or transport.is_closing():
            self._through(request)
            return
        del waiting[0]
        self._sizes -= request.size
        answer = request.answer()
        transport.write(answer)
        request.count(meter, len(answer), now_s)
        self._account()
        if self._paused or self._draining or (waiting and (waiting[0].is_done or not waiting[-1].lets_follow)):
            self._advance()

    def _ended_shortly(self, waiting: Received) -> None:
        header, reply = waiting.header, waiting.reply
        if reply is None:  # its beginning has failed
            return
        try:
            answer = reply()
            if isinstance(answer, Encoded):
                waiting.pieces = answer.pieces
                errors = self._server.meter.api(header.key.name).errors
                for code, count in answer.errors.items():
                    errors[code] += count
        except Exception as e:
            waiting.error = e
        waiting.reply = None
        self._ended(waiting)

    def _ended(self, waiting: Received) -> None:
        """A request is through."""
        waiting.end(self._server.clock.elapsed_s(), is_gone=self._transport is None)
        self._through(waiting)

    def _through(self, waiting: Any) -> None:
        if self._transport is not None:
            self._advance()
            return
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            self._sizes -= waiting.size
            self._account()
        self._begin_next()
        if not isinstance(error := waiting.error, ClosedConnectionError | asyncio.CancelledError | None):
            log_failure(self.peer, waiting.header, error)

    def _begin_next(self) -> None:
        """Begin the request whose turn has come; its client is gone."""
        if self._waiting and not self._waiting[0].has_begun:
            self._begin(self._waiting[0])

    async def _answer(self, waiting: Received, frame: memoryview) -> Pieces:
        header = waiting.header
        REQUEST.set(request_id(self.peer, header, waiting.span))
        handler = self._server.handlers.get(header.key)
        if self._login is not None:
            handler = self._login.handler(header.key, handler)
        if not header.is_offered and header.key not in _ANSWER_ANY_VERSION:
            raise MalformedRequestError(f"{header.key.name} of version {header.version} is not offered")
        if handler is None:
            raise MalformedRequestError(f"{header.key.name} is not offered")
        payload = frame[header.end :]
        del frame  # its memory is free as soon as the handler needs it no more
        answering = Answering(self._server.large, header, self.peer, waiting.came_s, waiting.throttled)
        errors = self._server.meter.api(header.key.name).errors
        if header.raw or not header.is_offered:
            return await answering.answer(handler, payload, errors)
        # What a client sends behind a large request waits until that is decoded: Produce goes by the order.
        while self._decoding is not None:
            await self._decoding.wait()
        try:
            body = decode(header.key, header.version, payload)
        except LargeRequestError:
            self._decoding = decoding = asyncio.Event()
            try:
                bodies = await answering.decoded(payload)
            finally:
                self._decoding = None
                decoding.set()
            del payload
            return await answering.answer_large(handler, bodies, errors)
        del payload
        return await answering.answer(handler, body, errors)

    def _write(self, transport: asyncio.Transport, waiting: Received) -> bool:
        """Write an answer; False when the connection is closed instead."""
        header, error = waiting.header, waiting.error
        if error is not None:
            code = error.kafka_code if isinstance(error, TidelogError) else UNKNOWN_SERVER_ERROR
            self._server.meter.api(header.key.name).errors[code] += 1
            if isinstance(error, ClosedConnectionError):
                self._refuse(error)
            elif isinstance(error, asyncio.CancelledError):
                self.close("its request was given up")
            else:
                log_failure(self.peer, header, error)
                self.close(f"its request {header.key.name} failed")
            return False
        size = 0
        if (pieces := waiting.framed()) is not None:
            size = sum(map(len, pieces))
            transport.writelines(pieces)
        waiting.count(self._server.meter.api(header.key.name), size, self._server.clock.elapsed_s())
        if self._login is not None and self._login.ended:
            self._refuse(self._login.ended)
            return False
        return True
