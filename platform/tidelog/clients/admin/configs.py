"""Requests about configurations: what they take and give, and what an AdminClient does about each resource."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import total_ordering
from typing import Final

from tidelog.clients.admin.enums import AlterConfigOpType, ConfigSource, ResourceType
from tidelog.clients.values.errors import KafkaError, kafka_exception
from tidelog.log.lake import Lake
from tidelog.operations.configs import KeyChange, KeyOperation, alter_config, describe_config, replace_config

_SOURCES: Final = {
    "topic": ConfigSource.DYNAMIC_TOPIC_CONFIG,
    "lake": ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    "default": ConfigSource.DEFAULT_CONFIG,
}
_OPERATIONS: Final = {operation: KeyOperation[operation.name] for operation in AlterConfigOpType}


@dataclass
class ConfigEntry:
    """A key with its value: as it is (`describe_configs`), or what to do with it (`incremental_operation`)."""

    name: str
    value: str | None
    source: ConfigSource = ConfigSource.UNKNOWN_CONFIG
    is_read_only: bool = False
    is_default: bool = False
    is_sensitive: bool = False
    is_synonym: bool = False
    synonyms: Mapping[str, "ConfigEntry"] = field(default_factory=dict)
    incremental_operation: AlterConfigOpType | None = None

    def __str__(self) -> str:
        return f'{self.name}="{self.value}"'


@total_ordering
class ConfigResource:
    """What has the configuration: a topic by its name, or the lake as `ResourceType.BROKER`, whatever its name.

    `restype`: a `ResourceType`, its name in any case, or its number. `set_config`: for `alter_configs`;
    `incremental_configs`: for `incremental_alter_configs`. Raises ValueError.
    """

    Type = ResourceType

    def __init__(
        self,
        restype: ResourceType | str | int,
        name: str,
        set_config: Mapping[str, str] | None = None,
        described_configs: dict[str, ConfigEntry] | None = None,
        error: KafkaError | None = None,
        incremental_configs: Iterable[ConfigEntry] | None = None,
    ) -> None:
        if name is None:
            raise ValueError("Expected resource name to be a string")
        if isinstance(restype, str):
            if restype.upper() not in ResourceType.__members__:
                raise ValueError(f'Unknown resource type "{restype}": should be a ConfigResource.Type')
            restype = ResourceType[restype.upper()]
        self.restype = ResourceType(restype)
        self.name = name
        self.set_config_dict = dict(set_config or {})
        self.incremental_configs = list(incremental_configs or [])
        self.configs = described_configs
        self.error = error

    def set_config(self, name: str, value: str, overwrite: bool = True) -> None:
        """Set a key for `alter_configs`; with `overwrite=False` only where none is set yet."""
        if overwrite or name not in self.set_config_dict:
            self.set_config_dict[name] = value

    def add_incremental_config(self, config_entry: ConfigEntry) -> None:
        """Add what to do with a key for `incremental_alter_configs`."""
        self.incremental_configs.append(config_entry)

    def __repr__(self) -> str:
        return f"ConfigResource({self.restype},{self.name})"

    def __hash__(self) -> int:
        return hash((self.restype, self.name))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConfigResource):
            return NotImplemented
        return (self.restype, self.name) == (other.restype, other.name)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, ConfigResource):
            return NotImplemented
        return (self.restype.value, self.name) < (other.restype.value, other.name)

    def __len__(self) -> int:
        return len(self.set_config_dict)


# --- what is done -------------------------------------------------------------------------------------------


def describe(lake: Lake, resource: ConfigResource) -> dict[str, ConfigEntry]:
    """Return all keys of a topic, or of the lake, with their values in force."""
    return {
        key.name: ConfigEntry(key.name, key.value, source=_SOURCES[key.source], is_default=key.is_default)
        for key in describe_config(lake, _topic(resource))
    }


def replace(lake: Lake, resource: ConfigResource, *, validate_only: bool) -> None:
    """Set what the resource names, and reset everything else."""
    values = {str(name): str(value) for name, value in resource.set_config_dict.items()}
    replace_config(lake, _topic(resource), values, validate_only=validate_only)


def alter(lake: Lake, resource: ConfigResource, *, validate_only: bool) -> None:
    """Do what the resource's incremental entries say, and leave everything else."""
    changes = [_change(entry) for entry in resource.incremental_configs]
    alter_config(lake, _topic(resource), changes, validate_only=validate_only)


def _change(entry: ConfigEntry) -> KeyChange:
    assert entry.incremental_operation is not None, "the client has refused it"
    return KeyChange(entry.name, _OPERATIONS[entry.incremental_operation], str(entry.value))


def _topic(resource: ConfigResource) -> str | None:
    """The topic's name, None for the lake."""
    if resource.restype is ResourceType.TOPIC:
        return resource.name
    if resource.restype is ResourceType.BROKER:
        return None
    raise kafka_exception(
        KafkaError.INVALID_REQUEST,
        f"A {resource.restype.name} has no configuration here. Topics have one (ResourceType.TOPIC), and the lake has "
        "one that its topics inherit from (ResourceType.BROKER).",
    )
