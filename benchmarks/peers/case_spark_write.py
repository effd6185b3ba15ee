"""Spark batch write: tidelog's sink, Spark's Kafka sink and a plain Delta append of the same DataFrame."""

import shutil
from functools import partial
from uuid import uuid4

from bench import Bench
from measures import Measure
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from spark_systems import (
    TOPIC,
    end_of_kafka_topic,
    end_of_lake_topic,
    kafka_topic,
    new_lake,
    produce_kafka,
    require,
    sized,
    throughput,
)
from sparks import keyed_records, produce, seconds

TITLE = "Spark batch write"


def run(bench: Bench) -> list[Measure]:
    """Each round writes the records to a new topic of each log, and to a Delta table."""
    spark = bench.spark("spark-write")
    count = sized(bench, 2_000_000)
    rows = keyed_records(spark, bench.work / "rows", count)
    rows.select(F.sum(F.length("value"))).collect()  # the files are in the page cache from here on
    arms = {
        "tidelog": partial(_to_lake, bench, rows, count),
        "kafka": partial(_to_kafka, bench, rows, count, "zstd"),
        "kafka uncompressed": partial(_to_kafka, bench, rows, count, "none"),
        "delta": partial(_to_delta, bench, rows),
    }
    times = bench.interleaved(arms)
    spark.stop()
    return throughput("spark batch write", times, count)


def _to_lake(bench: Bench, rows: DataFrame, count: int) -> float:
    folder = bench.work / "written"
    lake = new_lake(folder, TOPIC)
    took = seconds(lambda: produce(rows, lake, TOPIC))
    require("tidelog", end_of_lake_topic(lake, TOPIC), count)
    shutil.rmtree(folder)
    return took


def _to_kafka(bench: Bench, rows: DataFrame, count: int, codec: str) -> float:
    # Spark keeps its Kafka producers, which know a topic that is made again under its old name as the one before.
    with kafka_topic(bench, f"written-{uuid4().hex}") as topic:
        took = seconds(lambda: produce_kafka(rows, bench, topic, codec))
        require("Kafka", end_of_kafka_topic(bench, topic), count)
    return took


def _to_delta(bench: Bench, rows: DataFrame) -> float:
    folder = str(bench.work / "written")
    rows.limit(0).write.format("delta").save(folder)  # the table is there before, as the topics are
    took = seconds(lambda: rows.write.format("delta").mode("append").save(folder))
    shutil.rmtree(folder)
    return took
