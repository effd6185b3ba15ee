"""The streaming sink counts each batch exactly once, wherever a run breaks off."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.spark_queries import (
    append,
    await_that,
    data_files,
    fails_with,
    forget_commit,
    in_topic,
    numbered,
    run,
    start,
    stream,
)

from tidelog.log.lake import Lake
from tidelog.transactions.transaction_log import TransactionLog

VALUES = ["cast(value as string) value"]


def copy(spark: SparkSession, lake: Lake, checkpoint: str, **options: str) -> None:
    """Copy topic `in` to topic `out`, as far as there is something."""
    rows = stream(spark, lake, subscribe="in", startingOffsets="earliest", **options).selectExpr(VALUES)
    run(rows, lake, "out", checkpoint)


def versions(lake: Lake, topic: str) -> int:
    return lake.topic(topic).state().version


def test_a_query_goes_on_where_it_was(spark: SparkSession, lake: Lake, checkpoint: str) -> None:
    append(lake, "in", *numbered("a", 10))
    copy(spark, lake, checkpoint)
    copy(spark, lake, checkpoint)
    append(lake, "in", *numbered("b", 5))
    copy(spark, lake, checkpoint)

    assert in_topic(lake, "out") == [*numbered("a", 10), *numbered("b", 5)]
    assert versions(lake, "out") == 2  # created, and an entry for each batch that had rows


def test_a_batch_that_was_committed_and_is_run_again_changes_nothing(
    spark: SparkSession, lake: Lake, checkpoint: str
) -> None:
    """Spark died between the topic's entry and its own commit log."""
    append(lake, "in", *numbered("a", 10))
    copy(spark, lake, checkpoint)
    append(lake, "in", *numbered("b", 5))
    copy(spark, lake, checkpoint)
    entries, files = versions(lake, "out"), data_files(lake, "out")

    forget_commit(checkpoint)
    copy(spark, lake, checkpoint)

    assert in_topic(lake, "out") == [*numbered("a", 10), *numbered("b", 5)]
    assert (versions(lake, "out"), data_files(lake, "out")) == (entries, files)


LOSE_THE_LAKE = """
import os
from pathlib import Path

def before_the_commit(keys, n):
    Path("{marker}").exists() or os.rename("{lake}", "{marker}")
    return [0] * len(keys)
"""


def test_a_batch_that_broke_off_before_its_entry_is_run_again(
    spark: SparkSession, lake: Lake, checkpoint: str, tmp_path: Path
) -> None:
    """Its segments are written, and the driver can't reach the lake to commit them."""
    lake_file, marker = Path(lake.uri.removeprefix("file://")) / "__lake.json", tmp_path / "away.json"
    module = tmp_path / "losing_the_lake.py"
    module.write_text(LOSE_THE_LAKE.format(lake=lake_file, marker=marker))
    spark.sparkContext.addPyFile(str(module))
    append(lake, "in", *numbered("a", 10))
    lake.create_topic("out")
    rows = stream(spark, lake, subscribe="in", startingOffsets="earliest").selectExpr(VALUES)

    with fails_with("LakeFileLostError"):
        run(rows, lake, "out", checkpoint, partitioner="losing_the_lake:before_the_commit")
    assert (in_topic(lake, "out"), len(data_files(lake, "out"))) == ([], 1)

    marker.rename(lake_file)
    run(rows, lake, "out", checkpoint)
    assert in_topic(lake, "out") == numbered("a", 10)


def test_a_batch_of_several_topics_is_one_and_its_repeat_none(spark: SparkSession, lake: Lake, checkpoint: str) -> None:
    """Wherever its rows would go by now, by option too."""
    append(lake, "in", "a1", "b1", "a2", "b2")
    rows = stream(spark, lake, subscribe="in", startingOffsets="earliest")
    column = ["substr(cast(value as string), 1, 1) topic", *VALUES]
    run(rows.selectExpr(column), lake, None, checkpoint)
    for again, topic in ((["'c' topic", *VALUES], None), (VALUES, "c")):
        forget_commit(checkpoint)
        run(rows.selectExpr(again), lake, topic, checkpoint)
    append(lake, "in", "b3", "d1")
    run(rows.selectExpr(column), lake, None, checkpoint)

    assert {topic: in_topic(lake, topic) for topic in "abcd"} == {
        "a": ["a1", "a2"],
        "b": ["b1", "b2", "b3"],
        "c": [],
        "d": ["d1"],
    }
    assert [(one.transactional_id[:6], one.batch) for one in TransactionLog(lake).all()] == [("spark-", 1)]


def test_a_restored_checkpoint_is_refused(spark: SparkSession, lake: Lake, checkpoint: str, tmp_path: Path) -> None:
    append(lake, "in", "a")
    copy(spark, lake, checkpoint)
    shutil.copytree(checkpoint, tmp_path / "saved")
    for value in ("b", "c"):
        append(lake, "in", value)
        copy(spark, lake, checkpoint)

    with fails_with("StaleBatchError", "already taken batch 2 of this streaming query, and now gets batch 1"):
        copy(spark, lake, str(tmp_path / "saved"))

    assert in_topic(lake, "out") == ["a", "b", "c"]
    assert len(data_files(lake, "out")) == 3


def test_another_query_is_not_taken_for_a_repeat(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    append(lake, "in", "a")
    for checkpoint in ("one", "two"):
        copy(spark, lake, str(tmp_path / checkpoint))

    assert in_topic(lake, "out") == ["a", "a"]


def test_empty_batches_neither_write_nor_disturb(spark: SparkSession, lake: Lake, checkpoint: str) -> None:
    """A batch whose rows are all filtered away has no entry, and can be run again."""
    append(lake, "in", "a")
    rows = stream(spark, lake, subscribe="in", startingOffsets="earliest").selectExpr(VALUES).where("value != 'b'")
    run(rows, lake, "out", checkpoint)
    append(lake, "in", "b")
    run(rows, lake, "out", checkpoint)
    forget_commit(checkpoint)
    append(lake, "in", "c")
    run(rows, lake, "out", checkpoint)

    assert in_topic(lake, "out") == ["a", "c"]


@pytest.mark.parametrize("mode", ["complete", "update"])
def test_output_modes(spark: SparkSession, lake: Lake, checkpoint: str, mode: str) -> None:
    """Complete appends the whole result each time, as Kafka's sink does; Update is Spark's to refuse."""
    append(lake, "in", "a", "a", "b")
    counts = (
        stream(spark, lake, subscribe="in", startingOffsets="earliest")
        .groupBy("value")
        .count()
        .selectExpr("concat(cast(value as string), count) value")
    )
    writer = counts.writeStream.format("tidelog").outputMode(mode).option("checkpointLocation", checkpoint)

    def once() -> None:
        writer.options(lake=lake.uri, topic="out").trigger(availableNow=True).start().awaitTermination()

    if mode == "update":
        with fails_with("tidelog does not support Update mode"):
            once()
        return
    once()
    append(lake, "in", "b")
    once()
    assert in_topic(lake, "out") == ["a2", "a2", "b1", "b2"]


def test_a_running_query_sees_the_topic_it_writes_to_change(spark: SparkSession, lake: Lake, checkpoint: str) -> None:
    """Partitions that are added and a topic that is created again count from the next batch on."""
    append(lake, "in", "a")
    lake.create_topic("out")
    rows = stream(spark, lake, subscribe="in", startingOffsets="earliest").selectExpr(
        *VALUES, "cast(ascii(value) - 97 as int) partition"
    )
    query = start(rows, lake, "out", checkpoint)
    await_that(lambda: in_topic(lake, "out") == ["a"], query)

    lake.alter_topic("out", partitions=2)
    append(lake, "in", "b")
    await_that(lambda: lake.offsets("out") == {0: (0, 1), 1: (0, 1)}, query)

    lake.delete_topic("out")
    lake.create_topic("out", partitions=3)
    append(lake, "in", "c")
    await_that(lambda: in_topic(lake, "out") == ["c"], query)
    query.stop()
