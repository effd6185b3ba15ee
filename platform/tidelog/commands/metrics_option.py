"""`--metrics`, the same at every command that runs for long: one listener for metrics and health."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.log.base.extras import require

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from tidelog.log.lake import Lake
    from tidelog.metrics.serving import Problem, Troubles

MetricsAt = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="HOST:PORT",
        help="Serve /metrics for Prometheus, /healthz and /readyz there; port 0 takes a free one.",
        show_default=False,
    ),
]


@contextmanager
def metrics_served(
    at: str | None,
    lake: "Lake",
    *collectors: "Collector",
    problem: "Problem | None" = None,
    troubles: "Troubles" = tuple,
) -> Iterator[str | None]:
    """Meanwhile serve a process's metrics, with those of its store; HOST:PORT, or None where none are asked for.

    `problem`: why the process can't do its work, None while it can; without it, why the lake's store does not answer.
    `troubles`: what `/healthz` names beside. Raises `ListenerError`, `MissingPackageError`.
    """
    if at is None:
        yield None
        return
    require("broker", "prometheus_client")
    # Heavy, and not needed for --help.
    from tidelog.broker.server.metrics import serve_metrics
    from tidelog.metrics.of_store import StoreMetrics, store_problem
    from tidelog.server.base.listeners import parse_listener, shown

    with ExitStack() as ends:
        listener = serve_metrics(
            parse_listener(at),
            *collectors,
            StoreMetrics(lake.storage),
            problem=problem or store_problem(lake),
            troubles=troubles,
        )
        yield shown(ends.enter_context(listener).address)
