"""The records of connect-configs, their fold, and the decisions about it (Connect's `KafkaConfigBackingStore`).

| key | value |
|---|---|
| `connector-X` | `{"properties": {…}}`, null: deleted |
| `task-X-N` | `{"properties": {…}}` |
| `commit-X` | `{"tasks": n}`: the tasks 0 to n - 1 count as written before it, all or none |
| `target-state-X` | `{"state": "STARTED" or "PAUSED", "state.v2": … or "STOPPED"}` (KIP-875) |
| `restart-connector-X` | `{"include-tasks": …, "only-failed": …}` (KIP-745), and `"task": n` for one task alone |
| `logger-cluster-N` | `{"level": …}` (KIP-976) |
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from tidelog.log.base.errors import TidelogError

_CONNECTOR: Final = "connector-"
_COMMIT: Final = "commit-"
_TARGET: Final = "target-state-"
_RESTART: Final = "restart-connector-"
_LOGGER: Final = "logger-cluster-"
_TASK: Final = re.compile(r"task-(.+)-([0-9]{1,9})", re.DOTALL)


class ConnectorNotFoundError(TidelogError):
    """No connector has the name."""


class ConnectorTaskNotFoundError(TidelogError):
    """The connector has no task of the number."""


class ConnectorExistsError(TidelogError):
    """Another connector has the name."""


class TargetState(StrEnum):
    """What a connector is to do. PAUSED keeps its tasks; STOPPED has none (KIP-875)."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """A record to append. `value`: None for a tombstone."""

    key: str
    value: Mapping[str, Any] | None

    def bytes(self) -> tuple[bytes, "bytes | None"]:
        """Key and value as the topic has them."""
        value = None if self.value is None else json.dumps(self.value, separators=(",", ":"), ensure_ascii=False)
        return self.key.encode(), None if value is None else value.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """A restart, as it was asked for. `offset`: of its record, which names it. `task`: None for the connector."""

    connector: str
    offset: int
    include_tasks: bool
    only_failed: bool
    task: int | None = None


@dataclass(slots=True)
class ConfigState:
    """The fold of connect-configs.

    `connectors`: configurations by names. `versions`: offsets of their records. `tasks`: configurations of the tasks
    that count. `task_versions`: the offset of the commit that made them count. `loggers`: levels by names.
    """

    connectors: dict[str, dict[str, str]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    targets: dict[str, TargetState] = field(default_factory=dict)
    tasks: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    task_versions: dict[str, int] = field(default_factory=dict)
    restarts: dict[str, RestartRequest] = field(default_factory=dict)
    loggers: dict[str, str] = field(default_factory=dict)
    _pending: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)

    def take(self, key: bytes | None, value: bytes | None, offset: int, at_ms: int = 0) -> None:  # noqa: ARG002
        """Take the next record. Records of other forms are passed over."""
        name = (key or b"").decode("utf-8", "replace")
        fields = _object(value)
        if value is not None and fields is None:
            return
        if (matched := _TASK.fullmatch(name)) is not None:
            self._take_task(matched[1], int(matched[2]), fields)
        elif name.startswith(_RESTART):
            self._take_restart(name.removeprefix(_RESTART), fields, offset)
        elif name.startswith(_CONNECTOR):
            self._take_connector(name.removeprefix(_CONNECTOR), fields, offset)
        elif name.startswith(_COMMIT):
            self._take_commit(name.removeprefix(_COMMIT), fields, offset)
        elif name.startswith(_TARGET):
            self._take_target(name.removeprefix(_TARGET), fields)
        elif name.startswith(_LOGGER):
            level = (fields or {}).get("level")
            if isinstance(level, str):
                self.loggers[name.removeprefix(_LOGGER)] = level

    def _take_connector(self, name: str, fields: Mapping[str, Any] | None, offset: int) -> None:
        if fields is None:
            for known in (self.connectors, self.versions, self.targets, self.tasks, self.task_versions):
                known.pop(name, None)
            self._pending.pop(name, None)
            self.restarts.pop(name, None)
        elif (properties := _texts(fields.get("properties"))) is not None:
            self.connectors[name] = properties
            self.versions[name] = offset
            self.targets.setdefault(name, TargetState.STARTED)

    def _take_task(self, name: str, number: int, fields: Mapping[str, Any] | None) -> None:
        pending = self._pending.setdefault(name, {})
        properties = _texts((fields or {}).get("properties"))
        if properties is None:
            pending.pop(number, None)
        else:
            pending[number] = properties

    def _take_commit(self, name: str, fields: Mapping[str, Any] | None, offset: int) -> None:
        """Tasks count together or not at all: a commit with too few of them says nothing (an older one compacted)."""
        count = (fields or {}).get("tasks")
        pending = self._pending.pop(name, {})
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            self.tasks.pop(name, None)
            return
        before = dict(enumerate(self.tasks.get(name, [])))
        merged = {**before, **pending}
        if all(number in merged for number in range(count)):
            self.tasks[name] = [merged[number] for number in range(count)]
            self.task_versions[name] = offset

    def _take_target(self, name: str, fields: Mapping[str, Any] | None) -> None:
        said = (fields or {}).get("state.v2") or (fields or {}).get("state")
        if fields is None:
            self.targets.pop(name, None)
            if name in self.connectors:
                self.targets[name] = TargetState.STARTED
        elif isinstance(said, str) and said in TargetState.__members__:
            self.targets[name] = TargetState(said)

    def _take_restart(self, name: str, fields: Mapping[str, Any] | None, offset: int) -> None:
        if fields is not None:
            task = fields.get("task")
            self.restarts[name] = RestartRequest(
                name, offset, fields.get("include-tasks") is True, fields.get("only-failed") is True,
                task if isinstance(task, int) and not isinstance(task, bool) else None,
            )  # fmt: skip

    # --- what is in it ------------------------------------------------------------------------------------------

    def require(self, name: str) -> dict[str, str]:
        """A connector's configuration. Raises `ConnectorNotFoundError`."""
        if name not in self.connectors:
            raise ConnectorNotFoundError(f"Connector {name} not found")
        return self.connectors[name]

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """The configurations of a connector's tasks, [] before it has any. Raises `ConnectorNotFoundError`."""
        self.require(name)
        return self.tasks.get(name, [])

    def require_task(self, name: str, task: int) -> None:
        """Refuse a task that a connector does not have. Raises as `require`, and `ConnectorTaskNotFoundError`."""
        if task >= len(self.task_configs(name)):
            raise ConnectorTaskNotFoundError(f"Task {name}-{task} not found")

    def current_tasks(self, name: str) -> list[dict[str, str]]:
        """The tasks that are of the connector's present configuration, and are to run: none of a stopped one."""
        if name not in self.connectors or self.target(name) is TargetState.STOPPED:
            return []
        return self.tasks.get(name, []) if self.task_versions.get(name, -1) > self.versions[name] else []

    def target(self, name: str) -> TargetState:
        """What a connector is to do."""
        return self.targets.get(name, TargetState.STARTED)


def _object(value: bytes | None) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _texts(mapping: Any) -> dict[str, str] | None:
    """An object whose values are texts; a null one is left out."""
    if not isinstance(mapping, dict):
        return None
    return {key: one if isinstance(one, str) else json.dumps(one) for key, one in mapping.items() if one is not None}


# --- decisions --------------------------------------------------------------------------------------------------

Records = Sequence[ConfigRecord]


def decide_create(
    state: ConfigState, name: str, config: Mapping[str, str], initial: TargetState | None = None
) -> Records:
    """A new connector, in its first state (KIP-980). Raises `ConnectorExistsError`."""
    if name in state.connectors:
        raise ConnectorExistsError(f"Connector {name} already exists")
    target = initial or TargetState.STARTED
    return [*_target_records(name, target), ConfigRecord(_CONNECTOR + name, {"properties": dict(config)})]


def decide_put(state: ConfigState, name: str, config: Mapping[str, str]) -> tuple[bool, Records]:
    """A configuration, of a new connector or in place of another: whether it is new, and the records."""
    new = name not in state.connectors
    records = [ConfigRecord(_CONNECTOR + name, {"properties": dict(config)})]
    return new, [*_target_records(name, TargetState.STARTED), *records] if new else records


def patched(config: Mapping[str, str], patch: Mapping[str, str | None]) -> dict[str, str]:
    """A configuration with some keys changed, and those of null taken out (KIP-477)."""
    merged = {**config, **patch}
    return {key: value for key, value in merged.items() if value is not None}


def decide_delete(state: ConfigState, name: str) -> Records:
    """No such connector any more; of its tasks nothing stays, so that a later one of the name has its own."""
    tasks = range(len(state.task_configs(name)))
    keys = [_CONNECTOR + name, _TARGET + name, *(f"task-{name}-{task}" for task in tasks), _COMMIT + name]
    return [ConfigRecord(key, None) for key in keys]


def decide_target(state: ConfigState, name: str, target: TargetState) -> Records:
    """Pause, resume or stop. A stopped connector has no tasks. Nothing to write where it is so already."""
    state.require(name)
    if state.target(name) is target:
        return []
    tasks = [ConfigRecord(_COMMIT + name, {"tasks": 0})] if target is TargetState.STOPPED else []
    return [*_target_records(name, target), *tasks]


def decide_restart(
    state: ConfigState, name: str, *, include_tasks: bool, only_failed: bool, task: int | None = None
) -> Records:
    """Restart a connector, its tasks with it, or one task. Raises as `ConfigState.require` and `require_task`."""
    state.require(name)
    if task is not None:
        state.require_task(name, task)
    value = {"include-tasks": include_tasks, "only-failed": only_failed}
    return [ConfigRecord(_RESTART + name, value if task is None else {**value, "task": task})]


def decide_tasks(state: ConfigState, name: str, version: int, configs: Sequence[Mapping[str, str]]) -> Records:
    """The configurations of a connector's tasks, by the worker that runs it under the configuration `version`.

    They are written after each new configuration, for tasks that count from before it are of the earlier one. Nothing
    where they are the same, or where the connector has another configuration by now.
    """
    if state.versions.get(name) != version or state.target(name) is TargetState.STOPPED:
        return []
    counting = state.task_versions.get(name, -1) > version
    if counting and list(map(dict, configs)) == state.tasks.get(name):
        return []
    records = [ConfigRecord(f"task-{name}-{i}", {"properties": dict(one)}) for i, one in enumerate(configs)]
    return [*records, ConfigRecord(_COMMIT + name, {"tasks": len(configs)})]


def decide_logger(name: str, level: str) -> Records:
    """A logger's level in all workers (KIP-976)."""
    return [ConfigRecord(_LOGGER + name, {"level": level})]


def _target_records(name: str, target: TargetState) -> Records:
    older = TargetState.PAUSED if target is TargetState.STOPPED else target
    return [ConfigRecord(_TARGET + name, {"state": str(older), "state.v2": str(target)})]
