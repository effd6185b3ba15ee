"""The demo: the main job on real data, step by step, with its results compared to the data."""

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from rich.console import Console
from rich.text import Text

from tidelog.cli.demo.flights import Flights, load_flights
from tidelog.cli.demo.lake import DEFAULT_FOLDER, PARTITIONS, DemoFolder
from tidelog.cli.demo.screen import Screen, seconds
from tidelog.cli.demo.spark import spark_session, steady_output
from tidelog.cli.demo.steps import Steps
from tidelog.commands.terminal import number
from tidelog.commands.views import counted
from tidelog.log.base.clock import Clock, SystemClock
from tidelog.log.lake import Lake

if TYPE_CHECKING:
    from tidelog.cli.demo.kafka_steps import StartingBroker


def run_demo(lake: Path | str | None, console: Console, *, kafka: bool = False, flights: Flights | None = None) -> int:
    """Run the demo on the lake in this folder (`demo-lake` without one); 0, or 1 when a result is wrong.

    What an earlier demo left there is deleted first. `kafka`: a Kafka client produces, through a broker. `flights`:
    others than all of 2013. Raises `UsageProblemError` when Java or the data is missing, when the folder's topics are
    not the demo's, or when the broker does not start.
    """
    clock = SystemClock()
    started = clock.elapsed_s()
    folder = DemoFolder(Path(lake or DEFAULT_FOLDER))
    flights = flights or load_flights()
    with ExitStack() as stack:
        stack.enter_context(steady_output(console))
        screen = Screen(console, clock)
        opened = stack.enter_context(Lake(str(folder.lake)))
        _headline(screen, folder, flights)
        _create_topics(screen, folder, opened)
        broker = _starting_broker(stack, folder, opened) if kafka else None
        with screen.step("Spark starts") as step:
            spark = stack.enter_context(spark_session(folder.log))
            cores = spark.sparkContext.defaultParallelism
            step.say(f"Spark {spark.version} on {counted(cores, 'core')}; what it prints goes to {folder.log}")
        if broker is not None:
            _run_with_kafka(screen, folder, opened, flights, spark, clock, broker)
        else:
            Steps(screen, folder, opened, flights, spark, clock).run()
        tries = kafka_commands if kafka else commands
        _what_next(screen, folder.lake, seconds(clock.elapsed_s() - started), tries)
        return 1 if screen.failed else 0


def _starting_broker(stack: ExitStack, folder: DemoFolder, lake: Lake) -> "StartingBroker":
    """A broker that starts beside Spark, which takes longer."""
    from tidelog.cli.demo.kafka_steps import starting_broker  # a Kafka client is needed only here

    return stack.enter_context(starting_broker(lake.uri, folder.broker_log))


def _run_with_kafka(
    screen: Screen,
    folder: DemoFolder,
    lake: Lake,
    flights: Flights,
    spark: SparkSession,
    clock: Clock,
    starting: "StartingBroker",
) -> None:
    from tidelog.cli.demo.kafka_steps import KafkaSteps

    with screen.step("A broker has started beside Spark") as step:
        broker = starting.ready()
        step.say(f"Kafka's protocol at {broker.address}; its log is {folder.broker_log}")
    KafkaSteps(screen, folder, lake, flights, spark, clock, broker).run()


def _headline(screen: Screen, folder: DemoFolder, flights: Flights) -> None:
    total = flights.year.num_rows + flights.last_day.num_rows
    screen.print()
    screen.print(
        f"tidelog {version('tidelog')}: {number(total)} flights from New York in 2013, in the lake {folder.lake}"
    )
    screen.print()


def _create_topics(screen: Screen, folder: DemoFolder, lake: Lake) -> None:
    with screen.step("Topics are created") as step:
        again = folder.start_afresh(lake)
        step.say(", ".join(f"{name} with {counted(count, 'partition')}" for name, count in PARTITIONS.items()))
        if again:
            step.say("An earlier demo's topics and checkpoint were deleted first.")


def _what_next(screen: Screen, lake: Path, took: str, tries: Callable[[str, Path], list[tuple[str, str]]]) -> None:
    """Say how it went, and print commands for the demo's lake."""
    if screen.failed:
        checks = "1 check" if screen.failed == 1 else f"{screen.failed} checks"
        screen.print(Text.assemble((f"{checks} failed", "bold red"), f" in {took}. The lake is kept as it is: {lake}"))
        return
    screen.print(Text.assemble(("Done", "bold green"), f" in {took}. Try next:"))
    screen.print()
    for why, command in tries(_tidelog(), lake):
        screen.print_whole(Text(f"    # {why}", "dim"))
        screen.print_whole(Text(f"    {command}"))
    screen.print()


def commands(tidelog: str, lake: Path) -> list[tuple[str, str]]:
    """(what it shows, the command)."""
    call = f"{tidelog} --lake {shlex.quote(str(lake))}"
    return [
        ("the last three flights of each partition", f"{call} consume flights -o -3 -e -f '%k: %s\\n'"),
        ("ten hours, from 1 July on", f"{call} consume delays -o s@1372651200000 -c 10 -f '%s\\n'"),
        ("offsets and sizes", f"{call} topic describe flights"),
        ("a topic of your own", f"echo 'hello, tide' | {call} produce greetings"),
        ("everything you and the demo wrote", f"{call} check"),
    ]


def kafka_commands(tidelog: str, lake: Path) -> list[tuple[str, str]]:
    """(what it shows, the command)."""
    call = f"{tidelog} --lake {shlex.quote(str(lake))}"
    return [
        ("what the Kafka client sent, read from the lake", f"{call} consume flights -o -3 -e -f '%k: %s\\n'"),
        ("the Kafka consumer's group", f"{call} group describe demo"),
        ("everything you and the demo wrote", f"{call} check"),
        ("for Kafka clients of your own, until Ctrl-C", f"{call} broker start --listener 127.0.0.1:9092"),
    ]


def _tidelog() -> str:
    """How this program was called, as a word or two for a shell."""
    started = Path(sys.argv[0])
    if started.name != "tidelog":
        return f"{shlex.quote(_short(Path(sys.executable)))} -m tidelog"
    on_path = shutil.which("tidelog")
    return "tidelog" if on_path and Path(on_path).samefile(started) else shlex.quote(_short(started))


def _short(path: Path) -> str:
    """The path as seen from here when that is shorter, with a slash, so that a shell takes it for no other program."""
    seen = os.path.relpath(path)
    return seen if len(seen) < len(str(path)) and os.sep in seen else str(path)
