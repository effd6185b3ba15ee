"""A lake, as Prometheus reads it: every process reports the same of it."""

from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidelog.log.lake import Lake
from tidelog.operations.lake_metrics import Brokers, lake_metrics
from tidelog.operations.metric_families import MetricFamily
from tidelog.operations.snapshots import SnapshotReader
from tidelog.server.process.metrics_text import add


class LakeMetrics(Collector):
    """Reads a lake whenever its metrics are asked for, in the thread that asks, as `SnapshotReader` allows.

    `cluster`: kafka-lag-exporter's label `cluster_name`; the lake's address unless given. `brokers`: those that run, as
    the process knows them; else as the lake's table of brokers says.
    """

    def __init__(
        self,
        lake: Lake,
        reader: SnapshotReader | None = None,
        *,
        cluster: str = "",
        brokers: Callable[[], Brokers] | None = None,
    ) -> None:
        self._lake = lake
        self._reader = reader or SnapshotReader(lake)
        self._cluster = cluster or lake.uri
        self._brokers = brokers

    def describe(self) -> list[Metric]:
        """Nothing: the metrics are made when they are asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All of them, as of now."""
        began_s = self._lake.clock.elapsed_s()
        brokers = None if self._brokers is None else self._brokers()
        families = lake_metrics(self._reader.read(), self._cluster, self._lake.config(), brokers)
        yield from map(_metric, families)
        yield CounterMetricFamily(
            "tidelog_lake_looks", "Times that all of the lake was looked at.", value=self._reader.reads
        )
        yield GaugeMetricFamily(
            "tidelog_lake_scrape_seconds", "What this answer took.", value=self._lake.clock.elapsed_s() - began_s
        )


def _metric(family: MetricFamily) -> Metric:
    metric: Metric = (
        CounterMetricFamily(family.name, family.what)
        if family.is_counter
        else GaugeMetricFamily(family.name, family.what)
    )
    for labels, value in family.samples:
        add(metric, labels, value)
    return metric
