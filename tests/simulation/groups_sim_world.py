"""A simulated lake with one topic, and the consumers that share it as a group: what they do and what goes wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pyarrow as pa
from groups_sim_history import GroupHistory
from sim_program import SimProgram, SimWorld
from sim_storage import Trouble

from tidelog.groups.store.group_log import GroupLog

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
    modern: float = 0.0  # how many of the consumers have the consumer protocol

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


class GroupsWorld(SimWorld):
    """The producer and the consumers of one group."""

    history: GroupHistory

    def __init__(
        self,
        seed: int,
        plan: GroupPlan,
        trace: list[str] | None = None,
        history: type[GroupHistory] = GroupHistory,
    ) -> None:
        super().__init__(Random(f"groups run {seed}"), plan)
        self.history = history(self.scheduler, plan.strategy, trace=trace)
        self.partitions = plan.partitions
        self.settling = False  # no member leaves by itself any more
        self.ends: dict[tuple[str, int], int] = {}

    def launch(
        self, name: str, role: Callable[["Program"], None], delay: float = 0.0, instance_id: str | None = None
    ) -> None:
        """Start a process that plays a role, after `delay` seconds."""
        self.start(Program(self, name, role, instance_id), delay)

    def end_trouble(self) -> None:
        """End all faults; a frozen process goes on when its time is over, as it would have."""
        super().end_trouble()
        self.settling = True

    def records(self, count: int) -> pa.Table:
        """Records for all partitions, each with a value that no other has."""
        rows = [(p, f"{p}:{self._values + i}") for p in range(self.partitions) for i in range(count)]
        self._values += count
        return pa.table({"value": [v for _, v in rows], "partition": pa.array([p for p, _ in rows], pa.int32())})


class Program(SimProgram):
    """A process that plays one role, with the log of groups."""

    def __init__(
        self, world: SimWorld, name: str, role: Callable[["Program"], None], instance_id: str | None = None
    ) -> None:
        super().__init__(world, name)
        self.role = role
        self.instance_id = instance_id
        # Whether it is a member of the consumer protocol.
        self.modern = getattr(world.plan, "modern", 0.0) > 0 and world.rng.random() < world.plan.modern

    def run(self) -> None:
        """Open the lake and play the role."""
        self.open()
        self.log = GroupLog(self.lake)
        self.role(self)
