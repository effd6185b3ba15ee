"""`tidelog broker …`: brokers, through which Kafka's own clients use a lake."""

import os
from dataclasses import replace
from typing import Annotated

import typer

from tidelog.cli.serving.plan import BROKER_MODULES, BrokerPlan
from tidelog.commands.declare import command, family
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, print_json, say
from tidelog.log.base.extras import require
from tidelog.operations.schemas.modules import REGISTRY_MODULES
from tidelog.server.options import HostNames, MetricsAt, OtlpAt
from tidelog.server.process.serving import checked_collector

brokers = family("Run, list and describe brokers, through which Kafka's own clients use a lake.")


@command(brokers, "start", example="tidelog --lake ./lake broker start --listener 127.0.0.1:9092")
def start(
    call: Session,
    listener: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Where clients connect, without encryption; port 0 takes a free one.",
            show_default="127.0.0.1:9092",
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Settings, listeners among them: Kafka's properties, or TOML (.toml)."),
    ] = None,
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
    pin: Annotated[
        bool,
        typer.Option("--pin/--no-pin", help="Keep each of N processes on a core of its own, where there are N."),
    ] = True,
    metrics: MetricsAt = None,
    otlp: OtlpAt = None,
    registry: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve schemas there; with N processes, at N ports.")
    ] = None,
    registry_host_name: HostNames = None,
    maintain: Annotated[
        bool,
        typer.Option(
            "--maintain/--no-maintain",
            help="Maintain the lake, too, one broker of a lake at a time; or leave that to a scheduled job.",
        ),
    ] = True,
) -> None:
    """Serve a lake to Kafka's clients, until SIGTERM or Ctrl-C. A lake that is not there is made.

    Says on stdout when clients can connect; its log goes to stderr. When it is asked to stop, it takes no new
    connections, finishes what was asked, and ends with exit code 0.
    """
    address = call.named_lake()
    _require(registry, otlp)
    # Arrow, the protocol and the log: heavy, and not needed for --help.
    from tidelog.cli.broker.planning import plan_of
    from tidelog.server.base.listeners import parse_listener

    at = None if listener is None else parse_listener(listener)
    registry_at = None if registry is None else parse_listener(registry)
    metrics_at = None if metrics is None else parse_listener(metrics)
    plan = plan_of(address, os.environ, at, config, broker_id, rack, metrics_at, call.store)
    plan = replace(
        plan,
        otlp=otlp,
        registry=registry_at,
        registry_names=tuple(registry_host_name or ()),
        maintain=maintain,
        as_json=call.as_json,
        debug=call.debug,
    )
    plan = replace(plan, log_format=call.log_format, log_level=call.log_level)
    _check_ports(plan, processes)
    _run(plan, processes, pin=pin)


def _run(plan: BrokerPlan, processes: int, *, pin: bool) -> None:
    """Serve, in this process or in as many as were asked for."""
    if processes == 1:
        from tidelog.cli.broker.serving import serve_broker

        serve_broker(plan, alone=True)
        return
    from tidelog.cli.broker.pinning import cores_for
    from tidelog.cli.broker.processes import supervise
    from tidelog.server.process.children import StartFailedError

    cores = cores_for(processes) if pin else [None] * processes
    try:
        supervise([replace(plan.of_process(number), core=core) for number, core in enumerate(cores)])
    except StartFailedError as e:
        raise typer.Exit(e.code) from e


def _check_ports(plan: BrokerPlan, processes: int) -> None:
    highest = plan.highest_port(processes)
    if highest > 65_535:
        raise UsageProblemError(f"--processes {processes} needs ports up to {highest}, and the last one is 65535.")


def _require(registry: str | None, otlp: str | None) -> None:
    require("broker", *BROKER_MODULES)
    if otlp is not None:
        checked_collector(otlp)
    if registry is not None:
        require("registry", *REGISTRY_MODULES)


@command(brokers, "check-config", example="tidelog broker check-config /etc/kafka/server.properties")
def check_config(
    call: Session,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Kafka's properties, or TOML (.toml).")],
) -> None:
    """Show what becomes of each key of a broker's file: used, taken by the lake, or passed over, and why.

    It needs no lake and starts nothing. A file with mistakes gets one error that names all of them, and exit code 2.
    """
    _require(None, None)
    from tidelog.cli.broker.views import keys_json, keys_table
    from tidelog.cli.serving.config_file import read_config
    from tidelog.cli.serving.configuration import checked

    _, taken = checked({}, read_config(file), file)
    if call.as_json:
        print_json({"file": file, "keys": keys_json(taken.rows), "problems": taken.problems.found})
    else:
        console().print(keys_table(taken.rows))
    taken.problems.refuse()


@command(brokers, "list", example="tidelog broker list")
def list_brokers(
    call: Session,
) -> None:
    """List the brokers of a lake, those that are gone too. A pipe gets the ids of those that serve, one a line."""
    from tidelog.cli.broker.views import broker_json, brokers_table
    from tidelog.operations.cluster import describe_cluster

    with call.open_lake() as opened:
        cluster = describe_cluster(opened)
    out = console()
    if call.as_json:
        print_json([broker_json(broker, cluster) for broker in cluster.brokers])
    elif not out.is_terminal:
        for broker in cluster.live:
            say(str(broker.id))
    elif cluster.brokers:
        out.print(brokers_table(cluster.brokers, cluster))
    else:
        say("No brokers. 'tidelog broker start' runs one.")


@command(brokers, "describe", example="tidelog broker describe 1")
def describe(
    call: Session,
    broker_id: Annotated[
        int | None, typer.Argument(metavar="ID", help="The broker; without it, all of them.", show_default=False)
    ] = None,
) -> None:
    """Show a lake's cluster, its epoch and its controller, and one of its brokers or all.

    With all of them: how many brokers lead each topic that costs them something, and how much of a core it takes.
    """
    from tidelog.cli.broker.views import broker_json, brokers_table, topic_json, topics_table
    from tidelog.operations.cluster import describe_cluster

    with call.open_lake() as opened:
        cluster = describe_cluster(opened)
    shown = cluster.brokers if broker_id is None else [cluster.broker(broker_id)]
    topics = cluster.topics if broker_id is None else []
    if call.as_json:
        controller = cluster.controller and cluster.controller.id
        said = {"cluster_id": cluster.cluster_id, "epoch": cluster.state.epoch, "controller": controller}
        brokers_shown = [broker_json(broker, cluster) for broker in shown]
        print_json({**said, "brokers": brokers_shown, "topics": [topic_json(topic) for topic in topics]})
        return
    serving = len(cluster.serving)
    say(f"Cluster {cluster.cluster_id or '-'}  epoch {cluster.state.epoch}, brokers that serve: {serving}")
    if shown:
        console().print(brokers_table(shown, cluster))
    if topics:
        console().print(topics_table(topics))
    for broker in shown:
        why = cluster.silent.get(broker.registration)
        if why is not None:
            say(f"Broker {broker.id} is said to run, and takes no connection from here: {why}.")
