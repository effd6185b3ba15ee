"""A compaction's units: runs of segments, what each loses, and the entry that takes what was staged.

Which records are their keys' newest is found in this process (`tidelog.retention.compaction.run`) or by Spark
(`tidelog.jobs`). What happens to a unit then is the same for both, and here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from tidelog.log.base.clock import Ids
from tidelog.log.base.errors import TidelogError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta.actions import Txn
from tidelog.log.rules.topics import Outcome, require_topic
from tidelog.log.segments.reader import read_segment
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.storage.port import Storage
from tidelog.log.typed.value_typing import VALUE_LENGTH
from tidelog.retention.compaction.newest_keys import Offsets
from tidelog.retention.compaction.plan import CompactionPlan, PartitionCompaction, completed, tombstone_mark
from tidelog.retention.rewrites.execute import KeepOffsets, Mask, execute_unit
from tidelog.retention.rewrites.units import Landing, Rewritten, Unit, decide_rewrite, unit_of

_LEAST_UNIT_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PartitionWork:
    """A partition's plan and the units of its segments, in their order. Picklable."""

    plan: PartitionCompaction
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class Compacted:
    """What became of one unit.

    `rewritten` is None where nothing had to go, so that the segments stay. `tombstones`: how many at the plan's `dirty`
    offset or above stay.
    """

    partition: int
    rewritten: Rewritten | None
    tombstones: int

    @property
    def failure(self) -> str | None:
        """Why the unit could not be executed, None when it was."""
        return None if self.rewritten is None else self.rewritten.failure


class Compactor(Protocol):
    """Carries compactions out."""

    def unit_bytes(self, size: int) -> int:
        """How large units of work on segments of `size` bytes in all should be."""

    def run(self, work: Sequence[PartitionWork]) -> Iterator[Compacted]:
        """What became of each unit, as it ends. What can't be read stops its partition alone, and is named."""


def even_share(size: int, workers: int) -> int:
    """How large units should be so that `workers` all have some; not so small that many files come of it."""
    return max(_LEAST_UNIT_BYTES, -(-size // (2 * workers)))


def work_of(
    state: TopicState, topic: str, config: TopicConfig, plan: CompactionPlan, unit_bytes: int
) -> tuple[PartitionWork, ...]:
    """The plan's partitions with their units: runs of segments of `unit_bytes` at most, or of one segment.

    Nor are they larger than `segment.bytes`, as Kafka groups segments.
    """
    most = min(unit_bytes, config.segment_bytes)
    return tuple(PartitionWork(one, tuple(_units(state, topic, config, one, most))) for one in plan.partitions)


def _units(
    state: TopicState, topic: str, config: TopicConfig, plan: PartitionCompaction, unit_bytes: int
) -> Iterator[Unit]:
    run: list[Segment] = []
    for segment in plan.segments:
        if run and (segment.base_offset != run[-1].end or sum(s.size for s in run) + segment.size > unit_bytes):
            yield unit_of(state, topic, run, config, config.codec())
            run = []
        run.append(segment)
    if run:
        yield unit_of(state, topic, run, config, config.codec())


def decide_compaction(
    state: TopicState,
    topic: str,
    work: Sequence[PartitionWork],
    compacted: Sequence[Compacted],
    *,
    topic_id: str,
    planned_ms: int,
    now_ms: int,
    parameters: Mapping[str, str] | None = None,
) -> Outcome[Landing]:
    """One entry with what was compacted: the units' segments, and how far the partitions of `work` are clean.

    A partition of which another writer changed a unit is not clean; its other units land all the same.
    `topic_id` is the life of the topic that was planned for. The times: `planned_ms` is what the plan saw, `now_ms`
    what the clock says. Raises `UnknownTopicError`, `TopicChangedError`.
    """
    require_topic(state, topic, topic_id)
    tombstones: dict[int, int] = {}
    for done in compacted:
        tombstones[done.partition] = tombstones.get(done.partition, 0) + done.tombstones
    plans = {one.plan.partition: one.plan for one in work}
    notes: Mapping[int, Sequence[Txn]] = {
        partition: completed(plan, tombstones.get(partition, 0), planned_ms)
        for partition, plan in plans.items()
        # Else another compaction was there first.
        if state.cleans.get(partition, 0) <= plan.end and tombstone_mark(state, partition) == plan.mark
    }
    rewritten = [done.rewritten for done in compacted if done.rewritten is not None]
    return decide_rewrite(
        state, topic, rewritten, now_ms=now_ms, operation="COMPACT", parameters=parameters, extra=notes
    )


@dataclass(slots=True)
class _Keep:
    """Keeps the newest of each key (`offsets`; None: all), without tombstones below an offset; counts the others."""

    offsets: Offsets | None
    tombstones_below: int
    dirty: int
    tombstones: int = 0
    columns: None = None

    def __call__(self, base_offset: int, batch: pa.RecordBatch, /) -> Mask:
        """A mask of the records that stay."""
        offsets = base_offset + batch.column("position").to_numpy()
        stay: Mask = np.ones(len(offsets), np.bool_)
        if self.offsets is not None:
            stay = KeepOffsets(self.offsets)(base_offset, batch)
        if batch.column("value").null_count:
            deleted = tombstones(batch)
            stay &= ~(deleted & (offsets < self.tombstones_below))
            self.tombstones += int(np.count_nonzero(stay & deleted & (offsets >= self.dirty)))
        return stay


def compact_unit(storage: Storage, ids: Ids, plan: PartitionCompaction, unit: Unit, kept: Offsets | None) -> Compacted:
    """Write a unit again without what goes, or leave it as it is when nothing does.

    `kept`: the offsets of the keys' newest records, rising; None when the plan only lets tombstones go.
    """
    if not _loses(unit, kept):
        try:
            expired, waiting = _tombstones(storage, plan, unit)
        except TidelogError as e:
            return Compacted(plan.partition, Rewritten(unit, failure=str(e)), 0)
        if not expired:
            return Compacted(plan.partition, None, waiting)
    keep = _Keep(kept, plan.tombstones_below, plan.dirty)
    rewritten = execute_unit(storage, unit, ids, keep)
    return Compacted(plan.partition, rewritten, keep.tombstones)


def _loses(unit: Unit, kept: Offsets | None) -> bool:
    """Whether a record of the unit goes because a newer one has its key, or because it has none."""
    if kept is None:
        return False
    records = [segment.stats.records for segment in unit.inputs]
    return any(count is None for count in records) or len(kept) < sum(count or 0 for count in records)


def tombstones(batch: pa.RecordBatch) -> Mask:
    """Which records of a segment have no value; one whose value is derived of columns has its length."""
    nulls: Mask = batch.column("value").is_null().to_numpy(zero_copy_only=False)
    if VALUE_LENGTH in batch.schema.names:
        nulls &= batch.column(VALUE_LENGTH).is_null().to_numpy(zero_copy_only=False)
    return nulls


def _tombstones(storage: Storage, plan: PartitionCompaction, unit: Unit) -> tuple[int, int]:
    """How many tombstones of a unit go, and how many dirty ones stay."""
    expired = waiting = 0
    for segment in unit.inputs:
        start = plan.start if plan.tombstones_below > segment.base_offset else max(plan.start, plan.dirty)
        if segment.end <= start:
            continue
        names = [name for name in ("value", VALUE_LENGTH) if name in unit.columns.names]
        for batch in read_segment(
            storage, unit.topic, segment, start, segment.end, names, typing=unit.typing, stored=True
        ):
            if batch.column("value").null_count:
                deleted = tombstones(batch)
                offsets = segment.base_offset + batch.column("position").to_numpy()[deleted]
                expired += int(np.count_nonzero(offsets < plan.tombstones_below))
                waiting += int(np.count_nonzero(offsets >= plan.dirty))
    return expired, waiting
