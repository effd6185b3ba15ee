"""How the ranges of a batch become Spark tasks.

With `minPartitions` or `maxRecordsPerPartition` as in Kafka's source (`KafkaOffsetRangeCalculator`): by offsets,
one range a task. Without them by bytes: as many tasks as there are cores, if there is enough to read, each a list
of ranges, cut where row groups begin, whatever the number of partitions.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from tidelog.sources.offset_json import TopicPartition
from tidelog.sources.planning import Range

# Below this a task costs more to start than to run; above it a task that fails loses too much.
MIN_TASK_BYTES = 4 * 1024 * 1024
MAX_TASK_BYTES = 256 * 1024 * 1024


class Stored(Protocol):
    """What a split needs of a segment: offsets [base_offset, end) are `size` bytes in storage."""

    @property
    def base_offset(self) -> int:
        """First offset that the segment covers."""

    @property
    def end(self) -> int:
        """End of the offsets that the segment covers."""

    @property
    def size(self) -> int:
        """Bytes of the file."""


class _RangePart(NamedTuple):
    """Part of a range: inside one segment, or (without bytes) between segments."""

    range: Range
    base_offset: int
    bytes: float


def split_by_offsets(
    ranges: Sequence[Range], min_partitions: int | None, max_records_per_partition: int | None
) -> list[Range]:
    """The ranges cut as Kafka's source cuts them; empty ones are dropped.

    First into parts of at most `max_records_per_partition` offsets, then, if that gave fewer than
    `min_partitions`, the larger ones in proportion to their sizes. The count is approximate, as in Kafka.
    """
    parts = [wanted for wanted in ranges if wanted.size > 0]
    if max_records_per_partition is not None:
        parts = [
            part
            for wanted in parts
            for part in _equal_parts(wanted, math.ceil(wanted.size / max_records_per_partition))
        ]
    if min_partitions is None or min_partitions <= len(parts):
        return parts
    total = sum(part.size for part in parts)
    whole = [part for part in parts if _part_count(part.size, total, min_partitions) == 1]
    whole_partitions = {(part.topic, part.partition) for part in whole}
    rest = total - sum(part.size for part in whole)
    rest_count = max(min_partitions - len(whole), 1)
    return [
        smaller
        for part in parts
        for smaller in _equal_parts(
            part,
            1 if (part.topic, part.partition) in whole_partitions else _part_count(part.size, rest, rest_count),
        )
    ]


def split_by_bytes(
    ranges: Sequence[Range],
    segments: Mapping[TopicPartition, Sequence[Stored]],
    *,
    cores: int,
    row_group_records: int,
    min_bytes: int = MIN_TASK_BYTES,
    max_bytes: int = MAX_TASK_BYTES,
) -> list[tuple[Range, ...]]:
    """Tasks of about equal bytes that together read exactly `ranges`, in their order.

    `segments` are each partition's, in offset order. About `cores` tasks, fewer when they would fall below
    `min_bytes`, more when they would pass `max_bytes`. Cuts are where a segment or one of its row groups begins
    (every `row_group_records` positions), so that no two tasks decode the same rows.
    """
    pieces = [
        piece
        for wanted in ranges
        if wanted.size > 0
        for piece in _pieces(wanted, segments.get(TopicPartition(wanted.topic, wanted.partition), ()))
    ]
    total = sum(piece.bytes for piece in pieces)
    count = max(min(cores, math.ceil(total / min_bytes)), math.ceil(total / max_bytes), 1)
    share = total / count
    tasks: list[list[Range]] = [[]]
    read, ended = 0.0, 0
    for piece in pieces:
        # the last share ends with the data, whatever the rounding
        ending = min(int((read + piece.bytes) / share), count - 1) if share else 0
        cuts = [_cut(piece, number * share - read, share, row_group_records) for number in range(ended + 1, ending + 1)]
        read, ended = read + piece.bytes, ending
        bounds = [piece.range.start, *cuts, piece.range.end]
        for at, (start, end) in enumerate(pairwise(bounds)):
            if at and tasks[-1]:
                tasks.append([])
            if start < end:
                _extend(tasks[-1], piece.range._replace(start=start, end=end))
    return [tuple(task) for task in tasks if task]


def _cut(piece: _RangePart, bytes_in: float, share_bytes: float, row_group_records: int) -> int:
    """Where to cut the piece, about `bytes_in` bytes into it.

    At the start of a row group or at one of the piece's ends when that is within half a share; row groups of large
    records are shorter than `row_group_records`, and then the cut lies inside one, which two tasks decode.
    """
    size = piece.range.size
    offsets_per_byte = size / piece.bytes
    goal = min(max(bytes_in * offsets_per_byte, 0), size)
    skipped = piece.range.start - piece.base_offset
    aligned = round((skipped + goal) / row_group_records) * row_group_records - skipped
    nearest = min((at for at in (0, aligned, size) if 0 <= at <= size), key=lambda at: abs(at - goal))
    at = nearest if abs(nearest - goal) <= share_bytes / 2 * offsets_per_byte else round(goal)
    return piece.range.start + at


def _pieces(wanted: Range, segments: Sequence[Stored]) -> list[_RangePart]:
    """The range, part by part, so that the parts cover all of it."""
    pieces: list[_RangePart] = []
    at = wanted.start
    first = max(bisect_right(segments, wanted.start, key=lambda segment: segment.base_offset) - 1, 0)
    for segment in segments[first:]:
        if segment.base_offset >= wanted.end:
            break
        start, end = max(at, segment.base_offset), min(wanted.end, segment.end)
        if start >= end:
            continue
        if at < start:
            pieces.append(_RangePart(wanted._replace(start=at, end=start), at, 0))
        share = (end - start) / (segment.end - segment.base_offset)
        pieces.append(_RangePart(wanted._replace(start=start, end=end), segment.base_offset, segment.size * share))
        at = end
    if at < wanted.end:
        pieces.append(_RangePart(wanted._replace(start=at), at, 0))
    return pieces


def _extend(task: list[Range], more: Range) -> None:
    """Add the range to the task, joined to the one before when it goes on there."""
    if task and task[-1][:2] == more[:2] and task[-1].end == more.start:
        task[-1] = task[-1]._replace(end=more.end)
    else:
        task.append(more)


def _equal_parts(wanted: Range, count: int) -> list[Range]:
    """`count` parts whose sizes differ by at most one, the larger ones last, without empty ones."""
    parts: list[Range] = []
    start = wanted.start
    for left in range(count, 0, -1):
        end = start + (wanted.end - start) // left
        if start < end:
            parts.append(wanted._replace(start=start, end=end))
        start = end
    return parts


def _part_count(size: int, total: int, count: int) -> int:
    # Java's Math.round: halves go up
    return max(math.floor(size / total * count + 0.5), 1)
