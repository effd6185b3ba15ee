"""One simulated world: a disk or an object store, the processes that share it, and what goes wrong."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sim_history import TOPIC, History
from sim_scheduler import Actor, Process, Scheduler, SimExecutor
from sim_storage import Disk, SimStorage, Trouble

from tidelog.log.base.errors import StorageFullError, StorageUnavailableError
from tidelog.log.delta import layout
from tidelog.log.lake import Lake

EPOCH_MS = 1_700_000_000_000
TROUBLED = (StorageUnavailableError, StorageFullError)
# Small rules, so that a run of minutes sees many checkpoints and trims.
CONFIG = {"log.checkpoint.interval": "10", "log.min.age.ms": "10000"}

Role = Callable[["App"], None]


@dataclass(frozen=True)
class Plan:
    """What kind of run a seed stands for. Means in seconds."""

    on_disk: bool  # a local disk that loses what was not synced, or an object store
    partitions: int
    log_append_time: bool
    many_unsynced: int
    duration_s: float
    pause_s: float  # between a writer's appends
    writers: int
    mishap_s: float  # between crashes, power losses, jumps of the clock
    power: bool
    trouble: Trouble

    @staticmethod
    def of(seed: int) -> "Plan":
        rng = Random(f"plan {seed}")
        on_disk = rng.random() < 0.6
        rough = rng.choice([0.0, 0.3, 1.0])
        trouble = Trouble(
            slow=rng.choice([0.0, 0.005, 0.02]),
            unsent=0.002 * rough,
            lost=0.004 * rough,
            late=0.0 if on_disk else 0.01 * rough,
            misread=0.0 if on_disk else 0.02 * rough,
            conflict=0.0 if on_disk else 0.02 * rough,
            full=0.003 * rough,
            interrupt=0.002 * rough,
            freeze=rng.choice([0.0, 0.0, 0.002]),
            freeze_at_put=rng.choice([0.0, 0.02, 0.05]),
        )
        plan = Plan(
            on_disk,
            partitions=rng.choice([1, 1, 2, 3]),
            log_append_time=rng.random() < 0.25,
            many_unsynced=rng.choice([3, 512]),
            duration_s=rng.uniform(80, 200),
            pause_s=rng.choice([5.0, 10.0, 15.0]),
            writers=rng.choice([1, 2, 2, 3]),
            mishap_s=rng.choice([8.0, 15.0, 40.0]),
            power=rng.random() < (0.7 if on_disk else 0.2),
            trouble=trouble,
        )
        # On one disk all processes share a machine, which is paused as a whole: nothing happens meanwhile.
        trouble.paused = 0.0 if on_disk else rng.choice([0.5, 1.0])
        return plan


class World:
    """Everything that one seed drives."""

    def __init__(self, seed: int, plan: Plan, trace: list[str] | None = None) -> None:
        self.seed = seed
        self.plan = plan
        self.rng = Random(f"run {seed}")
        self.scheduler = Scheduler()
        self.history = History(self.scheduler, trace=trace)
        self.trouble = Trouble()
        self.wall_jump_ms = 0
        self.booted_s = 0.0
        self.disk = Disk("simulated", clock=StoreClock(self))
        self.apps: list[App] = []
        self.job_batch = 0
        self.senders: dict[str, Any] = {}
        self.committed: list[Any] = []
        self.repeats = Random(f"repeats {seed}")
        self.ending = False
        self._values = 0

    def begin_trouble(self) -> None:
        """From here on, things go wrong."""
        self.trouble = self.plan.trouble

    def end_trouble(self) -> None:
        """Nothing goes wrong any more, and frozen actors wake up."""
        self.trouble = Trouble()
        self.ending = True
        for app in self.apps:
            app.storage.heal()
            app.process.frozen_until = 0.0

    def value(self, actor: str) -> str:
        """A value that no other actor writes."""
        self._values += 1
        return f"{actor}#{self._values}"

    def start(self, name: str, roles: tuple[Role, ...], delay: float = 0.0) -> "App":
        """Start a process with an actor for each role, after `delay` seconds."""
        app = App(self, name, roles)
        self.apps.append(app)
        app.spawn("main", app.run, delay)
        return app

    def kill(self, app: "App") -> None:
        """The process is gone, between two of its calls or while one is under way."""
        self.history.note(f"CRASH {app.process.name}")
        self.scheduler.kill(app.process, app.actors)
        self.apps.remove(app)


@dataclass
class App:
    """A process: a lake opened in it, and the actors that share it."""

    world: World
    name: str
    roles: tuple[Role, ...]
    actors: list[Actor] = field(default_factory=list)

    def __post_init__(self) -> None:
        world = self.world
        self.process = Process(f"{self.name}@{world.scheduler.now:.0f}")
        self.storage = SimStorage(
            world.disk, self.process, world.scheduler, world.rng, world.trouble, world.history,
            synced=not world.plan.on_disk,
        )  # fmt: skip
        self.clock = ProcessClock(world, self.process)
        self.ids = SeededIds(world.rng.getrandbits(64))
        self.lake: Lake = None  # type: ignore[assignment]  # until `open`

    @property
    def ended(self) -> bool:
        """Whether all its actors are done."""
        return all(a.done for a in self.actors)

    def spawn(self, name: str, body: Callable[[], None], delay: float = 0.0) -> Actor:
        """Start an actor in this process."""
        actor = self.world.scheduler.spawn(self.process, f"{self.name}.{name}", body, delay)
        self.actors.append(actor)
        return actor

    def run(self) -> None:
        """Open the lake and play the roles."""
        self.open()
        for role in self.roles[1:]:
            self.spawn(role.__name__, lambda role=role: role(self))
        if self.roles:
            self.roles[0](self)

    def open(self) -> None:
        """Open the lake and its topic: that succeeds whatever happened before, once the store answers."""
        self.lake = self.until_it_answers(
            lambda: Lake(self.storage.uri, storage=self.storage, clock=self.clock, ids=self.ids)
        )
        self.lake.background = SimExecutor(self.world.scheduler, lambda work: self.spawn("background", work))
        self.until_it_answers(lambda: self.lake.topic(TOPIC))

    def until_it_answers(self, call: Callable[[], Any]) -> Any:
        """Repeat a call that changes nothing until the store is there."""
        while True:
            try:
                return call()
            except TROUBLED:
                self.pause(0.3)

    def pause(self, seconds: float) -> None:
        """Let the others run."""
        self.world.scheduler.pause(seconds)

    def pause_about(self, mean: float) -> None:
        """Wait, sometimes for the same moment as others, so that they race; three times as long at most."""
        world = self.world
        if world.rng.random() < 0.4:
            self.pause(mean - world.scheduler.now % mean)
        else:
            self.pause(min(world.rng.expovariate(1 / mean), 3 * mean))


class StoreClock:
    """The store's own clock: a local disk has the machine's, which may jump."""

    def __init__(self, world: World) -> None:
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

    def __init__(self, world: World, process: Process) -> None:
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
    """Chance that comes from the seed."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)

    def new(self) -> str:
        return f"{self._rng.getrandbits(64):016x}"

    def fraction(self) -> float:
        return self._rng.random()


def entry_file(version: int) -> str:
    """The path of a log entry of the topic."""
    return f"{TOPIC}/{layout.entry_path(version)}"
