"""The keys of a configuration: defined, parsed, and validated for the REST API (Kafka's `ConfigDef`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Self

from tidelog.connect.config.values import ConfigKind, ConnectConfigError, read_value, written_value


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


# The default of a key that has none, so that it must be given.
REQUIRED: Final = _Required()

# Raises `ConnectConfigError` for a (name, value) that the key does not take.
Validator = Callable[[str, Any], None]
# (name, all parsed values) -> the values that it may have, for a user interface to offer.
Recommender = Callable[[str, Mapping[str, Any]], Sequence[Any]]


class Importance(StrEnum):
    """How much a key matters."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class ConfigWidth(StrEnum):
    """How wide a field for the value is in a user interface."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key.

    `default`: a value (not a text), `REQUIRED` where it must be given. `order`: its place in its group, -1 without one.
    `visible`: whether it says anything, given all parsed values (Kafka's `Recommender.visible`).
    """

    name: str
    kind: ConfigKind
    default: Any
    importance: Importance
    documentation: str
    group: str | None = None
    order: int = -1
    width: ConfigWidth = ConfigWidth.NONE
    display_name: str = ""
    validator: Validator | None = None
    recommender: Recommender | None = None
    visible: Callable[[Mapping[str, Any]], bool] | None = None
    dependents: tuple[str, ...] = ()
    internal: bool = False

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    def read(self, given: Mapping[str, str | None]) -> Any:
        """The key's value in a configuration, its default where it isn't given. Raises `ConnectConfigError`."""
        if self.name in given:
            value = read_value(self.name, given[self.name], self.kind)
        elif self.required:
            raise ConnectConfigError(f'Missing required configuration "{self.name}" which has no default value.')
        else:
            value = self.default
        if self.validator is not None:
            self.validator(self.name, value)
        return value

    def as_json(self) -> dict[str, Any]:
        """The key as the REST API describes it (Connect's `ConfigKeyInfo`)."""
        return {
            "name": self.name,
            "type": str(self.kind),
            "required": self.required,
            "default_value": None if self.required else written_value(self.default),
            "importance": str(self.importance),
            "documentation": self.documentation,
            "group": self.group,
            "width": str(self.width),
            "display_name": self.display_name or self.name,
            "dependents": list(self.dependents),
            "order": self.order,
        }


@dataclass(slots=True)
class ConfigValue:
    """What validation says of one key: its parsed value, what to offer, and what is wrong."""

    name: str
    value: Any = None
    recommended: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    visible: bool = True

    def as_json(self) -> dict[str, Any]:
        """The value as the REST API shows it (Connect's `ConfigValueInfo`)."""
        return {
            "name": self.name,
            "value": written_value(self.value),
            "recommended_values": [written_value(one) for one in self.recommended],
            "errors": list(self.errors),
            "visible": self.visible,
        }


class ConfigDef:
    """Keys by their names, in the order in which they were defined."""

    def __init__(self, keys: Iterable[ConfigKey] = ()) -> None:
        self._keys: dict[str, ConfigKey] = {}
        for key in keys:
            self.add(key)

    def define(
        self,
        name: str,
        kind: ConfigKind,
        default: Any,
        importance: Importance,
        documentation: str,
        **others: Any,
    ) -> Self:
        """Define a key; `others` as of `ConfigKey`. Returns the definition itself, for the next one."""
        self.add(ConfigKey(name, kind, default, importance, documentation, **others))
        return self

    def add(self, key: ConfigKey) -> None:
        """Add a key. A name is defined once."""
        if key.name in self._keys:
            raise ConnectConfigError(f"Configuration {key.name} is defined twice.")
        if key.group is not None and key.order < 0:
            key = replace(key, order=1 + sum(one.group == key.group for one in self._keys.values()))
        self._keys[key.name] = key

    def __iter__(self) -> Iterator[ConfigKey]:
        return iter(self._keys.values())

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __getitem__(self, name: str) -> ConfigKey:
        return self._keys[name]

    @property
    def groups(self) -> list[str]:
        """The names of the groups, in the order of their first keys."""
        return list(dict.fromkeys(key.group for key in self if key.group is not None))

    def with_keys(self, others: Iterable[ConfigKey]) -> "ConfigDef":
        """These keys, then others that it lacks."""
        return ConfigDef([*self, *(key for key in others if key.name not in self)])

    def parse(self, given: Mapping[str, str | None]) -> dict[str, Any]:
        """{key: value} of every defined key; keys that aren't defined are ignored. Raises `ConnectConfigError`."""
        return {key.name: key.read(given) for key in self}

    def validate(self, given: Mapping[str, str | None]) -> list[ConfigValue]:
        """What is to say of each defined key, none left out: errors are collected, never raised."""
        values: list[ConfigValue] = []
        parsed: dict[str, Any] = {}
        for key in self:
            value = ConfigValue(key.name)
            try:
                value.value = parsed[key.name] = key.read(given)
            except ConnectConfigError as error:
                value.errors.append(str(error))
                value.value = given.get(key.name) if key.kind is not ConfigKind.PASSWORD else None
            values.append(value)
        for key, value in zip(self, values, strict=True):
            if key.recommender is not None:
                value.recommended = list(key.recommender(key.name, parsed))
            if key.visible is not None:
                value.visible = key.visible(parsed)
        return values


def validation_json(name: str, definition: ConfigDef, values: Sequence[ConfigValue]) -> dict[str, Any]:
    """The answer of `PUT /connector-plugins/{name}/config/validate` (Connect's `ConfigInfos`).

    Values that no key is defined for have a definition of null, as Connect has them.
    """
    return {
        "name": name,
        "error_count": sum(len(value.errors) for value in values),
        "groups": definition.groups,
        "configs": [
            {
                "definition": definition[value.name].as_json() if value.name in definition else None,
                "value": value.as_json(),
            }
            for value in values
            if value.name not in definition or not definition[value.name].internal
        ],
    }
