"""Spark streaming read with an aggregation: the average delay by airport and hour of flights as JSON."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path

from bench import Bench
from measures import Measure
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from spark_systems import (
    drained,
    filled_lake,
    filled_table,
    kafka_topic,
    produce_kafka,
    reader_of_kafka,
    reader_of_lake,
    throughput,
)
from sparks import PARTITIONS

from tidelog.cli.demo.flights import load_flights
from tidelog.jobs.flight_delays import flights_frame

TITLE = "Spark streaming read with an aggregation"

_YEARS = 3
_FLIGHT = "origin string, time_hour timestamp, dep_delay double"


def run(bench: Bench) -> list[Measure]:
    """Each round reads the flights of a year, several times over, and groups them; parsing JSON is part of it."""
    spark = bench.spark("spark-aggregate")
    spark.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    rows = _flights(spark, bench.work / "flights", 1 if bench.quick else _YEARS)
    count = rows.count()
    lake, table = filled_lake(bench, rows), filled_table(bench, rows)
    with kafka_topic(bench):
        produce_kafka(rows, bench)
        arms: dict[str, Callable[[], float]] = {
            "tidelog": lambda: _averaged(reader_of_lake(spark, lake, streaming=True), count),
            "kafka": lambda: _averaged(reader_of_kafka(spark, bench, streaming=True), count),
            "delta": lambda: _averaged(spark.readStream.format("delta").load(table), count),
        }
        times = bench.interleaved(arms)
    spark.stop()
    return throughput("spark streaming aggregation", times, count)


def _flights(spark: SparkSession, folder: Path, years: int) -> DataFrame:
    """The flights as records over Parquet files, the same year a number of times."""
    year = flights_frame(spark, load_flights().year).select(
        F.col("key").cast("binary").alias("key"), F.col("value").cast("binary").alias("value")
    )
    reduce(DataFrame.unionAll, [year] * years).repartition(PARTITIONS).write.parquet(str(folder))
    return spark.read.parquet(str(folder))


def _averaged(records: DataFrame, count: int) -> float:
    flights = records.select(F.from_json(F.col("value").cast("string"), _FLIGHT).alias("flight")).select("flight.*")
    hours = flights.withWatermark("time_hour", "7 days").groupBy("origin", F.window("time_hour", "1 hour"))
    return drained(hours.agg(F.count("*"), F.avg("dep_delay")), count, mode="update")
