"""Topics as native DataFrames and streams: Spark's own scan, SQL, time travel."""

from collections.abc import Callable
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession
from support.rewrites import merge
from support.spark_queries import (
    Collected,
    append,
    await_that,
    fill,
    in_topic,
    numbered,
    source,
    texts,
)

from tidelog.log.base.errors import InvalidConfigError, InvalidOptionError, LogTrimmedError, UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.operations.cuts import create_cut
from tidelog.spark import create_view, decoded, read_topic, stream_topic
from tidelog.spark.native import VERIFY_PAGES


@pytest.fixture
def topic(lake: Lake) -> Lake:
    """Topic `t` of two partitions, three appends each, with keys and headers."""
    lake.create_topic("t", partitions=2)
    for n in range(3):
        for p in (0, 1):
            headers = [[{"key": "h", "value": b"1"}], None]
            append(lake, "t", f"{p}{n}a", f"{p}{n}b", partition=[p] * 2, key=["k", None], headers=headers)
    return lake


VALUES = sorted(f"{p}{n}{x}" for p in (0, 1) for n in range(3) for x in "ab")


def test_read_topic_gives_the_rows_and_columns_of_the_source(spark: SparkSession, topic: Lake) -> None:
    topic.delete_records("t", {0: 3})  # in the middle of a segment
    native = read_topic(spark, topic, "t")
    records = source(spark, topic, subscribe="t", includeHeaders="true")

    assert_df_equality(native, records, ignore_row_order=True, ignore_nullable=True)
    assert read_topic(spark, topic.uri, "t").count() == 9


def test_a_filter_on_the_partition_opens_no_other_file(spark: SparkSession, topic: Lake) -> None:
    for segment in topic.topic("t").state().live(0):
        (Path(topic.uri.removeprefix("file://")) / "t" / segment.path).unlink()

    assert texts(read_topic(spark, topic, "t").where("partition = 1 and offset >= 4")) == ["12a", "12b"]


def test_a_view_is_live_and_plain_delta_reads_the_topic(spark: SparkSession, topic: Lake) -> None:
    topic.create_topic("my.topic-1")
    assert create_view(spark, topic, "my.topic-1") == "my_topic_1"
    assert create_view(spark, topic, "t", "records") == "records"
    count = "select count(*) n, max(offset) newest from records where partition = 0"
    assert spark.sql(count).first().asDict() == {"n": 6, "newest": 5}

    fill(topic, "t", 0, "new")

    assert spark.sql(count).first().asDict() == {"n": 7, "newest": 6}
    plain = spark.read.format("delta").load(f"{topic.uri}/t")
    assert sorted(row.value.decode() for row in plain.collect()) == [*VALUES[:6], *VALUES[6:], "new"]
    assert {(r.partition, r.base_offset + r.position) for r in plain.collect()} == {
        *((0, n) for n in range(7)),
        *((1, n) for n in range(6)),
    }


def stream(spark: SparkSession, lake: Lake) -> None:
    Collected().run(stream_topic(spark, lake, "t"), f"{lake.uri}-checkpoint")


def view(spark: SparkSession, lake: Lake) -> None:
    spark.table(create_view(spark, lake, "t", "turned")).collect()


NATIVE_READS: dict[str, Callable[[SparkSession, Lake], object]] = {
    "read_topic": lambda spark, lake: read_topic(spark, lake, "t").collect(),
    "a version": lambda spark, lake: read_topic(spark, lake, "t", version=1).collect(),
    "stream_topic": stream,
    "create_view": view,
    "plain Delta": lambda spark, lake: spark.read.format("delta").load(f"{lake.uri}/t").collect(),
    "SQL": lambda spark, lake: spark.sql(f"select * from delta.`{lake.uri}/t`").collect(),
}


@pytest.mark.parametrize("read", NATIVE_READS.values(), ids=NATIVE_READS)
def test_a_turned_bit_is_no_value(spark: SparkSession, lake: Lake, read: Callable[..., object]) -> None:
    turn_a_bit(lake)
    with pytest.raises(Exception, match=r"(?i)corrupt|checksum|page integrity|CRC"):
        read(spark, lake)


def turn_a_bit(lake: Lake) -> None:
    """In the only record of topic t."""
    lake.create_topic("t", 1, {"compression.type": "uncompressed"})
    append(lake, "t", "a value")
    (segment,) = lake.topic("t").state().live(0)
    path = Path(lake.uri.removeprefix("file://")) / "t" / segment.path
    path.write_bytes(path.read_bytes().replace(b"a value", b"a valud"))


@pytest.mark.parametrize("said", [None, "false"], ids=["unset", "switched off"])
def test_a_session_of_the_callers_own_is_had_to_verify_pages_unless_it_says_otherwise(
    spark: SparkSession, lake: Lake, said: str | None
) -> None:
    own = spark.newSession()
    own.conf.unset(VERIFY_PAGES)
    if said is not None:
        own.conf.set(VERIFY_PAGES, said)
    turn_a_bit(lake)
    if said is None:
        for read in ("read_topic", "stream_topic", "create_view"):
            own.conf.unset(VERIFY_PAGES)
            with pytest.raises(Exception, match=r"(?i)corrupt|checksum|page integrity|CRC"):
                NATIVE_READS[read](own, lake)
    else:
        assert texts(read_topic(own, lake, "t")) == ["a valud"]


def test_keys_and_values_are_shown_as_text_and_json(spark: SparkSession, lake: Lake) -> None:
    lake.create_topic("j", partitions=1)
    append(lake, "j", '{"item": "tea", "n": 2}', "no JSON", key=["ann", None])
    native = read_topic(spark, lake, "j").orderBy("offset")
    assert [tuple(row) for row in decoded(native, value_as="text").select("key", "value").collect()] == [
        ("ann", '{"item": "tea", "n": 2}'),
        (None, "no JSON"),
    ]
    create_view(spark, lake, "j", key_as="text", value_as="json")
    found = spark.sql("SELECT key, value:item::string AS item, value:n::int AS n FROM j ORDER BY offset").collect()
    assert [tuple(row) for row in found] == [("ann", "tea", 2), (None, None, None)]
    records = source(spark, lake, subscribe="j")
    assert decoded(records, key_as="bytes", value_as="bytes").schema == records.schema
    with pytest.raises(InvalidConfigError, match="give one of bytes, text, json"):
        decoded(records, value_as="avro")


def test_time_travel_by_version_and_timestamp(spark: SparkSession, topic: Lake) -> None:
    before = topic.topic("t").state().version
    create_cut(topic, "friday")
    history = spark.sql(f"describe history delta.`{topic.uri}/t`")
    at = history.where(f"version = {before}").selectExpr("cast(timestamp as string) at").first().at
    fill(topic, "t", 0, "new")
    topic.delete_records("t", {1: -1})

    assert texts(read_topic(spark, topic, "t")) == sorted(["new", *VALUES[:6]])
    assert texts(read_topic(spark, topic, "t", version=before)) == VALUES
    assert texts(read_topic(spark, topic, "t", cut="friday")) == VALUES
    assert texts(read_topic(spark, topic, "t", timestamp=at)) == VALUES
    newest = read_topic(spark, topic, "t", timestamp="2901-01-01")  # after the last commit
    fill(topic, "t", 0, "newer")
    assert texts(newest) == sorted(["new", *VALUES[:6]])
    assert [row.operation for row in history.orderBy("version").collect()] == ["CREATE TABLE", *["WRITE"] * 6]


def test_time_travel_beyond_the_log_says_so_and_where_to_start(spark: SparkSession, topic: Lake) -> None:
    reason = r"versions 0 to 6 of its log; version 7 is not among them.*log.min.age.ms.*\(0: 0, 1: 0\)"
    with pytest.raises(LogTrimmedError, match=reason):
        read_topic(spark, topic, "t", version=7)
    with pytest.raises(LogTrimmedError, match="version -1"):
        stream_topic(spark, topic, "t", starting_version=-1)
    with pytest.raises(LogTrimmedError, match=r"not reach back to 2001-01-01.*log.min.age.ms.*\(0: 0, 1: 0\)"):
        read_topic(spark, topic, "t", timestamp="2001-01-01")
    with pytest.raises(InvalidOptionError, match="one of version, timestamp and cut"):
        read_topic(spark, topic, "t", version=1, timestamp="2001-01-01")
    for read in (read_topic, stream_topic):
        with pytest.raises(UnknownTopicError, match="Topic 'nope' does not exist"):
            read(spark, topic, "nope")


def test_stream_topic_neither_repeats_nor_breaks_over_maintenance(
    spark: SparkSession, topic: Lake, checkpoint: str
) -> None:
    """A merge, a retention and a change of the configuration come between its batches, and before its restart."""
    collected = Collected()
    query = collected.start(stream_topic(spark, topic, "t", max_files_per_trigger=2), checkpoint)
    await_that(lambda: collected.values == VALUES, query)
    assert max(collected.sizes) == 4

    merge(topic, "t", 0)
    fill(topic, "t", 0, "new1")
    await_that(lambda: collected.values == [*VALUES, "new1"], query)
    topic.delete_records("t", {1: 6})
    topic.alter_topic("t", config={"retention.ms": "1000000"})
    fill(topic, "t", 1, "new2")
    await_that(lambda: collected.values == [*VALUES, "new1", "new2"], query)
    query.stop()

    merge(topic, "t", 0)
    fill(topic, "t", 0, "new3")
    collected.run(stream_topic(spark, topic, "t"), checkpoint)

    assert collected.values == [*VALUES, "new1", "new2", "new3"]
    assert [row.offset for row in collected.rows if row.value == b"new3"] == [7]
    assert in_topic(topic, "t") == sorted([*VALUES[:6], "new1", "new2", "new3"])


def test_stream_topic_starts_at_a_version(spark: SparkSession, topic: Lake, checkpoint: str) -> None:
    collected = Collected()
    collected.run(stream_topic(spark, topic, "t", starting_version=5), checkpoint)
    assert collected.values == ["02a", "02b", "12a", "12b"]


def test_the_source_reads_through_a_merge(spark: SparkSession, topic: Lake, checkpoint: str) -> None:
    """Offsets stay, so a query that was in the middle goes on there."""
    collected = Collected()
    rows = spark.readStream.format("tidelog").options(lake=topic.uri, subscribe="t", startingOffsets="earliest")
    collected.run(rows.load(), checkpoint)
    fill(topic, "t", 0, "new1", "new2")
    merge(topic, "t", 0)
    collected.run(rows.load(), checkpoint)

    assert collected.values == [*VALUES, "new1", "new2"]
    assert [row.offset for row in collected.rows if row.partition == 0] == list(range(8))


def test_names_with_dots_and_a_lake_that_is_not_there(spark: SparkSession, topic: Lake, tmp_path: Path) -> None:
    topic.create_topic("a.b-c")
    append(topic, "a.b-c", *numbered("v", 3))
    assert texts(read_topic(spark, topic, "a.b-c")) == numbered("v", 3)
    with pytest.raises(Exception, match="There is no lake at"):
        read_topic(spark, str(tmp_path / "none"), "t")
