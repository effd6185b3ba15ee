"""How a call of a consumer waits: for records, for errors, and for events of its group, which it serves meanwhile."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from tidelog.clients.consumer.fetcher import Fetcher
from tidelog.clients.consumer.group import GroupSide
from tidelog.clients.consumer.rebalance import Events, Rebalancing
from tidelog.clients.consumer.shared import ConsumerShared
from tidelog.clients.values.message import Message

R = TypeVar("R")


class Deadline:
    """How long a call waits: until `at_s` on the elapsed clock, which another thread may bring forward (`hurry`)."""

    def __init__(self, at_s: float) -> None:
        self.at_s = at_s


class Polling:
    """Takes what there is from the buffer, or waits for it."""

    def __init__(
        self, shared: ConsumerShared, fetcher: Fetcher, group: GroupSide, events: Events, rebalancing: Rebalancing
    ) -> None:
        self._clock = shared.lake.clock
        self._lock, self._assignment, self._buffer = shared.lock, shared.assignment, shared.buffer
        self._fetcher = fetcher
        self._group = group
        self._events = events
        self._rebalancing = rebalancing
        self.closed = False

    def require_open(self) -> None:
        """Refuse a call of a closed consumer. Raises RuntimeError."""
        if self.closed:
            raise RuntimeError("Consumer closed")

    def close(self) -> None:
        """End the calls that wait, and refuse others."""
        self.closed = True
        with self._lock:
            self._lock.notify_all()

    def deadline(self, timeout: float | Deadline | None) -> Deadline:
        """`timeout` seconds from now (None, below 0: never); a deadline may be given in its place."""
        if isinstance(timeout, Deadline):
            return timeout
        if timeout is None or timeout < 0:
            return Deadline(float("inf"))
        return Deadline(self._clock.elapsed_s() + timeout)

    def hurry(self, until: Deadline) -> None:
        """Have the call with this deadline return what it has: its caller has gone."""
        with self._lock:
            until.at_s = float("-inf")
            self._lock.notify_all()

    def take_ready(self) -> Message | None:
        """The next message where one is in the buffer and nothing is to be served before; else None."""
        if self._events or self.closed:
            return None
        self._group.polled()
        with self._lock:
            message = self._buffer.take()
            if message is not None:
                self._fetcher.taken()
            return message

    def next(self, consumer: object, until: Deadline, take: Callable[[], R | None], *, holds: bool = False) -> R | None:
        """What `take` finds in the buffer, once there is something; None when the time is over.

        A consumer that can't go on finds its fatal error instead. Callbacks that are served get `consumer`.

        `holds`: the caller has found records before, which the application is to get before it learns that their
        partitions are others' by now: None then.
        """
        self.require_open()
        group = self._group
        group.polled()
        group.is_polling = True
        try:
            while True:
                self._rebalancing.serve(consumer, but_losses=holds)
                if holds and self._events.take_away:
                    return None
                with self._lock:
                    self.require_open()
                    taken = take()
                    if taken:
                        self._fetcher.taken()
                        return taken
                    left_s = until.at_s - self._clock.elapsed_s()
                    endless = left_s == float("inf")
                    if left_s <= 0 or (endless and group.fatal is not None and not self._events):
                        return None if holds else self._take_fatal(take)
                    if not self._events:
                        self._lock.wait(None if endless else left_s)
        finally:
            group.is_polling = False
            group.polled()

    def _take_fatal(self, take: Callable[[], R | None]) -> R | None:
        """The error for which the consumer can't go on, as `take` gives it; None while it can."""
        fatal = self._group.fatal
        if fatal is None:
            return None
        self._buffer.notice(None, fatal)
        return take()

    def give_back(self, messages: Iterable[Message]) -> None:
        """Have messages handed out again that a call took and its caller never got; what is assigned no more is not.

        What a read of the log can't give again, events and errors, is kept for the next call.
        """
        with self._lock:
            if self.closed:
                return
            for message in reversed(list(messages)):
                if message.error() is not None:
                    self._buffer.put_back(message)
                elif (owned := self._assignment.get((message.topic() or "", message.partition() or 0))) is not None:
                    owned.give_back(message.offset() or 0, stores=self._buffer.stores)
        self._fetcher.changed()
