"""What processes do about cuts: make them, keep them, delete them, and rewind a topic that others append to."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa
from groups_sim_world import Program
from history import Acked
from transactions_sim_actors import TROUBLED

from tidelog.cuts.cut_log import CutLog
from tidelog.cuts.model import Cut, CutExistsError, CutLostError, UnknownCutError
from tidelog.groups.model import CommittedOffset
from tidelog.operations.cuts import create_cut, delete_cut, take_cut
from tidelog.operations.rewinds import rewind_topics

# What rewinds are made of; nothing else is said of it.
UNDONE = "undone"
# What a group of its own follows by plain commits.
TAILED, TAIL = "out-x", "tail"
# Names that cutters fight about.
NAMES = 3


@dataclass
class CutSeen:
    """A cut that was made, and what clients knew before it began: acknowledged records, and committed transactions."""

    cut: Cut
    acked: int
    undone: int
    committed: frozenset[str]
    deleted: bool = False


@dataclass
class UndoSeen:
    """A rewind of `UNDONE`: the offsets from which on records leave, and where it ended; None until it says so."""

    firsts: Mapping[int, int]
    ends: Mapping[int, int] | None = None


@dataclass
class CutsSeen:
    """What these processes saw. `named`: the cut that a name stands for, None where that is not known."""

    cuts: list[CutSeen] = field(default_factory=list)
    named: dict[str, str | None] = field(default_factory=dict)
    undone: list[Acked] = field(default_factory=list)
    undos: list[UndoSeen] = field(default_factory=list)


def _far_away(program: Program) -> None:
    """Some of the program's calls are slow, so that much happens while it makes a cut, or rewinds."""
    world = program.world
    if not world.ending:
        program.storage._trouble = replace(world.trouble, slow=world.rng.choice([0.01, 0.04]))


def cutter(program: Program) -> None:
    """Makes cuts, some of a name that another one may take, keeps some, and deletes some."""
    world = program.world
    seen: CutsSeen = world.cuts
    _far_away(program)
    while not world.ending:
        program.pause(world.rng.uniform(0.3, 2.0) * world.plan.pause_s)
        shared = world.rng.random() < 0.4
        name = f"shared-{world.rng.randrange(NAMES)}" if shared else f"own-{world.number()}"
        committed = frozenset(one.name for one in world.seen.transactions.values() if one.told == "committed")
        acked, undone = len(world.seen.acked), len(seen.undone)
        try:
            cut = create_cut(program.lake, name, keep=world.rng.random() < 0.4)
        except CutExistsError:
            world.history.counts["cut refused"] += 1
            _delete(program, name)
            continue
        except (*TROUBLED, CutLostError):
            if shared:
                seen.named[name] = None
            continue
        world.history.counts["cut"] += 1
        world.history.counts["cut kept"] += cut.kept
        world.history.note(f"cut {name} {cut.id}")
        seen.cuts.append(CutSeen(cut, acked, undone, committed))
        if not shared or seen.named.get(name, "") == "":
            seen.named[name] = cut.id


def _delete(program: Program, name: str) -> None:
    world, seen = program.world, program.world.cuts
    if world.rng.random() < 0.5:
        return
    seen.named[name] = None  # from here on any of several may have it
    try:
        gone = delete_cut(program.lake, name)
    except UnknownCutError:
        return
    except TROUBLED:
        for one in seen.cuts:
            one.deleted |= one.cut.name == name
        return
    for one in seen.cuts:
        one.deleted |= one.cut.id == gone.id
    world.history.counts["cut deleted"] += 1


def scribe(program: Program) -> None:
    """Appends to the topic that is rewound."""
    world = program.world
    topic = program.until_it_answers(lambda: program.lake.topic(UNDONE))
    while not world.ending:
        program.pause(world.rng.uniform(0.3, 1.2) * world.plan.pause_s)
        values = [f"{program.process.name}:{world.number()}" for _ in range(world.rng.choice([1, 3]))]
        with suppress(*TROUBLED):
            ranges = topic.append(pa.table({"value": values, "partition": pa.array([0] * len(values), pa.int32())}))
            first = ranges[0][0]
            world.cuts.undone += [Acked((UNDONE, 0), first + i, value) for i, value in enumerate(values)]


def tailer(program: Program) -> None:
    """Commits how far an output has grown, outside of any transaction."""
    world = program.world
    while not world.ending:
        program.pause(world.rng.uniform(0.5, 1.5) * world.plan.pause_s)
        with suppress(*TROUBLED):
            ends = {(TAILED, p): CommittedOffset(end) for p, (_, end) in program.lake.topic(TAILED).offsets().items()}
            program.log.commit_offsets(TAIL, ends)


def undoer(program: Program) -> None:
    """Takes a cut, and a while later rewinds to it, while the scribe goes on."""
    world = program.world
    _far_away(program)
    while not world.ending:
        program.pause(world.rng.uniform(0.5, 2.0) * world.plan.pause_s)
        with suppress(*TROUBLED):
            cut = take_cut(program.lake)
            program.pause(world.rng.uniform(0.2, 1.5) * world.plan.pause_s)
            undo = UndoSeen(cut.topics[UNDONE].ends)
            world.cuts.undos.append(undo)
            done = rewind_topics(program.lake, cut, [UNDONE], execute=True)
            if not done.failed:
                undo.ends = done.topics[0].ends
                world.history.counts["rewound"] += 1
                world.history.counts["appended amid a rewind"] += bool(done.topics[0].arrived)
                world.history.note(f"rewound from {dict(undo.firsts)} to {dict(undo.ends)}")


def named_now(program: Program) -> dict[str, str]:
    """{name: id} of the cuts that there are."""
    return {name: cut.id for name, cut in CutLog(program.lake).all().items()}
