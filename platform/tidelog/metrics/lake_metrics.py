"""A lake, as Prometheus reads it: every process reports the same of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidelog.cluster.model import BrokerState
from tidelog.log.lake import Lake
from tidelog.metrics.of_groups import group_metrics
from tidelog.metrics.of_topics import topic_metrics
from tidelog.operations.snapshots import LakeSnapshot, SnapshotReader
from tidelog.server.process.metrics_text import add

# Brokers by id, each with its addresses.
Brokers = Mapping[int, Sequence[tuple[str, int]]]
_MS: Final = 1000


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
        began = self._lake.clock.elapsed_s()
        snapshot = self._reader.read()
        yield from _of_brokers(_running(snapshot) if self._brokers is None else self._brokers())
        yield from topic_metrics(snapshot, self._cluster, self._lake.config())
        yield from group_metrics(snapshot, self._cluster)
        yield from _of_the_lake(snapshot)
        yield CounterMetricFamily(
            "tidelog_lake_looks", "Times that all of the lake was looked at.", value=self._reader.reads
        )
        yield GaugeMetricFamily(
            "tidelog_lake_scrape_seconds", "What this answer took.", value=self._lake.clock.elapsed_s() - began
        )


def _running(snapshot: LakeSnapshot) -> Brokers:
    return {
        one.id: [(at.host, at.port) for at in one.listeners]
        for one in snapshot.brokers
        if one.state is BrokerState.RUNNING
    }


def _of_brokers(brokers: Brokers) -> Iterator[Metric]:
    yield GaugeMetricFamily("kafka_brokers", "Brokers that run.", value=len(brokers))
    info = GaugeMetricFamily("kafka_broker_info", "A broker, and its address.")
    for number, addresses in brokers.items():
        for host, port in addresses:
            add(info, {"id": str(number), "address": f"{host}:{port}"}, 1)
    yield info


def _of_the_lake(snapshot: LakeSnapshot) -> Iterator[Metric]:
    yield GaugeMetricFamily("tidelog_lake_topics", "Topics that can be read.", value=len(snapshot.topics))
    yield GaugeMetricFamily("tidelog_lake_broken_topics", "Topics that can't be read.", value=len(snapshot.broken))
    whole = next((run for run in snapshot.runs if run.whole), None)
    if whole is not None:
        since_s = max(0, snapshot.at_ms - whole.at_ms) / _MS
        yield GaugeMetricFamily(
            "tidelog_maintenance_age_seconds", "Since maintenance of the whole lake last began.", value=since_s
        )
    if snapshot.runs:
        failures = len(snapshot.runs[0].failures)
        yield GaugeMetricFamily("tidelog_maintenance_failures", "What failed in its last run.", value=failures)
    if snapshot.space is not None:
        yield GaugeMetricFamily("tidelog_lake_disk_free_bytes", "Of the lake's disk.", value=snapshot.space.free)
        yield GaugeMetricFamily("tidelog_lake_disk_bytes", "Of the lake's disk.", value=snapshot.space.total)
    oldest_ms = min((one.began_ms for one in snapshot.open_transactions), default=snapshot.at_ms)
    yield GaugeMetricFamily("tidelog_transactions_open", "Open transactions.", value=len(snapshot.open_transactions))
    yield GaugeMetricFamily(
        "tidelog_transactions_oldest_seconds",
        "Since the oldest open transaction began; 0 without one.",
        value=max(0, snapshot.at_ms - oldest_ms) / _MS,
    )
    yield GaugeMetricFamily(
        "tidelog_transactions_undone", "Committed transactions that no topic shows yet.", value=snapshot.undone
    )
