"""Merging: many small segments become segments of about `segment.bytes`, in offset order. A pure plan.

Bytes are written again only when what came after them has grown as large: a topic that is fed for ever and merged
every few minutes is written a few times in all, not once a run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.retention.compaction.plan import cleanable, newest_ms, oldest_ms
from tidelog.retention.rewrites.units import Unit, rewrite_codec, runs, unit_of

# The most segments that become one: an entry that takes long to make loses every race against producers that append
# all the time. What very many become is merged by the next pass.
MOST_INPUTS = 1_000


@dataclass(frozen=True, slots=True)
class Shape:
    """How a topic's segments lie: {partition: (files, bytes)}, and the bytes that a segment should have."""

    partitions: Mapping[int, tuple[int, int]]
    segment_bytes: int

    @property
    def files(self) -> int:
        """How many segments there are."""
        return sum(files for files, _ in self.partitions.values())

    @property
    def bytes(self) -> int:
        """The bytes of all segments."""
        return sum(size for _, size in self.partitions.values())

    @property
    def read_amplification(self) -> float:
        """How many files a reader of all opens for each one that it would have to; 1.0 for an empty topic."""
        fewest = sum(max(1, -(-size // self.segment_bytes)) for files, size in self.partitions.values() if files)
        return self.files / fewest if fewest else 1.0

    def replaced(self, units: Iterable[tuple[Unit, int, int]]) -> "Shape":
        """The shape after units: (unit, the number of its outputs, their bytes)."""
        partitions = dict(self.partitions)
        for unit, outputs, output_bytes in units:
            files, size = partitions[unit.partition]
            partitions[unit.partition] = (files - len(unit.inputs) + outputs, size - unit.size + output_bytes)
        return Shape(partitions, self.segment_bytes)


def shape_of(state: TopicState, config: TopicConfig) -> Shape:
    """The shape of a topic's live segments."""
    lives = {partition: state.live(partition) for partition in range(state.partitions)}
    return Shape({p: (len(live), sum(s.size for s in live)) for p, live in lives.items()}, config.segment_bytes)


def plan_merges(
    state: TopicState, topic: str, config: TopicConfig, now_ms: int, ends: Mapping[int, int] | None = None
) -> list[Unit]:
    """The units of a merge at `now_ms` (ms since the epoch), by partition and offset; none where nothing is worth it.

    - A segment of half `segment.bytes` or more stays as it is.
    - Neighbours are gathered from the oldest on until they make `segment.bytes`, or are `MOST_INPUTS`. Of what is
      left at the end and makes less, those stay that are larger than all after them by more than a tenth.
    - Where records expire by time, a merged segment spans `segment.ms` at most, or `retention.ms` when that is
      shorter (Kafka rolls a segment by the first): it expires with its newest record, and would never if it always
      took in the newest ones.
    - In a compacted topic the newest segment is active and stays, and so do the borders of what is compacted and of
      what is about to be. What `min.compaction.lag.ms` still keeps from that becomes segments that span that time at
      most: a compaction waits for the newest record of a segment, and would for ever if each merge brought newer ones.

    `ends` {partition: offset}: only segments below.
    """
    codec = rewrite_codec(config)
    return [
        unit_of(state, topic, inputs, config, codec)
        for partition in range(state.partitions)
        for run in runs(state, partition)
        for part, longest_ms in _parts(_below(run, ends), state, config, now_ms)
        for inputs in _gathered(part, config, longest_ms)
    ]


def _below(run: Sequence[Segment], ends: Mapping[int, int] | None) -> Sequence[Segment]:
    return run if ends is None else [s for s in run if s.end <= ends.get(s.partition, 0)]


def _parts(
    run: Sequence[Segment], state: TopicState, config: TopicConfig, now_ms: int
) -> Iterator[tuple[Sequence[Segment], int | None]]:
    """The run, cut where compaction needs its segments apart; how many ms a merged segment of each part may span."""
    expires = "delete" in config.cleanup_policy and config.retention_ms >= 0
    longest_ms = min(config.segment_ms, config.retention_ms) if expires else None
    if not run or "compact" not in config.cleanup_policy:
        yield run, longest_ms
        return
    partition = run[0].partition
    clean, end = cleanable(state, config, partition, now_ms)
    newest = state.live(partition)[-1].path
    yield [s for s in run if s.end <= clean], longest_ms
    dirty = [s for s in run if s.end > clean and s.path != newest]
    yield [s for s in dirty if s.base_offset < end], longest_ms
    lag_ms = config.min_compaction_lag_ms
    yield [s for s in dirty if s.base_offset >= end], lag_ms if longest_ms is None else min(lag_ms, longest_ms)


def _gathered(run: Sequence[Segment], config: TopicConfig, longest_ms: int | None) -> Iterator[list[Segment]]:
    """Groups of two neighbours or more that are to become one segment, which spans `longest_ms` at most."""
    group = _Group()
    for segment in run:
        large = 2 * segment.size >= config.segment_bytes
        if large or not group.has_room(segment, config, longest_ms):
            yield from group.whole()
            group = _Group()
        if not large:
            group.add(segment)
    yield from group.tail()


class _Group:
    """Neighbours that may become one segment: their bytes, and their oldest and newest timestamp in ms."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._size = 0
        self._oldest_ms = 0
        self._newest_ms = 0

    def add(self, segment: Segment) -> None:
        """Take the next one."""
        self._oldest_ms, self._newest_ms = self._times_with(segment)
        self._segments.append(segment)
        self._size += segment.size

    def has_room(self, segment: Segment, config: TopicConfig, longest_ms: int | None) -> bool:
        """Whether the segment still fits, by its bytes and, where there is a `longest_ms`, by its times."""
        if self._size + segment.size > config.segment_bytes or len(self._segments) == MOST_INPUTS:
            return False
        if longest_ms is None:
            return True
        oldest_ms, newest_ms = self._times_with(segment)
        return newest_ms - oldest_ms <= longest_ms

    def whole(self) -> Iterator[list[Segment]]:
        """All of it: nothing more will ever fit."""
        if len(self._segments) > 1:
            yield self._segments

    def tail(self) -> Iterator[list[Segment]]:
        """From the oldest one on that is hardly larger than all after it: the group goes on growing.

        Hardly is a tenth: batches of one size become files that differ by a few bytes.
        """
        first, size = len(self._segments), self._size
        for number, segment in enumerate(self._segments):
            size -= segment.size
            if segment.size <= 1.1 * size:
                first = number
                break
        if len(self._segments) - first > 1:
            yield self._segments[first:]

    def _times_with(self, segment: Segment) -> tuple[int, int]:
        low_ms, high_ms = oldest_ms(segment), newest_ms(segment)
        if not self._segments:
            return low_ms, high_ms
        return min(self._oldest_ms, low_ms), max(self._newest_ms, high_ms)
