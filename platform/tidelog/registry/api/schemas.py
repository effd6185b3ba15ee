"""Schemas by their ids: /schemas; and contexts."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from tidelog.operations.rights import Right
from tidelog.operations.schemas.deleting import decide_delete_context
from tidelog.operations.schemas.errors import schema_not_found
from tidelog.operations.schemas.fold import RegistryState
from tidelog.operations.schemas.reading import formatted
from tidelog.operations.schemas.records import SubjectVersion
from tidelog.operations.schemas.subjects import DEFAULT_CONTEXT, SubjectName, begins_with
from tidelog.registry.api.calls import (
    MOST_SCHEMAS,
    ApiCall,
    SchemaText,
    asked_references,
    schema_json,
    version_json,
)
from tidelog.registry.api.guard import for_all, in_handler, of_cluster
from tidelog.server.routes import Route


def schemas(call: ApiCall) -> Any:
    """GET /schemas: versions, sorted by subject and version."""
    everywhere = ":*:" if call.context == DEFAULT_CONTEXT else f":{call.context}:"
    prefix, deleted = call.text("subjectPrefix") or everywhere, call.flag("deleted")
    newest, rule = call.flag("latestOnly"), call.text("ruleType")

    def at(state: RegistryState) -> list[tuple[SubjectVersion, list[str]]]:
        aliases = _aliases(state, prefix, call.rights.sees) if call.flag("aliases") else {}
        names = sorted({*state.subjects(prefix, deleted=deleted), *aliases})
        listed = [state.versions(one, deleted=deleted) for one in names if call.rights.sees(one)]
        found = (version for versions in listed for version in (versions[-1:] if newest else versions))
        return [
            (one, aliases.get(one.subject, []))
            for one in found
            if not rule or (one.schema.rules is not None and one.schema.rules.has_type(rule))
        ]

    found = call.page(call.log.look(at), MOST_SCHEMAS)
    return [{**version_json(one), **({"aliases": aliases} if aliases else {})} for one, aliases in found]


def _aliases(state: RegistryState, prefix: str, sees: Callable[[str], bool]) -> Mapping[str, list[str]]:
    """{subject: the aliases of it that begin with a prefix, and that the client may read}."""
    found: dict[str, list[str]] = {}
    for name in sorted(one for one in state.configs if one is not None):
        alias = state.configs[name].get("alias")
        if alias and begins_with(name, prefix) and sees(name):
            found.setdefault(SubjectName.of(name).inside(str(alias)), []).append(name)
    return found


def schema(call: ApiCall) -> Any:
    """GET /schemas/ids/{id}."""

    def at(state: RegistryState) -> dict[str, Any]:
        found = _by_id(state, call)
        text = formatted(state, found.subject, found.schema, call.text("format"))
        answer = schema_json(found.schema, text, asked_references(call, found.subject, found.schema))
        if call.text("subject"):
            answer |= {"subject": found.subject, "version": found.version}
        if found.at_ms is not None:
            answer["ts"] = found.at_ms
        if call.flag("fetchMaxId"):
            answer["maxId"] = state.next_id(_context(call)) - 1
        return answer

    return _known(call, at)


def schema_text(call: ApiCall) -> Any:
    """GET /schemas/ids/{id}/schema: the schema alone."""

    def at(state: RegistryState) -> str:
        found = _by_id(state, call)
        return formatted(state, found.subject, found.schema, call.text("format"))

    return SchemaText(_known(call, at))


def subjects_of_id(call: ApiCall) -> Any:
    """GET /schemas/ids/{id}/subjects."""
    return call.page(sorted({one.subject for one in _places(call)}))


def versions_of_id(call: ApiCall) -> Any:
    """GET /schemas/ids/{id}/versions."""
    return [{"subject": one.subject, "version": one.version} for one in call.page(_places(call))]


def schema_of_guid(call: ApiCall) -> Any:
    """GET /schemas/guids/{guid}."""

    def at(state: RegistryState) -> dict[str, Any]:
        context, number = _ids_of_guid(state, call)[0]
        found = state.by_id(number, context)
        assert found is not None  # an id that the state gave
        subject = _seen(call, state.places_of(number, context, deleted=True))[0].subject
        return schema_json(found, formatted(state, subject, found, call.text("format")))

    return call.log.look(at)


def ids_of_guid(call: ApiCall) -> Any:
    """GET /schemas/guids/{guid}/ids: ids and their contexts."""
    found = call.log.look(lambda state: _ids_of_guid(state, call))
    return [{"context": context, "id": number} for context, number in found]


def types(call: ApiCall) -> Any:  # noqa: ARG001 - a handler
    """GET /schemas/types."""
    return ["JSON", "PROTOBUF", "AVRO"]


def contexts(call: ApiCall) -> Any:
    """GET /contexts."""
    prefix = call.text("contextPrefix")
    return call.page([one for one in call.log.look(lambda state: state.contexts()) if one.startswith(prefix)])


def delete_context(call: ApiCall) -> Any:
    """DELETE /contexts/{context}, which must be empty."""
    context = call.variables["context"].strip(":")
    return call.log.decide(lambda state: (None, decide_delete_context(state, context)))


def _context(call: ApiCall) -> str:
    """Of the path, or of the subject that the query names."""
    named = call.text("subject")
    return SubjectName.of(named).context if named.startswith(":.") else call.context


def _known(call: ApiCall, at: Any) -> Any:
    """What is known of an id counts without a look at the log: it never changes once it is there."""
    number = call.number("id")
    known = call.log.known(lambda state: state.by_id(number, _context(call)) is not None)
    return call.log.known(at) if known and not (call.flag("fetchMaxId") or call.text("subject")) else call.log.look(at)


def _by_id(state: RegistryState, call: ApiCall) -> SubjectVersion:
    """A version that has the path's schema: of the query's subject where that has it.

    A subject is no more than a hint otherwise: one without a context is looked for in all of them (Confluent's rule).
    """
    number, context = call.number("id"), _context(call)
    places, named = _seen(call, state.places_of(number, context, deleted=True)), _named(call)
    found = [one for one in places if one.subject == named]
    if not found and named is not None and not named.startswith(":."):
        subjects = (f":{one}:{named}" for one in state.contexts() if one != DEFAULT_CONTEXT)
        elsewhere = (one for subject in subjects for one in state.versions(subject, deleted=True) if one.id == number)
        found = _seen(call, elsewhere)
    if not (found or places):
        raise schema_not_found(number)
    return (found or places)[0]


def _named(call: ApiCall) -> str | None:
    """The subject of the query, or what it is an alias of; None where it names none, or only a context."""
    named = call.text("subject")
    return call.aliased(named) if SubjectName.of(named).name.strip() else None


def _places(call: ApiCall) -> list[SubjectVersion]:
    """The versions that have the path's id, in the context where it was found."""

    def at(state: RegistryState) -> list[SubjectVersion]:
        context = SubjectName.of(_by_id(state, call).subject).context
        return _seen(call, state.places_of(call.number("id"), context, deleted=call.flag("deleted")))

    return call.log.look(at)


def _seen(call: ApiCall, places: Iterable[SubjectVersion]) -> list[SubjectVersion]:
    """Those that the client may read: an id that it sees in no subject is not there for it."""
    return [one for one in places if call.rights.sees(one.subject)]


def _ids_of_guid(state: RegistryState, call: ApiCall) -> list[tuple[str, int]]:
    try:
        digest = UUID(call.variables["guid"]).bytes
    except ValueError:
        digest = b""
    found = [
        (context, number)
        for context, number in state.ids_of_guid(digest)
        if _seen(call, state.places_of(number, context, deleted=True))
    ]
    if not found:
        raise schema_not_found(call.variables["guid"])
    return found


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
