"""Options of commands that stay up: where their metrics are and go, and which clients a server of HTTP lets in."""

from dataclasses import dataclass
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
OtlpAt = Annotated[
    str | None,
    typer.Option(
        "--otlp",
        metavar="URL",
        help="Send metrics and traces to OpenTelemetry's collector there, by OTLP over HTTP: http://HOST:4318.",
        show_default=False,
    ),
]
HostNames = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A name by which clients may call the server, besides addresses and names that only its own network has;"
        " '*': any. Repeatable.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class HttpServerOptions:
    """Which clients may come in, and where the process's own metrics are."""

    host_name: HostNames = None
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Settings of brokers, as 'broker start --config' takes them: those of access, tokens and TLS count.",
            show_default=False,
        ),
    ] = None
    authenticate: Annotated[
        bool,
        typer.Option(
            "--authenticate",
            help="Clients must log in: as a user of the lake, or by a token. Without it they must where a listener of"
            " --config has them do so.",
        ),
    ] = False
    metrics: MetricsAt = None
    otlp: OtlpAt = None
