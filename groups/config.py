"""What a group may be configured with: keys of groups of the types consumer and streams, by Kafka's names.

Source: `GroupConfig`, `GroupCoordinatorConfig` (kafka 4.2).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.typed_values import MAX_INT
from tidelog.log.config.broker_keys import BROKER_KEYS
from tidelog.log.config.key_type import Key, int_of
from tidelog.log.config.overrides import KeyDescription, KeyValue, Settings, keys_of


@dataclass(frozen=True)
class GroupConfig(Settings):
    """A group's configuration. `inherited`: what a broker was started with, by the same keys."""

    LEVEL = "group"

    consumer_session_timeout_ms = Key(
        45_000,
        int_of(1),
        "How long a member of the consumer protocol may be silent.",
        "group.consumer.session.timeout.ms",
    )
    consumer_heartbeat_interval_ms = Key(
        5_000,
        int_of(1),
        "The longest interval between heartbeats of a member of the consumer protocol.",
        "group.consumer.heartbeat.interval.ms",
    )

    streams_session_timeout_ms = Key(
        45_000,
        int_of(1),
        "How long a member of the streams protocol may be silent.",
        "group.streams.session.timeout.ms",
    )
    streams_heartbeat_interval_ms = Key(
        5_000,
        int_of(1),
        "The longest interval between heartbeats of a member of the streams protocol.",
        "group.streams.heartbeat.interval.ms",
    )
    streams_initial_rebalance_delay_ms = Key(
        3_000,
        int_of(0),
        "How long a streams group without members waits for more of them, once the first one has joined.",
        "group.streams.initial.rebalance.delay.ms",
    )
    streams_num_standby_replicas = Key(
        0,
        int_of(0),
        "How many copies there are of each state of a streams group, in other processes than it is used in.",
        "group.streams.num.standby.replicas",
    )

    @classmethod
    def parse(cls, texts: Mapping[str, str], inherited: Mapping[str, Any] | None = None) -> "GroupConfig":
        """The configuration of texts by key. Raises `InvalidConfigError`."""
        return cls(cls._parsed(texts), inherited or {})

    def merged(self, changes: Mapping[str, str | None]) -> "GroupConfig":
        """It after changes; None resets a key. Raises `InvalidConfigError`."""
        return type(self)(self._changed(changes), self.inherited)

    @classmethod
    def unknown(cls, name: str, names: Iterable[str]) -> InvalidConfigError:
        """For what is no key, in Kafka's words."""
        return InvalidConfigError(
            f"Unknown group config name: {name}. A key that nothing reads would do nothing: give one of"
            f" {', '.join(names)}."
        )

    def _described(self, key: Key[Any]) -> KeyDescription:
        of_broker = [KeyValue(key.lake_name, key.kind.text(key.default), "default")]
        if key.name in self.inherited:
            of_broker.insert(0, KeyValue(key.lake_name, key.kind.text(self.inherited[key.name]), "broker"))
        own = [KeyValue(key.name, key.kind.text(self.own[key.name]), "group")] if key.name in self.own else []
        return KeyDescription(key.name, key.kind, key.doc, (*own, *of_broker))


GroupConfig.KEYS = keys_of(GroupConfig)


@dataclass(frozen=True, slots=True)
class ConfigBounds:
    """What a key of groups may be set to at a broker: `low` to `high`, which are values of keys of its own."""

    key: str
    low: int
    low_name: str
    high: int
    high_name: str

    def check(self, config: GroupConfig) -> None:
        """Refuse a value beyond the bounds. Raises `InvalidConfigError`. Source: `GroupConfig.validateValues`."""
        value = config.own.get(self.key)
        if value is not None and value < self.low:
            raise InvalidConfigError(
                f"{self.key} must be greater than or equal to {self.low_name}: {value} is below {self.low}."
            )
        if value is not None and value > self.high:
            raise InvalidConfigError(
                f"{self.key} must be less than or equal to {self.high_name}: {value} is above {self.high}."
            )

    def bounded(self, value: int) -> int:
        """The value, or the bound that it is beyond: it may have been set where other bounds held."""
        return max(self.low, min(value, self.high))


# {key: the settings of brokers that bound it}; "" for 0, and for the largest number.
_BOUNDED: Final = {
    "consumer.session.timeout.ms": ("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    "consumer.heartbeat.interval.ms": (
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    "streams.session.timeout.ms": ("group.streams.min.session.timeout.ms", "group.streams.max.session.timeout.ms"),
    "streams.heartbeat.interval.ms": (
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
    ),
    "streams.initial.rebalance.delay.ms": ("", ""),
    "streams.num.standby.replicas": ("", "group.streams.max.standby.replicas"),
}


def bounds_by(settings: Mapping[str, Any]) -> tuple[ConfigBounds, ...]:
    """What groups may be configured with by these settings of a broker, each by its key."""
    return tuple(
        ConfigBounds(
            key, settings[low] if low else 0, low or "0", settings[high] if high else MAX_INT, high or str(MAX_INT)
        )
        for key, (low, high) in _BOUNDED.items()
    )


_DEFAULTS: Final = {name: key.default for name, key in BROKER_KEYS.items()}
# What holds where no broker is asked.
DEFAULT_BOUNDS: Final = bounds_by(_DEFAULTS)
# The sessions that members of the library go by, whatever bounds hold where they were set: those of any consumer.
MEMBER_SESSIONS: Final = ConfigBounds(
    "consumer.session.timeout.ms",
    _DEFAULTS["group.min.session.timeout.ms"],
    "group.min.session.timeout.ms",
    _DEFAULTS["group.max.session.timeout.ms"],
    "group.max.session.timeout.ms",
)
