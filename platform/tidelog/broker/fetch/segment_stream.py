"""A partition's segments as record batches, read on from where the last read ended. For one thread at a time."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa

from tidelog.broker.base.batch_runs import BatchRun, Place
from tidelog.broker.fetch.segment_rows import NotPlainError, SegmentRows
from tidelog.broker.records.batches import CODECS, GZIP, MAGIC, NONE, BatchHeader, sealed
from tidelog.broker.records.columns import EncodedBatch, RecordCodec
from tidelog.broker.records.unpacking import repacked
from tidelog.log.delta.schema import RECORDS
from tidelog.log.segments import fetch
from tidelog.log.segments.reader import segment_codec
from tidelog.log.storage.port import Storage
from tidelog.log.topic import Topic

# About what is read at once, before it is packed: enough to be worth a thread's while, and soon done.
READ_BYTES: Final = 1024 * 1024
# Of small segments, at most this number is read at once: each is a look into the store.
MOST_SEGMENTS: Final = 128
# Offsets whose segments are looked up at once.
PLANNED_OFFSETS: Final = 1_000_000
# Of an encoded batch, before it is packed.
BATCH_BYTES: Final = 256 * 1024
# A batch of this size holds one record. It is more than a consumer asks for of a partition by default.
LARGE_BYTES: Final = 1024 * 1024
_AS_IT_CAME: Final = ("gzip", "snappy", "lz4")
_NO_STOP: Final = 2**63 - 1
_OFFSET: Final = RECORDS.get_field_index("offset")


class SegmentStream:
    """Reads a partition from an offset on. `position`: the next one."""

    def __init__(self, storage: Storage, topic: Topic, place: Place, position: int) -> None:
        self._storage = storage
        self._topic = topic
        self._place = place
        self.position = position
        self._planned_end = position
        self._version = -1  # of the topic, as of which it was planned
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._rest: pa.RecordBatch | None = None
        self._pages: SegmentRows | None = None  # where they are read without Arrow

    def read(self, records: RecordCodec, leader_epoch: int, stop: int | None) -> BatchRun:
        """The next chunk, from the position up to where `stop`, the log end, or enough is reached.

        Where compaction has left nothing up to there, it is a batch without records, which takes a consumer past it.
        The chunk is empty at the log end only. Raises `OffsetOutOfRangeError`, `CorruptSegmentError`, `StorageError`.
        """
        if self.is_rewritten:
            self.close()
        first = self.position
        batches = self._next_batches(records, leader_epoch, stop)
        if batches is None:
            rows = self._next_records(stop)
            batches = records.batches(rows, leader_epoch, self._place[2], BATCH_BYTES) if rows is not None else ()
        if not batches:
            return self._gap(first, leader_epoch)
        data, lasts = [self._sent(batch) for batch in batches], [batch.last for batch in batches]
        return BatchRun(self._place, first, self.position, lasts, data, sum(map(len, data)), self._version)

    def _sent(self, batch: EncodedBatch) -> bytes:
        """A batch as consumers are sent it: a large one packed as it came, as far as its segment says.

        Its producer has sent it small, so that a consumer's bounds of what it takes from a broker let it pass.
        """
        if len(batch.data) < LARGE_BYTES or self._place[2] != NONE:
            return batch.data
        segments = fetch.overlapping(self._topic.known.live(self._place[1]), batch.first, batch.first + 1)
        codec = segment_codec(self._storage, self._topic.folder, segments[0]) if segments else None
        if codec in (None, CODECS[NONE]):
            return batch.data
        # Zstandard is also what segments get whose producers named no codec, and merged ones; not every client has it.
        packed = bytes(repacked(batch.data, GZIP if codec not in _AS_IT_CAME else CODECS.index(codec)))
        return packed if len(packed) < len(batch.data) else batch.data

    def _gap(self, first: int, leader_epoch: int) -> BatchRun:
        if self.position <= first:
            return BatchRun(self._place, first, first, [], [], 0, self._version)
        last = min(self.position - 1, first + 2**31 - 1)
        self.position = last + 1
        batch = without_records(first, last, leader_epoch)
        return BatchRun(self._place, first, last + 1, [last], [batch], len(batch), self._version)

    @property
    def is_rewritten(self) -> bool:
        """Whether what is open was rewritten since it was planned."""
        if self._batches is None and self._rest is None and self._pages is None:
            return False
        rewrites = self._topic.known.rewrites
        return rewrites.touch(self._place[1], self.position, self._planned_end, self._version)

    def close(self) -> None:
        """Close the segment that is open."""
        if self._batches is not None:
            self._batches.close()  # type: ignore[attr-defined]
        if self._pages is not None:
            self._pages.close()
        self._batches = self._rest = self._pages = None

    def _next_batches(self, records: RecordCodec, leader_epoch: int, stop: int | None) -> Sequence[EncodedBatch] | None:
        """Batches up to `READ_BYTES`, without Arrow; none up to the stop; None where Arrow is to read."""
        pages = self._pages or self._pages_from_here(records)
        self._pages = None
        if pages is None:
            return None
        with suppress(NotPlainError):  # what was read before that is taken first
            pages.fill(READ_BYTES, MOST_SEGMENTS)
        rows = pages.rows
        batches = None
        if rows.next_offset >= 0:
            batches = rows.batches(leader_epoch, self._place[2], BATCH_BYTES, READ_BYTES, stop or _NO_STOP)
        if batches is None:
            pages.close()
            return None
        if stop is not None and rows.next_offset >= stop:
            self.position = stop
        else:
            self.position = batches[-1].last + 1
        if rows.next_offset >= 0 or not pages.is_through:
            self._pages = pages
        return batches

    def _pages_from_here(self, records: RecordCodec) -> SegmentRows | None:
        """What comes next, planned again; None where Arrow reads already, or alone can."""
        if self._batches is not None or self._rest is not None:
            return None
        rows = records.rows()
        if rows is None:
            return None
        plan = self._topic.plan(self._place[1], self.position, self.position + PLANNED_OFFSETS)
        if plan.start == plan.end or plan.typing is not None:
            return None
        # Of a segment that the plan cuts all is read.
        self._planned_end = max([plan.end, *(segment.end for segment in plan.segments[-1:])])
        self._version = plan.version
        return SegmentRows(self._storage, self._topic.folder, plan, rows)

    def _next_records(self, stop: int | None) -> pa.RecordBatch | None:
        """Records up to about `READ_BYTES`; None where there are none up to the stop, or the log end."""
        parts: list[pa.RecordBatch] = []
        size, stopped = 0, False
        while size < READ_BYTES and len(parts) < MOST_SEGMENTS:
            batch, self._rest = self._rest, None
            if batch is None:
                batch = self._decoded(bool(parts), stop)
            if batch is None:
                break
            offsets = batch.column(_OFFSET)
            if stop is not None and offsets[-1].as_py() >= stop:
                rows = int(np.searchsorted(offsets.to_numpy(), stop))
                self._rest, batch = batch.slice(rows), batch.slice(0, rows)
                parts += [batch] if rows else []
                stopped = True
                break
            parts.append(batch)
            size += batch.nbytes
        if stopped and stop is not None:
            self.position = stop
        elif parts:
            self.position = parts[-1].column(_OFFSET)[-1].as_py() + 1
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else pa.Table.from_batches(parts).combine_chunks().to_batches()[0]

    def _decoded(self, has_records: bool, stop: int | None) -> pa.RecordBatch | None:
        """The next batch of the segments as they are planned, and planned again where they are through."""
        while True:
            if self._batches is None:
                plan = self._topic.plan(self._place[1], self.position, self.position + PLANNED_OFFSETS)
                if plan.start == plan.end:
                    return None
                self._planned_end, self._version = plan.end, plan.version
                self._batches = fetch.fetch(
                    self._storage,
                    self._topic.folder,
                    self._topic.name,
                    plan,
                    include_headers=True,
                    batch_bytes=READ_BYTES,
                )
            batch = next(self._batches, None)
            if batch is not None:
                return batch
            self._batches = None
            if has_records:  # what is there is enough
                return None
            # the rest of what was planned was compacted away
            self.position = self._planned_end if stop is None else min(self._planned_end, stop)
            return None


def without_records(first: int, last: int, leader_epoch: int) -> bytes:
    """A batch without records, as Kafka's log cleaner leaves them: a consumer goes on behind its last offset."""
    header = BatchHeader(first, 0, leader_epoch, MAGIC, 0, 0, last - first, -1, -1, -1, -1, -1, 0)
    return sealed(header, b"", NONE)
