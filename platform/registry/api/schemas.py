"""Schemas by their ids: /schemas; and contexts."""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from tidelog.registry.api.calls import ApiCall, Handler, SchemaText, schema_json, version_json
from tidelog.registry.api.formats import formatted
from tidelog.registry.base.errors import schema_not_found
from tidelog.registry.base.model import Schema
from tidelog.registry.state.deleting import decide_delete_context
from tidelog.registry.state.fold import RegistryState
from tidelog.registry.state.records import SubjectVersion
from tidelog.registry.state.subjects import DEFAULT_CONTEXT, SubjectName


def schemas(call: ApiCall) -> Any:
    """GET /schemas: versions, sorted by subject and version."""
    everywhere = ":*:" if call.context == DEFAULT_CONTEXT else f":{call.context}:"
    prefix, deleted = call.text("subjectPrefix") or everywhere, call.flag("deleted")

    def at(state: RegistryState) -> list[Any]:
        listed = [
            state.versions(one, deleted=deleted)
            for one in state.subjects(prefix, deleted=deleted)
            if call.rights.sees(one)
        ]
        newest = call.flag("latestOnly")
        return [version for found in listed for version in (found[-1:] if newest else found)]

    return [version_json(one) for one in call.page(call.log.look(at))]


def schema(call: ApiCall) -> Any:
    """GET /schemas/ids/{id}."""

    def at(state: RegistryState) -> dict[str, Any]:
        found, subject = _by_id(state, call)
        answer = schema_json(found, formatted(state, subject, found, call.text("format")))
        if call.flag("fetchMaxId"):
            answer["maxId"] = state.next_id(_context(call)) - 1
        return answer

    return _known(call, at)


def schema_text(call: ApiCall) -> Any:
    """GET /schemas/ids/{id}/schema: the schema alone."""

    def at(state: RegistryState) -> str:
        found, subject = _by_id(state, call)
        return formatted(state, subject, found, call.text("format"))

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
    context = call.path["context"].strip(":")
    return call.log.decide(lambda state: (None, decide_delete_context(state, context)))


def _context(call: ApiCall) -> str:
    """Of the path, or of the subject that the query names."""
    named = call.text("subject")
    return SubjectName.of(named).context if named.startswith(":.") else call.context


def _known(call: ApiCall, at: Any) -> Any:
    """What is known of an id counts without a look at the log: it never changes once it is there."""
    number = call.number("id")
    known = call.log.known(lambda state: state.by_id(number, _context(call)) is not None)
    return call.log.known(at) if known and not call.flag("fetchMaxId") else call.log.look(at)


def _by_id(state: RegistryState, call: ApiCall) -> tuple[Schema, str]:
    """The path's schema, and a subject that has it."""
    number, context = call.number("id"), _context(call)
    named = call.text("subject")
    places = _seen(call, state.places_of(number, context, deleted=True))
    for one in places:
        if not SubjectName.of(named).name or one.subject == str(SubjectName.of(named)):
            return one.schema, one.subject
    # A subject narrows the search where it has the id, and is no more than a hint where it hasn't.
    if not places:
        raise schema_not_found(number)
    return places[0].schema, places[0].subject


def _places(call: ApiCall) -> list[Any]:
    number, context, deleted = call.number("id"), _context(call), call.flag("deleted")

    def at(state: RegistryState) -> list[Any]:
        if not _seen(call, state.places_of(number, context, deleted=True)):
            raise schema_not_found()
        return _seen(call, state.places_of(number, context, deleted=deleted))

    named = call.text("subject")
    found = call.log.look(at)
    return [one for one in found if not SubjectName.of(named).name or one.subject == str(SubjectName.of(named))]


def _seen(call: ApiCall, places: Iterable[SubjectVersion]) -> list[SubjectVersion]:
    """Those that the client may read: an id that it sees in no subject is not there for it."""
    return [one for one in places if call.rights.sees(one.subject)]


def _ids_of_guid(state: RegistryState, call: ApiCall) -> list[tuple[str, int]]:
    try:
        digest = UUID(call.path["guid"]).bytes
    except ValueError:
        digest = b""
    found = [
        (context, number)
        for context, number in state.ids_of_guid(digest)
        if _seen(call, state.places_of(number, context, deleted=True))
    ]
    if not found:
        raise schema_not_found(call.path["guid"])
    return found


ROUTES: Final[Mapping[tuple[str, str], Handler]] = {
    ("GET", "schemas"): schemas,
    ("GET", "schemas/types"): types,
    ("GET", "schemas/ids/{id}"): schema,
    ("GET", "schemas/ids/{id}/schema"): schema_text,
    ("GET", "schemas/ids/{id}/subjects"): subjects_of_id,
    ("GET", "schemas/ids/{id}/versions"): versions_of_id,
    ("GET", "schemas/guids/{guid}"): schema_of_guid,
    ("GET", "schemas/guids/{guid}/ids"): ids_of_guid,
    ("GET", "contexts"): contexts,
    ("DELETE", "contexts/{context}"): delete_context,
}
