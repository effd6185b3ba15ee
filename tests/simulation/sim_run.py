"""One run: a seed, the true code or a planted bug, and what was found. As a program it repeats one.

export PYTHONPATH=tests:tests/reliability
python tests/simulation/sim_run.py 17 --trace          # everything that happens in seed 17
python tests/simulation/sim_run.py 0 --runs 1000       # many seeds, with what they found
"""

import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from random import Random
from unittest.mock import patch

import sim_actors
import sim_senders
from sim_bugs import BUGS
from sim_checks import complaints
from sim_history import PREFIX, TOPIC, History
from sim_running import Planted, repeat, staged
from sim_world import App, Plan, Role, World

from tidelog.log.door import commit_loop, commit_objects
from tidelog.log.storage.store_time import MOST_OFF_MS
from tidelog.log.upkeep import background
from tidelog.log.upkeep.trim import GAPS_IN_AN_AGE, trim

SETTLE_S = 200.0


@dataclass
class Report:
    """The result of a run. `problems` is empty when all invariants held."""

    seed: int
    problems: list[str]
    digest: str
    history: History = field(repr=False)


def run(seed: int, planted: Planted = nullcontext, trace: list[str] | None = None) -> Report:
    """Run one seed."""
    world = World(seed, Plan.of(seed), trace)
    unsynced = patch.object(commit_objects, "MANY_UNSYNCED", world.plan.many_unsynced)
    with unsynced, staged(world.scheduler, (commit_loop, background), planted):
        problems = _Director(world).direct()
    return Report(seed, problems, world.history.digest(), world.history)


class _Director:
    """Starts the processes, makes mishaps, and judges."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._scheduler = world.scheduler
        self._rng = world.rng

    def direct(self) -> list[str]:
        """The whole run; returns what is wrong."""
        world = self._world
        first = App(world, "setup", ())
        first.open()
        sim_actors.create(first)
        world.begin_trouble()
        for name, roles in self._casting():
            world.launch(name, roles, self._rng.uniform(0, 3))
        while self._scheduler.now < world.plan.duration_s and not self._wrong():
            self._scheduler.pause(min(self._rng.expovariate(1 / world.plan.mishap_s), world.plan.duration_s))
            if not self._wrong():
                self._mishap()
        if not self._wrong():
            self._settle()
        return self._wrong() or self._judge()

    def _wrong(self) -> list[str]:
        return [*self._scheduler.failures, *self._world.history.violations]

    def _casting(self) -> list[tuple[str, tuple[Role, ...]]]:
        a, rng = sim_actors, self._rng
        cast: list[tuple[str, tuple[Role, ...]]] = [
            (f"writer{i}", rng.choice([(a.writer,), (a.writer, a.writer), (a.writer, a.reader), (a.writer, a.retrier)]))
            for i in range(self._world.plan.writers)
        ]
        cast.append(("reader", (a.reader,)))
        cast.extend((role.__name__, (role,)) for role in (a.retrier, a.job, a.admin) if rng.random() < 0.6)
        # Senders and appenders come on top of what a seed meant before: their own chance decides.
        own = Random(f"senders {self._world.seed}")
        cast.extend((f"sender{i}", (sim_senders.sender,)) for i in range(own.choice([0, 1, 2])))
        if Random(f"appenders {self._world.seed}").random() < 0.5:
            cast.append(("appender", (a.appender,)))
        return cast

    # --- mishaps -------------------------------------------------------------------------------------------

    def _mishap(self) -> None:
        rng = self._rng
        kinds = [self._crash, self._crash, self._visit, self._jump, self._stale_hint, self._cut_off]
        if self._world.plan.power:
            kinds += [self._lose_power] * 2
        rng.choice(kinds)()

    def _crash(self) -> None:
        apps = [a for a in self._world.programs if not a.ended]
        if apps:
            app = self._rng.choice(apps)
            self._world.kill(app)
            if app.name != "guest":
                self._world.launch(app.name, app.roles, self._rng.expovariate(1 / 4.0))

    def _visit(self) -> None:
        self._world.launch("guest", (self._rng.choice([sim_actors.visitor, sim_actors.command]),))

    def _jump(self) -> None:
        """The wall clock jumps; the elapsed clock never does."""
        world = self._world
        jumped_ms = world.wall_jump_ms + self._rng.choice([-30_000, -5_000, 5_000, 60_000, 3_600_000])
        # Beside a store with a clock of its own a writer is refused when its clock is an hour off.
        world.wall_jump_ms = (
            jumped_ms if world.plan.on_disk else max(min(jumped_ms, MOST_OFF_MS // 2), -MOST_OFF_MS // 2)
        )
        self._world.history.note(f"JUMP to {self._world.wall_jump_ms}")

    def _cut_off(self) -> None:
        """A process loses its connection, or the store refuses its puts, mostly until requests give up."""
        apps = [a for a in self._world.programs if not a.ended]
        if apps:
            app, seconds = self._rng.choice(apps), self._rng.choice([3.0, 35.0, 50.0])
            app.storage.lose_connection(seconds, puts_only=self._rng.random() < 0.7)
            self._world.history.note(f"CUT OFF {app.process.name} {seconds:.1f}")

    def _stale_hint(self) -> None:
        """A late put of an older `_last_checkpoint`."""
        if self._world.history.hints:
            self._world.disk.put(f"{PREFIX}_last_checkpoint", self._rng.choice(self._world.history.hints))
            self._world.history.note("STALE HINT")

    def _lose_power(self) -> None:
        """Every process is gone; a disk also loses what was not synced, and the machine starts again."""
        world = self._world
        gone = list(world.programs)
        for app in gone:
            world.kill(app)
        self._scheduler.pause(0.0)
        if world.plan.on_disk:
            world.history.power_lost()
            world.disk.lose_power_partly(self._rng)
            world.booted_s = self._scheduler.now
        for app in gone:
            if app.name != "guest":
                world.launch(app.name, app.roles, self._rng.uniform(0.0, 3.0))

    # --- the end -------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Nothing more goes wrong: all actors finish."""
        world = self._world
        world.settle()
        until = self._scheduler.now + SETTLE_S
        while self._scheduler.now < until and not self._wrong():
            if all(a.ended for a in world.programs):
                break
            self._scheduler.pause(1.0)
        for app in world.programs:
            for actor in app.actors:
                if not actor.done and not self._wrong():
                    world.history.violate(f"{actor.name} does not come to an end")

    def _judge(self) -> list[str]:
        """Open the lake once more, let it do its upkeep, and compare."""
        world = self._world
        judge = App(world, "judge", ())
        judge.open()
        if not judge.lake.topic(TOPIC).id:
            sim_actors.create(judge)
        judge.lake.close()
        self._scheduler.pause(60.0 + abs(world.wall_jump_ms) / 1000)
        rules = judge.lake.log(TOPIC).upkeep._rules()
        for _ in range(2 * GAPS_IN_AN_AGE):
            judge.lake.topic(TOPIC).append(sim_actors.table_of({0: [world.value("judge")]}))
            self._scheduler.pause(rules.min_age_ms / 1000)
        trim(judge.storage, TOPIC, rules.min_age_ms)
        again = App(world, "again", ())
        again.open()
        return list(complaints(world.history, world.disk, again.lake)) + self._wrong()


def _counted(report: Report) -> dict[str, int]:
    return {**report.history.counts, "entries": len(report.history.entries)}


if __name__ == "__main__":
    sys.exit(repeat(__doc__, run, BUGS, _counted))
