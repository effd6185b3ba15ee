"""What all connectors and tasks of one worker use: the lake, the topics of the store, the plugins."""

import threading

from tidelog.connect.config.providers import ConfigProviders
from tidelog.connect.runtime.offsets import OffsetState
from tidelog.connect.runtime.plugins import Plugins
from tidelog.connect.runtime.worker_settings import WorkerSettings
from tidelog.log.lake import Lake
from tidelog.operations.connector_configs import ConfigState
from tidelog.operations.connector_statuses import RunState, RunStatus, StatusState, status_key, topic_record
from tidelog.operations.connectors import Connectors, workers_topic
from tidelog.server.telemetry.tracing import Tracing


class WorkerShared:
    """One worker's view of what the workers share. `worker_id`: host:port, as statuses name it."""

    def __init__(self, lake: Lake, settings: WorkerSettings, worker_id: str, plugins: Plugins) -> None:
        self.lake = lake
        self.settings = settings
        self.worker_id = worker_id
        self.plugins = plugins
        self.providers = ConfigProviders(settings.properties)
        self.configs = workers_topic(lake, settings.config_topic, 1, ConfigState, ordered=True)
        self.statuses = workers_topic(lake, settings.status_topic, settings.status_partitions, StatusState)
        self.offsets = workers_topic(lake, settings.offset_topic, settings.offset_partitions, OffsetState)
        self.connectors = Connectors(self.configs, self.statuses)
        self.generation = 0
        self.tracing: Tracing | None = None  # where what tasks do becomes traces
        self._tracking = threading.Lock()
        self._tracked: set[tuple[str, str]] = set()

    def report(
        self, connector: str, task: int | None, state: RunState, trace: str | None = None, *, version: str = "",
        retries: int = 0,
    ) -> None:  # fmt: skip
        """Write a status, unless a worker of a later generation, or another one that runs it now, has written one."""
        trace = None if trace is None else self.providers.secrets.hidden(trace)
        status = RunStatus(connector, task, state, self.worker_id, self.generation, trace, version, retries)
        if state in (RunState.UNASSIGNED, RunState.FAILED):
            known = self.statuses.look(lambda all_of: all_of.runs.get((connector, task)))
            if known is not None and known.worker_id != self.worker_id and known.generation >= self.generation:
                return
        self.statuses.append([(status.key.encode(), status.value())])

    def forget_status(self, connector: str, task: int | None) -> None:
        """Take a status out: what it is of is gone."""
        if self.statuses.look(lambda state: (connector, task) in state.runs):
            self.statuses.append([(status_key(connector, task).encode(), None)])

    def track_topic(self, connector: str, task: int, topic: str) -> None:
        """Note that a connector uses a topic, once (KIP-558)."""
        if not self.settings.tracks_topics:
            return
        with self._tracking:
            if (connector, topic) in self._tracked:
                return
            self._tracked.add((connector, topic))
        if topic not in self.statuses.look(lambda state: set(state.topics.get(connector, ()))):
            key, value = topic_record(connector, task, topic, self.lake.clock.now_ms())
            self.statuses.append([(key.encode(), value)])

    def forget_topics(self, connector: str) -> None:
        """What was noted may be noted again: the record of it was taken out, here or by another worker."""
        with self._tracking:
            self._tracked = {one for one in self._tracked if one[0] != connector}
