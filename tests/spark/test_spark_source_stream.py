"""The source in streaming queries: triggers, limits, and topics that change while a query runs or rests."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.spark_queries import (
    Collected,
    append,
    await_that,
    ends,
    fails_with,
    fill,
    logged_offsets,
    numbered,
    stream,
)

from tidelog.log.lake import Lake

EARLIEST = {"startingOffsets": "earliest"}


@pytest.fixture
def topic(lake: Lake) -> Lake:
    """Topic `t` of two partitions with 30 and 10 records."""
    lake.create_topic("t", partitions=2)
    fill(lake, "t", 0, *numbered("a", 30))
    fill(lake, "t", 1, *numbered("b", 10))
    return lake


ALL = [*numbered("a", 30), *numbered("b", 10)]


@pytest.mark.parametrize(
    ("trigger", "options", "sizes"),
    [
        ({"availableNow": True}, {"minOffsetsPerTrigger": 16, "maxOffsetsPerTrigger": 16}, [16, 16, 8]),
        ({"once": True}, {"maxOffsetsPerTrigger": 16}, [40]),
    ],
)
def test_triggers_that_end(
    spark: SparkSession,
    topic: Lake,
    checkpoint: str,
    trigger: dict[str, Any],
    options: dict[str, Any],
    sizes: list[int],
) -> None:
    """AvailableNow honours the limits and reaches the end all the same; Once ignores them, as with Kafka."""
    collected = Collected()
    collected.run(stream(spark, topic, subscribe="t", **EARLIEST, **options), checkpoint, trigger)

    assert (collected.sizes, collected.values) == (sizes, ALL)


def test_available_now_ends_where_it_began_to_end(spark: SparkSession, topic: Lake, checkpoint: str) -> None:
    """Records that come while it runs wait for the next run, which reads nothing twice."""

    class Growing(Collected):
        def start(self, *args: Any, **more: Any) -> Any:
            query = super().start(*args, **more)
            append(topic, "t", "late")
            return query

    collected = Growing()
    rows = stream(spark, topic, subscribe="t", maxOffsetsPerTrigger=10, **EARLIEST)
    for _ in range(2):
        collected.run(rows, checkpoint)

    assert set(collected.values) == {*ALL, "late"}
    assert len(collected.values) in (41, 42)  # the second "late" may have come too late


def test_a_rate_limit_with_a_processing_time_trigger_and_progress(
    spark: SparkSession, topic: Lake, checkpoint: str
) -> None:
    collected = Collected()
    rows = stream(spark, topic, subscribe="t", maxOffsetsPerTrigger=16, **EARLIEST)
    query = collected.start(rows, checkpoint, {"processingTime": "0 seconds"})
    await_that(lambda: len(ends(query)) >= 3, query)  # Spark reports a batch after it
    query.stop()

    assert collected.sizes == [16, 16, 8]
    assert ends(query)[:3] == [{"t": {"0": 12, "1": 4}}, {"t": {"0": 24, "1": 8}}, {"t": {"0": 30, "1": 10}}]


def test_a_minimum_waits_for_enough_or_long_enough(spark: SparkSession, topic: Lake, tmp_path: Path) -> None:
    """The first batch never waits, as with Kafka."""
    patient, hasty = Collected(), Collected()
    limit = {"minOffsetsPerTrigger": 5, **EARLIEST}
    waiting = patient.start(stream(spark, topic, subscribe="t", maxTriggerDelay="1h", **limit), str(tmp_path / "1"))
    short = hasty.start(stream(spark, topic, subscribe="t", maxTriggerDelay="300ms", **limit), str(tmp_path / "2"))
    await_that(lambda: patient.values == hasty.values == ALL, waiting)

    append(topic, "t", "c000", "c001")
    await_that(lambda: hasty.values == [*ALL, "c000", "c001"], short)
    assert patient.values == ALL
    append(topic, "t", "c002", "c003", "c004")
    await_that(lambda: patient.values == [*ALL, *numbered("c", 5)], waiting)

    assert patient.sizes == [40, 5]


def test_new_partitions_and_new_topics_of_a_pattern_are_read_from_their_beginning(
    spark: SparkSession, lake: Lake, checkpoint: str
) -> None:
    lake.create_topic("in.a")
    append(lake, "in.a", "old")
    collected = Collected()
    query = collected.start(stream(spark, lake, subscribePattern=r"in\..*"), checkpoint)
    await_that(lambda: (Path(checkpoint) / "commits" / "0").exists(), query)

    lake.alter_topic("in.a", partitions=2)
    fill(lake, "in.a", 1, "new partition")
    lake.create_topic("in.b")
    append(lake, "in.b", "new topic")
    lake.create_topic("out.c")
    append(lake, "out.c", "another")
    await_that(lambda: collected.values == ["new partition", "new topic"], query)
    query.stop()

    lake.create_topic("in.d")
    append(lake, "in.d", "while it was down")
    collected.run(stream(spark, lake, subscribePattern=r"in\..*"), checkpoint)
    assert collected.values == ["new partition", "new topic", "while it was down"]


def test_a_pattern_may_match_nothing_yet(spark: SparkSession, lake: Lake, checkpoint: str) -> None:
    collected = Collected()
    query = collected.start(stream(spark, lake, subscribePattern="late"), checkpoint)
    await_that(lambda: query.recentProgress, query)
    append(lake, "late", "a")
    await_that(lambda: collected.values == ["a"], query)


def test_a_pattern_whose_topics_are_gone_waits_and_reads_what_appears(
    spark: SparkSession, lake: Lake, checkpoint: str
) -> None:
    """No offset of none is logged: Spark could plan no batch from there."""
    append(lake, "in.a", "old")
    collected = Collected()
    rows = stream(spark, lake, subscribePattern=r"in\..*", failOnDataLoss="false", **EARLIEST)
    collected.run(rows, checkpoint)
    lake.delete_topic("in.a")
    collected.run(rows, checkpoint)
    query = collected.start(rows, checkpoint)
    await_that(lambda: query.recentProgress, query)
    query.processAllAvailable()

    append(lake, "in.b", "new")
    await_that(lambda: collected.values == ["new", "old"], query)

    logged = [json.loads(logged_offsets(checkpoint, batch_id)) for batch_id in range(2)]
    assert logged == [{"in.a": {"0": 1}}, {"in.b": {"0": 1}}]


@pytest.mark.parametrize("start", [EARLIEST, {"startingOffsets": '{"t":{"0":0,"1":0}}'}], ids=["earliest", "offsets"])
def test_a_query_whose_first_batch_failed_starts_again_after_its_topic_got_a_partition(
    spark: SparkSession, topic: Lake, checkpoint: str, start: dict[str, str]
) -> None:
    """The batch that Spark logged is run as it was; the new partition comes with the next one."""

    class Failing(Collected):
        def start(self, rows: DataFrame, checkpoint: str, trigger: dict[str, Any] | None = None) -> Any:
            def fail(batch: DataFrame, batch_id: int) -> None:
                raise RuntimeError(f"batch {batch_id} fails")

            return rows.writeStream.foreachBatch(fail).option("checkpointLocation", checkpoint).start()

    rows = stream(spark, topic, subscribe="t", **start)
    with fails_with("batch 0 fails"):
        Failing().run(rows, checkpoint)
    topic.alter_topic("t", partitions=3)
    fill(topic, "t", 2, *numbered("c", 5))

    collected = Collected()
    collected.run(rows, checkpoint)

    assert (collected.values, collected.sizes) == ([*ALL, *numbered("c", 5)], [40, 5])


def delete_records(lake: Lake) -> None:
    append(lake, "t", *numbered("c", 4), partition=[0] * 4)
    lake.delete_records("t", {0: 32})


def delete_topic(lake: Lake) -> None:
    lake.delete_topic("t")
    append(lake, "tu", "u000")


def make_again(lake: Lake) -> None:
    lake.delete_topic("t")
    lake.create_topic("t", partitions=2)
    fill(lake, "t", 0, "new")


@pytest.mark.parametrize(
    ("happens", "words", "kept"),
    [
        (delete_records, "Could not read records in offset [30, 32) for topic partition t-0", ["c002", "c003"]),
        (delete_topic, "Partitions Set(t-0, t-1) have been deleted", ["u000"]),
        (make_again, "Partition t-0 offset was changed from 30 to 1", []),
    ],
)
def test_fail_on_data_loss(
    spark: SparkSession, topic: Lake, checkpoint: str, happens: Any, words: str, kept: list[str]
) -> None:
    """What a query had not read is gone: it says so, or goes on with what there is, as Kafka's source does."""
    collected = Collected()
    rows = stream(spark, topic, subscribePattern="t", **EARLIEST)
    collected.run(rows, checkpoint)
    happens(topic)

    query = collected.start(rows, checkpoint)
    with fails_with("DataLossError", words):
        query.awaitTermination()
    tolerant = collected.start(
        stream(spark, topic, subscribePattern="t", failOnDataLoss="false", **EARLIEST), checkpoint
    )
    await_that(lambda: tolerant.recentProgress and tolerant.recentProgress[-1]["batchId"] >= 1, tolerant)
    tolerant.processAllAvailable()
    assert collected.values == sorted([*ALL, *kept])

    if happens is make_again:
        append(topic, "t", "newer", partition=[0])
        await_that(lambda: collected.values == sorted([*ALL, "newer"]), tolerant)


def test_a_missing_segment_fails_the_query_and_is_named(spark: SparkSession, topic: Lake, checkpoint: str) -> None:
    segment = topic.topic("t").state().live(1)[0]
    path = Path(topic.uri.removeprefix("file://")) / "t" / segment.path
    away = path.rename(path.with_suffix(".away"))
    collected = Collected()
    rows = stream(spark, topic, subscribe="t", **EARLIEST)

    with fails_with("CorruptSegmentError", segment.path, "(partition 1, offsets 0 to 10) is missing"):
        collected.run(rows, checkpoint)
    away.rename(path)
    collected.run(rows, checkpoint)

    assert collected.values == ALL


def test_headers_and_two_sources_in_one_query(spark: SparkSession, lake: Lake, checkpoint: str) -> None:
    append(lake, "a", "1", "3", headers=[[{"key": "h", "value": b"x"}], []])
    append(lake, "b", "2")
    rows = stream(spark, lake, subscribe="a", includeHeaders="true", **EARLIEST).unionByName(
        stream(spark, lake, subscribe="b", **EARLIEST), allowMissingColumns=True
    )
    collected = Collected()
    collected.run(rows, checkpoint)

    assert collected.values == ["1", "2", "3"]
    headers = {row.value.decode(): row.headers for row in collected.rows}
    assert [(h.key, bytes(h.value)) for h in headers["1"]] == [("h", b"x")]
    assert headers["2"] is headers["3"] is None


def test_no_process_outlives_its_query(spark: SparkSession, topic: Lake, tmp_path: Path) -> None:
    def sources() -> int:
        """Processes that hold a source for a query."""
        commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
        return sum(b"python_streaming_source_runner" in command for command in commands)

    rows = stream(spark, topic, subscribe="t", **EARLIEST)
    Collected().run(rows, str(tmp_path / "0"))
    before = sources()
    for n in range(1, 4):
        Collected().run(rows, str(tmp_path / str(n)))

    await_that(lambda: sources() <= before)
