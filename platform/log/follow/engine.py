"""The fetch engine: many sessions, each waiting for records of many partitions, served by one caller's thread.

It holds no thread and no global state: its owner calls `run_once` over and over, which waits for the logs of all
sessions at once, looks at those that may have grown, and names the fetches that can be answered.
"""

import heapq
import threading
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tidelog.log.base.clock import Clock
from tidelog.log.follow.cursor import FollowedLog
from tidelog.log.follow.session import FetchLimits, FetchSession
from tidelog.log.follow.tailing import Tailing
from tidelog.log.lake import Lake


@dataclass(frozen=True, slots=True)
class Waiting:
    """A fetch that waits: answered when `limits.min_bytes` are there, something failed, or the time is over."""

    session: FetchSession
    limits: FetchLimits
    until_s: float


class _Followers:
    """A log and the sessions that read it."""

    def __init__(self, lake: Lake, topic: str) -> None:
        self.log = FollowedLog(lake, topic)
        self.sessions: dict[FetchSession, None] = {}


class FetchEngine:
    """Fetches of one lake. `run_once` is for one thread at a time, the other methods for any.

    `helpers` decode segments beside the threads that read sessions; they are the caller's, and outlive the engine.
    """

    def __init__(self, lake: Lake, clock: Clock | None = None, helpers: Executor | None = None) -> None:
        self._lake = lake
        self._clock = clock or lake.clock
        self._helpers = helpers
        self._tailing = Tailing(lake.storage, self._clock)
        self._lock = threading.Lock()
        self._topics: dict[str, _Followers] = {}
        self._waiting: dict[FetchSession, Waiting] = {}
        self._overs: list[tuple[float, int, Waiting]] = []  # a heap; may hold some that wait no more
        self._submitted = 0
        # Sessions of which a fetch may have become answerable, and when which have something to try again.
        self._stirred: set[FetchSession] = set()
        self._retries: dict[FetchSession, float] = {}
        self._runner = 0
        self._woken = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def session(self, *, headers: bool = False, ends: bool = False) -> FetchSession:
        """A session without partitions. `headers`: hand them out; `ends`: tell of each end that is reached."""
        return FetchSession(
            self._lake,
            self._clock,
            threading.Lock(),
            self._follow,
            self._unfollow,
            self._stir,
            self._helpers,
            headers=headers,
            ends=ends,
        )

    def submit(self, session: FetchSession, limits: FetchLimits) -> None:
        """Have a session's fetch answered by a later `run_once`; one that waits already is replaced."""
        waiting = Waiting(session, limits, self._clock.elapsed_s() + limits.max_wait_s)
        with self._lock:
            self._waiting[session] = waiting
            self._submitted += 1
            heapq.heappush(self._overs, (waiting.until_s, self._submitted, waiting))
        self._stir(session)

    def cancel(self, session: FetchSession) -> None:
        """Answer a session's fetch no more."""
        with self._lock:
            self._waiting.pop(session, None)

    def wake(self) -> None:
        """End the `run_once` that is waiting, or else the next one's wait."""
        self._woken = True
        self._tailing.wake()

    def run_once(self, timeout_s: float | None = None) -> list[Waiting]:
        """The fetches that can be answered now: read their sessions. Waits for the first one.

        Returns none when `timeout_s` is over (None: without end) or somebody called `wake`.
        """
        self._runner = threading.get_ident()
        answered = self._answerable()
        now_s = self._clock.elapsed_s()
        until_s = float("inf") if timeout_s is None else now_s + timeout_s
        while True:
            next_s = now_s if answered else min(until_s, self._next_s())
            pause_s = None if next_s == float("inf") else max(0.0, next_s - now_s)
            for topic in self._tailing.wait(pause_s):
                self._look(topic)
            self._retry()
            answered += self._answerable()
            now_s = self._clock.elapsed_s()
            if answered or self._woken or now_s >= until_s:
                self._woken = False
                return answered

    def close(self) -> None:
        """Give back what it holds; nobody may be inside `run_once`."""
        self._tailing.close()

    # --- inside --------------------------------------------------------------------------------------------

    def _follow(self, topic: str, session: FetchSession) -> FollowedLog:
        with self._lock:
            followers = self._topics.get(topic)
            if followers is None:
                followers = self._topics[topic] = _Followers(self._lake, topic)
                self._tailing.add(topic)
            followers.sessions[session] = None
            return followers.log

    def _unfollow(self, topic: str, session: FetchSession) -> None:
        with self._lock:
            followers = self._topics.get(topic)
            if followers is None:
                return
            followers.sessions.pop(session, None)
            if not followers.sessions:
                del self._topics[topic]
                self._tailing.remove(topic)

    def _stir(self, session: FetchSession) -> None:
        with self._lock:
            self._stirred.add(session)
        if threading.get_ident() != self._runner:
            self._tailing.wake()

    def _look(self, topic: str) -> None:
        with self._lock:
            followers = self._topics.get(topic)
        if followers is None:
            return
        began_s = self._clock.elapsed_s()
        found = followers.log.refresh()
        self._tailing.looked(topic, found=found, took_s=self._clock.elapsed_s() - began_s)
        if not found:
            return
        with self._lock:
            sessions: Sequence[FetchSession] = list(followers.sessions)
        for session in sessions:
            session.grew(topic)
        with self._lock:
            self._stirred.update(sessions)

    def _next_s(self) -> float:
        """When the next fetch is over, or something that failed is to be tried again."""
        with self._lock:
            while self._overs and not self._waits(self._overs[0][2]):
                heapq.heappop(self._overs)
            over_s = self._overs[0][0] if self._overs else float("inf")
            return min(over_s, min(self._retries.values(), default=float("inf")))

    def _waits(self, waiting: Waiting) -> bool:
        return self._waiting.get(waiting.session) is waiting

    def _retry(self) -> None:
        now_s = self._clock.elapsed_s()
        with self._lock:
            due = [session for session, when_s in self._retries.items() if when_s <= now_s]
        for session in due:
            self._plan_retry(session, now_s)
            with self._lock:
                self._stirred.add(session)

    def _plan_retry(self, session: FetchSession, now_s: float) -> None:
        next_s = session.retry(now_s)
        with self._lock:
            self._retries.pop(session, None)
            if next_s != float("inf"):
                self._retries[session] = next_s

    def _answerable(self) -> list[Waiting]:
        """Take the waiting fetches that can be answered: their sessions were stirred, or their time is over."""
        now_s = self._clock.elapsed_s()
        with self._lock:
            stirred, self._stirred = self._stirred, set()
            asked = [w for s in stirred if (w := self._waiting.get(s)) is not None]
            found = {}
            while self._overs and self._overs[0][0] <= now_s:
                waiting = heapq.heappop(self._overs)[2]
                found[waiting.session] = waiting
        for waiting in asked:
            self._plan_retry(waiting.session, now_s)
            if waiting.session.is_ready(waiting.limits.min_bytes):
                found[waiting.session] = waiting
        with self._lock:
            answered = [w for w in found.values() if self._waits(w)]
            for waiting in answered:
                del self._waiting[waiting.session]
            return answered
