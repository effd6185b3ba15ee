"""Runs of record batches that follow one another, and an index of them by place and offset. Pure."""

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from tidelog.broker.records.batches import CODECS
from tidelog.log.state.rewrites import Rewrite

# Batches that follow one another are kept, looked up and dropped together, in chunks of about this size.
CHUNK_BYTES: Final = 256 * 1024
# What keeping a batch takes beside its bytes.
BATCH_OVERHEAD: Final = 100


class Found(NamedTuple):
    """Batches from an offset on, `size` bytes in all, and the offset `end` at which to go on.

    There may be none: compaction has left no record between the offset and `end`, or, where `end` is the offset, the
    first one is too large.
    """

    batches: Sequence[bytes | memoryview]
    size: int
    end: int


# Topic, partition, and the codec that batches which are read from segments are packed by.
Place = tuple[UUID, int, int]


@dataclass(slots=True, eq=False)
class BatchRun:
    """Batches that cover the offsets [first, end) of a place. `lasts`: the last offset of each; `size`: in bytes.

    There may be offsets without a record, which compaction has taken, before each batch and behind the last.
    `version`: of the topic, as of which they were read; -1 for what was produced: an append comes before all rewrites
    of its offsets.
    """

    place: Place
    first: int
    end: int
    lasts: Sequence[int]
    batches: Sequence[bytes | memoryview]
    size: int
    version: int = -1

    def extend(self, last: int, batch: bytes) -> bool:
        """Take the batch that follows, if there is room; else close the run. Whether it was taken."""
        if not isinstance(self.batches, list) or not isinstance(self.lasts, array):
            return False
        if self.kept_bytes + len(batch) + BATCH_OVERHEAD > CHUNK_BYTES:
            self.close()
            return False
        self.lasts.append(last)
        self.batches.append(batch)
        self.end = last + 1
        self.size += len(batch)
        return True

    def close(self) -> None:
        """Have it take no more batches.

        The garbage collector looks at each item of a list, and forgets a tuple of bytes: 500,000 batches in lists held
        the process up for 22 ms at a time.
        """
        self.lasts, self.batches = array("q", self.lasts), tuple(self.batches)

    def read(self, offset: int, most_bytes: int, *, at_least_one: bool) -> Found:
        """Batches from the one that holds the offset on, whole ones of `most_bytes` in all.

        `at_least_one`: the first one may be larger (KIP-74).
        """
        begin = at = bisect_left(self.lasts, offset)
        if begin == len(self.lasts):
            return Found((), 0, self.end)
        size = 0
        while at < len(self.batches):
            more = size + len(self.batches[at])
            if more > most_bytes and not (at_least_one and at == begin):
                return Found(self.batches[begin:at], size, self.lasts[at - 1] + 1 if at > begin else offset)
            size = more
            at += 1
        return Found(self.batches[begin:], size, self.end)

    @property
    def kept_bytes(self) -> int:
        """What keeping it takes."""
        return self.size + BATCH_OVERHEAD * (len(self.batches) + 1)


class Chunks:
    """Chunks of many places, least recently used ones first."""

    def __init__(self) -> None:
        self.size = 0
        self._used: OrderedDict[BatchRun, None] = OrderedDict()
        self._places: dict[Place, list[BatchRun]] = {}

    def find(self, place: Place, offset: int) -> BatchRun | None:
        """The chunk that covers the offset, which counts as its use."""
        chunks = self._places.get(place)
        at = bisect_right(chunks, offset, key=_first) if chunks else 0
        if chunks is None or not at or chunks[at - 1].end <= offset:
            return None
        self._used.move_to_end(chunks[at - 1])
        return chunks[at - 1]

    def next_first(self, place: Place, offset: int) -> int | None:
        """Where the first chunk begins that begins after the offset."""
        chunks = self._places.get(place, [])
        at = bisect_right(chunks, offset, key=_first)
        return chunks[at].first if at < len(chunks) else None

    def extend(self, place: Place, first: int, last: int, batch: bytes) -> bool:
        """Keep a batch behind all that is kept of a place, if it follows at once and there is room; whether so."""
        chunks = self._places.get(place)
        if not chunks or chunks[-1].end != first or not chunks[-1].extend(last, batch):
            return False
        self._used.move_to_end(chunks[-1])
        self.size += len(batch) + BATCH_OVERHEAD
        return True

    def append(self, place: Place, first: int, last: int, batch: bytes) -> None:
        """Keep a batch, with the chunk that ends where it begins if that has room. It must overlap no chunk."""
        before = self.find(place, first - 1)
        if before is None or not before.extend(last, batch):
            self.add(BatchRun(place, first, last + 1, array("q", [last]), [batch], len(batch)))
        else:
            self.size += len(batch) + BATCH_OVERHEAD

    def add(self, chunk: BatchRun) -> None:
        """Keep a chunk. What overlaps it is dropped."""
        chunks = self._places.setdefault(chunk.place, [])
        begin = bisect_right(chunks, chunk.first, key=_end)
        end = bisect_left(chunks, chunk.end, lo=begin, key=_first)
        for dropped in chunks[begin:end]:
            del self._used[dropped]
            self.size -= dropped.kept_bytes
        chunks[begin:end] = [chunk]
        self._used[chunk] = None
        self.size += chunk.kept_bytes

    def drop(self) -> BatchRun:
        """Drop the chunk that was not used for the longest time; that chunk."""
        chunk = next(iter(self._used))
        self.remove(chunk)
        return chunk

    def forget(self, topic: UUID, rewrites: Iterable[Rewrite] | None) -> Sequence[BatchRun]:
        """Drop what overlaps rewrites of a topic and is of before; None: all of the topic. What was dropped."""
        if rewrites is None:
            gone = [chunk for place, chunks in self._places.items() if place[0] == topic for chunk in chunks]
        else:
            gone = list(dict.fromkeys(chunk for rewrite in rewrites for chunk in self._touched(topic, rewrite)))
        for chunk in gone:
            self.remove(chunk)
        return gone

    def _touched(self, topic: UUID, rewrite: Rewrite) -> Iterator[BatchRun]:
        for place in [(topic, rewrite.partition, codec) for codec in range(len(CODECS))]:
            chunks = self._places.get(place, [])
            begin = bisect_right(chunks, rewrite.first, key=_end)
            end = bisect_left(chunks, rewrite.end, lo=begin, key=_first)
            yield from (chunk for chunk in chunks[begin:end] if chunk.version < rewrite.version)

    def remove(self, chunk: BatchRun) -> None:
        """Drop a chunk that is there."""
        del self._used[chunk]
        self.size -= chunk.kept_bytes
        chunks = self._places[chunk.place]
        del chunks[bisect_left(chunks, chunk.first, key=_first)]
        if not chunks:
            del self._places[chunk.place]


def _first(chunk: BatchRun) -> int:
    return chunk.first


def _end(chunk: BatchRun) -> int:
    return chunk.end
