"""Reading a topic against Spark's own Parquet scan of the same files.

Each arm is told against a scan timed as it is: `read_topic` with opening what it reads, streams without, as a stream
does that once.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from figures import Row, interleaved, percentile, speed_ratio, summary
from plan import Plan
from pyspark.sql import DataFrame, SparkSession
from sparks import TOPIC, consume, records_topic, seconds, session

import tidelog


def run(plan: Plan) -> list[Row]:
    """Each round reads the topic by a scan of its files, as a stream, by `read_topic` and by `stream_topic`."""
    spark = session()
    lake = records_topic(spark, plan)
    files = _files(lake)
    opened = spark.read.parquet(*files)
    arms: dict[str, Callable[[], float]] = {
        "scan": lambda: seconds(lambda: consume(opened)),
        "open and scan": lambda: seconds(lambda: consume(spark.read.parquet(*files))),
        "stream": lambda: _streamed(plan, _source(spark, lake)),
        "read_topic": lambda: seconds(lambda: consume(tidelog.spark.read_topic(spark, lake, TOPIC))),
        "stream_topic": lambda: _streamed(plan, tidelog.spark.stream_topic(spark, lake, TOPIC)),
    }
    times = interleaved(arms, plan.many_rounds, warmups=2)
    spark.stop()
    return _rows(plan, times)


def _rows(plan: Plan, times: dict[str, list[float]]) -> list[Row]:
    ratio = partial(speed_ratio, times)
    figures = {"records": plan.records, "seconds": {name: summary(taken) for name, taken in times.items()}}
    rates = {name: plan.records / percentile(taken, 50) / 1e6 for name, taken in times.items()}

    def row(what: str, arm: str, baseline: str, must: float) -> Row:
        found = ratio(arm, baseline)
        return Row(what, f"≥ {must}x", f"{found:.2f}x ({rates[arm]:.1f} M records/s)", found >= must, figures)

    scan = "Spark's own Parquet scan of the same files"
    return [
        row(f"streaming source, the same records, noop sink, against {scan}", "stream", "scan", 0.4),
        row("`read_topic` against it", "read_topic", "open and scan", 0.9),
        row("`stream_topic` against it", "stream_topic", "scan", 0.9),
    ]


def _files(uri: str) -> list[str]:
    with tidelog.Lake(uri, create=False) as lake:
        return [str(Path(uri) / TOPIC / segment.path) for segment in lake.topic(TOPIC).state().all_segments()]


def _source(spark: SparkSession, lake: str) -> DataFrame:
    reader = spark.readStream.format("tidelog").option("lake", lake).option("subscribe", TOPIC)
    return reader.option("startingOffsets", "earliest").load()


def _streamed(plan: Plan, rows: DataFrame) -> float:
    """Seconds that the micro-batches of a query take that reads everything and keeps nothing.

    Starting a query and ending it are left out: a stream does that once.
    """
    query = rows.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    progress = query.recentProgress
    read = sum(one["numInputRows"] for one in progress)
    if read != plan.records:
        raise RuntimeError(f"the stream read {read} of {plan.records} records")
    return sum(one["durationMs"]["addBatch"] for one in progress) / 1e3
