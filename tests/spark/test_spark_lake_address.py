"""Which lake a query means, what it says when there is none, and its warnings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.spark_queries import Collected, append, fails_with, in_topic, run, source, stream, texts, write

from tidelog.jobs import export, forget, ingest, retention
from tidelog.log.base.errors import InvalidUriError
from tidelog.log.lake import Lake
from tidelog.spark import read_topic


@pytest.fixture
def topic(lake: Lake) -> Lake:
    append(lake, "t", "a")
    return lake


def test_kafka_bootstrap_servers_may_hold_the_lake_and_lake_wins(
    spark: SparkSession, topic: Lake, checkpoint: str
) -> None:
    """A job moves over by its format and its address."""
    address = {"kafka.bootstrap.servers": f" {topic.uri} "}
    moved = spark.read.format("tidelog").options(subscribe="t", **address).load()
    assert texts(moved) == ["a"]
    moved.write.format("tidelog").options(topic="u", **address).mode("append").save()
    assert in_topic(topic, "u") == ["a"]

    elsewhere = {"kafka.bootstrap.servers": "/nowhere"}
    assert texts(source(spark, topic, subscribe="t", **elsewhere)) == ["a"]
    rows = stream(spark, topic, subscribe="t", startingOffsets="earliest", **elsewhere).select("value")
    run(rows, topic, "u", checkpoint, **elsewhere)
    assert in_topic(topic, "u") == ["a", "a"]


SLIPS = {
    "broker:9092": "'broker:9092' is the address of Kafka brokers",
    "s3:/bucket/lake": "is nearly 's3://bucket/lake'",
    "~/lake": "begins with '~'",
    "C:\\lake": "is a path of Windows",
}


def test_an_address_that_is_none_is_refused(spark: SparkSession, checkpoint: str) -> None:
    rows = spark.range(1).selectExpr("'v' value")
    for address, why in SLIPS.items():
        options = {"kafka.bootstrap.servers": address, "subscribe": "t", "topic": "t"}
        with fails_with("Option 'kafka.bootstrap.servers'", why):
            spark.read.format("tidelog").options(**options).load().collect()
        with fails_with("Option 'kafka.bootstrap.servers'", why):
            rows.write.format("tidelog").options(**options).mode("append").save()
        with fails_with("Option 'kafka.bootstrap.servers'", why):
            Collected().run(spark.readStream.format("tidelog").options(**options).load(), checkpoint)
        with pytest.raises(InvalidUriError, match=why):
            read_topic(spark, address, "t")


@pytest.mark.parametrize("job", [ingest, export, retention, forget], ids=lambda job: job.__name__)
def test_a_job_refuses_it_before_spark_starts(job: Any, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = {
        ingest: ["--topic", "t", "--from", "csv", "--load", "/data"],
        export: ["--topic", "t", "--to", "json", "--save", "/data"],
        forget: ["--topic", "t", "--key", "k"],
    }
    for address, why in SLIPS.items():
        assert job.main([*arguments.get(job, []), "--lake", address]) == 1
        assert why in " ".join(capfd.readouterr().err.split())


def test_a_lake_that_is_not_there_is_refused_and_not_made(spark: SparkSession, tmp_path: Path, checkpoint: str) -> None:
    options = {"lake": str(tmp_path / "none"), "subscribe": "t", "topic": "t"}
    words = ("LakeNotFoundError", f"There is no lake at file://{tmp_path}/none", "Check the address, or create it")

    with fails_with(*words):
        spark.read.format("tidelog").options(**options).load().collect()
    with fails_with(*words):
        spark.range(1).selectExpr("'v' value").write.format("tidelog").options(**options).mode("append").save()
    with fails_with(*words):
        Collected().run(spark.readStream.format("tidelog").options(**options).load(), checkpoint)
    assert not (tmp_path / "none").exists()


def test_a_table_is_no_lake(spark: SparkSession, topic: Lake) -> None:
    with fails_with("NotATopicError", f"{topic.uri}/t is a Delta table, not a lake"):
        spark.read.format("tidelog").options(lake=f"{topic.uri}/t", subscribe="t").load().collect()


def test_a_lake_that_goes_away_under_a_query_fails_it(spark: SparkSession, topic: Lake, checkpoint: str) -> None:
    rows = stream(spark, topic, subscribe="t", startingOffsets="earliest").select("value")
    run(rows, topic, "u", checkpoint)
    append(topic, "t", "b")
    (Path(topic.uri.removeprefix("file://")) / "__lake.json").unlink()

    with fails_with("LakeFileLostError", f"{topic.uri} holds tables"):
        run(rows, topic, "u", checkpoint)


def said(log: Path, act: Callable[[], Any]) -> str:
    """What Spark's workers write to stderr meanwhile."""
    before = log.stat().st_size
    act()
    return log.read_bytes()[before:].decode()


def test_ignored_settings_are_said_once_and_together(
    spark: SparkSession, spark_log: Path, topic: Lake, checkpoint: str
) -> None:
    settings = {"kafka.security.protocol": "SASL_SSL", "kafka.fetch.max.bytes": "5", "kafka.group.id": "g"}
    ignored = "Ignored, since there is no Kafka client to configure: kafka.fetch.max.bytes, kafka.security.protocol."

    read = said(spark_log, lambda: source(spark, topic, subscribe="t", **settings).collect())
    assert read.count(ignored) == 1
    assert "Kafka option 'kafka.group.id' has been set on this query" in read

    def one_batch_each() -> None:
        rows = stream(spark, topic, subscribe="t", startingOffsets="earliest", maxOffsetsPerTrigger=1, **settings)
        Collected().run(rows, checkpoint)

    append(topic, "t", "b", "c")
    assert said(spark_log, one_batch_each).count(ignored) == 1

    rows = spark.createDataFrame([("v",)], "value string")
    written = said(spark_log, lambda: [write(rows, topic, "u", **{"kafka.linger.ms": "5"}) for _ in range(3)])
    assert written.count("no Kafka client to configure: kafka.linger.ms.") == 1


def test_skipped_records_are_said(spark: SparkSession, spark_log: Path, topic: Lake) -> None:
    append(topic, "t", "b")
    topic.delete_records("t", {0: 1})
    lost = {"subscribe": "t", "startingOffsets": '{"t":{"0":0}}', "failOnDataLoss": "false"}

    text = said(spark_log, lambda: source(spark, topic, **lost).collect())

    assert "Skip missing records in [0, 1)(GroupId: spark-kafka-relation-" in text
    assert "TopicPartition: t-0)" in text
