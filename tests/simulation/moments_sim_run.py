"""A cut, or a branch, amid which something happens at one moment: all of them can be tried, without any chance.

A seed is a moment, and what happens: just before the call `seed // 4` to the store of a cut (`seed // 3` of a branch)
that of `OF_CUTS` (`OF_BRANCHES`) which the rest says.

export PYTHONPATH=tests:tests/reliability
python tests/simulation/moments_sim_run.py cuts 17 --trace          # one moment of a cut
python tests/simulation/moments_sim_run.py branches 0 --runs 400    # all moments of a branch
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Final
from unittest.mock import patch

import branches_sim_bugs
import cuts_sim_bugs
from sim_running import Planted, repeat
from support.branched_lakes import Branched
from support.faults import of_this_thread
from support.logs import quiet, read, values
from support.purges import missing_files, purge_once
from support.rewrites import merge
from support.transactions import GROUP, SharedLake, copy, dies_before, stage
from transactions_sim_world import InlinePool

from tidelog.check.lake import Severity, check_lake
from tidelog.cuts.cut_log import CutLog
from tidelog.cuts.model import Cut, CutExistsError
from tidelog.groups.model import CommittedOffset
from tidelog.log.base.errors import TidelogError
from tidelog.log.delta.actions import Txn
from tidelog.log.rules.topics import Outcome
from tidelog.mirror import copying
from tidelog.operations.cuts import create_cut

NAME = "friday"
# What a group follows by plain commits.
TAILED, TAIL = "a", "tail"
# What another group has read a part of.
READER, READ = "reader", "in"
CONFIG = {"log_min_age_ms": "10000", "log_segment_delete_delay_ms": "1000"}


@dataclass
class MomentReport:
    """The result of a run. `happened`: whether there were that many calls."""

    problems: list[str]
    happened: bool
    digest: str


@dataclass
class _World:
    """A lake with a transaction that is decided and not applied, as its producer has died.

    `told`: the ids of the cuts that callers were given under the name. `read_id`: of the topic that was read.
    """

    shared: SharedLake = field(default_factory=lambda: SharedLake(**CONFIG))
    told: list[str] = field(default_factory=list)
    read_id: str = ""

    def __post_init__(self) -> None:
        process = self.shared.first
        late, self.soon = process.ready("late"), process.ready("soon")
        copy(self.soon, "before", offset=1)
        process.lake.topic("in").append(values("10"))
        process.groups.commit_offsets(TAIL, {(TAILED, 0): CommittedOffset(1)})
        self.read_id = process.lake.topic(READ).id
        process.groups.commit_offsets(READER, {(READ, 0): CommittedOffset(3, topic_id=self.read_id)})
        late.begin()
        stage(late, "a", "late")
        stage(late, "b", "late")
        dies_before(self.shared, "a", late)

    # --- what another process does -------------------------------------------------------------------------

    def another_transaction(self) -> None:
        """It is applied where the one that waits is not."""
        copy(self.soon, "meanwhile", offset=2)

    def a_commit_of_what_is_new(self) -> None:
        """A transaction without offsets ends, and a group that follows its topic commits that it has read it."""
        copy(self.soon, "meanwhile")
        end = self.shared.first.lake.topic(TAILED).offsets()[0][1]
        self.shared.first.groups.commit_offsets(TAIL, {(TAILED, 0): CommittedOffset(end)})

    def another_cut_of_that_name(self) -> None:
        """Another process makes it, too."""
        with suppress(CutExistsError):
            self.told.append(create_cut(self.shared.process().lake, NAME).id)

    def another_topic_of_that_name(self) -> None:
        """A topic is deleted, and created again with other records."""
        lake = self.shared.process().lake
        lake.delete_topic(READ)
        lake.create_topic(READ, 1)
        lake.topic(READ).append(values("0", "1", "2", "3"))

    def maintenance(self) -> None:
        """A topic grows old, and all of its past that is not held is taken away."""
        lake, clock = self.shared.process().lake, self.shared.clock
        merge(lake, "in")
        for _ in range(12):
            clock.pass_s(1.2)
            lake.commit("in", lambda state: Outcome((Txn("ages", state.version),), None))
        for _ in range(2):
            purge_once(lake, "in")
            clock.pass_s(2)


# What happens.
Event = Callable[[_World], None]
OF_CUTS: Final[tuple[Event, ...]] = (
    _World.another_transaction,
    _World.a_commit_of_what_is_new,
    _World.another_cut_of_that_name,
    _World.another_topic_of_that_name,
)
OF_BRANCHES: Final[tuple[Event, ...]] = (*OF_CUTS[:2], _World.maintenance)


class _At:
    """Does what a seed asks for at its moment, of the calls that the thread makes which asked for it."""

    def __init__(self, world: _World, events: Sequence[Event], seed: int) -> None:
        self.happened = False
        self.says = ""
        self._world = world
        self._event = events[seed % len(events)]
        self._left = seed // len(events)

    def __enter__(self) -> None:
        self._world.shared.storage.hook = of_this_thread(self._called)

    def __exit__(self, *_: object) -> None:
        self._world.shared.storage.hook = quiet
        if not self.happened:
            self.says = f"there was no moment for {self._event.__name__}"

    def _called(self, method: str, path: str, phase: str) -> None:
        self._left -= phase == "before"
        if self._left < 0 and not self.happened:
            self.happened = True
            self.says = f"{self._event.__name__} before {method} {path}"
            self._world.shared.storage.hook = quiet
            self._event(self._world)


def run_cut_moment(seed: int, planted: Planted = nullcontext, trace: list[str] | None = None) -> MomentReport:
    """A cut with a name, amid which something happens."""
    world = _World()
    lake, hook = world.shared.process().lake, _At(world, OF_CUTS, seed)
    cut: Cut | None = None
    with planted(), hook, suppress(CutExistsError):
        cut = create_cut(lake, NAME)
        world.told.append(cut.id)
    problems = [*_names(world), *(() if cut is None else _of_cut(world, cut))]
    return _report(hook, problems, trace, cut)


def _names(world: _World) -> Iterator[str]:
    there = CutLog(world.shared.process().lake).get(NAME).id
    if world.told != [there]:
        yield f"{world.told} were told of a cut of one name, which is {there}"


def _of_cut(world: _World, cut: Cut) -> Iterator[str]:
    lake = world.shared.process().lake
    ends = {topic: table.ranges[0][1] for topic, table in cut.topics.items()}
    positions = {group: {topic: at for (topic, _), at in of.items()} for group, of in cut.positions.items()}
    if READ in positions.get(READER, {}) and cut.tables[READ].topic_id != world.read_id:
        yield f"{READER} has an offset of {READ}, and it read another topic of that name"
    yield from _judged({topic: read(lake, topic, end=ends[topic]) for topic in ("a", "b")}, ends, positions)


def _judged(texts: dict[str, list[str]], ends: dict[str, int], positions: dict[str, dict[str, int]]) -> Iterator[str]:
    """What is there of the two topics, where topics end, and where groups are in them."""
    if sorted(texts["a"]) != sorted(texts["b"]):
        yield f"of transactions with a record in each there is {texts}"
    if lacking := {"before", "late"} - set(texts["a"]):
        yield f"it lacks {lacking}, which was decided before it began"
    for group, of in positions.items():
        yield from (
            f"{group} is at {at} of {topic}, which ends at {ends[topic]}"
            for topic, at in of.items()
            if at > ends[topic]
        )
    if positions.get(GROUP, {}).get("in") == 2 and "meanwhile" not in texts["a"]:
        yield f"{GROUP} is past what it has not written out"


def run_branch_moment(seed: int, planted: Planted = nullcontext, trace: list[str] | None = None) -> MomentReport:
    """A branch that is made, while something happens at its source."""
    world = _World()
    pair, hook = Branched(world.shared.storage, world.shared.clock), _At(world, OF_BRANCHES, seed)
    with planted(), patch.object(copying, "ThreadPoolExecutor", InlinePool), hook:
        try:
            pair.make()
            problems = []
        except TidelogError as e:
            problems = [f"{type(e).__name__}: {e}"]
    return _report(hook, problems or list(_of_branch(pair)), trace, pair.facts())


def _of_branch(pair: Branched) -> Iterator[str]:
    lake, groups = pair.branch(), pair.process().groups
    report = check_lake(lake, deep=True)
    yield from (str(finding) for finding in report.findings if finding.severity is Severity.ERROR)
    missing = missing_files(pair.target, "in")
    yield from (f"it has version {version} of 'in', and not {path}" for version, path in missing)
    ends = {topic: lake.topic(topic).offsets()[0][1] for topic in ("in", "a", "b")}
    positions = {g: {topic: one.offset for (topic, _), one in groups.offsets(g).items()} for g in (GROUP, TAIL)}
    yield from _judged({topic: read(lake, topic) for topic in ("a", "b")}, ends, positions)


def _report(hook: _At, problems: list[str], trace: list[str] | None, made: object) -> MomentReport:
    if trace is not None:
        trace += [hook.says, str(made)]
    return MomentReport(problems, hook.happened, hook.says)


if __name__ == "__main__":
    worlds = {"cuts": (run_cut_moment, cuts_sim_bugs), "branches": (run_branch_moment, branches_sim_bugs)}
    run, bugs = worlds[sys.argv.pop(1) if sys.argv[1:2] and sys.argv[1] in worlds else "cuts"]
    sys.exit(repeat(__doc__, run, bugs.AT_A_MOMENT, lambda report: Counter(happened=report.happened)))
