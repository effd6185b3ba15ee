"""The fetch loop: fetch sessions of one or many readers, served by the thread that calls `next`.

A session reads many partitions of many topics in turns, each from where its last read stopped. The loop has no thread
and no global state: its owner calls `next` over and over, which waits for the logs of all sessions at once, looks at
those that may have grown, and returns the sessions whose fetch can be answered.
"""

import heapq
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor
from itertools import islice
from types import TracebackType
from typing import Self

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import CorruptSegmentError, TidelogError
from tidelog.log.follow.cursor import Cursor, FollowedLog, Held
from tidelog.log.follow.fetches import EndReached, Fetched, FetchEvent, FetchFailed, FetchLimits
from tidelog.log.follow.tailing import Tailing
from tidelog.log.lake import Lake

# How many partitions of a session have a segment open at once; others wait for a turn, which ends after these bytes.
MOST_OPEN = 16
TURN_BYTES = 32 * 1024 * 1024
# Partitions of a session that helpers decode ahead of their turns.
_AHEAD = 4
_NEVER = float("inf")


class FetchLoop:
    """Fetches of one lake. `next` is for one thread at a time, the other methods for any.

    `helpers` decode segments beside the threads that read sessions; they are the caller's, and outlive the loop.
    """

    def __init__(self, lake: Lake, clock: Clock | None = None, helpers: Executor | None = None) -> None:
        self._lake = lake
        self._clock = clock or lake.clock
        self._helpers = helpers
        self._tailing = Tailing(lake.storage, self._clock)
        self._lock = threading.Lock()  # guards what follows, and the sessions; never held for a call to the store
        self._followed: dict[str, tuple[FollowedLog, set[FetchSession]]] = {}
        self._stirred: set[FetchSession] = set()  # their fetch may have become answerable
        self._timers: list[tuple[float, int, FetchSession]] = []  # a heap; valid while the session names the time
        self._count = 0
        self._thread = 0
        self._woken = False
        self._rewrote = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def session(self, *, headers: bool = False, ends: bool = False) -> "FetchSession":
        """A session without partitions. `headers`: hand them out; `ends`: report each end that is reached."""
        return FetchSession(self, headers=headers, ends=ends)

    def next(self, timeout_s: float | None = None) -> list["FetchSession"]:
        """The sessions whose fetch can be answered now: read them. Waits for the first one.

        Returns none when `timeout_s` is over (None: without end), another thread called `wake`, or a topic was
        rewritten.
        """
        self._thread = threading.get_ident()
        now_s = self._clock.elapsed_s()
        until_s = _NEVER if timeout_s is None else now_s + timeout_s
        answered = self._answerable(now_s)
        while True:
            next_s = now_s if answered else min(until_s, self._next_timer_s())
            for topic in self._tailing.wait(None if next_s == _NEVER else max(0.0, next_s - now_s)):
                self._look(topic)
            now_s = self._clock.elapsed_s()
            answered += self._answerable(now_s)
            if answered or self._woken or now_s >= until_s:
                self._woken = False
                return answered

    def take_rewritten(self) -> bool:
        """Whether a topic was rewritten since the last call: what was read of it before may be gone from the log."""
        rewrote, self._rewrote = self._rewrote, False
        return rewrote

    def wake(self) -> None:
        """End the `next` that is waiting, or else the next one's wait."""
        self._woken = True
        self._tailing.wake()

    def close(self) -> None:
        """Give back what it holds; no thread may be inside `next`."""
        self._tailing.close()

    def _look(self, topic: str) -> None:
        with self._lock:
            followed = self._followed.get(topic)
        if followed is None:
            return
        log, sessions = followed
        began_s = self._clock.elapsed_s()
        before, was_known = log.rewritten_at, log.is_known
        grew = log.refresh()
        if was_known and log.rewritten_at != before:
            self._rewrote = self._woken = True
        now_s = self._clock.elapsed_s()
        self._tailing.looked(topic, grew=grew, took_s=now_s - began_s)
        if grew:
            with self._lock:
                for session in sessions:
                    session._grew(topic, now_s)
                self._stirred |= sessions

    def _next_timer_s(self) -> float:
        """When the next fetch's time is over, or a partition that failed is to be tried again."""
        with self._lock:
            while self._timers and self._timers[0][2]._timer_s != self._timers[0][0]:
                heapq.heappop(self._timers)
            return self._timers[0][0] if self._timers else _NEVER

    def _answerable(self, now_s: float) -> list["FetchSession"]:
        """Take the fetches that can be answered, of the sessions that were stirred or whose timer is due."""
        with self._lock:
            stirred, self._stirred = self._stirred, set()
            while self._timers and self._timers[0][0] <= now_s:
                stirred.add(heapq.heappop(self._timers)[2])
            answered = [session for session in stirred if session._is_answered(now_s)]
            for session in stirred:
                timer_s = session._next_timer_s(now_s)
                if timer_s not in (session._timer_s, _NEVER):
                    self._count += 1
                    heapq.heappush(self._timers, (timer_s, self._count, session))
                session._timer_s = timer_s
            return answered

    # --- for sessions --------------------------------------------------------------------------------------

    def _follow(self, topic: str, session: "FetchSession") -> FollowedLog:
        if topic not in self._followed:
            self._followed[topic] = FollowedLog(self._lake, topic), set()
            self._tailing.add(topic)
        log, sessions = self._followed[topic]
        sessions.add(session)
        return log

    def _unfollow(self, topic: str, session: "FetchSession") -> None:
        sessions = self._followed[topic][1]
        sessions.discard(session)
        if not sessions:
            del self._followed[topic]
            self._tailing.remove(topic)

    def _stir(self, session: "FetchSession") -> None:
        self._stirred.add(session)
        if threading.get_ident() != self._thread:
            self._tailing.wake()


class FetchSession:
    """From `FetchLoop.session`. `read` is for one thread at a time, the other methods for any."""

    def __init__(self, loop: FetchLoop, *, headers: bool, ends: bool) -> None:
        self._loop = loop
        self._lock = loop._lock
        self._clock = loop._clock
        self._headers = headers
        self._ends = ends
        self._cursors: dict[str, dict[int, Cursor]] = {}
        # Those with something to report. The first ones, at most MOST_OPEN, may have a segment open.
        self._turns: deque[Cursor] = deque()
        self._waiting: deque[Cursor] = deque()
        self._failing: set[Cursor] = set()
        self._limits = FetchLimits()
        self._until_s: float | None = None
        self._timer_s = _NEVER

    # --- which partitions, and from where ------------------------------------------------------------------

    def put(self, topic: str, partition: int, offset: int) -> Cursor:
        """Read a partition from an offset on, whether or not it was in the session; nothing is looked up yet.

        The cursor marks the events that belong to this call: `holds` says whether one still counts.
        """
        with self._lock:
            if topic not in self._cursors:
                self._cursors[topic] = {}
            cursor = Cursor(self._loop._follow(topic, self), partition, offset)
            self._cursors[topic][partition] = cursor
            self._queue(cursor, self._clock.elapsed_s())
            self._loop._stir(self)
        return cursor

    def remove(self, topic: str, partition: int) -> None:
        """Read a partition no more; one that is not in the session is no error."""
        with self._lock:
            cursors = self._cursors.get(topic)
            if cursors is None:
                return
            cursors.pop(partition, None)
            if not cursors:
                del self._cursors[topic]
                self._loop._unfollow(topic, self)

    def holds(self, cursor: Cursor) -> bool:
        """Whether the partition is in the session and was not put elsewhere since."""
        return self._cursors.get(cursor.topic, {}).get(cursor.partition) is cursor

    def partitions(self) -> list[tuple[str, int]]:
        """The topics and partitions in the session."""
        with self._lock:
            return [(topic, p) for topic, cursors in self._cursors.items() for p in cursors]

    def close(self) -> None:
        """Remove every partition, and answer no fetch."""
        self.cancel()
        for topic, partition in self.partitions():
            self.remove(topic, partition)

    # --- fetches -------------------------------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """Whether a fetch waits to be answered."""
        return self._until_s is not None

    def ask(self, limits: FetchLimits) -> None:
        """Have a fetch answered by a later `FetchLoop.next`; one that waits already is replaced."""
        with self._lock:
            self._limits, self._until_s = limits, self._clock.elapsed_s() + limits.max_wait_s
            self._loop._stir(self)

    def cancel(self) -> None:
        """Have the fetch that waits not answered."""
        with self._lock:
            self._until_s = None

    def read(self) -> Iterator[FetchEvent]:
        """One turn of each partition that has something to report, within the limits of the fetch that was answered.

        The next call goes on with the partition after the last one served.
        """
        total = 0
        self._decode_ahead()
        for _ in range(len(self._turns)):
            with self._lock:
                if not self._turns:
                    return
                cursor = self._turns.popleft()
            event = self._turn(cursor) if self.holds(cursor) else None
            self._end_turn(cursor)
            self._decode_ahead()
            if event is None:
                continue
            yield event
            if isinstance(event, Fetched):
                total += event.nbytes
                if total >= self._limits.max_bytes:
                    return

    def _decode_ahead(self) -> None:
        """Have the next ones decoded, where there are helpers, while the caller is busy with others."""
        helpers = self._loop._helpers
        if helpers is None or not self._turns:
            return
        with self._lock:
            cursors = [cursor for cursor in islice(self._turns, _AHEAD) if self.holds(cursor)]
        for cursor in cursors:
            cursor.begin(helpers, headers=self._headers, most_bytes=self._limits.partition_max_bytes)

    def _turn(self, cursor: Cursor) -> FetchEvent | None:
        try:
            taken = self._take(cursor)
        except TidelogError as e:
            with self._lock:
                self._failing.add(cursor)
                reports = cursor.failed(e, self._clock.elapsed_s(), self._limits.retry_s)
            return FetchFailed(cursor, cursor.position, e) if reports else None
        cursor.succeeded()
        if taken is not None:
            state, partition = cursor.log.state, cursor.partition
            known = (0, cursor.position) if state is None else (state.start(partition), state.end(partition))
            return Fetched(cursor, *taken, cursor.position, *known, cursor.version)
        if self._ends and cursor.reported_end != cursor.position:
            cursor.reported_end = cursor.position
            return EndReached(cursor, cursor.position)
        return None

    def _take(self, cursor: Cursor) -> tuple[Held, int] | None:
        problem = cursor.problem()
        if problem is not None:
            raise problem
        if cursor.log.topic is None:
            return None
        try:
            return cursor.read(headers=self._headers, most_bytes=self._limits.partition_max_bytes)
        except CorruptSegmentError:
            # A segment may have been merged or deleted since its reading was planned: what is there by now counts.
            cursor.log.topic.state()
            return cursor.read(headers=self._headers, most_bytes=self._limits.partition_max_bytes)

    def _end_turn(self, cursor: Cursor) -> None:
        """What comes after a cursor's turn: another one, the back of the queue, or nothing for now."""
        with self._lock:
            again = self.holds(cursor) and cursor.wants_turn(ends=self._ends, now_s=self._clock.elapsed_s())
            stays = again and (cursor.given_bytes < TURN_BYTES or not self._waiting)
        if not stays:
            cursor.close()
        with self._lock:
            if stays:
                self._turns.append(cursor)
            else:
                cursor.queued = False
                if again:
                    self._queue(cursor, self._clock.elapsed_s())
            while self._waiting and len(self._turns) < MOST_OPEN:
                self._turns.append(self._waiting.popleft())

    # --- for the loop, which holds the lock ----------------------------------------------------------------

    def _queue(self, cursor: Cursor, now_s: float) -> None:
        """Give a cursor a turn if it has something to report."""
        if not cursor.queued and cursor.wants_turn(ends=self._ends, now_s=now_s):
            cursor.queued = True
            cursor.given_bytes = 0
            free = len(self._turns) < MOST_OPEN and not self._waiting
            (self._turns if free else self._waiting).append(cursor)

    def _grew(self, topic: str, now_s: float) -> None:
        """A topic's log has changed."""
        for cursor in self._cursors.get(topic, {}).values():
            cursor.log_changed()
            self._queue(cursor, now_s)

    def _is_answered(self, now_s: float) -> bool:
        """Answer the fetch that waits, if it can be; partitions that failed are tried again when their time comes."""
        self._failing = {c for c in self._failing if self.holds(c) and c.retry_s != _NEVER}
        for cursor in self._failing:
            self._queue(cursor, now_s)
        answered = self._until_s is not None and (self._until_s <= now_s or self._is_ready())
        if answered:
            self._until_s = None
        return answered

    def _next_timer_s(self, now_s: float) -> float:
        retry_s = min((c.retry_s for c in self._failing if c.retry_s > now_s), default=_NEVER)
        return retry_s if self._until_s is None else min(retry_s, self._until_s)

    def _is_ready(self) -> bool:
        """Whether a read would report an error or an end, or at least `min_bytes` (as stored) of records."""
        least = self._limits.min_bytes
        if least <= 1:
            return bool(self._turns or self._waiting)
        total = 0
        for cursor in (*self._turns, *self._waiting):
            if not self.holds(cursor):
                continue
            if cursor.log.state is None or cursor.is_open or cursor.problem() is not None:
                return True
            total += cursor.available(least - total)
            if total >= least:
                return True
        return False
