"""`tidelog console`: a page on a lake, for browsers."""

import os
from contextlib import ExitStack
from functools import partial
from typing import Annotated

import typer

from tidelog.commands.http_server import HttpServerOptions, say_ready, serve_until_signal
from tidelog.commands.options import Session
from tidelog.log.base.extras import require
from tidelog.server.process.logs import logging_lines
from tidelog.server.process.serving import metrics_served


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
    address = call.named_lake()
    require("console", "prometheus_client", "scramp", "starlette", "uvicorn")
    # The server and the log: heavy, and not needed for --help.
    from tidelog.cli.serving.registry_serving import given_settings, http_settings
    from tidelog.console.base.console import ConsoleSettings
    from tidelog.console.live.sampler import Sampler
    from tidelog.console.metrics import ConsoleMetrics
    from tidelog.console.server import ConsoleServer
    from tidelog.log.lake import Lake
    from tidelog.server.base.listeners import parse_listener, shown

    own = http_settings(given_settings(served.config, os.environ), "console", authenticate=served.authenticate)
    lines = logging_lines(call.log_format, call.log_level)
    with lines, Lake(address, create=False, options=call.store) as lake, ExitStack() as ends:
        settings = ConsoleSettings(read_only, frozenset(served.host_name or ()))
        server = ConsoleServer(
            lake, parse_listener(listener), settings=settings, bounds=own.bounds, access=own.access, tls=own.tls
        )
        found = {"url": f"{server.scheme}://{shown(server.address)}/", "lake": lake.uri}
        if (at := ends.enter_context(metrics_served(served.metrics, lake, ConsoleMetrics(server)))) is not None:
            found["metrics"] = at
        server.console.part(Sampler)  # looks at the lake at once: the first page need not wait for all of it
        serve_until_signal(server, partial(say_ready, call, found, f"Console ready at {found['url']} ({lake.uri})"))
