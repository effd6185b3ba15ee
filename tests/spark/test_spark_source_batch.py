"""The source in batch queries: where they start and end, what is lost, how tasks are cut, which files are read."""

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


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ALL),
        ({"startingOffsets": "EARLIEST ", "endingOffsets": "latest"}, ALL),
        ({"startingOffsets": named(p0=-2, p1=4), "endingOffsets": named(p0=2, p1=-1)}, {0: [0, 1], 1: [4, 5]}),
        ({"startingTimestamp": NOON_MS + 4 * HOUR_MS - 1}, {0: [4, 5], 1: [4, 5]}),
        ({"endingTimestamp": NOON_MS + HOUR_MS}, {0: [0], 1: [0]}),
        ({"endingTimestamp": NOON_MS + 99 * HOUR_MS}, ALL),
        (
            {
                "startingOffsetsByTimestamp": named(p0=NOON_MS + 5 * HOUR_MS, p1=NOON_MS + 99 * HOUR_MS),
                "startingOffsetsByTimestampStrategy": "Latest",
            },
            {0: [5]},
        ),
        ({"endingOffsetsByTimestamp": named(p0=0, p1=NOON_MS + HOUR_MS)}, {1: [0]}),
        ({"startingTimestamp": NOON_MS + 5 * HOUR_MS, "startingOffsets": "earliest"}, {0: [5], 1: [5]}),
    ],
)
def test_starts_and_ends(spark: SparkSession, timed: Lake, options: dict[str, Any], expected: Any) -> None:
    assert by_partition(source(spark, timed, subscribe="t", **options)) == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startingOffsets": "latest"}, ["starting offset can't be latest for batch queries on Kafka"]),
        ({"startingOffsets": named(p0=0)}, ["Partitions specified for Kafka start offsets don't match"]),
        ({"startingTimestamp": NOON_MS + 99 * HOUR_MS}, ["No offset matched from request of topic-partition t-0"]),
        ({"startingOffsets": named(p0=5, p1=0), "endingOffsets": named(p0=1, p1=-1)}, ["The specified start offset 5"]),
        (
            {"startingOffsets": named(p0=6, p1=7)},
            ["The resolved start offset 7 is greater than the resolved end offset 6 for topic t partition 1."],
        ),
        (
            {"startingTimestamp": NOON_MS + 5 * HOUR_MS, "endingOffsets": named(p0=6, p1=2), "failOnDataLoss": "false"},
            ["The resolved start offset 5 is greater than the resolved end offset 2 for topic t partition 1."],
        ),
        ({"subscribe": "t,nope"}, ["UnknownTopicError", "Topic 'nope' does not exist in the lake"]),
        ({"subscribe": "../t"}, ["InvalidTopicError", "Topic name is invalid: '../t'"]),
        ({"assign": '{"t":[0]}'}, ["Only one of the following options can be specified"]),
        ({"kafka.auto.offset.reset": "latest"}, ["Kafka option 'auto.offset.reset' is not supported"]),
    ],
)
def test_bad_options_are_refused_in_sparks_message(
    spark: SparkSession, timed: Lake, options: dict[str, Any], words: list[str]
) -> None:
    with fails_with("PYTHON_DATA_SOURCE_ERROR", *words):
        source(spark, timed, **{"subscribe": "t", **options}).collect()


@pytest.mark.parametrize("own", ["key string", None], ids=["another", "the same"])
def test_a_schema_of_ones_own_is_refused(spark: SparkSession, timed: Lake, checkpoint: str, own: str | None) -> None:
    schema = own or source(spark, timed, subscribe="t").schema
    options = {"lake": timed.uri, "subscribe": "t"}
    with fails_with("Kafka source has a fixed schema and cannot be set with a custom one"):
        spark.read.format("tidelog").options(**options).schema(schema).load().collect()
    with fails_with("Kafka source has a fixed schema and cannot be set with a custom one"):
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
    lake.create_topic("__internal")
    append(lake, "__internal", "hidden")
    # Another table beside the topics, which a pattern may match.
    spark.range(1).write.format("delta").save(f"{lake.uri}/table")

    def read(**options: str) -> list[str]:
        return texts(source(spark, lake, **options))

    assert read(subscribe=" orders , other") == ["orders-0", "orders-1", "other-0", "other-1"]
    assert read(subscribePattern="ord") == ["orders-0", "orders-1", "reorders-0", "reorders-1"]
    assert len(read(subscribePattern=".*")) == 6
    assert read(subscribePattern="nothing") == []
    assert read(subscribe="__internal") == []
    assert read(assign='{"orders":[1],"other":[0],"__internal":[0]}') == ["orders-1", "other-0"]
    with fails_with("UnknownTopicError", "Topic 'nope' does not exist"):
        read(assign='{"orders":[1],"nope":[0]}')
    assert read(assign='{"orders":[1,7]}') == ["orders-1"]
    assert read(assign='{"orders":[7]}') == []
    with fails_with("don't match what are assigned", "Specified: Set(orders-1, orders-7) Assigned: Set(orders-1)"):
        read(assign='{"orders":[1,7]}', startingOffsets='{"orders":{"1":0,"7":0}}')
    with fails_with("NotATopicError", "'table' is a Delta table but not a topic"):
        read(subscribe="table")


def test_an_empty_topic_is_an_empty_dataframe(spark: SparkSession, lake: Lake) -> None:
    lake.create_topic("t", partitions=3)
    assert source(spark, lake, subscribe="t").collect() == []


@pytest.mark.parametrize("lost", [named(p0=0, p1=0), named(p0=1, p1=3)])
def test_fail_on_data_loss(spark: SparkSession, timed: Lake, lost: str) -> None:
    timed.delete_records("t", {0: 3})
    words = "Could not read records in offset [", "for topic partition t-0", "failOnDataLoss"

    with fails_with("DataLossError", *words):
        source(spark, timed, subscribe="t", startingOffsets=lost).collect()
    kept = source(spark, timed, subscribe="t", startingOffsets=lost, failOnDataLoss="false")

    assert by_partition(kept)[0] == [3, 4, 5]
    assert by_partition(source(spark, timed, subscribe="t"))[0] == [3, 4, 5]


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ({}, 1),
        ({"minPartitions": 6}, 6),
        ({"maxRecordsPerPartition": 4}, 4),
        ({"maxRecordsPerPartition": 4, "minPartitions": 8}, 8),
    ],
)
def test_options_cut_tasks(spark: SparkSession, timed: Lake, options: dict[str, int], tasks: int) -> None:
    rows = source(spark, timed, subscribe="t", **options)
    assert (rows.rdd.getNumPartitions(), by_partition(rows)) == (tasks, ALL)


FILTERS = [
    ("partition = 1 and offset >= 4", {1: [4, 5]}, {(1, 4)}),
    ("offset = 2", {0: [2], 1: [2]}, {(0, 2), (1, 2)}),
    ("offset < 2 and topic = 't'", {0: [0, 1], 1: [0, 1]}, {(0, 0), (1, 0)}),
    ("partition in (0) and offset > 3", {0: [4, 5]}, {(0, 4)}),
    ("timestamp >= timestamp_millis(1700014400000)", {0: [4, 5], 1: [4, 5]}, {(0, 4), (1, 4)}),
    ("partition = 0 and timestamp < timestamp_millis(1700003600000)", {0: [0]}, {(0, 0)}),
    ("topic = 'another'", {}, set()),
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
        for condition, expected, _ in (FILTERS[0], FILTERS[4], FILTERS[-1]):
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


def test_a_missing_segment_is_an_error_that_names_it(spark: SparkSession, timed: Lake) -> None:
    segment = timed.topic("t").state().live(1)[1]
    (Path(timed.uri.removeprefix("file://")) / "t" / segment.path).unlink()

    with fails_with("CorruptSegmentError", segment.path, "offsets 2 to 4", "is missing"):
        source(spark, timed, subscribe="t").collect()


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
