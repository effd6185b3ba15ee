"""What a worker counts, under the names of Connect's beans, for Prometheus."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from tidelog.connect.api.routes import RestApp
from tidelog.connect.runtime.runs import UnitRun
from tidelog.connect.runtime.task_figures import TaskFigure, TaskFigures, figures_of
from tidelog.connect.runtime.task_runs import SourceTaskRun, TaskRun
from tidelog.connect.units import Unit
from tidelog.connect.worker import Worker
from tidelog.operations.metric_families import Labels, MetricFamily, MetricRow, counter, gauge, read_rows
from tidelog.server.connections import HttpCounts


class _WorkerCounts(NamedTuple):
    """What is read: the runs are those of one moment."""

    app: RestApp
    connections: HttpCounts
    rebalancing: bool
    runs: Mapping[Unit, UnitRun]


def worker_metrics(worker: Worker, app: RestApp, connections: HttpCounts) -> Iterator[MetricFamily]:
    """All of them, as of now; a task's since it started, and rates of the last minute."""
    runs = dict(sorted(worker.running.items(), key=str))
    return read_rows(_METRICS, _WorkerCounts(app, connections, worker.rebalancing, runs))


def _failed(counted: _WorkerCounts) -> Iterator[tuple[Labels, float]]:
    for (name, task), run in counted.runs.items():
        yield {"connector": name, "task": "" if task is None else str(task)}, float(run.failed)


def _of_tasks(
    figure: TaskFigure, value: Callable[[TaskFigures, TaskFigure], float]
) -> Callable[[_WorkerCounts], list[tuple[Labels, float]] | None]:
    """A number of each task that counts such things; None without one."""

    def read(counted: _WorkerCounts) -> list[tuple[Labels, float]] | None:
        return [
            ({"connector": name, "task": str(task)}, value(run.figures, figure))
            for (name, task), run in counted.runs.items()
            if isinstance(run, TaskRun) and run.figures is not None
            if figure in figures_of(source=isinstance(run, SourceTaskRun))
        ] or None

    return read


def _task_rows() -> Iterator[MetricRow[_WorkerCounts]]:
    """Rows of what tasks count, named as the JMX exporter writes the beans' attributes."""
    for figure in TaskFigure:
        bean, name, rated = figure.value
        named, words = f"kafka_connect_{bean}_{name}".replace("-", "_"), name.replace("-", " ")
        source, totals = f"as Connect's {bean} has it.", _of_tasks(figure, TaskFigures.total)
        if rated:
            yield gauge(f"{named}_rate", f"{words} rate, {source}", _of_tasks(figure, TaskFigures.rate))
            yield counter(named, f"{words} total, {source}", totals)
        else:
            yield gauge(named, f"{words}, {source}", totals)


_METRICS: Final[tuple[MetricRow[_WorkerCounts], ...]] = (
    counter("tidelog_connect_requests", "Requests answered.", lambda counted: counted.app.answers),
    gauge("tidelog_connect_failed", "Whether a run FAILED.", _failed),
    gauge(
        "kafka_connect_connect_worker_metrics_connector_count",
        "Of this worker.",
        lambda counted: sum(task is None for _, task in counted.runs),
    ),
    gauge(
        "kafka_connect_connect_worker_metrics_task_count",
        "Of this worker.",
        lambda counted: sum(task is not None for _, task in counted.runs),
    ),
    gauge(
        "kafka_connect_connect_worker_rebalance_metrics_rebalancing",
        "Of this worker.",
        lambda counted: counted.rebalancing,
    ),
    gauge("tidelog_connect_connections", "Of this worker.", lambda counted: counted.connections.open.total()),
    *_task_rows(),
)
