"""One run of a group: a seed, the true code or a planted bug, and what was found. As a program it repeats one.

export PYTHONPATH=tests:tests/reliability
python tests/simulation/groups_sim_run.py 17 --trace          # everything that happens in seed 17
python tests/simulation/groups_sim_run.py 0 --runs 1000       # many seeds, with what they found
"""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

import groups_sim_actors
from groups_sim_bugs import BUGS
from groups_sim_history import GroupHistory
from groups_sim_world import SESSION_MS, TOPIC, GroupPlan, GroupsWorld, Program
from sim_running import Planted, repeat, staged

from tidelog.log.door import commit_loop
from tidelog.log.rows import flat_combining
from tidelog.log.storage.store_time import MOST_OFF_MS
from tidelog.log.upkeep import background

# A dead leader's session, then that of a member that died with it unseen; and some rounds.
HEALED_S = 2 * SESSION_MS / 1000 + 10
DRAINED_S = 300.0


@dataclass
class GroupReport:
    """The result of a run. `problems` is empty when all invariants held."""

    seed: int
    problems: list[str]
    digest: str
    history: GroupHistory = field(repr=False)


def run_group(seed: int, planted: Planted = nullcontext, trace: list[str] | None = None) -> GroupReport:
    """Run one seed."""
    world = GroupsWorld(seed, GroupPlan.of(seed), trace)
    with staged(world.scheduler, (flat_combining, commit_loop, background), planted):
        problems = Director(world).direct()
    return GroupReport(seed, problems, world.history.digest(), world.history)


class Director:
    """Starts the processes, makes mishaps, and judges."""

    def __init__(self, world: GroupsWorld) -> None:
        self._world = world
        self._scheduler = world.scheduler
        self._rng = world.rng

    def direct(self) -> list[str]:
        """The whole run; returns what is wrong."""
        world, plan = self._world, self._world.plan
        setup = Program(world, "setup", lambda program: None)
        setup.run()
        setup.lake.create_topic(TOPIC, plan.partitions)
        self._prepare(setup)
        world.trouble = plan.trouble
        world.launch("producer", groups_sim_actors.producer)
        for number in range(plan.consumers):
            static = f"i{number}" if number < plan.statics else None
            world.launch(f"c{number}", groups_sim_actors.consumer, self._rng.uniform(0, 5), static)
        while self._scheduler.now < plan.duration_s and not self._wrong():
            self._scheduler.pause(self._rng.uniform(0.3, 1.7) * plan.mishap_s)
            if not self._wrong():
                self._rng.choice([self._crash, self._crash, self._stop, self._newcomer, self._jump, self._cut_off])()
        if not self._wrong():
            self._settle(setup)
        return self._wrong()

    def _prepare(self, setup: Program) -> None:
        """Do what a world needs besides, before anything goes wrong."""

    def _wrong(self) -> list[str]:
        return [*self._scheduler.failures, *self._world.history.violations]

    # --- mishaps -------------------------------------------------------------------------------------------

    def _consumers(self) -> list[Program]:
        return [p for p in self._world.programs if not p.ended and p.role is groups_sim_actors.consumer]

    def _crash(self) -> None:
        """One consumer dies, sometimes another with it; most come back, static ones with their identity."""
        consumers = self._consumers()
        for program in self._rng.sample(consumers, k=min(len(consumers), self._rng.choice([1, 1, 1, 2]))):
            self._world.kill(program)
            if self._rng.random() < 0.8:
                delay = self._rng.choice([0.5, 3.0, 12.0])
                self._world.launch(program.name, program.role, delay, program.instance_id)

    def _stop(self) -> None:
        """Some processes, or all, stand still."""
        consumers = self._consumers()
        if consumers:
            count = self._rng.choice([1, len(consumers)])
            seconds = self._rng.choice([2.0, 5.0, 9.0, 9.0, 30.0])
            for program in self._rng.sample(consumers, k=count):
                self._world.freeze(program, seconds)

    def _newcomer(self) -> None:
        """A member joins; as a twin it has the static id of another one."""
        static = None
        if self._world.plan.twins and self._world.plan.statics:
            static = f"i{self._rng.randrange(self._world.plan.statics)}"
        if len(self._consumers()) < 8:
            self._world.launch("new", groups_sim_actors.consumer, 0.0, static)

    def _jump(self) -> None:
        """The wall clock jumps; the elapsed clock never does. A writer whose clock is an hour off is refused."""
        jumped_ms = self._world.wall_jump_ms + self._rng.choice([-30_000, 5_000, 3_600_000])
        self._world.wall_jump_ms = max(min(jumped_ms, MOST_OFF_MS // 2), -MOST_OFF_MS // 2)

    def _cut_off(self) -> None:
        """A process loses its connection."""
        if self._world.plan.trouble.unsent:
            for program in self._rng.sample(self._consumers(), k=min(1, len(self._consumers()))):
                program.storage.lose_connection(self._rng.choice([2.0, 8.0, 20.0]), puts_only=False)

    # --- the end -------------------------------------------------------------------------------------------

    def _settle(self, setup: Program) -> None:
        """Nothing more goes wrong: the group heals in time, reads everything and commits it."""
        world = self._world
        world.end_trouble()
        awake_s = max((until for periods in world.history.frozen.values() for _, until in periods), default=0.0)
        self._scheduler.pause(max(0.0, awake_s - self._scheduler.now) + 2.0)
        if not self._consumers():
            world.launch("heir", groups_sim_actors.consumer)
        self._wait(self._healed, HEALED_S, "is not shared out among its living members")
        world.ends = {(TOPIC, p): end for p, (_, end) in setup.lake.topic(TOPIC).offsets().items()}
        world.ending = True
        self._wait(lambda: all(p.ended for p in world.programs), DRAINED_S, "is not read to its end")
        for place, end in world.ends.items():
            missing = [o for o in range(end) if o not in world.history.processed[place]]
            if missing and not self._wrong():
                world.history.violate(f"offsets {missing} of {place} were never processed")

    def _wait(self, there: Callable[[], bool], seconds: float, what: str) -> None:
        until = self._scheduler.now + seconds
        while not there() and not self._wrong():
            if self._scheduler.now > until:
                self._world.history.violate(f"after {seconds:.0f} s the group {what}: {self._world.history.group}")
                return
            self._scheduler.pause(0.25)

    def _healed(self) -> bool:
        """Whether the log and the living consumers agree on the owner of each partition, and all have one."""
        history = self._world.history
        living = [c for c in history.consumers if not (c.process.dead or c.failed or c.left)]
        owned = [place for c in living for place in c.owned]
        return (
            history.group.get("phase") == "Stable"
            and {m["member_id"] for m in history.group["members"]} == {c.member_id for c in living}
            and sorted(owned) == [(TOPIC, p) for p in range(self._world.partitions)]
        )


if __name__ == "__main__":
    sys.exit(repeat(__doc__, run_group, BUGS, lambda report: report.history.counts))
