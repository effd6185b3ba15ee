"""Registrations and look-ups of schemas: which id and version one gets, or has."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tidelog.registry.base.errors import (
    RegistryError,
    id_does_not_match,
    incompatible,
    invalid_schema,
    not_permitted,
    schema_not_found,
    subject_not_found,
)
from tidelog.registry.base.merging import configured_metadata, configured_rules
from tidelog.registry.base.model import Reference, Schema
from tidelog.registry.compatibility import CompatibilityLevel, ParsedSchema, incompatibilities, parse
from tidelog.registry.state.fold import RegistryState
from tidelog.registry.state.records import CONTEXT, RegistryRecord, SubjectVersion, tombstone
from tidelog.registry.state.settings import Mode, check_writable, config_of, mode_of
from tidelog.registry.state.subjects import DEFAULT_CONTEXT, SubjectName


@dataclass(frozen=True, slots=True)
class Registration:
    """A schema to register. `id` and `version` are the importer's, 0 and -1 for the registry to give; `text` of the
    schema may be "", which takes that of the newest version.
    """

    subject: str
    schema: Schema
    id: int = -1
    version: int = 0
    normalize: bool = False


@dataclass(frozen=True, slots=True)
class Registered:
    """The version that a schema got or had, and the records that make it so: none where it was there."""

    version: SubjectVersion
    records: Sequence[RegistryRecord] = ()


def decide_register(state: RegistryState, wanted: Registration) -> Registered:
    """Give a schema a version of a subject, and an id.

    The same schema in the subject gets what it has, without a test; one that the context knows gets its id. A refused
    one changes nothing. Raises `RegistryError` 409 for an incompatible schema, 422 for an invalid one and for modes.
    """
    subject = SubjectName.of(wanted.subject)
    _check_mode(state, wanted)
    importing = mode_of(state, wanted.subject, in_scope=True).imports
    config = config_of(state, wanted.subject, in_scope=True)
    live = state.versions(wanted.subject)
    schema = wanted.schema if importing else _completed(wanted.schema, live, config)
    normalize = not importing and (wanted.normalize or bool(config.get("normalize")))
    parsed, schema = canonical(state, wanted.subject, schema, normalize=normalize)
    known = state.id_of(schema, subject.context)
    number = wanted.id
    if known is not None and number in (-1, known):
        number = known
        own = [one for one in state.places_of(known, subject.context) if one.subject == wanted.subject]
        if own and wanted.version <= 0:
            return Registered(own[-1])
    if not importing:
        parsed.check()
        messages = _messages(state, config, parsed, schema, live)
        if messages:
            raise incompatible(
                "Schema being registered is incompatible with an earlier schema for subject "
                f'"{wanted.subject}", details: [{", ".join(messages)}]'
            )
    return _new_version(state, wanted, schema, number)


def _new_version(state: RegistryState, wanted: Registration, schema: Schema, number: int) -> Registered:
    subject = SubjectName.of(wanted.subject)
    every = state.versions(wanted.subject, deleted=True)
    next_version = max((one.version for one in every), default=0) + 1
    importing = mode_of(state, wanted.subject, in_scope=True).imports
    version = wanted.version if wanted.version > 0 else next_version
    if version != next_version and not importing:
        raise invalid_schema(f"Version {version} is not one more than the previous version {next_version - 1}")
    if number < 0:
        number = state.next_id(subject.context)
    else:
        other = state.by_id(number, subject.context)
        if other is not None and other != schema:
            raise id_does_not_match(f"The id {number} belongs to another schema")
    records: list[RegistryRecord] = []
    if subject.context != DEFAULT_CONTEXT and subject.context not in state.contexts():
        value = {"tenant": "default", "context": subject.context}
        records.append(RegistryRecord(CONTEXT, subject.context, value=value))
    # What was softly deleted under the same id makes place for it.
    records += [
        tombstone(wanted.subject, one.version)
        for one in every
        if one.deleted and one.id == number and one.version < version
        if not state.referenced_by(wanted.subject, one.version, deleted=True)
    ]
    made = SubjectVersion(wanted.subject, version, number, schema)
    return Registered(made, [*records, made.record()])


def look_up(
    state: RegistryState, subject: str, schema: Schema, *, normalize: bool = False, deleted: bool = False
) -> SubjectVersion:
    """The version of a subject that a schema has. Raises `RegistryError` 40401 or 40403 where it has none."""
    if not state.has(subject, deleted=deleted):
        raise subject_not_found(subject)
    config = config_of(state, subject, in_scope=True)
    _, found = canonical(state, subject, schema, normalize=normalize or bool(config.get("normalize")))
    bare = found.metadata is None and found.rules is None
    found = found if bare else _configured(found, config)
    for version in reversed(state.versions(subject, deleted=deleted)):
        # A question without metadata and rules is about the schema with any.
        if (replace(version.schema, metadata=None, rules=None) if bare else version.schema) == found:
            return version
    raise schema_not_found()


def why_incompatible(
    state: RegistryState, subject: str, schema: Schema, versions: Sequence[SubjectVersion], *, normalize: bool = False
) -> list[str]:
    """Why a subject's level refuses a schema against some versions; [] where it doesn't."""
    config = config_of(state, subject, in_scope=True)
    parsed, schema = canonical(state, subject, schema, normalize=normalize)
    parsed.check()
    return _messages(state, config, parsed, schema, versions)


def prepare(state: RegistryState, subject: str, schema: Schema) -> Callable[[], None]:
    """What reads a schema ahead of a decision, which then finds it read: parsers may take long, and need no state.

    What can't be read is for the decision to refuse.
    """
    try:
        references = resolved(state, subject, schema)
    except RegistryError:
        return lambda: None

    def ahead() -> None:
        with suppress(RegistryError):
            parse(schema.kind, schema.text, references).check()

    return ahead


def canonical(
    state: RegistryState, subject: str, schema: Schema, *, normalize: bool = False
) -> tuple[ParsedSchema, Schema]:
    """A schema read, and with the text and references under which it is stored.

    Raises `RegistryError` 42201 for a schema that can't be read, and for references that aren't there.
    """
    references = schema.references
    if any(one.version == -1 for one in references):
        references = tuple(_newest(state, subject, one) for one in references)
    if normalize:
        references = tuple(sorted({*references}))
    schema = replace(schema, references=references)
    parsed = parse(schema.kind, schema.text, resolved(state, subject, schema))
    return parsed, schema.with_text(parsed.normalized if normalize else parsed.canonical)


def resolved(state: RegistryState, subject: str, schema: Schema) -> dict[str, str]:
    """{name: text} of all schemas that one needs, those that others need first.

    Of two under one name, the first counts. Raises `RegistryError` 42201 for one that isn't there.
    """
    found: dict[str, str] = {}
    begun: set[tuple[str, str, int]] = set()
    stack: list[tuple[str, Reference, bool]] = [(subject, one, False) for one in reversed(schema.references)]
    while stack:
        parent, reference, ready = stack.pop()
        place = SubjectName.of(parent).inside(reference.subject), reference.version
        version = state.version(*place, deleted=True)
        if version is None:
            raise invalid_schema(f'No schema reference found for subject "{place[0]}" and version {place[1]}')
        if ready:
            found.setdefault(reference.name, version.schema.text)
        elif (reference.name, *place) not in begun:
            begun.add((reference.name, *place))
            stack.append((parent, reference, True))
            stack += [(place[0], one, False) for one in reversed(version.schema.references)]
    return found


def _newest(state: RegistryState, subject: str, reference: Reference) -> Reference:
    version = state.version(SubjectName.of(subject).inside(reference.subject), -1)
    return reference if version is None else replace(reference, version=version.version)


def _check_mode(state: RegistryState, wanted: Registration) -> None:
    check_writable(state, wanted.subject)
    mode, context = mode_of(state, wanted.subject, in_scope=True), SubjectName.of(wanted.subject).context
    if wanted.id >= 0 and not mode.imports:
        raise not_permitted(f"Subject {wanted.subject} in context {context} is not in import mode")
    if wanted.id < 0 and mode is not Mode.READWRITE:
        raise not_permitted(f"Subject {wanted.subject} in context {context} is not in read-write mode")
    for one in wanted.schema.references:
        place = SubjectName.of(wanted.subject).inside(one.subject)
        if not mode.imports and state.version(place, one.version) is None:
            raise invalid_schema(f'No schema reference found for subject "{place}" and version {one.version}')


def _completed(schema: Schema, live: Sequence[SubjectVersion], config: Mapping[str, Any]) -> Schema:
    """What a registration leaves out is that of the newest version; then the configuration adds its own."""
    if not live:
        if not schema.text.strip():
            raise invalid_schema("Empty schema")
        return _configured(schema, config)
    newest = live[-1].schema
    if not schema.text.strip():
        schema = replace(schema, text=newest.text, kind=newest.kind, references=newest.references)
    metadata = newest.metadata if schema.metadata is None else schema.metadata
    rules = newest.rules if schema.rules is None else schema.rules
    return _configured(replace(schema, metadata=metadata, rules=rules), config)


def _configured(schema: Schema, config: Mapping[str, Any]) -> Schema:
    metadata, rules = configured_metadata(schema.metadata, config), configured_rules(schema.rules, config)
    return replace(schema, metadata=metadata, rules=rules)


def _messages(
    state: RegistryState, config: Mapping[str, Any], parsed: ParsedSchema, schema: Schema, old: Sequence[SubjectVersion]
) -> list[str]:
    level = CompatibilityLevel.of(config["compatibilityLevel"])
    if level is CompatibilityLevel.NONE:
        return []
    group = config.get("compatibilityGroup")
    if group is not None:
        old = [one for one in old if _group(one.schema, group) == _group(schema, group)]
    compared = []
    for one in old if level.transitive else old[-1:]:
        try:
            read = parse(one.schema.kind, one.schema.text, resolved(state, one.subject, one.schema))
        except RegistryError as error:
            return [f"Version {one.version} can't be read: {error}"]
        compared.append((one.version, read))
    lenient = config.get("compatibilityPolicy") == "LENIENT"
    messages = incompatibilities(level, parsed, compared, lenient=lenient)
    return [*messages, f"{{validateFields: 'false', compatibility: '{level.value}'}}"] if messages else []


def _group(schema: Schema, name: str) -> str | None:
    properties = schema.metadata.properties if schema.metadata else None
    return (properties or {}).get(name)
