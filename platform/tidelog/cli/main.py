"""The command `tidelog`: all its commands, and the entry point `run`."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from tidelog.cli.access.acls import acls
from tidelog.cli.access.quotas import quotas
from tidelog.cli.access.tenants import tenants
from tidelog.cli.access.users import users
from tidelog.cli.broker.commands import brokers
from tidelog.cli.check import check
from tidelog.cli.connect.commands import connectors
from tidelog.cli.console import console
from tidelog.cli.consume.command import consume
from tidelog.cli.cuts import cuts
from tidelog.cli.demo.command import demo
from tidelog.cli.doctor import doctor
from tidelog.cli.group.commands import groups
from tidelog.cli.lake import diff, forget, lakes, maintain
from tidelog.cli.metrics import metrics
from tidelog.cli.mirror.commands import mirrors
from tidelog.cli.perf.command import perf
from tidelog.cli.produce.command import produce
from tidelog.cli.registry import registries
from tidelog.cli.rewind.commands import rewind_lake, rewind_topic
from tidelog.cli.schemas import schemas
from tidelog.cli.topics import topics
from tidelog.cli.transactions import producers, transactions
from tidelog.commands.declare import command, flat
from tidelog.commands.failures import EXIT_CODES, CommandGroup, exit_code_of
from tidelog.commands.options import Session

app = typer.Typer(
    name="tidelog",
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: tidelog --lake ./lake topic create orders --partitions 8\n\n" + EXIT_CODES,
)
app.add_typer(topics, name="topic")
app.add_typer(lakes, name="lake")
app.add_typer(cuts, name="cut")
app.add_typer(groups, name="group")
app.add_typer(transactions, name="transaction")
app.add_typer(producers, name="producer")
app.add_typer(perf, name="perf")
app.add_typer(brokers, name="broker")
app.add_typer(mirrors, name="mirror")
app.add_typer(connectors, name="connect")
app.add_typer(registries, name="registry")
app.add_typer(schemas, name="schema")
app.add_typer(users, name="user")
app.add_typer(acls, name="acl")
app.add_typer(quotas, name="quota")
app.add_typer(tenants, name="tenant")
command(topics, "rewind", example="tidelog topic rewind orders --to-cut friday --execute", changes=True)(rewind_topic)
command(lakes, "diff", example="tidelog lake diff lakes/main lakes/what-if --topic totals --by-key")(diff)
command(lakes, "rewind", example="tidelog lake rewind --to-cut friday --execute", changes=True)(rewind_lake)
for _name, _command, _example in (
    ("produce", produce, "seq 1000 | tidelog produce orders -H source=seq"),
    ("consume", consume, r"tidelog consume orders -o -10 -f '%p:%o %k=%s\n'"),
    ("check", check, "tidelog check --deep"),
    ("maintain", maintain, "tidelog maintain --every 5m"),
    ("forget", forget, "tidelog forget --topic orders --key customer-17"),
    ("console", console, "tidelog console --listener 127.0.0.1:8080"),
    ("metrics", metrics, "tidelog metrics --listener 127.0.0.1:9308"),
    ("doctor", doctor, "tidelog doctor"),
    ("demo", demo, "tidelog demo"),
):
    command(app, _name, example=_example, changes=_command in (forget, check))(_command)


def _print_version(asked: bool) -> None:
    if asked:
        from tidelog.cli.broker.reader_line import READER_LINE  # other commands don't load what it asks

        typer.echo(f"tidelog {version('tidelog')}")
        typer.echo(READER_LINE)
        raise typer.Exit


def root(
    call: Session,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version, and what reads brokers' batches.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Topics as Delta tables, with Kafka's semantics."""


app.callback()(flat(root))


def run() -> None:
    """Run the command line and end the process with its exit code (`EXIT_CODES`)."""
    sys.exit(exit_code_of(app, "tidelog"))
