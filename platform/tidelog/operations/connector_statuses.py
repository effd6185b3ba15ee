"""The records of connect-status and their fold (Connect's `KafkaStatusBackingStore`).

| key | value |
|---|---|
| `status-connector-X`, `status-task-X-N` | `{"state", "trace", "worker_id", "generation", "version"}`; null: gone |
| `status-topic-T:connector-X` | `{"topic": {"name", "connector", "task", "discoverTimestamp"}}` (KIP-558), or null |

A status has "retries", too, while a task is tried again.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

_CONNECTOR: Final = "status-connector-"
_TASK: Final = re.compile(r"status-task-(.+)-([0-9]{1,9})", re.DOTALL)
_TOPIC: Final = re.compile(r"status-topic-(.+):connector-(.+)", re.DOTALL)


class RunState(StrEnum):
    """What a connector or a task does."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The status of a connector (`task` None) or of a task, as its worker wrote it.

    `trace`: why it is FAILED, or RESTARTING. `retries`: how often in a row it was tried again, as of then.
    """

    connector: str
    task: int | None
    state: RunState
    worker_id: str
    generation: int = 0
    trace: str | None = None
    version: str = ""
    retries: int = 0

    @property
    def key(self) -> str:
        """The record's key."""
        return status_key(self.connector, self.task)

    def value(self) -> bytes:
        """The record's value."""
        fields = {
            "state": str(self.state), "trace": self.trace, "worker_id": self.worker_id,
            "generation": self.generation, "version": self.version,
            **({"retries": self.retries} if self.retries else {}),
        }  # fmt: skip
        return json.dumps(fields, separators=(",", ":")).encode()

    def as_json(self) -> dict[str, Any]:
        """What the REST API says of it."""
        fields: dict[str, Any] = {} if self.task is None else {"id": self.task}
        fields |= {"state": str(self.state), "worker_id": self.worker_id}
        if self.version:
            fields["version"] = self.version
        if self.trace is not None:
            fields["trace"] = self.trace
        if self.retries:
            fields["retries"] = self.retries
        return fields


def status_key(connector: str, task: int | None) -> str:
    """The key of a connector's status, or of a task's."""
    return f"{_CONNECTOR}{connector}" if task is None else f"status-task-{connector}-{task}"


def topic_record(connector: str, task: int, topic: str, now_ms: int) -> tuple[str, bytes]:
    """Key and value of the record that a connector uses a topic."""
    said = {"name": topic, "connector": connector, "task": task, "discoverTimestamp": now_ms}
    return topic_key(connector, topic), json.dumps({"topic": said}, separators=(",", ":")).encode()


def topic_key(connector: str, topic: str) -> str:
    """Its key."""
    return f"status-topic-{topic}:connector-{connector}"


@dataclass(slots=True)
class StatusState:
    """The fold of connect-status. `runs`: by (connector, task | None). `topics`: of each connector."""

    runs: dict[tuple[str, int | None], RunStatus] = field(default_factory=dict)
    topics: dict[str, set[str]] = field(default_factory=dict)

    def take(self, key: bytes | None, value: bytes | None, offset: int, at_ms: int = 0) -> None:  # noqa: ARG002
        """Take the next record of its partition. Records of other forms are passed over."""
        name = (key or b"").decode("utf-8", "replace")
        if (matched := _TOPIC.fullmatch(name)) is not None:
            topics = self.topics.setdefault(matched[2], set())
            (topics.discard if value is None else topics.add)(matched[1])
        elif (matched := _TASK.fullmatch(name)) is not None:
            self._take_run((matched[1], int(matched[2])), value)
        elif name.startswith(_CONNECTOR):
            self._take_run((name.removeprefix(_CONNECTOR), None), value)

    def _take_run(self, run: tuple[str, int | None], value: bytes | None) -> None:
        if value is None:
            self.runs.pop(run, None)
            return
        try:
            fields = json.loads(value)
        except (ValueError, RecursionError):
            return
        if isinstance(fields, Mapping) and fields.get("state") in RunState.__members__:
            generation, trace, retries = fields.get("generation"), fields.get("trace"), fields.get("retries")
            self.runs[run] = RunStatus(
                run[0], run[1], RunState(fields["state"]), str(fields.get("worker_id", "")),
                generation if isinstance(generation, int) else 0,
                trace if isinstance(trace, str) else None, str(fields.get("version") or ""),
                retries if isinstance(retries, int) else 0,
            )  # fmt: skip

    def of(self, connector: str, task: int | None) -> RunStatus:
        """A status; UNASSIGNED where no worker has written any."""
        unassigned = RunStatus(connector, task, RunState.UNASSIGNED, "")
        return self.runs.get((connector, task), unassigned)
