"""What processes do about branches: make them amid transactions, go on where a predecessor died, write to them."""

from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa
from groups_sim_world import Program
from history import Acked
from sim_storage import Disk, SimStorage
from transactions_sim_actors import TROUBLED
from transactions_sim_world import AUDIT

from tidelog.groups.model import CommittedOffset, Member
from tidelog.groups.rules.members import join
from tidelog.log.base.errors import (
    LakeNotFoundError,
    LakeNotWholeError,
    MissingSegmentError,
    TidelogError,
    UnknownTopicError,
)
from tidelog.log.lake import Lake
from tidelog.mirror.branch.discarding import discard_branch
from tidelog.mirror.branch.making import make_branch
from tidelog.mirror.branch.plan import NotABranchError, OutOfReachError

MOST_BRANCHES = 3
SITTERS = "sitters"
# What a group of its own follows by plain commits.
TAILED, TAIL = "out-x", "tail"


@dataclass
class BranchSeen:
    """A branch that was begun, its disk, and what was acknowledged before: records, and committed transactions.

    `calls`: how often it was called for. `squatted`: what was acknowledged to a program that does not wait.
    """

    number: int
    disk: Disk
    acked: int
    committed: frozenset[str]
    calls: int = 0
    whole: bool = False
    discarding: bool = False
    squatted: list[Acked] = field(default_factory=list)


@dataclass
class BranchesSeen:
    """All branches, the one that is being made the last of them; and those that go, or are gone."""

    branches: list[BranchSeen] = field(default_factory=list)
    discarded: list[BranchSeen] = field(default_factory=list)

    @property
    def unfinished(self) -> BranchSeen | None:
        """The one that is being made."""
        return self.branches[-1] if self.branches and not self.branches[-1].whole else None


def opened(program: Program, one: BranchSeen, *, create: bool | None, maker: bool = False) -> Lake:
    """A branch, as a process reaches it."""
    world = program.world
    storage = SimStorage(
        one.disk, program.process, world.scheduler, world.rng, world.trouble, world.history, synced=True
    )
    return Lake(storage.uri, create, storage=storage, clock=program.clock, ids=program.ids, may_change_follower=maker)


def brancher(program: Program) -> None:
    """Makes branches, and goes on with one that it, or its predecessor, did not finish."""
    world = program.world
    seen: BranchesSeen = world.branched
    while not world.ending:
        program.pause(world.rng.uniform(0.2, 1.0) * world.plan.pause_s)
        one = seen.unfinished
        if one is None and seen.branches and world.rng.random() < 0.3:
            _discard(program, seen.branches.pop())
            continue
        if one is None:
            if len(seen.branches) == MOST_BRANCHES:
                return
            committed = frozenset(t.name for t in world.seen.transactions.values() if t.told == "committed")
            number = len(seen.branches)
            disk = Disk(f"branch-{number}", clock=world.disk._clock)
            one = BranchSeen(number, disk, len(world.seen.acked), committed)
            seen.branches.append(one)
        one.calls += 1
        world.history.counts["went on"] += one.calls > 1
        try:
            with_source(program, one)
        except TROUBLED:
            continue


def _discard(program: Program, one: BranchSeen) -> None:
    """Begin to discard a branch; it may be killed meanwhile."""
    one.discarding = True
    program.world.branched.discarded.append(one)
    with suppress(*TROUBLED, LakeNotFoundError):
        discard_branch(opened(program, one, create=False, maker=True), lambda _: program.storage)
        program.world.history.counts["discarded"] += 1


def with_source(program: Program, one: BranchSeen) -> None:
    """One call of the command. A branch that is out of reach after a while is given up."""
    world = program.world
    try:
        make_branch(program.lake, opened(program, one, create=None, maker=True))
    except NotABranchError:  # the last answer was lost
        pass
    except OutOfReachError as e:
        if one.calls == 1:
            world.history.violate(f"branch {one.number} of now is out of reach: {e}")
        discard_branch(opened(program, one, create=False, maker=True), lambda _: program.storage)
        world.history.counts["given up"] += 1
        one.calls = 0
        return
    except MissingSegmentError as e:
        world.history.violate(f"branch {one.number} misses a file of its source: {e}")
        return
    one.whole = True
    world.history.counts["branched"] += 1
    world.history.note(f"branch {one.number} is whole")


def squatter(program: Program) -> None:
    """Writes to a branch as soon as there is one, as a program that does not know that it is being made."""
    world = program.world
    rng = Random(f"squatter {program.process.name}")
    while not world.ending:
        program.pause(rng.uniform(0.002, 0.04) if world.branched.unfinished else 0.2)
        one = world.branched.unfinished or (world.branched.branches[-1] if world.branched.branches else None)
        if one is None or one.discarding:
            continue
        value = f"{program.process.name}:{world.number()}"
        try:
            ranges = (
                opened(program, one, create=False)
                .topic(AUDIT)
                .append(pa.table({"value": [value], "partition": pa.array([0], pa.int32())}))
            )
        except (LakeNotWholeError, LakeNotFoundError, UnknownTopicError) as e:
            world.history.counts["refused in a branch"] += isinstance(e, LakeNotWholeError)
            continue
        except (*TROUBLED, TidelogError):
            continue
        one.squatted.append(Acked((AUDIT, 0), ranges[0][0], value))
        world.history.counts["wrote to a branch"] += 1
        program.pause(2.0)


def tailer(program: Program) -> None:
    """Commits how far an output has grown, outside of any transaction."""
    world = program.world
    rng = Random(f"tailer {program.process.name}")
    while not world.ending:
        program.pause(rng.uniform(0.05, 0.3) * world.plan.pause_s)
        with suppress(*TROUBLED):
            ends = {(TAILED, p): CommittedOffset(end) for p, (_, end) in program.lake.topic(TAILED).offsets().items()}
            program.log.commit_offsets(TAIL, ends)


def sit(program: Program) -> None:
    """A member joins a group, and stays."""
    member = Member("sitter", "client", "host", 10_000, 60_000, (("range", b""),))
    program.log.decide(SITTERS, lambda view: join(view, SITTERS, member, rejoins=False, now_ms=1))
