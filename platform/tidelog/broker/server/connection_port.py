"""What a connection needs of its broker."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tidelog.broker.access.throttling import Throttling
from tidelog.broker.base.calls import Handlers, ShortWay, SingleWay
from tidelog.broker.base.meter import BrokerMeter
from tidelog.broker.base.settings import Bounds
from tidelog.broker.sasl.login import ConnectionLogin
from tidelog.broker.server.answering import LargeRequests
from tidelog.broker.server.budget import Budget
from tidelog.broker.server.connection_lines import ConnectionLines
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.base.clock import Clock


class Server(Protocol):
    """What a connection needs of its broker. `short`: the handlers that have a short way; `single`: of Produce, if any.

    `requests`, `answers`: what all connections hold of its memory.
    `scratch`: as `FrameReceiver` has it, of the broker's loop. `large`: where large requests have their turn.

    `login(listener, logged_in)`: how a client logs in there; None where it needn't.
    """

    handlers: Handlers
    short: Mapping[ApiKey, ShortWay]
    single: SingleWay | None
    login: Callable[[str, Callable[[str], None]], ConnectionLogin | None]
    clock: Clock
    bounds: Bounds
    meter: BrokerMeter
    lines: ConnectionLines
    throttling: Throttling
    requests: Budget
    answers: Budget
    scratch: memoryview
    large: LargeRequests

    def ended(self, request: Any) -> None:
        """A request of the single way is through; `ended_single` is called soon."""

    def opened(self, connection: Any) -> str:
        """A connection has come; why it is refused, "" when it is not."""

    def closed(self, connection: Any) -> None:
        """It is gone."""
