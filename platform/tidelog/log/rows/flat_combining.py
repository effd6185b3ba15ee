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

    def run(self, request: Q) -> Any:
        """Have a request done: its response, or the error that it met is raised."""
        waiter = Waiter(request)
        with self._lock:
            self._queue.append(waiter)
            if not self._busy:
                self._busy = True
                self._lead_next()
        try:
            waiter.wake.wait()
            if not waiter.done:
                self._lead()
        except BaseException:
            self._leave(waiter)
            raise
        if waiter.error is not None:
            raise waiter.error
        return waiter.response

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
                self._lead_next()
            else:
                self._busy = False

    def _lead_next(self) -> None:
        self._queue[0].leads = True
        self._queue[0].wake.set()

    def _leave(self, waiter: Waiter[Q]) -> None:
        """Give up waiting: it leaves the queue, and another waiter leads if it was to."""
        with self._lock:
            is_queued = any(one is waiter for one in self._queue)
            self._queue = [one for one in self._queue if one is not waiter]
        if is_queued and waiter.leads:
            self._hand_over()
