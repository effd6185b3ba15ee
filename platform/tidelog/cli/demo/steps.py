"""The demo's steps between Spark's start and the end, each compared to the data."""

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import RenderableType

from tidelog.cli.demo import checks
from tidelog.cli.demo.flights import Flights, as_records
from tidelog.cli.demo.lake import DemoFolder
from tidelog.cli.demo.screen import DemoStep, Screen, seconds
from tidelog.commands.terminal import number, size, table
from tidelog.commands.views import counted
from tidelog.jobs import flight_delays as jobs
from tidelog.log.base.clock import Clock
from tidelog.log.lake import Lake
from tidelog.spark import create_view


@dataclass(frozen=True)
class Steps:
    """Runs the steps, in order."""

    screen: Screen
    folder: DemoFolder
    lake: Lake
    flights: Flights
    spark: SparkSession
    clock: Clock

    def run(self) -> None:
        """All steps."""
        self._produce_the_year()
        self._average()
        self._ask_in_sql()
        self._ask_columns()
        self._run_again()
        self._go_on_with_the_last_day()
        self._check()

    def _produce_the_year(self) -> None:
        flights = self.flights.year
        with self.screen.step("A Spark batch produces the flights") as step:
            records = jobs.flights_frame(self.spark, flights)
            started = self.clock.elapsed_s()
            with step.watched(self._tasks_done):
                jobs.produce(records, self.lake.uri)
            took = self.clock.elapsed_s() - started
            step.say(
                f"{counted(flights.num_rows, 'record')} to topic flights in {seconds(took)}: the year but its"
                " last day, JSON keyed by carrier"
            )
            checks.show_flights(step, self.lake, flights)

    def _average(self) -> None:
        with self.screen.step("A streaming query averages the delay by airport and hour") as step:
            ran = self._run_query(step, self.flights.year.num_rows)
            step.say("from topic flights to topic delays; an hour is written when flights a week later have been seen")
            step.show(checks.batches_table(ran))
            late = sum(b.too_late for b in ran)
            step.check(late == 0, "no flight came too late for its hour", f"{counted(late, 'row')} dropped.")
            checks.check_averages(step, self.lake, self.flights.year)

    def _ask_in_sql(self) -> None:
        with self.screen.step("SQL asks both topics for the worst hours of the year") as step:
            for topic in ("flights", "delays"):
                create_view(self.spark, self.lake, topic)
            step.show(_worst_hours(jobs.worst_hours(self.spark, self.flights.airlines)))

    def _ask_columns(self) -> None:
        flights = self.flights.year
        with self.screen.step("SQL asks the same flights in a typed topic, whose values are columns") as step:
            self.folder.create_typed(self.lake, jobs.typed_config(flights))
            with step.watched(self._tasks_done):
                jobs.produce_typed(self.spark, flights, self.lake.uri)
            stored, text = (self._bytes_of(topic) for topic in (jobs.TYPED, "flights"))
            step.say(f"topic {jobs.TYPED}: {size(stored)} as columns that give the bytes of Avro, {size(text)} as JSON")
            create_view(self.spark, self.lake, jobs.TYPED, columns=True)
            step.say(jobs.LATEST_AIRLINES.strip())
            found = self.spark.sql(jobs.LATEST_AIRLINES).toArrow()
            step.show(_latest_airlines(found.slice(0, 3), self.flights.airlines))
            checks.check_airlines(step, found, flights)

    def _bytes_of(self, topic: str) -> int:
        return sum(p.bytes for p in self.lake.describe_topic(topic).partitions)

    def _run_again(self) -> None:
        with self.screen.step("The query is started again, from its checkpoint") as step:
            before = self.lake.offsets("delays")
            ran = self._run_query(step, 0)
            read = sum(b.read for b in ran)
            step.check(
                read == 0 and self.lake.offsets("delays") == before,
                "it read 0 records and wrote 0: nothing twice",
                f"It read {counted(read, 'record')}; offsets {before} became {self.lake.offsets('delays')}.",
            )

    def _go_on_with_the_last_day(self) -> None:
        last_day = self.flights.last_day
        everything = pa.concat_tables([self.flights.year, last_day])
        with self.screen.step("New Year's Eve is produced from Python, and the query goes on") as step:
            records = as_records(last_day)
            started = self.clock.elapsed_s()
            self.lake.appender("flights").append(records)
            took = self.clock.elapsed_s() - started
            step.say(f"{counted(last_day.num_rows, 'record')} appended in {seconds(took)}, without Spark")
            ran = self._run_query(step, last_day.num_rows)
            read, written = sum(b.read for b in ran), sum(b.written for b in ran)
            step.check(
                read == last_day.num_rows,
                f"the query read these {number(read)} records and no others; it closed {counted(written, 'more hour')}",
                f"It read {number(read)}.",
            )
            checks.check_averages(step, self.lake, everything)
            seen = self.spark.table("flights").count()
            step.check(
                seen == everything.num_rows,
                f"the SQL view made before sees all {number(seen)} flights",
                f"There are {number(everything.num_rows)}, and it sees {number(seen)}.",
            )

    def _check(self) -> None:
        with self.screen.step("tidelog check --deep") as step:
            checks.check_everything(step, self.lake)

    # --- what steps have in common -----------------------------------------------------------------------

    def _run_query(self, step: DemoStep, to_read: int) -> list[jobs.MicroBatch]:
        """Run the streaming query over what is there, and return its batches."""
        query = jobs.start_averaging(self.spark, self.lake.uri, self.folder.checkpoint)
        try:
            with step.watched(lambda: (sum(b.read for b in jobs.batches_of(query)), to_read) if to_read else None):
                query.awaitTermination()
        finally:
            query.stop()
        return jobs.batches_of(query)

    def _tasks_done(self) -> tuple[int, int] | None:
        """How many tasks of Spark's running stages are done, and of how many."""
        tracker = self.spark.sparkContext.statusTracker()
        stages = [info for i in tracker.getActiveStageIds() if (info := tracker.getStageInfo(i))]
        return (sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)) if stages else None


def _worst_hours(hours: pa.Table) -> RenderableType:
    """Airport, hour, flights that departed, average delay, and the airline that was latest."""
    return table(
        ["airport", "hour in New York", ">flights", ">mean delay", ">longest", "airline of the longest"],
        [
            (
                row["origin"],
                row["departure"],
                number(row["departed"]),
                _minutes(row["average_delay"]),
                _minutes(row["longest"]),
                row["carrier"],
            )
            for row in hours.to_pylist()
        ],
    )


def _latest_airlines(delays: pa.Table, airlines: dict[str, str]) -> RenderableType:
    return table(
        ["airline", ">flights", ">mean delay"],
        [(airlines[row["carrier"]], number(row["flights"]), _minutes(row["delay"])) for row in delays.to_pylist()],
    )


def _minutes(delay: float) -> str:
    hours, minutes = divmod(round(delay), 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min"
