"""What every simulated world has: one disk, and processes with clocks of their own that open the lake on it."""

from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from sim_journal import Journal
from sim_scheduler import Actor, Process, Scheduler, SimExecutor
from sim_storage import Disk, SimStorage, Trouble

from tidelog.log.base.errors import (
    ContendedLogError,
    OutcomeUnknownError,
    StorageFullError,
    StorageUnavailableError,
    TidelogError,
)
from tidelog.log.lake import Lake

EPOCH_MS = 1_700_000_000_000
UNANSWERED = (StorageUnavailableError, StorageFullError, OutcomeUnknownError, ContendedLogError)


class AnyPlan(Protocol):
    """What kind of run a seed asks for. `on_disk`: processes share a machine and its clock; else each has its own."""

    @property
    def on_disk(self) -> bool: ...


class SimWorld:
    """The scheduler, the disk and the processes of one run, all driven by its seed."""

    history: Journal

    def __init__(self, rng: Random, plan: AnyPlan) -> None:
        self.rng = rng
        self.plan: Any = plan
        self.scheduler = Scheduler()
        self.trouble = Trouble()
        self.wall_jump_ms = 0
        self.booted_s = 0.0
        self.disk = Disk("simulated", clock=StoreClock(self))
        self.programs: list[Any] = []
        self.started = 0
        self.ending = False
        self._values = 0

    def start(self, program: "SimProgram", delay: float) -> None:
        """Have a process run after `delay` seconds."""
        self.programs.append(program)
        program.spawn("main", program.run, delay)

    def kill(self, program: "SimProgram") -> None:
        """End a process, between two of its calls or while one is under way."""
        self.history.killed(program.process)
        self.scheduler.kill(program.process, program.actors)
        self.programs.remove(program)

    def freeze(self, program: "SimProgram", seconds: float) -> None:
        """Stop a process for some time, as SIGSTOP does."""
        program.process.frozen_until = max(program.process.frozen_until, self.scheduler.now + seconds)
        self.history.called(program.process, "FROZEN", f"{seconds:.1f}s", "")

    def end_trouble(self) -> None:
        """End all faults; connections are there again."""
        self.trouble = Trouble()
        for program in self.programs:
            program.storage.heal()

    def thaw(self) -> None:
        """Have frozen processes go on."""
        for program in self.programs:
            self.scheduler.thaw(program.process, program.actors)

    def number(self) -> int:
        """The next number, each given once."""
        self._values += 1
        return self._values


class SimProgram:
    """A process: its connection, clock and chance, the lake object that it opens, and the actors that share them."""

    unanswered: tuple[type[TidelogError], ...] = UNANSWERED

    def __init__(self, world: Any, name: str, synced: bool = True) -> None:
        world.started += 1
        self.world = world
        self.name = name
        self.actors: list[Actor] = []
        self.process = Process(f"{name}@{world.scheduler.now:.0f}.{world.started}")
        self.storage = SimStorage(
            world.disk, self.process, world.scheduler, world.rng, world.trouble, world.history, synced=synced
        )
        self.clock = ProcessClock(world, self.process)
        self.ids = SeededIds(world.rng.getrandbits(64))
        self.lake: Lake = None  # type: ignore[assignment]  # until `open`

    @property
    def ended(self) -> bool:
        """Whether all its actors are done."""
        return all(actor.done for actor in self.actors)

    def spawn(self, name: str, body: Callable[[], None], delay: float = 0.0) -> Actor:
        """Start an actor in this process."""
        actor = self.world.scheduler.spawn(self.process, f"{self.name}.{name}", body, delay)
        self.actors.append(actor)
        return actor

    def run(self) -> None:
        """Open the lake."""
        self.open()

    def open(self) -> None:
        """Open the lake: that succeeds whatever happened before, once the store answers."""
        self.lake = self.until_it_answers(
            lambda: Lake(self.storage.uri, storage=self.storage, clock=self.clock, ids=self.ids)
        )
        self.lake.background = SimExecutor(self.world.scheduler, lambda work: self.spawn("background", work))

    def until_it_answers(self, call: Callable[[], Any]) -> Any:
        """Repeat a call that may be made twice until the store answers."""
        while True:
            try:
                return call()
            except self.unanswered:
                self.pause(0.3)

    def pause(self, seconds: float) -> None:
        """Let the others run."""
        self.world.scheduler.pause(seconds)


class StoreClock:
    """The store's own clock: a local disk has the machine's, which may jump."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world

    def now_ms(self) -> int:
        jump = self._world.wall_jump_ms if self._world.plan.on_disk else 0
        return EPOCH_MS + int(self._world.scheduler.now * 1000) + jump

    def elapsed_s(self) -> float:
        return self._world.scheduler.now

    def sleep(self, seconds: float) -> None:
        self._world.scheduler.pause(seconds)


class ProcessClock(StoreClock):
    """A process's clocks: processes on one disk share a machine; else each has its own, and its own error.

    While a machine is paused neither of them runs.
    """

    def __init__(self, world: SimWorld, process: Process) -> None:
        super().__init__(world)
        self._process = process
        self._off_ms = 0 if world.plan.on_disk else world.rng.choice([0, 0, -40_000, 90_000])
        self._boot_s = world.booted_s if world.plan.on_disk else world.scheduler.now - world.rng.choice([1, 10_000])

    def now_ms(self) -> int:
        world = self._world
        now_s = world.scheduler.now - self._process.wall_lost_s
        return EPOCH_MS + int(now_s * 1000) + world.wall_jump_ms + self._off_ms

    def elapsed_s(self) -> float:
        return self._world.scheduler.now - self._boot_s - self._process.lost_s


class SeededIds:
    """Ids and chance that come from the seed."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)

    def new(self) -> str:
        return f"{self._rng.getrandbits(64):016x}"

    def fraction(self) -> float:
        return self._rng.random()

    def secret(self, size: int) -> bytes:
        return self._rng.randbytes(size)
