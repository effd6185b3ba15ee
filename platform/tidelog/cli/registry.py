"""`tidelog registry …`: a schema registry that Confluent's clients and tools use as it is."""

import os
from functools import partial
from typing import Annotated

import typer

from tidelog.commands.declare import command, family
from tidelog.commands.options import Session
from tidelog.log.base.extras import require
from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.operations.schemas.modules import REGISTRY_MODULES
from tidelog.server.options import HttpServerOptions
from tidelog.server.process.serving import serve

registries = family("Run a schema registry over a lake, in Confluent's API.")


@command(registries, "start", example="tidelog --lake ./lake registry start --listener 127.0.0.1:8081")
def start(
    call: Session,
    *,
    listener: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where clients connect; port 0 takes a free one.")
    ] = "127.0.0.1:8081",
    topic: Annotated[
        str, typer.Option(metavar="TOPIC", help="The compacted topic of one partition that holds the schemas.")
    ] = SCHEMAS_TOPIC,
    served: HttpServerOptions,
) -> None:
    """Serve a lake's schemas in Confluent's API, until SIGTERM or Ctrl-C. Any number of registries may serve one lake.

    Says on stdout when clients can connect; its log goes to stderr.
    """
    call.named_lake()
    require("registry", *REGISTRY_MODULES)
    # The API and the log: heavy, and not needed for --help.
    from tidelog.cli.serving.registry_serving import given_settings, new_registry
    from tidelog.server.base.listeners import parse_listener

    given = given_settings(served.config, os.environ)
    serve(
        call,
        partial(call.open_lake, create=True),
        lambda lake, _: new_registry(
            lake,
            parse_listener(listener),
            given,
            topic=topic,
            authenticate=served.authenticate,
            host_names=served.host_name or (),
        ),
        metrics=served.metrics,
        otlp=served.otlp,
    )
