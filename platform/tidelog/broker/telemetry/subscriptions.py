"""Which clients push which metrics, and how often: subscriptions, as kafka-client-metrics.sh makes them. Pure.

Source: `ClientMetricsConfigs`, `ClientMetricsManager.createClientInstance` (kafka 4.2).
"""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from tidelog.broker.base.expressions import compiled
from tidelog.broker.wire.errors import InvalidRequestError
from tidelog.log.base.errors import InvalidConfigError, InvalidRegularExpressionError
from tidelog.log.base.typed_values import Texts
from tidelog.log.config.key_type import Key, int_of
from tidelog.log.config.overrides import KeyDescription, KeyValue, Settings, keys_of

# Stands for all metrics.
ALL: Final = "*"
DEFAULT_INTERVAL_MS: Final = 300_000
# What a client is matched by.
MATCHED: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
# The most of each, so that a subscription is cheap to go by.
_MOST_METRICS: Final = 1_000
_LONGEST_METRIC: Final = 255
_MOST_PATTERNS: Final = 100


class _Metrics(Texts):
    def parse(self, value: Any) -> tuple[str, ...]:
        names = super().parse(value)
        if len(names) > _MOST_METRICS or any(len(name) > _LONGEST_METRIC for name in names):
            raise ValueError(f"at most {_MOST_METRICS} beginnings of names are taken, of {_LONGEST_METRIC} characters")
        return names


class _Match(Texts):
    def parse(self, value: Any) -> tuple[str, ...]:
        patterns = super().parse(value)
        if len(patterns) > _MOST_PATTERNS:
            raise ValueError(f"at most {_MOST_PATTERNS} patterns are taken")
        patterns_of(patterns)
        return patterns


def patterns_of(patterns: Iterable[str]) -> dict[str, Any]:
    """{what a client is matched by: an expression}. Raises `InvalidConfigError`; of two of a kind the later counts."""
    by_kind: dict[str, Any] = {}
    for pattern in patterns:
        kind, equals, regex = (part.strip() for part in pattern.partition("="))
        if not equals or not regex or "=" in regex or kind not in MATCHED:
            raise InvalidConfigError(
                f"Illegal client matching pattern: {pattern}. Write NAME=REGEX; a name is one of {', '.join(MATCHED)}."
            )
        try:
            by_kind[kind] = compiled(regex, "Match")
        except InvalidRegularExpressionError as e:
            raise InvalidConfigError(f"Illegal client matching pattern: {pattern}. {e}") from e
    return by_kind


@dataclass(frozen=True)
class MetricsSubscription(Settings):
    """One subscription, as it is configured."""

    LEVEL = "client_metrics"

    interval_ms = Key(DEFAULT_INTERVAL_MS, int_of(), "How often a client pushes its metrics.")
    metrics = Key((), _Metrics(), "The beginnings of the names of metrics that are pushed; * for all.")
    match = Key((), _Match(), "Which clients push: NAME=REGEX, separated by commas, of which all match; none for all.")

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> "MetricsSubscription":
        """The subscription of texts by key. Raises `InvalidRequestError`, `InvalidConfigError`."""
        subscription = cls(cls._parsed(texts))
        if not 100 <= subscription.interval_ms <= 3_600_000:
            raise InvalidRequestError(
                f"Invalid value {subscription.interval_ms} for interval.ms, interval must be between 100 and 3600000"
                " (1 hour)"
            )
        return subscription

    @classmethod
    def unknown(cls, name: str, names: Iterable[str]) -> Any:
        """For what is no key, in Kafka's words."""
        return InvalidRequestError(f"Unknown client metrics configuration: {name}. There are {', '.join(names)}.")

    def matches(self, client: Mapping[str, str]) -> bool:
        """Whether a client pushes what this asks for. `client`: what each of `MATCHED` is of it."""
        return all(regex.fullmatch(client[kind]) for kind, regex in self._patterns.items())

    @cached_property
    def _patterns(self) -> Mapping[str, Any]:
        return patterns_of(self.match)

    def _described(self, key: Key[Any]) -> KeyDescription:
        values = [KeyValue(key.name, key.kind.text(key.default), "default")]
        if key.name in self.own:
            values.insert(0, KeyValue(key.name, key.kind.text(self.own[key.name]), self.LEVEL))
        return KeyDescription(key.name, key.kind, key.doc, tuple(values))


MetricsSubscription.KEYS = keys_of(MetricsSubscription)


@dataclass(frozen=True, slots=True)
class WantedMetrics:
    """What one client is to push: beginnings of names, sorted; how often; the id of that, an INT."""

    metrics: tuple[str, ...]
    interval_ms: int
    subscription_id: int

    def takes(self, metric: str) -> bool:
        """Whether a metric is asked for."""
        return self.metrics == (ALL,) or metric.startswith(self.metrics)


def wanted(subscriptions: Iterable[MetricsSubscription], client: Mapping[str, str], instance: UUID) -> WantedMetrics:
    """What all subscriptions together ask of a client: all of their metrics, as often as the one that asks most."""
    metrics: set[str] = set()
    interval_ms = DEFAULT_INTERVAL_MS
    for subscription in subscriptions:
        if subscription.matches(client):
            metrics.update(subscription.metrics)
            interval_ms = min(interval_ms, subscription.interval_ms)
    names = (ALL,) if ALL in metrics else tuple(sorted(metrics))
    checksum = zlib.crc32(f"{names} {interval_ms} {instance}".encode())
    return WantedMetrics(names, interval_ms, checksum - 2**32 if checksum >= 2**31 else checksum)
