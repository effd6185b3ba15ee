"""A compacted topic of a lake and its fold: followed, appended to at will, or only at the head that was read."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

import pyarrow as pa

from tidelog.log.appends.conditional import append_at
from tidelog.log.base.errors import InvalidConfigError, TopicChangedError, TopicExistsError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.folds.compacted import CompactedFold, TopicFold
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import ORDERED_PARTITION, HeadMovedError
from tidelog.log.topic import Topic

R = TypeVar("R")
F = TypeVar("F", bound=TopicFold)

# Keys and values, None for a tombstone.
Rows = Sequence[tuple[bytes, bytes | None]]

_CONFIG: Final = {"cleanup.policy": "compact", "delete.retention.ms": "86400000"}
_COLUMNS: Final = pa.schema({"key": pa.binary(), "value": pa.binary(), "partition": pa.int32()})


@dataclass(frozen=True, slots=True)
class TopicOwner:
    """Whose topic it is, in words: its owner, the log that it is, and what compaction alone must take from it."""

    name: str
    log: str
    loss: str


class CompactedTopic(CompactedFold[Topic, F]):
    """A compacted topic and the fold of it. All methods may be called from many threads.

    The topic is made by the first record, with `partitions`; one that is there keeps its own, unless it is `ordered`:
    then it must have one. All raise `InvalidConfigError` for a topic that would lose records.
    """

    def __init__(
        self,
        lake: Lake,
        name: str,
        partitions: int,
        fold: Callable[[], F],
        owner: TopicOwner,
        *,
        ordered: bool = False,
    ) -> None:
        super().__init__(self._opened, lake.clock, fold, ordered=ordered)
        self.name = name
        self._lake = lake
        self._partitions = partitions
        self._owner = owner

    def config(self) -> TopicConfig:
        """The topic's configuration as of the last look, the lake's defaults before it is there."""
        topic = self._topic
        return TopicConfig.parse({}, defaults=self._lake.config()) if topic is None else topic.config()

    def append(self, rows: Rows) -> None:
        """Append records; they survive a power loss on return."""
        if rows:
            with self._lock:
                self.ready().append(self._table(rows))

    def decide(self, rule: Callable[[F], tuple[R, Rows]]) -> R:
        """Append what a pure rule chooses, all or none, and return its response once it survives a power loss.

        For ordered topics. The rule may refuse by raising; it is asked again whenever others were faster. Raises
        `OutcomeUnknownError` when the store stops answering: the records may be there; decide again, and see.
        """
        with self._lock:
            while True:
                self._read_on()
                response, rows = rule(self._state)
                if not rows:
                    return response
                try:
                    append_at(self.ready().joint, self._table(rows), self._positions.get(ORDERED_PARTITION, 0))
                except (HeadMovedError, TopicChangedError):
                    continue
                self._read_on()
                return response

    def ready(self) -> Topic:
        """The topic, made where it isn't there."""
        with self._lock:
            self._topic = self._topic or self._opened()
            if self._topic is None:
                with suppress(TopicExistsError):  # by another process, just now
                    self._lake.create_topic(self.name, self._partitions, _CONFIG)
                self._topic = self._opened()
            assert self._topic is not None  # it was made above
            return self._topic

    def _opened(self) -> Topic | None:
        state = self._lake.peek(self.name)
        if state is None:
            return None
        if self._ordered and state.partitions != 1:
            raise InvalidConfigError(
                f"Topic '{self.name}' has {state.partitions} partitions: {self._owner.log} has one, which orders it."
                f" Give {self._owner.name} another topic."
            )
        topic = self._lake.topic(self.name)
        if topic.config().cleanup_policy != ("compact",):
            raise InvalidConfigError(
                f"Topic '{self.name}' has not cleanup.policy=compact: {self._owner.loss}. Set cleanup.policy=compact."
            )
        return topic

    def _table(self, rows: Rows) -> pa.Table:
        partition = ORDERED_PARTITION if self._ordered else None  # None: by key
        listed = [{"key": key, "value": value, "partition": partition} for key, value in rows]
        return pa.Table.from_pylist(listed, _COLUMNS)
