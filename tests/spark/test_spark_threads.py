"""Batch writes from threads that did not start the session."""

from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import DataFrame, SparkSession

import tidelog
from tidelog.log.lake import Lake


def write(rows: DataFrame, lake: Lake) -> str:
    try:
        rows.write.format("tidelog").options(lake=lake.uri, topic="t").mode("append").save()
    except Exception as e:
        return str(e)
    return "written"


def test_a_thread_that_asks_for_the_session_may_write(spark: SparkSession, lake: Lake) -> None:
    rows = spark.sql("SELECT 'v' AS value")
    with ThreadPoolExecutor(1) as alone, ThreadPoolExecutor(2, initializer=tidelog.spark.session) as pool:
        assert "Failed to find the data source: tidelog" in alone.submit(write, rows, lake).result()
        assert list(pool.map(write, [rows] * 4, [lake] * 4)) == ["written"] * 4
    assert lake.offsets("t") == {0: (0, 4)}


def test_the_running_session_is_returned(spark: SparkSession) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(tidelog.spark.session, "other").result() is spark
    assert spark.sparkContext.appName == "tests"
