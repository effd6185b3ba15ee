"""Which records a key compaction keeps, found in this process: for lakes that don't need Spark.

Kafka's cleaner holds a map of the newest offset of each dirty key, and cleans only up to where the map is full; what
lies beyond it takes in the next round. So does this, but it rewrites once, after the last round.

Source: Kafka's `Cleaner.buildOffsetMap` and `shouldRetainRecord`.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import IO, Final

import numpy as np
import pyarrow as pa

from tidelog.log.segment_reading import read_segment
from tidelog.log.state import Segment
from tidelog.log.storage.port import Storage
from tidelog.retention.compaction import PartitionCompaction
from tidelog.retention.kept import pack, unpack
from tidelog.retention.newest_keys import NewestKeys, Offsets

# Kafka's log.cleaner.dedupe.buffer.size: what the map of keys may hold.
MAP_BYTES: Final = 128 * 1024 * 1024
# Kept offsets that stay in memory; more wait in a temporary file.
_SPOOLED_BYTES: Final = 32 * 1024 * 1024


@dataclass(slots=True)
class _Round:
    """One fill of the map: the newest offsets of the keys of dirty records below `end`."""

    newest: NewestKeys
    start: int
    end: int


@dataclass(slots=True)
class _Kept:
    """The kept offsets of each segment, by its place in the plan; None: not looked at yet, so all of them."""

    file: IO[bytes]
    places: list[tuple[int, int] | None] = field(default_factory=list)

    def put(self, number: int, offsets: Offsets) -> None:
        """Note what is kept of a segment."""
        packed = pack(offsets)
        at = self.file.seek(0, 2)
        self.file.write(packed)
        self.places[number] = (at, len(packed))

    def get(self, number: int) -> Offsets | None:
        """What is kept of a segment."""
        place = self.places[number]
        if place is None:
            return None
        self.file.seek(place[0])
        return unpack(self.file.read(place[1]))


def survivors(
    storage: Storage, folder: str, plan: PartitionCompaction, *, map_bytes: int = MAP_BYTES
) -> Iterator[tuple[Segment, Offsets]]:
    """Each segment of the plan with the offsets in [start, end) that stay, rising: the newest of each key.

    Tombstones count as any other record. Memory: about twice `map_bytes`, and a batch of a segment. Raises
    `CorruptSegmentError`.
    """
    with closing(tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)) as file:
        kept = _Kept(file, [None] * len(plan.segments))
        start = plan.dirty
        while start < plan.end:
            found = _fill(storage, folder, plan, start, map_bytes)
            _drop(storage, folder, plan, found, kept, map_bytes)
            start = found.end
        for number, segment in enumerate(plan.segments):
            offsets = kept.get(number)
            yield segment, np.zeros(0, np.int64) if offsets is None else offsets


def _fill(storage: Storage, folder: str, plan: PartitionCompaction, start: int, map_bytes: int) -> _Round:
    """Fill a map with dirty keys from `start` on, until it is full or there are no more."""
    newest = NewestKeys()
    for segment in plan.segments:
        if segment.end <= start:
            continue
        for keys, offsets in _blocks(storage, folder, segment, start, plan.end, map_bytes):
            newest.add(keys, offsets)
            if newest.size >= map_bytes:
                return _Round(newest, start, int(offsets[-1]) + 1)
    return _Round(newest, start, plan.end)


def _drop(storage: Storage, folder: str, plan: PartitionCompaction, found: _Round, kept: _Kept, map_bytes: int) -> None:
    """Leave out, of all records below the round's end, those that the round knows a newer one of."""
    for number, segment in enumerate(plan.segments):
        if segment.base_offset >= found.end:
            break
        before = kept.get(number)
        parts = []
        for keys, offsets in _blocks(storage, folder, segment, plan.start, plan.end, map_bytes):
            stays = (offsets >= found.newest.newest(keys)) | (offsets >= found.end)
            parts.append(offsets[stays])
        stay = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        kept.put(number, stay if before is None else np.intersect1d(before, stay, assume_unique=True))


def _blocks(
    storage: Storage, folder: str, segment: Segment, start: int, end: int, map_bytes: int
) -> Iterator[tuple[pa.Array, Offsets]]:
    """A segment's keys and offsets in [start, end), without null keys, as many at once as pay for a look-up."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in read_segment(storage, folder, segment, start, end, ["key"]):
        waiting.append(batch)
        size += batch.nbytes
        if size >= map_bytes // 4:
            yield _block(waiting, segment)
            waiting, size = [], 0
    if waiting:
        yield _block(waiting, segment)


def _block(batches: Sequence[pa.RecordBatch], segment: Segment) -> tuple[pa.Array, Offsets]:
    keys = pa.concat_arrays([batch.column("key") for batch in batches])
    positions = np.concatenate([batch.column("position").to_numpy() for batch in batches])
    if keys.null_count:
        there = keys.is_valid()
        keys, positions = keys.filter(there), positions[there.to_numpy(zero_copy_only=False)]
    return keys, positions + segment.base_offset
