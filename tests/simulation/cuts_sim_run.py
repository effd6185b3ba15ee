"""One run of cuts amid transactions: a seed, the true code or a planted bug, and what was found. Or it repeats one.

export PYTHONPATH=tests:tests/reliability
python tests/simulation/cuts_sim_run.py 17 --trace      # everything that happens in seed 17
python tests/simulation/cuts_sim_run.py 0 --runs 1000   # many seeds, with what they found
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from random import Random
from unittest.mock import patch
from urllib.parse import unquote

import cuts_sim_actors as actors
from cuts_sim_actors import TAIL, UNDONE, CutSeen, CutsSeen
from cuts_sim_bugs import BUGS
from groups_sim_world import Program
from history import Place
from sim_running import Planted, repeat, staged
from transactions_sim_actors import maintainer
from transactions_sim_run import THREADED, Casting, TransactionsDirector, TransactionsReport
from transactions_sim_world import (
    COPIERS,
    INPUT,
    PARTITIONS,
    TOPIC_CONFIG,
    InlineHolder,
    InlinePool,
    TransactionsPlan,
    TransactionsWorld,
    inline,
)

from tidelog.log.base.errors import TidelogError
from tidelog.log.checkpoints.reading import newest_floor, read_checkpoint, whole_checkpoints
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Add, Remove, decode_entry
from tidelog.operations import cuts
from tidelog.retention import rewinds


class CutsWorld(TransactionsWorld):
    """Copiers, and those that make cuts of what they do."""

    def __init__(self, seed: int, plan: TransactionsPlan, trace: list[str] | None = None) -> None:
        super().__init__(seed, plan, trace)
        self.cuts = CutsSeen()


def run_cuts(seed: int, planted: Planted = nullcontext, trace: list[str] | None = None) -> TransactionsReport:
    """Run one seed."""
    world = CutsWorld(seed, _plan(seed), trace)
    with inline(world.scheduler), _inline_cuts(), staged(world.scheduler, THREADED, planted):
        problems = _Director(world).direct()
    return TransactionsReport(seed, problems, world.history.digest(), world.history)


def _plan(seed: int) -> TransactionsPlan:
    """Copiers in a hurry: much happens while a cut is made."""
    plan, rng = TransactionsPlan.of(seed), Random(f"cuts plan {seed}")
    trouble = replace(plan.trouble, freeze_at_put=rng.choice([0.0, 0.005]))
    pauses = {"pause_s": rng.choice([0.15, 0.4]), "mishap_s": rng.choice([5.0, 12.0])}
    return replace(plan, duration_s=rng.uniform(8, 14), copiers=2, trouble=trouble, **pauses)


@contextmanager
def _inline_cuts() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(patch.object(cuts, "ThreadPoolExecutor", InlinePool))
        for module in (cuts, rewinds):
            stack.enter_context(patch.object(module, "Holder", InlineHolder))
        yield


class _Director(TransactionsDirector):
    """Directs copiers, cutters, and a topic that is rewound."""

    def _prepare(self, setup: Program) -> None:
        super()._prepare(setup)
        setup.lake.create_topic(UNDONE, 1, TOPIC_CONFIG)

    def _casting(self) -> Casting:
        cast = [*super()._casting(), ("cutter", actors.cutter), ("cutter", actors.cutter)]
        cast += [("tailer", actors.tailer), ("scribe", actors.scribe), ("undoer", actors.undoer)]
        return cast if any(role is maintainer for _, role in cast) else [*cast, ("maintainer", maintainer)]

    def _judge(self) -> list[str]:
        problems = super()._judge()
        judge = self._program("second judge")
        try:
            return [*problems, *_names(self._world, judge), *_undone(self._world, judge), *self._of_cuts(judge)]
        except TidelogError as e:
            return [*problems, f"cuts can't be judged: {type(e).__name__}: {e}"]

    def _of_cuts(self, judge: Program) -> Iterator[str]:
        there = actors.named_now(judge)
        for one in self._world.cuts.cuts:
            yield from _judged(self._world, one)
            if one.cut.kept and not one.deleted and there.get(one.cut.name) == one.cut.id:
                yield from _held(self._world, one)


def _judged(world: CutsWorld, one: CutSeen) -> Iterator[str]:
    """A cut by the final log: nothing but offsets of it is looked at."""
    ends: dict[Place, int] = {(name, p): end for name, t in one.cut.topics.items() for p, end in t.ends.items()}
    where = f"cut {one.cut.name} {one.cut.id}"
    for acked in [*world.seen.acked[: one.acked], *world.cuts.undone[: one.undone]]:
        if acked.offset >= ends.get(acked.place, 0):
            yield f"{where} lacks {acked.value}, which was acknowledged before it began"
    within = {
        value: offset < ends.get(place, 0)
        for place, partition in world.seen.log.items()
        for offset, _, value in partition.records
    }
    for transaction in world.seen.transactions.values():
        parts = {within[value] for value in transaction.values if value in within}
        if len(parts) > 1:
            yield f"{where} has a part of transaction {transaction.name}"
        if transaction.name in one.committed and False in parts:
            yield f"{where} lacks transaction {transaction.name}, which was committed before it began"
    for _, output, group in COPIERS:
        positions = one.cut.positions.get(group, {})
        copied: dict[int, set[int]] = {p: set() for p in range(PARTITIONS)}
        for (topic, p), partition in world.seen.log.items():
            for offset, _, value in partition.records:
                if topic == output and offset < ends.get((topic, p), 0):
                    source, number, at = value.partition("<")[2].split("/")
                    assert source == INPUT
                    copied[int(number)].add(int(at))
        for p in range(PARTITIONS):
            position = positions.get((INPUT, p), 0)
            if copied[p] != set(range(position)):
                yield f"{where} has {group} at {position} of {INPUT} [{p}], and {sorted(copied[p])[-3:]} in {output}"
            if position > ends.get((INPUT, p), 0):
                yield f"{where} has {group} at {position} of {INPUT} [{p}], which ends at {ends.get((INPUT, p), 0)}"
    for (topic, p), position in one.cut.positions.get(TAIL, {}).items():
        if position > ends.get((topic, p), 0):
            yield f"{where} has {TAIL} at {position} of {topic} [{p}], which ends at {ends.get((topic, p), 0)}"


def _held(world: CutsWorld, one: CutSeen) -> Iterator[str]:
    """Whether each version of a cut that is kept can be read, with its files."""
    for folder, table in one.cut.tables.items():
        floor = newest_floor(world.disk, folder)
        bases = whole_checkpoints(world.disk.list_after(f"{folder}/{layout.LOG_FOLDER}"))
        base = next((c for c in reversed(bases) if floor < c.version <= table.version), None)
        if base is None and floor >= 0:
            yield f"cut {one.cut.name} is kept, and version {table.version} of {folder} is gone: the floor is {floor}"
            continue
        live = (
            set() if base is None else {a.path for a in read_checkpoint(world.disk, folder, base) if isinstance(a, Add)}
        )
        for version in range(0 if base is None else base.version + 1, table.version + 1):
            path = f"{folder}/{layout.entry_path(version)}"
            for action in decode_entry(version, world.disk.get(path), path).actions:
                if isinstance(action, Add):
                    live.add(action.path)
                elif isinstance(action, Remove):
                    live.discard(action.path)
        there = {info.path for sub in _folders(world, folder) for info in world.disk.list_after(sub)}
        for path in sorted(live):
            if f"{folder}/{unquote(path)}" not in there:
                yield f"cut {one.cut.name} is kept, and {folder}/{path} is gone"


def _folders(world: CutsWorld, folder: str) -> list[str]:
    return [folder, *(f"{folder}/{name}" for name in world.disk.list_folders(folder))]


def _names(world: CutsWorld, judge: Program) -> Iterator[str]:
    there = actors.named_now(judge)
    for name, cut_id in world.cuts.named.items():
        if cut_id is not None and there.get(name) != cut_id:
            yield f"cut {name} was {cut_id}, and is {there.get(name)}"


def _undone(world: CutsWorld, judge: Program) -> Iterator[str]:
    """Whether the records that a rewind was to take are gone, and all others there."""
    there = set()
    for batch in judge.lake.topic(UNDONE).read(0):
        there |= set(zip(batch["offset"].to_pylist(), batch["value"].to_pylist(), strict=True))
    for acked in world.cuts.undone:
        taken = [undo for undo in world.cuts.undos if undo.firsts[0] <= acked.offset]
        gone = any(undo.ends is not None and acked.offset < undo.ends[0] for undo in taken)
        maybe = any(undo.ends is None for undo in taken)
        if (acked.offset, acked.value.encode()) in there:
            if gone:
                yield f"{acked.value} at {acked.offset} is there after a rewind that took it out"
        elif not gone and not maybe:
            yield f"{acked.value} at {acked.offset} is gone, and no rewind took it out"


if __name__ == "__main__":
    sys.exit(repeat(__doc__, run_cuts, BUGS, lambda report: report.history.counts))
