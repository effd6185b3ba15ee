"""Key compaction on Spark, distributed by partition and key: no machine holds the keys of all records.

    segments  --tasks-->  newest offset of each      --shuffle by (partition, key)-->  newest offset of each key
                          key in a slice of them                                                    |
    segments  <--tasks--  units, rewritten  <--shuffle by unit--  kept offsets of each unit  <------+

Keys are compared whole. The driver knows segments and units; it opens no file and sees no record.
"""

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from tidelog.jobs.on_spark.executor import (
    Batches,
    LakeAddress,
    collected,
    looked_up,
    numbered,
    parallelism,
    pickled,
    unpickled,
)
from tidelog.log.base.clock import SystemIds
from tidelog.log.base.errors import TidelogError
from tidelog.log.segments.reader import read_segment
from tidelog.log.state.topic_state import Segment
from tidelog.log.storage import Storage
from tidelog.retention.compaction.newest_keys import NewestKeys, Offsets
from tidelog.retention.compaction.plan import PartitionCompaction
from tidelog.retention.compaction.survivors import pack, unpack
from tidelog.retention.compaction.units import Compacted, PartitionWork, compact_unit, even_share
from tidelog.retention.rewrites.units import Rewritten, Unit

# Bytes of segments that a task reads the keys of.
_SLICE_BYTES: Final = 64 * 1024 * 1024
# What a task's own map of keys may hold before it is handed on, and the rows it is handed on in.
_MAP_BYTES: Final = 64 * 1024 * 1024
_ROWS: Final = 100_000
# Kept offsets that a task holds before it hands them on.
_HELD_OFFSETS: Final = 4_000_000

_NEWEST: Final = "partition int, key binary, newest long"
_KEPT: Final = "unit int, work binary, kept binary, failure string"
_NEWEST_ARROW: Final = pa.schema([("partition", pa.int32()), ("key", pa.binary()), ("newest", pa.int64())])
_KEPT_ARROW: Final = pa.schema(
    [("unit", pa.int32()), ("work", pa.binary()), ("kept", pa.binary()), ("failure", pa.string())]
)


@dataclass(frozen=True, slots=True)
class _PackedPiece:
    """Offsets [start, end) of a segment, for one task to read the keys of."""

    topic: str
    segment: Segment
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Where units lie: [bases, ends) by partition and offset, and their numbers."""

    numbers: Offsets
    bases: Offsets
    ends: Offsets

    def split(self, offsets: Offsets) -> Iterator[tuple[int, Offsets]]:
        """(unit's number, its offsets, rising) of a partition's kept offsets; what no unit covers stays untold."""
        offsets = np.sort(offsets)
        first, last = np.searchsorted(offsets, self.bases), np.searchsorted(offsets, self.ends)
        for at in np.flatnonzero(last > first):
            yield int(self.numbers[at]), offsets[first[at] : last[at]]


class SparkCompactor:
    """Carries compactions out on a Spark cluster. What a segment is to blame for fails its partition, not the job."""

    def __init__(self, spark: SparkSession, lake: str, options: Mapping[str, str] | None = None) -> None:
        self._spark = spark
        self._address = LakeAddress(lake, options)

    def unit_bytes(self, size: int) -> int:
        """How large units of work on segments of `size` bytes in all should be, so that every core has some."""
        return even_share(size, parallelism(self._spark))

    def run(self, work: Sequence[PartitionWork]) -> Iterator[Compacted]:
        """What became of each unit, after one Spark job. A job that Spark gives up fails all of them."""
        units = [(one.plan, unit) for one in work for unit in one.units]
        if not units:
            return
        rows = [(number, pickle.dumps(unit), None, None) for number, unit in enumerate(units)]
        frame = self._spark.createDataFrame(rows, _KEPT)
        pieces = _pieces(work, parallelism(self._spark))
        if pieces:
            frame = frame.unionAll(self._kept(work, pieces))
        compacted = frame.repartitionById(len(units), "unit").mapInArrow(
            partial(_compact, self._address), "done binary"
        )
        storage = self._address.open()
        for done in collected(compacted):
            rewritten = done.rewritten
            yield done if rewritten is None else replace(done, rewritten=looked_up(storage, rewritten))

    def _kept(self, work: Sequence[PartitionWork], pieces: Sequence[Sequence[_PackedPiece]]) -> DataFrame:
        """The offsets that stay, packed by unit; rows as `_KEPT`, without work."""
        seen = numbered(self._spark, pieces).mapInArrow(partial(_newest, self._address), _NEWEST)
        newest = seen.groupBy("partition", "key").agg(F.max("newest").alias("newest"))
        # Keys have done their work, but for those rows in which they say what went wrong.
        told = newest.select("partition", F.when(F.col("partition") < 0, F.col("key")).alias("key"), "newest")
        return told.mapInArrow(partial(_packed, _bounds(work)), _KEPT)


def _pieces(work: Sequence[PartitionWork], at_once: int) -> list[list[_PackedPiece]]:
    """All offsets that are to be compared, in slices for tasks."""
    comparing = [one for one in work if one.plan.replaces and one.units]
    total = sum(segment.size for one in comparing for segment in one.plan.segments)
    share = max(1, min(_SLICE_BYTES, -(-total // (2 * at_once))))
    slices: list[list[_PackedPiece]] = []
    filled = share
    for one in comparing:
        for segment in one.plan.segments:
            for piece in _cut(one.units[0].topic, one.plan, segment, share):
                if filled >= share:
                    slices.append([])
                    filled = 0
                slices[-1].append(piece)
                filled += min(segment.size, share)
    return slices


def _cut(topic: str, plan: PartitionCompaction, segment: Segment, share: int) -> Iterator[_PackedPiece]:
    """A segment's offsets in parts of about `share` bytes."""
    start, end = max(plan.start, segment.base_offset), min(plan.end, segment.end)
    parts = max(1, min(round(segment.size / share), end - start))
    edges = [start + (end - start) * part // parts for part in range(parts + 1)]
    for low, high in pairwise(edges):
        yield _PackedPiece(topic, segment, low, high)


def _bounds(work: Sequence[PartitionWork]) -> dict[int, _Bounds]:
    """{partition: where its units lie}; units are numbered through all partitions."""
    bounds, number = {}, 0
    for part in work:
        numbers = np.arange(number, number + len(part.units))
        bases = np.array([unit.inputs[0].base_offset for unit in part.units], np.int64)
        ends = np.array([unit.end for unit in part.units], np.int64)
        bounds[part.plan.partition] = _Bounds(numbers, bases, ends)
        number += len(part.units)
    return bounds


# --- in tasks ----------------------------------------------------------------------------------------------


def _newest(address: LakeAddress, batches: Batches) -> Batches:
    """Rows (partition, key, newest offset) of slices of pieces; partition -1 - p says in `key` why p can't be read."""
    storage = address.open()
    for pieces in unpickled(batches):
        for partition, of_one in groupby(pieces, key=lambda piece: piece.segment.partition):
            try:
                yield from _newest_of(storage, partition, of_one)
            except TidelogError as e:
                yield _newest_rows(-1 - partition, pa.array([str(e).encode()]), np.zeros(1, np.int64))


def _newest_of(storage: Storage, partition: int, pieces: Iterable[_PackedPiece]) -> Batches:
    newest = NewestKeys()
    for piece in pieces:
        for batch in read_segment(storage, piece.topic, piece.segment, piece.start, piece.end, ["key"]):
            newest.add(batch.column("key"), batch.column("position").to_numpy() + piece.segment.base_offset)
            if newest.size >= _MAP_BYTES:
                yield from _rows(partition, newest)
                newest = NewestKeys()
    yield from _rows(partition, newest)


def _rows(partition: int, newest: NewestKeys) -> Batches:
    keys, offsets = newest.keys, newest.offsets
    for first in range(0, len(offsets), _ROWS):
        yield _newest_rows(partition, keys.slice(first, _ROWS), offsets[first : first + _ROWS])


def _newest_rows(partition: int, keys: pa.Array, offsets: Offsets) -> pa.RecordBatch:
    partitions = pa.array(np.full(len(keys), partition, np.int32))
    return pa.RecordBatch.from_arrays([partitions, keys, pa.array(offsets)], schema=_NEWEST_ARROW)


def _packed(bounds: Mapping[int, _Bounds], batches: Batches) -> Batches:
    """Rows of kept offsets by unit, from rows (partition, key only where it is a failure, newest offset)."""
    held: dict[int, list[Offsets]] = {}
    count = 0
    for batch in batches:
        partitions = batch.column("partition").to_numpy()
        offsets = batch.column("newest").to_numpy()
        for partition in np.unique(partitions).tolist():
            here = partitions == partition
            if partition < 0:
                texts = batch.column("key").filter(pa.array(here)).to_pylist()
                yield from _failures(bounds[-1 - partition], texts[0].decode())
            else:
                held.setdefault(partition, []).append(offsets[here])
        count += len(offsets)
        if count >= _HELD_OFFSETS:
            yield from _kept_rows(bounds, held)
            held, count = {}, 0
    yield from _kept_rows(bounds, held)


def _failures(bounds: _Bounds, failure: str) -> Iterator[pa.RecordBatch]:
    for number in bounds.numbers.tolist():
        yield _kept_row(number, b"", failure)


def _kept_rows(bounds: Mapping[int, _Bounds], held: Mapping[int, list[Offsets]]) -> Iterator[pa.RecordBatch]:
    for partition, parts in held.items():
        for number, offsets in bounds[partition].split(np.concatenate(parts)):
            yield _kept_row(number, pack(offsets), None)


def _kept_row(number: int, kept: bytes, failure: str | None) -> pa.RecordBatch:
    columns = [[number], [None], [kept], [failure]]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _KEPT_ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_KEPT_ARROW)


def _compact(address: LakeAddress, batches: Batches) -> Batches:
    """What became of the unit that all these rows are about."""
    task = TaskContext.get()
    number = -1 if task is None else task.partitionId()
    works: list[tuple[PartitionCompaction, Unit]] = []
    kept: list[Offsets] = []
    failure: str | None = None
    for batch in batches:
        for row in batch.to_pylist():
            if row["unit"] != number:
                # What is not among the kept offsets goes, so a task must have all of its unit's, and no other's.
                raise RuntimeError(f"Spark sent rows of unit {row['unit']} to task {number}: nothing is written.")
            failure = failure or row["failure"]
            if row["work"] is not None:
                works.append(pickle.loads(row["work"]))  # noqa: S301 - the driver's
            if row["kept"]:
                kept.append(unpack(row["kept"]))
    for plan, unit in works:
        yield pickled(_one(address, plan, unit, kept, failure))


def _one(
    address: LakeAddress, plan: PartitionCompaction, unit: Unit, kept: Sequence[Offsets], failure: str | None
) -> Compacted:
    if failure is not None:
        return Compacted(plan.partition, Rewritten(unit, failure=failure), 0)
    offsets = np.sort(np.concatenate([np.zeros(0, np.int64), *kept])) if plan.replaces else None
    return compact_unit(address.open(), SystemIds(), plan, unit, offsets)
