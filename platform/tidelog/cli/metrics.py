"""`tidelog metrics`: what Prometheus reads of a lake, whether brokers run or not."""

import sys
from typing import Annotated

import typer

from tidelog.commands.http_server import say_ready
from tidelog.commands.options import Session
from tidelog.log.base.extras import require
from tidelog.server.process.logs import logging_lines
from tidelog.server.process.serving import metrics_served
from tidelog.server.process.stopping import Stop


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
) -> None:
    """Print a lake's metrics in Prometheus' format, or serve them: topics, groups and their lag, transactions, files.

    The names are those of kafka_exporter and kafka-lag-exporter, so that their dashboards show a lake.
    """
    require("broker", "prometheus_client")
    # Heavy, and not needed for --help.
    from tidelog.operations.snapshots import SnapshotReader
    from tidelog.server.process.lake_metrics import LakeMetrics
    from tidelog.server.process.metrics_text import rendered

    with call.open_lake() as lake, SnapshotReader(lake, age) as reader:
        reader.read()  # what can't be looked at is refused at once
        lake_metrics = LakeMetrics(lake, reader, cluster=cluster)
        if listener is None:
            sys.stdout.write(rendered(lake_metrics.read()).decode())
            return

        lines = logging_lines(call.log_format, call.log_level)
        with Stop() as stop, lines, metrics_served(listener, lake, lake_metrics.read) as served:
            found = {"url": f"http://{served}/metrics", "lake": lake.uri}
            say_ready(call, found, f"Metrics at {found['url']} ({lake.uri})")
            stop.within()
