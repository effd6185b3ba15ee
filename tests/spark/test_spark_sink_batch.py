"""The sink in batch writes: what is written is what is read, all of it or nothing."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from support.spark_queries import data_files, fails_with, in_topic, source, texts, write

from tidelog.log.lake import Lake

HEADERS = "headers array<struct<key:string,value:binary>>"


def rows_of(spark: SparkSession, *values: str) -> DataFrame:
    return spark.createDataFrame([(value,) for value in values], "value string")


def test_records_come_back_as_they_were_written(spark: SparkSession, lake: Lake) -> None:
    lake.create_topic("orders", partitions=3)
    given = spark.createDataFrame(
        [
            (b"k1", b"v1", 2, [("h", b"1"), ("h", None)]),
            (None, b"v2", 0, []),
            (b"k3", None, 1, None),
            (b"", b"", 0, [("", b"")]),
        ],
        f"key binary, value binary, partition int, {HEADERS}",
    )

    write(given, lake, "orders")

    columns = ["key", "value", "partition", "headers"]
    found = source(spark, lake, subscribe="orders", includeHeaders="true")
    # As from Kafka, no headers and an empty list of them are the same.
    written = given.selectExpr("key", "value", "partition", "CASE WHEN size(headers) > 0 THEN headers END AS headers")
    assert_df_equality(found.select(columns), written, ignore_row_order=True, ignore_nullable=True)
    assert sorted((row.partition, row.offset) for row in found.collect()) == [(0, 0), (0, 1), (1, 0), (2, 0)]
    assert {(row.topic, row.timestampType) for row in found.collect()} == {("orders", 0)}


def test_keys_choose_partitions_as_kafka_does_whatever_writes_them(spark: SparkSession, lake: Lake) -> None:
    lake.create_topic("by_spark", partitions=8)
    lake.create_topic("by_hand", partitions=8)
    keys = spark.range(50).selectExpr("concat('key-', id) key", "cast(id as string) value")

    write(keys, lake, "by_spark")
    lake.topic("by_hand").append(keys.toArrow())

    places = [
        source(spark, lake, subscribe=topic).select("key", "value", "partition") for topic in ("by_spark", "by_hand")
    ]
    assert_df_equality(*places, ignore_row_order=True)


def test_a_topic_column_spreads_a_batch_over_topics(spark: SparkSession, lake: Lake) -> None:
    given = spark.createDataFrame(
        [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")], "topic string, value string"
    ).repartition(2)

    write(given, lake)

    assert {topic: in_topic(lake, topic) for topic in lake.topics()} == {"a": ["1", "3"], "b": ["2"], "c": ["4"]}


def test_the_topic_option_wins_over_the_column(spark: SparkSession, lake: Lake) -> None:
    write(spark.createDataFrame([("a", "1")], "topic string, value string"), lake, "b")
    assert lake.topics() == ["b"]


@pytest.mark.parametrize(("options", "honoured"), [({}, False), ({"includeTimestamp": "true"}, True)])
def test_a_timestamp_column_counts_only_with_include_timestamp(
    spark: SparkSession, lake: Lake, options: dict[str, str], honoured: bool
) -> None:
    long_ago = datetime(2001, 2, 3, 4, 5, 6, 789000, tzinfo=UTC)
    given = spark.createDataFrame([("v", long_ago)], "value string, timestamp timestamp")

    write(given, lake, "t", **options)

    micros = source(spark, lake, subscribe="t").selectExpr("unix_micros(timestamp) at").first().at
    assert (micros == int(long_ago.timestamp() * 1e6)) is honoured


def test_other_columns_have_no_effect_and_types_of_other_sessions_do(spark: SparkSession, lake: Lake) -> None:
    """Large Arrow types and another time zone give the same records."""
    at = datetime(2020, 1, 1, tzinfo=UTC)
    given = spark.createDataFrame(
        [("t", b"k", b"v", [("h", b"1")], at, 7)],
        f"topic string, key binary, value binary, {HEADERS}, timestamp timestamp, offset int",
    )
    settings = {"spark.sql.execution.arrow.useLargeVarTypes": "true", "spark.sql.session.timeZone": "Asia/Tokyo"}
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        write(given, lake, includeTimestamp="true")
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)

    found = source(spark, lake, subscribe="t", includeHeaders="true")
    row = found.selectExpr("*", "unix_millis(timestamp) ms").first()
    assert (bytes(row.key), bytes(row.value), row.offset, row.ms) == (b"k", b"v", 0, int(at.timestamp() * 1000))
    assert [(h.key, bytes(h.value)) for h in row.headers] == [("h", b"1")]


def test_no_rows_are_no_entry(spark: SparkSession, lake: Lake) -> None:
    lake.create_topic("t")
    before = lake.topic("t").state().version

    write(rows_of(spark, "a").where("value = 'b'"), lake, "t")

    assert lake.topic("t").state().version == before


def test_a_batch_is_one_entry_however_many_tasks_write_it(spark: SparkSession, lake: Lake) -> None:
    lake.create_topic("t", partitions=4)
    before = lake.topic("t").state().version

    write(
        spark.range(400).selectExpr("cast(id as string) value", "cast(id % 4 as int) partition").repartition(3),
        lake,
        "t",
    )

    assert lake.topic("t").state().version == before + 1
    assert lake.offsets("t") == dict.fromkeys(range(4), (0, 100))


def test_auto_create_follows_the_lake_as_it_is_now(spark: SparkSession, lake: Lake) -> None:
    """The lake is cached in Spark's workers; its configuration must not be."""
    write(rows_of(spark, "1"), lake, "made")
    lake.alter_config({"auto.create.topics.enable": "false"})
    with fails_with("UnknownTopicError", "Topic 'unmade' does not exist", "auto.create.topics.enable is false"):
        write(rows_of(spark, "1"), lake, "unmade")
    with fails_with("Topic 'column' does not exist"):
        write(rows_of(spark, "1").selectExpr("'column' topic", "value"), lake)
    lake.alter_config({"auto.create.topics.enable": "true", "num.partitions": "3"})
    write(rows_of(spark, "1"), lake, "unmade")

    assert lake.topics() == ["made", "unmade"]
    assert (len(lake.offsets("made")), len(lake.offsets("unmade"))) == (1, 3)


def test_a_lake_made_again_in_the_same_place_is_another_lake(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    write(rows_of(spark, "old"), lake, "t")
    write(rows_of(spark, "old"), lake, "t")
    lake.close()
    Path(lake.uri.removeprefix("file://")).rename(tmp_path / "away")

    with Lake(str(tmp_path / "lake")) as again:
        write(rows_of(spark, "new"), again, "t")
        assert texts(source(spark, again, subscribe="t")) == in_topic(again, "t") == ["new"]


def test_a_task_that_fails_leaves_nothing(spark: SparkSession, lake: Lake) -> None:
    """Not even files, of which some are half written by then."""
    lake.create_topic("t", partitions=2)
    rows = spark.range(0, 150_000, 1, 1).selectExpr(
        "cast(id as string) value", "cast(if(id = 149999, 9, if(id % 100 = 0, 1, 0)) as int) partition"
    )

    with fails_with("UnknownPartitionError", "Partition 9 in row", "the topic's 2 partitions are numbered 0 to 1"):
        write(rows, lake, "t")

    assert lake.offsets("t") == {0: (0, 0), 1: (0, 0)}
    assert data_files(lake, "t") == []


def test_rows_that_fail_on_their_way_leave_nothing_to_see(spark: SparkSession, lake: Lake) -> None:
    """A worker can't tell rows that ended from rows that broke off, so there may be files, which no entry names."""
    lake.create_topic("t")
    rows = spark.range(0, 40, 1, 2).selectExpr("if(id = 39, raise_error('no more'), cast(id as string)) value")

    with fails_with("no more"):
        write(rows, lake, "t")
    write(rows_of(spark, "after"), lake, "t")

    assert in_topic(lake, "t") == ["after"]


def test_two_batch_writes_in_one_foreach_batch_both_land(spark: SparkSession, lake: Lake, checkpoint: str) -> None:
    write(rows_of(spark, "a", "b"), lake, "in")

    def twice(batch: DataFrame, batch_id: int) -> None:
        for copy in ("1", "2"):
            write(batch.selectExpr(f"concat(cast(value as string), '{copy}') value"), lake, "out")

    stream = spark.readStream.format("tidelog").options(lake=lake.uri, subscribe="in", startingOffsets="earliest")
    query = stream.load().writeStream.foreachBatch(twice).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()

    assert in_topic(lake, "out") == ["a1", "a2", "b1", "b2"]


def test_the_same_txn_version_is_written_once(spark: SparkSession, lake: Lake) -> None:
    for version, value in ((7, "first"), (7, "repeated"), (6, "older"), (8, "newer")):
        write(rows_of(spark, value), lake, "t", txnAppId="nightly", txnVersion=version)
    write(rows_of(spark, "another's"), lake, "t", txnAppId="weekly", txnVersion=1)

    assert in_topic(lake, "t") == ["another's", "first", "newer"]
    assert len(data_files(lake, "t")) == 3  # what repeats had staged is gone


@pytest.mark.parametrize(("acks", "durable"), [("0", False), ("1", False), ("all", True), (None, True)])
def test_acks_say_whether_the_entry_is_durable(
    spark: SparkSession, lake: Lake, acks: str | None, durable: bool
) -> None:
    write(rows_of(spark, "a"), lake, "t", **({} if acks is None else {"kafka.acks": acks}))

    entries = Path(lake.uri.removeprefix("file://")) / "t" / "_delta_log"
    assert (f'"durable":{str(durable).lower()}' in max(entries.glob("*.json")).read_text()) is True


@pytest.mark.parametrize(
    ("options", "codec"),
    [({}, "ZSTD"), ({"compression": "gzip"}, "GZIP"), ({"kafka.compression.type": "none"}, "UNCOMPRESSED")],
)
def test_compression_reaches_the_files(spark: SparkSession, lake: Lake, options: dict[str, str], codec: str) -> None:
    write(rows_of(spark, "a" * 40_000), lake, "t", **options)  # far more than what is too small to compress

    [path] = data_files(lake, "t")
    group = pq.ParquetFile(path).metadata.row_group(0)
    value = next(i for i in range(group.num_columns) if group.column(i).path_in_schema == "value")
    assert group.column(value).compression == codec


def test_partitioners_by_name_and_of_ones_own(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    for topic in ("custom", "turns"):
        lake.create_topic(topic, partitions=3)
    (tmp_path / "own_rules.py").write_text("def last(keys, n):\n    return [n - 1] * len(keys)\n")
    spark.sparkContext.addPyFile(str(tmp_path / "own_rules.py"))
    rows = spark.range(9).selectExpr("'same' key", "cast(id as string) value").coalesce(1)

    write(rows, lake, "custom", partitioner="own_rules:last")
    write(rows, lake, "turns", partitioner="round_robin")

    assert {p: end for p, (_, end) in lake.offsets("custom").items()} == {0: 0, 1: 0, 2: 9}
    assert {p: end for p, (_, end) in lake.offsets("turns").items()} == {0: 3, 1: 3, 2: 3}


def test_log_append_time_is_the_batchs_and_never_falls(spark: SparkSession, lake: Lake) -> None:
    lake.create_topic("t", config={"message.timestamp.type": "LogAppendTime"})
    rows = spark.range(0, 60, 1, 3).selectExpr("cast(id as string) value", "timestamp'2001-01-01' timestamp")

    for _ in range(2):
        write(rows, lake, "t", includeTimestamp="true")
        lake.topic("t").append(rows.select("value").limit(1).toArrow())

    found = source(spark, lake, subscribe="t").orderBy("offset").collect()
    assert [row.timestamp for row in found] == sorted(row.timestamp for row in found)
    assert {row.timestampType for row in found} == {1}
    assert len({row.timestamp for row in found}) == 4


def test_a_topic_deleted_and_created_again_takes_records_at_once(spark: SparkSession, lake: Lake) -> None:
    """Spark's workers know the old topic."""
    write(rows_of(spark, "old"), lake, "t")
    lake.delete_topic("t")
    lake.create_topic("t", partitions=2)
    write(rows_of(spark, "new").selectExpr("value", "1 partition"), lake, "t")

    assert lake.offsets("t") == {0: (0, 0), 1: (0, 1)}
    assert texts(source(spark, lake, subscribe="t")) == ["new"]
