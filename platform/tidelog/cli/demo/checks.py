"""What the demos compare with the data, and the tables that they share."""

from collections.abc import Iterable, Mapping

import pyarrow as pa
from rich.console import RenderableType

from tidelog.check.lake import Severity, check_lake
from tidelog.cli.demo.flights import closed_averages, count_by, parse_averages
from tidelog.cli.demo.screen import DemoStep
from tidelog.commands.terminal import number, size, table
from tidelog.commands.views import counted
from tidelog.jobs import flight_delays as jobs
from tidelog.log.lake import Lake
from tidelog.log.state.descriptions import TopicDescription


def show_flights(step: DemoStep, lake: Lake, flights: pa.Table) -> None:
    """Show where topic `flights` has its records, and compare their keys with these flights' carriers."""
    keys = {p: count_by(column(lake, "flights", p, "key")) for p in lake.offsets("flights")}
    step.show(_partitions(lake.describe_topic("flights"), keys))
    by_carrier = {key: count for counts in keys.values() for key, count in counts.items()}
    wanted = count_by(flights["carrier"])
    apart = sum(map(len, keys.values())) - len(by_carrier)
    step.check(
        by_carrier == wanted and not apart,
        "as many flights of each carrier as in the data, each carrier in one partition",
        f"{sum(by_carrier.values())} of {sum(wanted.values())} flights, {apart} carriers in several partitions.",
    )


def check_averages(step: DemoStep, lake: Lake, flights: pa.Table) -> None:
    """Compare topic `delays` with the averages that Arrow computes."""
    compare_averages(
        step, [v for p in lake.offsets("delays") for v in column(lake, "delays", p, "value").to_pylist()], flights
    )


def compare_averages(step: DemoStep, values: list[bytes], flights: pa.Table) -> None:
    """Compare records of topic `delays` with the averages that Arrow computes."""
    averages, count = parse_averages(values)
    wanted = closed_averages(flights, jobs.LATENESS)
    wrong = sum(averages.get(hour) != average for hour, average in wanted.items())
    step.check(
        averages == wanted and count == len(wanted),
        f"all {number(count)} hours are there once, with the averages that Arrow computes from the data",
        f"Of {counted(len(wanted), 'hour')} {number(wrong)} are missing or differ; {number(count)} found.",
    )


def check_airlines(step: DemoStep, sql_table: pa.Table, flights: pa.Table) -> None:
    """Compare each carrier's flights and mean delay, as SQL gives them, with those that Arrow computes."""
    by_carrier = flights.group_by("carrier").aggregate([([], "count_all"), ("dep_delay", "mean")])
    wanted = {row["carrier"]: (row["count_all"], round(row["dep_delay_mean"], 6)) for row in by_carrier.to_pylist()}
    seen = {row["carrier"]: (row["flights"], round(row["delay"], 6)) for row in sql_table.to_pylist()}
    step.check(
        seen == wanted,
        f"the mean delays of all {len(wanted)} airlines are those that Arrow computes from the data",
        f"SQL gives {seen}.",
    )


def check_everything(step: DemoStep, lake: Lake) -> None:
    """`tidelog check --deep`."""
    report = check_lake(lake, deep=True)
    records, segments = sum(t.records for t in report.topics), sum(t.segments for t in report.topics)
    counts = {s: len(report.of(s)) for s in (Severity.ERROR, Severity.WARNING)}
    step.check(
        report.green,
        f"{counted(len(report.topics), 'topic')}, {counted(segments, 'segment')},"
        f" {counted(records, 'record')}: no errors, no warnings",
        f"{counts}: {[f.what for f in report.findings][:3]}",
    )


def column(lake: Lake, topic: str, partition: int, name: str) -> pa.ChunkedArray:
    """A column of a partition's records."""
    batches = [batch.select([name]) for batch in lake.topic(topic).read(partition)]
    found = pa.Table.from_batches(batches)[name] if batches else pa.chunked_array([[]], pa.binary())
    return found.cast(pa.string()) if name == "key" else found


def batches_table(ran: Iterable[jobs.MicroBatch]) -> RenderableType:
    """What each micro-batch read and wrote."""
    return table(
        [">batch", ">records read", ">hours written", "written up to"],
        [(str(i), number(b.read), number(b.written), b.watermark[:10] if b.written else "") for i, b in enumerate(ran)],
    )


def _partitions(topic: TopicDescription, keys: Mapping[int, Iterable[str]]) -> RenderableType:
    """Where the records of each key went."""
    return table(
        [">partition", ">records", ">size", "carriers"],
        [
            (str(p.partition), number(p.end - p.start), size(p.bytes), ", ".join(sorted(keys[p.partition])) or "none")
            for p in topic.partitions
        ],
    )
