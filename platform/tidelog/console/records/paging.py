"""Records of a topic in pages: from a place on, forward or backward, over one partition or all of them.

Over several partitions a page is in the order of timestamps, each partition's records in their own order. A cursor is a
text that says where each partition goes on: "f:0-12,1-40".
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa

from tidelog.console.base.errors import bad
from tidelog.log.base.clock import Clock
from tidelog.log.topic import Topic

FORWARD, BACKWARD = "forward", "backward"
# What one request looks at, at most: records, bytes of them, seconds.
MOST_RECORDS: Final = 20_000
MOST_BYTES: Final = 64 << 20
MOST_S: Final = 2.0
_BATCH: Final = 64
# A window of offsets that is read to go backward: the first, and the widest.
_WINDOW, _WIDEST = 64, 16_384


class StoredRecord(NamedTuple):
    """A record as it is stored; `timestamp`: ms since the epoch; `created`: by its producer's clock."""

    partition: int
    offset: int
    timestamp: int
    created: bool
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def size(self) -> int:
        """Bytes of key, value and headers."""
        return len(self.key or b"") + len(self.value or b"") + sum(len(v or b"") for _, v in self.headers)


@dataclass(frozen=True, slots=True)
class PlaceToRead:
    """Where a page begins: by partition, the next offset (forward), or the end of what is before it (backward)."""

    direction: str
    offsets: Mapping[int, int]

    def cursor(self) -> str:
        """The place as a text."""
        return f"{self.direction[0]}:" + ",".join(f"{p}-{o}" for p, o in sorted(self.offsets.items()))


@dataclass(frozen=True, slots=True)
class RecordPage:
    """What was found. `next`: where later records begin, `previous`: where earlier ones end; None where there are none.

    `looked_at`: records that were read for it; `ended`: whether nothing is left in its direction.
    """

    records: list[StoredRecord] = field(default_factory=list)
    next: PlaceToRead | None = None
    previous: PlaceToRead | None = None
    looked_at: int = 0
    ended: bool = True


def parsed_cursor(text: str) -> PlaceToRead:
    """A cursor's place. Raises `ConsoleError` 400.

    >>> parsed_cursor("b:0-12,1-40")
    PlaceToRead(direction='backward', offsets={0: 12, 1: 40})
    """
    direction, _, places = text.partition(":")
    offsets: dict[int, int] = {}
    for one in places.split(","):
        partition, dash, offset = one.partition("-")
        if not dash or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in (partition, offset)):
            raise bad("'cursor' is none that a console gave.")
        offsets[int(partition)] = int(offset)
    if direction not in ("f", "b"):
        raise bad("'cursor' is none that a console gave.")
    return PlaceToRead(FORWARD if direction == "f" else BACKWARD, offsets)


def clamped(place: PlaceToRead, ranges: Mapping[int, tuple[int, int]]) -> PlaceToRead:
    """The place within what the partitions hold by now; partitions that are not there left out."""
    return PlaceToRead(
        place.direction,
        {p: min(max(o, ranges[p][0]), ranges[p][1]) for p, o in place.offsets.items() if p in ranges},
    )


def page_of(
    topic: Topic,
    place: PlaceToRead,
    ranges: Mapping[int, tuple[int, int]],
    limit: int,
    takes: Callable[[StoredRecord], bool],
    clock: Clock,
) -> RecordPage:
    """The page that begins at a place, of records that `takes` wants. Raises as `Topic.read` does.

    `ranges`: {partition: (log start offset, log end offset)}.
    """
    place = clamped(place, ranges)
    forward = place.direction == FORWARD
    positions = dict(place.offsets)
    page: list[StoredRecord] = []
    looked, size, ended = 0, 0, False
    until_s = clock.elapsed_s() + MOST_S
    records = merged(topic, place, ranges)
    while True:
        if len(page) >= limit or looked >= MOST_RECORDS or size >= MOST_BYTES or clock.elapsed_s() >= until_s:
            break
        record = next(records, None)
        if record is None:
            ended = True
            break
        looked += 1
        positions[record.partition] = record.offset + 1 if forward else record.offset
        size += record.size
        if takes(record):
            page.append(record)
    low = {p: ranges[p][0] for p in positions}
    high = {p: ranges[p][1] for p in positions}
    if ended:
        positions = high if forward else low
    first, last = (place.offsets, positions) if forward else (positions, place.offsets)
    return RecordPage(
        page,
        None if last == high else PlaceToRead(FORWARD, last),
        None if first == low else PlaceToRead(BACKWARD, first),
        looked,
        positions == (high if forward else low),
    )


def merged(topic: Topic, place: PlaceToRead, ranges: Mapping[int, tuple[int, int]]) -> Iterator[StoredRecord]:
    """All records from a place on, in a page's order."""
    if place.direction == FORWARD:
        reads = [_forward(topic, p, o, ranges[p][1]) for p, o in sorted(place.offsets.items())]
        return reads[0] if len(reads) == 1 else heapq.merge(*reads, key=lambda r: (r.timestamp, r.partition))
    reads = [_backward(topic, p, ranges[p][0], o) for p, o in sorted(place.offsets.items())]
    if len(reads) == 1:
        return reads[0]
    return heapq.merge(*reads, key=lambda r: (-r.timestamp, -r.partition))


def _forward(topic: Topic, partition: int, start: int, end: int) -> Iterator[StoredRecord]:
    if start < end:
        for batch in topic.read(partition, start, end, include_headers=True, batch_records=_BATCH):
            yield from records_of(batch)


def _backward(topic: Topic, partition: int, start: int, end: int) -> Iterator[StoredRecord]:
    """The records before `end`, the newest first, in windows that widen."""
    window = _WINDOW
    while end > start:
        begin = max(start, end - window)
        batches = list(topic.read(partition, begin, end, include_headers=True, batch_records=window))
        for batch in reversed(batches):
            yield from reversed(list(records_of(batch)))
        few = sum(batch.num_rows for batch in batches) < window // 2 or sum(map(_bytes, batches)) < MOST_BYTES // 64
        end, window = begin, min(window * 4, _WIDEST) if few else window


def _bytes(batch: pa.RecordBatch) -> int:
    return int(batch.nbytes)


def records_of(batch: pa.RecordBatch) -> Iterable[StoredRecord]:
    """A batch of `tidelog.log.delta.schema.RECORDS_WITH_HEADERS` as records."""
    columns: list[list[Any]] = [
        batch.column(name).to_pylist() for name in ("partition", "offset", "timestampType", "key", "value", "headers")
    ]
    stamps = batch.column("timestamp").cast(pa.int64()).to_pylist()
    for partition, offset, kind, key, value, pairs, us in zip(*columns, stamps, strict=True):
        headers = tuple((pair["key"], pair["value"]) for pair in pairs or ())
        yield StoredRecord(partition, offset, us // 1000, kind == 0, key, value, headers)
