"""`tidelog console`: a page on a lake, for browsers."""

import os
from typing import Annotated

import typer

from tidelog.commands.options import Session
from tidelog.log.base.extras import require
from tidelog.server.options import HttpServerOptions
from tidelog.server.process.serving import serve


def console(
    call: Session,
    *,
    listener: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where browsers connect; port 0 takes a free one.")
    ] = "127.0.0.1:8080",
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse whatever would change the lake.")] = False,
    served: HttpServerOptions,
) -> None:
    """Serve a page that shows a lake, until SIGTERM or Ctrl-C: topics, records as they come, groups, what is wrong.

    Says on stdout when browsers can connect; its log goes to stderr.
    """
    call.named_lake()
    require("console", "prometheus_client", "scramp", "starlette", "uvicorn")
    # The server and the log: heavy, and not needed for --help.
    from tidelog.cli.serving.registry_serving import given_settings, http_settings
    from tidelog.console.base.console import ConsoleSettings
    from tidelog.console.server import ConsoleServer
    from tidelog.server.base.listeners import parse_listener

    own = http_settings(given_settings(served.config, os.environ), "console", authenticate=served.authenticate)
    settings = ConsoleSettings(read_only, frozenset(served.host_name or ()))
    serve(
        call,
        call.open_lake,
        lambda lake, _: ConsoleServer(
            lake, parse_listener(listener), settings=settings, bounds=own.bounds, access=own.access, tls=own.tls
        ),
        metrics=served.metrics,
        otlp=served.otlp,
    )
