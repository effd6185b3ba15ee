"""What processes do: append to the input, copy it exactly once, look at what is there, and look after the lake."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pyarrow as pa
from groups_sim_world import Program
from history import Acked, Look, Sent, Stretch, Transaction
from history import Place as LogPlace
from sim_director import read_on
from transactions_sim_world import AUDIT, COPIERS, INPUT, PARTITIONS, TIMEOUT_MS, TOPICS

from tidelog.groups.store.adapters import GroupsAndTransactions, LoggedOffsets
from tidelog.log.base.errors import (
    ContendedLogError,
    InvalidTransactionStateError,
    OutcomeUnknownError,
    ProducerFencedError,
    StorageFullError,
    StorageUnavailableError,
    TransactionAbortedError,
    TransactionalIdNotFoundError,
    UnknownTransactionalIdError,
    UnstableOffsetError,
)
from tidelog.retention.maintenance import maintain
from tidelog.transactions.lifecycle import TransactionPhase
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.ports import GroupIdentity, OffsetToCommit
from tidelog.transactions.transaction_log import TransactionLog
from tidelog.transactions.upkeep import TransactionUpkeep

TROUBLED = (StorageUnavailableError, StorageFullError, OutcomeUnknownError, ContendedLogError)


def producer(program: Program) -> None:
    """Appends to the input now and then."""
    world = program.world
    topic = program.until_it_answers(lambda: program.lake.topic(INPUT))
    while not world.ending:
        program.pause(world.rng.uniform(0.5, 1.5) * world.plan.pause_s)
        values = [f"{program.process.name}:{world.number()}" for _ in range(world.rng.choice([1, 3, 6]))]
        partition = world.rng.randrange(PARTITIONS)
        _send(program, INPUT, values)
        with suppress(*TROUBLED):
            ranges = topic.append(pa.table({"value": values, "partition": pa.array([partition] * len(values))}))
            first = ranges[partition][0]
            world.seen.acked += [Acked((INPUT, partition), first + i, value) for i, value in enumerate(values)]


def _send(program: Program, topic: str, values: list[str]) -> None:
    for value in values:
        program.world.seen.sent[value] = Sent(topic, program.process.name, len(program.world.seen.sent))


# --- copying -----------------------------------------------------------------------------------------------


def copier(transactional_id: str) -> Callable[[Program], None]:
    """The role of copying with this id; all of them read on where the id's group is."""
    output, group = next((output, group) for one, output, group in COPIERS if one == transactional_id)
    return lambda program: _Copying(program, transactional_id, output, group).run()


class _Copying:
    def __init__(self, program: Program, transactional_id: str, output: str, group: str) -> None:
        self._program = program
        self._world = program.world
        self._id = transactional_id
        self._output = output
        self._group = group
        self._input = program.until_it_answers(lambda: program.lake.topic(INPUT))

    def run(self) -> None:
        """Copy until the world ends and everything is copied, or until a successor has taken over."""
        while not self._is_done():
            manager = TransactionManager(
                self._program.lake, self._id, LoggedOffsets(self._program.log), timeout_ms=TIMEOUT_MS
            )
            try:
                manager.init()
                self._world.history.counts["init"] += 1
                while not self._is_done():
                    self._copy_some(manager)
            except ProducerFencedError:
                self._world.history.counts["fenced"] += 1
                if self._world.ending or self._world.rng.random() < 0.5:
                    return
                self._program.pause(self._world.rng.uniform(0.1, 4.0))
            except UnknownTransactionalIdError:
                self._world.history.counts["forgotten"] += 1
            except TROUBLED:
                self._program.pause(self._world.rng.uniform(0.1, 1.0))

    def _is_done(self) -> bool:
        if not self._world.ending:
            return False
        with suppress(*TROUBLED, UnstableOffsetError):
            return all(self._behind().get(place, 0) >= end for place, end in self._ends().items())
        return False

    def _ends(self) -> dict[LogPlace, int]:
        return {(INPUT, p): end for p, (_, end) in self._input.offsets().items()}

    def _behind(self) -> dict[LogPlace, int]:
        return {place: one.offset for place, one in self._program.log.stable_offsets(self._group).items()}

    def _copy_some(self, manager: TransactionManager) -> None:
        """One transaction, to whatever end. Raises what ends a producer."""
        self._program.pause(self._world.rng.uniform(0.2, 1.2) * self._world.plan.pause_s)
        try:
            behind, ends = self._behind(), self._ends()
        except (*TROUBLED, UnstableOffsetError):
            return
        place = self._world.rng.choice(sorted(ends))
        at = behind.get(place, 0)
        upto = min(ends[place], at + self._world.rng.choice([1, 3, 8]))
        if at >= upto:
            return
        one = Transaction(f"{self._program.process.name}#{self._world.number()}")
        try:
            offsets = self._read(place, at, upto)
            manager.begin()
            self._world.seen.transactions[one.name] = one
            self._stage(manager, one, self._output, [f"<{INPUT}/{place[1]}/{offset}" for offset in offsets])
            self._stage(manager, one, AUDIT, [""])
            if self._world.rng.random() < 0.15:
                self._program.pause(self._world.rng.uniform(0.5, 10.0))
            manager.add_offsets(GroupIdentity(self._group), {place: OffsetToCommit(upto)})
            if self._world.rng.random() < 0.3:
                self._program.pause(self._world.rng.uniform(0.5, 5.0))
        except (*TROUBLED, TransactionAbortedError):
            if manager.phase is TransactionPhase.OPEN:
                self._abort(manager, one)
            return
        if self._world.rng.random() < 0.15:
            self._abort(manager, one)
        else:
            self._commit(manager, one)

    def _read(self, place: LogPlace, at: int, upto: int) -> list[int]:
        stretch = Stretch(self._program.process.name, self._group, place)
        for batch in self._input.read(place[1], at, upto):
            values = (value.decode() for value in batch["value"].to_pylist())
            stretch.reads += zip(batch["offset"].to_pylist(), values, strict=True)
        self._world.seen.stretches.append(stretch)
        return [offset for offset, _ in stretch.reads]

    def _stage(self, manager: TransactionManager, one: Transaction, topic: str, ends: list[str]) -> None:
        values = [f"{one.name}:{self._world.number()}{end}" for end in ends]
        _send(self._program, topic, values)
        one.values |= dict.fromkeys(values, topic)
        manager.stage(topic, pa.table({"value": values}), np.zeros(len(values), np.int32))

    def _commit(self, manager: TransactionManager, one: Transaction) -> None:
        one.asked_to_commit = True
        while True:
            try:
                manager.commit()
            except TransactionAbortedError:
                self._abort(manager, one)
                return
            except TROUBLED:
                self._world.history.counts["commit again"] += 1
                if manager.phase is TransactionPhase.OPEN and self._world.rng.random() < 0.3:
                    self._abort(manager, one)
                    return
                self._program.pause(self._world.rng.uniform(0.05, 2.0))
            else:
                self._told(one, "committed")
                return

    def _abort(self, manager: TransactionManager, one: Transaction) -> None:
        while True:
            try:
                manager.abort()
            except InvalidTransactionStateError:
                self._commit(manager, one)
                return
            except TROUBLED:
                self._program.pause(self._world.rng.uniform(0.05, 2.0))
            else:
                self._told(one, "aborted")
                return

    def _told(self, one: Transaction, what: str) -> None:
        one.told = what
        self._world.history.counts[what] += 1
        self._world.history.note(f"{what} {one.name}")


# --- looking -----------------------------------------------------------------------------------------------


def reader(program: Program) -> None:
    """Follows the outputs from the start, and sometimes begins again."""
    world = program.world
    stretches: dict[LogPlace, Stretch] = {}
    while not world.ending:
        program.pause(world.rng.uniform(0.2, 1.5) * world.plan.pause_s)
        with suppress(*TROUBLED):
            read_on(program, world.rng.choice(TOPICS), world.seen, stretches)


def watcher(program: Program) -> None:
    """Looks at the groups' offsets, which ends transactions that are open for too long, then at all bounds."""
    world = program.world
    while not world.ending:
        program.pause(world.rng.uniform(0.2, 1.5) * world.plan.pause_s)
        with suppress(*TROUBLED, UnstableOffsetError):
            committed = {
                (group, place): one.offset
                for _, _, group in COPIERS
                for place, one in program.log.stable_offsets(group).items()
            }
            bounds = {(name, p): ends for name in TOPICS for p, ends in program.lake.topic(name).offsets().items()}
            world.seen.looks.append(Look(program.process.name, bounds, committed))


def operator(program: Program) -> None:
    """Aborts what an id has open, whatever it is."""
    world = program.world
    transactions = TransactionLog(program.lake)
    while not world.ending:
        program.pause(world.rng.uniform(0.5, 3.0) * world.plan.pause_s)
        with suppress(*TROUBLED, InvalidTransactionStateError, TransactionalIdNotFoundError):
            transactions.abort_open(world.rng.choice(COPIERS)[0])
            world.history.counts["aborted by the operator"] += 1


def maintainer(program: Program) -> None:
    """Runs maintenance over and over."""
    world = program.world
    while not world.ending:
        program.pause(world.rng.uniform(0.5, 3.0) * world.plan.pause_s)
        transactions = TransactionUpkeep(program.lake, LoggedOffsets(program.log))
        with suppress(*TROUBLED):
            report = maintain(
                program.lake,
                groups=GroupsAndTransactions(program.log, transactions),
                needed=transactions.needed_files,
            )
            world.history.counts["maintained"] += 1
            world.history.counts["deleted files"] += sum(
                len(topic.purge.deleted) for topic in report.topics if topic.purge is not None
            )
            world.history.note(f"maintained {report.failures()}")
