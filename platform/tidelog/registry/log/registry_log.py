"""The registry's log: decisions over the state at its head, of any number of registries over one lake."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.base.errors import (
    InvalidConfigError,
    TopicChangedError,
    TopicExistsError,
    UnknownTopicError,
)
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.head_append import append_decided
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import Ranges
from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState
from tidelog.log.topic import Topic
from tidelog.log.value_schemas import SCHEMAS_TOPIC
from tidelog.registry.log.rules import PARTITION, HeadMovedError, decide_append_at
from tidelog.registry.state.fold import RegistryState
from tidelog.registry.state.records import RegistryRecord, read

R = TypeVar("R")

_TOMBSTONES_STAY_MS: Final = 86_400_000
_CONFIG: Final = {"cleanup.policy": "compact", "delete.retention.ms": str(_TOMBSTONES_STAY_MS)}
_COLUMNS: Final = pa.schema({"key": pa.binary(), "value": pa.binary(), "partition": pa.int32()})

# A decision: its response, and the records that make it so.
Decide = Callable[[RegistryState], tuple[R, Sequence[RegistryRecord]]]


class RegistryLog:
    """The registry's state in one lake. All methods may be called from many threads.

    No registry leads: a decision's records are appended only if the topic ends where it was read, and otherwise the
    decision is made again on what others have appended. The topic is made by the first record.
    """

    def __init__(self, lake: Lake, topic: str = SCHEMAS_TOPIC) -> None:
        self._lake = lake
        self._name = topic
        self._lock = threading.RLock()
        self._topic: Topic | None = None
        self._state = RegistryState()
        self._position = 0
        self._read_at = (0, 0.0)  # the wall clock (ms), the elapsed one (s)
        # {what a record is about: keys that say so in another registry's form}. Compaction goes by a key's bytes: an
        # older record under another form would come back once the newer one's tombstone is gone.
        self._foreign: dict[tuple[str, str | None, int], set[bytes]] = {}

    @property
    def uri(self) -> str:
        """The lake's address."""
        return self._lake.uri

    @property
    def most_bytes(self) -> int:
        """The largest record that can be stored, in bytes."""
        topic = self._topic
        config = TopicConfig.parse({}, defaults=self._lake.config()) if topic is None else topic.config()
        return config.max_message_bytes

    def look(self, at: Callable[[RegistryState], R]) -> R:
        """The result of `at` for the state at the head of the log. It must not change the state, nor keep it."""
        with self._lock:
            self._read_on()
            return at(self._state)

    def known(self, at: Callable[[RegistryState], R]) -> R:
        """The same for the state as of the last look: for what never changes once it is there, as a schema's id.

        It does not wait for a decision that another thread makes.
        """
        try:
            return at(self._state)
        except (KeyError, RuntimeError):  # the other thread was changing the state
            with self._lock:
                return at(self._state)

    def decide(self, rule: Decide[R]) -> R:
        """Append the records that the pure `rule` chooses, and return its response once they survive a power loss.

        The rule may refuse by raising; it is made again whenever others were faster. Raises `OutcomeUnknownError` when
        the store stops answering: the records may be there; decide again, and see.
        """
        with self._lock:
            while True:
                self._read_on()
                response, records = rule(self._state)
                if not records:
                    return response
                try:
                    self._append(records)
                except (HeadMovedError, TopicChangedError):
                    continue
                self._read_on()
                return response

    # --- reading -------------------------------------------------------------------------------------------

    def _read_on(self) -> None:
        """Take what is new. A topic that was made again, or that compaction may have outrun, is read from its start."""
        now = self._lake.clock.now_ms(), self._lake.clock.elapsed_s()
        try:
            if self._topic is None:
                self._topic = self._opened()
            if self._topic is None:
                return
            start, end = self._topic.offsets()[PARTITION]
            if start > self._position or end < self._position or self._is_late(self._topic, now):
                self._forget()
            self._take(self._topic, max(self._position, start), end)
        except (TopicChangedError, UnknownTopicError):
            self._topic = None
            self._forget()
            self._topic = self._opened()
            if self._topic is not None:
                start, end = self._topic.offsets()[PARTITION]
                self._take(self._topic, start, end)
        self._read_at = now

    def _is_late(self, topic: Topic, now: tuple[int, float]) -> bool:
        """Whether a tombstone may have come and gone unseen: they stay for `delete.retention.ms`.

        By the wall clock or the elapsed one, as either may have stood still or jumped.
        """
        since_ms = max(now[0] - self._read_at[0], (now[1] - self._read_at[1]) * 1000)
        return self._position > 0 and since_ms > topic.config().delete_retention_ms // 2

    def _take(self, topic: Topic, start: int, end: int) -> None:
        for batch in topic.read(PARTITION, start, end) if start < end else ():
            times = pc.cast(batch.column("timestamp"), pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
            columns = (batch.column("key"), batch.column("value"), times)
            for key, value, at_ms in zip(*(column.to_pylist() for column in columns), strict=True):
                record = read(key, value, at_ms)
                if record is None:
                    continue
                if key != record.key():
                    forms = self._foreign.setdefault(_about(record), set())
                    (forms.discard if value is None else forms.add)(key)
                self._state.take([record])
        self._position = end

    def _forget(self) -> None:
        self._state, self._position = RegistryState(), 0
        self._foreign.clear()

    def _opened(self) -> Topic | None:
        """The topic, None before it is there. Raises `InvalidConfigError` for one that would lose schemas."""
        state = self._lake.peek(self._name)
        if state is None:
            return None
        topic = self._lake.topic(self._name)
        if state.partitions != 1:
            raise InvalidConfigError(
                f"Topic '{self._name}' has {state.partitions} partitions: a registry's log has one, which orders it."
                " Give the registry another topic."
            )
        if topic.config().cleanup_policy != ("compact",):
            raise InvalidConfigError(
                f"Topic '{self._name}' has not cleanup.policy=compact: schemas would be deleted by their age."
                " Set cleanup.policy=compact."
            )
        return topic

    # --- appending -----------------------------------------------------------------------------------------

    def _append(self, records: Sequence[RegistryRecord]) -> None:
        topic = self._topic or self._created()
        rows = []
        for one in records:
            forms = sorted(self._foreign.get(_about(one), ()))
            rows += [{"key": form, "value": None, "partition": PARTITION} for form in forms]
            rows.append({"key": one.key(), "value": one.payload(), "partition": PARTITION})
        table = pa.Table.from_pylist(rows, _COLUMNS)
        end, rule = self._position, decide_append_at

        def decide(state: TopicState, segments: Sequence[Staged], **times: Any) -> Outcome[Ranges]:
            return rule(state, self._name, segments, end, **times)

        append_decided(topic, table, decide)

    def _created(self) -> Topic:
        try:
            self._lake.create_topic(self._name, 1, _CONFIG)
        except TopicExistsError:
            raise HeadMovedError(f"Topic '{self._name}' was made by another registry: read it.") from None
        self._topic = self._opened()
        assert self._topic is not None  # it was made above
        return self._topic


def _about(record: RegistryRecord) -> tuple[str, str | None, int]:
    return record.kind, record.subject, record.version
