"""`tidelog console`: a page on a lake, for browsers."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Annotated

import orjson
import typer

from tidelog.commands.logs import logging_lines
from tidelog.commands.metrics_option import MetricsAt, metrics_served
from tidelog.commands.options import Session
from tidelog.log.base.extras import require


def console(
    call: Session,
    listener: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where browsers connect; port 0 takes a free one.")
    ] = "127.0.0.1:8080",
    host_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A name by which browsers may call the console, besides addresses and localhost. Repeatable.",
            show_default=False,
        ),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse whatever would change the lake.")] = False,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Settings of brokers, as 'broker start --config' takes them: those of access, tokens and TLS count.",
        ),
    ] = None,
    authenticate: Annotated[
        bool,
        typer.Option(
            "--authenticate",
            help="People must log in: as a user of the lake, or by a token. Without it they must where a listener of"
            " --config has them do so.",
        ),
    ] = False,
    metrics: MetricsAt = None,
) -> None:
    """Serve a page that shows a lake, until SIGTERM or Ctrl-C: topics, records as they come, groups, what is wrong.

    Says on stdout when browsers can connect; its log goes to stderr.
    """
    address = call.named_lake()
    require("console", "prometheus_client", "scramp", "starlette", "uvicorn")
    # The server and the log: heavy, and not needed for --help.
    from tidelog.broker.server.listeners import parse_listener, shown
    from tidelog.cli.broker.registry_serving import given_settings, http_settings
    from tidelog.console.base.console import ConsoleSettings
    from tidelog.console.live.sampler import Sampler
    from tidelog.console.metrics import ConsoleMetrics
    from tidelog.console.server import ConsoleServer
    from tidelog.log.lake import Lake

    given = http_settings(given_settings(config, os.environ), "console", authenticate=authenticate)
    lines = logging_lines(call.log_format, call.log_level)
    with lines, Lake(address, create=False, options=call.store) as lake, ExitStack() as ends:
        settings = ConsoleSettings(read_only, frozenset(host_name or ()))
        server = ConsoleServer(
            lake, parse_listener(listener), settings=settings, bounds=given.bounds, access=given.access, tls=given.tls
        )
        found = {"url": f"{server.scheme}://{shown(server.address)}/", "lake": lake.uri}
        if (served := ends.enter_context(metrics_served(metrics, lake, ConsoleMetrics(server)))) is not None:
            found["metrics"] = served

        server.console.part(Sampler)  # looks at the lake at once: the first page need not wait for all of it
        text = f"Console ready at {found['url']} ({lake.uri})"
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: server.stop())
        # In a thread of its own, uvicorn leaves the signals to this one, and the process ends with exit code 0.
        with ThreadPoolExecutor(1, thread_name_prefix="console") as threads:
            threads.submit(server.run, partial(_say, orjson.dumps(found).decode() if call.as_json else text)).result()


def _say(text: str) -> None:
    typer.echo(text)
    sys.stdout.flush()
