"""Where a streaming query starts: at the latest offset by default, and then nothing is lost, whatever breaks off."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from support.spark_queries import (
    AVAILABLE_NOW,
    Collected,
    append,
    await_that,
    fails_with,
    forget_commit,
    logged_offsets,
    numbered,
    stream,
)

from tidelog.log.lake import Lake

NOON_MS = 1_700_000_000_000
FAR_MS = 4_000_000_000_000


@pytest.fixture
def topic(lake: Lake) -> Lake:
    """Topic `t` of two partitions with ten old records."""
    lake.create_topic("t", partitions=2)
    append(lake, "t", *numbered("old", 10), key=numbered("k", 10), timestamp=[NOON_MS + n for n in range(10)])
    return lake


def started(collected: Collected, checkpoint: str) -> bool:
    """Whether the first batch, which is empty, is committed."""
    return (Path(checkpoint) / "commits" / "0").exists()


def test_a_new_query_starts_at_the_latest_offset(spark: SparkSession, topic: Lake, checkpoint: str) -> None:
    """What comes after the start is delivered, also while the query was down."""
    collected = Collected()
    query = collected.start(stream(spark, topic, subscribe="t"), checkpoint)
    await_that(lambda: started(collected, checkpoint), query)
    append(topic, "t", "new1")
    await_that(lambda: collected.values == ["new1"], query)
    query.stop()

    append(topic, "t", "new2")
    collected.run(stream(spark, topic, subscribe="t"), checkpoint)

    assert collected.values == ["new1", "new2"]


def test_a_first_batch_that_is_run_again_loses_nothing(spark: SparkSession, topic: Lake, checkpoint: str) -> None:
    """Spark asks for the start again then, and it would be a later one: records between would be lost.

    tests/unit/sources/test_source_limits.py has the other starts that are later ones then.
    """
    collected = Collected()
    collected.run(stream(spark, topic, subscribe="t"), checkpoint)
    assert (collected.values, forget_commit(checkpoint)) == ([], 0)

    append(topic, "t", *numbered("new", 5))
    collected.run(stream(spark, topic, subscribe="t"), checkpoint)
    append(topic, "t", "later")
    collected.run(stream(spark, topic, subscribe="t"), checkpoint)

    assert collected.values == ["later", *numbered("new", 5)]


def test_a_first_batch_run_again_before_anything_new_came(spark: SparkSession, topic: Lake, checkpoint: str) -> None:
    collected = Collected()
    collected.run(stream(spark, topic, subscribe="t"), checkpoint)
    forget_commit(checkpoint)
    query = collected.start(stream(spark, topic, subscribe="t"), checkpoint)
    await_that(lambda: started(collected, checkpoint), query)
    append(topic, "t", "new")
    await_that(lambda: collected.values == ["new"], query)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ({"startingOffsets": "earliest"}, numbered("old", 10)),
        ({"startingTimestamp": NOON_MS + 7}, numbered("old", 3, first=7)),
        ({"startingOffsets": '{"t":{"0":0,"1":-1}}'}, None),
        ({"startingTimestamp": FAR_MS, "startingOffsetsByTimestampStrategy": "latest"}, []),
    ],
)
def test_other_starts(
    spark: SparkSession, topic: Lake, checkpoint: str, start: dict[str, Any], expected: list[str] | None
) -> None:
    collected = Collected()
    collected.run(stream(spark, topic, subscribe="t", **start), checkpoint)

    if expected is None:
        expected = sorted(v.decode() for b in topic.topic("t").read(0) for v in b.column("value").to_pylist())
        assert 0 < len(expected) < 10
    assert collected.values == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": "nope"}, ["UnknownTopicError", "Topic 'nope' does not exist"]),
        ({"startingOffsets": '{"t":{"0":0}}'}, ["If startingOffsets contains specific offsets, you must specify all"]),
    ],
)
def test_bad_starts_fail_the_query_with_the_reason(
    spark: SparkSession, topic: Lake, checkpoint: str, options: dict[str, Any], words: list[str]
) -> None:
    with fails_with(*words):
        Collected().run(stream(spark, topic, **{"subscribe": "t", **options}), checkpoint)


@pytest.mark.parametrize("trigger", [AVAILABLE_NOW, {"processingTime": "0 seconds"}], ids=["now", "processing"])
def test_options_that_are_refused_fail_the_query_with_nothing_but_the_reason(
    spark: SparkSession, topic: Lake, checkpoint: str, trigger: dict[str, Any]
) -> None:
    """Spark's runner fails by itself, too, over a reader that can't be made."""
    with pytest.raises(StreamingQueryException, match="ending offset not valid") as caught:
        Collected().run(stream(spark, topic, subscribe="t", endingOffsets="latest"), checkpoint, trigger)
    assert "UnboundLocalError" not in str(caught.value)


def test_offsets_are_kafkas_json_and_kafkas_own_are_taken(spark: SparkSession, topic: Lake, checkpoint: str) -> None:
    """A job that moves over from Kafka keeps its checkpoint."""
    collected = Collected()
    rows = stream(spark, topic, subscribe="t", startingOffsets="earliest")
    query = collected.run(rows, checkpoint)
    ends = {"t": {str(p): end for p, (_, end) in topic.offsets("t").items()}}
    assert json.loads(logged_offsets(checkpoint, 0)) == ends

    logged = Path(checkpoint) / "offsets" / "0"
    text = logged.read_text()
    spaced = logged_offsets(checkpoint, 0)
    as_kafka_writes = json.dumps({"t": dict(reversed(list(ends["t"].items())))}, separators=(",", ":"))
    assert as_kafka_writes != spaced
    logged.write_text(text.replace(spaced, as_kafka_writes))
    (logged.parent / ".0.crc").unlink(missing_ok=True)
    append(topic, "t", "new", partition=[0])
    query = collected.run(rows, checkpoint)

    assert collected.values == ["new", *numbered("old", 10)]
    progress = query.recentProgress[0]["sources"][0]
    later = {"t": {**ends["t"], "0": ends["t"]["0"] + 1}}
    assert [json.loads(progress[name]) for name in ("startOffset", "endOffset", "latestOffset")] == [ends, later, later]
