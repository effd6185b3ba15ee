"""Spark and a lake on S3: exactly once through a restart, maintenance on executors, native reads by Hadoop's s3a.

What options do, and that they are shown nowhere, is in test_spark_store_options.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.logs import values
from support.spark_queries import forget_commit, in_topic, numbered, run, stream
from support.versitygw import S3Place, Server, in_environment

from tidelog.jobs.on_spark.compaction import SparkCompactor
from tidelog.jobs.on_spark.executor import SparkExecutor
from tidelog.log.lake import Lake
from tidelog.retention.maintenance import maintain


@pytest.fixture
def s3_lake(s3: S3Place) -> Iterator[Lake]:
    with in_environment({}), Lake(s3.uri, options=s3.options) as lake:
        yield lake


def test_a_stream_from_topic_to_topic_is_exactly_once_through_a_restart(
    spark: SparkSession, s3: S3Place, s3_lake: Lake, checkpoint: str
) -> None:
    """The second query runs the first one's last batch again, as after a death before its commit was noted."""

    def move() -> None:
        rows = stream(spark, s3_lake, subscribe="t", startingOffsets="earliest", **s3.options)
        run(rows.select("key", "value"), s3_lake, "u", checkpoint, **s3.options)

    s3_lake.create_topic("t", partitions=2)
    first, second = numbered("a", 20), numbered("b", 20)
    s3_lake.topic("t").append(values(*first, partition=[0, 1] * 10))
    move()
    assert in_topic(s3_lake, "u") == first
    version = s3_lake.topic("u").state().version

    assert forget_commit(checkpoint) == 0
    s3_lake.topic("t").append(values(*second, partition=[0, 1] * 10))
    move()
    assert in_topic(s3_lake, "u") == [*first, *second]
    assert s3_lake.topic("u").state().version == version + 1


def test_maintenance_on_executors_merges_and_compacts(spark: SparkSession, s3: S3Place, s3_lake: Lake) -> None:
    s3_lake.create_topic("many", partitions=2)
    s3_lake.create_topic("keyed", config={"cleanup.policy": "compact", "segment.ms": "1"})
    for n in range(6):
        s3_lake.topic("many").append(values(f"{n}a", f"{n}b", partition=[0, 1]))
        s3_lake.topic("keyed").append(values(f"{n}", key=["k"]))
    expected = in_topic(s3_lake, "many")

    report = maintain(
        s3_lake,
        only=("merge", "compact"),
        now_ms=s3_lake.clock.now_ms() + 1_000,
        executor=SparkExecutor(spark, s3.uri, s3.options),
        compactor=SparkCompactor(spark, s3.uri, s3.options),
    )

    assert not report.failed
    assert in_topic(s3_lake, "many") == expected
    state = s3_lake.topic("many").state()
    assert [len(state.live(p)) for p in (0, 1)] == [1, 1]
    assert in_topic(s3_lake, "keyed") == ["5"]


@pytest.fixture
def elsewhere(s3: S3Place) -> Iterator[S3Place]:
    """A place on a server of its own, with keys of its own, in a bucket of another name: Hadoop keeps a bucket open."""
    server = Server()
    try:
        places = iter(server.place, None)
        yield next(place for place in places if place.folder.name != s3.folder.name)
    finally:
        server.stop()


def test_native_reads_reach_s3_by_the_environment_and_by_a_lakes_options(
    s3: S3Place, elsewhere: S3Place, tmp_path: Path, forked_workers: dict[str, str]
) -> None:
    """In a process of its own: a JVM has the environment that it was started with."""
    with in_environment({}), Lake(elsewhere.uri, options=elsewhere.options) as lake:
        lake.topic("t").append(values("x"))
    with in_environment(s3.environment), Lake(s3.uri):
        program = Path(__file__).with_name("native_s3_session.py")
        words = [s3.uri, elsewhere.uri, json.dumps(elsewhere.options), str(tmp_path / "checkpoint")]
        environment = {**os.environ, **forked_workers}
        done = subprocess.run(
            [sys.executable, str(program), *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.rpartition("told:")[2])
    plans = told.pop("plans")
    assert told == {
        **{way: ["a", "b"] for way in ("source", "native", "time travel", "streamed")},
        **dict.fromkeys(["view", "s3", "s3a"], 2),
        "other server": ["x"],
    }
    for text in [*plans, done.stdout, done.stderr]:
        for place in (s3, elsewhere):
            assert place.secret_access_key not in text
            assert place.access_key_id not in text
