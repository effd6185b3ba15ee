"""What a client asks of the logs of its topics, counted for its statistics: requests, records, and how long they take.

A request is what a Kafka client would send one for: an entry with records (Produce), a read of what a session follows
(Fetch), a commit of offsets (OffsetCommit).
"""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import DeliveryTimeoutError, TidelogError
from tidelog.log.state.topic_state import TopicState

I64 = npt.NDArray[np.int64]

_PERCENTILES = {"p50": 50.0, "p75": 75.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99_99": 99.99}


class Window:
    """Values since it was last taken, by their first three digits: how many of each. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[int] = Counter()
        self._sum = 0

    def add(self, values: npt.ArrayLike) -> None:
        """Add one value, or many, none below 0."""
        given = np.atleast_1d(np.asarray(values)).astype(np.int64)
        digits = np.floor(np.log10(np.maximum(given, 1))).astype(np.int64) + 1
        scale = 10 ** np.maximum(digits - 3, 0)
        rounded, counts = np.unique(given // scale * scale, return_counts=True)
        with self._lock:
            self._sum += int(given.sum())
            self._counts.update(dict(zip(rounded.tolist(), counts.tolist(), strict=True)))

    def take(self) -> dict[str, int]:
        """How the values spread, in the fields of librdkafka's window stats; then there are none."""
        with self._lock:
            taken, total = sorted(self._counts.items()), self._sum
            self._counts.clear()
            self._sum = 0
        count = sum(n for _, n in taken)
        if not count:
            return dict.fromkeys(
                ("min", "max", "avg", "sum", "stddev", *_PERCENTILES, "outofrange", "hdrsize", "cnt"), 0
            )
        values, counts = (np.array(column, np.int64) for column in zip(*taken, strict=True))
        up_to = counts.cumsum()
        spread = {
            name: int(values[np.searchsorted(up_to, np.ceil(share / 100 * count))])
            for name, share in _PERCENTILES.items()
        }
        deviation = np.sqrt((counts * (values - total / count) ** 2).sum() / count)
        return {
            "min": int(values[0]),
            "max": int(values[-1]),
            "avg": total // count,
            "sum": total,
            "stddev": int(deviation),
            **spread,
            "outofrange": 0,
            "hdrsize": 16 * len(values),
            "cnt": count,
        }


class TopicFigures(NamedTuple):
    """What a topic's committer knows: records and bytes that wait, its log, and its producer id there.

    `producer`: (producer id, epoch, {partition: next sequence}); None without idempotence.
    """

    waiting: int
    waiting_bytes: int
    state: TopicState | None
    retries: int
    producer: tuple[int, int, Mapping[int, int]] | None


@dataclass
class MovedRecords:
    """Records that were produced to a partition, or read from it, and their bytes."""

    records: int = 0
    size: int = 0


@dataclass
class Traffic:
    """A client's requests and records since it began. `began_s`: on the elapsed clock. For any thread."""

    clock: Clock
    requests: Counter[str] = field(default_factory=Counter)
    answered: int = 0
    failed: int = 0
    timed_out: int = 0
    pending: int = 0
    pending_records: int = 0
    sent_s: float | None = None
    answered_s: float | None = None
    round_trips_us: Window = field(default_factory=Window)
    waits_us: Window = field(default_factory=Window)
    partitions: dict[tuple[str, int], MovedRecords] = field(default_factory=dict)
    batches: dict[str, tuple[Window, Window]] = field(default_factory=dict)
    topics_began_s: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.began_s = self.clock.elapsed_s()

    @contextmanager
    def asking(self, request: str, records: int = 0) -> Iterator[None]:
        """Count a request, and whether it is answered or fails."""
        began_s = self.ask(request, records)
        try:
            yield
        except TidelogError as e:
            self.answer(began_s, records, e)
            raise
        self.answer(began_s, records)

    def ask(self, request: str, records: int = 0) -> float:
        """A request begins; returns when."""
        with self._lock:
            self.requests[request] += 1
            self.pending += 1
            self.pending_records += records
            self.sent_s = self.clock.elapsed_s()
            return self.sent_s

    def answer(self, began_s: float, records: int = 0, error: BaseException | None = None) -> None:
        """A request is over."""
        now_s = self.clock.elapsed_s()
        self.round_trips_us.add(int((now_s - began_s) * 1e6))
        with self._lock:
            self.pending -= 1
            self.pending_records -= records
            if error is None:
                self.answered += 1
                self.answered_s = now_s
            elif isinstance(error, DeliveryTimeoutError):
                self.timed_out += 1
            else:
                self.failed += 1

    def waited(self, stamps: npt.NDArray[np.float64]) -> None:
        """Records that were handed in then are on their way."""
        self.waits_us.add(np.maximum(self.clock.elapsed_s() - stamps, 0.0) * 1e6)

    def move(self, topic: str, records: dict[int, int], sizes: dict[int, int]) -> None:
        """Records of a batch were produced or read: {partition: how many}, {partition: bytes}."""
        with self._lock:
            self.topics_began_s.setdefault(topic, self.clock.elapsed_s())
            batch_sizes, batch_counts = self.batches.setdefault(topic, (Window(), Window()))
            for partition, count in records.items():
                moved = self.partitions.setdefault((topic, partition), MovedRecords())
                moved.records += count
                moved.size += sizes[partition]
        batch_sizes.add(list(sizes.values()))
        batch_counts.add(list(records.values()))

    def total(self) -> MovedRecords:
        """All records that were produced or read."""
        with self._lock:
            every = list(self.partitions.values())
        return MovedRecords(sum(one.records for one in every), sum(one.size for one in every))
