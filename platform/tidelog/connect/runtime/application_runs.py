"""The run of a task that is a program of its own, and which run a task's connector has."""

import logging
from collections.abc import Mapping
from typing import Final

from tidelog.connect.runtime.task_runs import SinkTaskRun, SourceTaskRun, TaskRun
from tidelog.connect.spi.applications import ApplicationPhase, ApplicationTask
from tidelog.connect.spi.connectors import Connector, SinkConnector, SourceConnector
from tidelog.log.lake import Lake
from tidelog.operations.connector_configs import TargetState
from tidelog.operations.connector_statuses import RunState

logger = logging.getLogger("tidelog.connect")

_LOOK_S: Final = 0.5
# What the REST API says of a program: one that has ended has nothing more to do, as a source that was read whole.
_STATES: Final[Mapping[ApplicationPhase, RunState]] = {
    ApplicationPhase.WAITING: RunState.UNASSIGNED,
    ApplicationPhase.RUNNING: RunState.RUNNING,
    ApplicationPhase.RESTARTING: RunState.RESTARTING,
    ApplicationPhase.ENDED: RunState.RUNNING,
}


class ApplicationTaskRun(TaskRun):
    """An application's task, from `start` to `stop`; it is the task's context, too."""

    @property
    def lake(self) -> Lake:
        """As of `ApplicationTaskContext`."""
        return self.shared.lake

    @property
    def worker_properties(self) -> Mapping[str, str]:
        """As of `ApplicationTaskContext`."""
        return self.shared.settings.properties

    @property
    def group_id(self) -> str:
        """As of `ApplicationTaskContext`."""
        return self.shared.settings.consumer_group(self.connector)

    def work(self) -> None:
        """Look after the program until it is to end; while the connector is paused, it does not run."""
        plugin = self._plugin()
        assert issubclass(plugin, (SourceConnector, SinkConnector))
        task = plugin.task_class()
        assert isinstance(task, ApplicationTask)
        try:
            task.start(self.configs, self)
            logger.info("Started: run=%s", self.named)
            while not self.stopping:
                if self.target is TargetState.PAUSED:
                    task.stop()
                    self._show(RunState.PAUSED)
                else:
                    phase, trace = task.look()
                    self._show(_STATES[phase], trace)
                self.wait_for_change(_LOOK_S)
        finally:
            task.stop()


def task_run_of(plugin: type[Connector]) -> type[TaskRun]:
    """What runs the tasks of a connector."""
    assert issubclass(plugin, (SourceConnector, SinkConnector))
    if issubclass(plugin.task_class, ApplicationTask):
        return ApplicationTaskRun
    return SourceTaskRun if issubclass(plugin, SourceConnector) else SinkTaskRun
