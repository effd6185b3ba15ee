"""Batches of transactions become parts: read into one table, staged as segments, noted in the log of transactions.

A batch that is answered is durable, and any broker can commit it. The commit gives it its offset, so that its answer
names a lower bound: the partition's end, and what the transaction has staged there before. For worker threads.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tidelog.broker.produce.entry import Appended, Settled, codec_of
from tidelog.broker.produce.linger import FileBudget
from tidelog.broker.produce.reading import Chunk, UnitReader
from tidelog.broker.produce.repeats import Landed
from tidelog.broker.produce.request import ProducedBatch
from tidelog.log.base.errors import (
    OutcomeUnknownError,
    OutOfOrderSequenceError,
    SegmentTooOldError,
    TidelogError,
)
from tidelog.log.door.commit_objects import make_durable
from tidelog.log.group_commit.requests import I64, refused_units
from tidelog.log.lake import Lake
from tidelog.log.records.checks import to_records
from tidelog.log.rules.topics import require_partition
from tidelog.log.segments.staging import Stager
from tidelog.log.segments.writer import Staged
from tidelog.log.storage.orphans import discard
from tidelog.log.topic import Topic
from tidelog.transactions.part_rules import ProducerIdentity, TransactionBatch
from tidelog.transactions.transaction_log import TransactionLog

# How often a batch is staged that the log of transactions has gone past meanwhile.
_TRIES = 3
_STAGE_AGAIN = (SegmentTooOldError, OutOfOrderSequenceError)

_Parts = list[tuple[TransactionBatch, Sequence[Staged]]]


class PartWriter:
    """Makes the parts of one topic, as `EntryWriter` makes its entries.

    `open_topic` gives a fresh handle of the topic.
    """

    def __init__(
        self,
        open_topic: Callable[[], Topic],
        lake: Lake,
        reader: UnitReader,
        transactions: TransactionLog,
        budget: FileBudget,
    ) -> None:
        self.budget = budget
        self._open_topic = open_topic
        self._lake = lake
        self._reader = reader
        self._transactions = transactions

    def read(self, units: Sequence[ProducedBatch]) -> Chunk:
        """Check batches and read their records, all at once."""
        return self._reader.read(self._open_topic(), units)

    def write(self, chunks: Sequence[Chunk], units: Sequence[ProducedBatch]) -> Settled:
        """Stage what was read before and `units`, in this order. Raises why the topic can't be had."""
        return StagedParts(self._lake, self._open_topic(), self._transactions, [*chunks, self.read(units)]).run()


@dataclass(slots=True)
class _Run:
    """New units of one producer for one partition, which follow each other. `repeats`: units that repeat some of them.

    A repeat is answered as the run is: while the run is not noted, nothing of what it repeats may be there.
    """

    batch: TransactionBatch
    units: list[int] = field(default_factory=list)
    repeats: list[int] = field(default_factory=list)

    @property
    def everything(self) -> list[int]:
        """All units whose answers depend on it."""
        return [*self.units, *self.repeats]


class StagedParts:
    """The units of one go, each of which has its outcome when it has run: clients repeat what failed."""

    def __init__(self, lake: Lake, topic: Topic, transactions: TransactionLog, chunks: Sequence[Chunk]) -> None:
        self._lake = lake
        self._topic = topic
        self._transactions = transactions
        self._refused = [one for chunk in chunks for one in chunk.refused]
        self._units = [unit for chunk in chunks for unit in chunk.units]
        self._counts = np.array([count for chunk in chunks for count in chunk.counts], np.int64)
        self._table = pa.concat_tables([chunk.table for chunk in chunks])
        self._errors: dict[int, TidelogError] = {}
        # Of each unit how many records its transaction has in its partition before it, as far as is known.
        self._before: dict[int, int] = {}

    def run(self) -> Settled:
        """Stage all units that can be, and note them in the log of transactions; what became of all."""
        left = list(range(len(self._units)))
        for attempt in range(_TRIES):
            if not left:
                break
            left = self._attempt(left, is_last=attempt == _TRIES - 1)
        appended = [self._appended(at) for at in range(len(self._units)) if at not in self._errors]
        refused = [(self._units[at], error) for at, error in self._errors.items()]
        return Settled(appended, [*self._refused, *refused])

    def _appended(self, at: int) -> Appended:
        unit, state = self._units[at], self._topic.known
        bound = state.end(unit.partition) + self._before.get(at, 0)
        return Appended(unit, Landed(bound, None), state.start(unit.partition), None)

    # --- one attempt ---------------------------------------------------------------------------------------

    def _attempt(self, left: Sequence[int], *, is_last: bool) -> list[int]:
        """Stage these units; those that are to be staged again."""
        self._topic.state()
        records, rows = self._checked(left)
        runs = self._runs([unit for unit in left if unit not in self._errors])
        parts: _Parts = []
        try:
            parts = self._staged(runs, records, rows)
            answers = self._transactions.stage(parts)
        except OutcomeUnknownError as e:  # the parts may be noted: their files stay
            self._fail(runs, e)
            return []
        except TidelogError as e:
            self._discard(parts)
            self._fail(runs, e)
            return []
        again: list[int] = []
        for run, part, answer in zip(runs, parts, answers, strict=True):
            if answer is None:
                continue
            self._discard([part])
            if isinstance(answer, _STAGE_AGAIN) and not is_last:
                again += run.everything
            else:
                self._fail([run], answer)
        return sorted(again)

    def _checked(self, left: Sequence[int]) -> tuple[pa.Table, I64]:
        """The records of units that pass the topic's rules, and the unit of each."""
        topic, config, now_ms = self._topic, self._topic.config(), self._topic.now_ms()
        topic.grow_for(self._table)
        typing = topic.typing()
        units = np.repeat(np.arange(len(self._units)), self._counts)
        for unit in left:
            try:
                require_partition(topic.known, topic.name, self._units[unit].partition)
            except TidelogError as e:
                self._errors[unit] = e
        while True:
            rows = np.flatnonzero(np.isin(units, [unit for unit in left if unit not in self._errors]))
            table, own = self._table.take(pa.array(rows)), units[rows]
            if not len(rows):
                return table, own
            records, refused = refused_units(
                table, own, lambda part: to_records(part, topic.name, config, now_ms, sizes_judged=True, typing=typing)
            )
            if not refused:
                return records, own
            self._errors |= refused

    def _runs(self, units: Sequence[int]) -> list[_Run]:
        """What is new of these units, in runs; what is staged already needs nothing more."""
        batches = [self._batch(unit) for unit in units]
        runs: dict[tuple[ProducerIdentity, int], _Run] = {}
        for unit, batch, answer in zip(units, batches, self._transactions.judge(batches), strict=True):
            if isinstance(answer, TidelogError):
                self._errors[unit] = answer
            elif answer is None:
                if (before := runs.get((batch.producer, batch.partition))) is not None:
                    before.repeats.append(unit)
            else:
                run = runs.setdefault((batch.producer, batch.partition), _Run(replace(batch, count=0)))
                self._before[unit] = answer + run.batch.count
                run.batch = replace(run.batch, count=run.batch.count + batch.count)
                run.units.append(unit)
        return list(runs.values())

    def _batch(self, at: int) -> TransactionBatch:
        unit = self._units[at]
        header = unit.header
        producer = ProducerIdentity(unit.transactional_id, header.producer_id, header.producer_epoch)
        place = self._topic.name, self._topic.id, unit.partition
        return TransactionBatch(producer, *place, header.base_sequence, header.count, unit.begins)

    def _staged(self, runs: Sequence[_Run], records: pa.Table, units: I64) -> _Parts:
        """The runs' segments, durable. When it raises, none is left."""
        segments: dict[tuple[ProducerIdentity, int], list[Staged]] = defaultdict(list)
        by_producer: dict[ProducerIdentity, list[_Run]] = defaultdict(list)
        for run in runs:
            by_producer[run.batch.producer].append(run)
        stagers: list[Stager] = []
        try:
            for producer, own in by_producer.items():
                stager = self._topic.stager(codec_of([self._units[unit] for run in own for unit in run.units]))
                stagers.append(stager)
                for run in own:
                    rows = np.flatnonzero(np.isin(units, run.units))
                    stager.add(records.take(pa.array(rows)), np.full(len(rows), run.batch.partition, np.int32))
                for segment in stager.finish():
                    segments[producer, segment.partition].append(segment)
            paths = [f"{self._topic.folder}/{segment.path}" for staged in segments.values() for segment in staged]
            if paths:
                make_durable(self._lake.storage, paths)
        except BaseException:
            for stager in stagers:
                stager.abort()
            raise
        return [(run.batch, tuple(segments[run.batch.producer, run.batch.partition])) for run in runs]

    def _discard(self, parts: _Parts) -> None:
        paths = [f"{self._topic.folder}/{segment.path}" for _, segments in parts for segment in segments]
        discard(self._lake.storage, paths)

    def _fail(self, runs: Sequence[_Run], error: TidelogError) -> None:
        self._errors |= {unit: error for run in runs for unit in run.everything}
