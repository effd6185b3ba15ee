"""A request from its arrival until its answer is written."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from tidelog.broker.access.throttling import ThrottledRequest
from tidelog.broker.base.calls import Peer, Reply
from tidelog.broker.base.meter import NOT_OFFERED, RequestMeter
from tidelog.broker.server.answering import Pieces
from tidelog.broker.wire.apis import ApiKey, title_of
from tidelog.broker.wire.frames import Header, framed
from tidelog.log.base.request_ids import RequestId, RequestSpan
from tidelog.server.telemetry.tracing import Tracing, traceparents_of_pieces, traceparents_of_records

logger = logging.getLogger(__name__)


# Requests that wait for others: they end with their connection.
_WAIT_FOR_OTHERS = frozenset({ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})


class Received:
    """One request. Times in seconds of the elapsed clock. `span`: where it is traced.

    It has a `task`, or goes the short way: then `reply` gives its answer, once it is through. When it `is_done`, it has
    an `error` or the `pieces` of its answer.
    """

    __slots__ = (
        "began_s",
        "came_s",
        "ended_s",
        "error",
        "frame",
        "has_begun",
        "header",
        "is_done",
        "pieces",
        "reply",
        "size",
        "span",
        "task",
        "throttled",
    )

    def __init__(self, header: Header, frame: memoryview, came_s: float) -> None:
        self.header = header
        self.frame = frame
        self.size = len(frame)
        self.came_s = self.began_s = self.ended_s = came_s
        self.has_begun = self.is_done = False
        self.task: asyncio.Task[Pieces] | None = None
        self.reply: Callable[[], Reply] | None = None
        self.pieces: Pieces = None
        self.error: BaseException | None = None
        self.span: RequestSpan | None = None
        self.throttled: ThrottledRequest | None = None  # where quotas are set

    @property
    def lets_follow(self) -> bool:
        """Whether a Produce request may begin behind it: what has begun of those has all before it begun, too."""
        return self.has_begun and self.header.key is ApiKey.PRODUCE

    def framed(self) -> list[bytes | memoryview] | None:
        """The answer's frame, in pieces; None where the client asked for none."""
        return None if self.pieces is None else framed(self.header, self.pieces)

    def trace(self, tracing: Tracing, peer: Peer) -> None:
        """Have it traced, where that takes it; a request with records goes on in the trace of theirs."""
        header = self.header
        parents = traceparents_of_records(self.frame) if header.key is ApiKey.PRODUCE else ()
        self.span = span = tracing.begin(title_of(header.key.name), self.came_s, parents)
        if span is not None:
            span.note({
                "messaging.system": "kafka",
                "messaging.client.id": header.client_id or "",
                "client.address": peer.host,
                "client.port": peer.port,
                "tidelog.api_version": header.version,
                "tidelog.correlation_id": header.correlation_id,
                "tidelog.request_bytes": self.size,
                "tidelog.queued_ms": (self.began_s - self.came_s) * 1000,
            })  # fmt: skip

    def end(self, now_s: float, *, is_gone: bool) -> None:
        """It is through, well or by its error. `is_gone`: its client waits for no answer any more."""
        self.is_done, self.ended_s = True, now_s
        if self.span is not None and (is_gone or self.error is not None):
            why = "its client was gone" if self.error is None else type(self.error).__name__
            self.span.end(now_s, why)

    def count(self, meter: RequestMeter, bytes_out: int, now_s: float) -> None:
        """Count it, now that it is answered."""
        header = self.header
        if self.span is not None:
            self._end_span(self.span, bytes_out, now_s)
        # Anyone may ask ApiVersions of any version: those that are not offered count as one.
        meter.requests[header.version if header.is_offered else NOT_OFFERED] += 1
        meter.bytes_in += self.size
        meter.bytes_out += bytes_out
        meter.queued.add(self.began_s - self.came_s, now_s)
        meter.handled.add(self.ended_s - self.began_s, now_s)
        meter.total.add(now_s - self.came_s, now_s)

    def _end_span(self, span: RequestSpan, bytes_out: int, now_s: float) -> None:
        handled_ms = (self.ended_s - self.began_s) * 1000
        span.note({"tidelog.answer_bytes": bytes_out, "tidelog.handled_ms": handled_ms})
        if self.header.key is ApiKey.FETCH:
            span.link(traceparents_of_pieces(self.pieces or ()))
        span.end(now_s)


def request_id(peer: Peer, header: Header, span: RequestSpan | None = None) -> RequestId:
    """What lines of the log call a request. `span`: where it is traced."""
    return RequestId(peer.host, peer.port, header.client_id, header.correlation_id, span)


def log_failure(peer: Peer, header: Header, error: BaseException) -> None:
    """Say that a request has failed by a fault in the program."""
    logger.error(
        "Request failed: %s version=%d client=%r: a mistake in tidelog, please report it.",
        header.key.name,
        header.version,
        header.client_id,
        exc_info=error,
        extra={"request": request_id(peer, header)},
    )


def outliving(requests: Iterable[Any], *, begins: bool) -> list[Any]:
    """Of the requests of a client that is gone, those that are executed all the same, in their order.

    Those that came whole are, as a producer with acks=0 needs, and a member that leaves its group and is gone, but for
    those that wait for others. `begins`: also those whose turn has not come yet.
    """
    left = []
    for request in requests:
        waits = request.header.key in _WAIT_FOR_OTHERS
        if waits and request.task is not None:
            request.task.cancel()
        if not request.is_done and (request.has_begun or (begins and not waits)):
            left.append(request)
    return left
