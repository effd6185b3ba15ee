"""The clients that push metrics to a broker: what each is to push, and whether it keeps to its interval. Pure.

What is here is lost without harm: a client that asks another broker, or this one after a start, is known by its id, and
learns its subscription again. Source: `ClientMetricsManager`, `ClientMetricsInstance` (kafka 4.2).
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from tidelog.broker.telemetry.errors import (
    TelemetryTooLargeError,
    UnknownSubscriptionIdError,
    UnsupportedCompressionTypeError,
)
from tidelog.broker.telemetry.subscriptions import MetricsSubscription, WantedMetrics, wanted
from tidelog.broker.wire.errors import InvalidRequestError, ThrottlingQuotaExceededError
from tidelog.log.base.errors import TidelogError

# The most clients that are remembered, those that were silent longest being forgotten, and for how long one is.
MOST: Final = 16_384
_REMEMBERED_S: Final = 60.0
_INTERVALS: Final = 3
# By Kafka's numbers: none, gzip, snappy, lz4, zstd.
COMPRESSIONS: Final = range(5)
# Those ids that no client has. Source: `Uuid.RESERVED`.
RESERVED: Final = (UUID(int=0), UUID(int=1))


@dataclass(slots=True)
class PushingClient:
    """A client. Times are seconds of the elapsed clock."""

    wants: WantedMetrics
    version: object
    heard_s: float
    got_s: float | None = None
    pushed_s: float | None = None
    terminated: bool = False
    # After a refusal that has it ask for its subscription again, it may do so at once.
    may_ask: bool = False


class Instances:
    """All clients of one broker. For the loop's thread."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._subscriptions: Mapping[str, MetricsSubscription] = {}
        self._by_id: OrderedDict[UUID, PushingClient] = OrderedDict()

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._by_id)

    def alive(self, now_s: float) -> int:
        """How many clients there are, without those that were silent for too long."""
        return sum(now_s - client.heard_s <= _remembered_s(client) for client in list(self._by_id.values()))

    def go_by(self, subscriptions: Mapping[str, MetricsSubscription]) -> None:
        """Go by other subscriptions from now on: each client gets its own when it asks again."""
        self._subscriptions = subscriptions

    def asks(self, instance: UUID, client: Mapping[str, str], now_s: float) -> WantedMetrics:
        """A client asks what to push. Raises `ThrottlingQuotaExceededError` for one that asks too often."""
        pushing = self._instance(instance, client, now_s)
        last = max((at for at in (pushing.got_s, pushing.pushed_s) if at is not None), default=None)
        if last is not None and not pushing.may_ask and now_s - last < pushing.wants.interval_ms / 1000:
            raise _too_soon(instance, pushing)
        pushing.got_s, pushing.may_ask = now_s, False
        return pushing.wants

    def pushes(
        self,
        instance: UUID,
        client: Mapping[str, str],
        now_s: float,
        *,
        subscription_id: int,
        compression: int,
        size: int,
        terminating: bool,
    ) -> WantedMetrics:
        """A client pushes `size` bytes; what it was to push. Nothing follows a push of one that is `terminating`.

        Raises `InvalidRequestError`, `ThrottlingQuotaExceededError`, `UnknownSubscriptionIdError`,
        `UnsupportedCompressionTypeError`, `TelemetryTooLargeError`.
        """
        if instance in RESERVED:
            raise InvalidRequestError(f"Invalid request from the client [{instance}], invalid client instance id")
        pushing = self._instance(instance, client, now_s)
        try:
            self._check(pushing, instance, now_s, subscription_id, compression, size, terminating)
        except (UnknownSubscriptionIdError, UnsupportedCompressionTypeError):
            pushing.may_ask = True
            raise
        finally:
            pushing.terminated = terminating
        return pushing.wants

    def _check(
        self,
        pushing: PushingClient,
        instance: UUID,
        now_s: float,
        subscription_id: int,
        compression: int,
        size: int,
        terminating: bool,
    ) -> None:
        if pushing.terminated:
            raise InvalidRequestError(
                f"Client [{instance}] sent the previous request with state terminating to TRUE, can not accept any"
                " requests after that"
            )
        # The first push after a question comes within half an interval or one and a half: clients don't push together.
        asked_since = pushing.got_s is not None and (pushing.pushed_s is None or pushing.got_s > pushing.pushed_s)
        in_time = pushing.pushed_s is None or now_s - pushing.pushed_s >= pushing.wants.interval_ms / 1000
        if asked_since or in_time:
            pushing.pushed_s = now_s
        elif not terminating:
            raise _too_soon(instance, pushing)
        if subscription_id != pushing.wants.subscription_id:
            raise UnknownSubscriptionIdError(
                f"Unknown client subscription id for the client [{instance}]: its subscription has changed. Ask for it"
                " again."
            )
        if compression not in COMPRESSIONS:
            raise UnsupportedCompressionTypeError(
                f"Unknown compression type [{compression}] is received in telemetry request from [{instance}]"
            )
        if size > self._most_bytes:
            raise TelemetryTooLargeError(
                f"Telemetry request from [{instance}] is larger than the maximum allowed size [{self._most_bytes}]"
            )

    def _instance(self, instance: UUID, client: Mapping[str, str], now_s: float) -> PushingClient:
        client_state = self._by_id.get(instance)
        if client_state is None or client_state.version is not self._subscriptions:
            wants = wanted(self._subscriptions.values(), {**client, "client_instance_id": str(instance)}, instance)
            if client_state is None or client_state.wants != wants:
                client_state = PushingClient(wants, self._subscriptions, now_s)
            client_state.version = self._subscriptions
        client_state.heard_s = now_s
        self._by_id[instance] = client_state
        self._by_id.move_to_end(instance)
        self._forget(now_s)
        return client_state

    def _forget(self, now_s: float) -> None:
        while self._by_id:
            instance, oldest = next(iter(self._by_id.items()))
            if len(self._by_id) <= MOST and now_s - oldest.heard_s <= _remembered_s(oldest):
                return
            del self._by_id[instance]


def _remembered_s(client: PushingClient) -> float:
    return max(_REMEMBERED_S, _INTERVALS * client.wants.interval_ms / 1000)


def _too_soon(instance: UUID, pushing: PushingClient) -> TidelogError:
    return ThrottlingQuotaExceededError(
        f"Request from the client [{instance}] arrived before the next push interval time: it is"
        f" {pushing.wants.interval_ms} ms."
    )
