"""Spark streaming read: a query that catches up with a whole topic (`availableNow`) into the noop sink."""

from collections.abc import Callable

from bench import Bench
from measures import Measure
from spark_systems import (
    TOPIC,
    drained,
    filled_lake,
    filled_table,
    kafka_topic,
    produce_kafka,
    reader_of_kafka,
    reader_of_lake,
    sized,
    throughput,
)
from sparks import keyed_records

import tidelog

TITLE = "Spark streaming read"


def run(bench: Bench) -> list[Measure]:
    """Each round streams the same records: by both sources, by `stream_topic`, and out of a Delta table."""
    spark = bench.spark("spark-stream")
    count = sized(bench, 3_000_000)
    rows = keyed_records(spark, bench.work / "rows", count)
    lake, table = filled_lake(bench, rows), filled_table(bench, rows)
    with kafka_topic(bench):
        produce_kafka(rows, bench)
        arms: dict[str, Callable[[], float]] = {
            "tidelog": lambda: drained(reader_of_lake(spark, lake, streaming=True), count),
            "tidelog stream_topic": lambda: drained(tidelog.spark.stream_topic(spark, lake, TOPIC), count),
            "kafka": lambda: drained(reader_of_kafka(spark, bench, streaming=True), count),
            "delta": lambda: drained(spark.readStream.format("delta").load(table), count),
        }
        times = bench.interleaved(arms)
    spark.stop()
    return throughput("spark streaming read", times, count)
