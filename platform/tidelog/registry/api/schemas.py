"""Schemas by their ids: /schemas; and contexts."""

from typing import Any, Final

from tidelog.operations.rights import Right
from tidelog.operations.schemas.deleting import decide_delete_context
from tidelog.operations.schemas.descriptions import (
    MOST_SCHEMAS,
    SCHEMA_TYPES,
    VersionDescription,
    context_of_id,
    describe_guid,
    described,
    search_versions,
    version_of_id,
)
from tidelog.operations.schemas.descriptions import ids_of_guid as ids_of
from tidelog.operations.schemas.descriptions import versions_of_id as versions_of
from tidelog.operations.schemas.fold import RegistryState
from tidelog.operations.schemas.records import SubjectVersion
from tidelog.registry.api.calls import ApiCall, SchemaText, schema_json, version_json
from tidelog.registry.api.guard import for_all, in_handler, of_cluster
from tidelog.server.routes import Route


def schemas(call: ApiCall) -> Any:
    """GET /schemas: versions, sorted by subject and version."""
    versions = call.log.look(
        lambda state: search_versions(
            state,
            call.rights.sees,
            call.prefix,
            deleted=call.flag("deleted"),
            newest=call.flag("latestOnly"),
            rule_type=call.text("ruleType"),
            with_aliases=call.flag("aliases"),
        )
    )
    listed = call.page(versions, MOST_SCHEMAS)
    return [{**version_json(version), **({"aliases": aliases} if aliases else {})} for version, aliases in listed]


def schema(call: ApiCall) -> Any:
    """GET /schemas/ids/{id}."""
    version, most = _schema(call)
    answer = schema_json(version)
    if call.text("subject"):
        answer |= {"subject": version.subject, "version": version.version}
    if version.at_ms is not None:
        answer["ts"] = version.at_ms
    if call.flag("fetchMaxId"):
        answer["maxId"] = most
    return answer


def schema_text(call: ApiCall) -> Any:
    """GET /schemas/ids/{id}/schema: the schema alone."""
    return SchemaText(_schema(call)[0].text)


def _schema(call: ApiCall) -> tuple[VersionDescription, int]:
    """The schema of the path's id, and the highest id of its context."""
    number, subject = call.number("id"), call.text("subject")
    context = context_of_id(subject, call.context)

    def at(state: RegistryState) -> tuple[VersionDescription, int]:
        version = version_of_id(state, call.rights.sees, number, context, subject)
        return described(state, version, call.text("format"), qualified=call.qualified), state.next_id(context) - 1

    return call.log.look(at) if subject or call.flag("fetchMaxId") else call.log.of_id(number, context, at)


def subjects_of_id(call: ApiCall) -> Any:
    """GET /schemas/ids/{id}/subjects."""
    return call.page(sorted({version.subject for version in _versions(call)}))


def versions_of_id(call: ApiCall) -> Any:
    """GET /schemas/ids/{id}/versions."""
    return [{"subject": version.subject, "version": version.version} for version in call.page(_versions(call))]


def _versions(call: ApiCall) -> list[SubjectVersion]:
    number, subject, deleted = call.number("id"), call.text("subject"), call.flag("deleted")
    context = context_of_id(subject, call.context)
    return call.log.look(lambda state: versions_of(state, call.rights.sees, number, context, subject, deleted=deleted))


def schema_of_guid(call: ApiCall) -> Any:
    """GET /schemas/guids/{guid}."""
    guid, form = call.variables["guid"], call.text("format")
    return schema_json(call.log.look(lambda state: describe_guid(state, call.rights.sees, guid, form)))


def ids_of_guid(call: ApiCall) -> Any:
    """GET /schemas/guids/{guid}/ids: ids and their contexts."""
    found = call.log.look(lambda state: ids_of(state, call.rights.sees, call.variables["guid"]))
    return [{"context": context, "id": number} for context, number in found]


def types(call: ApiCall) -> Any:  # noqa: ARG001 - a handler
    """GET /schemas/types."""
    return [*SCHEMA_TYPES]


def contexts(call: ApiCall) -> Any:
    """GET /contexts."""
    prefix = call.text("contextPrefix")
    return call.page([one for one in call.log.look(lambda state: state.contexts()) if one.startswith(prefix)])


def delete_context(call: ApiCall) -> Any:
    """DELETE /contexts/{context}, which must be empty."""
    context = call.variables["context"].strip(":")
    return call.log.decide(lambda state: (None, decide_delete_context(state, context)))


ROUTES: Final[tuple[Route[ApiCall], ...]] = (
    Route("GET", "schemas", schemas, in_handler),
    Route("GET", "schemas/types", types, for_all),
    Route("GET", "schemas/ids/{id}", schema, in_handler),
    Route("GET", "schemas/ids/{id}/schema", schema_text, in_handler),
    Route("GET", "schemas/ids/{id}/subjects", subjects_of_id, in_handler),
    Route("GET", "schemas/ids/{id}/versions", versions_of_id, in_handler),
    Route("GET", "schemas/guids/{guid}", schema_of_guid, in_handler),
    Route("GET", "schemas/guids/{guid}/ids", ids_of_guid, in_handler),
    Route("GET", "contexts", contexts, of_cluster(Right.LIST_CONTEXTS)),
    Route("DELETE", "contexts/{context}", delete_context, of_cluster(Right.DELETE_CONTEXT), body=0),
)
