"""Maintenance with Spark tasks for its units: the same as in one process, and the driver opens no segment."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from support.faults import FaultyStorage
from support.spark_queries import fails_with, write

from tidelog.jobs import compaction, forget, maintain, merge, retention
from tidelog.jobs.on_spark.compaction import SparkCompactor
from tidelog.jobs.on_spark.executor import SparkExecutor
from tidelog.log.lake import Lake
from tidelog.retention.compaction.run import LocalCompactor, compact
from tidelog.retention.maintenance import maintain as maintain_lake
from tidelog.retention.rewrites.executors import LocalExecutor
from tidelog.spark import read_topic

COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1", "delete.retention.ms": "1000"}
DAY_MS = 86_400_000


def fill(lake: Lake, topic: str, appends: int = 12, keys: int = 7) -> None:
    """Appends of 5 records: keys come again and again, every eleventh record is a tombstone."""
    for first in range(0, appends * 5, 5):
        numbers = range(first, first + 5)
        lake.topic(topic).append(
            pa.table(
                {
                    "key": [f"k{n * n % keys}" for n in numbers],
                    "value": pa.array([None if n % 11 == 0 else f"v{n}".encode() for n in numbers], pa.binary()),
                }
            )
        )


def rows_of(lake: Lake, topic: str) -> list[tuple[Any, ...]]:
    handle = lake.topic(topic)
    return [
        (row["partition"], row["offset"], row["key"], row["value"])
        for partition in handle.offsets()
        for batch in handle.read(partition)
        for row in batch.to_pylist()
    ]


def newest_of(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(
        {(partition, key): (partition, offset, key, value) for partition, offset, key, value in rows}.values()
    )


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Lake, Lake]]:
    """Two lakes with the same records, compacted topic `t` of 3 partitions."""
    with Lake(str(tmp_path / "one")) as one, Lake(str(tmp_path / "other")) as other:
        for lake in (one, other):
            lake.create_topic("t", partitions=3, config=COMPACTED)
            fill(lake, "t")
        yield one, other


def native(spark: SparkSession, lake: Lake) -> DataFrame:
    return read_topic(spark, lake, "t").drop("timestamp")


def test_spark_keeps_what_one_process_keeps(spark: SparkSession, both: tuple[Lake, Lake]) -> None:
    one, other = both
    expected = newest_of(rows_of(one, "t"))
    now_ms = one.clock.now_ms() + 10
    report = compact(one, "t", now_ms=now_ms, compactor=SparkCompactor(spark, one.uri))
    compact(other, "t", now_ms=now_ms, compactor=LocalCompactor(other.storage, other.ids))

    assert rows_of(one, "t") == expected
    assert (report.records_out, report.failures) == (len(expected), {})
    assert_df_equality(native(spark, one), native(spark, other), ignore_row_order=True)

    later_ms = now_ms + 1001
    for lake, compactor in ((one, SparkCompactor(spark, one.uri)), (other, LocalCompactor(other.storage, other.ids))):
        compact(lake, "t", now_ms=later_ms, compactor=compactor)
        assert rows_of(lake, "t") == [row for row in expected if row[3] is not None]
        assert compact(lake, "t", now_ms=later_ms + DAY_MS, compactor=compactor).version is None


def test_small_slices_and_units_change_nothing(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkCompactor, "unit_bytes", lambda *_: 4_000)
    lake.create_topic("t", partitions=2, config=COMPACTED)
    fill(lake, "t", appends=30, keys=50)
    expected = newest_of(rows_of(lake, "t"))
    report = compact(lake, "t", now_ms=lake.clock.now_ms() + 10, compactor=SparkCompactor(spark, lake.uri))
    assert rows_of(lake, "t") == expected
    assert report.units > 4


def test_a_segment_that_cant_be_read_stops_its_partition_alone(spark: SparkSession, lake: Lake) -> None:
    lake.create_topic("t", partitions=3, config=COMPACTED)
    fill(lake, "t")
    expected = [row for row in newest_of(rows_of(lake, "t")) if row[0] != 1]
    before = [s.path for s in lake.topic("t").state().live(1)]
    broken = before[2]
    lake.storage.put(f"t/{broken}", b"no parquet")

    report = compact(lake, "t", now_ms=lake.clock.now_ms() + 10, compactor=SparkCompactor(spark, lake.uri))

    assert list(report.failures) == [1]
    assert broken in report.failures[1]
    state = lake.topic("t").state()
    assert [s.path for s in state.live(1)] == before
    assert 1 not in state.cleans
    assert sorted(state.cleans) == [0, 2]
    handle = lake.topic("t")
    kept = [(p, r["offset"], r["key"], r["value"]) for p in (0, 2) for b in handle.read(p) for r in b.to_pylist()]
    assert kept == expected


def test_the_driver_opens_no_segment(spark: SparkSession, lake: Lake) -> None:
    """Not to compact, not to merge, not to expire; the same work in this process opens many."""
    lake.create_topic("t", partitions=3, config={**COMPACTED, "cleanup.policy": "compact,delete"})
    fill(lake, "t")
    opened: list[str] = []

    def hook(method: str, path: str, phase: str) -> None:
        if phase == "before" and method in ("open", "get") and path.endswith(".parquet") and "_delta_log" not in path:
            opened.append(path)

    now_ms = lake.clock.now_ms() + 10
    with Lake(lake.uri, storage=FaultyStorage(lake.storage, hook)) as watched:
        report = maintain_lake(
            watched,
            now_ms=now_ms,
            executor=SparkExecutor(spark, lake.uri),
            compactor=SparkCompactor(spark, lake.uri),
        )
        assert not report.failed
        assert opened == []
        fill(watched, "t")
        maintain_lake(
            watched,
            now_ms=now_ms + DAY_MS,
            executor=LocalExecutor(watched.storage, watched.ids),
            compactor=LocalCompactor(watched.storage, watched.ids),
        )
        assert opened


def test_the_sink_gives_a_compacted_topic_no_record_without_a_key(spark: SparkSession, lake: Lake) -> None:
    lake.create_topic("t", partitions=1, config=COMPACTED)
    rows = spark.createDataFrame([("a", "v"), (None, "w")], "key string, value string")
    with fails_with("without a key"):
        write(rows, lake, "t")
    assert rows_of(lake, "t") == []


def test_a_job_is_the_command_with_spark(spark: SparkSession, lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.create_topic("c", partitions=2, config={**COMPACTED, "cleanup.policy": "compact,delete"})
    lake.create_topic("d", partitions=1, config={"retention.ms": "1000"})
    for topic in ("c", "d"):
        fill(lake, topic)
    expected = newest_of(rows_of(lake, "c"))
    now = str(lake.clock.now_ms() + 10)
    for job in (compaction, merge):
        assert job.main(["--lake", lake.uri, "--now", now, "--format", "json"]) == 0
        assert {topic["topic"] for topic in json.loads(capsys.readouterr().out)["topics"]} == {"c", "d"}
    assert rows_of(lake, "c") == expected
    assert len(lake.topic("d").state().live(0)) < 12

    late = str(lake.clock.now_ms() + 2000)
    assert retention.main(["--lake", lake.uri, "--topic", "d", "--now", late]) == 0
    assert rows_of(lake, "d") == []
    assert maintain.main(["--lake", lake.uri, "--pattern", "c|d", "--dry-run", "--format", "json"]) == 0
    assert "c" in capsys.readouterr().out


def test_keys_are_forgotten_by_spark(spark: SparkSession, lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.create_topic("t", partitions=2)
    fill(lake, "t")
    others = [row for row in rows_of(lake, "t") if row[2] not in (b"k1", b"k2")]
    # Time travel reaches the files for five minutes more, and they wait so long.
    assert forget.main(["--lake", lake.uri, "--topic", "t", "--key", "k1", "--key", "k2", "--format", "json"]) == 4
    told = json.loads(capsys.readouterr().out)["topics"][0]
    assert told["records"] == 60 - len(others)
    assert told["waiting"]
    assert rows_of(lake, "t") == others


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--topic", "t", "--pattern", "t"], 2, "not both"),
        (["--every", "5 parsecs"], 2, "no interval"),
        (["--topic", "nowhere"], 1, "nowhere"),
    ],
)
def test_what_is_wrong_is_told(
    spark: SparkSession, lake: Lake, arguments: list[str], code: int, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert maintain.main(["--lake", lake.uri, *arguments]) == code
    told = capfd.readouterr()
    assert words in told.out + told.err
