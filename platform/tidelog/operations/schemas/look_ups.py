"""Which version of a subject a schema is, also where it is sent in another form than it was stored."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tidelog.operations.schemas.errors import schema_not_found, subject_not_found
from tidelog.operations.schemas.fold import RegistryState
from tidelog.operations.schemas.reading import canonical, resolved
from tidelog.operations.schemas.records import SubjectVersion
from tidelog.operations.schemas.settings import config_of
from tidelog.schemas.avro.parsed import AvroSchema
from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.base.model import VERSION_PROPERTY, RuleSet, Schema, SchemaMetadata, SchemaRule
from tidelog.schemas.compatibility import ParsedSchema, parse

V = TypeVar("V")


def look_up(
    state: RegistryState, subject: str, schema: Schema, *, normalize: bool = False, deleted: bool = False
) -> SubjectVersion:
    """The version of a subject that a schema has. Raises `RegistryError` 40401 or 40403 where it has none."""
    if not state.has(subject, deleted=deleted):
        raise subject_not_found(subject)
    config = config_of(state, subject, in_scope=True)
    parsed, asked = canonical(state, subject, schema, normalize=normalize or bool(config.get("normalize")))
    versions = state.versions(subject, deleted=deleted)
    version = same_version(state, versions, parsed, asked)
    newest = state.version(subject, -1)
    if version is None and newest is not None:
        # As a registration would complete it.
        version = same_version(state, versions, parsed, configured(asked, newest.schema, config))
    if version is None and asked.metadata is None and asked.rules is None:
        # A question without metadata and rules is about the schema with any.
        bare = (one for one in reversed(versions) if replace(one.schema, metadata=None, rules=None) == asked)
        version = next(bare, None)
    if version is None:
        raise schema_not_found()
    return version


def configured(schema: Schema, newest: Schema | None, config: Mapping[str, Any]) -> Schema:
    """A schema with the metadata and rules of the newest version where it has none, then of the configuration."""
    metadata, rules = schema.metadata, schema.rules
    if newest is not None:
        metadata = newest.metadata if metadata is None else metadata
        rules = newest.rules if rules is None else rules
    metadata, rules = configured_metadata(metadata, config), configured_rules(rules, config)
    return replace(schema, metadata=metadata, rules=rules)


def same_version(
    state: RegistryState, versions: Sequence[SubjectVersion], parsed: ParsedSchema, asked: Schema
) -> SubjectVersion | None:
    """The newest of some versions (oldest first) that a schema is, None where it is none of them.

    One that is stored just so comes first; then (Confluent's `canLookup`) one that it is with its references written
    out, with an Avro schema's properties in another order, or but for the version that metadata may state.
    """
    exact = next((one for one in reversed(versions) if one.schema == asked), None)
    return exact or next((one for one in reversed(versions) if _is(state, one, parsed, asked)), None)


def _is(state: RegistryState, version: SubjectVersion, parsed: ParsedSchema, asked: Schema) -> bool:
    old = version.schema
    written_out = not asked.references and bool(old.references)
    if (
        old.kind is not asked.kind
        or old.rules != asked.rules
        or not (written_out or old.references == asked.references)
    ):
        return False
    if not _same_metadata(version, asked.metadata):
        return False
    if old.text == asked.text:
        return True
    # Properties in another order make a text of the same length, unless references are written out.
    if not isinstance(parsed, AvroSchema) or not (written_out or len(old.text) == len(asked.text)):
        return False
    try:
        other = parse(old.kind, old.text, resolved(state, version.subject, old))
    except RegistryError:
        return False
    return isinstance(other, AvroSchema) and other.whole == parsed.whole


def _same_metadata(version: SubjectVersion, asked: SchemaMetadata | None) -> bool:
    """Whether metadata are equal, but for a version that only one of them states: the question's must be right."""
    old = version.schema.metadata
    stated = [one.stated_version if one is not None else None for one in (asked, old)]
    if (stated[0] is None) == (stated[1] is None):
        return old == asked
    if stated[0] is not None and stated[0] != version.version:
        return False
    return _without_version(asked) == _without_version(old)


def _without_version(metadata: SchemaMetadata | None) -> Mapping[str, Any]:
    found = {} if metadata is None else metadata.json()
    properties = {key: value for key, value in found.pop("properties", {}).items() if key != VERSION_PROPERTY}
    return {**found, "properties": properties}


# --- what a configuration gives to schemas: defaults before what a schema says, overrides after --------------


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
