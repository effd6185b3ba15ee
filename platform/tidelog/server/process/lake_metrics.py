"""A lake, as Prometheus reads it: every process reports the same of it."""

from collections.abc import Callable, Iterator

from tidelog.log.lake import Lake
from tidelog.operations.lake_metrics import Brokers, lake_metrics
from tidelog.operations.metric_families import MetricFamily
from tidelog.operations.snapshots import SnapshotReader


class LakeMetrics:
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

    def read(self) -> Iterator[MetricFamily]:
        """All of them, as of now."""
        began_s = self._lake.clock.elapsed_s()
        brokers = None if self._brokers is None else self._brokers()
        yield from lake_metrics(self._reader.read(), self._cluster, self._lake.config(), brokers)
        what = "Times that all of the lake was looked at."
        yield MetricFamily("tidelog_lake_looks", what, True, [({}, self._reader.reads)])
        took_s = self._lake.clock.elapsed_s() - began_s
        yield MetricFamily.of("tidelog_lake_scrape_seconds", "What this answer took.", took_s)
