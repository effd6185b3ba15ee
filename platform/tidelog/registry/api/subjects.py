"""Subjects and their versions: /subjects."""

from typing import Any, Final

from tidelog.operations.rights import Right
from tidelog.operations.schemas.deleting import decide_delete_subject, decide_delete_version
from tidelog.operations.schemas.errors import subject_not_found, version_not_found
from tidelog.operations.schemas.fold import RegistryState
from tidelog.operations.schemas.look_ups import look_up
from tidelog.operations.schemas.reading import formatted, prepare
from tidelog.operations.schemas.records import SubjectVersion
from tidelog.operations.schemas.registering import Registration, decide_register
from tidelog.operations.schemas.subjects import DEFAULT_CONTEXT
from tidelog.registry.api.calls import (
    LATEST,
    MOST_SCHEMAS,
    ApiCall,
    SchemaText,
    asked_references,
    version_json,
)
from tidelog.registry.api.guard import in_handler, of_subject, registration, with_schema
from tidelog.server.routes import Route


def subjects(call: ApiCall) -> Any:
    """GET /subjects: names, of all contexts unless a prefix or the path names one."""
    everywhere = ":*:" if call.context == DEFAULT_CONTEXT else f":{call.context}:"
    prefix, deleted = call.text("subjectPrefix") or everywhere, call.flag("deleted")

    def at(state: RegistryState) -> list[str]:
        return [one for one in listed(state) if call.rights.sees(one)]

    def listed(state: RegistryState) -> list[str]:
        if call.flag("deletedOnly"):
            return [one for one in state.subjects(prefix, deleted=True) if not state.has(one)]
        return state.subjects(prefix, deleted=deleted)

    return call.page(call.log.look(at))


def look_up_schema(call: ApiCall) -> Any:
    """POST /subjects/{subject}: which version a schema is."""
    schema, deleted = call.schema(), call.flag("deleted")
    subject, normalize = call.subject, call.flag("normalize")
    call.log.known(lambda state: prepare(state, subject, schema))()

    def at(state: RegistryState) -> dict[str, Any]:
        found = look_up(state, subject, schema, normalize=normalize, deleted=deleted)
        return version_json(found, formatted(state, found.subject, found.schema, call.text("format")))

    return call.log.look(at)


def delete_subject(call: ApiCall) -> Any:
    """DELETE /subjects/{subject}: the versions that were deleted."""
    subject, permanent = call.subject, call.flag("permanent")
    return call.log.decide(lambda state: decide_delete_subject(state, subject, permanent=permanent))


def newest_with_metadata(call: ApiCall) -> Any:
    """GET /subjects/{subject}/metadata: the newest version with all of some properties."""
    subject, deleted = call.subject, call.flag("deleted")
    wanted = dict(zip(call.query.get("key", ()), call.query.get("value", ()), strict=False))

    def at(state: RegistryState) -> dict[str, Any]:
        versions = state.versions(subject, deleted=deleted)
        if not versions:
            raise subject_not_found(subject)
        for version in reversed(versions):
            properties = (version.schema.metadata.properties if version.schema.metadata else None) or {}
            if wanted.items() <= properties.items():
                return version_json(version, formatted(state, subject, version.schema, call.text("format")))
        raise version_not_found("with these properties")

    return call.log.look(at)


def versions(call: ApiCall) -> Any:
    """GET /subjects/{subject}/versions: numbers, oldest first."""
    subject, negative = call.subject, call.flag("deletedAsNegative")
    only = call.flag("deletedOnly") and not negative
    found = call.log.look(lambda state: state.versions(subject, deleted=only or negative or call.flag("deleted")))
    if not found:
        raise subject_not_found(subject)
    found = [one for one in found if one.deleted or not only]
    return call.page([-one.version if one.deleted and negative else one.version for one in found])


def register(call: ApiCall) -> Any:
    """POST /subjects/{subject}/versions: the schema's id."""
    wanted = Registration(
        call.subject,
        call.schema(),
        call.integer("id", -1),
        call.integer("version", 0),
        normalize=call.flag("normalize"),
        force=call.flag("force"),
    )

    call.log.known(lambda state: prepare(state, wanted.subject, wanted.schema))()

    def rule(state: RegistryState) -> Any:
        found = decide_register(state, wanted)
        return found.version, found.records

    made = call.log.decide(rule)
    form = call.text("format")
    answer = version_json(made, call.log.known(lambda state: formatted(state, made.subject, made.schema, form)))
    del answer["subject"]
    return answer


def version(call: ApiCall) -> Any:
    """GET /subjects/{subject}/versions/{version}."""

    def at(state: RegistryState) -> dict[str, Any]:
        found = found_version(state, call)
        text = formatted(state, found.subject, found.schema, call.text("format"))
        return version_json(found, text, asked_references(call, found.subject, found.schema))

    return call.log.look(at)


def version_text(call: ApiCall) -> Any:
    """GET /subjects/{subject}/versions/{version}/schema: the schema alone."""

    def at(state: RegistryState) -> str:
        found = found_version(state, call)
        return formatted(state, found.subject, found.schema, call.text("format"))

    return SchemaText(call.log.look(at))


def referenced_by(call: ApiCall) -> Any:
    """GET /subjects/{subject}/versions/{version}/referencedby: ids of schemas."""

    def at(state: RegistryState) -> list[int]:
        found = found_version(state, call, deleted=True)
        return [
            one.id
            for one in state.referenced_by(found.subject, found.version, deleted=call.flag("deleted"))
            if call.rights.sees(one.subject)
        ]

    return call.page(sorted({*call.log.look(at)}), MOST_SCHEMAS)


def delete_version(call: ApiCall) -> Any:
    """DELETE /subjects/{subject}/versions/{version}: the version's number."""
    subject, number, permanent = call.subject, call.version(), call.flag("permanent")
    return call.log.decide(lambda state: decide_delete_version(state, subject, number, permanent=permanent))


def found_version(state: RegistryState, call: ApiCall, *, deleted: bool = False) -> SubjectVersion:
    """The path's version; `deleted`: also a softly deleted one. Raises `RegistryError` 40401 or 40402 without it."""
    subject, number, deleted = call.subject, call.version(), deleted or call.flag("deleted")
    found = state.version(subject, number, deleted=deleted)
    if found is None:
        if not state.has(subject, deleted=deleted):
            raise subject_not_found(subject)
        raise version_not_found("latest" if number == LATEST else number)
    return found


_DESCRIBE: Final = of_subject(Right.READ_SCHEMA)
_DELETE: Final = of_subject(Right.DELETE_SCHEMA)

ROUTES: Final[tuple[Route[ApiCall], ...]] = (
    Route("GET", "subjects", subjects, in_handler),
    Route("POST", "subjects/{subject}", look_up_schema, with_schema(Right.READ_SCHEMA)),
    Route("DELETE", "subjects/{subject}", delete_subject, _DELETE, body=0),
    Route("GET", "subjects/{subject}/metadata", newest_with_metadata, _DESCRIBE),
    Route("GET", "subjects/{subject}/versions", versions, _DESCRIBE),
    Route("POST", "subjects/{subject}/versions", register, registration),
    Route("GET", "subjects/{subject}/versions/{version}", version, _DESCRIBE),
    Route("DELETE", "subjects/{subject}/versions/{version}", delete_version, _DELETE, body=0),
    Route("GET", "subjects/{subject}/versions/{version}/schema", version_text, _DESCRIBE),
    Route("GET", "subjects/{subject}/versions/{version}/referencedby", referenced_by, _DESCRIBE),
)
