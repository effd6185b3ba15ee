"""Raw batches of many requests become one entry: checked, read into one table, committed. For worker threads."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from tidelog.broker.produce.linger import FileBudget
from tidelog.broker.produce.reading import Chunk, UnitReader, together
from tidelog.broker.produce.repeats import Landed, Repeats
from tidelog.broker.produce.request import DuplicateSequenceError, ProducedBatch
from tidelog.broker.records.batches import CODECS, NONE, patched
from tidelog.broker.records.topic_codec import codec_of_topic
from tidelog.broker.records.unpacking import repacked
from tidelog.log.appends.committer import ShareCommitter
from tidelog.log.group_commit.engine import GroupCommit
from tidelog.log.group_commit.requests import ProduceRequests
from tidelog.log.lake import Lake
from tidelog.log.rules.sequences import ProducerBatch
from tidelog.log.segments.noted import NotedRecords
from tidelog.log.topic import Topic

logger = logging.getLogger(__name__)

# Batches of this size show what their codec is worth: nothing where it leaves more than this share of their records.
_SHOWING_BYTES: Final = 2 * 1024
_HARDLY_SMALLER: Final = 0.9


# Made for each unit: freezing a class would make each field of it a call.
@dataclass(slots=True)
class Appended:
    """A unit that is in the log. `batch`: it as consumers get it, None where they must get it from its segment."""

    unit: ProducedBatch
    landed: Landed
    log_start_offset: int
    batch: bytes | None


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of an entry's units; `refused` have nothing in it."""

    appended: Sequence[Appended]
    refused: Sequence[tuple[ProducedBatch, BaseException]]


class UnsettledUnits(Protocol):
    """What a writer has begun to write, until each unit has its outcome."""

    @property
    def waits_for(self) -> Future[Any] | None:
        """What must be done before `advance` is called; None for nothing."""

    def due_s(self) -> float:
        """In how many seconds `advance` has something to do, 0 for now."""

    def advance(self) -> Settled | None:
        """Go on, once that is due. None while a unit has no outcome."""


class UnitWriter(Protocol):
    """What a topic's pool hands its units to, one after another. For worker threads.

    `budget`: the files that what waits may become, for the loop's thread.
    """

    budget: FileBudget

    def read(self, units: Sequence[ProducedBatch]) -> Chunk:
        """Check batches and read their records, all at once."""

    def write(self, chunks: Sequence[Chunk], units: Sequence[ProducedBatch]) -> Settled | UnsettledUnits:
        """Write what was read before and `units`, in this order. Raises why the topic can't be had."""


@runtime_checkable
class StagingWriter(UnitWriter, Protocol):
    """One that can stage units while those before them are committed."""

    def stage(self, chunks: Sequence[Chunk], units: Sequence[ProducedBatch]) -> Settled | UnsettledUnits:
        """Stage what `write` would write; the next `advance`, once all before have their outcomes, commits it."""


class EntryWriter:
    """Makes the entries of one topic, one after another, while the next one's batches may be read.

    `open_topic` gives a fresh handle; `committer` commits what is staged.
    """

    def __init__(
        self,
        open_topic: Callable[[], Topic],
        lake: Lake,
        reader: UnitReader,
        committer: ShareCommitter,
        budget: FileBudget,
    ) -> None:
        self.budget = budget
        self._open_topic = open_topic
        self._engine = GroupCommit(open_topic, lake.clock, lake.ids, committer=committer)
        self._reader = reader
        self._repeats = Repeats()

    def read(self, units: Sequence[ProducedBatch]) -> Chunk:
        """Check batches and read their records, all at once. What is wrong with one is its own matter.

        They are read by partition: then no record is moved again on its way to its partition's segment.
        """
        units = sorted(units, key=lambda unit: unit.partition)
        return self._reader.read(self._engine.known or self._open_topic(), units)

    def write(self, chunks: Sequence[Chunk], units: Sequence[ProducedBatch]) -> Settled | UnsettledUnits:
        """Make an entry of what was read before and of `units`, in this order, and try to commit it.

        Raises why the topic can't be had; then nothing was tried.
        """
        entry = self._begun(chunks, units)
        return entry if isinstance(entry, Settled) else entry.advance() or entry

    def stage(self, chunks: Sequence[Chunk], units: Sequence[ProducedBatch]) -> "Settled | WrittenEntry":
        """As `StagingWriter.stage`. Raises as `write`."""
        entry = self._begun(chunks, units)
        if isinstance(entry, WrittenEntry):
            entry.stage_ahead()
        return entry

    def _begun(self, chunks: Sequence[Chunk], units: Sequence[ProducedBatch]) -> "Settled | WrittenEntry":
        chunk = together([*chunks, self.read(units)])
        if not chunk.units:
            return Settled((), chunk.refused)
        return WrittenEntry(self._engine, self._repeats, chunk, self._reader.cluster().epoch)


class WrittenEntry:
    """One entry until each of its units has its outcome."""

    def __init__(self, engine: GroupCommit, repeats: Repeats, chunk: Chunk, leader_epoch: int) -> None:
        self._engine = engine
        self._repeats = repeats
        self._leader_epoch = leader_epoch
        self._refused = list(chunk.refused)
        self._units = chunk.units
        self._records = chunk.records
        counts = np.array(chunk.counts, np.int64)
        self._starts = np.cumsum(counts) - counts
        self._entry = engine.begin(self._requests(counts))

    def _requests(self, counts: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> ProduceRequests:
        units = self._units
        return ProduceRequests(
            self._records,
            np.array([unit.deadline_s for unit in units]),
            np.repeat(np.array([unit.partition for unit in units], np.int32), counts),
            np.repeat(np.arange(len(units)), counts),
            {at: producer_batch(unit) for at, unit in enumerate(units) if unit.header.producer_id >= 0},
            acks=min(unit.acks for unit in units) or 1,
            compression=codec_that_helps(units, self._records),
            sizes_judged=True,
        )

    @property
    def waits_for(self) -> Future[Any] | None:
        """What must be done before `advance` is called; None for nothing."""
        return self._entry.waits_for

    def due_s(self) -> float:
        """In how many seconds `advance` has something to do, 0 for now."""
        return self._entry.due_s()

    def stage_ahead(self) -> None:
        """Stage it while the entry before is committed."""
        try:
            self._entry.stage_ahead()
        except Exception:  # it is staged again, and has its outcome then
            logger.exception("Staging for topic '%s' failed by a fault in the program.", self._units[0].topic)

    def advance(self) -> Settled | None:
        """Try to commit, once that is due. None while a unit has no outcome."""
        try:
            self._entry.advance()
        except Exception:
            logger.exception("Producing to topic '%s' failed by a fault in the program.", self._units[0].topic)
        return self._settled() if self._entry.is_done else None

    def _settled(self) -> Settled:
        outcomes = self._entry.outcomes
        appended, refused = [], self._refused
        firsts = outcomes.offsets(self._records.num_rows)[self._starts].tolist()
        log_starts, topic = self._log_starts(), self._engine.known
        codec = None if topic is None else codec_of_topic(topic.known)
        stamped = _lacks_times(self._records) and outcomes.append_ms is None
        for at, (unit, first) in enumerate(zip(self._units, firsts, strict=True)):
            error = outcomes.errors.get(at)
            producer_id, partition = unit.header.producer_id, unit.partition
            if error is not None:
                refused.append((unit, error))
            elif first >= 0:
                landed = Landed(first, outcomes.append_ms)
                if producer_id >= 0:
                    self._repeats.note(partition, producer_id, unit.sequence, landed)
                batch = None
                if not stamped:
                    packed = unit.batch if codec is None else repacked(unit.batch, codec)
                    batch = patched(packed, first, self._leader_epoch, landed.append_ms)
                appended.append(Appended(unit, landed, log_starts.get(partition, -1), batch))
            elif (found := self._repeats.find(partition, producer_id, unit.sequence)) is not None:
                appended.append(Appended(unit, found, log_starts.get(partition, -1), None))
            else:
                refused.append((unit, _duplicate(unit)))
        return Settled(appended, refused)

    def _log_starts(self) -> dict[int, int]:
        topic = self._engine.known
        if topic is None:
            return {}
        count = topic.known.partitions
        return {p: topic.known.start(p) for p in {unit.partition for unit in self._units} if p < count}


def producer_batch(unit: ProducedBatch) -> ProducerBatch:
    """What the unit's idempotent producer says of its records."""
    header = unit.header
    sequences = {unit.partition: (header.base_sequence, header.count)}
    return ProducerBatch(header.producer_id, header.producer_epoch, sequences, is_pipelined=True)


def codec_of(units: Sequence[ProducedBatch]) -> str:
    """The codec that most bytes of these came in: what segments get where the topic leaves it to producers."""
    sizes: Counter[int] = Counter()
    for unit in units:
        sizes[unit.header.codec] += unit.header.size
    return CODECS[sizes.most_common(1)[0][0]]


def codec_that_helps(units: Sequence[ProducedBatch], records: pa.Table | NotedRecords) -> str:
    """As `codec_of`; none where batches that are large enough to show it were made hardly smaller by theirs.

    Nor would segments be. `records`: theirs, as `tidelog.broker.records.columns.COLUMNS`.
    """
    codec, packed = codec_of(units), sum(unit.header.size for unit in units)
    shows = codec != CODECS[NONE] and packed >= _SHOWING_BYTES * len(units)
    return CODECS[NONE] if shows and packed > _HARDLY_SMALLER * _size_of(records) else codec


def _size_of(records: pa.Table | NotedRecords) -> int:
    """Bytes of keys, values and headers, with about as many for each record as a batch has."""
    if isinstance(records, NotedRecords):
        return records.nbytes
    return sum(records.column(name).nbytes for name in ("key", "value", "headers"))


def _lacks_times(records: pa.Table | NotedRecords) -> bool:
    """Whether a record has no timestamp, or one of those that were read together with these."""
    if isinstance(records, NotedRecords):
        return any(piece.notes.timeless for piece in records.pieces)
    return bool(records.column("timestamp").null_count)


def _duplicate(unit: ProducedBatch) -> DuplicateSequenceError:
    return DuplicateSequenceError(
        f"Partition {unit.partition} of topic '{unit.topic}' has these records of producer {unit.header.producer_id}"
        " already. Their offsets are not known to this broker."
    )
