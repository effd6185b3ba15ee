"""Quotas: which limits hold for a connection, and how long it has to wait. Pure; Kafka's rules (KIP-13, 55, 257, 599).

Every limit is a bucket of tokens, which KIP-599 has for mutations only. For bytes Kafka takes the mean of a window
of samples, which many connections of one client overrun by half; a bucket holds them to the limit.
Every broker counts for itself.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tidelog.log.base.errors import InvalidConfigError

# The name that stands for what has no quota of its own (`--entity-default` of kafka-configs.sh).
DEFAULT: Final = "<default>"


class Quota(StrEnum):
    """What is limited, by Kafka's names."""

    PRODUCER_BYTE_RATE = "producer_byte_rate"
    CONSUMER_BYTE_RATE = "consumer_byte_rate"
    REQUEST_PERCENTAGE = "request_percentage"
    CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
    CONNECTION_CREATION_RATE = "connection_creation_rate"


@dataclass(frozen=True, slots=True, order=True)
class Entity:
    """Whom a quota is for: a user, a client id, both, or an address; None for what it is not about, or `DEFAULT`.

    `user` is a name without "User:".
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None


# What is limited to whole numbers, as Kafka has it (`QuotaConfig`), and how near to one a limit has to be.
WHOLE: Final = frozenset({Quota.PRODUCER_BYTE_RATE, Quota.CONSUMER_BYTE_RATE, Quota.CONNECTION_CREATION_RATE})
_EPSILON: Final = 1e-6

# {entity: {what is limited: the limit}}
Limits = Mapping[Entity, Mapping[Quota, float]]


def require_valid(entity: Entity, limits: Mapping[Quota, float]) -> None:
    """Refuse a quota that would never hold, or for what no limit is. Raises `InvalidConfigError`."""
    of_ip = entity.ip is not None
    if entity == Entity() or (of_ip and (entity.user is not None or entity.client_id is not None)):
        raise InvalidConfigError("A quota is for a user, a client id, both of them, or an address by itself.")
    for quota, limit in limits.items():
        if of_ip != (quota is Quota.CONNECTION_CREATION_RATE):
            whose = "an address" if not of_ip else "users and client ids"
            raise InvalidConfigError(f"{quota} is a quota of {whose}.")
        if not 0 < limit < float("inf"):
            raise InvalidConfigError(f"{quota}={limit:g}: a quota is a rate above 0. Remove it to take it away.")
        if quota in WHOLE and abs(limit - round(limit)) > _EPSILON:
            raise InvalidConfigError(f"{quota}={limit:g}: this quota is a whole number.")


def limit_of(limits: Limits, quota: Quota, user: str, client_id: str) -> tuple[Entity, float] | None:
    """The limit that holds for a client, with whom it counts together; None where none does.

    The most specific of eight levels decides: user and client id, user and default client id, user, default user and
    client id, both defaults, default user, client id, default client id. A user with a limit by a default counts alone.
    """
    for of_user, of_client in (
        (user, client_id),
        (user, DEFAULT),
        (user, None),
        (DEFAULT, client_id),
        (DEFAULT, DEFAULT),
        (DEFAULT, None),
        (None, client_id),
        (None, DEFAULT),
    ):
        limit = limits.get(Entity(of_user, of_client), {}).get(quota)
        if limit is not None:
            shares = Entity(None if of_user is None else user, None if of_client is None else client_id)
            return shares, limit
    return None


def limit_of_address(limits: Limits, ip: str) -> float | None:
    """Connections a second that an address may open; None where there is no limit."""
    for name in (ip, DEFAULT):
        limit = limits.get(Entity(ip=name), {}).get(Quota.CONNECTION_CREATION_RATE)
        if limit is not None:
            return limit
    return None


class TokenBucket:
    """A bucket that fills at the limit, and holds what the limit brings in `burst_s` seconds.

    What is taken is never refused: a client that took more than there was has to wait until the bucket has it.
    So the rate holds however large single amounts are, and however many connections share it.
    """

    def __init__(self, now_s: float, burst_s: float) -> None:
        self.burst_s = burst_s
        self._left: float | None = None  # as of `_filled_s`; None: full
        self._filled_s = now_s

    def left(self, now_s: float, limit: float) -> float:
        """How much is there, below 0 where it is overdrawn."""
        most = limit * self.burst_s
        return most if self._left is None else min(most, self._left + limit * (now_s - self._filled_s))

    def take(self, amount: float, now_s: float, limit: float) -> float:
        """Take an amount; for how many seconds its taker has to wait, 0 where it was there."""
        self._left = self.left(now_s, limit) - amount
        self._filled_s = now_s
        return max(0.0, -self._left / limit)

    def wait_s(self, now_s: float, limit: float) -> float:
        """For how many seconds the bucket is overdrawn."""
        return max(0.0, -self.left(now_s, limit) / limit)


class SampledRate:
    """What was taken a second, over the last samples: for metrics, as Kafka's sensors measure."""

    def __init__(self, samples: int, sample_s: float) -> None:
        self._most = samples
        self._sample_s = sample_s
        self._samples: deque[tuple[float, float]] = deque()  # when each began, and what was taken in it

    def add(self, amount: float, now_s: float) -> None:
        """Count an amount."""
        if not self._samples or now_s - self._samples[-1][0] >= self._sample_s:
            self._samples.append((now_s, 0.0))
            self._forget(now_s)
        began_s, taken = self._samples[-1]
        self._samples[-1] = (began_s, taken + amount)

    def rate(self, now_s: float) -> float:
        """Amount a second; of a rate that is new, over all samples but one."""
        since_s = now_s - self._most * self._sample_s
        samples = [(began_s, taken) for began_s, taken in tuple(self._samples) if began_s > since_s]
        if not samples:
            return 0.0
        window_s = max(now_s - samples[0][0], (self._most - 1) * self._sample_s)
        return sum(taken for _, taken in samples) / window_s

    def _forget(self, now_s: float) -> None:
        while now_s - self._samples[0][0] >= self._most * self._sample_s:
            self._samples.popleft()
