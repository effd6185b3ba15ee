"""What a process serves beside its work: metrics and health."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidelog.log.base.extras import require

if TYPE_CHECKING:
    from tidelog.log.lake import Lake
    from tidelog.server.process.metrics_listener import Metrics, Problem, Troubles


@contextmanager
def metrics_served(
    at: str | None,
    lake: "Lake",
    *metrics: "Metrics",
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
    from tidelog.server.base.listeners import parse_listener, refusal, shown
    from tidelog.server.process.metrics_listener import MetricsListener
    from tidelog.server.process.store_metrics import store_metrics, store_problem

    address = parse_listener(at)
    problem = problem or store_problem(lake)
    try:
        listener = MetricsListener(
            address, *metrics, lambda: store_metrics(lake.storage), problem=problem, troubles=troubles
        )
    except OSError as e:
        raise refusal(address, e) from e
    with listener:
        yield shown(listener.address)
