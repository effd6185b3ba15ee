"""The run of a connector: it is started, asked for its tasks' configurations, and watched."""

import logging
import threading
from collections.abc import Mapping, Sequence

from tidelog.connect.data.errors import ConnectError
from tidelog.connect.runtime.plugins import validated
from tidelog.connect.runtime.runs import UnitRun
from tidelog.connect.runtime.shared import WorkerShared
from tidelog.connect.spi.connectors import SinkConnector, SourceConnector
from tidelog.operations.connector_configs import TargetState, decide_tasks
from tidelog.operations.connector_statuses import RunState
from tidelog.transactions.manager import TransactionManager

logger = logging.getLogger("tidelog.connect")

_AGAIN_S = 5.0


class ConnectorRun(UnitRun):
    """A connector under one configuration, and one target: another target is another run, as Connect has it.

    `version`: the offset of the configuration's record.
    """

    def __init__(
        self, shared: WorkerShared, name: str, config: Mapping[str, str], version: int, target: TargetState
    ) -> None:
        super().__init__(shared, name, None, target)
        self._config = config
        self._version = version
        self._error: Exception | None = None
        self._requested = threading.Event()

    def request_task_reconfiguration(self) -> None:
        """As of `ConnectorContext`."""
        self._requested.set()
        self._wake.set()

    def raise_error(self, error: Exception) -> None:
        """As of `ConnectorContext`."""
        self._error = error
        self._wake.set()

    def work(self) -> None:
        """Start it, write its tasks, and again whenever it asks for that; a paused one is not started."""
        if self.target is not TargetState.STARTED:
            self.report(RunState(self.target.value))
            self._stopping.wait()
            return
        plugin = self.shared.plugins.connector(self._config.get("connector.class", ""))
        exactly_once = self.shared.settings.exactly_once
        resolved = self.shared.providers.resolved(self._config)
        _, values = validated(plugin, resolved.config, exactly_once=exactly_once)
        errors = [error for value in values for error in value.errors]
        if errors:
            raise ConnectError(f"The configuration is invalid: {'; '.join(errors)}")
        assert issubclass(plugin, (SourceConnector, SinkConnector))
        connector = plugin()
        fences = issubclass(plugin, SourceConnector) and exactly_once
        try:
            connector.start(resolved.config, self)
            self.shared.report(self.connector, None, RunState.RUNNING, version=plugin.version)
            self._requested.set()
            while not self.stopping:
                if self._error is not None:
                    raise self._error
                if self._requested.is_set():
                    self._requested.clear()
                    most = max(1, int(resolved.config.get("tasks.max", "1")))
                    made = [resolved.unresolved(one) for one in connector.task_configs(most)]
                    if len(made) > most:
                        raise ConnectError(f"{len(made)} tasks were made, and tasks.max is {most}.")
                    self._write_tasks(made, plugin.task_class.__name__, fences)
                self.wait_for_change(_AGAIN_S)
        finally:
            connector.stop()

    def _write_tasks(self, made: Sequence[Mapping[str, str]], task_class: str, fences: bool) -> None:
        """Have the tasks' configurations count. Earlier tasks that may still write somewhere are fenced before."""
        configs = [{"task.class": task_class, **one} for one in made]
        name, version = self.connector, self._version
        before = self.shared.configs.look(
            lambda state: len(state.tasks.get(name, [])) if decide_tasks(state, name, version, configs) else 0
        )
        for task in range(before if fences else 0):
            fence(self.shared, name, task)
        self.shared.configs.decide(
            lambda state: (None, [one.bytes() for one in decide_tasks(state, name, version, configs)])
        )
        logger.info("Tasks: connector=%s count=%d", name, len(configs))


def fence(shared: WorkerShared, connector: str, task: int) -> None:
    """Let no earlier writer of a source's task commit anything more (KIP-618)."""
    manager = TransactionManager(shared.lake, shared.settings.transactional_id(connector, task))
    manager.init()
    manager.close()
