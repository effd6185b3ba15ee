"""Consumer: reads topics, alone or with a group, in the shape of `confluent_kafka.Consumer`."""

# ruff: noqa: ARG002 - confluent-kafka's parameters, of which some mean nothing here

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from tidelog.clients.consumer.buffer import Buffer, as_table
from tidelog.clients.consumer.commits import as_partition, commit_failed, partitions_of, to_offsets
from tidelog.clients.consumer.consumer_statistics import ConsumerStatistics
from tidelog.clients.consumer.fetcher import Fetcher
from tidelog.clients.consumer.group import GroupSide
from tidelog.clients.consumer.polling import Polling
from tidelog.clients.consumer.rebalance import Events, RebalanceCallback, Rebalancing
from tidelog.clients.consumer.shared import ConsumerShared
from tidelog.clients.consumer.subscription import TopicSelection
from tidelog.clients.lake_client import Finalizer, LakeClient
from tidelog.clients.open_lake import OpenedLake, open_lake
from tidelog.clients.settings import ConsumerSettings
from tidelog.clients.stats import Ticker, traffic_of
from tidelog.clients.values.errors import KafkaError, KafkaException, invalid_argument, kafka_error, kafka_exceptions
from tidelog.clients.values.message import Message
from tidelog.clients.values.partitions import OFFSET_END, OFFSET_INVALID, ConsumerGroupMetadata, TopicPartition
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import require_partition
from tidelog.operations.topics import ask_together

MOST_MESSAGES = 1_000_000


class Consumer(LakeClient):
    """Reads topics of a lake. `conf` (or keywords): Kafka's dotted keys, see `ConsumerSettings`.

    Use it as a context manager, or close it at the end. Its methods may be called from many threads; callbacks run
    inside `poll`, `consume`, `unsubscribe` and `close`. Threads of its own read ahead and keep it in its group.
    Iterating over it polls for ever: it yields messages and raises a partition's errors. Source of the shape:
    `confluent_kafka.Consumer`; a closed one raises RuntimeError.
    """

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        settings = self._settings = ConsumerSettings.parse({**(conf or {}), **more})
        opened = open_lake(settings)
        lake = self._lake = opened.lake
        traffic = traffic_of(settings, lake.clock)
        shared = ConsumerShared(settings, lake, Buffer(store=settings.enable_auto_offset_store), traffic)
        self._lock, self._assignment, self._buffer = shared.lock, shared.assignment, shared.buffer
        events = Events(shared.lock)
        group = self._group = GroupSide(shared, events.add)
        fetcher = self._fetcher = Fetcher(shared, group.committer.offsets)
        rebalancing = self._rebalancing = Rebalancing(shared, fetcher, group, events)
        self._polling = Polling(shared, fetcher, group, events, rebalancing)
        ticker = None
        if traffic is not None:
            rebalancing.statistics = ConsumerStatistics(
                shared, traffic, rebalancing.rebalances, lambda: group.member_id
            )
            ticker = Ticker(settings, events.add_statistics_due)
        self._subscribed = False
        # Also when the consumer is garbage-collected, or the process ends: then it commits nothing, and does not leave.
        self._stop = Finalizer(self, _stop, fetcher, group, opened, ticker)

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        while True:
            message = self.poll()
            if message is None:
                continue
            error = message.error()
            if error is None:
                return message
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)

    def close(self) -> None:
        """Commit what is stored (`enable.auto.commit`), leave the group, and stop. Closing again does nothing."""
        if self._polling.closed:
            return
        try:
            self._rebalancing.serve(self)
            if self._subscribed:
                self._subscribed = False
                self._rebalancing.leave(self)
            else:
                self._rebalancing.clear()
                self._group.leave()  # as no member: commits in the background are through
            self._rebalancing.serve(self)
        finally:
            self._polling.close()
            self._stop()

    # --- what to read --------------------------------------------------------------------------------------

    def subscribe(
        self,
        topics: list[str],
        on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Share these topics with the group's other members; replaces an earlier subscription.

        A name that begins with `^` is a regular expression; it matches no internal topics. The callbacks get the
        consumer and the partitions, from inside `poll`; `on_assign` may call `assign` to start elsewhere.
        Raises TypeError, KafkaException.
        """
        self._polling.require_open()
        self._group.require_able()
        subscription = TopicSelection.parse(topics)
        for name, callback in (("on_assign", on_assign), ("on_revoke", on_revoke), ("on_lost", on_lost)):
            if callback is not None and not callable(callback):
                raise TypeError(f"{name} expects a callable")
        rebalancing = self._rebalancing
        rebalancing.on_assign, rebalancing.on_revoke, rebalancing.on_lost = on_assign, on_revoke, on_lost
        with kafka_exceptions():
            self._group.subscribe(subscription)
        self._subscribed = True

    def unsubscribe(self) -> None:
        """Give up what the group assigned, and leave it."""
        self._polling.require_open()
        if self._subscribed:
            self._subscribed = False
            self._rebalancing.leave(self)

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions and nothing else; `offset` says from where, the committed offset where it is not set.

        New partitions are not found. Raises TypeError.
        """
        self._polling.require_open()
        self._rebalancing.assign(partitions_of(partitions))

    def unassign(self) -> None:
        """Read nothing any more."""
        self._polling.require_open()
        self._rebalancing.clear()

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Read these too. Raises KafkaException (`_CONFLICT`) for one that is assigned."""
        self._polling.require_open()
        self._rebalancing.add(partitions_of(partitions))

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Read these no more. Raises KafkaException (`_INVALID_ARG`) for one that is not assigned."""
        self._polling.require_open()
        self._rebalancing.remove([(p.topic, p.partition) for p in partitions_of(partitions)])

    def assignment(self) -> list[TopicPartition]:
        """What is read, each with its position where there is one."""
        self._polling.require_open()
        with self._lock:
            return [TopicPartition(o.topic, o.partition, o.position) for o in self._assignment]

    # --- reading -------------------------------------------------------------------------------------------

    def poll(self, timeout: float | None = None) -> Message | None:
        """The next message, or an error event; None after `timeout` seconds (None or below 0: without end).

        Serves callbacks on the way. Once a consumer can't go on (another has taken its `group.instance.id`), it gets
        the fatal error in place of None, again and again: close it.
        """
        message = self._polling.take_ready()
        if message is not None:
            return message
        return self._polling.next(self, self._polling.deadline(timeout), self._buffer.take)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """The next messages and error events: `num_messages`, or fewer after `timeout` seconds (below 0: no end).

        Fewer, too, when partitions are to be given up: the next call reports it. Raises ValueError for more than
        1,000,000.
        """
        self._polling.require_open()
        if not 0 <= num_messages <= MOST_MESSAGES:
            raise ValueError("num_messages must be between 0 and 1000000 (1M)")
        count = min(num_messages, self._settings.max_poll_records or MOST_MESSAGES)
        until = self._polling.deadline(timeout)
        messages: list[Message] = []
        while len(messages) < count:
            left = count - len(messages)
            batch = self._polling.next(self, until, lambda: self._buffer.take_many(left), holds=bool(messages))  # noqa: B023 - called at once
            if not batch:
                break
            messages += batch
        return messages

    def consume_table(
        self, num_records: int = 100_000, timeout: float = -1, *, include_headers: bool = False
    ) -> pa.Table:
        """The next records as an Arrow table: `num_records`, or fewer after `timeout` seconds (below 0: no end).

        Columns as `Topic.read`: key, value, topic, partition, offset, timestamp (UTC, us), timestampType, and headers
        where asked for. Stored and committed like messages. An error ends the table; one that comes first is raised as
        KafkaException. Ends of partitions are passed over.
        """
        self._polling.require_open()
        if num_records < 0:
            raise ValueError("num_records must not be below 0")
        until = self._polling.deadline(timeout)
        batches: list[pa.RecordBatch] = []
        count = 0
        while count < num_records:
            left = num_records - count
            taken = self._polling.next(self, until, lambda: self._buffer.take_batch(left), holds=count > 0)  # noqa: B023 - called at once
            if taken is None:
                break
            if isinstance(taken, Message):
                if taken.error().code() == KafkaError._PARTITION_EOF:
                    continue
                if not batches:
                    raise KafkaException(taken.error())
                with self._lock:
                    self._buffer.put_back(taken)
                break
            batches.append(taken)
            count += taken.num_rows
        return as_table(batches, include_headers=include_headers)

    # --- its position --------------------------------------------------------------------------------------

    def seek(self, partition: TopicPartition) -> None:
        """Go on from `partition.offset`, which may be a logical one. Raises KafkaException for one not assigned."""
        self._polling.require_open()
        (one,) = partitions_of([partition])
        with self._lock:
            self._assignment.seek((one.topic, one.partition), one.offset)
        self._fetcher.changed()

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Hand out nothing of these partitions until `resume`; those not assigned are passed over."""
        self._polling.require_open()
        with self._lock:
            self._assignment.pause((p.topic, p.partition) for p in partitions_of(partitions))
        self._fetcher.changed()

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Go on with paused partitions."""
        self._polling.require_open()
        with self._lock:
            self._assignment.resume((p.topic, p.partition) for p in partitions_of(partitions))
        self._fetcher.changed()

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """The offset after the last message handed out, OFFSET_INVALID where there was none."""
        self._polling.require_open()
        with self._lock:
            owned = [self._assignment.get((p.topic, p.partition)) for p in partitions_of(partitions)]
        return [
            TopicPartition(p.topic, p.partition, OFFSET_INVALID if o is None else o.position)
            for p, o in zip(partitions, owned, strict=True)
        ]

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float | None = None, cached: bool = False
    ) -> tuple[int, int]:
        """(log start offset, log end offset). `cached`: as of the last read, OFFSET_INVALID before. No `timeout`."""
        self._polling.require_open()
        (named,) = partitions_of([partition])
        if cached:
            with self._lock:
                owned = self._assignment.get((named.topic, named.partition))
            return (OFFSET_INVALID, OFFSET_INVALID) if owned is None else (owned.log_start, owned.log_end)
        with kafka_exceptions():
            state = self._lake.topic(named.topic).state()
            require_partition(state, named.topic, named.partition)
            return state.start(named.partition), state.end(named.partition)

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float | None = None) -> list[TopicPartition]:
        """The first offset at or after the ms since the epoch in each `offset`; OFFSET_END where there is none."""
        self._polling.require_open()
        return _offsets_by_time(self._lake, partitions_of(partitions))

    # --- offsets -------------------------------------------------------------------------------------------

    def commit(
        self,
        message: Message | None = None,
        offsets: list[TopicPartition] | None = None,
        asynchronous: bool = True,
    ) -> list[TopicPartition] | None:
        """Commit the offset after a message, or offsets, or else what is stored.

        Asynchronous: returns None, and `on_commit` learns how it went. Else returns what was committed. A member of a
        group commits for partitions that are assigned to it; all offsets of a call are committed, or none.
        Raises KafkaException, RuntimeError.
        """
        self._polling.require_open()
        wanted = to_offsets(message, offsets)
        with kafka_exceptions(commit_failed):
            return self._group.commit(wanted, asynchronous=asynchronous)

    def store_offsets(self, message: Message | None = None, offsets: list[TopicPartition] | None = None) -> None:
        """Store the offset after a message, or offsets, for the next commit; `enable.auto.offset.store` must be false.

        Raises ValueError, KafkaException.
        """
        self._polling.require_open()
        wanted = to_offsets(message, offsets)
        if wanted is None:
            raise ValueError("expected either message or offsets")
        if self._settings.enable_auto_offset_store:
            raise invalid_argument(
                "StoreOffsets failed: enable.auto.offset.store is true, so that offsets are stored when a message"
                " is handed out. Set it to false to store them by hand."
            )
        with self._lock:
            for place, one in wanted.items():
                self._assignment.store(place, one.offset, one.metadata)

    def committed(self, partitions: list[TopicPartition], timeout: float | None = None) -> list[TopicPartition]:
        """The group's committed offsets, OFFSET_INVALID where there is none.

        Waits `timeout` seconds for open transactions that offsets wait for (KafkaException with
        `UNSTABLE_OFFSET_COMMIT` after that; None, -1: until they end).
        """
        self._polling.require_open()
        wanted = partitions_of(partitions)
        timeout_s = float("inf") if timeout is None or timeout < 0 else timeout
        with kafka_exceptions():
            found = self._group.committer.offsets(timeout_s)
        return [as_partition((p.topic, p.partition), found.get((p.topic, p.partition))) for p in wanted]

    # --- the rest ------------------------------------------------------------------------------------------

    def memberid(self) -> str | None:
        """This consumer's id in its group, None while it is no member."""
        self._polling.require_open()
        return self._group.member_id

    def consumer_group_metadata(self) -> ConsumerGroupMetadata:
        """The member that this consumer reads as, for a producer's transaction."""
        self._polling.require_open()
        return self._group.metadata()

    def _require_open(self) -> None:
        self._polling.require_open()


def _stop(fetcher: Fetcher, group: GroupSide, opened: OpenedLake, ticker: Ticker | None) -> None:
    if ticker is not None:
        ticker.halt()
    fetcher.halt()
    group.halt()
    fetcher.join()
    group.join()
    opened.close()


def _offsets_by_time(lake: Lake, wanted: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The first offset at or after the ms since the epoch in each `offset`; OFFSET_END where there is none."""
    answers = left = [TopicPartition(p.topic, p.partition, p.offset) for p in wanted]
    while left:  # more than once only where a partition is asked for twice
        asked = {(p.topic, p.partition): p for p in reversed(left)}
        left = [p for p in left if asked[p.topic, p.partition] is not p]
        for topic in {topic for topic, _ in asked}:
            _find_by_time(lake, topic, {p.partition: p for p in asked.values() if p.topic == topic})
    return answers


def _find_by_time(lake: Lake, topic: str, asked: Mapping[int, TopicPartition]) -> None:
    """Put in place of each time the offset that was found, or the partition's error."""
    times = {partition: p.offset for partition, p in asked.items()}
    found = ask_together(lambda wanted: lake.offsets_for_times(topic, wanted), times)
    for partition, p in asked.items():
        offset = found[partition]
        if isinstance(offset, TidelogError):
            p.offset, p.error = OFFSET_INVALID, kafka_error(offset)
        else:
            p.offset = OFFSET_END if offset is None else offset
