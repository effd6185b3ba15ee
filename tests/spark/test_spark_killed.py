"""A query whose processes are killed while it works, and one lake for all of them by TIDELOG_LAKE."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from support.spark_queries import append, await_that, in_topic, numbered, run, stream

from tidelog.log.lake import Lake

COPY = """
import sys
import tidelog

spark = tidelog.spark.session("killed", "local[1]", {"spark.default.parallelism": "1"})
rows = spark.readStream.format("tidelog").options(subscribe="in", startingOffsets="earliest", maxOffsetsPerTrigger=2)
copied = rows.load().selectExpr("cast(value as string) value").writeStream.format("tidelog")
copied.options(topic="out", checkpointLocation=sys.argv[1]).start().awaitTermination()
"""


def test_a_query_killed_in_the_middle_loses_and_repeats_nothing(
    spark: SparkSession, lake: Lake, checkpoint: str, tmp_path: Path
) -> None:
    values = numbered("v", 60)
    append(lake, "in", *values)
    lake.create_topic("out")
    script = tmp_path / "copies.py"
    script.write_text(COPY)
    environment = {**os.environ, "TIDELOG_LAKE": lake.uri}
    with (tmp_path / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(script), checkpoint], env=environment, stderr=log, start_new_session=True
        )
        try:
            await_that(lambda: len(in_topic(lake, "out")) >= 7 or process.poll() is not None)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # Python and the JVM; Spark's workers end with it
            process.wait()
    copied = in_topic(lake, "out")
    assert 7 <= len(copied) < 60, (tmp_path / "log.txt").read_text()

    run(stream(spark, lake, subscribe="in", startingOffsets="earliest").select("value"), lake, "out", checkpoint)

    assert in_topic(lake, "out") == values
