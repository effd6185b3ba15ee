"""Subjects, their versions and the schemas of ids, as values that registries, clients and the console show."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar
from uuid import UUID

from tidelog.operations.schemas.errors import (
    invalid_version,
    schema_not_found,
    subject_not_found,
    version_not_found,
)
from tidelog.operations.schemas.fold import MOST_NUMBER, RegistryState
from tidelog.operations.schemas.reading import formatted
from tidelog.operations.schemas.records import SubjectVersion
from tidelog.operations.schemas.settings import aliased, aliases
from tidelog.schemas.base.model import Reference, Schema, SchemaKind
from tidelog.schemas.base.subject_names import DEFAULT_CONTEXT, SubjectName, begins_with

T = TypeVar("T")
# Whether the sender may read a subject.
Sees = Callable[[str], bool]

# The newest version.
LATEST: Final = -1
# The types of schemas, in the order in which Confluent's registry lists them.
SCHEMA_TYPES: Final = (SchemaKind.JSON.value, SchemaKind.PROTOBUF.value, SchemaKind.AVRO.value)
# The prefix of the subjects of all contexts.
EVERYWHERE: Final = ":*:"
# How many schemas one answer has: clients ask for the next ones (schema.search.max.limit).
MOST_SCHEMAS: Final = 1000
# Of a refused text, in characters.
_MOST_SHOWN: Final = 100
_MOST_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class VersionDescription:
    """A version of a subject. `schema`: as it is stored; `text` and `references`: in the forms that were asked for.

    `deleted`: softly. `at_ms`: when it was registered, in ms since the epoch; None: not known yet.
    """

    subject: str
    version: int
    id: int
    schema: Schema
    text: str
    references: tuple[Reference, ...]
    deleted: bool = False
    at_ms: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SubjectDescription:
    """A subject: how many versions it has, and the newest."""

    subject: str
    versions: int
    newest: VersionDescription


def described(
    state: RegistryState, version: SubjectVersion, form: str = "", *, qualified: bool = False
) -> VersionDescription:
    """A version as a value. `form`: of its text, as `formatted` has it.

    `qualified`: references name the context of the subject, where that is another than the default.
    """
    schema, subject = version.schema, SubjectName.of(version.subject)
    references = schema.references
    if qualified and subject.context != DEFAULT_CONTEXT:
        references = tuple(replace(one, subject=subject.inside(one.subject)) for one in references)
    text = formatted(state, version.subject, schema, form)
    return VersionDescription(
        version.subject, version.version, version.id, schema, text, references, version.deleted, version.at_ms
    )


# --- subjects and versions ---------------------------------------------------------------------------------


def list_subjects(
    state: RegistryState, sees: Sees, prefix: str = EVERYWHERE, *, deleted: bool = False, deleted_only: bool = False
) -> list[str]:
    """The subjects that begin with a prefix, sorted; `deleted`: also, or only, those without other versions."""
    listed = state.subjects(prefix, deleted=deleted or deleted_only)
    return [name for name in listed if sees(name) and not (deleted_only and state.has(name))]


def describe_subjects(state: RegistryState, sees: Sees) -> list[SubjectDescription]:
    """All subjects, sorted."""
    every = ((name, state.versions(name)) for name in list_subjects(state, sees))
    return [SubjectDescription(name, len(versions), described(state, versions[-1])) for name, versions in every]


def describe_versions(
    state: RegistryState, subject: str, *, deleted: bool = False, deleted_only: bool = False
) -> list[VersionDescription]:
    """A subject's versions, oldest first; `deleted`: also, or only, those. Raises `RegistryError` 40401 without any."""
    versions = state.versions(subject, deleted=deleted or deleted_only)
    if not versions:
        raise subject_not_found(subject)
    return [described(state, version) for version in versions if version.deleted or not deleted_only]


def required_version(state: RegistryState, subject: str, number: int, *, deleted: bool = False) -> SubjectVersion:
    """A version of a subject, as the state has it. Raises `RegistryError` 40401 or 40402 where it isn't there."""
    version = state.version(subject, number, deleted=deleted)
    if version is None:
        if not state.has(subject, deleted=deleted):
            raise subject_not_found(subject)
        raise version_not_found("latest" if number == LATEST else number)
    return version


def describe_newest_with(
    state: RegistryState, subject: str, properties: Mapping[str, str], form: str = "", *, deleted: bool = False
) -> VersionDescription:
    """The newest version whose metadata have all of some properties. Raises `RegistryError` 40401 or 40402."""
    versions = state.versions(subject, deleted=deleted)
    if not versions:
        raise subject_not_found(subject)
    for version in reversed(versions):
        own = (version.schema.metadata.properties if version.schema.metadata else None) or {}
        if properties.items() <= own.items():
            return described(state, version, form)
    raise version_not_found("with these properties")


def search_versions(
    state: RegistryState,
    sees: Sees,
    prefix: str,
    *,
    deleted: bool = False,
    newest: bool = False,
    rule_type: str = "",
    with_aliases: bool = False,
) -> list[tuple[VersionDescription, Sequence[str]]]:
    """Versions of the subjects that begin with a prefix, sorted, each with its subject's aliases where asked for.

    `newest`: the newest alone. `rule_type`: those with a rule of the type. An alias counts by its own name.
    """
    named: dict[str, list[str]] = {}
    for name, subject in aliases(state) if with_aliases else ():
        if begins_with(name, prefix) and sees(name):
            named.setdefault(subject, []).append(name)
    subjects = sorted({*state.subjects(prefix, deleted=deleted), *named})
    listed = [state.versions(subject, deleted=deleted) for subject in subjects if sees(subject)]
    return [
        (described(state, version), named.get(version.subject, []))
        for versions in listed
        for version in (versions[-1:] if newest else versions)
        if not rule_type or (version.schema.rules is not None and version.schema.rules.has_type(rule_type))
    ]


def ids_that_reference(
    state: RegistryState, sees: Sees, version: SubjectVersion, *, deleted: bool = False
) -> list[int]:
    """Ids of the schemas that reference a version, sorted."""
    referring = state.referenced_by(version.subject, version.version, deleted=deleted)
    return sorted({one.id for one in referring if sees(one.subject)})


# --- ids ---------------------------------------------------------------------------------------------------


def version_of_id(state: RegistryState, sees: Sees, number: int, context: str, subject: str = "") -> SubjectVersion:
    """A version that has the schema of an id: of the subject, or what it is an alias of, where that has it.

    A subject is no more than a hint otherwise: one without a context is looked for in all of them (Confluent's rule).
    An id that the sender sees in no subject is not there. Raises `RegistryError` 40403.
    """
    places = _seen(state.places_of(number, context, deleted=True), sees)
    named = aliased(state, subject) if SubjectName.of(subject).name.strip() else None
    versions = [one for one in places if one.subject == named]
    if not versions and named is not None and not named.startswith(":."):
        subjects = (f":{one}:{named}" for one in state.contexts() if one != DEFAULT_CONTEXT)
        elsewhere = (one for name in subjects for one in state.versions(name, deleted=True) if one.id == number)
        versions = _seen(elsewhere, sees)
    if not (versions or places):
        raise schema_not_found(number)
    return (versions or places)[0]


def versions_of_id(
    state: RegistryState, sees: Sees, number: int, context: str, subject: str = "", *, deleted: bool = False
) -> list[SubjectVersion]:
    """The versions that have an id, sorted, in the context where `version_of_id` finds it, and raises."""
    where = SubjectName.of(version_of_id(state, sees, number, context, subject).subject).context
    return _seen(state.places_of(number, where, deleted=deleted), sees)


def ids_of_guid(state: RegistryState, sees: Sees, guid: str) -> list[tuple[str, int]]:
    """(context, id) of a schema's guid, sorted. Raises `RegistryError` 40403 where there is none."""
    try:
        digest = UUID(guid).bytes
    except ValueError:
        digest = b""
    ids = [
        (context, number)
        for context, number in state.ids_of_guid(digest)
        if _seen(state.places_of(number, context, deleted=True), sees)
    ]
    if not ids:
        raise schema_not_found(guid)
    return ids


def describe_guid(state: RegistryState, sees: Sees, guid: str, form: str = "") -> VersionDescription:
    """A version that has the schema of a guid. Raises as `ids_of_guid` does."""
    context, number = ids_of_guid(state, sees, guid)[0]
    return described(state, _seen(state.places_of(number, context, deleted=True), sees)[0], form)


def context_of_id(subject: str, context: str = DEFAULT_CONTEXT) -> str:
    """The context of an id that is asked for by a subject or `:.context:`, else the one given."""
    return SubjectName.of(subject).context if subject.startswith(":.") else context


def _seen(places: Iterable[SubjectVersion], sees: Sees) -> list[SubjectVersion]:
    return [one for one in places if sees(one.subject)]


# --- numbers and pages -------------------------------------------------------------------------------------


def version_number(text: str) -> int:
    """A version's number, from 1 on, or `LATEST`. Raises `RegistryError` 42202."""
    if text in ("latest", "-1"):
        return LATEST
    number = whole(text)
    if number is None or not 0 < number <= MOST_NUMBER:
        raise invalid_version(text[:_MOST_SHOWN])
    return number


def whole(text: str) -> int | None:
    """A whole number, None for another text."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS else None


def page(items: Sequence[T], offset: int = 0, limit: int = -1, most: int | None = None) -> list[T]:
    """The part of a list that an offset and a limit ask for: `most` (None: all) unless the limit is from 1 to it."""
    start = max(0, offset)
    if most is None and limit <= 0:
        return list(items[start:])
    if limit <= 0 or (most is not None and limit > most):
        limit = most or len(items)
    return list(items[start : start + limit])
