"""Configurations of groups at a broker: its own settings are their defaults, and bound them."""

from collections.abc import Mapping
from typing import Any, Final

from tidelog.broker.base.settings import GroupSettings
from tidelog.groups.config import ConfigBounds, GroupConfig
from tidelog.log.base.errors import InvalidConfigError

SESSION: Final = "consumer.session.timeout.ms"
HEARTBEAT: Final = "consumer.heartbeat.interval.ms"


def inherited(settings: GroupSettings) -> Mapping[str, Any]:
    """What a group has that is configured with nothing, by key."""
    return {SESSION: settings.consumer_session_timeout_ms, HEARTBEAT: settings.consumer_heartbeat_interval_ms}


def bounds_of(settings: GroupSettings) -> tuple[ConfigBounds, ...]:
    """What a group may be configured with."""
    return (
        ConfigBounds(
            SESSION,
            settings.consumer_min_session_timeout_ms,
            "group.consumer.min.session.timeout.ms",
            settings.consumer_max_session_timeout_ms,
            "group.consumer.max.session.timeout.ms",
        ),
        ConfigBounds(
            HEARTBEAT,
            settings.consumer_min_heartbeat_interval_ms,
            "group.consumer.min.heartbeat.interval.ms",
            settings.consumer_max_heartbeat_interval_ms,
            "group.consumer.max.heartbeat.interval.ms",
        ),
    )


def in_force(settings: GroupSettings, config: Mapping[str, str]) -> dict[str, int]:
    """The values of keys that have bounds, for a group with this configuration.

    Values that were set elsewhere, where other bounds held, become the nearest that this broker takes.
    """
    usual = inherited(settings)
    if not config:
        return dict(usual)
    try:
        own = GroupConfig.parse(config).own
    except InvalidConfigError:  # a newer program has set what this one does not know
        own = {}
    return {
        bound.key: bound.bounded(own[bound.key]) if bound.key in own else usual[bound.key]
        for bound in bounds_of(settings)
    }
