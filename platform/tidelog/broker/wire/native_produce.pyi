"""A Produce request of one record batch in native code, from the bytes of its frame to those of its answer."""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from tidelog.broker.base.calls import Peer
from tidelog.broker.base.meter import RequestMeter
from tidelog.broker.wire.frames import Header
from tidelog.log.base.request_ids import RequestId

SOURCE: str
"""The SHA-256 of the source that this was built from, in hex."""

class Batch:
    """The batch: it has all that `ProducedBatch` has, and is its own header, with all that `BatchHeader` has."""

    request: Request
    topic: str | UUID
    batch: bytes
    deadline_s: float
    partition: int
    count: int
    size: int

    def landed(self, offset: int, append_ms: int | None, log_start_offset: int) -> None:
        """Its records are in the log."""

    def refused(self, error: BaseException) -> None:
        """They are not, or that is unknown."""

class Request:
    """The request: for its batch what `ProduceRequest` is, and for its connection what `Received` is.

    `connection`: whose it is. `refusal`: why its batch was refused; then `pieces` is the answer's body. Who is told
    that it has ended says that it `is_done`, once its answer can be had.
    """

    lets_follow: Final = True
    has_begun: Final = True
    writes: None
    task: None
    throttled: None
    version: int
    correlation_id: int
    client_id: str | None
    peer: Peer
    rack: str | None
    topic: str | UUID
    partition: int
    acks: int
    size: int
    came_s: float
    only: Batch | None
    is_done: bool
    refusal: BaseException | None
    connection: Any
    error: BaseException | None
    pieces: Any
    id: RequestId
    header: Header

    def answer(self) -> bytes:
        """The whole frame of the answer that says that its records are in the log."""

    def framed(self) -> list[bytes | memoryview]:
        """The answer's frame, in pieces."""

    def count(self, meter: RequestMeter, bytes_out: int, now_s: float) -> None:
        """Count it, now that it is answered."""

class Reader:
    """Reads requests of versions up to `last`.

    `topic_of_id`: the id of 16 bytes; `rack_of`: the rack that a client's id names.
    """

    def __init__(
        self, last: int, topic_of_id: Callable[[bytes], UUID], rack_of: Callable[[str | None], str | None]
    ) -> None: ...
    def read(
        self, data: memoryview, count: int, came_s: float, peer: Peer, ended: Callable[[Request], object]
    ) -> Request | None:
        """The request whose frame, length and all, is the first `count` bytes of `data`; nothing of `data` is kept.

        None for what is not that, not sound or not plain: of another API or version, in a transaction, of more or less
        than one batch, with acks=0. `ended` is called with the request when its batch has its outcome.
        """
