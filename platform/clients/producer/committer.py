"""The committer of one topic: a thread that takes what waits, has it committed, and reports what became of it."""

import logging
import threading
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from tidelog.clients.producer.delivery_reports import Fate, Reports
from tidelog.clients.producer.partitioning import rule_of
from tidelog.clients.producer.records import (
    I32,
    I64,
    NO_PARTITION,
    REFUSALS,
    Chunk,
    Part,
    Rows,
    refused,
    sizes_by_partition,
)
from tidelog.clients.producer.sequences import Numbering
from tidelog.clients.producer.topic_queue import Account, TopicQueue
from tidelog.clients.producer.transactions import ProducerTransactions
from tidelog.clients.settings import ProducerSettings
from tidelog.clients.stats.traffic import TopicFigures, Traffic
from tidelog.clients.values.errors import KafkaError, KafkaException, kafka_error
from tidelog.log.base.errors import (
    DeliveryTimeoutError,
    OutcomeUnknownError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    TidelogError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.group_commit.engine import REPEATED, GroupCommit, Landed, Limits, Submission, rows_by_partition
from tidelog.log.lake import Lake
from tidelog.log.records.checks import to_records
from tidelog.log.records.partitioners import assign
from tidelog.log.topic import Topic

logger = logging.getLogger("tidelog.clients")

# As long as any program runs: a delivery without time limit.
_NO_LIMIT_S: Final = 1e9
_NEVER: Final = 1 << 62
# To have partitions chosen for fewer rows beside the committer takes as long as to choose them.
_WORTH_AHEAD: Final = 16_384


class PurgedError(Exception):
    """`purge` gave the records up."""


@dataclass(frozen=True)
class Shared:
    """What a producer's committers have in common."""

    settings: ProducerSettings
    lake: Lake
    account: Account
    reports: Reports
    helpers: Executor
    transactions: ProducerTransactions | None = None
    traffic: Traffic | None = None


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A part for which partitions are being chosen, among so many."""

    part: Part
    partitions: int
    chosen: Future[I32]


class TopicCommitter:
    """Owns a topic's queue and the thread that empties it. `start` it once; it ends when the account closes."""

    def __init__(self, shared: Shared, topic: str) -> None:
        self.topic = topic
        self.queue = TopicQueue(shared.account)
        self._shared = shared
        settings = shared.settings
        self._clock = shared.lake.clock
        self._timeout_s = settings.delivery_timeout_ms / 1000 or _NO_LIMIT_S
        self._rule = rule_of(settings.partitioner)
        self._numbering = Numbering(shared.lake.ids) if settings.enable_idempotence else None
        self._turn = int(shared.lake.ids.fraction() * 2**31)
        self._handle: Topic | None = None
        self._ahead: _Ahead | None = None
        limits = Limits(
            linger_s=0,
            retries=settings.retries,
            backoff_s=settings.retry_backoff_ms / 1000,
            most_backoff_s=max(settings.retry_backoff_max_ms, settings.retry_backoff_ms) / 1000,
        )
        self._engine = GroupCommit(self._open, self._clock, shared.lake.ids, limits, shared.helpers)
        self._deadline_s = 0.0
        self._thread = threading.Thread(target=self._run, name=f"tidelog-produce-{topic}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the end."""
        self._thread.join()

    def figures(self) -> TopicFigures:
        """What statistics tell of the topic."""
        with self._shared.account.lock:
            waiting = sum(item.count if isinstance(item, Part) else 1 for item in list(self.queue.items))
            waiting_bytes = self.queue.size()
        state = None if self._handle is None else self._handle.known
        producer = None if self._numbering is None else self._numbering.told()
        return TopicFigures(waiting, waiting_bytes, state, self._engine.retries, producer)

    def purge(self, in_queue: bool, in_flight: bool) -> None:
        """Give up what waits, and what may be on its way."""
        if in_queue:
            self._fail_queued(KafkaError(KafkaError._PURGE_QUEUE))
        if in_flight:
            self._engine.cancel(PurgedError(), in_flight=True)
            self.queue.wake()

    # --- the thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            try:
                chunk = self._next()
                if chunk is None:
                    return
                if self._shared.traffic is not None:
                    self._shared.traffic.waited(chunk.stamps)
                if isinstance(chunk, Part):
                    self._deliver_part(chunk)
                else:
                    self._deliver_rows(chunk)
            except Exception as e:  # nobody must wait for ever for a thread that is gone
                self._fail_queued(self._fault(e))

    def _next(self) -> Chunk | None:
        """Wait for records until they have lingered; None at the end."""
        account, queue, settings = self._shared.account, self.queue, self._shared.settings
        with account.lock:
            while True:
                if not queue.items:
                    if account.closing:
                        return None
                    queue.wait_locked(1, 1, None)
                    continue
                spread = self._partitions()
                most_rows, most_size = settings.batch_num_messages * spread, settings.batch_size * spread
                left_s = self._linger_left_s()
                if left_s <= 0 or len(queue.items) >= most_rows or (size := queue.size()) >= most_size:
                    return queue.take_locked()
                queue.wait_locked(most_rows, most_size - size, left_s)

    def _linger_left_s(self) -> float:
        """How long what waits may go on waiting for more."""
        account, settings, first = self._shared.account, self._shared.settings, self.queue.items[0]
        if isinstance(first, Part) or self.queue.parts or self.queue.urgent or account.flushing or account.closing:
            return 0.0
        return first[2] + settings.linger_ms / 1000 - self._clock.elapsed_s()

    def _partitions(self) -> int:
        """How many partitions share what waits, as far as is known."""
        return max(1, self._handle.known.partitions) if self._handle else 1

    def _open(self) -> Topic:
        """The topic as it is now; it may be created on the way."""
        lake, name = self._shared.lake, self.topic
        if not self._shared.settings.allow_auto_create_topics and lake.peek(name) is None:
            raise UnknownTopicError(
                f"Topic '{name}' does not exist, and the producer's allow.auto.create.topics is false. Create it"
                " (AdminClient, 'tidelog topic create')."
            )
        lake.ensure_topic(name)
        self._handle = lake.topic(name)
        return self._handle

    # --- a chunk -------------------------------------------------------------------------------------------

    def _deliver_rows(self, rows: Rows) -> None:
        """Each row by itself: what is wrong with one does not stop the others."""
        explicit = rows.explicit()
        fate = Fate.of(rows.count, explicit)
        unasked = self._shared.settings.acks == 0
        if unasked:
            self._report(rows, Fate.of(rows.count, explicit))
        try:
            table = rows.columns(self._clock.now_ms(), self._clock.elapsed_s())
            left: I64 = np.arange(rows.count)
            while len(left := self._left_in_time(rows, left, fate)):
                left = self._attempt(table, explicit, left, fate)
        except Exception as e:
            fate.errors = dict.fromkeys(range(rows.count), self._fault(e))
        if not unasked:
            self._report(rows, fate)
        elif fate.errors:
            self._warn(fate)

    def _deliver_part(self, part: Part) -> None:
        """All or none of it; after a part that failed the rest of the table is not sent."""
        fate = Fate.of(0, None)
        left: I64 = np.arange(0 if part.sending.failed else part.count)
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.part is not part:
            ahead = None
        try:
            self._ahead = self._choose_ahead()
            table, explicit = part.columns(), part.explicit()
            while len(left) and not fate.errors and len(left := self._left_in_time(part, left, fate)):
                left = self._attempt(table, explicit, left, fate, ahead)
        except Exception as e:
            fate.errors[0] = self._fault(e)
        self._settle_part(part, fate)

    def _fault(self, error: Exception) -> KafkaError:
        logger.error("Producing to topic '%s' failed by a fault in the program.", self.topic, exc_info=error)
        return KafkaError(KafkaError._FAIL, f"{type(error).__name__}: {error}")

    def _left_in_time(self, chunk: Chunk, left: I64, fate: Fate) -> I64:
        late = chunk.stamps[left] + self._timeout_s <= self._clock.elapsed_s()
        if late.any():
            error = KafkaError(KafkaError._MSG_TIMED_OUT)
            fate.errors.update(dict.fromkeys(left[late].tolist(), error))
            left = left[~late]
        self._deadline_s = float(chunk.stamps[left[0]]) + self._timeout_s if len(left) else 0.0
        return left

    def _attempt(
        self, table: pa.Table, explicit: I32 | None, left: I64, fate: Fate, ahead: "_Ahead | None" = None
    ) -> I64:
        """Have rows committed; returns those that must be tried again. `ahead`: partitions of all of them."""
        try:
            topic = self._handle or self._open()
            state = topic.known
            if explicit is not None:
                left = self._known_partitions(explicit, left, state.partitions, fate)
                if not len(left):
                    return left
            rows = table if len(left) == table.num_rows else table.take(pa.array(left))
            if ahead is not None and rows is table and ahead.partitions == state.partitions:
                chosen = ahead.chosen.result()
            else:
                self._turn += 1
                chosen = self._choose(rows, None if explicit is None else explicit[left], state.partitions, self._turn)
        except TidelogError as e:
            return fate.fail(left, kafka_error(e))
        metadata = state.metadata
        try:
            landed, counts = self._commit(rows, chosen)
        except REFUSALS as e:
            kept = self._without_refused(table, left, fate)
            if len(kept) < len(left) or topic.known.metadata != metadata:
                return kept
            error = kafka_error(e)
        except UnknownPartitionError:
            return left  # the topic was created again with fewer: choose again
        except DeliveryTimeoutError as e:
            if not e.maybe_persisted:
                return left  # those whose time is up are told next
            error = KafkaError(KafkaError._MSG_TIMED_OUT, str(e))
        except PurgedError:
            error = KafkaError(KafkaError._PURGE_INFLIGHT)
        except TidelogError as e:
            error = kafka_error(e)
            if isinstance(e, OutOfOrderSequenceError | ProducerFencedError) and self._numbering:
                self._numbering.replace()
        else:
            fate.note(landed, left, chosen, counts)
            return left[:0]
        return fate.fail(left, error)

    def _known_partitions(self, explicit: I32, left: I64, count: int, fate: Fate) -> I64:
        given = explicit[left]
        unknown = (given != NO_PARTITION) & ((given < 0) | (given >= count))
        for row, partition in zip(left[unknown].tolist(), given[unknown].tolist(), strict=True):
            fate.errors[row] = KafkaError(
                KafkaError._UNKNOWN_PARTITION,
                f"Topic '{self.topic}' has no partition {partition}: it has {count}, numbered from 0",
            )
        known: I64 = left[~unknown]
        return known

    def _choose_ahead(self) -> "_Ahead | None":
        """Have the next part's partitions chosen by a helper, while this one is written."""
        with self._shared.account.lock:
            part = self.queue.items[0] if self.queue.items else None
        if not isinstance(part, Part) or part.count < _WORTH_AHEAD or self._handle is None:
            return None
        self._turn += 1
        count = self._handle.known.partitions
        chosen = self._shared.helpers.submit(self._choose, part.columns(), part.explicit(), count, self._turn)
        return _Ahead(part, count, chosen)

    def _choose(self, rows: pa.Table, explicit: I32 | None, count: int, turn: int) -> I32:
        names = rows.schema.names
        keys = rows.column("key") if "key" in names else pa.chunked_array([pa.nulls(rows.num_rows, pa.binary())])
        given = None if explicit is None else pa.array(explicit, mask=explicit == NO_PARTITION)
        return assign(keys, given, count, partitioner=self._rule, sticky=turn)

    def _commit(self, rows: pa.Table, chosen: I32) -> tuple[Landed, dict[int, int]]:
        counts, traffic = rows_by_partition(chosen), self._shared.traffic
        if traffic is None:
            return self._land(rows, chosen, counts), counts
        with traffic.asking("Produce", rows.num_rows):
            landed = self._land(rows, chosen, counts)
        traffic.move(self.topic, counts, sizes_by_partition(rows, chosen))
        return landed, counts

    def _land(self, rows: pa.Table, chosen: I32, counts: dict[int, int]) -> Landed:
        settings, numbering = self._shared.settings, self._numbering
        if self._shared.transactions is not None:
            # Which offsets the records get is known when the transaction is committed.
            self._shared.transactions.stage(self.topic, rows, chosen)
            return Landed(dict.fromkeys(counts, REPEATED))
        future = self._engine.submit(
            Submission(
                rows,
                chosen,
                None if numbering is None else numbering.batch(counts),
                acks=settings.acks or 1,
                compression=settings.compression_type,
                timeout_s=max(0.0, self._deadline_s - self._clock.elapsed_s()),
            )
        )
        self._drive(future)
        try:
            landed = future.result()
        except (PurgedError, OutcomeUnknownError, DeliveryTimeoutError) as e:
            if numbering is not None and getattr(e, "maybe_persisted", True):
                numbering.begin_anew()
            raise
        if numbering is not None:
            numbering.landed(counts)
        return landed

    def _drive(self, future: Future[Landed]) -> None:
        while not future.done():
            due_s = self._engine.due_s()
            if due_s:
                with self._shared.account.lock:
                    if not future.done():
                        self.queue.wait_locked(_NEVER, _NEVER, due_s)
            self._engine.run_once()

    def _without_refused(self, table: pa.Table, left: I64, fate: Fate) -> I64:
        """Tell the rows that are refused, each by itself; the others are tried again."""
        topic = self._handle or self._open()
        config, now_ms = topic.config(), self._clock.now_ms()
        found = refused(table, left, lambda rows: to_records(rows, self.topic, config, now_ms))
        fate.errors.update({row: kafka_error(e) for row, e in found.items()})
        kept: I64 = left[~np.isin(left, list(found))] if found else left
        return kept

    # --- telling -------------------------------------------------------------------------------------------

    def _report(self, rows: Rows, fate: Fate) -> None:
        self._tell_transaction(fate)
        self._shared.reports.deliver(self.topic, rows, fate, self._clock.now_ms(), self._clock.elapsed_s())

    def _warn(self, fate: Fate) -> None:
        logger.warning(
            "%d records for topic '%s' were lost, as acks=0 allows: %s",
            len(fate.errors),
            self.topic,
            next(iter(fate.errors.values())).str(),
        )

    def _fail_queued(self, error: KafkaError) -> None:
        taken = []
        with self._shared.account.lock:
            while self.queue.items:
                taken.append(self.queue.take_locked())
        for chunk in taken:
            self._fail_all(chunk, error)

    def _fail_all(self, chunk: Chunk, error: KafkaError) -> None:
        if isinstance(chunk, Part):
            fate = Fate.of(0, None)
            fate.errors[0] = error
            self._settle_part(chunk, fate)
        else:
            fate = Fate.of(chunk.count, chunk.explicit())
            fate.errors = dict.fromkeys(range(chunk.count), error)
            self._report(chunk, fate)

    def _tell_transaction(self, fate: Fate) -> None:
        if fate.errors and self._shared.transactions is not None:
            self._shared.transactions.failed(next(iter(fate.errors.values())))

    def _settle_part(self, part: Part, fate: Fate) -> None:
        self._tell_transaction(fate)
        error = KafkaException(fate.errors[min(fate.errors)]) if fate.errors else None
        part.sending.settle(fate.ranges, error)
        with self._shared.account.lock:
            self._shared.reports.settle_locked(part.count, part.size)
