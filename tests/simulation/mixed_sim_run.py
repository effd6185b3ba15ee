"""One run of a group with members of both protocols, which turns to and fro. As a program it repeats a seed.

export PYTHONPATH=tests:tests/reliability
python tests/simulation/mixed_sim_run.py 17 --trace          # everything that happens in seed 17
python tests/simulation/mixed_sim_run.py 0 --runs 1000       # many seeds, with what they found
"""

import sys
from contextlib import nullcontext
from dataclasses import replace
from random import Random

from groups_sim_run import Director, GroupReport
from groups_sim_world import GROUP, SESSION_MS, TOPIC, GroupPlan, GroupsWorld, Program
from mixed_sim_bugs import BUGS
from mixed_sim_history import MixedHistory
from sim_running import Planted, repeat, staged

from tidelog.groups.rules.configuring import configure
from tidelog.log.door import commit_loop
from tidelog.log.rows import flat_combining
from tidelog.log.upkeep import background


def run_mixed(seed: int, planted: Planted = nullcontext, trace: list[str] | None = None) -> GroupReport:
    """Run one seed."""
    rng = Random(f"mixed plan {seed}")
    plan = replace(
        GroupPlan.of(seed),
        modern=rng.choice([0.3, 0.5, 0.5, 0.9]),
        consumers=rng.choice([2, 3, 4, 5]),
        strategy=rng.choice(["range", "cooperative-sticky"]),
        statics=rng.choice([0, 0, 1]),
    )
    world = GroupsWorld(seed, plan, trace, MixedHistory)
    with staged(world.scheduler, (flat_combining, commit_loop, background), planted):
        problems = _MixedDirector(world).direct()
    return GroupReport(seed, problems, world.history.digest(), world.history)


class _MixedDirector(Director):
    """Has the group configured with the session that members of the classic protocol have."""

    def _prepare(self, setup: Program) -> None:
        session = {"consumer.session.timeout.ms": str(SESSION_MS)}
        setup.log.decide(GROUP, lambda view: configure(view, GROUP, session))

    def _healed(self) -> bool:
        """Whether all partitions have an owner among the living, in a group of the type that these make it."""
        history = self._world.history
        assert isinstance(history, MixedHistory)
        consumers = [c for c in history.consumers if c.membership is not None]
        living = [c for c in consumers if not (c.process.dead or c.failed or c.left)]
        modern = {program.process for program in self._world.programs if program.modern}
        owned = [place for c in living for place in c.owned]
        names = {c.membership.member_id for c in living}
        everything = [(TOPIC, p) for p in range(self._world.partitions)]
        return sorted(owned) == everything and history.at_rest(names, any(c.process in modern for c in living))


if __name__ == "__main__":
    sys.exit(repeat(__doc__, run_mixed, BUGS, lambda report: report.history.counts))
