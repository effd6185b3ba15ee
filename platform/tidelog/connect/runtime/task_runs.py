"""The runs of tasks: a source's, a sink's and a program's, put together from their configuration."""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from tidelog.clients.consumer.consumer import Consumer
from tidelog.connect.data.records import Partition
from tidelog.connect.runtime.conversion import Conversion
from tidelog.connect.runtime.dead_letters import dead_letters_of
from tidelog.connect.runtime.plugins import definition_of
from tidelog.connect.runtime.runs import UnitRun
from tidelog.connect.runtime.shared import WorkerShared
from tidelog.connect.runtime.sink_loop import SinkLoop
from tidelog.connect.runtime.source_loop import SourceLoop
from tidelog.connect.runtime.source_writers import (
    PlainWriter,
    SourceWriter,
    TransactionalWriter,
    creation_groups,
    ensure_source_topic,
)
from tidelog.connect.runtime.task_figures import RetryNotes, TaskFigures
from tidelog.connect.runtime.task_spans import TaskSpans
from tidelog.connect.runtime.tolerance import ToleranceOperator, TolerancePolicy
from tidelog.connect.spi.applications import ApplicationPhase, ApplicationTask
from tidelog.connect.spi.connectors import Connector, SinkConnector, SourceConnector
from tidelog.connect.spi.sinks import SinkTask
from tidelog.connect.spi.sources import SourceTask
from tidelog.log.lake import Lake
from tidelog.operations.connector_configs import TargetState
from tidelog.operations.connector_statuses import RunState

logger = logging.getLogger("tidelog.connect")

_IDLE_S = 1.0
_OVERRIDE = "consumer.override."
_LOOK_S: Final = 0.5
# What the REST API says of a program: one that has ended has nothing more to do, as a source that was read whole.
_STATES: Final[Mapping[ApplicationPhase, RunState]] = {
    ApplicationPhase.WAITING: RunState.UNASSIGNED,
    ApplicationPhase.RUNNING: RunState.RUNNING,
    ApplicationPhase.RESTARTING: RunState.RESTARTING,
    ApplicationPhase.ENDED: RunState.RUNNING,
}


class TaskRun(UnitRun):
    """What both kinds have in common. `config`: the connector's; `task_config`: what it made for the task."""

    def __init__(
        self, shared: WorkerShared, name: str, task: int, config: Mapping[str, str], task_config: Mapping[str, str],
        target: TargetState,
    ) -> None:  # fmt: skip
        super().__init__(shared, name, task, target)
        self.number = task
        self.config = config
        self.configs: Mapping[str, str] = {key: value for key, value in task_config.items() if key != "task.class"}
        self._shown: tuple[RunState, str | None, int] | None = None
        hide = shared.providers.secrets.hidden
        self._notes = RetryNotes(self._show, shared.lake.clock.elapsed_s, self.named, hide)
        self.figures: TaskFigures | None = None  # once it has started

    def _plugin(self) -> type[Connector]:
        """The connector, whose configurations have the values of their variables from here on."""
        providers = self.shared.providers
        self.config, self.configs = providers.resolved(self.config).config, providers.resolved(self.configs).config
        return self.shared.plugins.connector(self.config.get("connector.class", ""))

    def _parts(self, plugin: type[Connector]) -> tuple[dict[str, Any], ToleranceOperator, Conversion]:
        """The parsed configuration, what becomes of errors, and the converters."""
        parsed = definition_of(plugin, self.config).parse(self.config)
        lake = self.shared.lake
        operator = ToleranceOperator(TolerancePolicy.of(parsed), self.wait, lake.clock.elapsed_s, lake.ids.fraction)
        self.figures = operator.figures
        conversion = Conversion(self.config, self.shared.lake, operator, self.shared.settings.properties)
        return parsed, operator, conversion

    def _spans(self) -> TaskSpans:
        return TaskSpans(self.shared.tracing, self.named, self.shared.lake.clock.elapsed_s)

    def _show(self, state: RunState, trace: str | None = None, retries: int = 0) -> None:
        if (state, trace, retries) != self._shown:
            self._shown = state, trace, retries
            self.report(state, trace, retries=retries)

    def _show_running(self) -> None:
        """RUNNING, unless the last try failed: the next one says what becomes of it."""
        if not self._notes.count:
            self._show(RunState.RUNNING)

    def _track(self, topic: str) -> None:
        self.shared.track_topic(self.connector, self.number, topic)


class SourceTaskRun(TaskRun):
    """A source's task, from `start` to `stop`; it is the task's context, too."""

    @property
    def worker_properties(self) -> Mapping[str, str]:
        """As of `SourceTaskContext`."""
        return self.shared.settings.properties

    @property
    def offset_storage_reader(self) -> "SourceTaskRun":
        """As of `SourceTaskContext`."""
        return self

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """As of `OffsetStorageReader`."""
        return self.shared.offsets.look(lambda state: state.get(self.connector, partition))

    def offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
        """As of `OffsetStorageReader`."""
        return self.shared.offsets.look(lambda state: [state.get(self.connector, one) for one in partitions])

    def work(self) -> None:
        """Poll and write until it is to end."""
        plugin = self._plugin()
        assert issubclass(plugin, SourceConnector)
        parsed, operator, conversion = self._parts(plugin)
        groups = creation_groups(self.config) if self.shared.settings.creates_topics else []
        self.shared.offsets.ready()
        # The writer first: what an earlier one has committed is in its topics then, its offsets among it.
        writer = self._writer()
        task = plugin.task_class()
        assert isinstance(task, SourceTask)

        def prepare(topic: str) -> None:
            ensure_source_topic(self.shared.lake, topic, groups)
            self._track(topic)

        interval = parsed["transaction.boundary"].lower() == "interval"
        loop = SourceLoop(
            self.connector, task, conversion, writer, operator, prepare_topic=prepare, wait=self.wait,
            now_s=self.shared.lake.clock.elapsed_s,
            interval_s=parsed["transaction.boundary.interval.ms"] / 1000 if interval else None, notes=self._notes,
            spans=self._spans(),
        )  # fmt: skip
        try:
            task.start(self.configs, self)
            logger.info("Started: run=%s", self.named)
            while not self.stopping:
                if self.target is TargetState.PAUSED:
                    self._show(RunState.PAUSED)
                    self.wait_for_change(_IDLE_S)
                    continue
                self._show_running()
                loop.step()
            loop.flush()
        finally:
            task.stop()
            writer.close()
            conversion.close()

    def _writer(self) -> SourceWriter:
        settings = self.shared.settings
        if not settings.exactly_once:
            return PlainWriter(self.shared.lake, settings.offset_topic)
        transactional_id = settings.transactional_id(self.connector, self.number)
        return TransactionalWriter(self.shared.lake, transactional_id, settings.offset_topic, self.wait)


class SinkTaskRun(TaskRun):
    """A sink's task, from `start` to `stop`; it is the task's context, too."""

    _loop: SinkLoop

    def work(self) -> None:
        """Consume and put until it is to end."""
        plugin = self._plugin()
        assert issubclass(plugin, SinkConnector)
        parsed, operator, conversion = self._parts(plugin)
        letters = dead_letters_of(self.shared.lake, self.connector, self.number, parsed)
        task = plugin.task_class()
        assert isinstance(task, SinkTask)
        settings = self.shared.settings
        consumer = Consumer(self._consumer_config())
        self._loop = loop = SinkLoop(
            task, consumer, conversion, operator, letters, wait=self.wait, now_s=self.shared.lake.clock.elapsed_s,
            commit_interval_s=settings.flush_interval_s, seen_topic=self._track, notes=self._notes,
            spans=self._spans(),
        )  # fmt: skip
        try:
            task.start(self.configs, self)
            loop.subscribe(parsed["topics"], parsed["topics.regex"])
            logger.info("Started: run=%s", self.named)
            self._consume(loop)
        finally:
            try:
                loop.close()
            finally:
                task.stop()
                conversion.close()

    def _consume(self, loop: SinkLoop) -> None:
        while not self.stopping:
            if self.target is TargetState.PAUSED:
                self._show(RunState.PAUSED)
                loop.idle()
                continue
            if self._shown == (RunState.PAUSED, None, 0):
                loop.go_on()
            self._show_running()
            loop.step()

    def _consumer_config(self) -> dict[str, Any]:
        """The consumer's configuration, with what the connector gives below `consumer.override.` (KIP-458)."""
        given = {key: value for key, value in self.config.items() if key.startswith(_OVERRIDE)}
        return {
            "lake": self.shared.lake,
            "group.id": self.shared.settings.consumer_group(self.connector),
            "client.id": f"connector-consumer-{self.connector}-{self.number}",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": self.shared.settings.session_timeout_ms,
            "heartbeat.interval.ms": self.shared.settings.heartbeat_interval_ms,
            **{key.removeprefix(_OVERRIDE): value for key, value in given.items()},
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
        }

    # --- SinkTaskContext ----------------------------------------------------------------------------------------

    @property
    def assignment(self) -> Collection[Partition]:
        """As of `SinkTaskContext`."""
        return frozenset(self._loop.assignment)

    @property
    def errant_record_reporter(self) -> SinkLoop:
        """As of `SinkTaskContext`."""
        return self._loop

    def seek(self, partition: Partition, offset: int) -> None:
        """As of `SinkTaskContext`."""
        self._loop.seeks[partition] = offset

    def retry_after(self, seconds: float) -> None:
        """As of `SinkTaskContext`."""
        self._loop.retry_s = seconds

    def pause(self, *partitions: Partition) -> None:
        """As of `SinkTaskContext`."""
        self._loop.pause_partitions(partitions)

    def resume(self, *partitions: Partition) -> None:
        """As of `SinkTaskContext`."""
        self._loop.resume_partitions(partitions)

    def request_commit(self) -> None:
        """As of `SinkTaskContext`."""
        self._loop.commit_requested = True


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
