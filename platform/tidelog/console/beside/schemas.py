"""Subjects of the registry over the lake, and their versions."""

from typing import Any

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.console import Console
from tidelog.console.base.errors import ConsoleError
from tidelog.registry.api.rights import ApiRights
from tidelog.registry.log.registry_log import RegistryLog
from tidelog.registry.state.fold import RegistryState
from tidelog.registry.state.records import SubjectVersion


class ConsoleRegistry(RegistryLog):
    """The registry's state, read by the console; it needs no registry to run."""

    def __init__(self, console: Console) -> None:
        super().__init__(console.lake)

    def close(self) -> None:
        """Nothing: it has no thread."""


def schemas(call: ConsoleCall) -> Any:
    """The subjects that the client sees, each with its newest version."""
    rights = ApiRights(call.client)

    def at(state: RegistryState) -> list[dict[str, Any]]:
        rows = []
        for subject in state.subjects(":*:"):
            versions = state.versions(subject) if rights.sees(subject) else []
            if versions:
                newest = versions[-1]
                row = {"subject": subject, "versions": len(versions), "version": newest.version, "id": newest.id}
                rows.append(row | {"type": newest.schema.kind.value, "at_ms": newest.at_ms})
        return rows

    return {"subjects": call.console.part(ConsoleRegistry).look(at)}


def subject(call: ConsoleCall) -> Any:
    """One subject: all its versions, and their texts."""
    name = call.variables["subject"]
    found = call.console.part(ConsoleRegistry).look(lambda state: list(state.versions(name)))
    if not found or not ApiRights(call.client).sees(name):  # the same for what is there and what is not
        raise ConsoleError(404, f"There is no subject '{name}'.")
    return {"subject": name, "versions": [_version(one) for one in reversed(found)]}


def _version(one: SubjectVersion) -> dict[str, Any]:
    references = [{"name": r.name, "subject": r.subject, "version": r.version} for r in one.schema.references]
    return {
        "version": one.version,
        "id": one.id,
        "type": one.schema.kind.value,
        "schema": one.schema.text,
        "references": references,
        "at_ms": one.at_ms,
    }
