"""The committer of one topic: a thread that takes what waits, has it committed, and reports its outcome."""

import logging
import threading
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from tidelog.clients.producer.delivery_reports import PurgedError, Reports, kafka_errors
from tidelog.clients.producer.partitioning import rule_of
from tidelog.clients.producer.records import Chunk, Part, sizes_by_partition
from tidelog.clients.producer.topic_queue import InFlight, TopicQueue
from tidelog.clients.producer.transactions import ProducerTransactions
from tidelog.clients.settings import ProducerSettings
from tidelog.clients.traffic import TopicFigures, Traffic
from tidelog.clients.values.errors import KafkaException
from tidelog.log.base.errors import UnknownTopicError
from tidelog.log.group_commit.engine import GroupCommit, PendingEntry
from tidelog.log.group_commit.producer_retries import ProducerRetries
from tidelog.log.group_commit.producer_sequences import Numbering
from tidelog.log.group_commit.requests import Outcomes, ProduceRequests, rows_by_partition
from tidelog.log.lake import Lake
from tidelog.log.topic import Topic

logger = logging.getLogger("tidelog.clients")

# As long as any program runs: a delivery without time limit.
_NO_LIMIT_S: Final = 1e9
_NEVER: Final = 1 << 62
# To have partitions chosen for fewer rows beside the committer takes as long as to choose them.
_WORTH_AHEAD: Final = 16_384


@dataclass(frozen=True)
class Shared:
    """What a producer's committers have in common."""

    settings: ProducerSettings
    lake: Lake
    in_flight: InFlight
    reports: Reports
    helpers: Executor
    transactions: ProducerTransactions | None = None
    traffic: Traffic | None = None


class TopicCommitter:
    """Owns a topic's queue and the thread that empties it, which ends when the producer closes."""

    def __init__(self, shared: Shared, topic: str) -> None:
        self.topic = topic
        self.queue = TopicQueue(shared.in_flight)
        self._shared = shared
        settings, lake, transactions = shared.settings, shared.lake, shared.transactions
        self._clock = lake.clock
        self._timeout_s = settings.delivery_timeout_ms / 1000 or _NO_LIMIT_S
        self._rule = rule_of(settings.partitioner)
        self._numbering = Numbering(lake.ids) if settings.enable_idempotence else None
        self._turn = int(lake.ids.fraction() * 2**31)
        self._engine = GroupCommit(
            self._open,
            self._clock,
            lake.ids,
            ProducerRetries(
                settings.retries,
                settings.retry_backoff_ms / 1000,
                max(settings.retry_backoff_max_ms, settings.retry_backoff_ms) / 1000,
            ),
            shared.helpers,
            # Which offsets the records get is known when the transaction is committed.
            None if transactions is None else partial(transactions.stage, topic),
        )
        self._entry: PendingEntry | None = None
        self._ahead: tuple[Part, ProduceRequests] | None = None
        self._thread = threading.Thread(target=self._run, name=f"tidelog-produce-{topic}", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the end."""
        self._thread.join()

    def figures(self) -> TopicFigures:
        """The topic's part of the statistics."""
        with self._shared.in_flight.lock:
            waiting = sum(item.count if isinstance(item, Part) else 1 for item in list(self.queue.items))
            waiting_bytes = self.queue.size()
        topic, numbering = self._engine.known, self._numbering
        state = None if topic is None else topic.known
        producer = None if numbering is None else numbering.snapshot()
        return TopicFigures(waiting, waiting_bytes, state, self._engine.retried, producer)

    def wake(self) -> None:
        """Have what waits looked at; after the end, it is given up."""
        self.queue.wake()
        if self.queue.closed:
            self._give_up_queued(PurgedError(in_flight=False))

    def purge(self, in_queue: bool, in_flight: bool) -> None:
        """Give up what waits, and what may be on its way."""
        if in_queue:
            self._give_up_queued(PurgedError(in_flight=False))
        entry = self._entry
        if in_flight and entry is not None:
            entry.cancel(PurgedError(in_flight=True))
            self.queue.wake()

    # --- the thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (chunk := self._next()) is not None:
            try:
                if self._shared.traffic is not None:
                    self._shared.traffic.waited(chunk.stamps)
                self._deliver(chunk)
            except Exception as e:  # no record may wait for ever for a thread that is gone
                self._settle(chunk, Outcomes(dict.fromkeys(range(chunk.units), e)))
        self._give_up_queued(PurgedError(in_flight=False))

    def _next(self) -> Chunk | None:
        """Wait for records until they have lingered; None at the end."""
        in_flight, queue, settings = self._shared.in_flight, self.queue, self._shared.settings
        with in_flight.lock:
            while not in_flight.closing:
                if not queue.items:
                    queue.wait_locked(1, 1, None)
                    continue
                spread = max(1, self._engine.known.known.partitions) if self._engine.known else 1
                most_rows, most_size = settings.batch_num_messages * spread, settings.batch_size * spread
                left_s = self._linger_left_s()
                if left_s <= 0 or len(queue.items) >= most_rows or (size := queue.size()) >= most_size:
                    return queue.take_locked()
                queue.wait_locked(most_rows, most_size - size, left_s)
            queue.close_locked()
            return None

    def _linger_left_s(self) -> float:
        """How long what waits may go on waiting for more."""
        settings, first = self._shared.settings, self.queue.items[0]
        if isinstance(first, Part) or self.queue.parts or self.queue.urgent or self._shared.in_flight.flushing:
            return 0.0
        return first[2] + settings.linger_ms / 1000 - self._clock.elapsed_s()

    def _open(self) -> Topic:
        """The topic as it is now; it may be created on the way."""
        lake, name = self._shared.lake, self.topic
        if not self._shared.settings.allow_auto_create_topics and lake.peek(name) is None:
            raise UnknownTopicError(
                f"Topic '{name}' does not exist, and the producer's allow.auto.create.topics is false. Create it"
                " (AdminClient, 'tidelog topic create')."
            )
        lake.ensure_topic(name)
        return lake.topic(name)

    # --- a chunk -------------------------------------------------------------------------------------------

    def _deliver(self, chunk: Chunk) -> None:
        """Commit a chunk as one entry and report it. After a part of a table that failed the rest is not sent."""
        if isinstance(chunk, Part) and chunk.sending.failed:
            self._settle(chunk, Outcomes())
            return
        unasked = self._shared.settings.acks == 0 and not isinstance(chunk, Part)
        if unasked:
            self._settle(chunk, Outcomes())
        part, requests = self._ahead or (None, None)
        if requests is None or part is not chunk:
            requests = self._requests(chunk)
        self._ahead = self._choose_ahead()
        entry = self._entry = self._engine.begin(requests)
        traffic = self._shared.traffic
        if traffic is None:
            self._drive(entry)
        else:
            began_s = traffic.ask("Produce", chunk.count)
            self._drive(entry)
            errors = entry.outcomes.errors
            failed = len(errors) == chunk.units
            traffic.answer(began_s, chunk.count, errors[0] if failed else None)
            if not failed:
                self._count_traffic(traffic, requests, entry.outcomes)
        self._entry = None
        if not unasked:
            self._settle(chunk, entry.outcomes)
        elif entry.outcomes.errors:
            logger.warning(
                "%d records for topic '%s' were lost, as acks=0 allows: %s",
                len(entry.outcomes.errors),
                self.topic,
                next(iter(entry.outcomes.errors.values())),
            )

    def _requests(self, chunk: Chunk) -> ProduceRequests:
        settings = self._shared.settings
        self._turn += 1
        return ProduceRequests(
            chunk.columns(self._clock.now_ms(), self._clock.elapsed_s()),
            chunk.stamps + self._timeout_s,
            chunk.explicit(),
            None if chunk.units == 1 else np.arange(chunk.count),
            numbering=None if self._shared.transactions is not None else self._numbering,
            partitioner=self._rule,
            turn=self._turn,
            acks=settings.acks or 1,
            compression=settings.compression_type,
        )

    def _choose_ahead(self) -> tuple[Part, ProduceRequests] | None:
        """Have the next part's partitions chosen by a helper, while this one is written."""
        with self._shared.in_flight.lock:
            part = self.queue.items[0] if self.queue.items else None
        topic = self._engine.known
        if not isinstance(part, Part) or part.count < _WORTH_AHEAD or topic is None:
            return None
        count, requests = topic.known.partitions, self._requests(part)
        return part, replace(requests, chosen_ahead=(count, self._shared.helpers.submit(requests.choose, count)))

    def _drive(self, entry: PendingEntry) -> None:
        in_flight = self._shared.in_flight
        while not entry.is_done:
            with in_flight.lock:
                if in_flight.closing:
                    entry.cancel(PurgedError(in_flight=True))
                pause_s = entry.due_s()
                if pause_s:
                    self.queue.wait_locked(_NEVER, _NEVER, pause_s)
            try:
                entry.advance()
            except Exception:
                logger.exception("Producing to topic '%s' failed by a fault in the program.", self.topic)

    def _count_traffic(self, traffic: Traffic, requests: ProduceRequests, outcomes: Outcomes) -> None:
        if outcomes.chosen is None:
            return
        table = requests.table if outcomes.rows is None else requests.table.take(outcomes.rows)
        traffic.move(self.topic, rows_by_partition(outcomes.chosen), sizes_by_partition(table, outcomes.chosen))

    # --- reporting -----------------------------------------------------------------------------------------

    def _give_up_queued(self, error: PurgedError) -> None:
        taken = []
        with self._shared.in_flight.lock:
            while self.queue.items:
                taken.append(self.queue.take_locked())
        for chunk in taken:
            self._settle(chunk, Outcomes(dict.fromkeys(range(chunk.units), error)))

    def _settle(self, chunk: Chunk, outcomes: Outcomes) -> None:
        """Tell the transaction, the table's future or the records' callbacks."""
        shared, errors = self._shared, kafka_errors(outcomes.errors)
        if errors and shared.transactions is not None:
            shared.transactions.failed(next(iter(errors.values())))
        if isinstance(chunk, Part):
            chunk.sending.settle(outcomes.ranges, KafkaException(errors[0]) if errors else None)
            with shared.in_flight.lock:
                shared.reports.complete_locked(chunk.count, chunk.size)
        else:
            now_ms, now_s = self._clock.now_ms(), self._clock.elapsed_s()
            shared.reports.deliver(self.topic, chunk, outcomes, errors, now_ms, now_s)
