"""Simulated processes that keep leases: mirrors of one follower, and maintainers of one lake, with holds on logs.

A mirror's lease is in one store and its holds are in another, as a follower and its source are.
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest.mock import patch

from brokers_sim_loop import SimThreads
from sim_journal import Journal
from sim_program import UNANSWERED, SimProgram, SimWorld, StoreClock
from sim_scheduler import Process
from sim_storage import Disk, SimStorage, Trouble

from tidelog.cli.broker.election import SILENT_MS, MaintainerElection
from tidelog.log.storage import lease_keeper
from tidelog.log.storage.lease_keeper import LeaseKeeper
from tidelog.log.upkeep.holds import Holder, read_holds
from tidelog.mirror.lease import LASTS_S, LEASES, FollowerLease, FollowerTakenError

LOGS = ("a", "b", "c")
# Shorter than a job's are, so that runs are.
HOLD_MS = 12_000
# A renewal that was held up begins within this time, the longest pause between two, and ends soon.
MIRRORS_MARGIN_S, MAINTAINERS_MARGIN_S = 1.5, 16.0


@dataclass(frozen=True)
class LeasesPlan:
    """What kind of run a seed stands for. Means in seconds."""

    mirrors: int
    maintainers: int
    duration_s: float
    stay_s: float  # how long a process keeps what it has
    mishap_s: float
    trouble: Trouble
    on_disk: bool = False  # the stores' clocks are their own

    @staticmethod
    def of(seed: int) -> "LeasesPlan":
        rng = Random(f"leases plan {seed}")
        rough = rng.choice([0.0, 0.3, 1.0])
        return LeasesPlan(
            mirrors=rng.choice([1, 2, 3]),
            maintainers=rng.choice([0, 1, 2, 3]),
            duration_s=rng.uniform(60, 200),
            stay_s=rng.choice([15.0, 60.0]),
            mishap_s=rng.choice([4.0, 12.0]),
            trouble=Trouble(unsent=0.002 * rough, lost=0.002 * rough),
        )


@dataclass(eq=False)
class Candidacy:
    """A maintainer in an election, since a time."""

    program: "Program"
    name: str
    since_s: float


@dataclass(eq=False)
class HeldLog:
    """A hold that a process took at a time."""

    program: "Program"
    holder: Holder
    store: "Store"
    folder: str
    since_s: float

    @property
    def is_lost(self) -> bool:
        """Whether it is not valid by the store."""
        path = self.holder.path(self.folder)
        holds = {hold.path: hold for hold in read_holds(self.store.disk, self.folder)}
        return path not in holds or not holds[path].is_valid(self.program.world.store_ms())


@dataclass
class LeasesJournal(Journal):
    """Which process has what, and what was taken from one that kept it."""

    counts: Counter[str] = field(default_factory=Counter)
    runs: dict[str, "Program"] = field(default_factory=dict)  # mirrors, by the run that their lease names
    owner: "Program | None" = None
    number: int = 0  # of its lease
    candidacies: list[Candidacy] = field(default_factory=list)
    held: list[HeldLog] = field(default_factory=list)
    elected_s: float = float("-inf")

    def called(self, process: Process, method: str, path: str, result: object) -> None:
        if method == "FROZEN":
            self.counts["frozen"] += 1
        if method in ("FROZEN", "put_if_absent", "put", "delete"):
            self.note(f"{process.name}: {method} {path} {result if isinstance(result, str | bool) else ''}")

    def killed(self, process: Process) -> None:
        self.counts["killed"] += 1
        self.held = [one for one in self.held if one.program.process is not process]
        super().killed(process)

    def stored(self, method: str, path: str, data: bytes) -> None:
        """A mirror that creates a lease has the follower from then on."""
        if method == "put_if_absent" and path.startswith(LEASES):
            self._taken(int(path.rpartition("/")[2]), self.runs[json.loads(data)["run"]])

    def _taken(self, number: int, program: "Program") -> None:
        if number <= self.number:
            return  # it was frozen since it looked, and will look again
        before, self.owner, self.number = self.owner, program, number
        self.counts["taken"] += 1
        if before is not None and before.kept(before.storage, LASTS_S + MIRRORS_MARGIN_S):
            self.violate(f"{program.process.name} took the follower from {before.process.name}, which kept its lease")

    def gives_back(self, program: "Program") -> None:
        """A process begins to give everything back that it has."""
        self.candidacies = [one for one in self.candidacies if one.program is not program]
        self.held = [one for one in self.held if one.program is not program]
        if self.owner is program:
            self.owner = None

    def elected(self, elected: Candidacy) -> None:
        """A maintainer found itself elected."""
        self.counts["elected"] += 1
        now_s = self.elected_s = self.scheduler.now
        if not elected.program.kept(elected.program.storage, MAINTAINERS_MARGIN_S):
            return  # what it saw may be old
        for one in self.candidacies:
            enough_s = SILENT_MS / 1000 + MAINTAINERS_MARGIN_S
            is_first = one.name < elected.name and now_s - one.since_s > MAINTAINERS_MARGIN_S
            if is_first and one.program.kept(one.program.storage, enough_s):
                self.violate(f"{elected.name} is elected beside {one.name}, which is before it and kept its candidacy")

    def audit(self) -> None:
        """Look at all holds: what a process takes for valid is, and without any trouble it stays so."""
        for one in self.held:
            program, now_s = one.program, self.scheduler.now
            believed = one.holder.is_valid(one.folder)
            if (believed or program.kept(one.store, now_s - one.since_s)) and (one.is_lost or not believed):
                self.violate(f"{program.process.name} kept its hold on {one.folder}, which is lost")


class Store(SimStorage):
    """A store that may give no answer for a while: calls wait until it does."""

    def __init__(self, disk: Disk, program: SimProgram) -> None:
        world = program.world
        super().__init__(disk, program.process, world.scheduler, world.rng, world.trouble, world.history, synced=True)
        self.troubled_until = 0.0
        self._hangs_until = 0.0

    def hang(self, seconds: float) -> None:
        """Let calls wait for this long."""
        self._hangs_until = self._scheduler.now + seconds
        self.troubled_until = max(self.troubled_until, self._hangs_until)

    def lose_connection(self, seconds: float, puts_only: bool) -> None:
        self.troubled_until = max(self.troubled_until, self._scheduler.now + seconds)
        super().lose_connection(seconds, puts_only)

    def _call(self, method: str, path: str, effect: Callable[[], Any]) -> Any:
        if self._hangs_until > self._scheduler.now:
            self._scheduler.pause(self._hangs_until - self._scheduler.now)
        return super()._call(method, path, effect)


class LeasesWorld(SimWorld):
    """Two stores, and the processes that keep leases there."""

    history: LeasesJournal

    def __init__(self, seed: int, plan: LeasesPlan, trace: list[str] | None = None) -> None:
        super().__init__(Random(f"leases run {seed}"), plan)
        self.history = LeasesJournal(self.scheduler, trace=trace)
        self.source = Disk("source", clock=StoreClock(self))

    def launch(self, name: str, role: Callable[["Program"], None], delay: float = 0.0) -> None:
        """Start a process that plays a role, after `delay` seconds."""
        self.start(Program(self, name, role), delay)

    def end_trouble(self) -> None:
        super().end_trouble()
        for program in self.programs:
            program.source.heal()

    def store_ms(self) -> int:
        """The stores' time."""
        return StoreClock(self).now_ms()

    def current_program(self) -> "Program":
        """The process whose actor runs."""
        process = self.scheduler.current.process
        found: Program = next(program for program in self.programs if program.process is process)
        return found


class Program(SimProgram):
    """A process that plays one role, with its keeper and two stores."""

    storage: Store

    def __init__(self, world: LeasesWorld, name: str, role: Callable[["Program"], None]) -> None:
        super().__init__(world, name)
        self.role = role
        self.storage = Store(world.disk, self)
        self.source = Store(world.source, self)
        self.keeper = LeaseKeeper(self.clock)

    def run(self) -> None:
        """Play the role."""
        self.role(self)

    @property
    def troubled_until(self) -> float:
        """When all of its trouble is over, or was."""
        return max(self.process.frozen_until, self.storage.troubled_until, self.source.troubled_until)

    def kept(self, store: Store, seconds: float) -> bool:
        """Whether it runs, and neither it nor its store had any trouble for so long."""
        troubled_until = max(self.process.frozen_until, store.troubled_until)
        return not self.process.dead and self.world.scheduler.now - troubled_until > seconds

    def hold(self, holder: Holder, store: Store) -> None:
        """Hold a log."""
        folder = self.world.rng.choice(LOGS)
        if holder.path(folder) is None:
            holder.hold(folder, lambda: 1)
            self.world.history.counts["held"] += 1
            self.world.history.held.append(HeldLog(self, holder, store, folder, self.world.scheduler.now))

    def holder(self, store: Store) -> Holder:
        """Its holds in a store."""
        return Holder(store, self.clock, self.ids, self.name, HOLD_MS, self.keeper)


def mirror(program: Program) -> None:
    """Takes the follower, holds logs of the source while it has it, and gives both back."""
    world, rng, history = program.world, program.world.rng, program.world.history
    while not world.ending:
        program.pause(rng.uniform(0.2, 3.0))
        run = program.ids.new()
        history.runs[run] = program
        try:
            with FollowerLease(program.storage, program.clock, run, program.keeper) as lease:
                _ship(program, lease)
        except FollowerTakenError:
            history.counts["refused"] += 1
        except UNANSWERED:
            pass
        finally:
            history.gives_back(program)


def _ship(program: Program, lease: FollowerLease) -> None:
    world, rng = program.world, program.world.rng
    until = world.scheduler.now + rng.uniform(0.2, 1.8) * world.plan.stay_s
    with program.holder(program.source) as holder:
        try:
            while world.scheduler.now < until and not world.ending:
                program.pause(rng.uniform(0.1, 2.0))
                lease.require(look=rng.random() < 0.2)
                if rng.random() < 0.3:
                    program.hold(holder, program.source)
        except FollowerTakenError:
            world.history.counts["lost"] += 1
        finally:
            world.history.gives_back(program)


def maintainer(program: Program) -> None:
    """Takes part in the election, and holds logs of the lake while it is elected."""
    world, rng, history = program.world, program.world.rng, program.world.history
    while not world.ending:
        program.pause(rng.uniform(0.2, 3.0))
        with suppress(*UNANSWERED), ExitStack() as ends:
            election = MaintainerElection(program.storage, program.clock, program.ids, program.keeper)
            ends.enter_context(election)
            holder = ends.enter_context(program.holder(program.storage))
            ends.callback(history.gives_back, program)
            candidacy = Candidacy(program, election.name, world.scheduler.now)
            history.candidacies.append(candidacy)
            until = world.scheduler.now + rng.uniform(0.5, 3.0) * world.plan.stay_s
            while world.scheduler.now < until and not world.ending:
                program.pause(rng.uniform(1.0, 8.0))
                if election.is_elected():
                    history.elected(candidacy)
                    program.hold(holder, program.storage)


class _Said(logging.Handler):
    """Counts what keepers log."""

    def __init__(self, counts: Counter[str]) -> None:
        super().__init__(logging.WARNING)
        self._counts = counts

    def emit(self, record: logging.LogRecord) -> None:
        self._counts["said late" if " so far" in record.getMessage() else "said failed"] += 1


@contextmanager
def on_stage(world: LeasesWorld) -> Iterator[None]:
    """Keepers whose threads are simulated, and whose log is counted."""
    threads = SimThreads(world.scheduler, lambda name, body: world.current_program().spawn(name, body))
    logger, handler = lease_keeper.logger, _Said(world.history.counts)
    before, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        with patch.object(lease_keeper, "threading", threads):
            yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before
