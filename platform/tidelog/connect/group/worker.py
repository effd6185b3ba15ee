"""A worker: one thread keeps it in the group and has its runs be what the group and the configurations say."""

import logging
import threading

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.group.units import (
    KEEPER,
    RunSpec,
    Unit,
    new_restarts,
    restarted,
    specs_of,
    units_of,
)
from tidelog.connect.group.worker_group import WorkerGroup
from tidelog.connect.runtime.application_runs import task_run_of
from tidelog.connect.runtime.connector_runs import ConnectorRun
from tidelog.connect.runtime.plugins import Plugins
from tidelog.connect.runtime.runs import UnitRun
from tidelog.connect.runtime.shared import WorkerShared
from tidelog.connect.runtime.task_runs import SourceTaskRun
from tidelog.connect.runtime.worker_settings import WorkerSettings
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.shared_threads import Rounds
from tidelog.log.lake import Lake
from tidelog.operations.connector_configs import ConfigState, TargetState
from tidelog.operations.connector_statuses import RunState

logger = logging.getLogger("tidelog.connect")

# How often configurations are looked at, and what the group has to say; a request to this worker does not wait for it.
TICK_S = 0.25
_BUSY_TICK_S = 0.05


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
