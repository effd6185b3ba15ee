"""One run of registries: a seed, the true code or a planted bug, and what was found. As a program it repeats one.

export PYTHONPATH=tests:tests/reliability
python tests/simulation/registry_sim_run.py 17 --trace          # everything that happens in seed 17
python tests/simulation/registry_sim_run.py 0 --runs 1000       # many seeds, with what they found
"""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

from registry_sim_bugs import BUGS
from registry_sim_world import (
    Program,
    RegistryJournal,
    RegistryPlan,
    RegistryWorld,
    created,
    dump,
    maintainer,
    registry,
)
from sim_running import Planted, repeat, staged
from transactions_sim_world import inline

from tidelog.log.door import commit_loop
from tidelog.log.rows import flat_combining
from tidelog.log.upkeep import background
from tidelog.operations.schemas.registry_log import RegistryLog

SETTLE_S = 300.0


@dataclass
class RegistryReport:
    """The result of a run. `problems` is empty when all invariants held."""

    seed: int
    problems: list[str]
    digest: str
    history: RegistryJournal = field(repr=False)


def run_registries(seed: int, planted: Planted = nullcontext, trace: list[str] | None = None) -> RegistryReport:
    """Run one seed."""
    world = RegistryWorld(seed, RegistryPlan.of(seed), trace)
    with inline(world.scheduler), staged(world.scheduler, (flat_combining, commit_loop, background), planted):
        problems = _Director(world).direct()
    return RegistryReport(seed, problems, world.history.digest(), world.history)


class _Director:
    """Starts the processes, makes mishaps, and judges."""

    def __init__(self, world: RegistryWorld) -> None:
        self._world = world
        self._scheduler = world.scheduler
        self._rng = world.rng

    def direct(self) -> list[str]:
        """The whole run; returns what is wrong."""
        world, plan = self._world, self._world.plan
        setup = Program(world, "setup", lambda _: None)
        setup.run()
        created(setup)
        world.trouble = plan.trouble
        for number in range(plan.registries):
            world.launch(f"registry-{number}", registry, self._rng.uniform(0, 2))
        for _ in range(plan.maintainers):
            world.launch("maintainer", maintainer)
        while self._scheduler.now < plan.duration_s and not self._wrong():
            self._scheduler.pause(self._rng.uniform(0.3, 1.7) * plan.mishap_s)
            if not self._wrong():
                self._rng.choice([self._crash, self._crash, self._stop, self._jump, self._cut_off])()
        if not self._wrong():
            self._settle()
        return self._wrong()

    def _wrong(self) -> list[str]:
        return [*self._scheduler.failures, *self._world.history.violations]

    def _running(self) -> list[Program]:
        return [program for program in self._world.programs if not program.ended]

    # --- mishaps -------------------------------------------------------------------------------------------

    def _crash(self) -> None:
        """A process dies; it comes back."""
        for program in self._rng.sample(self._running(), k=min(1, len(self._running()))):
            self._world.kill(program)
            self._world.launch(program.name, program.role, self._rng.choice([0.1, 2.0, 9.0]))

    def _stop(self) -> None:
        """Some processes stand still, some of them for longer than tombstones stay."""
        running = self._running()
        for program in self._rng.sample(running, k=min(len(running), self._rng.choice([1, 1, 3]))):
            self._world.freeze(program, self._rng.choice([1.0, 4.0, 9.0, 55.0]))

    def _jump(self) -> None:
        """The wall clock jumps; the elapsed clock never does."""
        self._world.wall_jump_ms += self._rng.choice([-5_000, 5_000, 60_000])

    def _cut_off(self) -> None:
        """A process loses its connection."""
        if self._running() and self._world.plan.trouble.unsent:
            program = self._rng.choice(self._running())
            program.storage.lose_connection(self._rng.choice([1.0, 8.0]), puts_only=self._rng.random() < 0.5)

    # --- the end -------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Nothing more goes wrong: all registries, and one that reads the topic from its start, know the same."""
        world = self._world
        world.end_trouble()
        world.ending = True
        self._wait(lambda: all(program.process.name in world.at_rest for program in self._running()))
        world.closing = True
        self._wait(lambda: not self._running())
        if self._wrong():
            return
        judge = Program(world, "judge", lambda _: None)
        judge.run()
        found = RegistryLog(judge.lake).look(dump)
        for name, fold in sorted(world.folds.items()):
            if fold != found:
                more, less = (sorted({*one} - {*other}, key=str) for one, other in ((fold, found), (found, fold)))
                world.history.violate(f"{name} knows {more} that the topic has not, and does not know {less}")
        versions = [one for one in found if len(one) == 5]
        (next_id,) = (one[1] for one in found if one[0] == "next id")
        given = {number for _, _, number, _, _ in versions} | world.history.schemas.keys()
        if given != {*range(1, next_id)}:
            world.history.violate(f"ids are not dense: {sorted(given)}, and the next is {next_id}")
        for subject, version, number, _, size in versions:
            world.history.registered(subject, size, number, version)

    def _wait(self, there: Callable[[], bool]) -> None:
        until = self._scheduler.now + SETTLE_S
        while not there() and not self._wrong():
            if self._scheduler.now > until:
                names = [program.process.name for program in self._running()]
                self._world.history.violate(f"{names} have not come to an end")
                return
            self._scheduler.pause(0.25)


if __name__ == "__main__":
    sys.exit(repeat(__doc__, run_registries, BUGS, lambda report: report.history.counts))
