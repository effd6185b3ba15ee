"""The producer, in the shape of `confluent_kafka.Producer`, with Arrow tables on top."""

import threading
from collections.abc import Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from tidelog.clients.consumer.commits import partitions_of
from tidelog.clients.lake_client import Finalizer, LakeClient
from tidelog.clients.open_lake import OpenedLake, open_lake
from tidelog.clients.producer.committer import Shared, TopicCommitter
from tidelog.clients.producer.delivery_reports import Reports
from tidelog.clients.producer.producer_statistics import ProducerStatistics
from tidelog.clients.producer.records import (
    DeliveryCallback,
    Part,
    Sending,
    as_bytes,
    batch_records,
    extra_of,
    headers_size,
    too_large,
)
from tidelog.clients.producer.topic_queue import InFlight, parts_of, require_global_lock
from tidelog.clients.producer.transactions import ProducerTransactions, no_transactional_id
from tidelog.clients.settings import ProducerSettings
from tidelog.clients.stats import Ticker, traffic_of
from tidelog.clients.values.errors import KafkaError, KafkaException, kafka_exception, kafka_exceptions
from tidelog.clients.values.partitions import ConsumerGroupMetadata, TopicPartition
from tidelog.log.base.worker_threads import Helpers
from tidelog.log.group_commit.requests import NO_PARTITION
from tidelog.log.records.checks import check_columns
from tidelog.log.rules import names
from tidelog.log.rules.appends import Ranges

_NO_LIMIT: Final = 1 << 62
# Threads that write segments beside the committers.
_HELPERS: Final = 2


class Producer(LakeClient):
    """Produces records asynchronously: `produce`, then `poll` now and then for delivery callbacks, and `flush`.

    `conf`: a dict of configuration, confluent-kafka's keys; keywords are added to it. All methods may be called from
    many threads. Records of one topic are committed by one background thread, in the order of `produce` within each
    partition. Use it as a context manager, or call `close` at the end. Raises KafkaException for what is wrong in
    `conf`. Source: `confluent_kafka.Producer`.
    """

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        require_global_lock()
        settings = ProducerSettings.parse({**(conf or {}), **more})
        self._settings = settings
        opened = open_lake(settings)
        self._lake = opened.lake
        self._in_flight = InFlight()
        self._lock = self._in_flight.lock
        self._reports = Reports(self._in_flight, settings.on_delivery, settings.report_only_error)
        helpers = Helpers(_HELPERS, thread_name_prefix="tidelog-produce")
        self._transactions = (
            ProducerTransactions(opened.lake, settings, settings.transactional_id, helpers)
            if settings.transactional_id
            else None
        )
        traffic = traffic_of(settings, opened.lake.clock)
        self._shared = Shared(
            settings, opened.lake, self._in_flight, self._reports, helpers, self._transactions, traffic
        )
        self._now = opened.lake.clock.elapsed_s
        self._topics: dict[str, TopicCommitter] = {}
        self._opening = threading.Lock()
        self._most = 0 if self._transactions else settings.queue_max_messages or _NO_LIMIT
        self._most_size = settings.queue_max_kbytes * 1024
        self._largest = settings.message_max_bytes
        ticker = ProducerStatistics.begin(self._shared, self._topics)
        # What a program that ends without flush has still waiting is given up, as by librdkafka.
        self._end = Finalizer(self, _end, self._in_flight, self._topics, helpers, opened, ticker)

    # --- producing -----------------------------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int = NO_PARTITION,
        callback: DeliveryCallback | None = None,
        on_delivery: DeliveryCallback | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Queue a record; it is committed in the background.

        `partition`: -1 leaves it to the partitioner. `callback`, or `on_delivery`: called as callback(err, msg) from
        `poll` or `flush`. `timestamp`: ms since the epoch, 0 for now. `headers`: a list of (key, value), or a dict.
        Raises BufferError when the queue is full (`poll`, and try again), KafkaException for a record that is too
        large or a topic that can't be, TypeError for what is neither str nor bytes.
        """
        size = 0
        if value is not None:
            if value.__class__ is not bytes:
                value = as_bytes(value, "value")
            size = len(value)
        if key is not None:
            if key.__class__ is not bytes:
                key = as_bytes(key, "key")
            size += len(key)
        extra = None
        if partition != NO_PARTITION or timestamp or headers or callback or on_delivery:
            extra = extra_of(partition, timestamp, headers, callback or on_delivery)
            if extra.headers:
                size += headers_size(extra.headers)
        if size > self._largest:
            raise too_large(size, self._largest)
        committer = self._topics.get(topic)
        if committer is None:
            committer = self._begin(topic)
        in_flight, queue = self._in_flight, committer.queue
        if (
            in_flight.added - in_flight.completed >= self._most
            or in_flight.added_size - in_flight.completed_size + size > self._most_size
        ):
            raise self._full(committer)
        in_flight.added += 1
        in_flight.added_size += size
        items = queue.items
        items.append((value, key, self._now(), extra, size))
        if len(items) >= queue.wake_rows or in_flight.added_size >= queue.wake_size:
            committer.wake()

    def _full(self, committer: TopicCommitter) -> BufferError | KafkaException:
        """The queue is full: what lingers is committed. Outside of a transaction the queue has no room at all."""
        if self._transactions and not self._most:
            return self._transactions.out_of_turn()
        committer.queue.hurry()
        return BufferError("Local: Queue full")

    def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int = NO_PARTITION,
        callback: DeliveryCallback | None = None,
        on_delivery: DeliveryCallback | None = None,
    ) -> int:
        """Queue records, each a dict of `value`, `key`, `partition`, `timestamp`, `headers`, `callback`, all optional.

        `partition`, and `callback` or `on_delivery`, are those of records that name none. Returns how many records
        are queued; each other one gets its KafkaError as `_error` in its dict. Raises TypeError for what is no list
        of such dicts, before anything is queued, and KafkaException for a topic that can't be.
        """
        records = batch_records(messages, partition, callback or on_delivery)
        if topic not in self._topics:
            self._begin(topic)
        queued = 0
        for message, record in zip(messages, records, strict=True):
            try:
                Producer.produce(self, topic, **record)
            except BufferError:
                message["_error"] = KafkaError(KafkaError._QUEUE_FULL)
            except KafkaException as e:
                message["_error"] = e.args[0]
            else:
                queued += 1
        return queued

    def produce_table(self, topic: str, table: pa.Table | pa.RecordBatch) -> Future[Ranges]:
        """Queue a table's rows behind what was produced before; its future is resolved in the background.

        `table`: columns `value` (or `columns`), `key`, `headers`, `partition`, `timestamp` as `Topic.append` takes
        them. The future gives {partition: (first offset, end offset)}; a large table is committed in parts, between
        which others' records may lie. It raises KafkaException when a part fails: parts before it are in the log, none
        after it. Raises BufferError when the queue is full, KafkaException for columns that a record does not have.
        """
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        if not isinstance(table, pa.Table):
            raise TypeError(f"produce_table takes a pyarrow Table or RecordBatch, not {type(table).__name__}")
        with kafka_exceptions():
            check_columns(table.schema, topic, or_typed=True)
        committer = self._topics.get(topic) or self._begin(topic)
        future: Future[Ranges] = Future()
        slices = parts_of(table)
        if not slices:
            future.set_result({})
            return future
        if self._transactions and not self._most:
            raise self._transactions.out_of_turn()
        sending, now_s, in_flight = Sending(future, len(slices)), self._now(), self._in_flight
        size = table.nbytes
        if in_flight.count and in_flight.added_size - in_flight.completed_size + size > self._most_size:
            raise self._full(committer)
        with self._lock:
            self._require_open()
            in_flight.added += table.num_rows
            in_flight.added_size += sum(rows.nbytes for rows in slices)
            for rows in slices:
                committer.queue.add_locked(Part(rows, sending, now_s, rows.nbytes))
            committer.queue.wake_locked()
        return future

    def _begin(self, topic: str) -> TopicCommitter:
        """The committer of a topic that is produced to for the first time."""
        if not isinstance(topic, str):
            raise TypeError(f"topic must be str, not {type(topic).__name__}")
        self._require_open()
        with kafka_exceptions():
            names.validate(topic)
        with self._opening:
            committer = self._topics.get(topic)
            if committer is None:
                committer = self._topics[topic] = TopicCommitter(self._shared, topic)
        return committer

    # --- waiting -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many records wait: to be committed, or for their delivery callback."""
        return self._in_flight.count

    def __bool__(self) -> bool:
        """True: a producer with nothing to do is a producer."""
        return True

    def poll(self, timeout: float | None = -1) -> int:
        """Make the callbacks that wait; wait for some at most `timeout` seconds (None, -1: while records wait).

        Returns how many records were delivered, or failed, since the last time. What a callback raises is raised.
        """
        served = self._reports.serve()
        until_s = None if timeout is None or timeout < 0 else self._now() + timeout
        if served or (until_s is None and not self._in_flight.count):
            return served
        with self._lock:
            self._wait_locked(until_s, idle=until_s is not None)
        return self._reports.serve()

    def flush(self, timeout: float | None = -1) -> int:
        """Have everything committed without lingering, and make the callbacks, in at most `timeout` seconds.

        Returns how many records still wait.
        """
        until_s = None if timeout is None or timeout < 0 else self._now() + timeout
        with self._lock:
            self._in_flight.flushing += 1
            for committer in self._topics.values():
                committer.queue.wake_locked()
        try:
            while True:
                self._reports.serve()
                with self._lock:
                    if not self._in_flight.count or not self._wait_locked(until_s):
                        break
        finally:
            with self._lock:
                self._in_flight.flushing -= 1
        self._reports.serve()
        return len(self)

    def _wait_locked(self, until_s: float | None, *, idle: bool = False) -> bool:
        """Wait for a callback or a delivery, `idle`: also while no records wait; False when the time is up."""
        in_flight = self._in_flight
        while (in_flight.count or (idle and not in_flight.closing)) and not self._reports.any:
            left_s = None if until_s is None else until_s - self._now()
            if left_s is not None and left_s <= 0:
                return False
            in_flight.changed.wait(left_s)
        return True

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:  # noqa: ARG002
        """Give up what waits: its callbacks get `_PURGE_QUEUE`, or `_PURGE_INFLIGHT` for what is on its way.

        The latter may be committed all the same. It never blocks for long, so that `blocking` means nothing.
        """
        for committer in list(self._topics.values()):
            committer.purge(in_queue, in_flight)

    def close(self, timeout: float | None = -1) -> bool:
        """Flush, and end; True when nothing was given up. What is not committed after `timeout` seconds is."""
        left = 0
        if self._end.alive:
            self._most = 0 if self._transactions else self._most
            left = self.flush(timeout)
            if self._transactions and not left:
                with suppress(KafkaException):  # it is fenced, or others abort it after its time-out
                    self._transactions.close()
            self._end()
            self._reports.serve()
        return not left

    def _require_open(self) -> None:
        if self._in_flight.closing:
            raise RuntimeError("Producer closed: create a new one.")

    # --- transactions --------------------------------------------------------------------------------------

    def init_transactions(self, timeout: float | None = -1) -> None:  # noqa: ARG002
        """Fence earlier producers with this `transactional.id`, and finish or abort what they left; call it first.

        Once: KafkaException (`_STATE`) when it has succeeded. KafkaException: `_NOT_CONFIGURED` without a
        `transactional.id`, `INVALID_TRANSACTION_TIMEOUT` for one that the lake does not allow, retriable ones when the
        storage fails. No call of transactions waits for longer than the storage does, whatever `timeout` is.
        """
        self._transactional().init()

    def begin_transaction(self) -> None:
        """Begin a transaction: what is produced from here on belongs to it. KafkaException (`_STATE`) out of turn."""
        self._transactional().begin()
        self._most = self._settings.queue_max_messages or _NO_LIMIT

    def send_offsets_to_transaction(
        self,
        positions: list[TopicPartition],
        group_metadata: ConsumerGroupMetadata,
        timeout: float | None = -1,  # noqa: ARG002
    ) -> None:
        """Commit a consumer's offsets with the transaction, and not without it.

        `positions`: the next offsets to read; `group_metadata`: the consumer's `consumer_group_metadata()`, by which
        one that lost its partitions is fenced: KafkaException with `txn_requires_abort`.
        """
        self._transactional().send_offsets(partitions_of(positions), group_metadata)

    def commit_transaction(self, timeout: float | None = -1) -> None:
        """Flush, and commit the transaction: everything of it is in its topics when this returns.

        KafkaException: `txn_requires_abort`, call `abort_transaction`; `retriable`, call this again; `fatal`
        (`_FENCED`), close the producer: a newer one with its id has taken over.
        """
        self._end_transaction(timeout, purge=False).commit()

    def abort_transaction(self, timeout: float | None = -1) -> None:
        """Give up what waits, and abort the transaction: nothing of it is ever seen. KafkaException as for a commit."""
        self._end_transaction(timeout, purge=True).abort()

    def _end_transaction(self, timeout: float | None, *, purge: bool) -> ProducerTransactions:
        """Take no more records, and settle those there are, lest one gets into the next transaction."""
        transactions = self._transactional()
        self._most = 0
        if purge:
            self.purge()
        if left := self.flush(timeout):
            text = f"{left} records are still on their way after {timeout} s: call it again."
            raise kafka_exception(KafkaError._TIMED_OUT, text, retriable=True)
        return transactions

    def _transactional(self) -> ProducerTransactions:
        self._require_open()
        if self._transactions is None:
            raise no_transactional_id()
        return self._transactions


def _end(
    in_flight: InFlight, topics: dict[str, TopicCommitter], helpers: Executor, opened: OpenedLake, ticker: Ticker | None
) -> None:
    if ticker is not None:
        ticker.halt()
    committers = list(topics.values())
    with in_flight.lock:
        in_flight.closing = True
        in_flight.changed.notify_all()
        for committer in committers:
            committer.queue.wake_locked()
    for committer in committers:
        committer.purge(in_queue=True, in_flight=True)
    for committer in committers:
        committer.join()
    topics.clear()
    helpers.shutdown()
    opened.close()
