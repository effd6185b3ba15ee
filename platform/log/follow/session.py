"""A fetch session: many partitions of many topics, read in turns, each from where the last read of it stopped."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import CorruptSegmentError, TidelogError
from tidelog.log.follow.cursor import Cursor, FollowedLog, Taken
from tidelog.log.lake import Lake

# How many partitions have a segment open at once; the others wait for their turn, which ends after so many bytes.
MOST_OPEN = 16
TURN_BYTES = 32 * 1024 * 1024
# So many partitions are decoded by helpers ahead of their turns.
_AHEAD = 4


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Kafka's `fetch.min.bytes`, `fetch.max.bytes`, `max.partition.fetch.bytes`, `fetch.wait.max.ms`, and
    librdkafka's `fetch.error.backoff.ms`; times in seconds.

    `min_bytes` counts bytes as stored, the others as handed out. At least one record is always handed out, however
    large.
    """

    min_bytes: int = 1
    max_bytes: int = 52_428_800
    partition_max_bytes: int = 1_048_576
    max_wait_s: float = 0.5
    retry_s: float = 0.5


@dataclass(frozen=True, slots=True)
class Fetched:
    """Records of a partition, of about `nbytes`; `next_offset` is where its next read begins.

    `log_start` and `log_end`: the partition's offsets as last seen.
    """

    cursor: Cursor
    records: pa.RecordBatch
    nbytes: int
    next_offset: int
    log_start: int
    log_end: int


@dataclass(frozen=True, slots=True)
class Reached:
    """A partition is read to its end, `offset`."""

    cursor: Cursor
    offset: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A partition can't be read at `offset`. Told once; it is tried again until it is put elsewhere or removed."""

    cursor: Cursor
    offset: int
    error: TidelogError


FetchEvent = Fetched | Reached | Failed
_Partition = tuple[str, int]


class FetchSession:
    """From `FetchEngine.session`. `read` is for one thread at a time, the other methods for any.

    `headers`: hand out headers. `ends`: tell of each end that is reached. `helpers` decode ahead of the reader, a few
    megabytes of a few partitions.
    """

    def __init__(
        self,
        lake: Lake,
        clock: Clock,
        lock: threading.Lock,
        follow: Callable[[str, "FetchSession"], FollowedLog],
        unfollow: Callable[[str, "FetchSession"], None],
        stirred: Callable[["FetchSession"], None],
        helpers: Executor | None,
        *,
        headers: bool,
        ends: bool,
    ) -> None:
        self._lake = lake
        self._clock = clock
        self._lock = lock
        self._follow = follow
        self._unfollow = unfollow
        self._stirred = stirred
        self._helpers = helpers
        self._headers = headers
        self._ends = ends
        self._logs: dict[str, FollowedLog] = {}
        self._cursors: dict[str, dict[int, Cursor]] = {}
        # Those with something to tell. The first ones, at most MOST_OPEN, may have a segment open.
        self._turns: deque[Cursor] = deque()
        self._waiting: deque[Cursor] = deque()
        self._failing: set[Cursor] = set()

    # --- which partitions, and from where ------------------------------------------------------------------

    def put(self, topic: str, partition: int, offset: int) -> Cursor:
        """Read a partition from an offset on, whether or not it was in the session; nothing is looked up yet.

        The cursor marks the events that belong to this call: `holds` says whether one still counts.
        """
        cursor = Cursor(topic, partition, offset)
        with self._lock:
            if topic not in self._logs:
                self._logs[topic] = self._follow(topic, self)
                self._cursors[topic] = {}
            self._cursors[topic][partition] = cursor
            self._queue(cursor)
        self._stirred(self)
        return cursor

    def remove(self, topic: str, partition: int) -> None:
        """Read a partition no more; one that is not in the session is no error."""
        with self._lock:
            cursors = self._cursors.get(topic, {})
            cursors.pop(partition, None)
            if topic in self._logs and not cursors:
                del self._logs[topic], self._cursors[topic]
                self._unfollow(topic, self)

    def holds(self, cursor: Cursor) -> bool:
        """Whether the partition is in the session and was not put elsewhere since."""
        return self._cursors.get(cursor.topic, {}).get(cursor.partition) is cursor

    def partitions(self) -> list[_Partition]:
        """What is in the session."""
        with self._lock:
            return [(topic, p) for topic, cursors in self._cursors.items() for p in cursors]

    def close(self) -> None:
        """Remove every partition."""
        for topic, partition in self.partitions():
            self.remove(topic, partition)

    # --- what there is -------------------------------------------------------------------------------------

    def grew(self, topic: str) -> None:
        """The engine's word that a topic's log has changed."""
        with self._lock:
            for cursor in self._cursors.get(topic, {}).values():
                if cursor.retry_s != float("inf"):
                    cursor.retry_s = 0.0
                self._queue(cursor)

    def retry(self, now_s: float) -> float:
        """Have those that failed tried again whose time has come; returns when the next one's comes."""
        with self._lock:
            self._failing = {c for c in self._failing if self.holds(c) and c.retry_s != float("inf")}
            for cursor in self._failing:
                self._queue(cursor)
            return min((c.retry_s for c in self._failing if c.retry_s > now_s), default=float("inf"))

    def is_ready(self, min_bytes: int) -> bool:
        """Whether a read would tell of an error or an end, or of at least `min_bytes` (as stored) of records."""
        if min_bytes <= 1:
            return bool(self._turns or self._waiting)
        total = 0
        with self._lock:
            for cursor in (*self._turns, *self._waiting):
                log = self._logs.get(cursor.topic)
                if log is None or not self.holds(cursor):
                    continue
                if log.state is None or cursor.is_open or cursor.problem(log) is not None:
                    return True
                total += cursor.available(log.state, min_bytes - total)
                if total >= min_bytes:
                    return True
        return False

    def _queue(self, cursor: Cursor) -> None:
        """Give a cursor a turn if it has something to tell."""
        log = self._logs[cursor.topic]
        if not cursor.queued and cursor.wants_turn(log, ends=self._ends, now_s=self._clock.elapsed_s()):
            cursor.queued = True
            cursor.given_bytes = 0
            (self._turns if len(self._turns) < MOST_OPEN else self._waiting).append(cursor)

    # --- reading -------------------------------------------------------------------------------------------

    def read(self, limits: FetchLimits) -> Iterator[FetchEvent]:
        """One turn of each partition that has something to tell, until `max_bytes` are handed out.

        The next call goes on with the partition after the last one served.
        """
        total = 0
        self._begin_next(limits)
        for _ in range(len(self._turns)):
            with self._lock:
                if not self._turns:
                    return
                cursor = self._turns.popleft()
                log = self._logs.get(cursor.topic)
            event = None if log is None or not self.holds(cursor) else self._turn(cursor, log, limits)
            self._next_turn(cursor, log)
            self._begin_next(limits)
            if event is None:
                continue
            yield event
            if isinstance(event, Fetched):
                total += event.nbytes
                if total >= limits.max_bytes:
                    return

    def _begin_next(self, limits: FetchLimits) -> None:
        """Have the next ones decoded, where there are helpers, while the caller is busy with others."""
        if self._helpers is None or not self._turns:
            return
        with self._lock:
            next_ones = [(c, self._logs[c.topic]) for c in islice(self._turns, _AHEAD) if self.holds(c)]
        for cursor, log in next_ones:
            cursor.begin(self._helpers, self._lake, log, headers=self._headers, most_bytes=limits.partition_max_bytes)

    def _turn(self, cursor: Cursor, log: FollowedLog, limits: FetchLimits) -> FetchEvent | None:
        try:
            taken = self._taken(cursor, log, limits)
        except TidelogError as e:
            told = cursor.failed(e, self._clock.elapsed_s(), limits.retry_s)
            self._failing.add(cursor)
            return Failed(cursor, cursor.position, e) if told else None
        cursor.succeeded()
        if taken is not None:
            state, partition = log.state, cursor.partition
            known = (0, cursor.position) if state is None else (state.start(partition), state.end(partition))
            return Fetched(cursor, taken.records, taken.nbytes, cursor.position, *known)
        if self._ends and cursor.ends_told != cursor.position:
            cursor.ends_told = cursor.position
            return Reached(cursor, cursor.position)
        return None

    def _taken(self, cursor: Cursor, log: FollowedLog, limits: FetchLimits) -> Taken | None:
        problem = cursor.problem(log)
        if problem is not None:
            raise problem
        if log.topic is None:
            return None
        try:
            return cursor.read(self._lake, log.topic, headers=self._headers, most_bytes=limits.partition_max_bytes)
        except CorruptSegmentError:
            # A segment may have been merged or deleted since its reading was planned: what is there by now counts.
            log.topic.state()
            return cursor.read(self._lake, log.topic, headers=self._headers, most_bytes=limits.partition_max_bytes)

    def _next_turn(self, cursor: Cursor, log: FollowedLog | None) -> None:
        """What comes after a cursor's turn: another one, the back of the queue, or nothing for now."""
        with self._lock:
            held = log is not None and self.holds(cursor)
            again = held and cursor.wants_turn(log, ends=self._ends, now_s=self._clock.elapsed_s())  # type: ignore[arg-type]
            if again and (cursor.given_bytes < TURN_BYTES or not self._waiting):
                self._turns.append(cursor)
            else:
                cursor.close()
                cursor.queued, cursor.given_bytes = again, 0
                if again:
                    self._waiting.append(cursor)
            while self._waiting and len(self._turns) < MOST_OPEN:
                self._turns.append(self._waiting.popleft())
