"""The Spark session of the benchmarks, and the records that the sink's and the source's cases move."""

import time
from collections.abc import Callable
from pathlib import Path

from plan import Plan
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

import tidelog

PARTITIONS = 8
LAKE, TOPIC = "records-lake", "records"


def session(heap: str | None = None) -> SparkSession:
    """tidelog's own session on all cores, quiet; `heap` is the driver's, as Spark writes it (Spark's default: 1g)."""
    spark = tidelog.spark.session("tidelog-bench", config={"spark.driver.memory": heap} if heap else None)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def records(spark: SparkSession, plan: Plan) -> DataFrame:
    """The plan's records as a DataFrame over Parquet files."""
    return keyed_records(spark, plan.work / f"records-{plan.records}", plan.records)


def keyed_records(spark: SparkSession, path: Path, count: int, keys: int = 100_000) -> DataFrame:
    """Keyed records over Parquet files at `path`, which are made once: keys of 10 bytes, each of `keys` as often as
    any other, values of 100 bytes (SHA-256 in hex).
    """
    if not path.exists():
        number = F.col("id").cast("string")
        digits = F.concat(F.sha2(number, 256), F.sha2(F.concat(number, F.lit("-")), 256))
        key = F.concat(F.lit("key-"), F.lpad((F.col("id") * 7919 % keys).cast("string"), 6, "0"))
        rows = spark.range(0, count, 1, PARTITIONS)
        rows.select(
            key.cast("binary").alias("key"), F.substring(digits, 1, 100).cast("binary").alias("value")
        ).write.parquet(str(path))
    return spark.read.parquet(str(path))


def records_topic(spark: SparkSession, plan: Plan) -> str:
    """The address of a lake whose topic holds the records, written through the sink in two batches."""
    uri = str(plan.work / LAKE)
    with tidelog.Lake(uri) as lake:
        if TOPIC in lake.topics():
            return uri
        lake.create_topic(TOPIC, partitions=PARTITIONS)
    produce(records(spark, plan), uri, TOPIC)
    return uri


def produce(rows: DataFrame, lake: str | Path, topic: str) -> None:
    """Append the rows to the topic through tidelog's sink."""
    rows.write.format("tidelog").option("lake", str(lake)).option("topic", topic).mode("append").save()


def consume(rows: DataFrame) -> None:
    """Read everything and keep nothing."""
    rows.write.format("noop").mode("overwrite").save()


def seconds(work: Callable[[], object]) -> float:
    """How long a piece of work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
