"""The fetching side of a consumer: a thread of its own finds where to start and reads ahead, up to a bound."""

import threading
from collections.abc import Callable, Mapping
from functools import cache

from tidelog.clients.consumer.assignment import PartitionState, TopicPartitionKey
from tidelog.clients.consumer.shared import ConsumerShared
from tidelog.clients.consumer.start_offsets import RESET, Start, find_start, needs_committed
from tidelog.clients.values.errors import KafkaError, kafka_error
from tidelog.clients.values.partitions import OFFSET_INVALID
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import FIRST_LOOK_AGAIN_S, LAST_LOOK_AGAIN_S
from tidelog.log.base.errors import OffsetOutOfRangeError, TidelogError, TopicChangedError, UnstableOffsetError
from tidelog.log.base.worker_threads import Helpers
from tidelog.log.follow.fetches import Fetched, FetchEvent, FetchFailed, FetchLimits
from tidelog.log.follow.loop import FetchLoop
from tidelog.log.rules.topics import require_partition

# Between looks for where to start, while a topic is not there or the store does not answer.
_RETRY_S = 1.0
# Threads that decode segments, started when there is much to read.
_HELPERS = 2


class Fetcher:
    """Reads what is assigned into the buffer.

    `offsets`: the group's committed offsets. `start` once, `halt` and `join` at the end; `changed` after each change of
    the assignment.
    """

    def __init__(
        self, shared: ConsumerShared, offsets: Callable[[], Mapping[TopicPartitionKey, CommittedOffset]]
    ) -> None:
        settings = self._settings = shared.settings
        self._lake, self._traffic = shared.lake, shared.traffic
        self._lock, self._assignment, self._buffer = shared.lock, shared.assignment, shared.buffer
        self._offsets = offsets
        self._asked_s = 0.0
        self._helpers = Helpers(_HELPERS, thread_name_prefix="tidelog-decode")
        self._loop = FetchLoop(shared.lake, helpers=self._helpers)
        self._session = self._loop.session(headers=True, ends=settings.enable_partition_eof)
        self._limits = FetchLimits(
            settings.fetch_min_bytes,
            max(1, settings.fetch_max_bytes),
            settings.max_partition_fetch_bytes,
            settings.fetch_wait_max_ms / 1000,
            settings.fetch_error_backoff_ms / 1000,
        )
        self._most_bytes = settings.queued_max_messages_kbytes * 1024
        self._unstable_s = FIRST_LOOK_AGAIN_S  # until the next look, while the group's offsets wait for a transaction
        self._paused = False  # as much is read ahead as may be
        self._changed = True
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="tidelog-fetch", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def halt(self) -> None:
        """Have the thread end."""
        self._stopping = True
        self._loop.wake()

    def join(self) -> None:
        """Wait for the thread's end and give back what it held."""
        if self._thread.ident is not None:
            self._thread.join()
        self._session.close()
        self._loop.close()
        self._helpers.shutdown()

    def changed(self) -> None:
        """The assignment is another, or a partition of it was moved, paused or resumed."""
        with self._lock:
            self._changed = True
            self._buffer.purge()
        self._loop.wake()

    def taken(self) -> None:
        """Something was taken from the buffer; the caller holds the lock."""
        if self._paused and not self._is_full(0.5):
            self._paused = False
            self._loop.wake()

    def _is_full(self, share: float = 1.0) -> bool:
        """Whether so much is read ahead: bytes over all, or records per partition."""
        most_records = self._settings.queued_min_messages * max(1, len(self._assignment))
        return self._buffer.bytes >= share * self._most_bytes or self._buffer.records >= share * most_records

    # --- the thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._go_on()
        except Exception as e:
            with self._lock:
                error = KafkaError(KafkaError._CRIT_SYS_RESOURCE, f"The consumer broke: {e!r}", fatal=True)
                self._buffer.notice(None, error)
                self._lock.notify_all()
            raise

    def _go_on(self) -> None:
        while not self._stopping:
            retry_s = self._place()
            with self._lock:
                self._paused = self._is_full()
            if not self._paused and not self._session.waits:
                self._asked_s = 0.0 if self._traffic is None else self._traffic.ask("Fetch")
                self._session.ask(self._limits)
            answered = self._loop.next(retry_s)
            if self._loop.take_rewritten():
                self._forget_rewritten()
            for session in answered:
                if self._traffic is not None:
                    self._traffic.answer(self._asked_s)
                for event in session.read():
                    self._take(event)
                    if self._stopping or self._changed:
                        break

    def _forget_rewritten(self) -> None:
        """Read again what was read ahead and is not what the log holds by now.

        Where the log start has passed the application, it goes on there: an offset that was read in time is not out of
        range. Where the log start has passed what was read ahead, too, it is.
        """
        with self._lock:
            for owned, first in self._buffer.rewritten().items():
                cursor = owned.cursor
                if cursor is None or cursor.log.state is None or owned.paused:
                    continue
                log_start = cursor.log.state.start(owned.partition)
                start = max(first, log_start) if cursor.position >= log_start else first
                owned.start = start
                owned.cursor = self._session.put(owned.topic, owned.partition, start)
            self._buffer.purge()
            self._paused = self._is_full()

    def _place(self) -> float | None:
        """Bring the session in line with the assignment; returns in how many seconds to try again what failed."""
        now_s = self._lake.clock.elapsed_s()
        with self._lock:
            wanted = [o for o in self._assignment if o.cursor is None and not o.paused]
            due = [o for o in wanted if o.retry_s <= now_s]
            if self._changed:
                self._changed = False
                self._remove_others()
        self._find_starts(due)
        with self._lock:
            waits = [o.retry_s for o in self._assignment if o.cursor is None and not o.paused]
        return max(0.0, min(waits) - self._lake.clock.elapsed_s()) if waits else None

    def _remove_others(self) -> None:
        for topic, partition in self._session.partitions():
            owned = self._assignment.get((topic, partition))
            if owned is None or owned.paused:
                self._session.remove(topic, partition)

    def _find_starts(self, wanted: list[PartitionState]) -> None:
        committed: Mapping[TopicPartitionKey, CommittedOffset] | TidelogError = {}
        if any(needs_committed(owned.start) for owned in wanted):
            try:
                committed = self._offsets()
            except TidelogError as e:
                committed = e
        unstable = False
        states = cache(lambda topic: self._lake.topic(topic).state())
        for owned in wanted:
            start = owned.start
            try:
                if start >= 0:
                    outcome: Start | KafkaError = Start(start)
                else:
                    state = states(owned.topic)
                    require_partition(state, owned.topic, owned.partition)
                    reset = self._settings.auto_offset_reset
                    outcome = find_start(owned.place, start, state, committed, reset, owned.reported_error)
            except UnstableOffsetError:  # an open transaction decides where: nothing to report yet
                unstable = True
                with self._lock:
                    owned.retry_s = self._lake.clock.elapsed_s() + self._unstable_s
                continue
            except TidelogError as e:
                outcome = kafka_error(e)
            with self._lock:
                self._found(owned, start, outcome)
        if wanted:
            self._unstable_s = min(2 * self._unstable_s, LAST_LOOK_AGAIN_S) if unstable else FIRST_LOOK_AGAIN_S

    def _found(self, owned: PartitionState, start: int, outcome: Start | KafkaError) -> None:
        """Read from the start that was found, unless the partition was moved meanwhile."""
        if self._assignment.get(owned.place) is not owned or owned.start != start or owned.cursor or owned.paused:
            return
        if isinstance(outcome, Start):
            owned.reported_error, owned.start = "", outcome.offset
            owned.cursor = self._session.put(owned.topic, owned.partition, outcome.offset)
            if needs_committed(start):
                owned.committed = outcome.committed
            return
        over = outcome == KafkaError._AUTO_OFFSET_RESET  # only the application can help
        owned.retry_s = float("inf") if over else self._lake.clock.elapsed_s() + _RETRY_S
        if outcome.str() != owned.reported_error:
            owned.reported_error = outcome.str()
            self._notice(owned, outcome)

    # --- what was read -------------------------------------------------------------------------------------

    def _take(self, event: FetchEvent) -> None:
        cursor = event.cursor
        with self._lock:
            owned = self._assignment.get((cursor.topic, cursor.partition))
            if owned is None or owned.cursor is not cursor:
                return
            if isinstance(event, Fetched):
                owned.log_start, owned.log_end = event.log_start, event.log_end
                self._buffer.add(owned, cursor, event.held, event.nbytes, event.version)
                if self._traffic is not None:
                    partition = cursor.partition
                    self._traffic.move(cursor.topic, {partition: event.held.num_rows}, {partition: event.nbytes})
                self._lock.notify_all()
            elif isinstance(event, FetchFailed):
                self._failed(owned, event)
            else:
                owned.eof = event.offset
                text = f"Fetch from broker reached end of partition at offset {event.offset}"
                self._notice(owned, KafkaError(KafkaError._PARTITION_EOF, text), event.offset)

    def _failed(self, owned: PartitionState, event: FetchFailed) -> None:
        if isinstance(event.error, OffsetOutOfRangeError | TopicChangedError):
            owned.move(RESET)
            owned.reported_error = f"offset {event.offset} is out of range ({event.error})"
            if isinstance(event.error, TopicChangedError):
                owned.stored = owned.position = OFFSET_INVALID  # offsets of the topic that was deleted
            self._changed = True
            return
        self._notice(owned, kafka_error(event.error), event.offset)

    def _notice(self, owned: PartitionState, error: KafkaError, offset: int | None = None) -> None:
        self._buffer.notice(owned, error, offset)
        self._lock.notify_all()
