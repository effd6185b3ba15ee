"""The thread of one connector or task, from its start to its end, with its status; and what a connector does in it."""

import logging
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from tidelog.connect.data.errors import ConnectError
from tidelog.connect.runtime.plugins import validated
from tidelog.connect.runtime.shared import WorkerShared
from tidelog.connect.spi.connectors import SinkConnector, SourceConnector
from tidelog.operations.connector_configs import TargetState, decide_tasks
from tidelog.operations.connector_statuses import RunState
from tidelog.transactions.manager import TransactionManager

logger = logging.getLogger("tidelog.connect")
_AGAIN_S = 5.0


class UnitRun(ABC):
    """One connector's or task's run. `begin` starts its thread; `stop` asks it to end; `done` says that it has.

    A run that fails stays, with `failed`, until the worker replaces it.
    """

    def __init__(self, shared: WorkerShared, connector: str, task: int | None, target: TargetState) -> None:
        self.shared = shared
        self.connector = connector
        self.task = task
        self.failed = False
        self.gone = False  # the connector or task is deleted: it leaves no status behind
        self._target = target
        self._stopping = threading.Event()
        self._done = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"connect-{self.named}", daemon=True)

    @property
    def named(self) -> str:
        """For the log: the connector's name, and the task's number."""
        return self.connector if self.task is None else f"{self.connector}-{self.task}"

    @property
    def done(self) -> bool:
        """Whether its thread has ended."""
        return self._done.is_set()

    @property
    def stopping(self) -> bool:
        """Whether it was asked to end."""
        return self._stopping.is_set()

    @property
    def target(self) -> TargetState:
        """What it is to do now."""
        return self._target

    def aim(self, target: TargetState) -> None:
        """Have it run, or pause."""
        if target is not self._target:
            self._target = target
            self._wake.set()

    def begin(self) -> None:
        """Start."""
        self._thread.start()

    def stop(self, *, gone: bool = False) -> None:
        """Ask it to end, from any thread."""
        self.gone = self.gone or gone
        self._stopping.set()
        self._wake.set()

    def join(self, timeout_s: float) -> bool:
        """Whether it ended within a time."""
        return self._done.wait(timeout_s)

    def wait(self, seconds: float) -> bool:
        """Pause until it is to end, at most so long: whether it is."""
        return self._stopping.wait(seconds)

    def wait_for_change(self, seconds: float) -> None:
        """Pause until it is to end, or to do something else, at most so long."""
        self._wake.wait(seconds)
        self._wake.clear()

    def _run(self) -> None:
        try:
            self.work()
            self._ended()
        except Exception as error:
            if self.stopping:  # it was to end anyway, and what replaces it may have fenced it
                said = self.shared.providers.secrets.hidden(str(error))
                logger.warning("Stopped with an error: run=%s error=%s: %s", self.named, type(error).__name__, said)
                self._ended()
            else:
                self._failed(error)
        finally:
            self._done.set()

    @abstractmethod
    def work(self) -> None:
        """Do the work until `stopping`; what it raises is why the run FAILED."""

    def report(self, state: RunState, trace: str | None = None, *, retries: int = 0) -> None:
        """Write the status."""
        self.shared.report(self.connector, self.task, state, trace, retries=retries)

    def _ended(self) -> None:
        try:
            if self.gone:
                self.shared.forget_status(self.connector, self.task)
            else:
                self.report(RunState.UNASSIGNED)
        except Exception as error:
            logger.warning("Status not written: run=%s error=%s", self.named, error)
        logger.info("Stopped: run=%s", self.named)

    def _failed(self, error: Exception) -> None:
        self.failed = True
        kind = "Connector" if self.task is None else "Task"
        said = self.shared.providers.secrets.hidden(str(error))
        logger.error("%s failed: run=%s error=%s: %s", kind, self.named, type(error).__name__, said)
        try:
            if self.gone:
                self.shared.forget_status(self.connector, self.task)
            else:
                self.report(RunState.FAILED, "".join(traceback.format_exception(error)))
        except Exception as second:
            logger.warning("Status not written: run=%s error=%s", self.named, second)


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
