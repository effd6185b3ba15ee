"""`tidelog connect …`: workers that run connectors, with Kafka Connect's REST API."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidelog.commands.declare import command, family
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, print_json, table
from tidelog.log.base.extras import require
from tidelog.server.options import HostNames, MetricsAt, OtlpAt
from tidelog.server.process.serving import serve

if TYPE_CHECKING:
    from tidelog.log.lake import Lake
    from tidelog.server.process.logs import LimitedLines

connectors = family("Run connectors, with Kafka Connect's REST API.")

# The modules of the extra `registry` that a worker's server needs.
CONNECT_MODULES = ("starlette", "uvicorn", "prometheus_client", "cryptography")


@command(connectors, "start", example="tidelog --lake ./lake connect start --listener 127.0.0.1:8083")
def start(
    call: Session,
    listener: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where requests are taken; port 0 takes a free one.")
    ] = "127.0.0.1:8083",
    config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Properties of the worker, as of connect-distributed.properties."),
    ] = None,
    authenticate: Annotated[
        bool,
        typer.Option(
            "--authenticate",
            help="Clients must log in: as a user of the lake, or by a token; --config has super.users.",
        ),
    ] = False,
    advertised: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="What statuses call the worker.", show_default="the listener"),
    ] = None,
    host_name: HostNames = None,
    metrics: MetricsAt = None,
    otlp: OtlpAt = None,
) -> None:
    """Run a worker until SIGTERM or Ctrl-C. Workers of one lake and group.id share its connectors and tasks.

    Says on stdout when requests are taken; its log goes to stderr. When it is asked to stop, its tasks end, commit, and
    go to other workers.
    """
    call.named_lake()
    require("registry", *CONNECT_MODULES)
    # The API and the log: heavy, and not needed for --help.
    from tidelog.cli.connect.worker_file import read_worker_file
    from tidelog.connect.api.rest_server import ConnectServer
    from tidelog.server.base.listeners import parse_listener

    own = read_worker_file(config, authenticate=authenticate)

    def opened(lake: "Lake", lines: "LimitedLines") -> ConnectServer:
        server = ConnectServer(
            lake, parse_listener(listener), own.settings, bounds=own.bounds, advertised=advertised, access=own.access,
            tls=own.tls, host_names=host_name or (),
        )  # fmt: skip
        lines.hide = lambda text: own.hide(server.worker.shared.providers.secrets.hidden(text))
        return server

    serve(call, partial(call.open_lake, create=True), opened, metrics=metrics, otlp=otlp)


@command(connectors, "plugins", example="tidelog connect plugins")
def plugins(call: Session) -> None:
    """List the connectors that a worker has here, each with what it guarantees, and the converters."""
    from tidelog.connect.converters.table import CONVERTERS
    from tidelog.connect.runtime.plugins import Plugins, kind_of

    installed = Plugins()
    rows = [
        {"class": one.names[0], "type": kind_of(one), "version": one.version, "guarantee": one.guarantee}
        for one in installed
    ]
    rows += [{"class": one.names[0], "type": one.kind, "version": "", "guarantee": ""} for one in CONVERTERS]
    if call.as_json:
        print_json(rows)
        return
    _table(rows, "class", "type", "guarantee")
    for missing in installed.missing:
        typer.echo(f"{missing.path} can't be loaded: {missing.why}", err=True)


@command(connectors, "list", example="tidelog --lake ./lake connect list")
def listed(call: Session) -> None:
    """List connectors, with their states, as the lake has them: no worker needs to run."""
    from tidelog.connect.runtime.plugins import Plugins
    from tidelog.operations.connectors import connectors_of

    plugins = Plugins()
    with call.open_lake() as lake:
        lake.require_lake()
        rows = [
            {
                "name": connector.name,
                "type": plugins.kind_of(connector.config),
                "state": str(connector.status.state),
                "tasks": ", ".join(str(task.state) for task in connector.tasks),
            }
            for connector in connectors_of(lake).describe()
        ]
    print_json(rows) if call.as_json else _table(rows, "name", "type", "state", "tasks")


@command(connectors, "status", example="tidelog --lake ./lake connect status orders")
def status(
    call: Session,
    name: Annotated[str, typer.Argument(metavar="CONNECTOR", help="The connector's name.")],
) -> None:
    """Describe a connector and its tasks: states, workers, and why one FAILED."""
    from tidelog.connect.api.operations import status_json
    from tidelog.connect.runtime.plugins import Plugins
    from tidelog.operations.connector_configs import ConnectorNotFoundError
    from tidelog.operations.connectors import connectors_of

    with call.open_lake() as lake:
        lake.require_lake()
        try:
            connector = connectors_of(lake).describe_one(name)
        except ConnectorNotFoundError as e:
            raise UsageProblemError(f"{e}: 'tidelog connect list' has those that are there.") from None
    if call.as_json:
        print_json(status_json(connector, Plugins()))
        return
    runs = [("", connector.status), *((str(status.task), status) for status in connector.tasks)]
    rows = [
        {"task": task, "state": str(status.state), "worker": status.worker_id, "retries": str(status.retries or "")}
        for task, status in runs
    ]
    _table(rows, "task", "state", "worker", "retries")
    for _, status in runs:
        if status.trace:
            typer.echo(status.trace)


def _table(rows: list[dict[str, Any]], *columns: str) -> None:
    console().print(table([column.upper() for column in columns], [[str(row[one]) for one in columns] for row in rows]))
