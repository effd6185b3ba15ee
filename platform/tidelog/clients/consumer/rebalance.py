"""Changes of a consumer's assignment: by its own calls, and by its group's rebalances with their callbacks."""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from tidelog.clients.consumer.assignment import TopicPartitionKey, as_list
from tidelog.clients.consumer.consumer_statistics import Rebalances
from tidelog.clients.consumer.fetcher import Fetcher
from tidelog.clients.consumer.group import CommitDone, GroupEvent, GroupSide, Joined, StatisticsDue, Trouble
from tidelog.clients.consumer.shared import ConsumerShared
from tidelog.clients.open_lake import LOGGER
from tidelog.clients.values.partitions import TopicPartition
from tidelog.groups.member.events import Assigned, Lost, Revoke, is_cooperative

# A callback is given the consumer that polls, which this module passes on without knowing more of it.
RebalanceCallback = Callable[[Any, list[TopicPartition]], Any]


class Events:
    """The events of the group side, until a call of the consumer's serves it. `lock` is notified of each."""

    def __init__(self, lock: threading.Condition) -> None:
        self._lock = lock
        self._events: deque[GroupEvent] = deque()

    def __bool__(self) -> bool:
        return bool(self._events)

    def add(self, event: GroupEvent) -> None:
        """Append an event."""
        with self._lock:
            self._events.append(event)
            self._lock.notify_all()

    @property
    def take_away(self) -> bool:
        """Whether the first event takes partitions away."""
        with self._lock:
            return bool(self._events) and isinstance(self._events[0], Revoke | Lost)

    def next(self, *, but_losses: bool = False) -> GroupEvent | None:
        """The first event; None where there is none, or (`but_losses`) where it takes partitions away."""
        with self._lock:
            if not self._events or (but_losses and self.take_away):
                return None
            return self._events.popleft()

    def add_statistics_due(self) -> None:
        """Append `StatisticsDue`, where none waits yet."""
        with self._lock:
            if not any(isinstance(event, StatisticsDue) for event in self._events):
                self._events.append(StatisticsDue())
                self._lock.notify_all()

    def drop_rebalances(self) -> None:
        """Drop the events of a group that was left."""
        with self._lock:
            self._events = deque(e for e in self._events if isinstance(e, CommitDone))


class Rebalancing:
    """Changes the assignment, and serves events; all from the application's calls, one at a time."""

    def __init__(self, shared: ConsumerShared, fetcher: Fetcher, group: GroupSide, events: Events) -> None:
        self._settings, self._clock = shared.settings, shared.lake.clock
        self._lock, self._assignment, self._buffer = shared.lock, shared.assignment, shared.buffer
        self._fetcher = fetcher
        self._group = group
        self._events = events
        modern = shared.settings.group_protocol == "consumer"
        self._cooperative = modern or is_cooperative(shared.settings.assignment_strategy)
        self._changes = 0  # calls that changed the assignment
        self._serving = False
        self._started = False
        self.rebalances = Rebalances()
        self.statistics: Callable[[], None] | None = None
        self.on_assign: RebalanceCallback | None = None
        self.on_revoke: RebalanceCallback | None = None
        self.on_lost: RebalanceCallback | None = None

    # --- changes -------------------------------------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these and nothing else, from the start that each names."""
        wanted = list({(p.topic, p.partition): p for p in partitions}.values())
        self._remove(self._assignment.places(), commit=True)
        self.add(wanted)

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these too. Raises KafkaException."""
        self._changes += 1
        with self._lock:
            self._assignment.add(partitions)
        self._group.commit_regularly()
        if not self._started:
            self._started = True
            self._fetcher.start()
        self._fetcher.changed()

    def remove(self, places: Iterable[TopicPartitionKey]) -> None:
        """Read these no more, and commit what is stored of them. Raises KafkaException."""
        wanted = list(places)
        with self._lock:
            self._assignment.require(wanted)
        self._remove(wanted, commit=True)

    def clear(self) -> None:
        """Read nothing any more, and commit what is stored."""
        self._remove(self._assignment.places(), commit=True)

    def _remove(self, places: Iterable[TopicPartitionKey], *, commit: bool) -> None:
        self._changes += 1
        wanted = list(places)
        if commit and wanted and self._settings.enable_auto_commit:
            self._group.commit_and_report(None, wanted)
        with self._lock:
            self._assignment.drop(wanted)
        self._fetcher.changed()

    # --- events --------------------------------------------------------------------------------------------

    def serve(self, consumer: object, *, but_losses: bool = False) -> None:
        """Serve what waits: rebalances and commits, with their callbacks. A callback's exception is raised.

        With `but_losses` nothing from the first event on that takes partitions away. A call from inside a callback
        serves nothing.
        """
        if self._serving or not self._events:
            return
        self._serving = True
        try:
            while (event := self._events.next(but_losses=but_losses)) is not None:
                self._serve(consumer, event)
        finally:
            self._serving = False

    def _serve(self, consumer: object, event: GroupEvent) -> None:
        if isinstance(event, Assigned | Revoke | Lost):
            self.rebalances.note(self._clock.elapsed_s(), type(event).__name__.lower())
        if isinstance(event, StatisticsDue):
            if self.statistics is not None:
                self.statistics()
        elif isinstance(event, Joined):
            self._group.reads_as = event.metadata
        elif isinstance(event, Assigned):
            self._assigned(consumer, event)
        elif isinstance(event, Revoke):
            try:
                self._give_up(consumer, event.partitions, self.on_revoke, commit=True)
            finally:
                self._group.revoked()
        elif isinstance(event, Lost):
            self._give_up(consumer, event.partitions, self.on_lost or self.on_revoke, commit=False)
        elif isinstance(event, CommitDone):
            if self._settings.on_commit is not None:
                self._settings.on_commit(event.error, event.partitions)
        else:
            self._trouble(event)

    def _assigned(self, consumer: object, event: Assigned) -> None:
        partitions = as_list(event.partitions)
        before = self._changes
        try:
            if self.on_assign is not None:
                self.on_assign(consumer, partitions)
        finally:
            if self._changes == before:
                if self._cooperative:
                    self.add(p for p in partitions if (p.topic, p.partition) not in self._assignment)
                else:
                    self.assign(as_list(event.owned))

    def _give_up(
        self, consumer: object, places: Iterable[TopicPartitionKey], callback: RebalanceCallback | None, *, commit: bool
    ) -> None:
        before = self._changes
        try:
            if callback is not None:
                callback(consumer, as_list(places))
        finally:
            if self._changes == before:
                self._remove(places, commit=commit)

    def leave(self, consumer: object) -> None:
        """Give up what the group assigned, with the callback, and leave it."""
        self._events.drop_rebalances()
        places = self._assignment.places()
        try:
            if places:
                self._give_up(consumer, places, self.on_revoke, commit=True)
        finally:
            self._group.leave()
            self._events.drop_rebalances()

    def _trouble(self, event: Trouble) -> None:
        if event.deliver:
            with self._lock:
                self._buffer.notice(None, event.error)
        elif self._settings.error_cb is not None:
            self._settings.error_cb(event.error)
        else:
            (self._settings.logger or LOGGER).warning("Group %s: %s", self._settings.group_id, event.error.str())
