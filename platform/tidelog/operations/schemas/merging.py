"""Metadata and rule sets that a configuration gives to schemas: defaults before what a schema says, overrides after."""

from collections.abc import Mapping
from typing import Any, TypeVar

from tidelog.schemas.base.model import RuleSet, SchemaMetadata, SchemaRule

V = TypeVar("V")


def configured_metadata(own: SchemaMetadata | None, config: Mapping[str, Any]) -> SchemaMetadata | None:
    """A schema's metadata by a configuration (`defaultMetadata`, `overrideMetadata`)."""
    first, last = (SchemaMetadata.of(config.get(key)) for key in ("defaultMetadata", "overrideMetadata"))
    return _merged_metadata(_merged_metadata(first, own), last)


def configured_rules(own: RuleSet | None, config: Mapping[str, Any]) -> RuleSet | None:
    """A schema's rule set by a configuration (`defaultRuleSet`, `overrideRuleSet`)."""
    first, last = (RuleSet.of(config.get(key)) for key in ("defaultRuleSet", "overrideRuleSet"))
    return _merged_rules(_merged_rules(first, own), last)


def _merged_metadata(old: SchemaMetadata | None, new: SchemaMetadata | None) -> SchemaMetadata | None:
    """Properties of `new` win; tags of a path, and sensitive names, are put together."""
    if old is None or new is None:
        return new if old is None else old
    paths = sorted({*(old.tags or {}), *(new.tags or {})})
    tags = {path: tuple(sorted({*(old.tags or {}).get(path, ()), *(new.tags or {}).get(path, ())})) for path in paths}
    properties = {**(old.properties or {}), **(new.properties or {})}
    sensitive = tuple(sorted({*(old.sensitive or ()), *(new.sensitive or ())}))
    return SchemaMetadata(
        _either(tags, old.tags, new.tags),
        _either({key: properties[key] for key in sorted(properties)}, old.properties, new.properties),
        _either(sensitive, old.sensitive, new.sensitive),
    )


def _merged_rules(old: RuleSet | None, new: RuleSet | None) -> RuleSet | None:
    """A rule of `new` replaces the one of `old` with its name; it comes after those that stay."""
    if old is None or new is None:
        return new if old is None else old
    return RuleSet(
        _named(old.migration, new.migration),
        _named(old.domain, new.domain),
        _named(old.encoding, new.encoding),
        old.enable_at if new.enable_at is None else new.enable_at,
    )


def _named(old: tuple[SchemaRule, ...] | None, new: tuple[SchemaRule, ...] | None) -> tuple[SchemaRule, ...] | None:
    if old is None or new is None:
        return new if old is None else old
    names = {rule.name for rule in new}
    return (*(rule for rule in old if rule.name not in names), *new)


def _either(merged: V, old: object, new: object) -> V | None:
    """What was merged, None where neither side has it."""
    return None if old is None and new is None else merged
