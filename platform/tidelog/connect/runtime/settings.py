"""The keys that every connector's configuration has, beside the connector's own (Connect's `ConnectorConfig`)."""

import re
from collections.abc import Mapping
from typing import Any, Final

from tidelog.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance
from tidelog.connect.config.validators import all_of, between, non_empty, one_of, pattern, read_by
from tidelog.connect.config.values import ConfigKind, ConnectConfigError
from tidelog.connect.converters.table import converter_plugin
from tidelog.log.base.typed_values import listed

_COMMON: Final = "Common"
_ERRORS: Final = "Error Handling"
_TOPICS: Final = "Topic Creation"
_EXACTLY: Final = "Exactly Once Support"
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_CONVERTER: Final = read_by(converter_plugin)

# The defaults of a worker's converters, where a connector names none.
DEFAULT_CONVERTER: Final = "org.apache.kafka.connect.json.JsonConverter"
DEFAULT_HEADER_CONVERTER: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


def _name(name: str, value: Any) -> None:
    if not value or any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise ConnectConfigError(
            f"Invalid value for configuration {name}: a connector's name is not empty and has no control characters"
        )


def _class_key(name: str, default: Any, documentation: str) -> ConfigKey:
    return ConfigKey(name, ConfigKind.CLASS, default, _LOW, documentation, _COMMON, validator=_CONVERTER)


_SHARED: Final = (
    ConfigKey("name", ConfigKind.STRING, REQUIRED, _HIGH, "The connector's name, unique among the workers of a lake.",
              _COMMON, validator=_name),
    ConfigKey("connector.class", ConfigKind.STRING, REQUIRED, _HIGH,
              "What kind of connector it is: the name of a Java class that one stands for, or a short one.", _COMMON,
              validator=non_empty),
    ConfigKey("tasks.max", ConfigKind.INT, 1, _HIGH, "The most tasks.", _COMMON, validator=between(1, 10_000)),
    _class_key("key.converter", None, "The converter of keys; without it, the worker's."),
    _class_key("value.converter", None, "The converter of values; without it, the worker's."),
    _class_key("header.converter", None, "The converter of headers; without it, the worker's."),
    ConfigKey("errors.retry.timeout", ConfigKind.LONG, 0, _MEDIUM,
              "How long a failed conversion or transformation is tried again, in ms; -1: without end.", _ERRORS,
              validator=between(-1)),
    ConfigKey("errors.retry.delay.max.ms", ConfigKind.LONG, 60_000, _MEDIUM,
              "The longest pause between two tries, in ms.", _ERRORS, validator=between(1)),
    ConfigKey("errors.tolerance", ConfigKind.STRING, "none", _MEDIUM,
              "Whether a record that can't be processed fails the task (none), or is skipped (all).", _ERRORS,
              validator=one_of("none", "all", any_case=True)),
    ConfigKey("errors.log.enable", ConfigKind.BOOLEAN, False, _MEDIUM, "Whether skipped records are logged.", _ERRORS),
    ConfigKey("errors.log.include.messages", ConfigKind.BOOLEAN, False, _MEDIUM,
              "Whether the log has their topics, partitions and offsets.", _ERRORS),
)  # fmt: skip
_SOURCE: Final = (
    ConfigKey("exactly.once.support", ConfigKind.STRING, "requested", _MEDIUM,
              "Whether a connector that can't be exactly once is refused (required).", _EXACTLY,
              validator=one_of("requested", "required", any_case=True)),
    ConfigKey("transaction.boundary", ConfigKind.STRING, "poll", _MEDIUM,
              "What one transaction has: the records of a poll, or of an interval.", _EXACTLY,
              validator=one_of("poll", "interval", any_case=True)),
    ConfigKey("transaction.boundary.interval.ms", ConfigKind.LONG, 1000, _LOW,
              "The interval, in ms.", _EXACTLY, validator=between(1)),
    ConfigKey("topic.creation.groups", ConfigKind.LIST, [], _LOW,
              "Groups of topics that are made in their own way (KIP-158).", _TOPICS),
)  # fmt: skip
_SINK: Final = (
    ConfigKey("topics", ConfigKind.LIST, [], _HIGH, "The topics to read, with commas between.", _COMMON),
    ConfigKey("topics.regex", ConfigKind.STRING, "", _HIGH, "A regular expression of the topics to read.", _COMMON,
              validator=pattern),
    ConfigKey("errors.deadletterqueue.topic.name", ConfigKind.STRING, "", _MEDIUM,
              "The topic that gets the records that can't be processed; empty: none.", _ERRORS),
    ConfigKey("errors.deadletterqueue.topic.replication.factor", ConfigKind.SHORT, 3, _MEDIUM,
              "Taken for Kafka's sake: a lake's store replicates.", _ERRORS),
    ConfigKey("errors.deadletterqueue.context.headers.enable", ConfigKind.BOOLEAN, False, _MEDIUM,
              "Whether they get headers that say what happened.", _ERRORS),
)  # fmt: skip


def _creation_keys(config: Mapping[str, str]) -> list[ConfigKey]:
    """The keys of topic creation: of the default group once any is named, and of each other group."""
    groups = listed(config.get("topic.creation.groups", ""))
    if not groups and not any(key.startswith("topic.creation.default.") for key in config):
        return []
    keys: list[ConfigKey] = []
    for group in ["default", *groups]:
        prefix, title = f"topic.creation.{group}.", f"{_TOPICS}: {group}"
        required = REQUIRED if group == "default" else -1
        keys += [
            ConfigKey(f"{prefix}replication.factor", ConfigKind.SHORT, required, _LOW,
                      "Taken for Kafka's sake: a lake's store replicates.", title),
            ConfigKey(f"{prefix}partitions", ConfigKind.INT, required, _LOW, "How many partitions; -1: the lake's.",
                      title, validator=all_of(between(-1), _not_zero)),
        ]  # fmt: skip
        if group != "default":
            keys += [
                ConfigKey(f"{prefix}include", ConfigKind.LIST, REQUIRED, _LOW, "Patterns of its topics.", title,
                          validator=_patterns),
                ConfigKey(f"{prefix}exclude", ConfigKind.LIST, [], _LOW, "Patterns of topics that aren't.", title,
                          validator=_patterns),
            ]  # fmt: skip
    return keys


def _not_zero(name: str, value: Any) -> None:
    if value == 0:
        raise ConnectConfigError(f"Invalid value 0 for configuration {name}: it is -1, or 1 and more")


def _patterns(name: str, value: Any) -> None:
    for one in value:
        pattern(name, one)


def converter_keys(config: Mapping[str, str]) -> list[ConfigKey]:
    """The keys of the converters that a configuration names itself, such as `value.converter.schemas.enable`."""
    keys: list[ConfigKey] = []
    for place in ("key.converter", "value.converter", "header.converter"):
        try:
            plugin = converter_plugin(config.get(place, ""))
        except ConnectConfigError:
            continue
        keys += [
            ConfigKey(f"{place}.{key.name}", key.kind, key.default, key.importance, key.documentation,
                      validator=key.validator)
            for key in plugin.keys
        ]  # fmt: skip
    return keys


def settings_of(config: Mapping[str, str], *, source: bool) -> ConfigDef:
    """The keys of a connector's configuration that are the worker's business, those of the connector's own not."""
    own = [*_SOURCE, *_creation_keys(config)] if source else list(_SINK)
    return ConfigDef([*_SHARED, *own, *converter_keys(config)])


def check_topics(config: Mapping[str, str]) -> str | None:
    """What is wrong with a sink's topics, None where nothing is."""
    topics, regex = config.get("topics", "").strip(), config.get("topics.regex", "").strip()
    if bool(topics) is bool(regex):
        return "Must configure one of topics or topics.regex, and not both"
    dead = config.get("errors.deadletterqueue.topic.name", "").strip()
    if dead and (dead in listed(topics) or (regex and re.fullmatch(regex, dead))):
        return f"The dead letter topic {dead} is among the topics to read: records would go round for ever"
    return None
