"""Which records a key compaction keeps, found in this process: for lakes that don't need Spark.

Kafka's cleaner holds a map of the newest offset of each dirty key, and cleans only up to where the map is full; what
lies beyond it takes in the next round. So does this, but it rewrites once, after the last round.

Source: Kafka's `Cleaner.buildOffsetMap` and `shouldRetainRecord`.
"""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, groupby, islice
from typing import IO, Final

import numpy as np
import pyarrow as pa

from tidelog.log.segments.reader import read_segment
from tidelog.log.segments.writer import ROW_GROUP_RECORDS
from tidelog.log.state.topic_state import Segment
from tidelog.log.storage.port import Storage
from tidelog.retention.compaction.newest_keys import NewestKeys, Offsets
from tidelog.retention.compaction.plan import PartitionCompaction

# Kafka's log.cleaner.dedupe.buffer.size: what the map of keys may hold.
MAP_BYTES: Final = 128 * 1024 * 1024
# Of differences between offsets, by the largest of them.
_WIDTHS: Final = (np.dtype("<u1"), np.dtype("<u2"), np.dtype("<u4"), np.dtype("<u8"))
# Kept offsets that stay in memory; more wait in a temporary file.
_SPOOLED_BYTES: Final = 32 * 1024 * 1024
# Small segments that are read at once: on an object store each costs a round trip.
_SMALL_BYTES: Final = 64 * 1024
_AT_ONCE: Final = 64
_READERS: Final = 8


@dataclass(slots=True)
class _Round:
    """One fill of the map: the newest offsets of the keys of dirty records in [start, end)."""

    newest: NewestKeys
    start: int
    end: int


@dataclass(slots=True)
class _Kept:
    """The kept offsets of each segment, by its place in the plan; None: not looked at yet, so all of them."""

    file: IO[bytes]
    places: list[tuple[int, int] | None]

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
    storage: Storage,
    folder: str,
    plan: PartitionCompaction,
    *,
    map_bytes: int = MAP_BYTES,
    batch_records: int = ROW_GROUP_RECORDS,
) -> Iterator[tuple[Segment, Offsets]]:
    """Each segment of the plan with the offsets in [start, end) that stay, rising: the newest of each key.

    Tombstones count as any other record. Memory: about twice `map_bytes`, and a batch of
    `batch_records` of a segment. Raises `CorruptSegmentError`.
    """
    with closing(tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)) as file:
        reader = _KeyReader(storage, folder, plan, batch_records)
        kept = _Kept(file, [None] * len(plan.segments))
        start = plan.dirty
        while start < plan.end:
            found = _fill(reader, start, map_bytes)
            _drop(reader, found, kept, map_bytes)
            start = found.end
        for number, segment in enumerate(plan.segments):
            offsets = kept.get(number)
            yield segment, np.zeros(0, np.int64) if offsets is None else offsets


@dataclass(frozen=True, slots=True)
class _Keys:
    """Some records of the plan's segment `number`."""

    number: int
    keys: pa.Array
    offsets: Offsets


@dataclass(frozen=True, slots=True)
class _KeyReader:
    """Reads the keys of a plan's segments, small segments several at once."""

    storage: Storage
    folder: str
    plan: PartitionCompaction
    batch_records: int

    def read(self, start: int, end: int) -> Iterator[_Keys]:
        """The records with keys in [start, end), in offset order."""
        numbers = [n for n, s in enumerate(self.plan.segments) if s.end > start and s.base_offset < end]
        with ThreadPoolExecutor(_READERS, thread_name_prefix="tidelog-keys") as pool:
            for large, group in groupby(numbers, key=lambda n: self.plan.segments[n].size > _SMALL_BYTES):
                if large:
                    yield from (keys for number in group for keys in self._segment(number, start, end))
                    continue
                while some := list(islice(group, _AT_ONCE)):
                    for found in pool.map(lambda number: list(self._segment(number, start, end)), some):
                        yield from found

    def _segment(self, number: int, start: int, end: int) -> Iterator[_Keys]:
        segment = self.plan.segments[number]
        for batch in read_segment(self.storage, self.folder, segment, start, end, ["key"], self.batch_records):
            keys, offsets = batch.column("key"), batch.column("position").to_numpy() + segment.base_offset
            if keys.null_count:
                there = keys.is_valid()
                keys, offsets = keys.filter(there), offsets[there.to_numpy(zero_copy_only=False)]
            yield _Keys(number, keys, offsets)


def _fill(reader: _KeyReader, start: int, map_bytes: int) -> _Round:
    """Fill a map with dirty keys from `start` on, until it is full or there are no more."""
    newest = NewestKeys()
    for some in reader.read(start, reader.plan.end):
        newest.add(some.keys, some.offsets)
        if newest.size >= map_bytes and len(some.offsets):
            return _Round(newest, start, int(some.offsets.max()) + 1)
    return _Round(newest, start, reader.plan.end)


def _drop(reader: _KeyReader, this_round: _Round, kept: _Kept, map_bytes: int) -> None:
    """Leave out, of all records below the round's end, those that the round knows a newer one of."""
    stay: dict[int, list[Offsets]] = {
        n: [] for n, s in enumerate(reader.plan.segments) if s.base_offset < this_round.end
    }
    waiting: list[_Keys] = []
    size = 0
    for some in chain(reader.read(reader.plan.start, this_round.end), [None]):
        if some is not None:
            waiting.append(some)
            size += some.keys.nbytes + some.offsets.nbytes
        if waiting and (some is None or size >= map_bytes // 4):
            # One look-up hashes the whole map, so it is for many records.
            newest = this_round.newest.newest(pa.concat_arrays([one.keys for one in waiting]))
            ends = np.cumsum([len(one.offsets) for one in waiting])
            for one, known in zip(waiting, np.split(newest, ends[:-1]), strict=True):
                stay[one.number].append(one.offsets[one.offsets >= known])
            _note(stay, kept, this_round.start, waiting[-1].number)
            waiting, size = [], 0
    _note(stay, kept, this_round.start, len(reader.plan.segments))


def _note(stay: dict[int, list[Offsets]], kept: _Kept, start: int, below: int) -> None:
    """Note what stays of the segments with numbers below one, of which there is no more to come.

    Records below `start` were there in earlier rounds: they stay if they stayed then.
    """
    for number in [n for n in stay if n < below]:
        offsets = np.concatenate([np.zeros(0, np.int64), *stay.pop(number)])
        before = kept.get(number)
        if before is not None:
            old = np.intersect1d(before, offsets, assume_unique=True)
            offsets = np.concatenate([old, offsets[offsets >= start]])
        kept.put(number, offsets)


def pack(offsets: Offsets) -> bytes:
    """Rising offsets as bytes: `unpack` gives them back. Some 1 or 2 bytes an offset, where they are close."""
    if not len(offsets):
        return b""
    steps = np.diff(offsets)
    largest = int(steps.max()) if len(steps) else 0
    width = next(w for w in _WIDTHS if largest <= np.iinfo(w).max)
    return bytes([width.itemsize]) + int(offsets[0]).to_bytes(8, "little") + steps.astype(width).tobytes()


def unpack(packed: bytes) -> Offsets:
    """The offsets of `pack`."""
    if not packed:
        return np.zeros(0, np.int64)
    steps = np.frombuffer(packed, np.dtype(f"<u{packed[0]}"), offset=9).astype(np.int64)
    return np.cumsum(np.concatenate([[int.from_bytes(packed[1:9], "little")], steps]))
