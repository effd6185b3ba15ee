"""A partition's segments as record batches, read on from where the last read ended. For one thread at a time."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from tidelog.broker.base.batch_cache import BatchRun, Place
from tidelog.broker.records.batches import MAGIC, NONE, ZSTD, BatchHeader, sealed
from tidelog.broker.records.columns import RecordCodec
from tidelog.log.delta.schema import RECORDS
from tidelog.log.segments import fetch
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
_OFFSET: Final = RECORDS.get_field_index("offset")


class SegmentStream:
    """Reads a partition from an offset on. `position`: the next one."""

    def __init__(self, storage: Storage, topic: Topic, place: Place, position: int) -> None:
        self._storage = storage
        self._topic = topic
        self._place = place
        self.position = position
        self._planned_end = position
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._rest: pa.RecordBatch | None = None

    def read(self, records: RecordCodec, leader_epoch: int, stop: int | None) -> BatchRun:
        """The next chunk, from the position up to where `stop`, the log end, or enough is reached.

        Where compaction has left nothing up to there, it is a batch without records, which takes a consumer past it.
        The chunk is empty at the log end only. Raises `OffsetOutOfRangeError`, `CorruptSegmentError`, `StorageError`.
        """
        first = self.position
        found = self._next_records(stop)
        if found is None:
            return self._gap(first, leader_epoch)
        codec = ZSTD if self._place[2] else NONE
        batches = records.batches(found, leader_epoch, codec, BATCH_BYTES)
        data = [batch.data for batch in batches]
        return BatchRun(self._place, first, self.position, [batch.last for batch in batches], data, sum(map(len, data)))

    def _gap(self, first: int, leader_epoch: int) -> BatchRun:
        if self.position <= first:
            return BatchRun(self._place, first, first, [], [], 0)
        last = min(self.position - 1, first + 2**31 - 1)
        self.position = last + 1
        batch = without_records(first, last, leader_epoch)
        return BatchRun(self._place, first, last + 1, [last], [batch], len(batch))

    def close(self) -> None:
        """Close the segment that is open."""
        if self._batches is not None:
            self._batches.close()  # type: ignore[attr-defined]
        self._batches = self._rest = None

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
                self._planned_end = plan.end
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
