"""One run of transactions: a seed, the true code or a planted bug, and what was found. As a program it repeats one.

export PYTHONPATH=tests:tests/reliability
python tests/simulation/transactions_sim_run.py 17 --trace      # everything that happens in seed 17
python tests/simulation/transactions_sim_run.py 0 --runs 1000   # many seeds, with what they found
"""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

import transactions_sim_actors as actors
from checkers import check, summary
from groups_sim_world import Program
from sim_director import Director, read_log
from sim_running import Planted, repeat, staged
from transactions_sim_bugs import BUGS
from transactions_sim_world import (
    COPIERS,
    PARTITIONS,
    TOPIC_CONFIG,
    TOPICS,
    TransactionsJournal,
    TransactionsPlan,
    TransactionsWorld,
    inline,
)

from tidelog.log.base.errors import TidelogError
from tidelog.log.door import commit_loop
from tidelog.log.rows import flat_combining
from tidelog.log.upkeep import background
from tidelog.transactions import staged_topics, timeouts

# A copier that aborts every third of its transactions, and pauses amid others, takes minutes for some hundred records.
SETTLE_S = 1200.0
THREADED = (flat_combining, commit_loop, background, staged_topics, timeouts)


# Processes by name, with the roles that they play.
Casting = list[tuple[str, Callable[[Program], None]]]


@dataclass
class TransactionsReport:
    """The result of a run. `problems` is empty when all invariants held."""

    seed: int
    problems: list[str]
    digest: str
    history: TransactionsJournal = field(repr=False)


def run_transactions(seed: int, planted: Planted = nullcontext, trace: list[str] | None = None) -> TransactionsReport:
    """Run one seed."""
    world = TransactionsWorld(seed, TransactionsPlan.of(seed), trace)
    with inline(world.scheduler), staged(world.scheduler, THREADED, planted):
        problems = TransactionsDirector(world).direct()
    return TransactionsReport(seed, problems, world.history.digest(), world.history)


class TransactionsDirector(Director):
    """Directs copiers."""

    def direct(self) -> list[str]:
        """The whole run; returns what is wrong."""
        world, plan = self._world, self._world.plan
        self._prepare(self._program("setup"))
        world.trouble = plan.trouble
        for name, role in self._casting():
            world.launch(name, role, self._rng.uniform(0, 2))
        while self._scheduler.now < plan.duration_s and not self._scheduler.failures:
            self._scheduler.pause(self._rng.uniform(0.3, 1.7) * plan.mishap_s)
            self._rng.choice([self._crash, self._crash, self._stop, self._twin, self._jump, self._cut_off])()
        if not self._scheduler.failures:
            self._settle()
        return self._scheduler.failures or self._judge()

    def _prepare(self, setup: Program) -> None:
        if self._world.plan.expires:
            setup.lake.alter_config({"transactional.id.expiration.ms": "20000"})
        for name in TOPICS:
            setup.lake.create_topic(name, PARTITIONS, TOPIC_CONFIG)

    def _casting(self) -> Casting:
        plan = self._world.plan
        cast: Casting = [("producer", actors.producer), ("reader", actors.reader)]
        cast += [(f"copier-{one}", actors.copier(one)) for one, _, _ in COPIERS[: plan.copiers]]
        cast += [("maintainer", actors.maintainer)] * plan.maintainers
        cast += [("operator", actors.operator)] * plan.operators
        return [*cast, ("watcher", actors.watcher)]

    # --- mishaps -------------------------------------------------------------------------------------------

    def _running(self) -> list[Program]:
        return [program for program in self._world.programs if not program.ended]

    def _crash(self) -> None:
        """A process dies; it comes back."""
        running = self._running()
        for program in self._rng.sample(running, k=min(1, len(running))):
            self._world.kill(program)
            self._world.launch(program.name, program.role, self._rng.choice([0.1, 2.0, 9.0]))

    def _stop(self) -> None:
        """Some processes stand still."""
        running = self._running()
        for program in self._rng.sample(running, k=min(len(running), self._rng.choice([1, 1, 3]))):
            self._world.freeze(program, self._rng.choice([1.0, 4.0, 9.0, 25.0]))

    def _twin(self) -> None:
        """Another copier with an id that is in use."""
        if self._world.plan.twins and len(self._running()) < 10:
            one = self._rng.choice(COPIERS[: self._world.plan.copiers])[0]
            self._world.launch(f"copier-{one}", actors.copier(one))

    def _jump(self) -> None:
        """The wall clock jumps; the elapsed clock never does."""
        self._world.wall_jump_ms += self._rng.choice([-5_000, 5_000, 60_000])

    def _cut_off(self) -> None:
        """A process loses its connection."""
        running = self._running()
        if running and self._world.plan.trouble.unsent:
            program = self._rng.choice(running)
            program.storage.lose_connection(self._rng.choice([1.0, 8.0, 20.0]), puts_only=self._rng.random() < 0.5)

    # --- the end -------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Nothing more goes wrong: everything is copied."""
        world = self._world
        world.end_trouble()
        world.thaw()
        world.ending = True
        for one, _, _ in COPIERS[: world.plan.copiers]:
            world.launch(f"copier-{one}", actors.copier(one))
        self._wait(
            lambda: not self._running(),
            SETTLE_S,
            lambda: f"{[program.process.name for program in self._running()]} have not come to an end",
        )

    def _judge(self) -> list[str]:
        """Read all there is, and compare."""
        world = self._world
        judge = self._program("judge")
        try:
            world.seen.log = read_log(judge.lake, TOPICS)
            for _, _, group in COPIERS:
                offsets = judge.log.stable_offsets(group)
                world.seen.committed |= {(group, place): one.offset for place, one in offsets.items()}
        except TidelogError as e:
            return [*world.history.violations, f"the lake can't be read: {type(e).__name__}: {e}"]
        return [*world.history.violations, *summary(check(world.seen)), *self._checked(judge)]


if __name__ == "__main__":
    sys.exit(repeat(__doc__, run_transactions, BUGS, lambda report: report.history.counts))
