"""`--metrics`, the same at every command that runs for long: one listener for metrics and health."""

from typing import Annotated

import typer

MetricsAt = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="HOST:PORT",
        help="Serve /metrics for Prometheus, /healthz and /readyz there; port 0 takes a free one.",
        show_default=False,
    ),
]
