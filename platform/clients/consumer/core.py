"""What a consumer is made of, and how a call of it waits."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from tidelog.clients.consumer.assignment import Assignment
from tidelog.clients.consumer.buffer import Buffer
from tidelog.clients.consumer.commits import Committer
from tidelog.clients.consumer.consumer_statistics import ConsumerStatistics
from tidelog.clients.consumer.fetcher import Fetcher
from tidelog.clients.consumer.group import GroupSide
from tidelog.clients.consumer.rebalance import Events, Rebalancing
from tidelog.clients.finalizer import Ending
from tidelog.clients.open_lake import OpenedLake, open_lake
from tidelog.clients.settings import ConsumerSettings
from tidelog.clients.stats.documents import Ticker, traffic_of
from tidelog.clients.stats.traffic import Traffic
from tidelog.clients.values.errors import KafkaError, KafkaException, kafka_error
from tidelog.clients.values.message import Message
from tidelog.log.base.errors import TidelogError

R = TypeVar("R")


class Deadline:
    """How long a call waits: until `at_s` on the elapsed clock, which another thread may bring forward (`hurry`)."""

    def __init__(self, at_s: float) -> None:
        self.at_s = at_s


class ConsumerCore:
    """The parts of a `Consumer`, put together; `_next` waits for what they find."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        settings = ConsumerSettings.parse(conf)
        opened = open_lake(settings)
        self._settings = settings
        self._lake = opened.lake
        self._lock = threading.Condition()
        self._assignment = Assignment()
        self._buffer = Buffer(store=settings.enable_auto_offset_store)
        self._events = Events(self._lock)
        self._group = GroupSide(self._lake, settings, self._events.tell)
        traffic = traffic_of(settings, self._lake.clock)
        group = self._group
        self._committer = Committer(
            group.log, settings.group_id, self._lock, self._assignment, group.identity, group.owned, traffic
        )
        self._group.committer = self._committer
        self._fetcher = Fetcher(
            self._lake, settings, self._lock, self._assignment, self._buffer, self._committer.offsets, traffic
        )
        self._rebalancing = Rebalancing(
            settings,
            self._lake.clock,
            self._lock,
            self._assignment,
            self._buffer,
            self._fetcher,
            self._group,
            self._events,
        )
        ticker = None if traffic is None else self._telling_statistics(traffic)
        self._subscribed = False
        self._closed = False
        # Also when the consumer is forgotten, or the process ends: then nothing is committed, and nobody leaves.
        self._stop = Ending(self, _stop, self._fetcher, self._group, opened, ticker)

    def _telling_statistics(self, traffic: Traffic) -> Ticker:
        group = self._group
        self._rebalancing.statistics = ConsumerStatistics(
            self._lake,
            self._settings,
            traffic,
            self._lock,
            self._assignment,
            self._buffer,
            self._rebalancing.rebalances,
            lambda: group.member_id,
        )
        ticker = Ticker(self._settings, self._events.tell_statistics)
        ticker.start()
        return ticker

    def close(self) -> None:
        """Commit what is stored (`enable.auto.commit`), leave the group, and stop. Closing again does nothing."""
        if self._closed:
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
            self._closed = True
            with self._lock:
                self._lock.notify_all()
            self._stop()

    def _until(self, timeout: float | Deadline | None) -> Deadline:
        if isinstance(timeout, Deadline):
            return timeout
        if timeout is None or timeout < 0:
            return Deadline(float("inf"))
        return Deadline(self._lake.clock.elapsed_s() + timeout)

    def _next(self, until: Deadline, take: Callable[[], R | None], *, holds: bool = False) -> R | None:
        """What `take` finds in the buffer, once there is something; None when the time is over.

        A consumer that can't go on finds its fatal error instead.

        `holds`: the caller has found records before, which the application is to get before it is told that their
        partitions are others' by now: None then.
        """
        self._check_open()
        group = self._group
        group.polled()
        group.is_polling = True
        try:
            while True:
                self._rebalancing.serve(self, but_losses=holds)
                if holds and self._events.take_away:
                    return None
                with self._lock:
                    self._check_open()
                    found = take()
                    if found:
                        self._fetcher.taken()
                        return found
                    left_s = until.at_s - self._lake.clock.elapsed_s()
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

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Consumer closed")

    @staticmethod
    def _raising(call: Callable[[], R], convert: Callable[[TidelogError], KafkaError] = kafka_error) -> R:
        try:
            return call()
        except TidelogError as e:
            raise KafkaException(convert(e)) from e


def _stop(fetcher: Fetcher, group: GroupSide, opened: OpenedLake, ticker: Ticker | None) -> None:
    if ticker is not None:
        ticker.halt()
    fetcher.halt()
    group.halt()
    fetcher.join()
    group.join()
    opened.close()


def deadline(consumer: ConsumerCore, timeout: float | None) -> Deadline:
    """`timeout` seconds from now (None, below 0: never), for `poll` and `consume` in place of their timeout."""
    return consumer._until(timeout)


def hurry(consumer: ConsumerCore, until: Deadline) -> None:
    """Have the call with this deadline return what it has: its caller has gone."""
    with consumer._lock:
        until.at_s = float("-inf")
        consumer._lock.notify_all()


def give_back(consumer: ConsumerCore, messages: Iterable[Message]) -> None:
    """Have messages handed out again that a call took and its caller never got; what is assigned no more is not.

    What a read of the log can't give again, events and errors, is kept for the next call.
    """
    with consumer._lock:
        if consumer._closed:
            return
        for message in reversed(list(messages)):
            if message.error() is not None:
                consumer._buffer.put_back(message)
            elif (owned := consumer._assignment.get((message.topic() or "", message.partition() or 0))) is not None:
                owned.give_back(message.offset() or 0, stores=consumer._settings.enable_auto_offset_store)
    consumer._fetcher.changed()
