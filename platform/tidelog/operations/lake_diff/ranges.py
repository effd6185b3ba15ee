"""Which offsets of a partition two lakes may hold in different ways: pure, over the segments of both.

A segment never changes once an entry names it, so that a file that both name at one offset holds the same for both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tidelog.log.state.topic_state import Segment, TopicState

# Records of this many bytes are in memory at once, of each side; one segment at least.
WINDOW_BYTES: Final = 32 * 1024 * 1024
MOST_RECORDS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Side:
    """A partition at one lake: its log start and log end offset, and its live segments by offset."""

    start: int = 0
    end: int = 0
    segments: Sequence[Segment] = ()

    @classmethod
    def of(cls, state: TopicState | None, partition: int) -> "Side":
        """The partition of a state; of a topic that is not there, or lacks it, an empty one."""
        if state is None or partition >= state.partitions:
            return cls()
        return cls(state.start(partition), state.end(partition), tuple(state.live(partition)))

    def within(self, start: int, end: int) -> tuple[int, int]:
        """The part of a range that is visible here; (0, 0) for none."""
        low, high = max(start, self.start), min(end, self.end)
        return (low, high) if low < high else (0, 0)

    def bytes_a_record(self) -> float:
        """The bytes of the file a slot of its fullest segment."""
        return max((s.size / max(1, s.end - s.base_offset) for s in self.segments), default=1.0)


def unshared(a: Side, b: Side) -> list[tuple[int, int]]:
    """The ranges of offsets that are not in one file at both lakes, or that one of them hides, in order.

    Example: both hold [0, 10) in one file, and b alone [10, 12): [(10, 12)].
    """
    names = {(s.path, s.base_offset, s.end) for s in b.segments}
    low, high = max(a.start, b.start), min(a.end, b.end)
    shared = [
        (max(s.base_offset, low), min(s.end, high))
        for s in a.segments
        if (s.path, s.base_offset, s.end) in names and s.end > low and s.base_offset < high
    ]
    return list(_gaps(min(a.start, b.start), max(a.end, b.end), shared))


def _gaps(start: int, end: int, covered: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for low, high in sorted(covered):
        if start < low:
            yield start, low
        start = max(start, high)
    if start < end:
        yield start, end


def windows(ranges: Sequence[tuple[int, int]], a: Side, b: Side) -> Iterator[tuple[int, int]]:
    """The ranges in pieces of which both sides fit into memory."""
    fit = int(WINDOW_BYTES / max(a.bytes_a_record(), b.bytes_a_record(), 1.0))
    step = max(1, min(MOST_RECORDS, fit))
    for start, end in ranges:
        for low in range(start, end, step):
            yield low, min(end, low + step)
