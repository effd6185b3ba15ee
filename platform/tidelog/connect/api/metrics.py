"""What a worker counts, for Prometheus."""

from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidelog.connect.api.rest_app import RestApp
from tidelog.connect.runtime.runs import UnitRun
from tidelog.connect.runtime.task_runs import SourceTaskRun, TaskRun
from tidelog.connect.units import Unit
from tidelog.connect.worker import Worker
from tidelog.server.connections import HttpCounts


class WorkerMetrics(Collector):
    """Reads the counts whenever they are asked for, under the names of Connect's beans."""

    def __init__(self, worker: Worker, app: RestApp, connections: HttpCounts) -> None:
        self._worker = worker
        self._app = app
        self._connections = connections

    def describe(self) -> list[Metric]:
        """Nothing: the metrics are made when they are asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All of them, as of now."""
        runs = self._worker.running
        requests = CounterMetricFamily("tidelog_connect_requests", "Requests answered.", labels=["request", "status"])
        for (name, status), count in sorted(self._app.answered.copy().items()):
            requests.add_metric([name or "none", str(status)], count)
        yield requests
        failed = GaugeMetricFamily("tidelog_connect_failed", "Whether a run FAILED.", labels=["connector", "task"])
        for (name, task), run in sorted(runs.items(), key=str):
            failed.add_metric([name, "" if task is None else str(task)], float(run.failed))
        yield failed
        counts = {
            "kafka_connect_connect_worker_metrics_connector_count": sum(task is None for _, task in runs),
            "kafka_connect_connect_worker_metrics_task_count": sum(task is not None for _, task in runs),
            "kafka_connect_connect_worker_rebalance_metrics_rebalancing": int(self._worker.rebalancing),
            "tidelog_connect_connections": self._connections.open.total(),
        }
        for name, count in counts.items():
            yield GaugeMetricFamily(name, "Of this worker.", value=float(count))
        yield from _of_tasks(runs)


def _of_tasks(runs: Mapping[Unit, UnitRun]) -> Iterator[Metric]:
    """What tasks counted since they started: totals, and rates of the last minute."""
    found: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for (name, task), run in sorted(runs.items(), key=str):
        if not isinstance(run, TaskRun) or run.figures is None:
            continue
        for one in run.figures.shown(source=isinstance(run, SourceTaskRun)):
            said = f"{one.name.replace('-', ' ')}, as Connect's {one.bean} has it."
            kind = CounterMetricFamily if one.counts else GaugeMetricFamily
            family = found.setdefault(one.prometheus, kind(one.prometheus, said, labels=["connector", "task"]))
            family.add_metric([name, str(task)], one.value)
    yield from found.values()
