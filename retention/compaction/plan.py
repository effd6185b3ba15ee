"""Key compaction (`cleanup.policy=compact`): which part of each partition is due, as a pure plan over its segments.

The newest record of each key stays, and records without a key go. Offsets and order never change. Tombstones stay
until every reader that began before they were compacted has had `delete.retention.ms` to see them.

Source: Kafka's `LogCleanerManager` (what is cleanable, how dirty, what is forced), `Cleaner` (what is retained) and
KIP-534 (a tombstone's time begins when a compaction first meets it).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Txn
from tidelog.log.state.topic_state import Segment, TopicState


@dataclass(frozen=True, slots=True)
class TombstoneMark:
    """Every tombstone below offset `below` was met by a compaction at `since_ms` (since the epoch) or before."""

    below: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class PartitionCompaction:
    """What there is to do in one partition.

    The records in [start, end) are in `segments`, which may begin below `start`. Below `dirty` each key has one record,
    as an earlier compaction left it. Tombstones below `tombstones_below` go. `mark` is what the log says of
    tombstones, None for nothing.
    """

    partition: int
    start: int
    dirty: int
    end: int
    tombstones_below: int
    mark: TombstoneMark | None
    segments: tuple[Segment, ...]

    @property
    def replaces(self) -> bool:
        """Whether there are keys to compare; otherwise only tombstones go."""
        return self.dirty < self.end


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The partitions of a topic that are due, the dirtiest first; `topic_id` says of which incarnation."""

    topic_id: str
    partitions: tuple[PartitionCompaction, ...]


def plan_compaction(state: TopicState, config: TopicConfig, now_ms: int) -> CompactionPlan:
    """What is due in a topic at `now_ms` (ms since the epoch).

    Example: with segments [0, 10) and [10, 20), a clean offset of 0 and nothing configured, [0, 10) is compacted: the
    newest segment is active.
    """
    due: list[tuple[float, PartitionCompaction]] = []
    if "compact" in config.cleanup_policy:
        for partition in range(state.partitions):
            found = _partition(state, config, partition, now_ms)
            if found is not None:
                due.append(found)
    due.sort(key=lambda one: (-one[0], one[1].partition))
    return CompactionPlan(state.topic_id, tuple(one for _, one in due))


def is_active(live: Sequence[Segment], config: TopicConfig, now_ms: int) -> bool:
    """Whether the newest of a partition's segments is active: younger than `segment.ms`.

    A compacted topic's is active for `max.compaction.lag.ms` at most (Kafka's `LogConfig.maxSegmentMs`). Its age counts
    from when it was committed, so that records of the past which are written now don't end it.
    """
    longest_ms = config.segment_ms
    if "compact" in config.cleanup_policy:
        longest_ms = min(longest_ms, config.max_compaction_lag_ms)
    return bool(live) and now_ms - live[-1].modification_ms <= longest_ms


def cleanable(state: TopicState, config: TopicConfig, partition: int, now_ms: int) -> tuple[int, int]:
    """The dirty offsets [start, end) of a partition that may be compacted at `now_ms`; empty where the two are equal.

    The active segment stays out, and so does all from the first segment on that is younger than the lag.
    """
    dirty = max(state.start(partition), state.cleans.get(partition, 0))
    return dirty, max(dirty, _cleanable_end(state.live(partition), state.end(partition), dirty, config, now_ms))


def tombstone_mark(state: TopicState, partition: int) -> TombstoneMark | None:
    """The tombstones of a partition that wait for their time, None when there are none."""
    below = state.txn(f"{layout.TOMBSTONES_PREFIX}{partition}") or 0
    since_ms = state.txn(f"{layout.TOMBSTONES_SINCE_PREFIX}{partition}")
    return TombstoneMark(below, since_ms) if below > 0 and since_ms is not None else None


def completed(plan: PartitionCompaction, tombstones: int, now_ms: int) -> tuple[Txn, ...]:
    """What the log notes when all that was planned for a partition is done.

    `tombstones`: how many tombstones at `dirty` or above stay. Those begin to wait at `now_ms`; while older ones wait
    they get the mark after, so that one mark is enough: a tombstone stays for `delete.retention.ms` at least, and for
    about twice that at most.
    """
    actions: list[Txn] = []
    if plan.replaces:
        actions.append(Txn(f"{layout.CLEAN_PREFIX}{plan.partition}", plan.end))
    mark = next_mark(plan, tombstones, now_ms)
    if mark != plan.mark:
        actions.append(Txn(f"{layout.TOMBSTONES_PREFIX}{plan.partition}", 0 if mark is None else mark.below))
        if mark is not None:
            actions.append(Txn(f"{layout.TOMBSTONES_SINCE_PREFIX}{plan.partition}", mark.since_ms))
    return tuple(actions)


def next_mark(compaction: PartitionCompaction, tombstones: int, now_ms: int) -> TombstoneMark | None:
    """The mark after a compaction that left `tombstones` of those that it met for the first time, or as unmarked."""
    if compaction.mark is not None and compaction.mark.below > compaction.start and not compaction.tombstones_below:
        return compaction.mark
    unmarked_from = compaction.tombstones_below or compaction.dirty
    if compaction.end > unmarked_from and (tombstones or compaction.dirty > unmarked_from):
        return TombstoneMark(compaction.end, now_ms)
    return None


def _partition(
    state: TopicState, config: TopicConfig, partition: int, now_ms: int
) -> tuple[float, PartitionCompaction] | None:
    """How dirty a partition is and what is due there, None for nothing."""
    live, start = state.live(partition), state.start(partition)
    dirty, end = cleanable(state, config, partition, now_ms)
    clean_bytes, dirty_bytes = _bytes(live, start, dirty), _bytes(live, dirty, end)
    ratio = dirty_bytes / (clean_bytes + dirty_bytes) if dirty_bytes else 0.0
    forced = dirty_bytes > 0 and _waited_long(live, dirty, end, config, now_ms)
    is_dirty = forced or ratio > config.min_cleanable_dirty_ratio
    mark = tombstone_mark(state, partition)
    below = _expired_below(mark, config, now_ms)
    if not is_dirty and below <= start:
        return None
    end = end if is_dirty else dirty
    below = below if below > start else 0
    segments = tuple(s for s in live if s.end > start and s.base_offset < end)
    return ratio, PartitionCompaction(partition, start, dirty, end, below, mark, segments)


def _expired_below(mark: TombstoneMark | None, config: TopicConfig, now_ms: int) -> int:
    """The offset below which tombstones have waited for `delete.retention.ms`."""
    return 0 if mark is None or now_ms - mark.since_ms < config.delete_retention_ms else mark.below


def _cleanable_end(live: Sequence[Segment], log_end: int, dirty: int, config: TopicConfig, now_ms: int) -> int:
    end = live[-1].base_offset if is_active(live, config, now_ms) else log_end
    if config.min_compaction_lag_ms > 0:
        for segment in live:
            if segment.end > dirty and newest_ms(segment) > now_ms - config.min_compaction_lag_ms:
                return min(end, segment.base_offset)
    return end


def _waited_long(live: Sequence[Segment], dirty: int, end: int, config: TopicConfig, now_ms: int) -> bool:
    """Whether a dirty record below `end` is older than `max.compaction.lag.ms`."""
    oldest = [oldest_ms(s) for s in live if s.end > dirty and s.base_offset < end]
    return any(0 < ms < now_ms - config.max_compaction_lag_ms for ms in oldest)


def _bytes(live: Sequence[Segment], start: int, end: int) -> float:
    """The bytes of the segments in [start, end), of those that lie partly within by their share of the offsets."""
    total = 0.0
    for segment in live:
        inside = min(end, segment.end) - max(start, segment.base_offset)
        if inside > 0:
            total += segment.size * inside / (segment.end - segment.base_offset)
    return total


def newest_ms(segment: Segment) -> int:
    """The newest timestamp in a segment, or when it was committed where its statistics have none."""
    newest = segment.stats.max_timestamp_ms
    return segment.modification_ms if newest is None else newest


def oldest_ms(segment: Segment) -> int:
    """The oldest timestamp in a segment, or when it was committed where its statistics have none."""
    oldest = segment.stats.min_timestamp_ms
    return segment.modification_ms if oldest is None else oldest
