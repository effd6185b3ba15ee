"""A compacted topic as a fold, followed by each worker; appended to at will, or only at the head that was read."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Generic, Protocol, TypeVar

import pyarrow as pa

from tidelog.log.base.errors import InvalidConfigError, TopicChangedError, TopicExistsError, UnknownTopicError
from tidelog.log.head_append import append_decided
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import Ranges
from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState
from tidelog.log.topic import Topic
from tidelog.registry.log.rules import PARTITION, HeadMovedError, decide_append_at

R = TypeVar("R")

_COLUMNS: Final = pa.schema({"key": pa.binary(), "value": pa.binary()})
# Tombstones stay for so long after compaction; a worker that has not looked for half of that reads from the start.
_TOMBSTONES_STAY_MS: Final = 86_400_000
_CONFIG: Final = {"cleanup.policy": "compact", "delete.retention.ms": str(_TOMBSTONES_STAY_MS)}

Rows = Sequence[tuple[bytes, bytes | None]]


class TopicFold(Protocol):
    """A state that records make, those of one partition in their order."""

    def take(self, key: bytes | None, value: bytes | None, offset: int) -> None:
        """Take the next record."""


F = TypeVar("F", bound=TopicFold)


class CompactedTopic(Generic[F]):
    """A compacted topic and the fold of it. All methods may be called from many threads.

    The topic is made by the first record, with `partitions`; one that is there keeps its own, unless it is `ordered`:
    then it must have one.
    """

    def __init__(self, lake: Lake, name: str, partitions: int, fold: Callable[[], F], *, ordered: bool = False) -> None:
        self._lake = lake
        self.name = name
        self._partitions = partitions
        self._ordered = ordered
        self._new = fold
        self._lock = threading.RLock()
        self._topic: Topic | None = None
        self._state = fold()
        self._positions: dict[int, int] = {}
        self._read_at_s = 0.0

    def look(self, at: Callable[[F], R]) -> R:
        """The result of `at` for the state at the head. It must not change the state, nor keep it."""
        with self._lock:
            self._read_on()
            return at(self._state)

    def append(self, rows: Rows) -> None:
        """Append records; they survive a power loss on return."""
        if rows:
            with self._lock:
                self.ready().append(_table(rows))

    def decide(self, rule: Callable[[F], tuple[R, Rows]]) -> R:
        """Append what a pure rule chooses, atomically: it is asked again whenever others were faster.

        For topics of one partition. Raises what the rule does, and `OutcomeUnknownError`: decide again, and see.
        """
        with self._lock:
            while True:
                self._read_on()
                response, rows = rule(self._state)
                if not rows:
                    return response
                try:
                    self._append_at(rows)
                except (HeadMovedError, TopicChangedError):
                    continue
                return response

    def ready(self) -> Topic:
        """The topic, made where it isn't there. Raises `InvalidConfigError` for one that would lose records."""
        with self._lock:
            self._topic = self._topic or self._opened()
            if self._topic is None:
                with suppress(TopicExistsError):  # by another worker, just now
                    self._lake.create_topic(self.name, self._partitions, _CONFIG)
                self._topic = self._opened()
            assert self._topic is not None  # it was made above
            return self._topic

    # --- reading ------------------------------------------------------------------------------------------------

    def _read_on(self) -> None:
        """Take what is new; from the start where the topic was made again, or compaction may have outrun us."""
        now_s = self._lake.clock.elapsed_s()
        late = self._positions and now_s - self._read_at_s > _TOMBSTONES_STAY_MS / 2000
        try:
            self._topic = self._topic or self._opened()
            if self._topic is not None:
                ends = self._topic.offsets()
                if late or any(not start <= self._positions.get(p, start) <= end for p, (start, end) in ends.items()):
                    self._forget()
                self._take(self._topic)
        except (TopicChangedError, UnknownTopicError):
            self._forget()
            self._topic = self._opened()
            if self._topic is not None:
                self._take(self._topic)
        self._read_at_s = now_s

    def _take(self, topic: Topic) -> None:
        for partition, (start, end) in topic.offsets().items():
            position = max(start, self._positions.get(partition, start))
            for batch in topic.read(partition, position, end) if position < end else ():
                columns = (batch.column(name).to_pylist() for name in ("key", "value", "offset"))
                for key, value, offset in zip(*columns, strict=True):
                    self._state.take(key, value, offset)
            self._positions[partition] = end

    def _forget(self) -> None:
        self._state, self._positions = self._new(), {}

    def _opened(self) -> Topic | None:
        state = self._lake.peek(self.name)
        if state is None:
            return None
        topic = self._lake.topic(self.name)
        if topic.config().cleanup_policy != ("compact",):
            raise InvalidConfigError(
                f"Topic '{self.name}' has not cleanup.policy=compact: what workers need would be deleted by its age."
                " Set cleanup.policy=compact."
            )
        if self._ordered and state.partitions != 1:
            raise InvalidConfigError(
                f"Topic '{self.name}' has {state.partitions} partitions: it has one, which orders it. Give the workers"
                " another topic."
            )
        return topic

    def _append_at(self, rows: Rows) -> None:
        topic, end = self.ready(), self._positions.get(PARTITION, 0)

        def decide(state: TopicState, segments: Sequence[Staged], **times: Any) -> Outcome[Ranges]:
            return decide_append_at(state, self.name, segments, end, **times)

        append_decided(topic, _table(rows), decide)


def _table(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist([{"key": key, "value": value} for key, value in rows], _COLUMNS)
