"""Subjects and their versions: /subjects."""

from typing import Any, Final

from tidelog.operations.rights import Right
from tidelog.operations.schemas.deleting import decide_delete_subject, decide_delete_version
from tidelog.operations.schemas.descriptions import (
    MOST_SCHEMAS,
    VersionDescription,
    describe_newest_with,
    describe_versions,
    described,
    ids_that_reference,
    list_subjects,
    required_version,
)
from tidelog.operations.schemas.fold import RegistryState
from tidelog.operations.schemas.look_ups import look_up
from tidelog.operations.schemas.registering import Registration, register_schema
from tidelog.registry.api.calls import ApiCall, SchemaText, version_json
from tidelog.registry.api.guard import in_handler, of_subject, registration, with_schema
from tidelog.server.routes import Route


def subjects(call: ApiCall) -> Any:
    """GET /subjects: names, of all contexts unless a prefix or the path names one."""
    deleted, only = call.flag("deleted"), call.flag("deletedOnly")
    return call.page(
        call.log.look(
            lambda state: list_subjects(state, call.rights.sees, call.prefix, deleted=deleted, deleted_only=only)
        )
    )


def look_up_schema(call: ApiCall) -> Any:
    """POST /subjects/{subject}: which version a schema is."""
    schema, deleted = call.schema(), call.flag("deleted")
    subject, normalize = call.subject, call.flag("normalize")
    call.log.prepare(subject, schema)

    def at(state: RegistryState) -> VersionDescription:
        version = look_up(state, subject, schema, normalize=normalize, deleted=deleted)
        return described(state, version, call.text("format"))

    return version_json(call.log.look(at))


def delete_subject(call: ApiCall) -> Any:
    """DELETE /subjects/{subject}: the versions that were deleted."""
    subject, permanent = call.subject, call.flag("permanent")
    return call.log.decide(lambda state: decide_delete_subject(state, subject, permanent=permanent))


def newest_with_metadata(call: ApiCall) -> Any:
    """GET /subjects/{subject}/metadata: the newest version with all of some properties."""
    subject, deleted, form = call.subject, call.flag("deleted"), call.text("format")
    wanted = dict(zip(call.query.get("key", ()), call.query.get("value", ()), strict=False))
    return version_json(
        call.log.look(lambda state: describe_newest_with(state, subject, wanted, form, deleted=deleted))
    )


def versions(call: ApiCall) -> Any:
    """GET /subjects/{subject}/versions: numbers, oldest first."""
    subject, negative = call.subject, call.flag("deletedAsNegative")
    only, deleted = call.flag("deletedOnly") and not negative, negative or call.flag("deleted")
    found = call.log.look(lambda state: describe_versions(state, subject, deleted=deleted, deleted_only=only))
    return call.page([-version.version if version.deleted and negative else version.version for version in found])


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
    answer = version_json(register_schema(call.log, wanted, call.text("format")))
    del answer["subject"]
    return answer


def version(call: ApiCall) -> Any:
    """GET /subjects/{subject}/versions/{version}."""
    return version_json(_version(call))


def version_text(call: ApiCall) -> Any:
    """GET /subjects/{subject}/versions/{version}/schema: the schema alone."""
    return SchemaText(_version(call).text)


def _version(call: ApiCall) -> VersionDescription:
    subject, number, deleted = call.subject, call.version(), call.flag("deleted")

    def at(state: RegistryState) -> VersionDescription:
        version = required_version(state, subject, number, deleted=deleted)
        return described(state, version, call.text("format"), qualified=call.qualified)

    return call.log.look(at)


def referenced_by(call: ApiCall) -> Any:
    """GET /subjects/{subject}/versions/{version}/referencedby: ids of schemas."""
    subject, number, deleted = call.subject, call.version(), call.flag("deleted")

    def at(state: RegistryState) -> list[int]:
        version = required_version(state, subject, number, deleted=True)
        return ids_that_reference(state, call.rights.sees, version, deleted=deleted)

    return call.page(call.log.look(at), MOST_SCHEMAS)


def delete_version(call: ApiCall) -> Any:
    """DELETE /subjects/{subject}/versions/{version}: the version's number."""
    subject, number, permanent = call.subject, call.version(), call.flag("permanent")
    return call.log.decide(lambda state: decide_delete_version(state, subject, number, permanent=permanent))


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
