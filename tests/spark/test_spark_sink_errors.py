"""What the sink refuses, in Spark's own messages: nothing is written then.

What else it refuses is in tests/unit/sinks, without Spark; what Spark shows around a refusal in test_spark_refusals.
"""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.spark_queries import append, data_files, fails_with, run, stream, write

from tidelog.log.lake import Lake

PLANNED = "[PYTHON_DATA_SOURCE_ERROR] Failed to initialize Python data source writer"
IN_A_TASK = "An exception was thrown from the Python worker"


@pytest.fixture
def topic(lake: Lake) -> Lake:
    lake.create_topic("t", config={"max.message.bytes": "100"})
    return lake


@pytest.mark.parametrize(
    ("row", "topic_name", "options", "words"),
    [
        ("'v' value", None, {}, [PLANNED, "topic option required when no 'topic' attribute is present"]),
        (
            "'v' value, timestamp'2921-01-01' timestamp",
            "t",
            {"includeTimestamp": "true"},
            [IN_A_TASK, "InvalidTimestampError", "message.timestamp.after.max.ms"],
        ),
    ],
)
def test_bad_batch_writes(
    spark: SparkSession, topic: Lake, row: str, topic_name: str | None, options: dict[str, Any], words: list[str]
) -> None:
    with fails_with("tidelog.log.base.errors.", *words):
        write(spark.sql(f"select {row}"), topic, topic_name, **options)
    assert (topic.topics(), topic.offsets("t"), data_files(topic, "t")) == (["t"], {0: (0, 0)}, [])


def test_a_batch_write_needs_mode_append(spark: SparkSession, topic: Lake) -> None:
    """A limit of docs/limits.md: Spark refuses every other mode of a Python sink, its default too."""
    for mode, words in (
        ("overwrite", "tidelog: save mode Overwrite is not allowed, as a topic is a log: write with .mode('append')"),
        ("ignore", "tidelog: a batch write appends to its topic and needs .mode('append')"),
        (None, "tidelog: a batch write appends to its topic and needs .mode('append')"),
    ):
        writer = spark.sql("select 'v' value").write.format("tidelog").options(lake=topic.uri, topic="t")
        with fails_with(words):
            (writer.mode(mode) if mode else writer).save()
    assert topic.offsets("t") == {0: (0, 0)}


@pytest.mark.parametrize(
    ("columns", "topic_name", "options", "words"),
    [
        (["value"], "t", {"txnAppId": "a", "txnVersion": "1"}, ["are not valid in streaming queries"]),
        (["value"], "a b", {}, ["InvalidTopicError", "Topic name is invalid: 'a b'"]),
    ],
)
def test_bad_streaming_writes(
    spark: SparkSession,
    topic: Lake,
    checkpoint: str,
    columns: list[str],
    topic_name: str,
    options: dict[str, Any],
    words: list[str],
) -> None:
    append(topic, "in", "v")
    rows = stream(spark, topic, subscribe="in", startingOffsets="earliest").selectExpr(columns)
    with fails_with("tidelog.log.base.errors.", *words):
        run(rows, topic, topic_name, checkpoint, **options)
    assert topic.offsets("t") == {0: (0, 0)}
