"""The Spark sink against plain Delta appends of the same DataFrame."""

import shutil
from functools import partial

from figures import Row, interleaved, percentile, speed_ratio, summary
from plan import Plan
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from sparks import PARTITIONS, produce, records, seconds, session

import tidelog


def run(plan: Plan) -> list[Row]:
    """Each round writes the records to a topic, to a Delta table, and to one partitioned like the topic."""
    spark = session()
    rows = records(spark, plan)
    partitioned = rows.withColumn("partition", F.pmod(F.hash("key"), F.lit(PARTITIONS)))
    rows.select(F.sum(F.length("value"))).collect()  # the files are in the page cache from here on
    arms = {
        "tidelog": partial(_to_topic, plan, rows),
        "delta": partial(_to_delta, plan, rows, ()),
        "delta_partitioned": partial(_to_delta, plan, partitioned, ("partition",)),
    }
    times = interleaved(arms, plan.many_rounds, warmups=2)
    spark.stop()
    plain, split = speed_ratio(times, "tidelog", "delta"), speed_ratio(times, "tidelog", "delta_partitioned")
    rate = plan.records / percentile(times["tidelog"], 50) / 1e6
    figures = {"records": plan.records, "seconds": {name: summary(taken) for name, taken in times.items()}}
    what = f"sink, {plan.records / 1e6:g} M records of 100 B keyed, {PARTITIONS} partitions"
    return [
        Row(
            f"{what}, against a plain Delta append",
            "≥ 1.0x",
            f"{plain:.2f}x ({rate:.1f} M records/s)",
            plain >= 1,
            figures,
        ),
        Row(
            "the same, against a Delta append with partitionBy(partition)",
            "≥ 1.5x",
            f"{split:.2f}x",
            split >= 1.5,
            figures,
        ),
    ]


def _to_topic(plan: Plan, rows: DataFrame) -> float:
    folder = plan.work / "sink-lake"
    with tidelog.Lake(str(folder)) as lake:
        lake.create_topic("records", partitions=PARTITIONS)
    took = seconds(lambda: produce(rows, folder, "records"))
    with tidelog.Lake(str(folder), create=False) as lake:
        written = sum(end for _, end in lake.offsets("records").values())
    if written != plan.records:
        raise RuntimeError(f"the sink wrote {written} of {plan.records} records")
    shutil.rmtree(folder)
    return took


def _to_delta(plan: Plan, rows: DataFrame, partition_by: tuple[str, ...]) -> float:
    folder = plan.work / "sink-delta"
    # The table is there before, as the topic is.
    rows.limit(0).write.format("delta").partitionBy(*partition_by).save(str(folder))
    took = seconds(lambda: rows.write.format("delta").partitionBy(*partition_by).mode("append").save(str(folder)))
    shutil.rmtree(folder)
    return took
