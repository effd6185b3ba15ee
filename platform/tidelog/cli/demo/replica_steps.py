"""`tidelog demo --replicas`: of a store's four nodes one is killed and one wiped while a producer and Spark work."""

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.text import Text

from tidelog.cli.demo import checks
from tidelog.cli.demo.flights import Flights, as_records
from tidelog.cli.demo.lake import PARTITIONS, create_topics
from tidelog.cli.demo.screen import DemoStep, Screen, seconds
from tidelog.cli.demo.sending import SentRecords, send_evenly
from tidelog.cli.demo.spark import spark_session, steady_output
from tidelog.cli.demo.store_nodes import BUCKET, NODES, StoreNodes
from tidelog.clients.producer.producer import Producer
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.terminal import number
from tidelog.commands.views import counted
from tidelog.jobs import flight_delays as jobs
from tidelog.log.base.clock import Clock, SystemClock
from tidelog.log.lake import Lake

LAKE = f"s3://{BUCKET}/demo"
DEFAULT_FOLDER = Path("demo-replicas")
FIRST_FLIGHTS = 5_000
# The last ones of the year: each is acknowledged by three nodes, on one machine's disk.
MOST_FLIGHTS = 80_000
# The year goes by in so long: a node is killed at a fifth of it and back at two fifths, another wiped at three fifths.
YEAR_S = 30.0
KILLED, WIPED = 1, 2
_MISHAPS = 3
# The last flights wait, on a slow machine, until both things have happened and Spark has read some.
_LAST_PART = 0.9
_HELD_WITHIN_S = 120.0
_FLUSHED_WITHIN_S = 60.0
_HEALS_WITHIN_S = 60.0


def run_replicas(folder: Path | None, console: Console, flights: Flights, year_s: float = YEAR_S) -> int:
    """Run it with the nodes' folders in `folder` (`demo-replicas`), emptied first; 0, or 1 when a result is wrong.

    Raises `UsageProblemError` when the store's program or Java is missing, or the nodes do not start.
    """
    clock = SystemClock()
    started_s = clock.elapsed_s()
    place = folder or DEFAULT_FOLDER
    year = pa.concat_tables([flights.year, flights.last_day])
    everything = year.slice(max(0, year.num_rows - MOST_FLIGHTS))
    with ExitStack() as stack:
        stack.enter_context(steady_output(console))
        screen = Screen(console, clock)
        screen.print()
        screen.print(f"{number(everything.num_rows)} flights from New York in 2013, in a lake of four nodes")
        screen.print()
        with screen.step(f"{NODES} nodes of a store start") as step:
            nodes = stack.enter_context(_nodes(place))
            step.say(f"MinIO's server, a process and a folder each, at {', '.join(nodes.endpoints)}")
            step.say(f"folders and logs are in {place}; each object is on all nodes, and a write needs three of them")
        # Spark's Python processes inherit these, as do producers: the same that any program of AWS takes.
        stack.enter_context(_environment(nodes))
        lake = stack.enter_context(Lake(LAKE))
        with screen.step(f"Topics are created in {LAKE}") as step:
            create_topics(lake, PARTITIONS)
            step.say(", ".join(f"{name} with {counted(count, 'partition')}" for name, count in PARTITIONS.items()))
        with screen.step("Spark starts") as step:
            spark = stack.enter_context(spark_session(place / "spark.log"))
            step.say(f"Spark {spark.version}; what it prints goes to {place / 'spark.log'}")
        _Steps(screen, place, nodes, lake, everything, spark, clock, year_s).run()
        took = seconds(clock.elapsed_s() - started_s)
        failed = f"{counted(screen.failed, 'check')} failed"
        verdict = (failed, "bold red") if screen.failed else ("Done", "bold green")
        screen.print(Text.assemble(verdict, f" in {took}. How to keep such a store: docs/replicas.md."))
        screen.print()
        return 1 if screen.failed else 0


@contextmanager
def _nodes(place: Path) -> Iterator[StoreNodes]:
    """Nodes in a folder of the demo's own, which is emptied first."""
    mark = place / ".tidelog-demo"
    if place.exists() and any(place.iterdir()) and not mark.exists():
        raise UsageProblemError(
            f"The folder {place} is not the demo's, and has files. Give it another one: --lake FOLDER."
        )
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    mark.touch()
    with StoreNodes(place.resolve()) as nodes:
        yield nodes


@contextmanager
def _environment(nodes: StoreNodes) -> Iterator[None]:
    """AWS's variables for the store, and no others of AWS."""
    before = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    for name in before:
        del os.environ[name]
    os.environ.update(nodes.environment)
    try:
        yield
    finally:
        for name in nodes.environment:
            os.environ.pop(name, None)
        os.environ.update(before)


@dataclass
class _Mishaps:
    """What happens to the nodes as the year goes by: each once its share of the records was sent."""

    nodes: StoreNodes
    wanted: int
    clock: Clock
    told: list[str] = field(default_factory=list)
    healed: Future[None] | None = None

    @property
    def over(self) -> bool:
        """Whether all of it has happened."""
        return len(self.told) == _MISHAPS

    def at(self, sent: int, acked: int, threads: ThreadPoolExecutor) -> None:
        """`sent` records were handed over so far, of which `acked` were acknowledged."""
        done = len(self.told)
        if done == 0 and sent >= self.wanted * 0.2:
            self.nodes.kill(KILLED)
            self.told.append(f"after {number(acked)} acknowledged records node {KILLED + 1} was killed")
        elif done == 1 and sent >= self.wanted * 0.4:
            self.nodes.start(KILLED)
            self.healed = threads.submit(self._heal, KILLED)
            self.told.append(f"after {number(acked)} node {KILLED + 1} was started again, and asked to heal")
        elif done == 2 and sent >= self.wanted * 0.6 and self.healed is not None and self.healed.done():
            self.healed.result()
            self.nodes.wipe(WIPED)
            self.nodes.start(WIPED)
            self.told.append(f"after {number(acked)} node {WIPED + 1} lost its disk, and started with an empty one")

    def _heal(self, node: int) -> None:
        self.nodes.await_up([node])
        self.nodes.heal(node)
        lacks = self.nodes.behind(node)
        until_s = self.clock.elapsed_s() + _HEALS_WITHIN_S
        while lacks and self.clock.elapsed_s() < until_s:
            self.clock.sleep(0.5)
            lacks &= self.nodes.behind(node)

    def await_whole(self) -> int:
        """Have the wiped node get all that it lost; how many objects it lacks at the end."""
        self._heal(WIPED)
        return len(self.nodes.behind(WIPED))


@dataclass(frozen=True)
class _Steps:
    screen: Screen
    place: Path
    nodes: StoreNodes
    lake: Lake
    flights: pa.Table
    spark: SparkSession
    clock: Clock
    year_s: float

    def run(self) -> None:
        mishaps = _Mishaps(self.nodes, self.flights.num_rows, self.clock)
        self._produce_and_stream(mishaps)
        with self.screen.step(f"Node {WIPED + 1} gets back what it lost") as step:
            lacks = mishaps.await_whole()
            step.check(not lacks, "it has every object that the others have", f"It lacks {counted(lacks, 'object')}.")
        with self.screen.step("tidelog check --deep") as step:
            checks.check_everything(step, self.lake)

    def _produce_and_stream(self, mishaps: _Mishaps) -> None:
        title = "A producer sends the flights while Spark streams them; a node is killed, and one wiped"
        with self.screen.step(title) as step:
            records = as_records(self.flights)
            sending = SentRecords()
            query = jobs.start_averaging(self.spark, self.lake.uri, self.place.resolve() / "checkpoint", goes_on=True)
            try:
                with step.watched(lambda: (sending.acked, records.num_rows)), ThreadPoolExecutor(2) as threads:
                    sent = threads.submit(self._send, records, sending, mishaps, threads, query)
                    try:  # this thread is Spark's, and can be interrupted
                        sent.result()
                    finally:
                        sending.stopped = True
                    meanwhile = sum(batch.read for batch in jobs.batches_of(query))
                    query.processAllAvailable()
                ran = [batch for batch in jobs.batches_of(query) if batch.read or batch.written]
            finally:
                query.stop()
            for told in mishaps.told:
                step.say(told)
            step.say(
                f"half of the records were acknowledged within {sending.latency_ms(0.5):.0f} ms,"
                f" 99 % within {sending.latency_ms(0.99):.0f} ms, all within {sending.latency_ms(1.0) / 1000:.1f} s"
            )
            self._check(step, sending, records.num_rows, mishaps, meanwhile)
            step.show(checks.batches_table(ran))
            checks.check_averages(step, self.lake, self.flights)

    def _send(
        self, records: pa.Table, sending: SentRecords, mishaps: _Mishaps, threads: ThreadPoolExecutor,
        query: StreamingQuery,
    ) -> None:  # fmt: skip
        producer = Producer({"lake": self.lake.uri, "enable.idempotence": True, "compression.type": "zstd"})
        held: list[float] = []

        def meanwhile() -> None:
            sent = sending.acked + len(producer)
            mishaps.at(sent, sending.acked, threads)
            if sent < records.num_rows * _LAST_PART or held:
                return
            held.append(self.clock.elapsed_s() + _HELD_WITHIN_S)
            while not (mishaps.over and _has_read(query)) and self.clock.elapsed_s() < held[0] and not sending.stopped:
                producer.poll(0.2)
                mishaps.at(sent, sending.acked, threads)

        try:
            send_evenly(producer, records.slice(0, FIRST_FLIGHTS), 0.0, self.clock, sending)
            producer.flush(_FLUSHED_WITHIN_S)
            send_evenly(producer, records.slice(FIRST_FLIGHTS), self.year_s, self.clock, sending, meanwhile)
            producer.flush(_FLUSHED_WITHIN_S)
        finally:
            with suppress(UsageProblemError):
                producer.close(1)

    def _check(self, step: DemoStep, sending: SentRecords, wanted: int, mishaps: _Mishaps, meanwhile: int) -> None:
        ends = {p: end for p, (_, end) in self.lake.offsets("flights").items()}
        acked_ends = {p: sending.ends[p] for p in ends}  # of a partition without records, too
        step.check(mishaps.over, "a node was killed and one lost its disk meanwhile", f"Only: {mishaps.told}.")
        step.check(
            sending.acked == wanted and not sending.failed and acked_ends == ends,
            "each record was acknowledged, and is there once",
            f"{number(sending.acked)} of {number(wanted)} were acknowledged, {len(sending.failed)} failed"
            f" {sending.failed[:1]}; offsets {acked_ends}, the table's {ends}.",
        )
        checks.show_flights(step, self.lake, self.flights)
        step.check(
            meanwhile > 0,
            f"Spark had read {number(meanwhile)} of them before the producer sent its last",
            "Spark read none of them before the producer had sent its last.",
        )


def _has_read(query: StreamingQuery) -> bool:
    return any(batch.read for batch in jobs.batches_of(query))
