"""Flat combining: of many callers that wait at once, one carries out the work of all.

Callers line up. The first one is the leader: it takes everybody who waits, does the work in one go, wakes those it
worked for, and makes the next in line the leader. No thread is started, and nobody spins.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Q = TypeVar("Q")


@dataclass(slots=True)
class Place(Generic[Q]):
    """A place in the line: a request and, once it is `done`, its response or the error that it met."""

    request: Q
    response: Any = None
    error: Exception | None = None
    done: bool = False
    leads: bool = False
    wake: threading.Event = field(default_factory=threading.Event)

    def answer(self, response: Any, error: Exception | None = None) -> None:
        """Note what came of the request."""
        self.response, self.error, self.done = response, error, True


class Combiner(Generic[Q]):
    """A line of requests. `work` takes up to `most` of them at once, and answers each; it must not raise otherwise.

    What `work` raises (Ctrl-C in the leader's thread) reaches the leader; `interrupted` gives the error of the others,
    which may have been carried out.
    """

    def __init__(
        self, work: Callable[[Sequence[Place[Q]]], None], most: int, interrupted: Callable[[], Exception]
    ) -> None:
        self._work = work
        self._most = most
        self._interrupted = interrupted
        self._lock = threading.Lock()
        self._line: list[Place[Q]] = []
        self._busy = False

    @property
    def waiting(self) -> int:
        """How many requests nobody has taken yet."""
        return len(self._line)

    def run(self, requests: Sequence[Q]) -> list[Place[Q]]:
        """Get requests carried out, in their order; returns once all of them are done."""
        places = [Place(request) for request in requests]
        with self._lock:
            self._line.extend(places)
            if places and not self._busy:
                self._busy = True
                self._line[0].leads = True
                self._line[0].wake.set()
        try:
            for place in places:
                place.wake.wait()
                if not place.done:
                    self._lead()
        except BaseException:
            self._leave(places)
            raise
        return places

    def _lead(self) -> None:
        """Do the work of all who wait, as the first in line."""
        with self._lock:
            taken, self._line = self._line[: self._most], self._line[self._most :]
        try:
            self._work(taken)
        finally:
            for place in taken:
                if not place.done:
                    place.answer(None, self._interrupted())
            self._pass_on()
            for place in taken:
                place.wake.set()

    def _pass_on(self) -> None:
        """Make the next in line the leader."""
        with self._lock:
            if self._line:
                self._line[0].leads = True
                self._line[0].wake.set()
            else:
                self._busy = False

    def _leave(self, places: list[Place[Q]]) -> None:
        """Give up waiting: nobody takes these any more, and somebody else leads if one of them was to."""
        with self._lock:
            mine = [p for p in self._line if any(p is q for q in places)]
            self._line = [p for p in self._line if not any(p is q for q in mine)]
        if any(p.leads for p in mine):
            self._pass_on()
