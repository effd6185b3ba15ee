"""Registrations of schemas: which id and version one gets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidelog.operations.schemas.descriptions import LATEST, VersionDescription, described, required_version
from tidelog.operations.schemas.errors import incompatible, not_permitted
from tidelog.operations.schemas.fold import MOST_NUMBER, RegistryState
from tidelog.operations.schemas.look_ups import configured, same_version
from tidelog.operations.schemas.reading import canonical, resolved
from tidelog.operations.schemas.records import CONTEXT, RegistryRecord, SubjectVersion, tombstone
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.operations.schemas.settings import Mode, check_writable, config_of, mode_of
from tidelog.schemas.base.errors import RegistryError, SchemaError
from tidelog.schemas.base.model import Schema, SchemaMetadata
from tidelog.schemas.base.subject_names import DEFAULT_CONTEXT, SubjectName
from tidelog.schemas.compatibility import CompatibilityLevel, ParsedSchema, incompatibilities, parse

# The version of a registration that must be the subject's newest one: made, unless it is that already.
NEWEST = -1


@dataclass(frozen=True, slots=True)
class Registration:
    """A schema to register. `id`: the importer's, or -1. `text` of the schema may be "": that of the newest version.

    `version`: the number that it must get, `NEWEST`, or 0 for any; other ones than 0 are stated in its metadata, as
    Confluent's registry does. `force`: without a test of compatibility.
    """

    subject: str
    schema: Schema
    id: int = -1
    version: int = 0
    normalize: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Registered:
    """The version that a schema got or had, and the records that make it so: none where it was there."""

    version: SubjectVersion
    records: Sequence[RegistryRecord] = ()


def decide_register(state: RegistryState, wanted: Registration) -> Registered:
    """Give a schema a version of a subject, and an id.

    The same schema in the subject gets what it has, without a test, and also where nothing may be written; one that the
    context knows gets its id. A refused one changes nothing. Raises `RegistryError` 409 for an incompatible schema, 422
    for an invalid one and for modes.
    """
    subject = SubjectName.of(wanted.subject)
    mode = mode_of(state, wanted.subject, in_scope=True)
    config = config_of(state, wanted.subject, in_scope=True)
    live = state.versions(wanted.subject)
    normalize = not mode.imports and (wanted.normalize or bool(config.get("normalize")))
    there = _there(state, wanted, live, config, normalize=normalize)
    if there is not None:
        return Registered(there)
    _check_mode(state, wanted, mode)
    schema = wanted.schema if mode.imports else _completed(wanted, live, config, _next_version(state, wanted.subject))
    parsed, schema = canonical(state, wanted.subject, schema, normalize=normalize)
    number = wanted.id
    if wanted.version == 0:
        fitting = [one for one in live if number in (-1, one.id)]
        same = same_version(state, fitting, parsed, schema)
        if same is not None:
            return Registered(same)
    known = state.id_of(schema, subject.context)
    if known is not None and number < 0:
        number = known
    if not mode.imports:
        parsed.check(strict=bool(config.get("validateFields")))
        messages = [] if wanted.force else _messages(state, config, parsed, schema, live)
        if messages:
            raise incompatible(
                "Schema being registered is incompatible with an earlier schema for subject "
                f'"{wanted.subject}", details: [{", ".join(messages)}]'
            )
    return _new_version(state, wanted, schema, number, importing=mode.imports)


def _there(
    state: RegistryState,
    wanted: Registration,
    live: Sequence[SubjectVersion],
    config: Mapping[str, Any],
    *,
    normalize: bool,
) -> SubjectVersion | None:
    """The version that a schema has as it was sent; None where a configuration would add to it."""
    if any(config.get(key) for key in _ADDS) or not wanted.schema.text.strip() or not live:
        return None
    parsed, schema = canonical(state, wanted.subject, wanted.schema, normalize=normalize)
    versions = live[-1:] if wanted.version == NEWEST else live
    if wanted.version > 0:
        versions = [one for one in live if (one.version, one.id) == (wanted.version, wanted.id)]
    elif wanted.id >= 0:
        versions = [one for one in versions if one.id == wanted.id]
    return same_version(state, versions, parsed, schema)


_ADDS = ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")


def _next_version(state: RegistryState, subject: str) -> int:
    return max((one.version for one in state.versions(subject, deleted=True)), default=0) + 1


def _new_version(
    state: RegistryState, wanted: Registration, schema: Schema, number: int, *, importing: bool
) -> Registered:
    subject = SubjectName.of(wanted.subject)
    every = state.versions(wanted.subject, deleted=True)
    next_version = _next_version(state, wanted.subject)
    version = wanted.version if wanted.version > 0 else next_version
    if version != next_version and not importing:
        raise SchemaError(f"Version {version} is not one more than the previous version {next_version - 1}")
    if number < 0:
        number = state.next_id(subject.context)
        if number > MOST_NUMBER:
            raise not_permitted(f"Context {subject.context} has given its last id, {MOST_NUMBER}: use another context.")
    else:
        other = state.by_id(number, subject.context)
        if other is not None and other != schema:
            raise not_permitted(f"Overwrite new schema with id {number} in context {subject.context} is not permitted.")
    records: list[RegistryRecord] = []
    if subject.context != DEFAULT_CONTEXT and subject.context not in state.contexts():
        value = {"tenant": "default", "context": subject.context}
        records.append(RegistryRecord(CONTEXT, subject.context, value=value))
    # What was softly deleted under the same id makes place for it.
    records += [
        tombstone(wanted.subject, old.version)
        for old in every
        if old.deleted and old.id == number and old.version < version
        if not state.referenced_by(wanted.subject, old.version, deleted=True)
    ]
    made = SubjectVersion(wanted.subject, version, number, schema)
    return Registered(made, [*records, made.record()])


def register_schema(log: RegistryLog, wanted: Registration, form: str = "") -> VersionDescription:
    """The version that a schema has, or has now, in a form of `formatted`. Raises as `decide_register` does."""
    log.prepare(wanted.subject, wanted.schema)

    def rule(state: RegistryState) -> tuple[SubjectVersion, Sequence[RegistryRecord]]:
        registered = decide_register(state, wanted)
        return registered.version, registered.records

    version = log.decide(rule)
    return log.known(lambda state: described(state, version, form))


def check_compatibility(
    state: RegistryState,
    subject: str,
    schema: Schema,
    number: int | None = None,
    *,
    normalize: bool = False,
    deleted: bool = False,
) -> list[str]:
    """Why a subject's level refuses a schema: against one version, or, for None, as a registration would be tested.

    The latest one of a subject that has none takes every schema, as in Confluent's CompatibilityResource. `deleted`:
    also against a softly deleted version. Raises as `required_version` does.
    """
    if number is None:
        versions = state.versions(subject)
    elif number == LATEST and not state.versions(subject):
        versions = []
    else:
        versions = [required_version(state, subject, number, deleted=deleted)]
    return why_incompatible(state, subject, schema, versions, normalize=normalize)


def why_incompatible(
    state: RegistryState, subject: str, schema: Schema, versions: Sequence[SubjectVersion], *, normalize: bool = False
) -> list[str]:
    """Why a subject's level refuses a schema against some versions; [] where it doesn't."""
    config = config_of(state, subject, in_scope=True)
    parsed, schema = canonical(state, subject, schema, normalize=normalize)
    parsed.check(strict=bool(config.get("validateFields")))
    return _messages(state, config, parsed, schema, versions)


def _check_mode(state: RegistryState, wanted: Registration, mode: Mode) -> None:
    check_writable(state, wanted.subject)
    context = SubjectName.of(wanted.subject).context
    if wanted.id >= 0 and not mode.imports:
        raise not_permitted(f"Subject {wanted.subject} in context {context} is not in import mode")
    if wanted.id < 0 and mode is not Mode.READWRITE:
        raise not_permitted(f"Subject {wanted.subject} in context {context} is not in read-write mode")
    for reference in wanted.schema.references:
        place = SubjectName.of(wanted.subject).inside(reference.subject)
        if not mode.imports and state.version(place, reference.version) is None:
            raise SchemaError(f'No schema reference found for subject "{place}" and version {reference.version}')


def _completed(
    wanted: Registration, live: Sequence[SubjectVersion], config: Mapping[str, Any], next_version: int
) -> Schema:
    """What a registration leaves out is that of the newest version; then the configuration adds its own."""
    schema, newest = wanted.schema, live[-1].schema if live else None
    if not schema.text.strip():
        if newest is None:
            raise SchemaError("Empty schema")
        schema = replace(schema, text=newest.text, kind=newest.kind, references=newest.references)
    schema = configured(schema, newest, config)
    metadata = schema.metadata or SchemaMetadata()
    if wanted.version != 0 or metadata.stated_version is not None:
        schema = replace(schema, metadata=metadata.stating(next_version))
    return schema


def _messages(
    state: RegistryState, config: Mapping[str, Any], parsed: ParsedSchema, schema: Schema, old: Sequence[SubjectVersion]
) -> list[str]:
    level, validates = CompatibilityLevel.of(config["compatibilityLevel"]), bool(config.get("validateFields"))
    messages = [*_reserved(parsed, schema, old[-1].schema if old else None)] if validates else []
    messages += _differences(state, config, parsed, schema, old) if level is not CompatibilityLevel.NONE else ()
    ending = f"{{validateFields: '{str(validates).lower()}', compatibility: '{level.value}'}}"
    return [*messages, ending] if messages else []


def _reserved(parsed: ParsedSchema, schema: Schema, old: Schema | None) -> Iterator[str]:
    """What is wrong about names that metadata keep fields from having: one was freed again, or a field has it."""
    own, before = (one.metadata.reserved if one and one.metadata else frozenset() for one in (schema, old))
    for name in sorted(before - own):
        yield (
            f"The new schema has reserved field {name} removed from its metadata which is present in the old schema's"
            " metadata."
        )
    for name in sorted(own & parsed.fields):
        yield f"The new schema has field that conflicts with the reserved field {name}."


def _differences(
    state: RegistryState, config: Mapping[str, Any], parsed: ParsedSchema, schema: Schema, old: Sequence[SubjectVersion]
) -> list[str]:
    level = CompatibilityLevel.of(config["compatibilityLevel"])
    group = config.get("compatibilityGroup")
    if group is not None:
        old = [one for one in old if _group(one.schema, group) == _group(schema, group)]
    compared = []
    for version in old if level.transitive else old[-1:]:
        try:
            read = parse(version.schema.kind, version.schema.text, resolved(state, version.subject, version.schema))
        except RegistryError as error:
            return [f"Version {version.version} can't be read: {error}"]
        compared.append((version.version, read))
    lenient = config.get("compatibilityPolicy") == "LENIENT"
    return incompatibilities(level, parsed, compared, lenient=lenient)


def _group(schema: Schema, name: str) -> str | None:
    properties = schema.metadata.properties if schema.metadata else None
    return (properties or {}).get(name)
