"""What the commands that serve HTTP share: options, the line that says when they serve, and how they end."""

import signal
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Protocol

import orjson
import typer

from tidelog.commands.metrics_option import MetricsAt
from tidelog.commands.options import Session

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


class StoppableServer(Protocol):
    """A server that runs until it is asked to stop, from any thread."""

    def run(self, ready: Callable[[], None]) -> None:
        """Serve, and call `ready` once clients can connect."""

    def stop(self) -> None:
        """Have `run` return."""


def serve_until_signal(server: StoppableServer, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; raises what the server raises. For the main thread.

    In a thread of its own uvicorn leaves the signals to this one, and the process ends with exit code 0.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    with ThreadPoolExecutor(1, thread_name_prefix="server") as threads:
        threads.submit(server.run, ready).result()


def say_ready(call: Session, found: Mapping[str, object], text: str) -> None:
    """Say on stdout, at once, that clients can connect: `found` as JSON where that is asked for, `text` else."""
    typer.echo(orjson.dumps(found).decode() if call.as_json else text)
    sys.stdout.flush()
