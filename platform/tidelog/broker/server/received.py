"""A request from its arrival until its answer is written."""

import asyncio
import logging
from collections.abc import Callable

from tidelog.broker.access.throttling import ThrottledRequest
from tidelog.broker.base.calls import Peer, Reply
from tidelog.broker.base.meter import NOT_OFFERED, RequestMeter
from tidelog.broker.server.answering import Pieces
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.frames import Header, framed
from tidelog.log.base.request_ids import RequestId

logger = logging.getLogger(__name__)


class Received:
    """One request. Times in seconds of the elapsed clock.

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
        self.throttled: ThrottledRequest | None = None  # where quotas are set

    @property
    def lets_follow(self) -> bool:
        """Whether a Produce request may begin behind it: what has begun of those has all before it begun, too."""
        return self.has_begun and self.header.key is ApiKey.PRODUCE

    def framed(self) -> list[bytes | memoryview] | None:
        """The answer's frame, in pieces; None where the client asked for none."""
        return None if self.pieces is None else framed(self.header, self.pieces)

    def count(self, meter: RequestMeter, bytes_out: int, now_s: float) -> None:
        """Count it, now that it is answered."""
        header = self.header
        # Anyone may ask ApiVersions of any version: those that are not offered count as one.
        meter.requests[header.version if header.is_offered else NOT_OFFERED] += 1
        meter.bytes_in += self.size
        meter.bytes_out += bytes_out
        meter.queued.add(self.began_s - self.came_s, now_s)
        meter.handled.add(self.ended_s - self.began_s, now_s)
        meter.total.add(now_s - self.came_s, now_s)


def request_id(peer: Peer, header: Header) -> RequestId:
    """What lines of the log call a request."""
    return RequestId(peer.host, peer.port, header.client_id, header.correlation_id)


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
