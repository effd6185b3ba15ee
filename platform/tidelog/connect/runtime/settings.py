"""The keys that every connector's configuration has, beside the connector's own (Connect's `ConnectorConfig`)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tidelog.connect.config.definition import ConfigDef, ConfigKey, Importance, config_key
from tidelog.connect.config.values import (
    CLASS,
    FILLED,
    FLAG,
    PATTERN,
    TEXT,
    TEXTS,
    ConnectConfigError,
    as_written,
    check_pattern,
    read_as,
)
from tidelog.connect.converters.table import converter_plugin
from tidelog.log.base.keys import REQUIRED
from tidelog.log.base.typed_values import Checked, Whole, listed
from tidelog.log.config.key_type import int_of, long_of

_COMMON: Final = "Common"
_ERRORS: Final = "Error Handling"
_TOPICS: Final = "Topic Creation"
_EXACTLY: Final = "Exactly Once Support"
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
# The defaults of a worker's converters, where a connector names none.
DEFAULT_CONVERTER: Final = "org.apache.kafka.connect.json.JsonConverter"
DEFAULT_HEADER_CONVERTER: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


def _check_name(name: str) -> None:
    if not name or any(ord(character) < 32 or ord(character) == 127 for character in name):
        raise ConnectConfigError(
            "Invalid value for configuration name: a connector's name is not empty and has no control characters"
        )


def _check_count(number: int) -> None:
    if number == 0:
        raise ValueError("it is -1, or 1 and more")


def _check_patterns(texts: Sequence[str]) -> None:
    for text in texts:
        check_pattern(text)


_NAME: Final = Checked(TEXT, _check_name)
_COUNT: Final = Checked(int_of(-1), _check_count)
_REPLICAS: Final = Whole(bits=16)
_PATTERNS: Final = Checked(TEXTS, _check_patterns)
_CONVERTER: Final = read_as(converter_plugin, CLASS)


def _class_key(name: str, default: Any, documentation: str) -> ConfigKey:
    return config_key(name, _CONVERTER, default, _LOW, documentation, _COMMON)


_SHARED: Final = (
    config_key("name", _NAME, REQUIRED, _HIGH, "The connector's name, unique among the workers of a lake.",
               _COMMON),
    config_key("connector.class", FILLED, REQUIRED, _HIGH,
               "What kind of connector it is: the name of a Java class that one stands for, or a short one.", _COMMON),
    config_key("tasks.max", int_of(1, 10_000), 1, _HIGH, "The most tasks.", _COMMON),
    _class_key("key.converter", None, "The converter of keys; without it, the worker's."),
    _class_key("value.converter", None, "The converter of values; without it, the worker's."),
    _class_key("header.converter", None, "The converter of headers; without it, the worker's."),
    config_key("errors.retry.timeout", long_of(-1), 0, _MEDIUM,
               "How long a failed conversion or transformation is tried again, in ms; -1: without end.", _ERRORS),
    config_key("errors.retry.delay.max.ms", long_of(1), 60_000, _MEDIUM,
               "The longest pause between two tries, in ms.", _ERRORS),
    config_key("errors.tolerance", as_written("none", "all"), "none", _MEDIUM,
               "Whether a record that can't be processed fails the task (none), or is skipped (all).", _ERRORS),
    config_key("errors.log.enable", FLAG, False, _MEDIUM, "Whether skipped records are logged.", _ERRORS),
    config_key("errors.log.include.messages", FLAG, False, _MEDIUM,
               "Whether the log has their topics, partitions and offsets.", _ERRORS),
)  # fmt: skip
_SOURCE: Final = (
    config_key("exactly.once.support", as_written("requested", "required"), "requested", _MEDIUM,
               "Whether a connector that can't be exactly once is refused (required).", _EXACTLY),
    config_key("transaction.boundary", as_written("poll", "interval"), "poll", _MEDIUM,
               "What one transaction has: the records of a poll, or of an interval.", _EXACTLY),
    config_key("transaction.boundary.interval.ms", long_of(1), 1000, _LOW, "The interval, in ms.", _EXACTLY),
    config_key("topic.creation.groups", TEXTS, [], _LOW,
               "Groups of topics that are made in their own way (KIP-158).", _TOPICS),
)  # fmt: skip
_SINK: Final = (
    config_key("topics", TEXTS, [], _HIGH, "The topics to read, with commas between.", _COMMON),
    config_key("topics.regex", PATTERN, "", _HIGH, "A regular expression of the topics to read.", _COMMON),
    config_key("errors.deadletterqueue.topic.name", TEXT, "", _MEDIUM,
               "The topic that gets the records that can't be processed; empty: none.", _ERRORS),
    config_key("errors.deadletterqueue.topic.replication.factor", _REPLICAS, 3, _MEDIUM,
               "Taken for Kafka's sake: a lake's store replicates.", _ERRORS),
    config_key("errors.deadletterqueue.context.headers.enable", FLAG, False, _MEDIUM,
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
            config_key(f"{prefix}replication.factor", _REPLICAS, required, _LOW,
                       "Taken for Kafka's sake: a lake's store replicates.", title),
            config_key(f"{prefix}partitions", _COUNT, required, _LOW, "How many partitions; -1: the lake's.",
                       title),
        ]  # fmt: skip
        if group != "default":
            keys += [
                config_key(f"{prefix}include", _PATTERNS, REQUIRED, _LOW, "Patterns of its topics.", title),
                config_key(f"{prefix}exclude", _PATTERNS, [], _LOW, "Patterns of topics that aren't.", title),
            ]  # fmt: skip
    return keys


def converter_keys(config: Mapping[str, str]) -> list[ConfigKey]:
    """The keys of the converters that a configuration names itself, such as `value.converter.schemas.enable`."""
    keys: list[ConfigKey] = []
    for place in ("key.converter", "value.converter", "header.converter"):
        try:
            plugin = converter_plugin(config.get(place, ""))
        except ConnectConfigError:
            continue
        keys += [replace(key, name=f"{place}.{key.name}") for key in plugin.keys]
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
