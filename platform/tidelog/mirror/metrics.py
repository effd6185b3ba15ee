"""What a mirror says of itself, as Prometheus reads it."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidelog.operations.mirrors import MirrorStatus, lag_ms


class MirrorMetrics(Collector):
    """Reads what a mirror said last whenever it is asked for. `now_ms`: the reader's clock, ms since the epoch."""

    def __init__(self, said: Callable[[], MirrorStatus | None], now_ms: Callable[[], int]) -> None:
        self._said = said
        self._now_ms = now_ms

    def describe(self) -> list[Metric]:
        """Nothing: the metrics are made when they are asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All of them; none before the mirror said anything."""
        status = self._said()
        if status is None:
            return
        now_ms = self._now_ms()
        for name, what, value in (
            ("lag_entries", "Entries at the source that the follower lacks.", status.behind_entries),
            ("lag_bytes", "Bytes of the entries and files that the follower lacks.", status.behind_bytes),
            ("lag_seconds", "Age of the oldest entry that the follower lacks.", lag_ms(status, now_ms) / 1000),
            ("delay_seconds", "Median age of the last entries when they were shipped.", status.delay_ms[0] / 1000),
            ("status_age_seconds", "How long ago the mirror last said anything.", (now_ms - status.now_ms) / 1000),
            ("whole", "1 when the follower can be promoted: it is as the source was.", status.whole_ms is not None),
        ):
            yield GaugeMetricFamily(f"tidelog_mirror_{name}", what, value=float(value))
        for name, what, value in (
            ("shipped_entries", "Entries shipped since the process began.", status.shipped_entries),
            ("shipped_bytes", "Bytes of files shipped since the process began.", status.shipped_bytes),
        ):
            yield CounterMetricFamily(f"tidelog_mirror_{name}", what, value=float(value))
        lag = _by_table("lag_entries", "Entries that the follower lacks.")
        stopped = _by_table("stopped", "1: the table is not shipped.")
        waiting = _by_table("waiting_bytes", "Removed files still to be deleted here.")
        for name, table in status.tables.items():
            lag.add_metric([name], max(0, table.source - table.follower))
            stopped.add_metric([name], bool(table.problem))
            waiting.add_metric([name], table.waiting_bytes)
        yield from (lag, stopped, waiting)


def _by_table(name: str, what: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"tidelog_mirror_table_{name}", what, labels=["table"])


def prometheus(status: MirrorStatus, now_ms: int) -> str:
    """A status in Prometheus' text format; `now_ms`: the reader's clock, by which a silent mirror grows old."""
    registry = CollectorRegistry()
    registry.register(MirrorMetrics(lambda: status, lambda: now_ms))
    return generate_latest(registry).decode()
