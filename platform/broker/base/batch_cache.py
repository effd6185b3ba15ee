"""Record batches in memory, as consumers are sent them: what was produced here last, and what was read from segments.

Committed batches only. An offset that is here is answered without a look at the store.
"""

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

# Batches that follow one another are kept, looked up and dropped together, in runs of about this size.
RUN_BYTES: Final = 256 * 1024
# What keeping a batch takes beside its bytes.
BATCH_OVERHEAD: Final = 100

_Partition = tuple[UUID, int]


class Found(NamedTuple):
    """Batches from an offset on, `size` bytes in all, and the offset at which to go on.

    There may be none: compaction has left no record between the offset and `end`, or the first one is too large.
    """

    batches: Sequence[bytes]
    size: int
    end: int


@dataclass(slots=True, eq=False)
class _Run:
    """Batches that cover the offsets [first, end). `lasts`: the last offset of each batch."""

    partition: _Partition
    first: int
    end: int
    lasts: list[int]
    batches: list[bytes]
    size: int


class _Runs:
    """Runs of many partitions, least recently used ones first."""

    def __init__(self) -> None:
        self.size = 0
        self._used: OrderedDict[_Run, None] = OrderedDict()
        self._partitions: dict[_Partition, list[_Run]] = {}

    def find(self, partition: _Partition, offset: int) -> _Run | None:
        """The run that covers the offset, which counts as its use."""
        runs = self._partitions.get(partition)
        at = bisect_right(runs, offset, key=_first) if runs else 0
        if runs is None or not at or runs[at - 1].end <= offset:
            return None
        self._used.move_to_end(runs[at - 1])
        return runs[at - 1]

    def append(self, partition: _Partition, first: int, last: int, batch: bytes) -> None:
        """Keep a batch, with the run that ends where it begins if that has room. It must overlap no run."""
        before = self.find(partition, first - 1)
        size = len(batch) + BATCH_OVERHEAD
        if before is None or before.size + size > RUN_BYTES:
            self.add(_Run(partition, first, last + 1, [last], [batch], size))
            return
        before.lasts.append(last)
        before.batches.append(batch)
        before.end = last + 1
        before.size += size
        self.size += size

    def add(self, run: _Run) -> None:
        """Keep a run. What overlaps it is dropped."""
        runs = self._partitions.setdefault(run.partition, [])
        begin = bisect_right(runs, run.first, key=_end)
        end = bisect_left(runs, run.end, lo=begin, key=_first)
        for dropped in runs[begin:end]:
            del self._used[dropped]
            self.size -= dropped.size
        runs[begin:end] = [run]
        self._used[run] = None
        self.size += run.size

    def drop(self) -> None:
        """Drop the run that was not used for the longest time."""
        run, _ = self._used.popitem(last=False)
        self.size -= run.size
        runs = self._partitions[run.partition]
        del runs[bisect_left(runs, run.first, key=_first)]
        if not runs:
            del self._partitions[run.partition]


class BatchCache:
    """The batches of a process that consumers may ask for next, `most_bytes` in all; for the loop's thread.

    Half of it is for what was produced through this broker, half for what was read from segments. Either may have
    what the other does not need.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._produced = _Runs()
        self._read = _Runs()

    @property
    def size(self) -> int:
        """The bytes that are kept, with what keeping them takes."""
        return self._produced.size + self._read.size

    def add(self, topic: UUID, partition: int, first: int, last: int, batch: bytes) -> None:
        """Keep a committed batch of offsets `first` to `last`, as consumers are to see it: its offsets are set."""
        key = (topic, partition)
        if self._produced.find(key, first) is None and self._produced.find(key, last) is None:
            self._produced.append(key, first, last, batch)
            self._trim()

    def add_read(self, topic: UUID, partition: int, first: int, end: int, batches: Sequence[tuple[int, bytes]]) -> None:
        """Keep what [first, end) of a partition is: batches with the last offset of each, in order."""
        lasts, kept = [last for last, _ in batches], [batch for _, batch in batches]
        size = sum(map(len, kept)) + BATCH_OVERHEAD * (len(kept) + 1)
        self._read.add(_Run((topic, partition), first, end, lasts, kept, size))
        self._trim()

    def get(self, topic: UUID, partition: int, offset: int) -> bytes | None:
        """The batch that holds the offset, or the next one where compaction has left none; None: it is not here."""
        found = self.read(topic, partition, offset, 0, at_least_one=True)
        return found.batches[0] if found is not None and found.batches else None

    def read(
        self, topic: UUID, partition: int, offset: int, most_bytes: int, *, at_least_one: bool = False
    ) -> Found | None:
        """Batches from the one that holds the offset on, whole ones of `most_bytes` in all; None: it is not here.

        `at_least_one`: the first one may be larger (KIP-74). There may be more to be had where they end.
        """
        key = (topic, partition)
        run = self._produced.find(key, offset) or self._read.find(key, offset)
        if run is None:
            return None
        begin = at = bisect_left(run.lasts, offset)
        if begin == len(run.lasts):
            return Found((), 0, run.end)
        size = 0
        while at < len(run.batches):
            more = size + len(run.batches[at])
            if more > most_bytes and not (at_least_one and at == begin):
                return Found(run.batches[begin:at], size, run.lasts[at - 1] + 1 if at > begin else offset)
            size = more
            at += 1
        return Found(run.batches[begin:], size, run.end)

    def _trim(self) -> None:
        while self.size > self.most_bytes:
            (self._produced if self._produced.size > self._read.size else self._read).drop()


def _first(run: _Run) -> int:
    return run.first


def _end(run: _Run) -> int:
    return run.end
