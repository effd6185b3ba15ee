"""What a console counts, as Prometheus reads it."""

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidelog.console.app import ConsoleApp
from tidelog.console.base.console import Console
from tidelog.console.live.sampler import Sampler
from tidelog.server.connections import HttpCounts


class ConsoleMetrics(Collector):
    """Reads the counts of a console whenever they are asked for."""

    def __init__(self, app: ConsoleApp, console: Console, connections: HttpCounts) -> None:
        self._app = app
        self._console = console
        self._connections = connections

    def describe(self) -> list[Metric]:
        """Nothing: the metrics are made when they are asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All of them, as of now."""
        requests = CounterMetricFamily("tidelog_console_requests", "Requests answered.", labels=["request", "status"])
        for (name, status), count in sorted(self._app.answered.copy().items()):
            requests.add_metric([name or "none", str(status)], count)
        yield requests
        yield CounterMetricFamily(
            "tidelog_console_looks",
            "Times that all of the lake was looked at.",
            value=self._console.reader.reads,
        )
        total, _ = self._console.part(Sampler).requests()
        if total is not None:
            yield CounterMetricFamily(
                "tidelog_console_store_requests", "Requests that the store was sent.", value=total
            )
        open_now = self._connections.open.total()
        yield GaugeMetricFamily("tidelog_console_connections", "Open connections.", value=float(open_now))
