"""A registry in this process, over a lake's topic: what a server of it would answer, without one."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

import orjson

from tidelog.clients.schema_registry.metadata import Metadata, RuleSet
from tidelog.clients.schema_registry.model import (
    RegisteredSchema,
    Schema,
    SchemaReference,
    SchemaRegistryError,
    SchemaVersion,
)
from tidelog.log.base.errors import TidelogError
from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.log.lake import Lake
from tidelog.operations.schemas.deleting import decide_delete_subject, decide_delete_version
from tidelog.operations.schemas.descriptions import (
    EVERYWHERE,
    MOST_SCHEMAS,
    SCHEMA_TYPES,
    VersionDescription,
    context_of_id,
    describe_guid,
    describe_newest_with,
    describe_versions,
    described,
    ids_that_reference,
    list_subjects,
    page,
    required_version,
    version_number,
    version_of_id,
    versions_of_id,
)
from tidelog.operations.schemas.errors import store_failure
from tidelog.operations.schemas.fold import RegistryState
from tidelog.operations.schemas.look_ups import look_up
from tidelog.operations.schemas.reading import sent_schema
from tidelog.operations.schemas.records import SubjectVersion
from tidelog.operations.schemas.registering import Registration, check_compatibility, register_schema
from tidelog.operations.schemas.registry_log import Decide, RegistryLog
from tidelog.operations.schemas.settings import (
    aliased,
    config_of,
    decide_config,
    decide_mode,
    decide_no_config,
    decide_no_mode,
    mode_of,
)
from tidelog.operations.schemas.subjects import settings_place, subject_named
from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.base.model import Schema as StoredSchema

R = TypeVar("R")


class LakeRegistry:
    """Answers as a server over the lake does. All methods raise `SchemaRegistryError`, with the codes of a server."""

    def __init__(self, lake: Lake, topic: str = SCHEMAS_TOPIC, *, owned: bool = False) -> None:
        self._lake = lake
        self._owned = owned
        self._log = RegistryLog(lake, topic)

    def close(self) -> None:
        """Close the lake, where it was opened for this."""
        if self._owned:
            self._lake.close()

    def send(self, method: str, path: str, query: Mapping[str, Any], body: Any = None) -> NoReturn:  # noqa: ARG002 - HttpRegistry's
        """Refuse what only Confluent's own registry has."""
        raise SchemaRegistryError(404, 404, "HTTP 404 Not Found")

    # --- schemas -------------------------------------------------------------------------------------------

    def register(self, subject: str, schema: Schema, *, normalize: bool) -> RegisteredSchema:
        """Register a schema; its version."""
        with _refusals():
            sent = self._sent(schema)
            name = self._log.look(lambda state: _subject(state, subject))
            version = register_schema(self._log, Registration(name, sent, normalize=normalize))
        return replace(_registered(version), subject=subject)

    def schema(self, number: int, subject: str | None, fmt: str | None, reference_format: str | None) -> Schema:
        """The schema of an id."""
        context = context_of_id(subject or "")

        def at(state: RegistryState) -> VersionDescription:
            version = version_of_id(state, _everything, number, context, subject or "")
            return described(state, version, fmt or "", qualified=reference_format == "qualified")

        with _refusals():
            return _schema(self._log.look(at) if subject else self._log.of_id(number, context, at))

    def schema_of_guid(self, guid: str, fmt: str | None) -> Schema:
        """The schema of a guid."""
        return _schema(self._look(lambda state: describe_guid(state, _everything, guid, fmt or "")))

    def look_up(
        self, subject: str, schema: Schema, fmt: str | None, *, normalize: bool, deleted: bool
    ) -> RegisteredSchema:
        """The version that a schema has in a subject."""
        sent = self._prepared(subject, schema)

        def at(state: RegistryState) -> VersionDescription:
            version = look_up(state, _subject(state, subject), sent, normalize=normalize, deleted=deleted)
            return described(state, version, fmt or "")

        return _registered(self._look(at))

    def types(self) -> list[str]:
        """The types of schemas."""
        return [*SCHEMA_TYPES]

    def subjects_of_id(self, number: int, subject: str | None, offset: int, limit: int, *, deleted: bool) -> list[str]:
        """The subjects that have an id's schema."""
        return page(sorted({one.subject for one in self._of_id(number, subject, deleted=deleted)}), offset, limit)

    def versions_of_id(
        self, number: int, subject: str | None, offset: int, limit: int, *, deleted: bool
    ) -> list[SchemaVersion]:
        """The subjects and versions that have an id's schema."""
        found = page(self._of_id(number, subject, deleted=deleted), offset, limit)
        return [SchemaVersion(version.subject, version.version) for version in found]

    def _of_id(self, number: int, subject: str | None, *, deleted: bool) -> list[SubjectVersion]:
        named = subject or ""
        return self._look(
            lambda state: versions_of_id(state, _everything, number, context_of_id(named), named, deleted=deleted)
        )

    # --- subjects and versions -----------------------------------------------------------------------------

    def subjects(self, prefix: str | None, offset: int, limit: int, *, deleted: bool, deleted_only: bool) -> list[str]:
        """Subjects, sorted."""
        begin = prefix or EVERYWHERE
        subjects = self._look(
            lambda state: list_subjects(state, _everything, begin, deleted=deleted, deleted_only=deleted_only)
        )
        return page(subjects, offset, limit)

    def version(self, subject: str, version: int | str, fmt: str | None, *, deleted: bool) -> RegisteredSchema:
        """A version of a subject."""

        def at(state: RegistryState) -> VersionDescription:
            number = version_number(str(version))
            return described(
                state, required_version(state, _subject(state, subject), number, deleted=deleted), fmt or ""
            )

        return _registered(self._look(at))

    def newest_with(
        self, subject: str, properties: Mapping[str, str], fmt: str | None, *, deleted: bool
    ) -> RegisteredSchema:
        """A subject's newest version with these properties."""

        def at(state: RegistryState) -> VersionDescription:
            return describe_newest_with(state, _subject(state, subject), properties, fmt or "", deleted=deleted)

        return _registered(self._look(at))

    def versions(self, subject: str, offset: int, limit: int, *, deleted: bool, deleted_only: bool) -> list[int]:
        """The numbers of a subject's versions, oldest first."""

        def at(state: RegistryState) -> list[VersionDescription]:
            return describe_versions(state, _subject(state, subject), deleted=deleted, deleted_only=deleted_only)

        return page([version.version for version in self._look(at)], offset, limit)

    def referenced_by(self, subject: str, version: int | str, offset: int, limit: int) -> list[int]:
        """Ids of the schemas that reference a version."""

        def at(state: RegistryState) -> list[int]:
            number = version_number(str(version))
            found = required_version(state, _subject(state, subject), number, deleted=True)
            return ids_that_reference(state, _everything, found)

        return page(self._look(at), offset, limit, MOST_SCHEMAS)

    def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        """Delete a subject; the versions that were deleted."""
        return self._decide(lambda state: decide_delete_subject(state, _subject(state, subject), permanent=permanent))

    def delete_version(self, subject: str, version: int, *, permanent: bool) -> int:
        """Delete a version; its number."""
        return self._decide(
            lambda state: decide_delete_version(
                state, _subject(state, subject), version_number(str(version)), permanent=permanent
            )
        )

    def contexts(self, offset: int, limit: int) -> list[str]:
        """The contexts."""
        return page(self._look(lambda state: state.contexts()), offset, limit)

    # --- settings; of a subject, or of all (None) ----------------------------------------------------------

    def incompatibilities(
        self,
        subject: str,
        schema: Schema,
        version: int | str | None,
        *,
        normalize: bool,
        verbose: bool,  # noqa: ARG002 - HttpRegistry's
    ) -> list[str]:
        """What of a schema is not compatible with a version, or, for None, as a registration is tested."""
        sent = self._prepared(subject, schema)

        def at(state: RegistryState) -> list[str]:
            number = None if version is None else version_number(str(version))
            return check_compatibility(state, _subject(state, subject), sent, number, normalize=normalize)

        return self._look(at)

    def config(self, subject: str | None, *, in_force: bool = False) -> Mapping[str, Any]:
        """A configuration; `in_force`: also where it is that of all."""
        return self._look(lambda state: config_of(state, _place(subject), in_scope=in_force))

    def set_config(self, subject: str | None, change: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set what a change names; what was set."""
        return self._decide(lambda state: decide_config(state, _place(subject), _as_sent(change)))

    def delete_config(self, subject: str | None) -> Mapping[str, Any]:
        """Take a configuration away; what counted before."""
        return self._decide(lambda state: decide_no_config(state, _place(subject)))

    def mode(self, subject: str | None, *, in_force: bool = False) -> str:
        """A mode; `in_force`: also where it is that of all."""
        return self._look(lambda state: mode_of(state, _place(subject), in_scope=in_force)).value

    def set_mode(self, subject: str | None, mode: str, *, force: bool) -> str:
        """Set a mode."""
        return self._decide(lambda state: (mode.upper(), decide_mode(state, _place(subject), mode, force=force)))

    def delete_mode(self, subject: str | None) -> str:
        """Take a mode away; what counted before."""
        return str(self._decide(lambda state: decide_no_mode(state, _place(subject))))

    # --- the log -------------------------------------------------------------------------------------------

    def _look(self, at: Callable[[RegistryState], R]) -> R:
        with _refusals():
            return self._log.look(at)

    def _decide(self, rule: Decide[R]) -> R:
        with _refusals():
            return self._log.decide(rule)

    def _prepared(self, subject: str, schema: Schema) -> StoredSchema:
        """A schema that is asked about, read ahead of the look."""
        with _refusals():
            sent = self._sent(schema)
            self._log.prepare(subject, sent)
            return sent

    def _sent(self, schema: Schema) -> StoredSchema:
        return sent_schema(_as_sent(schema.to_dict()), self._log.most_bytes)


def _everything(_: str) -> bool:
    """A lake that was opened has no schema that may not be read."""
    return True


def _as_sent(value: Mapping[str, Any]) -> dict[str, Any]:
    """What a request would carry of a value: its JSON, read again."""
    read: dict[str, Any] = orjson.loads(orjson.dumps(value))
    return read


def _subject(state: RegistryState, text: str) -> str:
    return aliased(state, subject_named(text))


def _place(subject: str | None) -> str | None:
    return None if subject is None else settings_place(subject)


@contextmanager
def _refusals() -> Iterator[None]:
    """What is refused as a client raises it."""
    try:
        yield
    except TidelogError as error:
        refusal = error if isinstance(error, RegistryError) else store_failure(error)
        raise SchemaRegistryError(refusal.status, refusal.code, str(refusal)) from error


def _schema(version: VersionDescription) -> Schema:
    schema = version.schema
    return Schema(
        version.text,
        schema.kind.value,
        [SchemaReference(one.name, one.subject, one.version) for one in version.references],
        None if schema.metadata is None else Metadata.from_dict(schema.metadata.json()),
        None if schema.rules is None else RuleSet.from_dict(schema.rules.json()),
    )


def _registered(version: VersionDescription) -> RegisteredSchema:
    return RegisteredSchema(version.subject, version.version, version.id, version.schema.guid, _schema(version))
