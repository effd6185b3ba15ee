"""The transformations of a connector: `transforms`, `predicates` and the keys below them (KIP-66, KIP-585)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from tidelog.connect.config.definition import ConfigDef, ConfigKey, Importance, config_key
from tidelog.connect.config.values import CLASS, FLAG, TEXT, TEXTS, ConnectConfigError
from tidelog.connect.transforms.base import R, Transformation
from tidelog.connect.transforms.plugins import PREDICATES, TRANSFORMATIONS, PredicatePlugin, TransformPlugin
from tidelog.connect.transforms.routing import RecordPredicate
from tidelog.log.base.keys import REQUIRED
from tidelog.log.base.typed_values import Checked, listed, names

P = TypeVar("P")
_TRANSFORMS: Final = "Transforms"
_PREDICATES: Final = "Predicates"
_TRANSFORMATION: Final = Checked(CLASS, names(*TRANSFORMATIONS).parse)
_PREDICATE: Final = Checked(CLASS, names(*PREDICATES).parse)
CHAIN_KEYS: Final = (
    config_key("transforms", TEXTS, [], Importance.LOW,
               "Aliases of the transformations, in the order in which records go through them.", _TRANSFORMS),
    config_key("predicates", TEXTS, [], Importance.LOW,
               "Aliases of the predicates that transformations name.", _PREDICATES),
)  # fmt: skip


@dataclass(frozen=True)
class ChainedTransform:
    """A transformation, the predicate that says which records it gets, and whether that is turned around."""

    alias: str
    class_name: str
    transformation: Transformation
    predicate: RecordPredicate | None = None
    negate: bool = False

    def apply(self, record: R, /) -> R | None:
        """Transform the record, or let it pass where the predicate says so."""
        if self.predicate is not None and self.predicate.holds(record) is self.negate:
            return record
        return self.transformation.apply(record)


def chain_of(config: Mapping[str, str]) -> tuple[ChainedTransform, ...]:
    """The transformations of a connector's configuration, in order. Raises `ConnectConfigError`."""
    definition = ConfigDef(chain_keys(config))
    values = definition.parse(config)
    predicates = {alias: _predicate(alias, config) for alias in values["predicates"]}
    chained: list[ChainedTransform] = []
    for alias in values["transforms"]:
        prefix = f"transforms.{alias}."
        name = config[f"{prefix}type"].strip()
        plugin, side = TRANSFORMATIONS[name]
        named = values[f"{prefix}predicate"]
        if named is not None and named not in predicates:
            raise ConnectConfigError(f"{prefix}predicate names {named!r}, which `predicates` lacks. Add it there.")
        if named is None and values[f"{prefix}negate"]:
            raise ConnectConfigError(f"{prefix}negate is given without {prefix}predicate. Add the predicate.")
        made = plugin.make(side, plugin.config_def.parse(_below(prefix, config)))
        predicate = None if named is None else predicates[named]
        chained.append(ChainedTransform(alias, name, made, predicate, values[f"{prefix}negate"]))
    return tuple(chained)


def apply_chain(chain: Sequence[ChainedTransform], record: R) -> R | None:
    """The record behind all transformations, None where one of them drops it."""
    for transform in chain:
        transformed = transform.apply(record)
        if transformed is None:
            return None
        record = transformed
    return record


def chain_keys(config: Mapping[str, str]) -> list[ConfigKey]:
    """The keys that a configuration's transformations and predicates have, for validation beside the connector's.

    Each alias has its own group, as Connect's answers show them. A type that no plugin has is an error
    of its key. Raises `ConnectConfigError` for an alias that is given twice.
    """
    keys = list(CHAIN_KEYS)
    aliases = _aliases(config, "transforms")
    for alias in aliases:
        prefix, group = f"transforms.{alias}.", f"{_TRANSFORMS}: {alias}"
        transformation = TRANSFORMATIONS.get((config.get(f"{prefix}type") or "").strip())
        keys += [
            config_key(f"{prefix}type", _TRANSFORMATION, REQUIRED, Importance.HIGH,
                       f"Class for the '{alias}' transformation.", group),
            config_key(f"{prefix}predicate", TEXT, None, Importance.MEDIUM,
                       "The alias of a predicate used to determine whether to apply this transformation.", group),
            config_key(f"{prefix}negate", FLAG, False, Importance.MEDIUM,
                       "Whether the configured predicate should be negated.", group),
        ]  # fmt: skip
        keys += _own_keys(transformation and transformation[0], prefix, group)
    for alias in _aliases(config, "predicates"):
        prefix, group = f"predicates.{alias}.", f"{_PREDICATES}: {alias}"
        plugin = PREDICATES.get((config.get(f"{prefix}type") or "").strip())
        keys.append(
            config_key(f"{prefix}type", _PREDICATE, REQUIRED, Importance.HIGH,
                       f"Class for the '{alias}' predicate.", group),
        )  # fmt: skip
        keys += _own_keys(plugin, prefix, group)
    return keys


def _aliases(config: Mapping[str, str], key: str) -> list[str]:
    aliases = listed(config.get(key) or "")
    if len({*aliases}) < len(aliases):
        raise ConnectConfigError(f"Duplicate alias provided in `{key}`: {config[key]}. Give each once.")
    return aliases


def _own_keys(plugin: TransformPlugin | PredicatePlugin | None, prefix: str, group: str) -> list[ConfigKey]:
    if plugin is None:
        return []
    return [replace(key, name=prefix + key.name, group=group, display_name=key.name) for key in plugin.config_def]


def _predicate(alias: str, config: Mapping[str, str]) -> RecordPredicate:
    prefix = f"predicates.{alias}."
    plugin = PREDICATES[config[f"{prefix}type"].strip()]
    return plugin.make(plugin.config_def.parse(_below(prefix, config)))


def _below(prefix: str, config: Mapping[str, Any]) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
