"""What the commands that serve HTTP share: options, how they begin, what they say when they serve, how they end."""

import signal
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from tidelog.commands.options import Session
from tidelog.server.options import MetricsAt
from tidelog.server.process.logs import LimitedLines, logging_lines
from tidelog.server.process.serving import metrics_served

if TYPE_CHECKING:
    from tidelog.log.lake import Lake
    from tidelog.server.serving import HttpServer

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


def serve(
    call: Session,
    address: str,
    metrics: str | None,
    opened: Callable[["Lake", LimitedLines], "HttpServer"],
    *,
    create: bool = True,
    settled: Callable[[Any], object] = lambda _: None,
) -> None:
    """Serve what is `opened` over the lake at an address until SIGTERM or Ctrl-C, and `metrics` at HOST:PORT, if given.

    Says on stdout when clients can connect; `settled` gets the server then. `opened`: gets the lines of the log, too.
    `create`: make a lake that is not there. For the main thread. Raises what opening and serving raise.
    """
    from tidelog.log.lake import Lake

    with ExitStack() as ends:
        lines = ends.enter_context(logging_lines(call.log_format, call.log_level))
        lake = ends.enter_context(Lake(address, create=create, options=call.store))
        server = opened(lake, lines)
        found = {"url": server.url, **server.about}
        at = ends.enter_context(metrics_served(metrics, lake, server.metrics, troubles=server.troubles))
        if at is not None:
            found["metrics"] = at

        def ready() -> None:
            say_ready(call, found, f"{server.named.capitalize()} ready at {server.url} ({lake.uri})")
            settled(server)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: server.stop())
        # In a thread of its own uvicorn leaves the signals to this one, and the process ends with exit code 0.
        with ThreadPoolExecutor(1, thread_name_prefix="server") as threads:
            threads.submit(server.run, ready).result()


def say_ready(call: Session, found: Mapping[str, object], text: str) -> None:
    """Say on stdout, at once, that clients can connect: `found` as JSON where that is asked for, `text` else."""
    typer.echo(orjson.dumps(found).decode() if call.as_json else text)
    sys.stdout.flush()
