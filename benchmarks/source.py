"""Reading a topic against Spark's own Parquet scan of the same files.

Each arm is compared with a scan timed as it is: `read_topic` with opening what it reads, streams without, as a stream
does that once.
"""

from functools import partial
from pathlib import Path

from figures import Row
from jvms import Arms, answer, compared
from plan import Plan
from pyspark.sql import DataFrame, SparkSession
from sparks import TOPIC, consume, records_topic, seconds, session

import tidelog


def run(plan: Plan) -> list[Row]:
    """Each round reads the topic in one of the ways and by a scan of its files."""
    what = "streaming source, the same records, noop sink, against Spark's own Parquet scan of the same files"

    def row(what: str, arm: str, must: float, processes: int) -> Row:
        return compared(__file__, plan, what, must, arm=arm, against="scan", processes=processes)

    return [
        row(what, "stream", 0.4, 1),
        row("`read_topic` against it", "read_topic", 0.9, plan.jvms),
        row("`stream_topic` against it", "stream_topic", 0.9, plan.jvms),
    ]


def _arms(plan: Plan, arm: str, against: str) -> Arms:
    spark = session()
    lake = records_topic(spark, plan)
    files = _files(lake)
    opened = spark.read.parquet(*files)
    scan = partial(seconds, lambda: consume(opened))
    if arm == "read_topic":
        scan = partial(seconds, lambda: consume(spark.read.parquet(*files)))
        return {arm: lambda: seconds(lambda: consume(tidelog.spark.read_topic(spark, lake, TOPIC))), against: scan}
    if arm == "stream_topic":
        return {arm: lambda: _streamed(plan, tidelog.spark.stream_topic(spark, lake, TOPIC)), against: scan}
    return {arm: lambda: _streamed(plan, _source(spark, lake)), against: scan}


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
    return float(sum(one["durationMs"]["addBatch"] for one in progress)) / 1e3


if __name__ == "__main__":
    answer(_arms)
