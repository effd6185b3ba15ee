"""Spark batch read: all columns of all records, handed to the JVM row by row by the noop sink.

An aggregate would let a columnar source skip the columns that it doesn't ask for, which Kafka's can't; the noop sink
takes every column of every row and does nothing with it, so what is timed is the reading.
"""

from collections.abc import Callable

from bench import Bench
from measures import Measure
from spark_systems import (
    TOPIC,
    filled_lake,
    filled_table,
    kafka_topic,
    produce_kafka,
    reader_of_kafka,
    reader_of_lake,
    require,
    sized,
    throughput,
)
from sparks import consume, keyed_records, seconds

import tidelog

TITLE = "Spark batch read"


def run(bench: Bench) -> list[Measure]:
    """Each round reads the same records: by both sources, by `read_topic`, and out of a Delta table of key and value.

    Opening what is read counts, as a batch query does it each time.
    """
    spark = bench.spark("spark-read")
    count = sized(bench, 3_000_000)
    rows = keyed_records(spark, bench.work / "rows", count)
    lake, table = filled_lake(bench, rows), filled_table(bench, rows)
    with kafka_topic(bench):
        produce_kafka(rows, bench)
        readers = {
            "tidelog": lambda: reader_of_lake(spark, lake, streaming=False),
            "tidelog read_topic": lambda: tidelog.spark.read_topic(spark, lake, TOPIC),
            "kafka": lambda: reader_of_kafka(spark, bench, streaming=False),
            "delta": lambda: spark.read.format("delta").load(table),
        }
        for system, reader in readers.items():
            require(system, reader().count(), count)
        arms: dict[str, Callable[[], float]] = {
            system: lambda reader=reader: seconds(lambda: consume(reader()))  # type: ignore[misc]
            for system, reader in readers.items()
        }
        times = bench.interleaved(arms)
    spark.stop()
    return throughput("spark batch read", times, count)
