"""What runs beside a lake: brokers, the schemas of a registry, connectors, mirrors."""

from typing import Any, Final

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.console import Console
from tidelog.console.base.errors import ConsoleError
from tidelog.log.base.errors import TidelogError
from tidelog.operations.connector_statuses import RunStatus
from tidelog.operations.connectors import ConnectorDescription, connectors_of
from tidelog.operations.mirrors import described, read_status
from tidelog.operations.schemas.descriptions import (
    SubjectDescription,
    VersionDescription,
    describe_subjects,
    describe_versions,
)
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.schemas.base.errors import RegistryError

# What is shown of a connector's configuration: the rest may be passwords.
_SHOWN: Final = ("connector.class", "tasks.max", "topics", "topics.regex", "topic.prefix", "topic")
_CHARACTERS: Final = 4_000


def brokers(call: ConsoleCall) -> Any:
    """The brokers that run or drain, by id."""
    return {
        "brokers": [
            {
                "id": broker.id,
                "state": broker.state.value,
                "rack": broker.rack,
                "started_ms": broker.started_ms,
                "listeners": [{"name": at.name, "host": at.host, "port": at.port} for at in broker.listeners],
            }
            for broker in call.console.snapshot().cluster.live
        ]
    }


def mirrors(call: ConsoleCall) -> Any:
    """The mirror that keeps this lake, as it said last: a lake follows one source, and may be copied from Kafka."""
    lake = call.console.lake
    status, follows = read_status(lake.storage), lake.follows()
    said = [] if status is None else [described(status, lake.clock.now_ms())]
    return {"follows": None if follows is None else follows.source, "mirrors": said}


class ConsoleRegistry(RegistryLog):
    """The registry's state, read by the console; it needs no registry to run."""

    def __init__(self, console: Console) -> None:
        super().__init__(console.lake)

    def close(self) -> None:
        """Nothing: it has no thread."""


def schemas(call: ConsoleCall) -> Any:
    """The subjects that the client sees, each with its newest version."""
    found = call.console.part(ConsoleRegistry).look(lambda state: describe_subjects(state, call.rights.sees_subject))
    return {"subjects": [_subject_row(subject) for subject in found]}


def _subject_row(subject: SubjectDescription) -> dict[str, Any]:
    newest = subject.newest
    row = {"subject": subject.subject, "versions": subject.versions, "version": newest.version, "id": newest.id}
    return row | {"type": newest.schema.kind.value, "at_ms": newest.at_ms}


def subject(call: ConsoleCall) -> Any:
    """One subject: all its versions, and their texts."""
    name = call.variables["subject"]
    try:
        versions = call.console.part(ConsoleRegistry).look(lambda state: describe_versions(state, name))
    except RegistryError:
        versions = []
    if not versions or not call.rights.sees_subject(name):  # the same for what is there and what is not
        raise ConsoleError(404, f"There is no subject '{name}'.")
    return {"subject": name, "versions": [_version(version) for version in reversed(versions)]}


def _version(version: VersionDescription) -> dict[str, Any]:
    return {
        "version": version.version,
        "id": version.id,
        "type": version.schema.kind.value,
        "schema": version.text,
        "references": [reference.json() for reference in version.references],
        "at_ms": version.at_ms,
    }


class ConsoleConnectors:
    """The connectors of the lake, whose topics it follows."""

    def __init__(self, console: Console) -> None:
        self.connectors = connectors_of(console.lake)

    def close(self) -> None:
        """Nothing."""


def connectors(call: ConsoleCall) -> Any:
    """Connectors with their tasks and states. Of configurations only what names topics and classes."""
    try:
        descriptions = call.console.part(ConsoleConnectors).connectors.describe()
    except TidelogError as error:
        return {"connectors": [], "problem": str(error)}
    return {"connectors": [_row(connector) for connector in descriptions], "problem": ""}


def _row(connector: ConnectorDescription) -> dict[str, Any]:
    return {
        "name": connector.name,
        "state": str(connector.status.state),
        "target": str(connector.target),
        "worker_id": connector.status.worker_id,
        "trace": _trace(connector.status),
        "config": {key: connector.config[key] for key in _SHOWN if key in connector.config},
        "tasks": [task.as_json() | {"trace": _trace(task)} for task in connector.tasks],
        "topics": connector.topics,
    }


def _trace(status: RunStatus) -> str:
    return (status.trace or "")[:_CHARACTERS]
