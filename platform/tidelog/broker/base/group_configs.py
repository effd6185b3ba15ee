"""Configurations of groups at a broker: its own settings are their defaults, and bound them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidelog.broker.base.settings import GroupSettings
from tidelog.groups.config import ConfigBounds, GroupConfig, bounds_by
from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.keys import keys_of

SESSION: Final = "consumer.session.timeout.ms"
HEARTBEAT: Final = "consumer.heartbeat.interval.ms"
STREAMS_SESSION: Final = "streams.session.timeout.ms"
STREAMS_HEARTBEAT: Final = "streams.heartbeat.interval.ms"
STREAMS_DELAY: Final = "streams.initial.rebalance.delay.ms"
STANDBYS: Final = "streams.num.standby.replicas"


def inherited(settings: GroupSettings) -> Mapping[str, Any]:
    """What a group has that is configured with nothing, by key."""
    return {
        SESSION: settings.consumer_session_timeout_ms,
        HEARTBEAT: settings.consumer_heartbeat_interval_ms,
        STREAMS_SESSION: settings.streams_session_timeout_ms,
        STREAMS_HEARTBEAT: settings.streams_heartbeat_interval_ms,
        STREAMS_DELAY: settings.streams_initial_rebalance_delay_ms,
        STANDBYS: settings.streams_standby_replicas,
    }


def bounds_of(settings: GroupSettings) -> tuple[ConfigBounds, ...]:
    """What a group may be configured with."""
    return bounds_by({key.name: getattr(settings, field) for field, key in keys_of(GroupSettings).items()})


@dataclass(frozen=True, slots=True)
class InForce:
    """What counts for a group at a broker, by key. `config`: what the group itself is configured with."""

    config: Mapping[str, str]
    values: Mapping[str, int]


class GroupConfigs:
    """What groups are configured with, within the bounds of one broker's settings. For any thread."""

    def __init__(self, settings: GroupSettings) -> None:
        self._usual = inherited(settings)
        self._bounds = bounds_of(settings)

    def in_force(self, config: Mapping[str, str], before: InForce | None = None) -> InForce:
        """The values of keys that have bounds, for a group with this configuration; `before`: those of another one.

        Values that were set elsewhere, where other bounds held, become the nearest that this broker takes.
        """
        if before is not None and before.config == config:
            return before
        try:
            own = GroupConfig.parse(config).own
        except InvalidConfigError:  # a newer program has set what this one does not know
            own = {}
        values = {
            bound.key: bound.bounded(own[bound.key]) if bound.key in own else self._usual[bound.key]
            for bound in self._bounds
        }
        return InForce(config, values)
