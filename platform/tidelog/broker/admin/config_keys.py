"""Configurations as Kafka's clients see them: each key with its value, source, synonyms, type and documentation."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

from tidelog.broker.base.cluster_view import BrokerNode
from tidelog.broker.base.settings import BrokerSettings
from tidelog.log.base.typed_values import Text, ValueKind, Whole
from tidelog.log.config.broker_keys import DESCRIBED
from tidelog.log.config.key_type import kafka_type
from tidelog.log.config.overrides import KeyDescription, KeyValue


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


# Kafka's numbers of sources. Source: `DescribeConfigsResponse.ConfigSource`.
_SOURCES: Final = {"topic": 1, "lake": 3, "broker": 4, "default": 5, "client_metrics": 7, "group": 8}
# Whose ACLs hold is for those with the store's credentials to say: else a principal that may change the cluster's
# configuration could give itself every right.
NOT_BY_BROKERS: Final = "access.root"
_TEXT: Final = Text()
_NUMBER: Final = Whole(bits=32)


def broker_keys(node: BrokerNode, settings: BrokerSettings, lake_uri: str) -> list[KeyDescription]:
    """What a broker was started with, which only another start changes, and what is so for every broker.

    The address of a lake holds no credentials: those come from options or the environment.
    """

    def key(name: str, value: str, default: str | None, doc: str, kind: ValueKind[Any] = _TEXT) -> KeyDescription:
        own = [KeyValue(name, value, "broker")] if value != default else []
        usual = [] if default is None else [KeyValue(name, default, "default")]
        return KeyDescription(name, kind, doc, (*own, *usual))

    def listed(addresses: Mapping[str, tuple[str, int]]) -> str:
        return ",".join(f"{name}://{host}:{port}" for name, (host, port) in sorted(addresses.items()))

    bound = {name: (one.host, one.port) for name, one in settings.listeners.items()}
    declared = [
        key(one.name, one.text(settings.value(one.name)), one.usual, _sentence(one.doc), one.kind) for one in DESCRIBED
    ]
    return [
        *declared,
        key("advertised.listeners", listed(node.addresses), None, "Where clients reach the broker."),
        key("broker.id", str(node.id), None, "The broker's number, also known as node.id.", _NUMBER),
        key("broker.rack", node.rack or "", "", "Where the broker stands, for clients nearby."),
        key("listeners", listed(bound), None, "What the broker listens on."),
        key("log.dirs", lake_uri, None, "The lake's address: all brokers of a cluster share it."),
        key("node.id", str(node.id), None, "The broker's number.", _NUMBER),
    ]


def _sentence(meaning: str) -> str:
    return f"{meaning[:1].upper()}{meaning[1:]}."


def key_fields(key: KeyDescription, *, read_only: bool = False) -> dict[str, Any]:
    """A key, in the names of CreateTopics' answers. None is secret."""
    named = {"name": key.name, "value": key.value, "read_only": read_only, "is_sensitive": False}
    return named | {"config_source": _SOURCES[key.source]}


def described_fields(key: KeyDescription, *, read_only: bool, synonyms: bool, documentation: bool) -> dict[str, Any]:
    """A key, in the names of DescribeConfigs' answers."""
    values = key.values if synonyms else ()
    return key_fields(key, read_only=read_only) | {
        "synonyms": [{"name": one.name, "value": one.text, "source": _SOURCES[one.source]} for one in values],
        "config_type": ConfigType[kafka_type(key.kind)],
        "documentation": key.doc if documentation else None,
    }
