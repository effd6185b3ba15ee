"""A compacted topic's fold: the state that its records add up to, followed to the head of its log."""

import threading
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import OffsetOutOfRangeError, TopicChangedError, UnknownTopicError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.rules.appends import ORDERED_PARTITION


class TopicFold(Protocol):
    """A state that records make, those of one partition in their order."""

    def take(self, key: bytes | None, value: bytes | None, offset: int, at_ms: int) -> None:
        """Take the next record. `value`: None for a tombstone. `at_ms`: its timestamp (ms since the epoch)."""


class FollowedTopic(Protocol):
    """What a fold needs of its topic, and raises as `tidelog.log.topic.Topic` does."""

    def config(self) -> TopicConfig:
        """Its configuration."""

    def offsets(self) -> dict[int, tuple[int, int]]:
        """{partition: (log start offset, log end offset)}."""

    def read(self, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The records with offsets in [start, end), in offset order."""


R = TypeVar("R")
T = TypeVar("T", bound=FollowedTopic)
F = TypeVar("F", bound=TopicFold)


class CompactedFold(Generic[T, F]):
    """The fold of a compacted topic's records. All methods may be called from many threads.

    `open_topic` gives the topic, None while it is not there; `fold` makes the state of no records. `ordered`: the
    records of one partition, 0, are the topic's.
    """

    def __init__(
        self, open_topic: Callable[[], T | None], clock: Clock, fold: Callable[[], F], *, ordered: bool
    ) -> None:
        self._open = open_topic
        self._clock = clock
        self._fold = fold
        self._ordered = ordered
        self._lock = threading.RLock()
        self._topic: T | None = None
        self._state = fold()
        self._positions: dict[int, int] = {}
        self._read_at = (0, 0.0)  # the wall clock (ms), the elapsed one (s)

    def look(self, at: Callable[[F], R]) -> R:
        """The result of `at` for the state at the head of the log. It must not change the state, nor keep it."""
        with self._lock:
            self._read_on()
            return at(self._state)

    def known(self, at: Callable[[F], R]) -> R:
        """The same for the state as of the last look, which does not wait for what another thread does."""
        try:
            return at(self._state)
        except (KeyError, RuntimeError):  # the other thread was changing the state
            with self._lock:
                return at(self._state)

    def _read_on(self) -> None:
        """Take what is new. A topic that was made again, or that compaction may have outrun, is read from its start."""
        now = self._clock.now_ms(), self._clock.elapsed_s()
        try:
            self._follow(now)
        except (TopicChangedError, UnknownTopicError, OffsetOutOfRangeError):
            self._topic = None
            self._forget()
            self._follow(now)
        self._read_at = now

    def _follow(self, now: tuple[int, float]) -> None:
        self._topic = topic = self._topic or self._open()
        if topic is None:
            return
        ends = topic.offsets()
        if self._ordered:
            ends = {ORDERED_PARTITION: ends[ORDERED_PARTITION]}
        if self._is_late(topic, now) or any(
            not start <= self._positions.get(partition, start) <= end for partition, (start, end) in ends.items()
        ):
            self._forget()
        for partition, (start, end) in ends.items():
            position = self._positions.get(partition, start)
            for batch in topic.read(partition, position, end) if position < end else ():
                for key, value, offset, at_ms in records_of(batch):
                    self._state.take(key, value, offset, at_ms)
                    self._positions[partition] = offset + 1
            self._positions[partition] = end

    def _is_late(self, topic: T, now: tuple[int, float]) -> bool:
        """Whether a tombstone may have come and gone unseen: they stay for `delete.retention.ms`.

        By the wall clock or the elapsed one, as either may have stood still or jumped.
        """
        since_ms = max(now[0] - self._read_at[0], (now[1] - self._read_at[1]) * 1000)
        return bool(self._positions) and since_ms > topic.config().delete_retention_ms // 2

    def _forget(self) -> None:
        self._state, self._positions = self._fold(), {}


def records_of(batch: pa.RecordBatch) -> Iterator[tuple[bytes | None, bytes | None, int, int]]:
    """Key, value, offset and timestamp (ms since the epoch) of each record."""
    keys, values, offsets = (batch.column(name).to_pylist() for name in ("key", "value", "offset"))
    times = pc.cast(batch.column("timestamp"), pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
    return zip(keys, values, offsets, times.to_pylist(), strict=True)
