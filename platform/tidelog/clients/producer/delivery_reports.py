"""Delivery reports: the callbacks of records that were committed or failed, made when the program polls."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tidelog.clients.producer.records import DeliveryCallback, Rows
from tidelog.clients.producer.topic_queue import InFlight
from tidelog.clients.values.errors import KafkaError, kafka_error
from tidelog.clients.values.message import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, Message
from tidelog.log.base.errors import DeliveryTimeoutError, TidelogError, UnknownPartitionError
from tidelog.log.group_commit.requests import NO_PARTITION, Outcomes


class PurgedError(Exception):
    """The records were given up: while they waited, or (`in_flight`) while they may have been on their way."""

    def __init__(self, *, in_flight: bool) -> None:
        super().__init__()
        self.in_flight = in_flight


def kafka_errors(errors: Mapping[int, BaseException]) -> dict[int, KafkaError]:
    """Each record's error as its callback gets it."""
    made = {id(error): _kafka_error(error) for error in set(errors.values())}
    return {row: made[id(error)] for row, error in errors.items()}


def _kafka_error(error: BaseException) -> KafkaError:
    if isinstance(error, PurgedError):
        return KafkaError(KafkaError._PURGE_INFLIGHT if error.in_flight else KafkaError._PURGE_QUEUE)
    if isinstance(error, DeliveryTimeoutError):
        return KafkaError(KafkaError._MSG_TIMED_OUT, str(error))
    if isinstance(error, UnknownPartitionError):
        return KafkaError(KafkaError._UNKNOWN_PARTITION, str(error))
    if isinstance(error, TidelogError):
        return kafka_error(error)
    return KafkaError(KafkaError._FAIL, f"{type(error).__name__}: {error}")


@dataclass(slots=True)
class DeliveryCallbacks:
    """The callbacks of a chunk that are to be made: [(row, callback)], from `at` on."""

    topic: str
    rows: Rows
    outcomes: Outcomes
    errors: Mapping[int, KafkaError]
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
            explicit = self.rows.explicit()
            self._partitions = self.outcomes.partitions(self.rows.count, explicit).tolist()
            self._offsets = self.outcomes.offsets(self.rows.count).tolist()
            self._times = self.rows.timestamps(self.now_ms, self.now_s).tolist()
        error = self.errors.get(row)
        callback(error, self._message(row, error))

    def _message(self, row: int, error: KafkaError | None) -> Message:
        rows, offset, partition = self.rows, self._offsets[row], self._partitions[row]
        extra = rows.extras.get(row)
        append_ms = self.outcomes.append_ms if error is None else None
        return Message(
            self.topic,
            None if partition == NO_PARTITION else partition,
            None if offset < 0 else offset,
            rows.keys[row],
            rows.values[row],
            None if extra is None else extra.headers,
            error,
            (TIMESTAMP_CREATE_TIME, self._times[row]) if append_ms is None else (TIMESTAMP_LOG_APPEND_TIME, append_ms),
            self.now_s - float(rows.stamps[row]),
        )


class Reports:
    """The reports of all topics, in the order in which their entries were committed."""

    def __init__(self, in_flight: InFlight, default: DeliveryCallback | None, only_error: bool) -> None:
        self._in_flight = in_flight
        self._default = default
        self._only_error = only_error
        self._waiting: deque[DeliveryCallbacks] = deque()
        # Records that were delivered since the last poll, with or without callback.
        self._events = 0
        self._statistics: Callable[[], None] | None = None
        self._statistics_due = False

    def deliver(
        self,
        topic: str,
        rows: Rows,
        outcomes: Outcomes,
        errors: Mapping[int, KafkaError],
        now_ms: int,
        now_s: float,
    ) -> None:
        """Take over what became of a chunk of `produce`."""
        report = DeliveryCallbacks(topic, rows, outcomes, errors, self._calls(rows, errors), now_ms, now_s)
        with self._in_flight.lock:
            self.complete_locked(rows.count - len(report.calls), rows.size)
            if report.calls:
                self._waiting.append(report)

    def complete_locked(self, count: int, size: int) -> None:
        """Count records that need nothing more."""
        self._in_flight.completed += count
        self._in_flight.completed_size += size
        self._events += count
        self._in_flight.changed.notify_all()

    def _calls(self, rows: Rows, errors: Mapping[int, KafkaError]) -> list[tuple[int, DeliveryCallback]]:
        default, count = self._default, rows.count
        if default is not None and not self._only_error:
            own = {row: extra.callback for row, extra in rows.extras.items() if extra.callback}
            return [(row, own.get(row, default)) for row in range(count)]
        calls = []
        asked = sorted(errors) if self._only_error else sorted(rows.extras.keys() | errors.keys())
        for row in asked:
            extra = rows.extras.get(row)
            callback = (extra.callback if extra else None) or default
            if callback is not None:
                calls.append((row, callback))
        return calls

    def report_statistics(self, statistics: Callable[[], None]) -> None:
        """Have the next call of `serve` call this."""
        with self._in_flight.lock:
            self._statistics, self._statistics_due = statistics, True
            self._in_flight.changed.notify_all()

    @property
    def any(self) -> bool:
        """Whether a poll has something to do or to count."""
        return bool(self._waiting or self._events or self._statistics_due)

    def waiting(self) -> int:
        """How many callbacks are to be made."""
        with self._in_flight.lock:
            return sum(len(report.calls) - report.at for report in self._waiting)

    def serve(self) -> int:
        """Make the callbacks that wait; returns how many records were delivered since the last time.

        What a callback raises ends it; the next call goes on after that callback.
        """
        with self._in_flight.lock:
            events, self._events = self._events, 0
        while (taken := self._take()) is not None:
            report, (row, callback) = taken
            events += 1
            report.call(row, callback)
        if self._statistics_due and self._statistics is not None:
            self._statistics_due = False
            self._statistics()
        return events

    def _take(self) -> tuple[DeliveryCallbacks, tuple[int, DeliveryCallback]] | None:
        """The next callback to make, which counts as made."""
        waiting, in_flight = self._waiting, self._in_flight
        with in_flight.lock:
            while waiting:
                report = waiting[0]
                if report.at < len(report.calls):
                    report.at += 1
                    in_flight.completed += 1
                    if not in_flight.count:
                        in_flight.changed.notify_all()
                    return report, report.calls[report.at - 1]
                waiting.popleft()
        return None
