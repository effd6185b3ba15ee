"""On Spark's own cluster, the lake on S3: a streaming pair and a maintenance job, and a worker dies in the middle."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.spark_cluster import PATIENCE_S, Cluster, cluster_in
from support.versitygw import S3Place, fresh_place, in_environment
from support.waiting import eventually

from tidelog.cli.main import app
from tidelog.commands.failures import exit_code_of
from tidelog.log.lake import Lake

JOBS = Path(__file__).resolve().parents[2] / "jobs"
PAIR = """
import sys
from tidelog.spark.session import session

lake, checkpoints = sys.argv[1:]
spark = session("pair", delta=False)
counted = spark.readStream.format("rate").option("rowsPerSecond", 200).option("numPartitions", 2).load()
into = counted.selectExpr("cast(value as string) key", "cast(value as string) value").writeStream.format("tidelog")
each = {"processingTime": "500 milliseconds"}  # batch after batch would take the machine from all else
into.options(lake=lake, topic="in", checkpointLocation=checkpoints + "/in").trigger(**each).start()
read = spark.readStream.format("tidelog").options(lake=lake, subscribe="in", startingOffsets="earliest").load()
out = read.selectExpr("key", "value").writeStream.format("tidelog")
out.options(lake=lake, topic="out", checkpointLocation=checkpoints + "/out").trigger(**each).start()
spark.streams.awaitAnyTermination()
"""
SEGMENTS = 150


@pytest.fixture(scope="module")
def place() -> Iterator[S3Place]:
    """A place on S3, which the environment leads to: that of this process, of workers and so of executors."""
    with fresh_place() as found, in_environment(found.environment):
        yield found


@pytest.fixture(scope="module")
def cluster(
    place: S3Place, tmp_path_factory: pytest.TempPathFactory, forked_workers: dict[str, str]
) -> Iterator[Cluster]:
    # Spark gives the process of a streaming source 10 s to start. A fork needs less on a machine however busy.
    forked = {"PYSPARK_DRIVER_PYTHON": forked_workers["PYSPARK_DRIVER_PYTHON"]}
    with cluster_in(tmp_path_factory.mktemp("cluster"), forked) as running:
        yield running


@pytest.fixture
def lake(place: S3Place) -> Iterator[Lake]:
    with Lake(place.uri) as opened:
        yield opened


def values(lake: Lake, topic: str) -> list[list[int]]:
    """The values of each partition, in order."""
    handle = lake.topic(topic)
    return [
        [int(value) for batch in handle.read(p) for value in batch.column("value").to_pylist()]
        for p in sorted(handle.offsets())
    ]


def count(lake: Lake, topic: str) -> int:
    return sum(end for _, end in lake.offsets(topic).values())


def keyed(lake: Lake) -> dict[bytes, tuple[int, int, bytes]]:
    """{key: (partition, offset, value)} of the newest records of topic `keyed`."""
    rows: list[dict[str, Any]] = [
        row for p in (0, 1) for batch in lake.topic("keyed").read(p) for row in batch.to_pylist()
    ]
    return {row["key"]: (row["partition"], row["offset"], row["value"]) for row in rows}


def records(lake: Lake) -> int:
    """How many records of topic `keyed` are left."""
    return sum(batch.num_rows for p in (0, 1) for batch in lake.topic("keyed").read(p))


def fill(lake: Lake) -> None:
    """Topic `keyed`: with small segments enough for many units of 8 KB."""
    config = {"cleanup.policy": "compact", "segment.ms": "1", "segment.bytes": "8000"}
    lake.create_topic("keyed", partitions=2, config=config)
    for first in range(0, SEGMENTS * 20, 20):
        numbers = range(first, first + 20)
        lake.topic("keyed").append(
            pa.table({"key": [f"k{n % 301}" for n in numbers], "value": [f"v{n}" for n in numbers]}), acks=1
        )
    for topic in ("in", "out"):
        lake.create_topic(topic, partitions=2)


def test_a_worker_dies_while_jobs_run(cluster: Cluster, place: S3Place, lake: Lake, tmp_path: Path) -> None:
    fill(lake)
    newest = keyed(lake)
    script = tmp_path / "pair.py"
    script.write_text(PAIR)
    pair = cluster.submit("pair", script, lake.uri, str(tmp_path / "checkpoints"))
    eventually(lambda: count(lake, "out") > 0 or pair.poll() is not None, "records that are copied", PATIENCE_S)
    assert pair.poll() is None, cluster.why("pair")

    folder = place.folder / "lake/keyed"
    before = set(folder.glob("partition=*/*.parquet"))
    job = cluster.submit("job", JOBS / "maintain.py", "--lake", lake.uri, "--topic", "keyed", "--format", "json")
    eventually(
        lambda: set(folder.glob("partition=*/*.parquet")) - before or job.poll() is not None,
        "staged segments",
        PATIENCE_S,
    )
    was_running = job.poll() is None
    assert pair.poll() is None, cluster.why("pair")
    cluster.kill_worker(1)
    copied = count(lake, "out")

    assert job.wait(240) == 0, cluster.why("job")
    assert was_running, cluster.why("job")
    told = json.loads(cluster.output("job"))["topics"][0]
    assert told["compact"]["failures"] == {}
    assert keyed(lake) == newest
    assert records(lake) == len(newest)
    eventually(
        lambda: count(lake, "out") > copied + 200 or pair.poll() is not None,
        "records copied by the other one",
        PATIENCE_S,
    )
    assert pair.poll() is None, cluster.why("pair")

    cluster.end(pair)
    produced, taken = values(lake, "in"), values(lake, "out")
    for made, copy in zip(produced, taken, strict=True):
        assert copy == made[: len(copy)]
    assert exit_code_of(app, "tidelog", ["--lake", lake.uri, "check", "--deep"]) == 0
