"""One run of leases: a seed, the true code or a planted bug, and what was found. As a program it repeats one.

export PYTHONPATH=tests:tests/reliability
python tests/simulation/leases_sim_run.py 17 --trace          # everything that happens in seed 17
python tests/simulation/leases_sim_run.py 0 --runs 1000       # many seeds, with what they found
"""

import sys
from contextlib import nullcontext
from dataclasses import dataclass, field

from leases_sim_bugs import BUGS
from leases_sim_world import (
    HOLD_MS,
    LOGS,
    LeasesJournal,
    LeasesPlan,
    LeasesWorld,
    Program,
    maintainer,
    mirror,
    on_stage,
)
from sim_director import Director
from sim_running import Planted, repeat, staged

from tidelog.log.upkeep.holds import held_version, read_holds

AUDIT_S = 1.0
# A silent mirror's lease, or maintainer's candidacy, and what else it takes to be the next one.
TAKEN_S, ELECTED_S, ENDED_S = 30.0, 150.0, 60.0


@dataclass
class LeasesReport:
    """The result of a run. `problems` is empty when all invariants held."""

    seed: int
    problems: list[str]
    digest: str
    history: LeasesJournal = field(repr=False)


def run_leases(seed: int, planted: Planted = nullcontext, trace: list[str] | None = None) -> LeasesReport:
    """Run one seed."""
    world = LeasesWorld(seed, LeasesPlan.of(seed), trace)
    with on_stage(world), staged(world.scheduler, (), planted):
        problems = _Director(world).direct()
    return LeasesReport(seed, problems, world.history.digest(), world.history)


class _Director(Director):
    """Starts the processes, makes mishaps, audits their holds, and judges."""

    def direct(self) -> list[str]:
        """The whole run; returns what is wrong."""
        world, plan = self._world, self._world.plan
        world.trouble = plan.trouble
        for name, role, count in (("mirror", mirror, plan.mirrors), ("maintainer", maintainer, plan.maintainers)):
            for number in range(count):
                world.launch(f"{name}-{number}", role, self._rng.uniform(0, 2))
        mishap_s = 0.0
        while self._scheduler.now < plan.duration_s and not self._wrong():
            self._scheduler.pause(AUDIT_S)
            world.history.audit()
            if self._scheduler.now >= mishap_s:
                mishap_s = self._scheduler.now + self._rng.uniform(0.3, 1.7) * plan.mishap_s
                self._rng.choice([self._crash, self._stop, self._hang, self._hang, self._cut_off, self._jump])()
        if not self._wrong():
            self._settle()
        return self._wrong()

    # --- mishaps -------------------------------------------------------------------------------------------

    def _running(self) -> list[Program]:
        return [program for program in self._world.programs if not program.ended]

    def _some(self) -> list[Program]:
        running = self._running()
        return self._rng.sample(running, k=min(1, len(running)))

    def _crash(self) -> None:
        """A process dies; it comes back."""
        for program in self._some():
            self._world.kill(program)
            self._world.launch(program.name, program.role, self._rng.choice([0.1, 2.0, 20.0]))

    def _stop(self) -> None:
        """A process stands still, or all do."""
        seconds = self._rng.choice([0.5, 3.0, 8.0, 30.0, 70.0])
        for program in self._world.programs if self._rng.random() < 0.1 else self._some():
            self._world.freeze(program, seconds)

    def _hang(self) -> None:
        """One of a process' stores gives no answer for a while: mostly the source's, where it only has holds."""
        for program in self._some():
            store = program.source if self._rng.random() < 0.7 else program.storage
            store.hang(self._rng.choice([3.0, 20.0, 60.0]))
            self._world.history.counts["hung"] += 1

    def _cut_off(self) -> None:
        """A process loses its connection to a store."""
        for program in self._some():
            store = self._rng.choice([program.source, program.storage])
            store.lose_connection(self._rng.choice([1.0, 3.0, 8.0]), puts_only=False)

    def _jump(self) -> None:
        """The wall clock of the processes jumps; the elapsed clock never does, nor does the stores'."""
        self._world.wall_jump_ms += self._rng.choice([-30_000, 5_000, 60_000])

    # --- the end -------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Nothing more goes wrong: what there is to take is taken, and given back at the end."""
        world, history = self._world, self._world.history
        world.end_trouble()
        held_up = [
            max(p.process.frozen_until, p.storage.troubled_until, p.source.troubled_until) for p in world.programs
        ]
        self._scheduler.pause(max(0.0, max(held_up) - self._scheduler.now))
        began_s = self._scheduler.now
        self._wait(self._has_owner, TAKEN_S, lambda: "no mirror has the follower")
        if world.plan.maintainers:
            self._wait(lambda: history.elected_s > began_s, ELECTED_S, lambda: "no maintainer is elected")
        history.audit()
        world.ending = True
        self._wait(lambda: not self._running(), ENDED_S, lambda: f"{[p.name for p in self._running()]} have not ended")
        self._scheduler.pause(HOLD_MS / 1000 + 1)
        for disk in (world.disk, world.source):
            for folder in LOGS:
                if not self._wrong() and held_version(read_holds(disk, folder), world.store_ms()) is not None:
                    history.violate(f"{folder} is held, and no process lives")

    def _has_owner(self) -> bool:
        owner = self._world.history.owner
        return owner is not None and not owner.process.dead


if __name__ == "__main__":
    sys.exit(repeat(__doc__, run_leases, BUGS, lambda report: report.history.counts))
