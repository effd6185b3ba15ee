"""A worker and its REST API as a server of HTTP: started, stopped, and counted under the names of Connect's beans."""

import gc
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from starlette.types import Receive, Scope, Send

from tidelog.connect.api.operations import ConnectOperations
from tidelog.connect.api.routes import RestApp
from tidelog.connect.runtime.plugins import Plugins
from tidelog.connect.runtime.runs import UnitRun
from tidelog.connect.runtime.task_figures import TaskFigure, TaskFigures, figures_of
from tidelog.connect.runtime.task_runs import SourceTaskRun, TaskRun
from tidelog.connect.runtime.worker_settings import WorkerSettings
from tidelog.connect.units import Unit
from tidelog.connect.worker import Worker
from tidelog.log.lake import Lake
from tidelog.operations.connector_health import all_troubles, unwell
from tidelog.operations.metric_families import Labels, MetricFamily, MetricRow, counter, gauge, read_rows
from tidelog.server.base.listener_settings import TlsSettings
from tidelog.server.connections import HttpBounds, HttpCounts
from tidelog.server.logins import HttpAccess, HttpLogins
from tidelog.server.process.stopping import Stop
from tidelog.server.requests import JSON
from tidelog.server.serving import HttpServer
from tidelog.server.telemetry.tracing import Tracing

_STOPS_WITHIN_S: Final = 5
# New objects between two collections of garbage.
_OBJECTS: Final = 100_000


class ConnectServer(HttpServer):
    """A worker over a lake whose REST API is at an address. `address`: (host, port); port 0 takes a free one.

    `advertised`: the host and port that statuses name, where it is not the address. `access`: what clients may do;
    None: everything. `tls`: None speaks HTTP without encryption. `host_names`: as `HttpServer` has them. Raises
    `HttpAddressError`, `TlsError`, and what reading the shared topics raises.
    """

    logger = logging.getLogger("tidelog.connect")

    def __init__(
        self,
        lake: Lake,
        address: tuple[str, int],
        settings: WorkerSettings | None = None,
        plugins: Plugins | None = None,
        *,
        bounds: HttpBounds | None = None,
        advertised: str | None = None,
        access: HttpAccess | None = None,
        tls: TlsSettings | None = None,
        host_names: Iterable[str] = (),
    ) -> None:
        bounds = bounds or HttpBounds()
        super().__init__(
            self._answer,
            address,
            lake.clock,
            named="worker",
            media_type=JSON,
            bounds=bounds,
            tls=tls,
            stops_within_s=_STOPS_WITHIN_S,
            host_names=(*host_names, *([] if advertised is None else [advertised.rpartition(":")[0].strip("[]")])),
            authenticates=access is not None and access.authenticates,
        )
        self.worker_id = advertised or "{}:{}".format(*self.address)
        self.worker = Worker(lake, self.worker_id, settings, plugins)
        self.about = {"lake": lake.uri, "group": self.worker.shared.settings.group_id}
        self._logins = None if access is None else HttpLogins(lake, access, "CONNECT")
        self.app = RestApp(ConnectOperations(self.worker), bounds, self._logins)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application: a worker needs the address that it is served at."""
        await self.app(scope, receive, send)

    def trace(self, tracing: Tracing) -> None:
        """Requests become traces, and so does what tasks put and write."""
        super().trace(tracing)
        self.worker.shared.tracing = tracing

    def begin(self, **counts: int) -> None:
        """Run connectors."""
        super().begin(**counts, connectors=self.worker.shared.configs.look(lambda state: len(state.connectors)))
        self.worker.start()

    def end(self) -> None:
        """Have other workers run them."""
        self.worker.stop()
        super().end()

    def metrics(self) -> Iterator[MetricFamily]:
        """What is counted, as of now."""
        return worker_metrics(self.worker, self.app, self.connections)

    def troubles(self) -> list[str]:
        """What is not well with the lake's connectors, in words, as the topics of its workers say."""
        return list(all_troubles(unwell(self.worker.shared.connectors.describe(), None)))

    def run(self, stop: Stop) -> None:
        """Run connectors until `stop`, with what is there now kept out of collections of garbage.

        A batch's thousands of objects end together: a look after each 700 takes a tenth more.
        """
        gc.collect()
        gc.freeze()
        gc.set_threshold(_OBJECTS)
        super().run(stop)


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
