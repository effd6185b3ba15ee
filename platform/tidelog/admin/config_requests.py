"""What an AdminClient does about configurations. Each function serves one resource and raises TidelogError."""

from collections.abc import Mapping
from typing import Final

from tidelog.admin.configs import ConfigEntry, ConfigResource
from tidelog.admin.enums import AlterConfigOpType, ConfigSource, ResourceType
from tidelog.clients.values.errors import KafkaError, kafka_exception
from tidelog.log.base.typed_values import NameList
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.lake import Lake

_SOURCES: Final = {
    ("topic", "topic"): ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ("topic", "lake"): ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    ("lake", "lake"): ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
}


def describe(lake: Lake, resource: ConfigResource) -> dict[str, ConfigEntry]:
    """Return all keys of a topic, or of the lake, with their values in force."""
    lake.require_lake()
    config = _config(lake, resource)
    return {
        row.name: ConfigEntry(
            row.name,
            row.value,
            source=_SOURCES.get((config.LEVEL, row.source), ConfigSource.DEFAULT_CONFIG),
            is_default=row.is_default,
        )
        for row in config.describe()
    }


def replace(lake: Lake, resource: ConfigResource, *, validate_only: bool) -> None:
    """Set what the resource names, and reset everything else."""
    config = _config(lake, resource)
    wanted = {str(name): str(value) for name, value in resource.set_config_dict.items()}
    _alter(lake, resource, config, {**dict.fromkeys(config.overrides), **wanted}, validate_only=validate_only)


def alter(lake: Lake, resource: ConfigResource, *, validate_only: bool) -> None:
    """Do what the resource's incremental entries say, and leave everything else."""
    config = _config(lake, resource)
    wanted = {entry.name: _changed(config, entry) for entry in resource.incremental_configs}
    _alter(lake, resource, config, wanted, validate_only=validate_only)


def _changed(config: TopicConfig | LakeConfig, entry: ConfigEntry) -> str | None:
    """Return the key's text after one operation, None to reset it."""
    operation = entry.incremental_operation
    if operation is AlterConfigOpType.DELETE:
        return None
    if operation is AlterConfigOpType.SET:
        return str(entry.value)
    key = config.KEYS.get(entry.name)
    if key is None:  # unknown or refused: setting it says so
        return str(entry.value)
    if not isinstance(key.kind, NameList):
        raise kafka_exception(
            KafkaError.INVALID_CONFIG,
            f"Can't {operation.name if operation else None} value for key {entry.name}: it is no list. SET it.",
        )
    now = key.kind.text(config.get(entry.name, key.default))
    words = [word for word in now.split(",") if word]
    given = [word.strip() for word in str(entry.value).split(",")]
    if operation is AlterConfigOpType.APPEND:
        return ",".join([*words, *(word for word in given if word not in words)])
    return ",".join(word for word in words if word not in given)


def _alter(
    lake: Lake,
    resource: ConfigResource,
    config: TopicConfig | LakeConfig,
    wanted: Mapping[str, str | None],
    *,
    validate_only: bool,
) -> None:
    is_topic = resource.restype is ResourceType.TOPIC
    if validate_only and is_topic:
        lake.check_altered_topic(resource.name, wanted)
    elif validate_only:
        config.merged(wanted)
    elif is_topic:
        lake.alter_topic(resource.name, config=wanted)
    else:
        lake.alter_config(wanted)


def _config(lake: Lake, resource: ConfigResource) -> TopicConfig | LakeConfig:
    if resource.restype is ResourceType.TOPIC:
        return lake.topic_config(resource.name)
    if resource.restype is ResourceType.BROKER:
        return lake.config()
    raise kafka_exception(
        KafkaError.INVALID_REQUEST,
        f"A {resource.restype.name} has no configuration here. Topics have one (ResourceType.TOPIC), and the lake has "
        "one that its topics inherit from (ResourceType.BROKER).",
    )
