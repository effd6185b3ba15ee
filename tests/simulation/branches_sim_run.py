"""One run of branches amid transactions: a seed, the true code or a planted bug, and what was found. Or it repeats one.

export PYTHONPATH=tests:tests/reliability
python tests/simulation/branches_sim_run.py 17 --trace      # everything that happens in seed 17
python tests/simulation/branches_sim_run.py 0 --runs 1000   # many seeds, with what they found
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from random import Random
from unittest.mock import patch

import branches_sim_actors as actors
from branches_sim_actors import SITTERS, TAIL, BranchesSeen, BranchSeen, tailer
from branches_sim_bugs import BUGS
from groups_sim_world import Program
from history import Place
from sim_director import read_log
from sim_running import Planted, repeat, staged
from support.purges import missing_files
from transactions_sim_actors import maintainer
from transactions_sim_run import THREADED, Casting, TransactionsDirector, TransactionsReport
from transactions_sim_world import (
    COPIERS,
    INPUT,
    PARTITIONS,
    TOPICS,
    InlineHolder,
    InlinePool,
    TransactionsPlan,
    TransactionsWorld,
    inline,
)

from tidelog.check.lake import Severity, check_lake
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TidelogError
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.mirror import copying
from tidelog.mirror.branch import making
from tidelog.mirror.branch.discarding import discard_branch
from tidelog.operations import cuts
from tidelog.transactions.transaction_log import TransactionLog

# What a branch has none of: it is the source's, or of its place.
NOT_TAKEN = (layout.CLUSTER_TABLE, layout.CUTS_TABLE, layout.BRANCHES_FOLDER, layout.MIRROR_FOLDER)


class BranchesWorld(TransactionsWorld):
    """Copiers, and those that branch what they do."""

    def __init__(self, seed: int, plan: TransactionsPlan, trace: list[str] | None = None) -> None:
        super().__init__(seed, plan, trace)
        self.branched = BranchesSeen()


def run_branches(seed: int, planted: Planted = nullcontext, trace: list[str] | None = None) -> TransactionsReport:
    """Run one seed."""
    world = BranchesWorld(seed, _plan(seed), trace)
    with inline(world.scheduler), _inline_branches(), staged(world.scheduler, THREADED, planted):
        problems = _Director(world).direct()
    return TransactionsReport(seed, problems, world.history.digest(), world.history)


def _plan(seed: int) -> TransactionsPlan:
    """A store that is slow, copiers in a hurry, and processes that die often: much happens while a branch is made."""
    plan = TransactionsPlan.of(seed)
    rng = Random(f"branches plan {seed}")
    trouble = replace(plan.trouble, slow=rng.choice([0.005, 0.02]))
    return replace(
        plan,
        duration_s=rng.uniform(10, 20),
        pause_s=rng.choice([0.15, 0.4]),
        mishap_s=rng.choice([1.5, 3.0]),
        copiers=2,
        trouble=trouble,
    )


@contextmanager
def _inline_branches() -> Iterator[None]:
    with ExitStack() as stack:
        for module in (cuts, copying):
            stack.enter_context(patch.object(module, "ThreadPoolExecutor", InlinePool))
        stack.enter_context(patch.object(making, "Holder", InlineHolder))
        yield


class _Director(TransactionsDirector):
    """Directs copiers, and those that branch what they do."""

    def _prepare(self, setup: Program) -> None:
        super()._prepare(setup)
        actors.sit(setup)
        cuts.create_cut(setup.lake, "before")

    def _casting(self) -> Casting:
        cast = [*super()._casting(), ("brancher", actors.brancher), ("squatter", actors.squatter), ("tailer", tailer)]
        return cast if any(role is maintainer for _, role in cast) else [*cast, ("maintainer", maintainer)]

    def _judge(self) -> list[str]:
        problems = super()._judge()
        judge = self._program("second judge")
        for one in self._world.branched.branches:
            try:
                if not one.whole and list(one.disk.list_after("")):
                    one.calls += 1
                    actors.with_source(judge, one)
                if one.whole:
                    one.disk.lose_power()  # what it says survives that
                    problems += _judged(self._world, judge, one)
                elif left := [info.path for info in one.disk.list_after("")]:
                    problems.append(f"branch {one.number} was given up, and {left} is there")
            except TidelogError as e:
                problems.append(f"branch {one.number} can't be judged: {type(e).__name__}: {e}")
        for one in self._world.branched.discarded:
            problems += self._of_discarded(judge, one)
        return [*problems, *(v for v in self._world.history.violations if v not in problems)]

    def _of_discarded(self, judge: Program, one: BranchSeen) -> list[str]:
        """A branch that goes says so, or is as it was; in the end nothing of it is there."""
        if not list(one.disk.list_after("")):
            return [] if not one.disk.list_folders("") else [f"branch {one.number} is gone, and its tables are there"]
        lake = actors.opened(judge, one, create=False, maker=True)
        facts = lake.branch_facts()
        assert facts is not None
        problems = [] if facts.discarding else list(_judged(self._world, judge, one))
        discard_branch(lake)
        return problems + [f"branch {one.number} leaves {name}" for name in one.disk.list_folders("")]


def _judged(world: BranchesWorld, judge: Program, one: BranchSeen) -> Iterator[str]:
    """A branch, as a program finds it that opens it now."""
    where = f"branch {one.number}"
    report = check_lake(one.disk, deep=True, clock=judge.clock)
    yield from (f"{where}: {finding}" for finding in report.findings if finding.severity is Severity.ERROR)
    lake = Lake(one.disk.uri, False, storage=one.disk, clock=judge.clock, ids=judge.ids)
    folders = one.disk.list_folders("")
    yield from (f"{where} has {name} of its source" for name in NOT_TAKEN if name in folders)
    for topic in TOPICS:
        for version, path in sorted(missing_files(one.disk, topic)):
            yield f"{where} has version {version} of {topic}, and not {path}"
    log = read_log(lake, TOPICS)
    there = {place: {offset: value for offset, _, value in part.records} for place, part in log.items()}
    for acked in [*world.seen.acked[: one.acked], *one.squatted]:
        if there.get(acked.place, {}).get(acked.offset) != acked.value:
            yield f"{where} lacks {acked.value}, which was acknowledged"
    yield from _transactions(world, one, {value for part in there.values() for value in part.values()})
    yield from _positions(lake, where, there)
    log_of_transactions = TransactionLog(lake)
    yield from (f"{where}: {t.transactional_id} goes on" for t in log_of_transactions.all() if t.number)
    yield from (f"{where}: {t.transactional_id} waits to be applied" for t in log_of_transactions.incomplete())
    if GroupLog(lake).with_members():
        yield f"{where}: {SITTERS} has members, which are at the source"


def _transactions(world: BranchesWorld, one: BranchSeen, values: set[str]) -> Iterator[str]:
    for transaction in world.seen.transactions.values():
        parts = {value in values for value in transaction.values}
        if len(parts) > 1:
            yield f"branch {one.number} has a part of transaction {transaction.name}"
        if transaction.name in one.committed and False in parts:
            yield f"branch {one.number} lacks transaction {transaction.name}, which was committed before it began"


def _positions(lake: Lake, where: str, there: dict[Place, dict[int, str]]) -> Iterator[str]:
    """Whether each copier's group is as far as its output, and no position past its end."""
    groups = GroupLog(lake)
    ends = {(name, p): end for name in TOPICS for p, (_, end) in lake.topic(name).offsets().items()}
    for _, output, group in COPIERS:
        positions = {place: committed.offset for place, committed in groups.stable_offsets(group).items()}
        copied: dict[int, set[int]] = {p: set() for p in range(PARTITIONS)}
        for (topic, _), records in there.items():
            for value in records.values() if topic == output else ():
                _, number, at = value.partition("<")[2].split("/")
                copied[int(number)].add(int(at))
        for p in range(PARTITIONS):
            position = positions.get((INPUT, p), 0)
            if copied[p] != set(range(position)):
                yield f"{where} has {group} at {position} of {INPUT} [{p}], and {sorted(copied[p])[-3:]} in {output}"
    for group in (TAIL, *(group for _, _, group in COPIERS)):
        for place, committed in groups.stable_offsets(group).items():
            if committed.offset > ends[place]:
                yield f"{where} has {group} at {committed.offset} of {place}, which ends at {ends[place]}"


if __name__ == "__main__":
    sys.exit(repeat(__doc__, run_branches, BUGS, lambda report: report.history.counts))
