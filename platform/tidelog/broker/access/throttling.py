"""Quotas in force: what a broker counts of each client, and how long one that is over its limit has to wait.

The answer has the time at once, as `throttle_time_ms`, and the broker reads nothing of the client meanwhile (KIP-219).
Produced bytes count when they come; a consumer over its limit gets an answer without records. Source: Kafka's
`ClientQuotaManager`, `ClientRequestQuotaManager` and `ControllerMutationQuotaManager`; the buckets are those of
`tidelog.access.quotas`.
"""

import math
import struct
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextvars import ContextVar
from types import coroutine
from typing import Any, Final, ParamSpec, TypeVar, cast

from tidelog.access.quotas import Entity, Limits, Quota, SampledRate, TokenBucket, limit_of, limit_of_address
from tidelog.broker.base.calls import Allowance, Call, Encoded, Handler, Peer, Reply
from tidelog.broker.base.settings import QuotaSettings
from tidelog.broker.wire.apis import BETWEEN_BROKERS, ApiKey
from tidelog.broker.wire.errors import ThrottlingQuotaExceededError
from tidelog.broker.wire.messages import has_throttle_time
from tidelog.log.base.clock import Clock, processor_s
from tidelog.server.base.blocking import Blocking

P = ParamSpec("P")
R = TypeVar("R")

# Clients choose their ids: of more entities than this, those that were silent for the longest are forgotten.
MOST_ENTITIES: Final = 10_000
# The limits of clients that were looked up, until quotas change.
_MOST_FOUND: Final = 10_000
# From these versions on, changes of partitions above the quota are refused (KIP-599).
_STRICT_SINCE: Final = {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}
# Metadata may create topics on the way: they are counted, and never refused.
_CHANGE_PARTITIONS: Final = frozenset({*_STRICT_SINCE, ApiKey.METADATA})
_INT32: Final = struct.Struct(">i")
_MOST_MS: Final = 2**31 - 1


class QuotaMeter:
    """What one entity takes of one quota. `limit`: the one that held last; `seen_s`: when it took something."""

    __slots__ = ("_throttled_s", "_throttles", "bucket", "limit", "rate", "seen_s")

    def __init__(self, limit: float, now_s: float, settings: QuotaSettings, burst_s: float) -> None:
        self.limit = limit
        self.seen_s = now_s
        self.bucket = TokenBucket(now_s, burst_s)
        self.rate = SampledRate(settings.windows, settings.window_s)
        self._throttled_s = SampledRate(settings.windows, settings.window_s)
        self._throttles = SampledRate(settings.windows, settings.window_s)

    def take(self, amount: float, now_s: float) -> float:
        """Take an amount; for how many seconds its taker has to wait."""
        self.rate.add(amount, now_s)
        return self.bucket.take(amount, now_s, self.limit)

    def throttled(self, wait_s: float, now_s: float) -> None:
        """A request's client has to wait."""
        self._throttled_s.add(wait_s, now_s)
        self._throttles.add(1, now_s)

    def throttle_ms(self, now_s: float) -> float:
        """Throttle time of late, ms: the mean of the requests that had one."""
        count = self._throttles.rate(now_s)
        return 1000 * self._throttled_s.rate(now_s) / count if count else 0.0

    def is_idle(self, now_s: float, window_s: float) -> bool:
        """Whether forgetting it changes nothing."""
        full = self.bucket.left(now_s, self.limit) >= self.limit * self.bucket.burst_s
        return full and now_s - self.seen_s > window_s


class Throttling:
    """All quotas of a broker. For the loop's thread; `meters` for any.

    `limits()`: the quotas as of now. `processor_s`: the processor time of the thread that calls it.
    """

    def __init__(
        self,
        limits: Callable[[], Limits],
        clock: Clock,
        settings: QuotaSettings,
        processor_s: Callable[[], float] = processor_s,
    ) -> None:
        self._limits = limits
        self.clock = clock
        self.processor_s = processor_s
        self._settings = settings
        self._window_s = settings.windows * settings.window_s
        self._meters: dict[tuple[Quota, Entity], QuotaMeter] = {}  # the one that was silent for the longest first
        # Of these limits: which quotas there are, and those of clients that asked.
        self._seen: Limits = {}
        self._kinds: frozenset[Quota] = frozenset()
        self._found: dict[tuple[Quota, str, str], tuple[Entity, float] | None] = {}

    @property
    def is_open(self) -> bool:
        """Whether no quota holds for any request."""
        return not self._limits()

    def request(
        self, key: ApiKey, version: int, peer: Peer, client_id: str | None, size: int
    ) -> "ThrottledRequest | None":
        """A request of `size` bytes begins; None where no quota can hold for it."""
        if self.is_open or key in BETWEEN_BROKERS:
            return None
        return ThrottledRequest(self, key, version, (peer.principal.partition(":")[2], client_id or ""), size)

    def connection(self, host: str) -> float:
        """An address opens a connection; for how many seconds it has to wait instead, 0 where it may go on."""
        limits = self._limits()
        if not limits or Quota.CONNECTION_CREATION_RATE not in self._kinds_of(limits):
            return 0.0
        limit = limit_of_address(limits, host)
        if limit is None:
            return 0.0
        now_s = self.clock.elapsed_s()
        meter = self._meter(Quota.CONNECTION_CREATION_RATE, Entity(ip=host), limit, now_s)
        wait_s = meter.bucket.wait_s(now_s, limit)
        if wait_s:  # what is refused does not count
            wait_s = min(wait_s, self._settings.window_s)
            meter.throttled(wait_s, now_s)
            return wait_s
        meter.take(1, now_s)
        return 0.0

    def meter_of(self, quota: Quota, client: tuple[str, str], now_s: float) -> QuotaMeter | None:
        """The meter that counts for a client (user, client id); None where it has no such quota."""
        limits = self._limits()
        if quota not in self._kinds_of(limits):
            return None
        at = (quota, *client)
        if at not in self._found:
            if len(self._found) >= _MOST_FOUND:
                self._found.clear()
            self._found[at] = limit_of(limits, quota, *client)
        found = self._found[at]
        return None if found is None else self._meter(quota, *found, now_s)

    def meters(self) -> Mapping[tuple[Quota, Entity], QuotaMeter]:
        """Those of entities that were active of late."""
        return self._meters.copy()

    def bound_s(self, quota: Quota, wait_s: float) -> float:
        """The throttle time that makes up for what was taken: for processor time, all windows at most."""
        return min(wait_s, self._window_s) if quota is Quota.REQUEST_PERCENTAGE else wait_s

    def _kinds_of(self, limits: Limits) -> frozenset[Quota]:
        if limits is not self._seen:
            self._seen, self._kinds = limits, frozenset(quota for of in limits.values() for quota in of)
            self._found.clear()
        return self._kinds

    def _meter(self, quota: Quota, entity: Entity, limit: float, now_s: float) -> QuotaMeter:
        at = quota, entity
        meter = self._meters.pop(at, None)
        if meter is None:
            self._forget(now_s)
            settings, burst_s = self._settings, self._settings.window_s
            if quota is Quota.CONTROLLER_MUTATION_RATE:
                burst_s = settings.controller_windows * settings.controller_window_s
            meter = QuotaMeter(limit, now_s, settings, burst_s)
        self._meters[at] = meter
        meter.limit, meter.seen_s = limit, now_s
        return meter

    def _forget(self, now_s: float) -> None:
        while self._meters:
            first = next(iter(self._meters))
            if len(self._meters) < MOST_ENTITIES and not self._meters[first].is_idle(now_s, self._window_s):
                break
            del self._meters[first]


class ThrottledRequest(Allowance):
    """A request of a client that may have quotas, from its beginning to its answer.

    `until_s`: how long its client has to wait, on the elapsed clock: after the beginning as far as what came says,
    after `run` in all. `client`: (user, client id).
    """

    def __init__(self, throttling: Throttling, key: ApiKey, version: int, client: tuple[str, str], size: int) -> None:
        self._throttling = throttling
        self._key = key
        self._version = version
        self._client = client
        self.until_s = 0.0
        now_s = throttling.clock.elapsed_s()
        if key is ApiKey.PRODUCE:
            self._take(Quota.PRODUCER_BYTE_RATE, size, now_s)
        elif key in _CHANGE_PARTITIONS:
            self.limits_partitions = throttling.meter_of(Quota.CONTROLLER_MUTATION_RATE, client, now_s) is not None
        elif key is ApiKey.FETCH:
            meter = throttling.meter_of(Quota.CONSUMER_BYTE_RATE, client, now_s)
            if meter is not None:
                left = meter.bucket.left(now_s, meter.limit)
                self.most_bytes = max(1, int(left)) if left >= 0 else 0

    def change_partitions(self, count: int) -> None:
        """As `Allowance`: older clients don't know the error, and wait afterwards."""
        now_s = self._throttling.clock.elapsed_s()
        meter = self._throttling.meter_of(Quota.CONTROLLER_MUTATION_RATE, self._client, now_s)
        if meter is None:
            return
        wait_s = meter.bucket.wait_s(now_s, meter.limit)
        strict_since = _STRICT_SINCE.get(self._key)
        if wait_s and strict_since is not None and self._version >= strict_since:
            self._wait(meter, wait_s, now_s)
            raise ThrottlingQuotaExceededError(
                "The throttling quota has been exceeded: the client's controller_mutation_rate allows"
                f" {meter.limit:g} partitions a second to be created or deleted. Try again in {wait_s:.1f} s."
            )
        self._take(Quota.CONTROLLER_MUTATION_RATE, count, now_s)

    async def run(self, handler: Handler, call: Call) -> Reply:
        """The handler's answer, with the time that the client has to wait."""
        throttling = self._throttling
        clock = throttling.clock
        if throttling.meter_of(Quota.REQUEST_PERCENTAGE, self._client, clock.elapsed_s()) is None:
            reply = await handler(call)
        else:
            spent = _Spent()
            _SPENDER.set(spent)
            try:
                work = cast(Coroutine[Any, Any, Reply], handler(call))
                reply = await _counted_steps(work, spent, throttling.processor_s)
            finally:
                spent.is_over = True
                _SPENDER.set(None)
            percent = 100 * sum(spent.times_s)
            self._take(Quota.REQUEST_PERCENTAGE, percent, clock.elapsed_s())
        now_s = clock.elapsed_s()
        if self._key is ApiKey.FETCH and isinstance(reply, Encoded):
            # An answer without records that tells a client to wait does not count.
            self._take(Quota.CONSUMER_BYTE_RATE, sum(map(len, reply.pieces)) if self.most_bytes else 0, now_s)
        left_ms = min(math.ceil(1000 * (self.until_s - now_s)), _MOST_MS)
        return _with_throttle_time(reply, self._key, left_ms) if left_ms > 0 else reply

    def _take(self, quota: Quota, amount: float, now_s: float) -> None:
        meter = self._throttling.meter_of(quota, self._client, now_s)
        if meter is not None:
            wait_s = meter.take(amount, now_s)
            if wait_s:
                self._wait(meter, self._throttling.bound_s(quota, wait_s), now_s)

    def _wait(self, meter: QuotaMeter, wait_s: float, now_s: float) -> None:
        meter.throttled(wait_s, now_s)
        self.until_s = max(self.until_s, now_s + wait_s)


def _with_throttle_time(reply: Reply, key: ApiKey, wait_ms: int) -> Reply:
    """The answer with its throttle time, where it has one."""
    if isinstance(reply, Encoded):
        at = reply.throttle_at
        if at < 0:
            return reply
        first, *others = reply.pieces
        patched = b"".join((first[:at], _INT32.pack(wait_ms), first[at + _INT32.size :]))
        return Encoded([patched, *others], reply.errors, at)
    if reply is None or not has_throttle_time(key):
        return reply
    return {**reply, "throttle_time": wait_ms}


# --- processor time ------------------------------------------------------------------------------------------


class _Spent:
    """The processor time of a request whose handler runs in this thread.

    `is_over`: it is answered. Tasks that its handler began may go on for other requests.
    """

    __slots__ = ("is_over", "thread", "times_s")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.times_s: list[float] = []
        self.is_over = False


_SPENDER: Final[ContextVar[_Spent | None]] = ContextVar("tidelog_spender", default=None)


@coroutine
def _counted_steps(
    work: Coroutine[Any, Any, R], spent: _Spent, processor_s: Callable[[], float]
) -> Generator[Any, Any, R]:
    """Await the work, and count the time of each of its steps: between them the loop does other things."""
    step: Callable[[], Any] = lambda: work.send(None)  # noqa: E731 - the first of many
    while True:
        began_s = processor_s()
        try:
            awaited = step()
        except StopIteration as e:
            return cast(R, e.value)
        finally:
            spent.times_s.append(processor_s() - began_s)
        try:
            yield awaited
        except BaseException as e:
            thrown = e
            step = lambda: work.throw(thrown)  # noqa: E731, B023
        else:
            step = lambda: work.send(None)  # noqa: E731


def counted(blocking: Blocking, processor_s: Callable[[], float] = processor_s) -> Blocking:
    """The same, with the processor time of calls counted for the request that begins them, where one is counted.

    What is done for several requests together counts for the one that begins it.
    """

    def run(call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        spent = _SPENDER.get()
        if spent is None or spent.is_over:
            return blocking(call, *args, **kwargs)

        def timed() -> R:
            if threading.get_ident() == spent.thread:  # it is a part of the handler's step
                return call(*args, **kwargs)
            began_s = processor_s()
            try:
                return call(*args, **kwargs)
            finally:
                spent.times_s.append(processor_s() - began_s)

        return blocking(timed)

    return run
