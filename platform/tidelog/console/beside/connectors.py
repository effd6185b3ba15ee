"""Connectors, as the topics of a Connect cluster say: no worker need run."""

import threading
from typing import Any, Final, Protocol

from tidelog.connect.store.configs import ConfigState
from tidelog.connect.store.statuses import StatusState
from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.console import Console
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake

# Connect's defaults (config.storage.topic, status.storage.topic).
_CONFIGS: Final = "connect-configs"
_STATUSES: Final = "connect-status"
# What is shown of a connector's configuration: the rest may be passwords.
_SHOWN: Final = ("connector.class", "tasks.max", "topics", "topics.regex", "topic.prefix", "topic")
_CHARACTERS: Final = 4_000


class _Fold(Protocol):
    def take(self, key: bytes | None, value: bytes | None, offset: int) -> None:
        """The next record."""


class ConsoleConnectors:
    """What the topics said when they were last looked at."""

    def __init__(self, console: Console) -> None:
        self._lake = console.lake
        self._lock = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self._folds = ConfigState(), StatusState()

    def close(self) -> None:
        """Nothing."""

    def folds(self) -> tuple[ConfigState, StatusState]:
        """Both folds. Not to be changed."""
        with self._lock:
            states = [self._lake.peek(name) for name in (_CONFIGS, _STATUSES)]
            seen = states[0].version if states[0] else -1, states[1].version if states[1] else -1
            if seen != self._seen:
                self._folds = ConfigState(), StatusState()
                if states[0] is not None:
                    _read(self._lake, _CONFIGS, states[0].partitions, self._folds[0])
                if states[1] is not None:
                    _read(self._lake, _STATUSES, states[1].partitions, self._folds[1])
                self._seen = seen
            return self._folds


def _read(lake: Lake, name: str, partitions: int, fold: _Fold) -> None:
    topic = lake.topic(name)
    for partition in range(partitions):
        for batch in topic.read(partition):
            columns = (batch.column(column).to_pylist() for column in ("key", "value", "offset"))
            for key, value, offset in zip(*columns, strict=True):
                fold.take(key, value, offset)


def connectors(call: ConsoleCall) -> Any:
    """Connectors with their tasks and states. Of configurations only what names topics and classes."""
    try:
        configs, statuses = call.console.part(ConsoleConnectors).folds()
    except TidelogError as error:
        return {"connectors": [], "problem": str(error)}
    rows = []
    for name, config in sorted(configs.connectors.items()):
        status = statuses.of(name, None)
        tasks = [statuses.of(name, number).as_json() for number in range(len(configs.tasks.get(name, ())))]
        for one in tasks:
            one["trace"] = one.get("trace", "")[:_CHARACTERS]
        rows.append(
            {
                "name": name,
                "state": str(status.state),
                "target": str(configs.targets.get(name, "")),
                "worker_id": status.worker_id,
                "trace": (status.trace or "")[:_CHARACTERS],
                "config": {key: config[key] for key in _SHOWN if key in config},
                "tasks": tasks,
                "topics": sorted(statuses.topics.get(name, ())),
            }
        )
    return {"connectors": rows, "problem": ""}
