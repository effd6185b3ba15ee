"""Produced batches are checked, and noted or read into one table: those of an entry as those of transactions' parts."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from tidelog.broker.base.cluster_view import ClusterView
from tidelog.broker.produce.leader_hints import ACKS_ALL, too_few_in_sync
from tidelog.broker.produce.request import ProducedBatch
from tidelog.broker.records.batches import check
from tidelog.broker.records.columns import COLUMNS, Columns, RecordCodec, RecordRules
from tidelog.broker.records.errors import CorruptBatchError
from tidelog.log.base.errors import InvalidRecordError, TidelogError
from tidelog.log.segments.noted import NotedPiece, NotedRecords
from tidelog.log.topic import Topic

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Units whose records are read, and how many each has; `refused`: those that can't be taken, and why."""

    units: Sequence[ProducedBatch]
    counts: Sequence[int]
    records: pa.Table | NotedRecords
    refused: Sequence[tuple[ProducedBatch, BaseException]]

    @property
    def table(self) -> pa.Table:
        """The records as a table."""
        return self.records.table if isinstance(self.records, NotedRecords) else self.records


def together(chunks: Sequence[Chunk]) -> Chunk:
    """Chunks whose units come by partition as one such chunk, in the order of the chunks. No record is copied."""
    chunks = [chunk for chunk in chunks if chunk.units or chunk.refused] or chunks[:1]
    if len(chunks) == 1:
        return chunks[0]
    refused = [one for chunk in chunks for one in chunk.refused]
    noted = [chunk.records for chunk in chunks if isinstance(chunk.records, NotedRecords)]
    if len(noted) == len(chunks):
        counted = [one for chunk in chunks for one in zip(chunk.units, chunk.counts, strict=True)]
        counted.sort(key=lambda one: one[0].partition)
        units, counts = [unit for unit, _ in counted], [count for _, count in counted]
        return Chunk(units, counts, NotedRecords.together(noted), refused)
    pieces = [piece for chunk in chunks for piece in _by_partition(chunk)]
    pieces.sort(key=lambda piece: piece.units[0].partition)
    return Chunk(
        [unit for piece in pieces for unit in piece.units],
        [count for piece in pieces for count in piece.counts],
        pa.concat_tables([piece.table for piece in pieces] or [chunk.table for chunk in chunks]),
        refused,
    )


def _by_partition(chunk: Chunk) -> Iterator[Chunk]:
    first = row = 0
    table = chunk.table
    for _, units in groupby(chunk.units, lambda unit: unit.partition):
        own = list(units)
        counts = chunk.counts[first : first + len(own)]
        rows = sum(counts)
        yield Chunk(own, counts, table.slice(row, rows), ())
        first, row = first + len(own), row + rows


@dataclass(frozen=True, slots=True)
class UnitReader:
    """Reads the batches of any topic. For worker threads.

    `cluster()`: the brokers that run; `default_factor`: the replication factor of topics that were created without one.
    """

    records: RecordCodec
    cluster: Callable[[], ClusterView]
    default_factor: int

    def read(self, topic: Topic, units: Sequence[ProducedBatch]) -> Chunk:
        """Check batches and read their records, all at once. What is wrong with one is its own matter.

        Those of a plain topic are only noted, where all units are plainly right and come by partition.
        Raises only why the topic can't be had, never for what a batch holds.
        """
        config = topic.config()
        factor = topic.known.replication_factor or self.default_factor
        too_few = too_few_in_sync(self.cluster(), topic.name, config.min_insync_replicas, factor)
        refused: list[tuple[ProducedBatch, BaseException]] = []
        checked: list[ProducedBatch] = []
        rules = RecordRules.of(topic.name, config, topic.now_ms())
        if too_few is None and units and rules.create_time and topic.typing() is None:
            noted = self._noted(units, rules, config.max_message_bytes)
            if noted is not None:
                return noted
        for unit in units:
            if too_few is not None and unit.acks == ACKS_ALL:
                refused.append((unit, too_few))
                continue
            try:
                check(unit.header, unit.batch, topic=topic.name, most_bytes=config.max_message_bytes)
                checked.append(unit)
            except TidelogError as e:
                refused.append((unit, e))
        columns = self._columns([unit.batch for unit in checked], rules)
        refused += [(checked[at], error) for at, error in columns.refused.items()]
        kept = [at for at, count in enumerate(columns.counts) if count]
        return Chunk([checked[at] for at in kept], [columns.counts[at] for at in kept], columns.table, refused)

    def _noted(self, units: Sequence[ProducedBatch], rules: RecordRules, most_bytes: int) -> Chunk | None:
        """Units whose records are all noted; None where one of them is not plainly right."""
        try:
            notes = self.records.noted([unit.batch for unit in units], rules, most_bytes)
        except Exception:  # it is read by itself then, and says why
            logger.exception("Noting %d record batches of topic '%s' failed.", len(units), rules.topic)
            return None
        if notes is None:
            return None
        pieces, first = [], 0
        for partition, own in groupby([unit.partition for unit in units]):
            end = first + len(list(own))
            pieces.append(NotedPiece(partition, notes, first, end, sum(notes.counts[first:end])))
            first = end
        return Chunk(units, notes.counts, NotedRecords(pieces), ())

    def _columns(self, batches: Sequence[bytes | memoryview], rules: RecordRules) -> Columns:
        """The records of batches. Where reading them fails in a way that no rule knows, they are read one by one.

        They may come from many clients, and the one whose batch it was must not fail the others'.
        """
        try:
            return self.records.columns(batches, rules)
        except Exception as e:
            logger.exception("Reading %d record batches of topic '%s' failed.", len(batches), rules.topic)
            error = _unreadable(e, rules.topic)
        if len(batches) == 1:
            return Columns(COLUMNS.empty_table(), [0], {0: error})
        alone = [self._columns([batch], rules) for batch in batches]
        return Columns(
            pa.concat_tables([one.table for one in alone]),
            [one.counts[0] for one in alone],
            {at: one.refused[0] for at, one in enumerate(alone) if one.refused},
        )


def _unreadable(error: Exception, topic: str) -> TidelogError:
    if isinstance(error, MemoryError):  # the client may send it again: there may be more memory then
        return CorruptBatchError(f"The memory for a record batch for topic '{topic}' is not there.")
    return InvalidRecordError(f"A record batch for topic '{topic}' can't be read; the broker's log says why.")
