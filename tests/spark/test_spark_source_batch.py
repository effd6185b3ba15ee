"""The source in batch queries, as Spark shows it.

Where they start and end, what is refused or lost, how tasks are cut and which files are read is in
tests/unit/sources/test_source_batch.py, without Spark; how Spark shows a refusal in test_spark_refusals.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from support.spark_queries import Collected, append, fails_with, fill, numbered, source, texts, write

from tidelog.log.lake import Lake

HOUR_MS = 3_600_000
NOON_MS = 1_700_000_000_000


def by_partition(rows: DataFrame) -> dict[int, list[int]]:
    """{partition: offsets}."""
    found: dict[int, list[int]] = {}
    for row in rows.select("partition", "offset").orderBy("partition", "offset").collect():
        found.setdefault(row.partition, []).append(row.offset)
    return found


@pytest.fixture
def timed(lake: Lake) -> Lake:
    """Topic `t` with two partitions of six records each, an hour apart, each partition in three segments."""
    lake.create_topic("t", partitions=2)
    for partition in (0, 1):
        for first in (0, 2, 4):
            at = [NOON_MS + n * HOUR_MS for n in (first, first + 1)]
            append(lake, "t", f"{partition}{first}", f"{partition}{first + 1}", partition=[partition] * 2, timestamp=at)
    return lake


def named(**offsets: Any) -> str:
    """Kafka's JSON for topic `t`: named(p0=1) is {"t": {"0": 1}}."""
    return json.dumps({"t": {name[1:]: offset for name, offset in offsets.items()}})


ALL = {0: [0, 1, 2, 3, 4, 5], 1: [0, 1, 2, 3, 4, 5]}


def test_offsets_and_times_say_where_a_query_starts_and_ends(spark: SparkSession, timed: Lake) -> None:
    some = {"startingOffsets": named(p0=-2, p1=4), "endingOffsets": named(p0=2, p1=-1)}
    assert by_partition(source(spark, timed, subscribe="t", **some)) == {0: [0, 1], 1: [4, 5]}
    late = {"startingTimestamp": NOON_MS + 4 * HOUR_MS - 1}
    assert by_partition(source(spark, timed, subscribe="t", **late)) == {0: [4, 5], 1: [4, 5]}


@pytest.mark.parametrize("own", ["key string", None], ids=["another", "the same"])
def test_a_schema_of_ones_own_is_refused(spark: SparkSession, timed: Lake, checkpoint: str, own: str | None) -> None:
    schema = own or source(spark, timed, subscribe="t").schema
    options = {"lake": timed.uri, "subscribe": "t"}
    with fails_with("tidelog: the source has a fixed schema, as Kafka's"):
        spark.read.format("tidelog").options(**options).schema(schema).load().collect()
    with fails_with("tidelog: the source has a fixed schema, as Kafka's"):
        Collected().run(spark.readStream.format("tidelog").options(**options).schema(schema).load(), checkpoint)


def test_columns_and_types_are_those_of_kafkas_source(spark: SparkSession, timed: Lake) -> None:
    columns = (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int"
    )
    assert source(spark, timed, subscribe="t").schema.simpleString() == f"{columns}>"
    with_headers = source(spark, timed, subscribe="t", includeHeaders="true")
    assert with_headers.schema.simpleString() == f"{columns},headers:array<struct<key:string,value:binary>>>"
    assert with_headers.where("headers is null").count() == 12


def test_subscribe_pattern_and_assign(spark: SparkSession, lake: Lake) -> None:
    for topic in ("orders", "reorders", "other"):
        lake.create_topic(topic, partitions=2)
        for partition in (0, 1):
            fill(lake, topic, partition, f"{topic}-{partition}")
    # Another table beside the topics, which a pattern may match.
    spark.range(1).write.format("delta").save(f"{lake.uri}/table")

    def read(**options: str) -> list[str]:
        return texts(source(spark, lake, **options))

    assert read(subscribe=" orders , other") == ["orders-0", "orders-1", "other-0", "other-1"]
    assert len(read(subscribePattern=".*")) == 6
    assert read(assign='{"orders":[1,7],"other":[0]}') == ["orders-1", "other-0"]
    with fails_with("NotATopicError", "'table' is a Delta table but not a topic"):
        read(subscribe="table")


def test_an_empty_topic_is_an_empty_dataframe(spark: SparkSession, lake: Lake) -> None:
    lake.create_topic("t", partitions=3)
    assert source(spark, lake, subscribe="t").collect() == []


def test_options_cut_tasks(spark: SparkSession, timed: Lake) -> None:
    rows = source(spark, timed, subscribe="t", maxRecordsPerPartition=4, minPartitions=8)
    assert (rows.rdd.getNumPartitions(), by_partition(rows)) == (8, ALL)


FILTERS = [
    ("partition = 1 and offset >= 4", {1: [4, 5]}, {(1, 4)}),
    ("timestamp >= timestamp_millis(1700014400000)", {0: [4, 5], 1: [4, 5]}, {(0, 4), (1, 4)}),
    ("partition = 0 or offset = 5", {0: [0, 1, 2, 3, 4, 5], 1: [5]}, None),
]


PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[None]:
    """A session that hands filters to Python's sources."""
    spark.conf.set(PUSH_DOWN, "true")
    yield
    spark.conf.unset(PUSH_DOWN)


def test_each_query_of_a_dataframe_has_its_own_filter(spark: SparkSession, timed: Lake) -> None:
    """Spark 4.2.0 gives all of them the last one's where filters reach Python's sources, so sessions leave that off."""
    rows = source(spark, timed, subscribe="t")
    assert rows.where("offset < 1").count() == 2
    assert rows.count() == 12
    assert rows.where("offset < 1").union(rows.where("offset >= 5")).count() == 4


@pytest.mark.parametrize("pushed", ["true", "false"])
def test_filters_work_with_push_down_on_and_off(spark: SparkSession, timed: Lake, pushed: str) -> None:
    """Off is Spark's default, and then Spark refuses readers that take filters."""
    spark.conf.set(PUSH_DOWN, pushed)
    try:
        for condition, expected, _ in FILTERS:
            assert by_partition(source(spark, timed, subscribe="t").where(condition)) == expected, condition
    finally:
        spark.conf.unset(PUSH_DOWN)


@pytest.mark.usefixtures("pushing")
@pytest.mark.parametrize(("condition", "expected", "needed"), FILTERS[:-1])
def test_filters_read_only_the_segments_that_can_match(
    spark: SparkSession, timed: Lake, condition: str, expected: Any, needed: set[tuple[int, int]]
) -> None:
    """Every other segment's file is gone, and the query does not miss it."""
    root = Path(timed.uri.removeprefix("file://")) / "t"
    for segment in timed.topic("t").state().all_segments():
        if (segment.partition, segment.base_offset) not in needed:
            (root / segment.path).unlink()

    assert by_partition(source(spark, timed, subscribe="t").where(condition)) == expected


def test_a_dataframe_is_planned_once_and_loaded_again_sees_more(spark: SparkSession, lake: Lake) -> None:
    """A limit of docs/limits.md: Spark asks a Python source for its partitions once."""
    append(lake, "t", "a")
    rows = source(spark, lake, subscribe="t")
    assert rows.count() == 1
    append(lake, "t", "b")

    assert (rows.count(), source(spark, lake, subscribe="t").count()) == (1, 2)


def test_what_a_query_reads_can_be_written_to_another_topic(spark: SparkSession, timed: Lake) -> None:
    timed.create_topic("copy", partitions=2)
    write(source(spark, timed, subscribe="t"), timed, "copy", includeTimestamp="true")

    columns = ["value", "partition", "offset", "timestamp"]
    copied, original = (source(spark, timed, subscribe=topic).select(columns) for topic in ("copy", "t"))
    assert_df_equality(copied, original, ignore_row_order=True)


def test_topics_of_many_segments_and_large_records_come_whole(spark: SparkSession, lake: Lake) -> None:
    lake.create_topic("t", partitions=2)
    for n in range(40):
        fill(lake, "t", n % 2, *numbered(f"{n:02d}-", 5))
    fill(lake, "t", 0, *("x" * 900_000 + str(n) for n in range(40)))

    rows = source(spark, lake, subscribe="t")

    assert rows.count() == 240
    assert rows.where("length(value) > 900000").selectExpr("count(distinct value) n").first().n == 40
