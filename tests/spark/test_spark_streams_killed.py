"""Applications with state that break off: each result once, and tables that are asked by SQL."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.killed_queries import kept_running
from support.spark_queries import FEW_RECORDS, append, await_that, forget_commit, numbered

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.lake import Lake
from tidelog.streams import Streams, StreamsBuilder, TopologyChangedError, create_view, python, serdes

COUNTS = """
import json
import os
import sys
import tidelog
from tidelog.spark.class_archive import short_lived
from tidelog.streams import Streams, StreamsBuilder

builder = StreamsBuilder()
builder.stream("in").group_by("'all'").count().to_stream().map_values("string(value)").to("counts")
settings = {
    **json.loads(os.environ["FEW_RECORDS"]),
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": short_lived(),
}
spark = tidelog.spark.session("killed", "local[1]", settings, delta=False)
config = {"application.id": "app", "lake": sys.argv[1], "source.maxOffsetsPerTrigger": 2, "commit.interval.ms": 0}
Streams(builder.build(), config, spark).start().await_termination()
"""


def counting(store: str = "", to: str = "counts") -> StreamsBuilder:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by("'all'").count(store)
    counts.to_stream().map_values("string(value)").to(to)
    return builder


def run(spark: SparkSession, lake: Lake, builder: StreamsBuilder) -> Streams:
    """Process what is there, in an application of one id, in a session whose settings are not those of all tests."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    with Streams(builder.build(), {"application.id": "app", "lake": lake.uri, **FEW_RECORDS}, session) as streams:
        streams.process_all_available()
    return streams


def in_order(lake: Lake, topic: str) -> list[int]:
    """Values of a topic of one partition, in their order."""
    if lake.peek(topic) is None:
        return []
    return [int(one) for batch in lake.topic(topic).read(0) for one in batch.column("value").to_pylist()]


def test_an_application_killed_in_the_middle_sends_each_count_once(
    spark: SparkSession, lake: Lake, tmp_path: Path, forked_workers: dict[str, str]
) -> None:
    append(lake, "in", *numbered("v", 60))
    script = tmp_path / "counts.py"
    script.write_text(COUNTS)
    few = json.dumps(FEW_RECORDS)
    with kept_running(script, lake, lake.uri, FEW_RECORDS=few, **forked_workers) as has_ended:
        await_that(lambda: len(in_order(lake, "counts")) >= 4 or has_ended())
    killed = in_order(lake, "counts")
    assert 4 <= len(killed) < 30, script.with_suffix(".log").read_text()
    assert killed == list(range(2, 2 * len(killed) + 1, 2))

    run(spark, lake, counting())

    found = in_order(lake, "counts")
    assert found[: len(killed)] == killed
    assert found == sorted(set(found))
    assert found[-1] == 60


def test_a_batch_with_state_that_is_run_again_counts_once(spark: SparkSession, lake: Lake) -> None:
    """Spark died between the topic's entry and its own commit log."""
    append(lake, "in", *numbered("a", 10))
    run(spark, lake, counting())
    forget_commit(f"{lake.uri.removeprefix('file://')}/__streams/app/to-counts")
    append(lake, "in", *numbered("b", 5))
    streams = run(spark, lake, counting())

    assert in_order(lake, "counts") == [10, 15]
    (state,) = streams.queries["to-counts"].recentProgress[0].stateOperators
    assert state.numShufflePartitions == 1


def test_another_step_with_state_needs_another_application_id(spark: SparkSession, lake: Lake) -> None:
    append(lake, "in", "a")
    run(spark, lake, counting())
    builder = StreamsBuilder()
    builder.stream("in").group_by("'all'").reduce(python(lambda a, b: b)).to_stream().to("counts")

    with pytest.raises(TopologyChangedError, match=r"'to-counts' had state COUNT, and now REDUCE by Python"):
        run(spark, lake, builder)


def test_a_table_is_asked_by_sql_without_its_application(spark: SparkSession, lake: Lake) -> None:
    builder = StreamsBuilder()
    words = builder.stream("in").group_by("value").count("word-counts")
    words.to_stream().to("out")
    builder.stream("users").to_table("users", value=serdes.STRING)
    append(lake, "in", "a", "b", "a")
    append(lake, "users", "eu", "us", key=["ann", "bob"])
    run(spark, lake, builder)
    append(lake, "in", "a")
    lake.topic("users").append([{"key": "bob", "value": None}])
    run(spark, lake, builder)

    assert create_view(spark, lake, "app", "word-counts") == "word_counts"
    assert create_view(spark, lake.uri, "app", "users", "regions") == "regions"
    assert [tuple(row) for row in spark.sql("SELECT key, value FROM word_counts ORDER BY key").collect()] == [
        ("a", 3),
        ("b", 1),
    ]
    assert [tuple(row) for row in spark.sql("SELECT key, value FROM regions").collect()] == [("ann", "eu")]
    assert lake.topic_config("app-word-counts-changelog").cleanup_policy == ("compact",)
    with pytest.raises(InvalidOptionError, match="has no table 'x': it has users, word-counts"):
        create_view(spark, lake, "app", "x")
