"""Flat combining: of many callers that wait at once, one does the work of all.

Callers put their requests into a queue. The first caller is the leader: it takes all waiting requests, does the work in
one go, wakes their callers, and makes the next waiter the leader. No thread is started, and no caller spins.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Q = TypeVar("Q")


@dataclass(slots=True)
class Waiter(Generic[Q]):
    """A queued request and, once it is `done`, its response or the error that it met."""

    request: Q
    response: Any = None
    error: Exception | None = None
    done: bool = False
    leads: bool = False
    wake: threading.Event = field(default_factory=threading.Event)

    def answer(self, response: Any, error: Exception | None = None) -> None:
        """Complete the request."""
        self.response, self.error, self.done = response, error, True


class Combiner(Generic[Q]):
    """A queue of requests. `work` takes up to `most` of them at once, and answers each; it must not raise otherwise.

    What `work` raises (Ctrl-C in the leader's thread) reaches the leader; `interrupted` gives the error of the others,
    which may have been done.
    """

    def __init__(
        self, work: Callable[[Sequence[Waiter[Q]]], None], most: int, interrupted: Callable[[], Exception]
    ) -> None:
        self._work = work
        self._most = most
        self._interrupted = interrupted
        self._lock = threading.Lock()
        self._queue: list[Waiter[Q]] = []
        self._busy = False

    @property
    def waiting(self) -> int:
        """How many requests wait for a leader."""
        return len(self._queue)

    def run(self, requests: Sequence[Q]) -> list[Waiter[Q]]:
        """Have requests done, in their order; returns once all of them are."""
        waiters = [Waiter(request) for request in requests]
        with self._lock:
            self._queue.extend(waiters)
            if waiters and not self._busy:
                self._busy = True
                self._queue[0].leads = True
                self._queue[0].wake.set()
        try:
            for waiter in waiters:
                waiter.wake.wait()
                if not waiter.done:
                    self._lead()
        except BaseException:
            self._leave(waiters)
            raise
        return waiters

    def _lead(self) -> None:
        """Do the work of all waiters, as the first of the queue."""
        with self._lock:
            taken, self._queue = self._queue[: self._most], self._queue[self._most :]
        try:
            self._work(taken)
        finally:
            for waiter in taken:
                if not waiter.done:
                    waiter.answer(None, self._interrupted())
            self._hand_over()
            for waiter in taken:
                waiter.wake.set()

    def _hand_over(self) -> None:
        """Make the next waiter the leader."""
        with self._lock:
            if self._queue:
                self._queue[0].leads = True
                self._queue[0].wake.set()
            else:
                self._busy = False

    def _leave(self, waiters: list[Waiter[Q]]) -> None:
        """Give up waiting: these leave the queue, and another waiter leads if one of them was to."""
        with self._lock:
            mine = [p for p in self._queue if any(p is q for q in waiters)]
            self._queue = [p for p in self._queue if not any(p is q for q in mine)]
        if any(p.leads for p in mine):
            self._hand_over()
