"""What `tidelog perf` measures, as kafka-producer-perf-test and kafka-consumer-perf-test of Kafka 4.1 reckon and print.

Pure: times come with the calls, in ms since the epoch. MB are 1024 * 1024 bytes, as there.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

WINDOW_MS = 5_000
# The most latencies that are kept; of more, every n-th.
_MOST_LATENCIES = 500_000
_MB = 1024.0 * 1024.0
PERCENTILES = (0.5, 0.95, 0.99, 0.999)
_REBALANCE_COLUMNS = "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
_PART = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")
_LETTERS = "yMdHmsS"


def java_float(value: float, digits: int) -> str:
    """A number as Java's `%.<digits>f`: halves of its shortest form are rounded up, where Python looks at its bits.

    >>> java_float(0.25, 1), java_float(1.005, 2), java_float(float("inf"), 2), java_float(float("nan"), 1)
    ('0.3', '1.01', 'Infinity', 'NaN')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, None):f}"


def ratio(part: float, whole: float) -> float:
    """A division as Java's of doubles: by zero it is infinity, or no number at all."""
    if whole:
        return part / whole
    return math.nan if not part or math.isnan(part) else math.copysign(math.inf, part)


def percentiles(latencies: Sequence[int], shares: Sequence[float] = PERCENTILES) -> list[int]:
    """Of each share the latency that this part of all is below, as Kafka picks it; 0 where there are none.

    >>> percentiles([9, 9, 9, 100])
    [9, 100, 100, 100]
    """
    found = sorted(latencies)
    return [found[int(share * len(found))] if found else 0 for share in shares]


@dataclass(frozen=True, slots=True)
class ProducerTotal:
    """The result of a producer's run, or of the part of it after the warm-up (`steady`). Latencies in ms."""

    records: int
    bytes: int
    elapsed_ms: int
    latency_sum: int
    latency_max: int
    latency_percentiles: tuple[int, ...]
    steady: bool = False

    @property
    def records_per_s(self) -> float:
        """Records a second."""
        return ratio(1000.0 * self.records, self.elapsed_ms)

    @property
    def mb_per_s(self) -> float:
        """MB a second."""
        return ratio(1000.0 * self.bytes, self.elapsed_ms) / _MB

    @property
    def latency_average(self) -> float:
        """The mean of all latencies."""
        return ratio(self.latency_sum, self.records)

    def line(self) -> str:
        """Kafka's last line."""
        half, most, nearly, all_but = self.latency_percentiles
        return (
            f"{self.records}{' steady state' if self.steady else ''} records sent,"
            f" {java_float(self.records_per_s, 1)} records/sec ({java_float(self.mb_per_s, 2)} MB/sec),"
            f" {java_float(self.latency_average, 2)} ms avg latency, {java_float(self.latency_max, 2)} ms max latency,"
            f" {half} ms 50th, {most} ms 95th, {nearly} ms 99th, {all_but} ms 99.9th."
        )


class ProducerMeasures:
    """The statistics of `expected` records that are acknowledged one after another from `start_ms` on.

    `steady`: only of those after a warm-up, which its first window announces.
    """

    def __init__(self, expected: int, start_ms: int, *, steady: bool = False, window_ms: int = WINDOW_MS) -> None:
        self._start_ms = start_ms
        self._steady = steady
        self._window_length_ms = window_ms
        self._every = max(1, expected // max(1, min(expected, _MOST_LATENCIES)))
        self._latencies: list[int] = []
        self._count = self._bytes = self._sum = self._max = 0
        self._muted = False
        self._begin_window(start_ms)

    def _begin_window(self, now_ms: int) -> None:
        self._window_start_ms = now_ms
        self._window_count = self._window_bytes = self._window_sum = self._window_max = 0

    def mute(self) -> None:
        """Print no more windows."""
        self._muted = True

    def record(self, latency_ms: int, size: int, now_ms: int) -> list[str]:
        """Count a record that was acknowledged; the lines to print when that ends a window."""
        if self._count % self._every == 0:
            self._latencies.append(latency_ms)
        self._count += 1
        self._bytes += size
        self._sum += latency_ms
        self._max = max(self._max, latency_ms)
        self._window_count += 1
        self._window_bytes += size
        self._window_sum += latency_ms
        self._window_max = max(self._window_max, latency_ms)
        if now_ms - self._window_start_ms < self._window_length_ms:
            return []
        lines = ["In steady state."] if self._steady and self._count == self._window_count else []
        if not self._muted:
            lines.append(self._window_line(now_ms))
        self._begin_window(now_ms)
        return lines

    def _window_line(self, now_ms: int) -> str:
        elapsed_ms = now_ms - self._window_start_ms
        return (
            f"{self._window_count} records sent,"
            f" {java_float(ratio(1000.0 * self._window_count, elapsed_ms), 1)} records/sec"
            f" ({java_float(ratio(1000.0 * self._window_bytes, elapsed_ms) / _MB, 2)} MB/sec),"
            f" {java_float(ratio(self._window_sum, self._window_count), 1)} ms avg latency,"
            f" {java_float(self._window_max, 1)} ms max latency."
        )

    def total(self, now_ms: int) -> ProducerTotal:
        """The result of the whole run."""
        return ProducerTotal(
            self._count,
            self._bytes,
            now_ms - self._start_ms,
            self._sum,
            self._max,
            tuple(percentiles(self._latencies)),
            self._steady,
        )


def consumer_header(*, detailed: bool) -> str:
    """Kafka's first line."""
    first = "time, threadId" if detailed else "start.time, end.time"
    return f"{first}, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, {_REBALANCE_COLUMNS}"


@dataclass(frozen=True, slots=True)
class ConsumerTotal:
    """The result of a consumer's run. `rebalance_ms`: how long it had no partitions, to begin with or later."""

    start_ms: int
    end_ms: int
    bytes: int
    records: int
    rebalance_ms: int

    @property
    def fetch_ms(self) -> int:
        """The run without rebalances."""
        return self.end_ms - self.start_ms - self.rebalance_ms

    @property
    def mb(self) -> float:
        """Keys and values, in MB."""
        return self.bytes / _MB

    @property
    def mb_per_s(self) -> float:
        """MB a second of the whole run."""
        return ratio(self.mb, (self.end_ms - self.start_ms) / 1000.0)

    @property
    def records_per_s(self) -> float:
        """Records a second of the whole run."""
        return ratio(self.records, (self.end_ms - self.start_ms) / 1000.0)

    @property
    def fetch_mb_per_s(self) -> float:
        """MB a second without rebalances."""
        return ratio(self.mb, self.fetch_ms / 1000.0)

    @property
    def fetch_records_per_s(self) -> float:
        """Records a second without rebalances."""
        return ratio(self.records, self.fetch_ms / 1000.0)

    def line(self, date: Callable[[int], str]) -> str:
        """Kafka's last line; `date` makes a text of a time in ms since the epoch."""
        return ", ".join(
            (
                date(self.start_ms),
                date(self.end_ms),
                java_float(self.mb, 4),
                java_float(self.mb_per_s, 4),
                str(self.records),
                java_float(self.records_per_s, 4),
                str(self.rebalance_ms),
                str(self.fetch_ms),
                java_float(self.fetch_mb_per_s, 4),
                java_float(self.fetch_records_per_s, 4),
            )
        )


class ConsumerMeasures:
    """The statistics of records that are consumed from `start_ms` on, a line each `interval_ms` (`detailed`)."""

    def __init__(self, start_ms: int, interval_ms: int = WINDOW_MS, *, detailed: bool = False) -> None:
        self.records = self.bytes = self.rebalance_ms = 0
        self._start_ms = self._last_ms = self._join_ms = start_ms
        self._interval_ms = interval_ms
        self._detailed = detailed
        self._last_records = self._last_bytes = self._round_rebalance_ms = 0
        self._assigned: set[tuple[str, int]] = set()

    def assigned(self, partitions: Sequence[tuple[str, int]], now_ms: int) -> None:
        """The group gave partitions: without any before, a rebalance is over."""
        if not self._assigned:
            self.rebalance_ms += now_ms - self._join_ms
            self._round_rebalance_ms += now_ms - self._join_ms
        self._assigned.update(partitions)

    def revoked(self, partitions: Sequence[tuple[str, int]], now_ms: int) -> None:
        """The group took partitions: without any left, a rebalance begins."""
        self._assigned.difference_update(partitions)
        if not self._assigned:
            self._join_ms = now_ms

    def begin(self, now_ms: int) -> None:
        """The subscription is made: the first interval begins."""
        self._last_ms = now_ms

    def record(self, size: int, now_ms: int, date: Callable[[int], str]) -> str | None:
        """Count a record that was polled at `now_ms`; the line to print when that ends an interval."""
        self.records += 1
        self.bytes += size
        if now_ms - self._last_ms < self._interval_ms:
            return None
        line = self._progress(now_ms, date) if self._detailed else None
        self._round_rebalance_ms = 0
        self._last_ms, self._last_records, self._last_bytes = now_ms, self.records, self.bytes
        return line

    def _progress(self, now_ms: int, date: Callable[[int], str]) -> str:
        elapsed_ms = float(now_ms - self._last_ms)
        fetch_ms = now_ms - self._last_ms - self._round_rebalance_ms
        mb, records = (self.bytes - self._last_bytes) / _MB, self.records - self._last_records
        return ", ".join(
            (
                date(now_ms),
                "0",
                java_float(self.bytes / _MB, 4),
                java_float(ratio(1000.0 * mb, elapsed_ms), 4),
                str(self.records),
                java_float(ratio(records, elapsed_ms) * 1000.0, 4),
                str(self._round_rebalance_ms),
                str(fetch_ms),
                java_float(1000.0 * mb / fetch_ms if fetch_ms > 0 else 0.0, 4),
                java_float(1000.0 * records / fetch_ms if fetch_ms > 0 else 0.0, 4),
            )
        )

    def total(self, end_ms: int) -> ConsumerTotal:
        """The result of the whole run."""
        return ConsumerTotal(self._start_ms, end_ms, self.bytes, self.records, self.rebalance_ms)


def check_pattern(pattern: str) -> None:
    """Refuse a pattern that `java_date` can't print. Raises ValueError."""
    if _PART.sub("", pattern):
        raise ValueError(f"{pattern!r} has a quote that does not end")
    for part in _PART.finditer(pattern):
        if part[1] and (part[1] not in _LETTERS or (part[1] == "M" and len(part[0]) > 2)):
            raise ValueError(f"{part[0]!r} is no part of a date here: they are yyyy, MM, dd, HH, mm, ss, SSS")


def java_date(pattern: str, time_ms: int) -> str:
    """A time in ms since the epoch, in this machine's time zone, by a pattern that `check_pattern` let pass.

    >>> java_date("'it is' S ''", 7)
    "it is 7 '"
    """
    when = datetime.fromtimestamp(time_ms // 1000).astimezone()
    values = {
        "y": when.year,
        "M": when.month,
        "d": when.day,
        "H": when.hour,
        "m": when.minute,
        "s": when.second,
        "S": time_ms % 1000,
    }

    def printed(part: re.Match[str]) -> str:
        text = part[0]
        if text.startswith("'"):
            return "'" if text == "''" else text[1:-1].replace("''", "'")
        if not part[1]:
            return text
        if part[1] == "y" and len(text) == 2:
            return f"{when.year % 100:02}"
        return f"{values[part[1]]:0{len(text)}}"

    return _PART.sub(printed, pattern)
