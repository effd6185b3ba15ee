"""`tidelog registry …`: a schema registry that Confluent's clients and tools use as it is."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Annotated

import orjson
import typer

from tidelog.commands.declare import command, family
from tidelog.commands.metrics_option import MetricsAt, metrics_served
from tidelog.commands.options import Session
from tidelog.log.base.extras import require
from tidelog.registry.modules import REGISTRY_MODULES

registries = family("Run a schema registry over a lake, in Confluent's API.")


@command(registries, "start", example="tidelog --lake ./lake registry start --listener 127.0.0.1:8081")
def start(
    call: Session,
    listener: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where clients connect; port 0 takes a free one.")
    ] = "127.0.0.1:8081",
    topic: Annotated[
        str, typer.Option(metavar="TOPIC", help="The compacted topic of one partition that holds the schemas.")
    ] = "_schemas",
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
            help="Clients must log in: as a user of the lake, or by a token. Without it they must where a listener of"
            " --config has them do so.",
        ),
    ] = False,
    metrics: MetricsAt = None,
) -> None:
    """Serve a lake's schemas in Confluent's API, until SIGTERM or Ctrl-C. Any number of registries may serve one lake.

    Says on stdout when clients can connect; its log goes to stderr.
    """
    address = call.named_lake()
    require("registry", *REGISTRY_MODULES)
    # The API and the log: heavy, and not needed for --help.
    from tidelog.broker.server.listeners import parse_listener, shown
    from tidelog.cli.broker.registry_serving import given_settings, new_registry
    from tidelog.commands.logs import logging_lines
    from tidelog.log.lake import Lake

    given = given_settings(config, os.environ)
    with logging_lines(call.log_format, call.log_level), Lake(address, options=call.store) as lake, ExitStack() as ends:
        server = new_registry(lake, parse_listener(listener), given, topic=topic, authenticate=authenticate)
        found = {"url": f"{server.scheme}://{shown(server.address)}", "lake": lake.uri, "schemas": server.schemas}
        if (served := ends.enter_context(metrics_served(metrics, lake, server.metrics()))) is not None:
            found["metrics"] = served

        def ready() -> None:
            typer.echo(
                orjson.dumps(found).decode() if call.as_json else f"Registry ready at {found['url']} ({lake.uri})"
            )
            sys.stdout.flush()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: server.stop())
        # In a thread of its own, uvicorn leaves the signals to this one, and the process ends with exit code 0.
        with ThreadPoolExecutor(1, thread_name_prefix="registry") as threads:
            threads.submit(server.run, ready).result()
