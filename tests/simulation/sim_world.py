"""One simulated world: a disk or an object store, the processes that share it, and what goes wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from sim_history import TOPIC, History
from sim_program import SimProgram, SimWorld
from sim_storage import Trouble

from tidelog.log.base.errors import StorageFullError, StorageUnavailableError
from tidelog.log.delta import layout

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
        if not on_disk:
            trouble.stale = Random(f"nodes {seed}").choice([0.0, 0.1, 0.4])
        return plan


class World(SimWorld):
    """The processes that write and read one topic."""

    history: History

    def __init__(self, seed: int, plan: Plan, trace: list[str] | None = None) -> None:
        super().__init__(Random(f"run {seed}"), plan)
        self.seed = seed
        self.history = History(self.scheduler, trace=trace)
        self.job_batch = 0
        self.senders: dict[str, Any] = {}
        self.committed: list[Any] = []
        self.repeats = Random(f"repeats {seed}")

    def begin_trouble(self) -> None:
        """From here on, faults happen."""
        self.trouble = self.plan.trouble

    def settle(self) -> None:
        """No more faults; frozen processes go on, and all come to their end."""
        self.end_trouble()
        self.thaw()
        self.ending = True

    def value(self, actor: str) -> str:
        """A value that is written once."""
        return f"{actor}#{self.number()}"

    def launch(self, name: str, roles: tuple[Role, ...], delay: float = 0.0) -> "App":
        """Start a process with an actor for each role, after `delay` seconds."""
        app = App(self, name, roles)
        self.start(app, delay)
        return app


class App(SimProgram):
    """A process with an actor for each of its roles."""

    unanswered = TROUBLED

    def __init__(self, world: World, name: str, roles: tuple[Role, ...]) -> None:
        super().__init__(world, name, synced=not world.plan.on_disk)
        self.roles = roles

    def run(self) -> None:
        """Open the lake and play the roles."""
        self.open()
        for role in self.roles[1:]:
            self.spawn(role.__name__, lambda role=role: role(self))
        if self.roles:
            self.roles[0](self)

    def open(self) -> None:
        """Open the lake and its topic."""
        super().open()
        self.until_it_answers(lambda: self.lake.topic(TOPIC))

    def pause_about(self, mean: float) -> None:
        """Wait, sometimes for the same moment as others, so that they race; three times as long at most."""
        world = self.world
        if world.rng.random() < 0.4:
            self.pause(mean - world.scheduler.now % mean)
        else:
            self.pause(min(world.rng.expovariate(1 / mean), 3 * mean))


def entry_file(version: int) -> str:
    """The path of a log entry of the topic."""
    return f"{TOPIC}/{layout.entry_path(version)}"
