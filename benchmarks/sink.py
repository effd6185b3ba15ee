"""The Spark sink against plain Delta appends of the same DataFrame."""

import shutil
from functools import partial

from figures import Row
from jvms import Arms, answer, compared
from plan import Plan
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from sparks import PARTITIONS, produce, records, seconds, session

import tidelog

_PLAIN, _PARTITIONED = "delta", "delta_partitioned"


def run(plan: Plan) -> list[Row]:
    """Each round writes the records to a topic and to a Delta table, a plain or a partitioned one."""
    what = (
        f"sink, {plan.records / 1e6:g} M records of 100 B keyed, {PARTITIONS} partitions, against a plain Delta append"
    )
    split = "the same, against a Delta append with partitionBy(partition)"
    row = partial(compared, __file__, plan, arm="tidelog")
    return [
        row(what, 1.0, against=_PLAIN, processes=plan.jvms),
        row(split, 1.5, against=_PARTITIONED, processes=1),
    ]


def _arms(plan: Plan, arm: str, against: str) -> Arms:
    rows = records(session(), plan)
    rows.select(F.sum(F.length("value"))).collect()  # the files are in the page cache from here on
    if against == _PLAIN:
        delta = partial(_to_delta, plan, rows, ())
    else:
        partitioned = rows.withColumn("partition", F.pmod(F.hash("key"), F.lit(PARTITIONS)))
        delta = partial(_to_delta, plan, partitioned, ("partition",))
    return {arm: partial(_to_topic, plan, rows), against: delta}


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


if __name__ == "__main__":
    answer(_arms)
