"""A request on its way through a broker: what its handler is given, and what it answers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.messages import Answer


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection. `listener`: the name of the one it came by."""

    listener: str = "PLAINTEXT"
    host: str = ""
    principal: str = "User:ANONYMOUS"
    port: int = field(default=0, compare=False)


class Allowance:
    """What quotas leave a request; this one, whose client has none: everything.

    `most_bytes`: of an answer of Fetch; 0: it brings no records now.
    `limits_partitions`: whether changes of partitions have to be counted.
    """

    most_bytes: int = 2**31 - 1
    limits_partitions: bool = False

    def change_partitions(self, count: int) -> None:
        """Partitions are to be created or deleted. Raises `ThrottlingQuotaExceededError` (KIP-599)."""


_EVERYTHING: Final = Allowance()


# Made for each request: freezing a class would make each field of it a call.
@dataclass(slots=True)
class Call:
    """A request. `body` is kio's entity of this version, or the bytes of a version that is not offered.

    `received_s`: when it had come, on the elapsed clock.
    """

    key: ApiKey
    version: int
    client_id: str | None
    body: Any
    peer: Peer
    received_s: float
    allowance: Allowance = _EVERYTHING


@dataclass(slots=True)
class Encoded:
    """An answer that is encoded already, in pieces: what a cache keeps is written as it is.

    `errors`: {error code: how often}, as metrics count them; 0 is for none.
    `throttle_at`: where the first piece has the throttle time, -1 for nowhere.
    """

    pieces: Sequence[bytes | memoryview]
    errors: Mapping[int, int] = field(default_factory=lambda: {0: 1})
    throttle_at: int = -1


# None: the client asked for no answer.
Reply = Answer | Encoded | None
Handler = Callable[[Call], Awaitable[Reply]]
Handlers = Mapping[ApiKey, Handler]


@runtime_checkable
class ShortWay(Protocol):
    """A handler that can also begin plain requests without a task. For the loop's thread."""

    def begin(self, call: Call, done: Callable[[], object]) -> Callable[[], Reply] | None:
        """Begin a request whose `body` is its bytes; None, and nothing is begun, where it is to go the general way.

        `done` is called once, when it is through, and maybe before this returns. Then the result gives its answer, and
        raises what the handler would.
        """


@runtime_checkable
class SingleWay(Protocol):
    """A handler that can also begin some requests from their frames' bytes, without objects for each stage."""

    def single(
        self, data: memoryview, count: int, received_s: float, peer: Peer, ended: Callable[[Any], object]
    ) -> Any | None:
        """Begin the request whose frame, length and all, is the first `count` bytes; None, and nothing is begun, else.

        `ended` is called with it once, when it is through, and maybe before this returns.
        """

    def refused_single(self, request: Any) -> Encoded:
        """The answer to such a request that was refused."""
