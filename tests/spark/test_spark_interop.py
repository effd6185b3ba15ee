"""delta-spark, deltalake and tidelog read the same rows of one topic, while it grows."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from support.careless_engines import careless
from support.nursery import ForkedPython
from support.spark_queries import append, await_that, fill, in_topic, numbered, source, texts

from tidelog.check.lake import repair
from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.delta import layout
from tidelog.log.lake import Lake

Rows = list[tuple[int, int, str]]


@pytest.fixture
def topic(lake: Lake) -> Lake:
    """Topic `t` of two partitions, past its first checkpoint."""
    lake.create_topic("t", partitions=2, config={"log.checkpoint.interval": "10"})
    for n in range(15):
        fill(lake, "t", n % 2, *numbered(f"{n:02d}-", 4))
    lake.close()
    return lake


def by_deltalake(lake: Lake) -> Rows:
    table = DeltaTable(f"{lake.uri}/t").to_pyarrow_table()
    return sorted((r["partition"], r["base_offset"] + r["position"], r["value"].decode()) for r in table.to_pylist())


def by_delta_spark(spark: SparkSession, lake: Lake) -> Rows:
    rows = spark.read.format("delta").load(f"{lake.uri}/t")
    return sorted((r.partition, r.base_offset + r.position, r.value.decode()) for r in rows.collect())


def by_source(spark: SparkSession, lake: Lake) -> Rows:
    return sorted((r.partition, r.offset, r.value.decode()) for r in source(spark, lake, subscribe="t").collect())


def by_topic(lake: Lake) -> Rows:
    topic = lake.topic("t")
    return sorted(
        (r["partition"], r["offset"], r["value"].decode()) for p in (0, 1) for b in topic.read(p) for r in b.to_pylist()
    )


def test_all_engines_read_the_same_rows(spark: SparkSession, topic: Lake) -> None:
    rows = by_topic(topic)
    assert len(rows) == 60
    assert by_deltalake(topic) == by_delta_spark(spark, topic) == by_source(spark, topic) == rows


def test_delta_spark_reads_through_a_checkpoint_of_ours_what_it_reads_without(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """Records, configuration and history of files, when the entries that the checkpoint holds are there no more."""
    lake.create_topic("t", partitions=2, config={"retention.ms": "5"})
    for n in range(12):
        fill(lake, "t", n % 2, *numbered(f"{n:02d}-", 4))
    lake.delete_records("t", {0: 8, 1: 4})
    table = Path(lake.uri.removeprefix("file://")) / "t"
    with careless(table) as address:
        spark.sql(f"delete from delta.`{address}` where base_offset = 16 or position = 1")
    assert repair(lake, execute=True).report.green
    append(lake, "t", "after", partition=[1])
    copy = Lake(str(tmp_path / "copy"))
    shutil.copytree(table, tmp_path / "copy" / "t")
    version = copy.topic("t").state().version
    write_checkpoint(copy.storage, "t", version - 1, copy.clock.now_ms())
    for entry in range(version):
        (tmp_path / "copy" / "t" / layout.entry_path(entry)).unlink()

    def detail(of: Lake) -> dict[str, object]:
        said = spark.sql(f"describe detail delta.`{of.uri}/t`").first()
        assert said is not None
        keys = ("id", "name", "createdAt", "partitionColumns", "numFiles", "sizeInBytes", "properties")
        return {key: said[key] for key in (*keys, "minReaderVersion", "minWriterVersion")}

    assert by_delta_spark(spark, copy) == by_delta_spark(spark, lake) == by_topic(lake)
    assert detail(copy) == detail(lake)


# Some 50 appends a second: the readers' time goes with the number of files.
WRITER = """
import sys, time
import pyarrow as pa
from tidelog.log.lake import Lake

topic = Lake(sys.argv[1], create=False).topic("t")
for number in range(1_000_000):
    topic.append(pa.table({"value": [f"{number:07d}"] * 3, "partition": pa.array([number % 2] * 3)}), acks=1)
    time.sleep(0.02)
"""


def test_every_engine_reads_while_another_process_appends(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """No read fails, and each sees a prefix of every partition."""
    lake.create_topic("t", partitions=2, config={"log.checkpoint.interval": "50"})
    script = tmp_path / "writer.py"
    script.write_text(WRITER)
    writer = ForkedPython([sys.executable, str(script), lake.uri], stderr=subprocess.PIPE)
    try:
        await_that(lambda: lake.offsets("t")[0][1] > 150)
        for read in (
            lambda: by_deltalake(lake),
            lambda: by_delta_spark(spark, lake),
            lambda: by_source(spark, lake),
        ):
            for _ in range(2):
                least = lake.offsets("t")
                rows = read()
                for p in (0, 1):
                    offsets = [offset for partition, offset, _ in rows if partition == p]
                    assert offsets == list(range(len(offsets)))
                    assert len(offsets) >= least[p][1]
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.communicate()

    assert texts(source(spark, lake, subscribe="t")) == in_topic(lake, "t")
