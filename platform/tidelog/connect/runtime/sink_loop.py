"""The loop of a sink's task: consume, convert, transform, put, flush, commit."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.message import Message
from tidelog.clients.values.partitions import TopicPartition
from tidelog.connect.data.errors import ConnectError, RetriableConnectError
from tidelog.connect.data.records import Partition, SinkRecord
from tidelog.connect.runtime.conversion import Conversion, RawRecord
from tidelog.connect.runtime.task_figures import RetryNotes, TaskFigure
from tidelog.connect.runtime.task_spans import NO_SPANS, TaskSpans
from tidelog.connect.runtime.tolerance import ErrorStage, RecordFailedError, ToleranceOperator
from tidelog.connect.spi.sinks import SinkTask

logger = logging.getLogger("tidelog.connect")

# How many records one `put` has at most, and how long the consumer waits for the first of them.
BATCH = 500
_WAIT_S = 0.5
_NO_OFFSET = -1001


class DeadLetters(Protocol):
    """Takes the records that a sink gives up."""

    def put(self, raw: RawRecord, failure: RecordFailedError) -> None:
        """Store a record, before the offset after it may be committed."""


class SinkLoop:
    """One started sink task with its consumer. `step` is called over and over by one thread.

    `notes`: is notified of puts that fail and are made again. `spans`: where puts become traces.
    """

    def __init__(
        self,
        task: SinkTask,
        consumer: Consumer,
        conversion: Conversion,
        operator: ToleranceOperator,
        dead_letters: DeadLetters | None,
        *,
        wait: Callable[[float], bool],
        now_s: Callable[[], float],
        commit_interval_s: float,
        seen_topic: Callable[[str], None] = lambda _: None,
        notes: RetryNotes | None = None,
        spans: TaskSpans = NO_SPANS,
    ) -> None:
        self._spans = spans
        self._task = task
        self._consumer = consumer
        self._conversion = conversion
        self._operator = operator
        self._dead_letters = dead_letters
        self._wait = wait
        self._now_s = now_s
        self._interval_s = commit_interval_s
        self._commit_s = now_s() + commit_interval_s
        self._seen = seen_topic
        self._notes = notes
        self._offsets: dict[Partition, int] = {}  # of the records after those that were put
        self._raws: dict[tuple[str, int, int], RawRecord] = {}  # of the batch that is being put
        self._held: list[SinkRecord] | None = None  # a batch that is to be put again, and the offsets after it
        self._held_offsets: dict[Partition, int] = {}
        self._failure: Exception | None = None  # of a callback
        self.assignment: set[Partition] = set()
        self.paused: set[Partition] = set()
        self.seeks: dict[Partition, int] = {}
        self.commit_requested = False
        self.retry_s: float | None = None
        self._figures = operator.figures

    def subscribe(self, topics: Sequence[str], regex: str) -> None:
        """Join the group. The expression is one of whole names, as Kafka has it."""
        wanted = [f"^({regex})$"] if regex else list(topics)
        self._consumer.subscribe(wanted, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def step(self) -> None:
        """Put the next records, and commit when that is due. Raises what fails the task."""
        messages = self._consumer.consume(BATCH, _WAIT_S)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self._held is None:
            read = [message for message in messages if not self._is_notice(message)]
            self._figures.add(TaskFigure.READ, len(read))
            self._put(self._records(read), read)
        else:
            self._put_again()
        if self._held is None and (self.commit_requested or self._now_s() >= self._commit_s):
            self.commit()

    def _is_notice(self, message: Message[Any, Any]) -> bool:
        """Whether a message is no record: that a topic isn't there yet is logged. Raises other errors."""
        error = message.error()
        if error is None:
            return False
        if error.fatal() or not (error.retriable() or error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART):
            raise KafkaException(error)
        logger.warning("The consumer goes on: error=%s", error.str())
        return True

    def idle(self) -> None:
        """Stay in the group while the connector is paused: no records come."""
        self._consumer.pause(as_partitions(self.assignment))
        self._consumer.consume(1, _WAIT_S)

    def go_on(self) -> None:
        """Read again after a pause."""
        self._consumer.resume(as_partitions(self.assignment - self.paused))

    def pause_partitions(self, partitions: Collection[Partition]) -> None:
        """Give no records of some partitions."""
        self.paused |= set(partitions) & self.assignment
        self._consumer.pause(as_partitions(self.paused))

    def resume_partitions(self, partitions: Collection[Partition]) -> None:
        """Give records of them again."""
        self.paused -= set(partitions)
        if self._held is None:
            self._consumer.resume(as_partitions(set(partitions) & self.assignment))

    def close(self) -> None:
        """Flush and commit what was put, and leave the group: `_revoked` does the work."""
        self._consumer.close()
        if self._failure is not None:
            raise self._failure

    # --- records ------------------------------------------------------------------------------------------------

    def _records(self, messages: Sequence[Message[Any, Any]]) -> list[SinkRecord]:
        records = []
        self._raws.clear()
        for message in messages:
            raw = raw_of(message)
            self._seen(raw.topic)
            try:
                record = self._conversion.to_sink(raw)
            except RecordFailedError as failure:
                self._give_up(raw, failure)
                continue
            if record is not None:
                self._raws[raw.topic, raw.partition or 0, raw.offset] = raw
                records.append(record)
        return records

    def _put(self, records: list[SinkRecord], messages: Sequence[Message[Any, Any]] = ()) -> None:
        """Put records; those that are to be put again later hold back everything behind them."""
        after = {(raw.topic, raw.partition or 0): raw.offset + 1 for raw in map(raw_of, messages)}
        try:
            with self._spans.batch("put", self._raws.values(), len(records)):
                self._task.put(records)
        except RetriableConnectError as error:
            self._note(error)
            self._held = records
            self._held_offsets = after
            self._consumer.pause(as_partitions(self.assignment))
            return
        self._figures.add(TaskFigure.SENT, len(records))
        self._offsets |= after
        self._apply_seeks()

    def _put_again(self) -> None:
        pause_s, self.retry_s = self.retry_s if self.retry_s is not None else 1.0, None
        if self._wait(pause_s):
            return
        records, after = [one for one in self._held or [] if one.original in self.assignment], self._held_offsets
        try:
            with self._spans.batch("put", self._raws.values(), len(records)):
                self._task.put(records)
        except RetriableConnectError as error:
            self._note(error)
            return
        self._held = None
        if self._notes is not None:
            self._notes.succeeded()
        self._figures.add(TaskFigure.SENT, len(records))
        self._offsets |= {partition: offset for partition, offset in after.items() if partition in self.assignment}
        self._consumer.resume(as_partitions(self.assignment - self.paused))
        self._apply_seeks()

    def _note(self, error: Exception) -> None:
        self._figures.add(TaskFigure.RETRIES)
        if self._notes is not None:
            self._notes.failed(error)

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Give up a record that the task could not write (`ErrantRecordReporter`)."""
        raw = self._raws.get((record.original_topic, record.original_partition, record.offset))
        failure = RecordFailedError(ErrorStage.TASK_PUT, type(self._task).__name__, error)
        if raw is None:
            raise ConnectError(
                f"Record {record.original_topic}-{record.original_partition}@{record.offset} is none of the last put's."
            )
        self._give_up(raw, failure)

    def _give_up(self, raw: RawRecord, failure: RecordFailedError) -> None:
        letters = self._dead_letters
        where = f"topic={raw.topic} partition={raw.partition} offset={raw.offset}"
        self._operator.tolerate(failure, where, None if letters is None else lambda: letters.put(raw, failure))

    # --- offsets ------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Have the task flush, and commit what it says. Raises what fails the task."""
        self.commit_requested = False
        self._commit_s = self._now_s() + self._interval_s
        current = {partition: offset for partition, offset in self._offsets.items() if partition in self.assignment}
        if not current:
            return
        try:
            said = self._task.pre_commit(current)
        except RetriableConnectError:
            return  # at the next interval
        self._commit({p: min(offset, current[p]) for p, offset in said.items() if p in current})

    def _commit(self, offsets: Mapping[Partition, int]) -> None:
        if offsets:
            listed = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
            self._consumer.commit(offsets=listed, asynchronous=False)
            self._figures.add(TaskFigure.COMMITTED)

    def _apply_seeks(self) -> None:
        for partition, offset in self.seeks.items():
            if partition in self.assignment:
                self._consumer.seek(TopicPartition(*partition, offset))
                self._offsets[partition] = offset
        self.seeks.clear()

    # --- the group ----------------------------------------------------------------------------------------------

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        keys = as_keys(partitions)
        self.assignment |= keys
        with self._kept_failure():
            self._task.open(keys)
            if self.seeks:
                wanted = [TopicPartition(*one, self.seeks.get(one, _NO_OFFSET)) for one in sorted(keys)]
                consumer.assign(wanted)
                self._offsets |= self.seeks
                self.seeks.clear()

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        with self._kept_failure():
            if self._held is None:
                self.commit()
        self._closed(as_keys(partitions))

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._closed(as_keys(partitions))

    def _closed(self, partitions: Collection[Partition]) -> None:
        with self._kept_failure():
            self._task.close(partitions)
        for partition in partitions:
            self.assignment.discard(partition)
            self.paused.discard(partition)
            self._offsets.pop(partition, None)
        if not self.assignment:
            self._held = None

    @contextmanager
    def _kept_failure(self) -> Iterator[None]:
        """Raise an error of a callback from the next `step`."""
        try:
            yield
        except Exception as error:
            self._failure = self._failure or error


def raw_of(message: Message[Any, Any]) -> RawRecord:
    """The record of a consumer's message."""
    kind, timestamp_ms = message.timestamp()
    return RawRecord(
        message.topic() or "",
        message.partition(),
        message.key(),
        message.value(),
        timestamp_ms if kind else None,
        tuple(message.headers() or ()),
        message.offset() or 0,
    )


def as_partitions(partitions: Collection[Partition]) -> list[TopicPartition]:
    """Partitions as the consumer takes them."""
    return [TopicPartition(topic, number) for topic, number in sorted(partitions)]


def as_keys(partitions: Collection[TopicPartition]) -> set[Partition]:
    """Partitions as tasks have them."""
    return {(one.topic, one.partition) for one in partitions}
