"""A worker: one thread keeps it in the group and has its runs be what the group and the configurations say."""

import logging
import threading
from collections.abc import Iterable

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.runtime.plugins import Plugins
from tidelog.connect.runtime.runs import ConnectorRun, UnitRun
from tidelog.connect.runtime.shared import WorkerShared
from tidelog.connect.runtime.task_runs import SourceTaskRun, task_run_of
from tidelog.connect.runtime.worker_settings import WorkerSettings
from tidelog.connect.units import (
    KEEPER,
    RunSpec,
    Unit,
    new_restarts,
    restarted,
    specs_of,
    topic_of,
    unit_of,
    units_of,
)
from tidelog.groups.member.events import COOPERATIVE, Assigned, Failed, Lost, MemberConfig, Revoke
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.membership import Membership
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.shared_threads import Rounds
from tidelog.log.lake import Lake
from tidelog.operations.connector_configs import ConfigState, TargetState
from tidelog.operations.connector_health import CLIENT
from tidelog.operations.connector_statuses import RunState

logger = logging.getLogger("tidelog.connect")
# How often configurations are looked at, and what the group has to say; a request to this worker does not wait for it.
TICK_S = 0.25
_BUSY_TICK_S = 0.05


class WorkerGroup:
    """The membership, with units in place of partitions. All calls come from the worker's thread.

    It is a consumer group as any other, with the assignor cooperative-sticky: what stays with a worker goes on running
    while other units move. `revoking`: what the worker has to end before it calls `revoked`.
    """

    def __init__(self, lake: Lake, settings: WorkerSettings, worker_id: str) -> None:
        config = MemberConfig(
            group_id=settings.group_id,
            client_id=CLIENT,
            host=worker_id,
            strategies=(COOPERATIVE,),
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            max_poll_interval_ms=settings.rebalance_timeout_ms,
        )
        self._topics: frozenset[str] = frozenset()
        self._membership = Membership(
            GroupLog(lake), Leases(lake.storage), self._counts, config, clock=lake.clock, ids=lake.ids
        )
        self.revoking: frozenset[Unit] = frozenset()
        self.failure: Exception | None = None
        self._assigned = False

    def _counts(self, topics: Iterable[str]) -> dict[str, int]:
        """One partition for each unit that is known here; others are gone, or will be known in a moment."""
        return {topic: 1 for topic in topics if topic in self._topics}

    @property
    def generation(self) -> int:
        """The group's generation that the worker takes part in, -1 for none."""
        return self._membership.generation

    @property
    def rebalancing(self) -> bool:
        """Whether the worker waits to learn what it is to run."""
        return not self._assigned or bool(self.revoking) or self._membership.generation < 0

    @property
    def owned(self) -> frozenset[Unit]:
        """The units that are this worker's to run."""
        return frozenset(unit_of(topic) for topic, _ in self._membership.owned) - self.revoking

    def share(self, units: Iterable[Unit]) -> None:
        """What there is to share out, as the worker knows it now."""
        topics = frozenset(map(topic_of, units))
        if topics != self._topics:
            self._topics = topics
            self._membership.subscribe(topics)

    def step(self) -> None:
        """Do what is due: heartbeats, looking, leading. Call it often; the worker is alive as long as it does."""
        self._membership.polled()
        for event in self._membership.step():
            if isinstance(event, Revoke):
                self.revoking |= {unit_of(topic) for topic, _ in event.partitions}
            elif isinstance(event, Assigned):
                self._assigned = True
            elif isinstance(event, Lost):
                self._assigned = False
                self.revoking = frozenset()
            elif isinstance(event, Failed) and event.fatal:
                self.failure = event.error

    def revoked(self) -> None:
        """What was to be ended has ended."""
        self.revoking = frozenset()
        self._membership.revoked()

    def due_s(self) -> float:
        """Seconds until `step` has something to do."""
        return self._membership.due_s()

    def leave(self) -> None:
        """Leave, so that others take over at once."""
        self._membership.leave()


class Worker:
    """One worker over a lake. `worker_id`: host:port, which statuses name. Start it, and stop it at the end."""

    def __init__(
        self, lake: Lake, worker_id: str, settings: WorkerSettings | None = None, plugins: Plugins | None = None
    ) -> None:
        self.shared = WorkerShared(lake, settings or WorkerSettings(), worker_id, plugins or Plugins())
        self._group = WorkerGroup(lake, self.shared.settings, worker_id)
        self._runs: dict[Unit, tuple[RunSpec, UnitRun]] = {}
        self._ending: list[UnitRun] = []
        self._seen: dict[str, int] | None = None
        self._loggers: dict[str, str] = {}
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._rounds = Rounds(logger, "The worker's step")
        self._thread = threading.Thread(target=self._work, name="connect-worker", daemon=True)
        self.failure: Exception | None = None

    # --- what others ask ----------------------------------------------------------------------------------------

    @property
    def rebalancing(self) -> bool:
        """Whether the worker does not know yet what it is to run."""
        return self._group.rebalancing

    @property
    def running(self) -> dict[Unit, UnitRun]:
        """The runs of this worker, failed ones among them."""
        return {unit: run for unit, (_, run) in self._runs.copy().items()}

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Configurations have changed: look at once."""
        self._wake.set()

    def stop(self) -> None:
        """End all runs, and leave the group: others take over."""
        self._stopping.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()

    # --- the thread ---------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while not self._stopping.is_set():
                busy = False
                with self._rounds.round():
                    busy = self.step()
                if self._group.failure is not None:
                    raise self._group.failure
                self._wake.wait(min(_BUSY_TICK_S if busy else TICK_S, max(0.01, self._group.due_s())))
                self._wake.clear()
        except Exception as error:
            self.failure = error
            logger.exception("The worker failed")
        finally:
            self._end()

    def step(self) -> bool:
        """Do what is due; whether something is under way that is worth a look soon."""
        state: ConfigState = self.shared.configs.look(_copied)
        if self._seen is None:
            self._seen = {name: one.offset for name, one in state.restarts.items()}
        self._group.share(units_of(state))
        self._group.step()
        self.shared.generation = max(0, self._group.generation)
        self._set_levels(state)
        owned = self._group.owned
        wanted = specs_of(state, owned)
        self._restart(state)
        self._end_what_is_not(wanted, state)
        self._begin(wanted, state)
        self._ending = [run for run in self._ending if not run.done]
        if self._group.revoking and not any(self._is_of(run, self._group.revoking) for run in self._ending):
            self._group.revoked()
        if KEEPER in owned:
            self._clean_up(state)
        return bool(self._ending or self._group.revoking or self._group.rebalancing)

    def _restart(self, state: ConfigState) -> None:
        assert self._seen is not None
        for request in new_restarts(state, self._seen):
            self._seen[request.connector] = request.offset
            for unit in restarted(request, {unit: run.failed for unit, (_, run) in self._runs.items()}):
                logger.info("Restarting: run=%s", self._runs[unit][1].named)
                if not self._runs[unit][1].done:
                    self._runs[unit][1].report(RunState.RESTARTING)
                self._end_run(unit)

    def _end_what_is_not(self, wanted: dict[Unit, RunSpec], state: ConfigState) -> None:
        for unit, (spec, run) in list(self._runs.items()):
            now = wanted.get(unit)
            if now is None or now.replaces(spec):
                name, task = unit
                gone = name not in state.connectors or (
                    task is not None
                    and (task >= len(state.task_configs(name)) or state.target(name) is TargetState.STOPPED)
                )
                self._end_run(unit, gone=gone)
            elif now.target is not spec.target:
                run.aim(now.target)
                self._runs[unit] = now, run

    def _end_run(self, unit: Unit, *, gone: bool = False) -> None:
        _, run = self._runs.pop(unit)
        if not run.done:
            run.stop(gone=gone)
            self._ending.append(run)
        elif gone:
            self.shared.forget_status(*unit)

    def _begin(self, wanted: dict[Unit, RunSpec], state: ConfigState) -> None:
        """Start what is to run, unless its predecessor here has not ended."""
        for unit, spec in sorted(wanted.items(), key=lambda one: (one[0][0], -1 if one[0][1] is None else one[0][1])):
            if unit in self._runs or any(self._is_of(run, {unit}) for run in self._ending):
                continue
            run = self._made(unit, spec, state)
            self._runs[unit] = spec, run
            run.begin()

    def _made(self, unit: Unit, spec: RunSpec, state: ConfigState) -> UnitRun:
        name, task = unit
        config = state.connectors[name]
        if task is None:
            return ConnectorRun(self.shared, name, config, spec.version[0], spec.target)
        try:
            made = task_run_of(self.shared.plugins.connector(config.get("connector.class", "")))
        except ConnectConfigError:
            made = SourceTaskRun  # the run finds the same, and says so in its status
        return made(self.shared, name, task, config, state.current_tasks(name)[task], spec.target)

    @staticmethod
    def _is_of(run: UnitRun, units: "frozenset[Unit] | set[Unit]") -> bool:
        return (run.connector, run.task) in units

    def _clean_up(self, state: ConfigState) -> None:
        """Take out statuses of what is gone, where the worker that ran it is gone, too."""
        running = units_of(state)
        known = self.shared.statuses.look(lambda statuses: set(statuses.runs))
        ours = {(run.connector, run.task) for run in self._ending}
        for unit in known - running - ours:
            name, task = unit
            if name not in state.connectors or task is None or task >= len(state.task_configs(name)):
                self.shared.forget_status(*unit)

    def _set_levels(self, state: ConfigState) -> None:
        """Set the levels that a request to any worker has set in all (KIP-976)."""
        for name, level in state.loggers.items():
            if self._loggers.get(name) != level:
                self._loggers[name] = level
                logging.getLogger(name).setLevel(level)

    def _end(self) -> None:
        """Stop all runs, wait for them as long as they may take, and leave."""
        for unit in list(self._runs):
            self._end_run(unit)
        deadline_s = self.shared.lake.clock.elapsed_s() + self.shared.settings.graceful_s
        for run in self._ending:
            if not run.join(max(0.0, deadline_s - self.shared.lake.clock.elapsed_s())):
                logger.warning("Did not stop in time: run=%s", run.named)
        try:
            self._group.leave()
        except TidelogError as error:
            logger.warning("The worker left without the group's knowledge: error=%s", error)


def _copied(state: ConfigState) -> ConfigState:
    """The state of the moment: the fold goes on changing its own."""
    return ConfigState(
        dict(state.connectors), dict(state.versions), dict(state.targets), dict(state.tasks),
        dict(state.task_versions), dict(state.restarts), dict(state.loggers),
    )  # fmt: skip
