"""`tidelog metrics`: what Prometheus reads of a lake, whether brokers run or not."""

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.log.base.extras import require
from tidelog.server.options import OtlpAt
from tidelog.server.process.serving import Ready, Service, serve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidelog.operations.metric_families import MetricFamily
    from tidelog.server.telemetry.process_metrics import Metrics


def metrics(
    call: Session,
    listener: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve /metrics, /healthz and /readyz there until SIGTERM or Ctrl-C; port 0 takes a free one."
            " Without it, the metrics are printed once.",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The label cluster_name, by which dashboards tell lakes apart; the lake's address else.",
            show_default=False,
        ),
    ] = "",
    age: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Answer from a look at the lake that is at most this old. [default: 0 on a local disk, 30 on an object"
            " store, where each look costs requests]",
            show_default=False,
        ),
    ] = None,
    otlp: OtlpAt = None,
) -> None:
    """Print a lake's metrics in Prometheus' format, or serve them: topics, groups and their lag, transactions, files.

    The names are those of kafka_exporter and kafka-lag-exporter, so that their dashboards show a lake.
    """
    require("broker", "prometheus_client")
    if otlp is not None and listener is None:
        raise UsageProblemError("--otlp is for a process that goes on: give --listener, too.")
    # Heavy, and not needed for --help.
    from tidelog.operations.snapshots import SnapshotReader
    from tidelog.server.process.lake_metrics import LakeMetrics
    from tidelog.server.process.metrics_text import rendered

    with call.open_lake() as lake, SnapshotReader(lake, age) as reader:
        reader.read()  # what can't be looked at is refused at once
        read = LakeMetrics(lake, reader, cluster=cluster).read
        if listener is None:
            sys.stdout.write(rendered(read()).decode())
        else:
            serve(call, lambda: nullcontext(lake), lambda *_: LakeExporter(lake.uri, read), metrics=listener, otlp=otlp)


class LakeExporter(Service):
    """Serves what Prometheus reads of a lake, and nothing else."""

    named = "metrics"

    def __init__(self, uri: str, read: "Metrics") -> None:
        self._uri = uri
        self._read = read

    def ready(self, metrics: str | None) -> Ready:
        """Where the metrics are."""
        url = f"http://{metrics}/metrics"
        return Ready(f"Metrics at {url} ({self._uri})", {"url": url, "lake": self._uri})

    def metrics(self) -> "Iterable[MetricFamily]":
        """The lake's."""
        return self._read()
