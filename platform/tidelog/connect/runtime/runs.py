"""A thread that runs one connector or one task, from its start to its end, and reports its status."""

import logging
import threading
import traceback
from abc import ABC, abstractmethod

from tidelog.connect.runtime.shared import WorkerShared
from tidelog.operations.connector_configs import TargetState
from tidelog.operations.connector_statuses import RunState

logger = logging.getLogger("tidelog.connect")


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
