"""The keys of a configuration: defined, parsed, and validated for the REST API (Kafka's `ConfigDef`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Self

from tidelog.connect.config.values import KINDS, WORDS, ConfigKind, ConnectConfigError, type_of, written_value
from tidelog.log.base.keys import REQUIRED, FieldKey, JudgedKey, KeyTable, KeyWords
from tidelog.log.base.typed_values import ValueKind

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
class ConfigKey(FieldKey):
    """A key, and how Connect shows it.

    `default`: a value (not a text), `REQUIRED` where it must be given. `order`: its place in its group, -1 without one.
    `validator`: a rule of a connector of one's own, for its default too. `visible`: whether it says anything, given all
    parsed values (Kafka's `Recommender.visible`).
    """

    importance: Importance = Importance.MEDIUM
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

    def checked(self, value: Any) -> Any:
        """The value. Raises what the validator does."""
        if self.validator is not None:
            self.validator(self.name, value)
        return value

    def absent(self) -> Any:
        """The default. Raises `ConnectConfigError` for a key that must be given."""
        if self.required:
            raise ConnectConfigError(f'Missing required configuration "{self.name}" which has no default value.')
        return self.checked(self.default)

    def as_json(self) -> dict[str, Any]:
        """The key as the REST API describes it (Connect's `ConfigKeyInfo`)."""
        return {
            "name": self.name,
            "type": str(type_of(self.kind)),
            "required": self.required,
            "default_value": None if self.required else written_value(self.default),
            "importance": str(self.importance),
            "documentation": self.doc,
            "group": self.group,
            "width": str(self.width),
            "display_name": self.display_name or self.name,
            "dependents": list(self.dependents),
            "order": self.order,
        }


def config_key(
    name: str,
    kind: ConfigKind | ValueKind[Any],
    default: Any,
    importance: Importance,
    documentation: str,
    group: str | None = None,
    **others: Any,
) -> ConfigKey:
    """A key; `others` as of `ConfigKey`."""
    values = KINDS[kind] if isinstance(kind, ConfigKind) else kind
    return ConfigKey(name, values, documentation, default=default, importance=importance, group=group, **others)


class _ConfigKeyWords(KeyWords[ConfigKey]):
    """Kafka's sentences, and then the validator's."""

    def value(self, name: str, key: ConfigKey, given: str | None) -> Any:
        return key.checked(WORDS.value(name, key, given))


_WORDS: Final = _ConfigKeyWords()


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
    """Keys by their names, in the order in which they were defined; connectors of one's own declare theirs by it."""

    def __init__(self, keys: Iterable[ConfigKey] = ()) -> None:
        self._keys: dict[str, ConfigKey] = {}
        for key in keys:
            self.add(key)

    def define(
        self,
        name: str,
        kind: ConfigKind | ValueKind[Any],
        default: Any,
        importance: Importance,
        documentation: str,
        **others: Any,
    ) -> Self:
        """Define a key; `others` as of `ConfigKey`. Returns the definition itself, for the next one."""
        self.add(config_key(name, kind, default, importance, documentation, **others))
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

    @property
    def _table(self) -> KeyTable[ConfigKey]:
        return KeyTable(self._keys, _WORDS, absent=ConfigKey.absent)

    def parse(self, given: Mapping[str, str | None]) -> dict[str, Any]:
        """{key: value} of every defined key; keys that aren't defined are ignored. Raises `ConnectConfigError`."""
        return self._table.read_all(given)

    def validate(self, given: Mapping[str, str | None]) -> list[ConfigValue]:
        """What is to say of each defined key, none left out: errors are collected, never raised."""
        judged = list(self._table.judge(given, ConnectConfigError))
        parsed = {one.key.name: one.value for one in judged if one.error is None}
        return [_said(one, given, parsed) for one in judged]


def _said(judged: JudgedKey[ConfigKey], given: Mapping[str, str | None], parsed: Mapping[str, Any]) -> ConfigValue:
    """What is to say of a key. `parsed`: the values of all keys that have one."""
    key, value = judged.key, ConfigValue(judged.key.name, judged.value)
    if judged.error is not None:
        value.errors.append(str(judged.error))
        value.value = given.get(key.name) if type_of(key.kind) is not ConfigKind.PASSWORD else None
    if key.recommender is not None:
        value.recommended = list(key.recommender(key.name, parsed))
    if key.visible is not None:
        value.visible = key.visible(parsed)
    return value


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
