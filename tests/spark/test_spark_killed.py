"""Queries whose processes are killed while they work, and one lake for all of them by TIDELOG_LAKE."""

import json
import os
import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from support.killed_queries import kept_running
from support.spark_queries import FEW_RECORDS, append, await_that, in_topic, numbered, run, stream

from tidelog.log.lake import Lake
from tidelog.transactions.transaction_log import TransactionLog

SESSION = """
import json
import os
import sys
import tidelog
from tidelog.spark.class_archive import short_lived

settings = {
    **json.loads(os.environ["FEW_RECORDS"]),
    "spark.default.parallelism": "1",
    "spark.driver.extraJavaOptions": short_lived(),
}
spark = tidelog.spark.session("killed", "local[1]", settings, delta=False)
source = spark.readStream.format("tidelog").options(subscribe="in", startingOffsets="earliest")
"""

COPY = f"""{SESSION}
copied = source.option("maxOffsetsPerTrigger", 2).load().selectExpr("cast(value as string) value")
sink = copied.writeStream.format("tidelog").options(topic="out", checkpointLocation=sys.argv[1])
sink.start().awaitTermination()
"""

SPREAD = f"""{SESSION}
spread = source.option("maxOffsetsPerTrigger", 10).load().selectExpr("if(offset % 2 = 0, 'a', 'b') topic", "value")
spread.writeStream.format("tidelog").option("checkpointLocation", sys.argv[1]).start().awaitTermination()
"""

# Every Python process runs this first: the one that is about to put an entry into topic `b` says so, and freezes.
FREEZE = """
import os
import signal
import sys

def freeze(event, arguments):
    if event == "os.link" and "/lake/b/_delta_log/" in os.fsdecode(arguments[1]):
        with open("{told}", "x") as told:
            told.write(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)

sys.modules["tidelog.log.storage.native_files"] = None  # which names files where no hook sees it
sys.addaudithook(freeze)
"""


def test_a_query_killed_in_the_middle_loses_and_repeats_nothing(
    spark: SparkSession, lake: Lake, checkpoint: str, tmp_path: Path, forked_workers: dict[str, str]
) -> None:
    values = numbered("v", 60)
    append(lake, "in", *values)
    lake.create_topic("out")
    script = tmp_path / "copies.py"
    script.write_text(COPY)
    few = json.dumps(FEW_RECORDS)
    with kept_running(script, lake, checkpoint, FEW_RECORDS=few, **forked_workers) as has_ended:
        await_that(lambda: len(in_topic(lake, "out")) >= 7 or has_ended())
    copied = in_topic(lake, "out")
    assert 7 <= len(copied) < 60, script.with_suffix(".log").read_text()

    run(stream(spark, lake, subscribe="in", startingOffsets="earliest").select("value"), lake, "out", checkpoint)

    assert in_topic(lake, "out") == values


def test_a_batch_over_topics_killed_after_its_intent_counts_as_it_was_decided(
    spark: SparkSession, lake: Lake, checkpoint: str, tmp_path: Path
) -> None:
    """One topic has its part, the other doesn't, and the query that comes next routes its rows otherwise."""
    values = numbered("v", 30)
    append(lake, "in", *values)
    for topic in ("a", "b"):
        lake.create_topic(topic)
    script, told = tmp_path / "spreads.py", tmp_path / "told"
    script.write_text(SPREAD)
    (tmp_path / "sitecustomize.py").write_text(FREEZE.format(told=told))
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    # What its processes are forked from must be its own, and have run this first.
    own = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": path}
    with kept_running(script, lake, checkpoint, FEW_RECORDS=json.dumps(FEW_RECORDS), **own) as has_ended:
        await_that(lambda: (told.exists() and told.read_text()) or has_ended())
        assert not has_ended(), script.with_suffix(".log").read_text()
        os.kill(int(told.read_text()), signal.SIGKILL)
    assert (in_topic(lake, "a"), in_topic(lake, "b")) == (values[:10:2], [])
    assert [one.batch for one in TransactionLog(lake).incomplete()] == [0]

    rows = stream(spark, lake, subscribe="in", startingOffsets="earliest").selectExpr("'c' topic", "value")
    run(rows, lake, None, checkpoint)

    assert (in_topic(lake, "a"), in_topic(lake, "b")) == (values[:10:2], values[1:10:2])
    assert in_topic(lake, "c") == values[10:]
