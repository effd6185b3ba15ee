"""The steps of `tidelog demo --kafka`: a Kafka client produces, Spark streams meanwhile, another Kafka client reads."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidelog.cli.demo import checks
from tidelog.cli.demo.flights import Flights, as_records
from tidelog.cli.demo.kafka_client import consume_all, send
from tidelog.cli.demo.lake import DemoFolder
from tidelog.cli.demo.screen import DemoStep, Screen
from tidelog.cli.demo.sending import SentRecords
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.terminal import number
from tidelog.commands.views import counted
from tidelog.jobs import flight_delays as jobs
from tidelog.log.base.clock import Clock
from tidelog.log.lake import Lake

_DRAINS_WITHIN_S = 60.0
GROUP = "demo"
# The year goes by in 20 s: long enough to see Spark follow.
YEAR_S = 20.0
FIRST_FLIGHTS = 5_000


@dataclass(frozen=True)
class DemoBroker:
    """A broker that runs: `address` is what Kafka clients take for bootstrap.servers."""

    address: str
    process: subprocess.Popen[bytes]

    def stop(self) -> int:
        """Drain it with SIGTERM, as an operator does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_DRAINS_WITHIN_S)


@dataclass(frozen=True)
class StartingBroker:
    """A broker's process that has begun. `log`: what it says."""

    process: subprocess.Popen[bytes]
    log: Path

    def ready(self) -> DemoBroker:
        """Wait until clients can connect. Raises `UsageProblemError` when it does not start."""
        line = b"" if self.process.stdout is None else self.process.stdout.readline()
        if not line:
            raise UsageProblemError(f"The broker did not start. What it says is in {self.log}.")
        return DemoBroker(json.loads(line)["listener"], self.process)


@contextmanager
def starting_broker(lake: str, log: Path) -> Iterator[StartingBroker]:
    """A broker over the lake on a free port of 127.0.0.1, killed at the end of the block if it still runs then.

    It is of this process' session: what ends all of a terminal's programs ends it, too.
    """
    command = ["--lake", lake, "--format", "json", "broker", "start", "--listener", "127.0.0.1:0", "--no-maintain"]
    with open(log, "wb") as stderr:
        process = subprocess.Popen(  # noqa: S603 - this Python and this package
            [sys.executable, "-m", "tidelog", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    with process:
        try:
            yield StartingBroker(process, log)
        finally:
            process.kill()


@dataclass(frozen=True)
class KafkaSteps:
    """Runs the steps, in order."""

    screen: Screen
    folder: DemoFolder
    lake: Lake
    flights: Flights
    spark: SparkSession
    clock: Clock
    broker: DemoBroker

    def run(self) -> None:
        """All steps."""
        flights = pa.concat_tables([self.flights.year, self.flights.last_day])
        self._produce_and_stream(flights)
        self._consume(flights)
        self._stop_the_broker()
        with self.screen.step("tidelog check --deep") as step:
            checks.check_everything(step, self.lake)

    def _produce_and_stream(self, flights: pa.Table) -> None:
        with self.screen.step("A Kafka client produces the flights while Spark streams them") as step:
            records = as_records(flights)
            sending = SentRecords()
            with step.watched(lambda: (sending.acked, records.num_rows)), self._streaming() as query:
                self._send(records.slice(0, FIRST_FLIGHTS), 0.0, sending)
                query.processAllAvailable()  # Spark is warm, and follows from here on
                self._send(records.slice(FIRST_FLIGHTS), YEAR_S, sending)
                meanwhile = sum(batch.read for batch in jobs.batches_of(query))
                query.processAllAvailable()
            ran = [batch for batch in jobs.batches_of(query) if batch.read or batch.written]
            step.say(
                f"confluent-kafka {confluent_kafka.__version__} sent {counted(sending.acked, 'record')} through the"
                f" broker; half were acknowledged within {sending.latency_ms(0.5):.0f} ms,"
                f" 99 % within {sending.latency_ms(0.99):.0f} ms"
            )
            checks.show_flights(step, self.lake, flights)
            self._check_answers(step, sending, records.num_rows)
            step.say("Spark's query, from topic flights to topic delays:")
            step.show(checks.batches_table(ran))
            step.check(
                meanwhile > 0,
                f"Spark had read {number(meanwhile)} of them before the client sent its last",
                "Spark read none of them before the client had sent its last.",
            )
            checks.check_averages(step, self.lake, flights)

    @contextmanager
    def _streaming(self) -> Iterator[StreamingQuery]:
        query = jobs.start_averaging(self.spark, self.lake.uri, self.folder.checkpoint, goes_on=True)
        try:
            yield query
        finally:
            query.stop()

    def _send(self, records: pa.Table, lasting_s: float, sending: SentRecords) -> None:
        """Send from a thread, so that this one, which is Spark's, can be interrupted."""
        with ThreadPoolExecutor(1) as thread:
            sent: Future[None] = thread.submit(send, self.broker.address, records, lasting_s, self.clock, sending)
            try:
                sent.result()
            except BaseException:
                sending.stopped = True
                raise

    def _check_answers(self, step: DemoStep, sending: SentRecords, wanted: int) -> None:
        ends = {p: end for p, (_, end) in self.lake.offsets("flights").items()}
        acked_ends = {p: sending.ends[p] for p in ends}
        step.check(
            sending.acked == wanted and not sending.failed and not sending.out_of_order and acked_ends == ends,
            "each record was acknowledged with its offset, in order, and the Delta table ends at the same offsets",
            f"{number(sending.acked)} of {number(wanted)} were acknowledged, {len(sending.failed)} failed"
            f" {sending.failed[:1]}, {sending.out_of_order} out of order; offsets {acked_ends}, the table's {ends}.",
        )

    def _consume(self, flights: pa.Table) -> None:
        with self.screen.step("A Kafka consumer reads what Spark wrote") as step:
            found = consume_all(self.broker.address, "delays", GROUP)
            step.say(f"{counted(len(found), 'record')} of topic delays, as a member of the group '{GROUP}'")
            checks.compare_averages(step, [value for _, _, value in found], flights)

    def _stop_the_broker(self) -> None:
        with self.screen.step("The broker is stopped") as step:
            code = self.broker.stop()
            step.check(code == 0, "it drained and ended, and holds nothing that the lake lacks", f"Exit code {code}.")
