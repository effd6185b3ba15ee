"""Delivery reports: what became of records, told to their callbacks by whoever polls."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tidelog.clients.producer.records import I32, I64, NO_PARTITION, DeliveryCallback, Ranges, Rows
from tidelog.clients.producer.topic_queue import Account
from tidelog.clients.values.errors import KafkaError
from tidelog.clients.values.message import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, Message
from tidelog.log.group_commit.engine import REPEATED, Landed


@dataclass(slots=True)
class Fate:
    """What became of a chunk's rows: each one's partition and offset (-1: none, or not known), and errors by row.

    `ranges`: the offsets of each partition; `append_ms`: the timestamp of all, under LogAppendTime.
    """

    partitions: I32
    offsets: I64
    errors: dict[int, KafkaError] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=dict)
    append_ms: int | None = None

    @classmethod
    def of(cls, count: int, explicit: I32 | None) -> "Fate":
        """Nothing is known yet."""
        partitions = np.full(count, NO_PARTITION, np.int32) if explicit is None else explicit.copy()
        return cls(partitions, np.full(count, -1, np.int64))

    def fail(self, left: I64, error: KafkaError) -> I64:
        """These rows failed; returns those that are left then, none."""
        self.errors.update(dict.fromkeys(left.tolist(), error))
        return left[:0]

    def note(self, landed: Landed, left: I64, chosen: I32, counts: dict[int, int]) -> None:
        """These rows landed: those of a partition, of which there are `counts`, have its offsets in their order."""
        self.append_ms = landed.append_ms
        self.ranges = {p: given for p, given in landed.ranges.items() if given != REPEATED}
        if not self.offsets.size:  # nobody asks for single rows
            return
        self.partitions[left] = chosen
        for partition, (first, end) in self.ranges.items():
            own = left[chosen == partition] if len(counts) > 1 else left
            self.offsets[own] = np.arange(first, end)


@dataclass(slots=True)
class Report:
    """The callbacks of a chunk that are to be made: [(row, callback)], from `at` on."""

    topic: str
    rows: Rows
    fate: Fate
    calls: list[tuple[int, DeliveryCallback]]
    now_ms: int
    now_s: float
    at: int = 0
    _partitions: list[int] = field(default_factory=list)
    _offsets: list[int] = field(default_factory=list)
    _times: list[int] = field(default_factory=list)

    def call(self, row: int, callback: DeliveryCallback) -> None:
        """Make a callback."""
        if not self._times:
            self._partitions = self.fate.partitions.tolist()
            self._offsets = self.fate.offsets.tolist()
            self._times = self.rows.timestamps(self.now_ms, self.now_s).tolist()
        error = self.fate.errors.get(row)
        callback(error, self._message(row, error))

    def _message(self, row: int, error: KafkaError | None) -> Message:
        rows, offset, partition = self.rows, self._offsets[row], self._partitions[row]
        extra = rows.extras.get(row)
        append_ms = self.fate.append_ms if error is None else None
        return Message(
            self.topic,
            None if partition == NO_PARTITION else partition,
            None if offset < 0 else offset,
            rows.keys[row],
            rows.values[row],
            None if extra is None else extra.headers,
            error,
            (TIMESTAMP_CREATE_TIME, self._times[row]) if append_ms is None else (TIMESTAMP_LOG_APPEND_TIME, append_ms),
            self.now_s - rows.stamped[row],
        )


class Reports:
    """The reports of all topics, in the order in which their entries were committed."""

    def __init__(self, account: Account, default: DeliveryCallback | None, only_error: bool) -> None:
        self._account = account
        self._default = default
        self._only_error = only_error
        self._waiting: deque[Report] = deque()
        # Records that were delivered since somebody last polled, with or without callback.
        self._events = 0
        self._statistics: Callable[[], None] | None = None
        self._statistics_due = False

    def deliver(self, topic: str, rows: Rows, fate: Fate, now_ms: int, now_s: float) -> None:
        """Take over what became of a chunk of `produce`."""
        report = Report(topic, rows, fate, self._calls(rows, fate), now_ms, now_s)
        with self._account.lock:
            self.settle_locked(rows.count - len(report.calls), rows.size)
            if report.calls:
                self._waiting.append(report)

    def settle_locked(self, count: int, size: int) -> None:
        """So many records need nothing more."""
        self._account.settled += count
        self._account.settled_size += size
        self._events += count
        self._account.changed.notify_all()

    def _calls(self, rows: Rows, fate: Fate) -> list[tuple[int, DeliveryCallback]]:
        default, count = self._default, rows.count
        if default is not None and not self._only_error:
            own = {row: extra.callback for row, extra in rows.extras.items() if extra.callback}
            return [(row, own.get(row, default)) for row in range(count)]
        calls = []
        asked = sorted(fate.errors) if self._only_error else sorted(rows.extras.keys() | fate.errors.keys())
        for row in asked:
            extra = rows.extras.get(row)
            callback = (extra.callback if extra else None) or default
            if callback is not None:
                calls.append((row, callback))
        return calls

    def tell_statistics(self, statistics: Callable[[], None]) -> None:
        """Have the next call of `serve` call this."""
        with self._account.lock:
            self._statistics, self._statistics_due = statistics, True
            self._account.changed.notify_all()

    @property
    def any(self) -> bool:
        """Whether there is something to tell of."""
        return bool(self._waiting or self._events or self._statistics_due)

    def waiting(self) -> int:
        """How many callbacks are to be made."""
        with self._account.lock:
            return sum(len(report.calls) - report.at for report in self._waiting)

    def serve(self) -> int:
        """Make the callbacks that wait; returns how many records were delivered since the last time.

        What a callback raises ends it; the next call goes on after that callback.
        """
        with self._account.lock:
            events, self._events = self._events, 0
        while (taken := self._take()) is not None:
            report, (row, callback) = taken
            events += 1
            report.call(row, callback)
        if self._statistics_due and self._statistics is not None:
            self._statistics_due = False
            self._statistics()
        return events

    def _take(self) -> tuple[Report, tuple[int, DeliveryCallback]] | None:
        """The next callback to make, which counts as made."""
        waiting, account = self._waiting, self._account
        with account.lock:
            while waiting:
                report = waiting[0]
                if report.at < len(report.calls):
                    report.at += 1
                    account.settled += 1
                    if not account.count:
                        account.changed.notify_all()
                    return report, report.calls[report.at - 1]
                waiting.popleft()
        return None
