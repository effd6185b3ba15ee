"""`tidelog broker …`: brokers, through which Kafka's own clients use a lake."""

import sys
from typing import Annotated

import typer

from tidelog.commands.declare import command, family
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.log.base.extras import require

brokers = family("Run brokers, through which Kafka's own clients use a lake.")

# The modules of the extra `broker`.
_MODULES = ("kio", "aiokafka", "cramjam", "prometheus_client", *(() if sys.platform == "win32" else ("uvloop",)))


@command(brokers, "start", example="tidelog --lake ./lake broker start --listener 127.0.0.1:9092")
def start(
    call: Session,
    listener: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where clients connect; port 0 takes a free one.")
    ] = "127.0.0.1:9092",
    broker_id: Annotated[
        int | None,
        typer.Option("--id", metavar="N", min=0, help="The broker's id; without it, the lowest one that is free."),
    ] = None,
    rack: Annotated[
        str | None, typer.Option(metavar="RACK", help="The broker's rack or zone: clients of the same one come here.")
    ] = None,
    processes: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many brokers to run, with ids and ports that count up.")
    ] = 1,
    metrics: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where Prometheus finds metrics; with N processes, N ports.")
    ] = None,
    maintain: Annotated[
        bool, typer.Option("--maintain", help="Maintain the lake, too; one broker of a lake does at a time.")
    ] = False,
) -> None:
    """Serve a lake to Kafka's clients, until SIGTERM or Ctrl-C. A lake that is not there is made.

    Says on stdout when clients can connect; its log goes to stderr. When it is asked to stop, it takes no new
    connections, finishes what was asked, and ends with exit code 0.
    """
    address = call.named_lake()
    require("broker", *_MODULES)
    # Arrow, the protocol and the log: heavy, and not needed for --help.
    from tidelog.broker.server.listeners import parse_listener
    from tidelog.cli.broker.plan import BrokerPlan, ReadyLine

    plan = BrokerPlan(
        address,
        parse_listener(listener),
        broker_id,
        rack,
        None if metrics is None else parse_listener(metrics),
        call.store,
        maintain=maintain,
        as_json=call.as_json,
        debug=call.debug,
    )
    highest = max(port + processes - 1 if port else 0 for _, port in filter(None, (plan.listener, plan.metrics)))
    if highest > 65_535:
        raise UsageProblemError(f"--processes {processes} needs ports up to {highest}, and the last one is 65535.")

    def ready(line: ReadyLine) -> None:
        typer.echo(line.to_json() if call.as_json else line.text())
        sys.stdout.flush()

    if processes == 1:
        from tidelog.cli.broker.serving import serve

        serve(plan, ready)
        return
    from tidelog.cli.broker.processes import StartFailedError, supervise

    try:
        supervise([plan.of_process(number) for number in range(processes)], ready)
    except StartFailedError as e:
        raise typer.Exit(e.code) from e
