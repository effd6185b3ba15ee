"""Connectors, as the topics of a Connect cluster say: no worker need run."""

from typing import Any, Final

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.console import Console
from tidelog.log.base.errors import TidelogError
from tidelog.operations.connector_statuses import RunStatus
from tidelog.operations.connectors import ConnectorDescription, connectors_of

# What is shown of a connector's configuration: the rest may be passwords.
_SHOWN: Final = ("connector.class", "tasks.max", "topics", "topics.regex", "topic.prefix", "topic")
_CHARACTERS: Final = 4_000


class ConsoleConnectors:
    """The connectors of the lake, whose topics it follows."""

    def __init__(self, console: Console) -> None:
        self.connectors = connectors_of(console.lake)

    def close(self) -> None:
        """Nothing."""


def connectors(call: ConsoleCall) -> Any:
    """Connectors with their tasks and states. Of configurations only what names topics and classes."""
    try:
        found = call.console.part(ConsoleConnectors).connectors.describe()
    except TidelogError as error:
        return {"connectors": [], "problem": str(error)}
    return {"connectors": [_row(connector) for connector in found], "problem": ""}


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
