"""Key compaction on Spark against a plain `groupBy(key)` and write of the same records; how its time and its driver's
memory grow.
"""

import os
import shutil
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

from figures import Row, interleaved, percentile, speed_ratio, summary
from plan import Plan
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from sparks import PARTITIONS, produce, seconds, session

import tidelog
from tidelog.jobs.on_spark.compaction import SparkCompactor
from tidelog.retention.compaction.run import compact
from tidelog.spark import read_topic

TOPIC = "keyed"
_RECORDS_A_KEY = 5
_MUST = 0.5
_GROWTH = 12.0
_MEMORY = 1.25


def run(plan: Plan) -> list[Row]:
    """Each round compacts a copy of the topic, and groups and writes the same records."""
    spark = session()
    whole = 1_000_000 if plan.quick else 5_000_000
    small = whole if plan.quick else 2_000_000
    lake = _lake(spark, plan, whole)
    arms = {"compaction": partial(_compacted, spark, plan, lake), "plain": partial(_grouped, spark, plan, lake)}
    times = interleaved(arms, plan.rounds)
    growing = {count: _grown(spark, plan, count) for count in (small, 10 * small)}
    spark.stop()
    return [_speed(times, whole), *_growth(growing, small)]


def _speed(times: dict[str, list[float]], records: int) -> Row:
    ratio = speed_ratio(times, "compaction", "plain")
    rate = records / percentile(times["compaction"], 50) / 1e6
    return Row(
        f"compaction of {records / 1e6:g} M records of 100 B with {records / _RECORDS_A_KEY / 1e6:g} M keys on Spark,"
        " against a plain groupBy(key) and write",
        f"≥ {_MUST}x",
        f"{ratio:.2f}x ({rate:.2f} M records/s)",
        ratio >= _MUST,
        {"records": records, "seconds": {name: summary(taken) for name, taken in times.items()}},
    )


def _growth(growing: dict[int, dict[str, Any]], small: int) -> list[Row]:
    figures = {str(records): found for records, found in growing.items()}
    few, many = growing[small], growing[10 * small]
    time = many["seconds"] / few["seconds"]
    memory = many["driver_bytes"] / few["driver_bytes"]
    what = f"of {10 * small / 1e6:g} M records against {small / 1e6:g} M"
    return [
        Row(f"time of a compaction {what}", f"≤ {_GROWTH:g}x", f"{time:.1f}x", time <= _GROWTH, figures),
        Row(
            f"peak memory of its driver, {few['segments']} and {many['segments']} segments {what}",
            f"flat (≤ {_MEMORY}x)",
            f"{memory:.2f}x ({many['driver_bytes'] / 2**20:.1f} MiB)",
            memory <= _MEMORY,
            figures,
        ),
    ]


def _lake(spark: SparkSession, plan: Plan, records: int) -> Path:
    """A lake whose topic holds this number of records, each key five times."""
    folder = plan.work / f"keyed-{records}"
    if folder.exists():
        return folder
    with tidelog.Lake(str(folder)) as lake:
        lake.create_topic(TOPIC, partitions=PARTITIONS, config={"cleanup.policy": "compact", "segment.ms": "1"})
    produce(_keyed(spark, records), folder, TOPIC)
    return folder


def _keyed(spark: SparkSession, records: int) -> DataFrame:
    number = F.col("id").cast("string")
    digits = F.concat(F.sha2(number, 256), F.sha2(F.concat(number, F.lit("-")), 256))
    key = F.concat(F.lit("key-"), F.lpad((F.col("id") * 7919 % (records // _RECORDS_A_KEY)).cast("string"), 9, "0"))
    return spark.range(0, records, 1, PARTITIONS).select(
        key.cast("binary").alias("key"), F.substring(digits, 1, 100).cast("binary").alias("value")
    )


def _compacted(spark: SparkSession, plan: Plan, source: Path) -> float:
    folder = plan.work / "compacted"
    shutil.copytree(source, folder, copy_function=os.link)  # segments never change
    with tidelog.Lake(str(folder), create=False) as lake:
        took = seconds(lambda: _compact(spark, lake))
    shutil.rmtree(folder)
    return took


def _compact(spark: SparkSession, lake: tidelog.Lake) -> None:
    records = sum(end for _, end in lake.offsets(TOPIC).values())
    report = compact(lake, TOPIC, now_ms=lake.clock.now_ms() + 10, compactor=SparkCompactor(spark, lake.uri))
    if report.failures or report.records_out != records // _RECORDS_A_KEY:
        raise RuntimeError(f"the compaction did not do its work: {report.to_json()}")


def _grouped(spark: SparkSession, plan: Plan, source: Path) -> float:
    folder = plan.work / "grouped"
    rows = read_topic(spark, str(source), TOPIC)
    newest = rows.groupBy("key").agg(F.max_by("value", "offset").alias("value"))
    took = seconds(lambda: newest.write.parquet(str(folder)))
    shutil.rmtree(folder)
    return took


def _grown(spark: SparkSession, plan: Plan, records: int) -> dict[str, Any]:
    """How long a compaction takes, and the most that its driver holds at once."""
    folder = _lake(spark, plan, records)
    took = percentile([_compacted(spark, plan, folder) for _ in range(2 if plan.quick else 3)], 50)
    with tidelog.Lake(str(folder), create=False) as lake:
        state = lake.topic(TOPIC).state()
        segments = sum(len(state.live(p)) for p in range(PARTITIONS))
        tracemalloc.start()
        _compact(spark, lake)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    shutil.rmtree(folder)
    return {"records": records, "segments": segments, "seconds": round(took, 2), "driver_bytes": held}
