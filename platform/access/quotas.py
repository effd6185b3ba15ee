"""Quotas: which limits hold for a connection, and how long it has to wait. Pure; Kafka's rules (KIP-13, 55, 257, 599).

A rate is measured over a window of samples, as Kafka measures it, or by a bucket of tokens for what comes in bursts.
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
        if not limit > 0:
            raise InvalidConfigError(f"{quota}={limit:g}: a quota is a rate above 0. Remove it to take it away.")


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


class SampledRate:
    """A rate over the last samples: `quota.window.num` of `quota.window.size.seconds` each.

    What is taken is never refused: a client that took too much waits until the rate is what it may be.
    """

    def __init__(self, samples: int = 11, sample_s: float = 1.0) -> None:
        self._most = samples
        self._sample_s = sample_s
        self._samples: deque[tuple[float, float]] = deque()  # when each began, and what was taken in it

    def take(self, amount: float, now_s: float, limit: float) -> float:
        """Count an amount; for how many seconds its taker has to wait."""
        if not self._samples or now_s - self._samples[-1][0] >= self._sample_s:
            self._samples.append((now_s, 0.0))
        began_s, taken = self._samples[-1]
        self._samples[-1] = (began_s, taken + amount)
        self._forget(now_s)
        total, window_s = sum(taken for _, taken in self._samples), self._window_s(now_s)
        # As long as it takes until the same amount over a longer window is within the limit.
        return max(0.0, total / limit - window_s)

    def _forget(self, now_s: float) -> None:
        while now_s - self._samples[0][0] >= self._most * self._sample_s:
            self._samples.popleft()

    def _window_s(self, now_s: float) -> float:
        """The time that the samples cover; of a new rate, all but the one that has just begun, as Kafka counts."""
        return max(now_s - self._samples[0][0], (self._most - 1) * self._sample_s)


class TokenBucket:
    """A bucket that fills at the limit, up to what the window holds; it may be overdrawn once (KIP-599)."""

    def __init__(self, now_s: float, burst_s: float = 11.0) -> None:
        self._burst_s = burst_s
        self._tokens: float | None = None
        self._filled_s = now_s

    def take(self, amount: float, now_s: float, limit: float) -> float:
        """Take an amount; for how many seconds its taker has to wait, 0 where it was there."""
        most = limit * self._burst_s
        left = most if self._tokens is None else min(most, self._tokens + limit * (now_s - self._filled_s))
        self._filled_s = now_s
        self._tokens = left - amount
        return max(0.0, -self._tokens / limit)

    def is_overdrawn(self, now_s: float, limit: float) -> bool:
        """Whether a request has to wait before it is taken."""
        return self._tokens is not None and self._tokens + limit * (now_s - self._filled_s) < 0
