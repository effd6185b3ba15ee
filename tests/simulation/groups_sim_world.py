"""A simulated lake with one topic, and the consumers that share it as a group: what they do and what goes wrong."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
from groups_sim_history import GroupHistory
from sim_scheduler import Actor, Process, Scheduler, SimExecutor
from sim_storage import Disk, SimStorage, Trouble
from sim_world import ProcessClock, SeededIds, StoreClock

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import ContendedLogError, OutcomeUnknownError, StorageUnavailableError
from tidelog.log.lake import Lake

TOPIC = "t"
GROUP = "g"
SESSION_MS = 6_000
HEARTBEAT_MS = 1_000
PATIENCE_MS = 20_000


@dataclass(frozen=True)
class GroupPlan:
    """What kind of run a seed stands for. Means in seconds."""

    partitions: int
    strategy: str
    statics: int  # how many of the consumers have a static id
    consumers: int
    duration_s: float
    pause_s: float  # between a consumer's polls
    mishap_s: float
    twins: bool  # whether two consumers are sometimes given one static id
    trouble: Trouble
    on_disk: bool = False  # processes have clocks of their own

    @staticmethod
    def of(seed: int) -> "GroupPlan":
        rng = Random(f"groups plan {seed}")
        rough = rng.choice([0.0, 0.3, 1.0])
        consumers = rng.choice([1, 1, 2, 3, 4, 6])
        return GroupPlan(
            partitions=rng.choice([1, 2, 4, 5]),
            strategy=rng.choice(["range", "roundrobin", "sticky", "cooperative-sticky", "cooperative-sticky"]),
            statics=rng.choice([0, 0, 1, consumers]),
            consumers=consumers,
            duration_s=rng.uniform(45, 90),
            pause_s=rng.choice([1.5, 4.0]),
            mishap_s=rng.choice([4.0, 8.0, 15.0]),
            twins=rng.random() < 0.5,
            trouble=Trouble(
                slow=rng.choice([0.0, 0.005]),
                unsent=0.004 * rough,
                lost=0.006 * rough,
                late=0.004 * rough,
                misread=0.01 * rough,
                conflict=0.01 * rough,
                freeze=rng.choice([0.0, 0.0, 0.0005]),
                freeze_at_put=rng.choice([0.0, 0.01, 0.03]),
            ),
        )


class GroupsWorld:
    """Everything that one seed drives. Its parts that `sim_world`'s clocks ask for have their names there."""

    def __init__(self, seed: int, plan: GroupPlan, trace: list[str] | None = None) -> None:
        self.plan = plan
        self.rng = Random(f"groups run {seed}")
        self.scheduler = Scheduler()
        self.trouble = Trouble()
        self.wall_jump_ms = 0
        self.booted_s = 0.0
        self.history = GroupHistory(self.scheduler, plan.strategy, trace=trace)
        self.disk = Disk("simulated", clock=StoreClock(self))  # type: ignore[arg-type]  # it asks for no more
        self.programs: list[Program] = []
        self.partitions = plan.partitions
        self.settling = False  # no member leaves by itself any more
        self.ending = False  # consumers go when everything is read
        self.ends: dict[tuple[str, int], int] = {}
        self.started = 0
        self._values = 0

    def start(
        self, name: str, role: Callable[["Program"], None], delay: float = 0.0, instance_id: str | None = None
    ) -> None:
        """Start a process that plays a role, after `delay` seconds."""
        program = Program(self, name, role, instance_id)
        self.programs.append(program)
        program.spawn("main", program.run, delay)

    def kill(self, program: "Program") -> None:
        """The process is gone, between two of its calls or while one is under way."""
        self.history.killed(program.process)
        self.scheduler.kill(program.process, program.actors)
        self.programs.remove(program)

    def freeze(self, program: "Program", seconds: float) -> None:
        """The process stands still, as after SIGSTOP."""
        program.process.frozen_until = max(program.process.frozen_until, self.scheduler.now + seconds)
        self.history.called(program.process, "FROZEN", f"{seconds:.1f}s", "")

    def end_trouble(self) -> None:
        """Nothing more goes wrong; frozen actors wake up as planned."""
        self.trouble, self.settling = Trouble(), True
        for program in self.programs:
            program.storage.heal()

    def records(self, count: int) -> pa.Table:
        """Records for all partitions, each with a value that no other has."""
        rows = [(p, f"{p}:{self._values + i}") for p in range(self.partitions) for i in range(count)]
        self._values += count
        return pa.table({"value": [v for _, v in rows], "partition": pa.array([p for p, _ in rows], pa.int32())})


@dataclass
class Program:
    """A process: its own lake object, clock and connection, and the actors that run in it."""

    world: GroupsWorld
    name: str
    role: Callable[["Program"], None]
    instance_id: str | None = None
    actors: list[Actor] = field(default_factory=list)

    def __post_init__(self) -> None:
        world = self.world
        world.started += 1
        self.process = Process(f"{self.name}@{world.scheduler.now:.0f}.{world.started}")
        self.storage = SimStorage(
            world.disk, self.process, world.scheduler, world.rng, world.trouble, world.history, synced=True
        )
        self.clock = ProcessClock(world, self.process)  # type: ignore[arg-type]  # it asks for no more
        self.ids = SeededIds(world.rng.getrandbits(64))

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
        """Open the lake and play the role."""
        self.lake = self.until_it_answers(
            lambda: Lake(
                self.storage.uri, storage=self.storage, clock=self.clock, ids=self.ids
            )
        )  # fmt: skip
        self.lake.background = SimExecutor(self.world.scheduler, lambda work: self.spawn("background", work))
        self.log = GroupLog(self.lake)
        self.role(self)

    def until_it_answers(self, call: Callable[[], Any]) -> Any:
        """Repeat a call until the store is there."""
        while True:
            with suppress(StorageUnavailableError, OutcomeUnknownError, ContendedLogError):
                return call()
            self.pause(0.3)

    def pause(self, seconds: float) -> None:
        """Let the others run."""
        self.world.scheduler.pause(seconds)
