"""Configurations as Kafka's clients see them: each key with its value, source, synonyms, type and documentation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from tidelog.admin.enums import ConfigSource
from tidelog.broker.base.cluster_view import BrokerNode
from tidelog.broker.base.settings import BrokerSettings
from tidelog.log.base.typed_values import MAX_INT, Flag, NameList, Number, ValueKind, Whole
from tidelog.log.config.broker_keys import DESCRIBED
from tidelog.log.config.key_type import Key
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig


class ConfigType(IntEnum):
    """Kafka's numbers of types. Source: `DescribeConfigsResponse.ConfigType`."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True)
class Synonym:
    """A place that a key takes its value from; `source`: a number of Kafka's."""

    name: str
    value: str
    source: int


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """A key. `synonyms`: where its value is looked for, the first one has the value that counts."""

    name: str
    value: str
    type: ConfigType
    doc: str
    synonyms: Sequence[Synonym]
    read_only: bool = False
    is_sensitive: bool = False

    @property
    def source(self) -> int:
        """Where its value was found."""
        return self.synonyms[0].source


_TOPIC: Final = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
_LAKE: Final = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value
_STATIC: Final = ConfigSource.STATIC_BROKER_CONFIG.value
_DEFAULT: Final = ConfigSource.DEFAULT_CONFIG.value
# Whose ACLs hold is for those with the store's credentials to say: else a principal that may change the cluster's
# configuration could give itself every right.
NOT_BY_BROKERS: Final = "access.root"


def config_rows(config: TopicConfig | LakeConfig) -> list[ConfigRow]:
    """All keys of a topic, or of a lake, in their order."""
    own = _TOPIC if isinstance(config, TopicConfig) else _LAKE
    return [_row(config, config.KEYS[name], own) for name in sorted(config.KEYS)]


def _row(config: TopicConfig | LakeConfig, key: Key[Any], own: int) -> ConfigRow:
    def found() -> Iterator[Synonym]:
        if key.name in config.own:
            yield Synonym(key.name, key.kind.text(config.own[key.name]), own)
        if key.name in config.inherited:
            yield Synonym(key.lake_name, key.kind.text(config.inherited[key.name]), _LAKE)
        yield Synonym(key.lake_name, key.kind.text(key.default), _DEFAULT)

    synonyms = tuple(found())
    return ConfigRow(
        key.name, synonyms[0].value, _type_of(key.kind), key.doc, synonyms, read_only=key.name == NOT_BY_BROKERS
    )


def _type_of(kind: ValueKind[Any]) -> ConfigType:
    if isinstance(kind, Whole):
        is_int = (kind.high or 0) <= MAX_INT if kind.bits is None else kind.bits == 32
        return ConfigType.INT if is_int else ConfigType.LONG
    kinds = ((Flag, ConfigType.BOOLEAN), (Number, ConfigType.DOUBLE), (NameList, ConfigType.LIST))
    return next((found for one, found in kinds if isinstance(kind, one)), ConfigType.STRING)


def broker_rows(node: BrokerNode, settings: BrokerSettings, lake_uri: str) -> list[ConfigRow]:
    """What a broker was started with, which only another start changes, and what is so for every broker.

    The address of a lake holds no credentials: those come from options or the environment.
    """

    def row(name: str, value: object, default: object, kind: ConfigType, doc: str) -> ConfigRow:
        def synonyms() -> Iterator[Synonym]:
            if default is None or value != default:
                yield Synonym(name, _text(value), _STATIC)
            if default is not None:
                yield Synonym(name, _text(default), _DEFAULT)

        return ConfigRow(name, _text(value), kind, doc, tuple(synonyms()), read_only=True)

    def listed(addresses: Mapping[str, tuple[str, int]]) -> str:
        return ",".join(f"{name}://{host}:{port}" for name, (host, port) in sorted(addresses.items()))

    bound = {name: (one.host, one.port) for name, one in settings.listeners.items()}
    text, whole = ConfigType.STRING, ConfigType.INT
    declared = [
        row(key.name, key.text(settings.value(key.name)), key.usual, _type_of(key.kind), _sentence(key.doc))
        for key in DESCRIBED
    ]
    return [
        *declared,
        row("advertised.listeners", listed(node.addresses), None, text, "Where clients reach the broker."),
        row("broker.id", node.id, None, whole, "The broker's number, also known as node.id."),
        row("broker.rack", node.rack or "", "", text, "Where the broker stands, for clients nearby."),
        row("listeners", listed(bound), None, text, "What the broker listens on."),
        row("log.dirs", lake_uri, None, text, "The lake's address: all brokers of a cluster share it."),
        row("node.id", node.id, None, whole, "The broker's number."),
    ]


def _sentence(meaning: str) -> str:
    return f"{meaning[:1].upper()}{meaning[1:]}."


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def row_fields(row: ConfigRow, *, synonyms: bool, documentation: bool) -> dict[str, Any]:
    """A key, in the names of DescribeConfigs' answers."""
    return {
        "name": row.name,
        "value": None if row.is_sensitive else row.value,
        "read_only": row.read_only,
        "config_source": row.source,
        "is_sensitive": row.is_sensitive,
        "synonyms": [{"name": s.name, "value": s.value, "source": s.source} for s in row.synonyms if synonyms],
        "config_type": row.type,
        "documentation": row.doc if documentation else None,
    }
