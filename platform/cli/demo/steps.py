"""The demo's steps between Spark's start and the end, each compared to the data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import RenderableType

from tidelog.check.lake import Severity, check_lake
from tidelog.cli.demo.flights import Flights, as_records, closed_averages, count_by, parse_averages
from tidelog.cli.demo.lake import DemoFolder
from tidelog.cli.demo.screen import DemoStep, Screen, seconds
from tidelog.commands.terminal import number, size, table
from tidelog.commands.views import counted
from tidelog.jobs import flight_delays as jobs
from tidelog.log.base.clock import Clock
from tidelog.log.lake import Lake
from tidelog.log.state.descriptions import TopicDescription
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
            keys = {p: count_by(self._column("flights", p, "key")) for p in self.lake.offsets("flights")}
            step.say(
                f"{counted(flights.num_rows, 'record')} to topic flights in {seconds(took)}: the year but its"
                " last day, JSON keyed by carrier"
            )
            step.show(_partitions(self.lake.describe_topic("flights"), keys))
            self._check_keys(step, keys, flights)

    def _check_keys(self, step: DemoStep, keys: dict[int, dict[str, int]], flights: pa.Table) -> None:
        found = {key: count for counts in keys.values() for key, count in counts.items()}
        wanted = count_by(flights["carrier"])
        apart = sum(map(len, keys.values())) - len(found)
        step.check(
            found == wanted and not apart,
            "as many flights of each carrier as in the data, each carrier in one partition",
            f"{sum(found.values())} of {sum(wanted.values())} flights, {apart} carriers in several partitions.",
        )

    def _average(self) -> None:
        with self.screen.step("A streaming query averages the delay by airport and hour") as step:
            ran = self._run_query(step, self.flights.year.num_rows)
            step.say("from topic flights to topic delays; an hour is written when flights a week later have been seen")
            step.show(_batches(ran))
            late = sum(b.too_late for b in ran)
            step.check(late == 0, "no flight came too late for its hour", f"{counted(late, 'row')} dropped.")
            self._check_averages(step, self.flights.year)

    def _ask_in_sql(self) -> None:
        with self.screen.step("SQL asks both topics for the worst hours of the year") as step:
            for topic in ("flights", "delays"):
                create_view(self.spark, self.lake, topic)
            step.show(_worst_hours(jobs.worst_hours(self.spark, self.flights.airlines)))

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
            self.lake.topic("flights").append(records)
            took = self.clock.elapsed_s() - started
            step.say(f"{counted(last_day.num_rows, 'record')} appended in {seconds(took)}, without Spark")
            ran = self._run_query(step, last_day.num_rows)
            read, written = sum(b.read for b in ran), sum(b.written for b in ran)
            step.check(
                read == last_day.num_rows,
                f"the query read these {number(read)} records and no others; it closed {counted(written, 'more hour')}",
                f"It read {number(read)}.",
            )
            self._check_averages(step, everything)
            seen = self.spark.table("flights").count()
            step.check(
                seen == everything.num_rows,
                f"the SQL view made before sees all {number(seen)} flights",
                f"There are {number(everything.num_rows)}, and it sees {number(seen)}.",
            )

    def _check(self) -> None:
        with self.screen.step("tidelog check --deep") as step:
            report = check_lake(self.lake, deep=True)
            records, segments = sum(t.records for t in report.topics), sum(t.segments for t in report.topics)
            counts = {s: len(report.of(s)) for s in (Severity.ERROR, Severity.WARNING)}
            step.check(
                report.green,
                f"{counted(len(report.topics), 'topic')}, {counted(segments, 'segment')},"
                f" {counted(records, 'record')}: no errors, no warnings",
                f"{counts}: {[f.what for f in report.findings][:3]}",
            )

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

    def _check_averages(self, step: DemoStep, flights: pa.Table) -> None:
        """Compare topic `delays` with the averages that Arrow computes."""
        values = [v for p in self.lake.offsets("delays") for v in self._column("delays", p, "value").to_pylist()]
        found, count = parse_averages(values)
        wanted = closed_averages(flights, jobs.LATENESS)
        wrong = sum(found.get(hour) != average for hour, average in wanted.items())
        step.check(
            found == wanted and count == len(wanted),
            f"all {number(count)} hours are there once, with the averages that Arrow computes from the data",
            f"Of {counted(len(wanted), 'hour')} {number(wrong)} are missing or differ; {number(count)} found.",
        )

    def _column(self, topic: str, partition: int, name: str) -> pa.ChunkedArray:
        batches = [batch.select([name]) for batch in self.lake.topic(topic).read(partition)]
        column = pa.Table.from_batches(batches)[name] if batches else pa.chunked_array([[]], pa.binary())
        return column.cast(pa.string()) if name == "key" else column


def _partitions(topic: TopicDescription, keys: Mapping[int, Iterable[str]]) -> RenderableType:
    """Where the records of each key went."""
    return table(
        [">partition", ">records", ">size", "carriers"],
        [
            (str(p.partition), number(p.end - p.start), size(p.bytes), ", ".join(sorted(keys[p.partition])) or "none")
            for p in topic.partitions
        ],
    )


def _batches(ran: Iterable[jobs.MicroBatch]) -> RenderableType:
    """What each micro-batch read and wrote."""
    return table(
        [">batch", ">records read", ">hours written", "written up to"],
        [(str(i), number(b.read), number(b.written), b.watermark[:10] if b.written else "") for i, b in enumerate(ran)],
    )


def _worst_hours(found: pa.Table) -> RenderableType:
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
            for row in found.to_pylist()
        ],
    )


def _minutes(delay: float) -> str:
    hours, minutes = divmod(round(delay), 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min"
