"""A micro-batch that a column `topic` routes to two topics, in one intent, against one whose rows go to one topic."""

import pyarrow as pa
from figures import Row, percentile, summary
from plan import Plan
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from sparks import session

import tidelog

_BATCHES = 10
_BATCH_RECORDS = 1_000
_WARMUP = 4
_ROUNDS = 2
_MUST = 1.5


def run(plan: Plan) -> list[Row]:
    """Queries over the same records run in turn, to their ends; a batch takes what Spark says of it."""
    uri = str(plan.work / "routing")
    with tidelog.Lake(uri) as lake:
        for name in ("in", "one", "routed-0", "routed-1"):
            lake.create_topic(name, partitions=4)
        values = [b"%d" % n + b"v" * 100 for n in range(_BATCH_RECORDS * (_BATCHES + _WARMUP))]
        lake.topic("in").append(pa.table({"value": values, "key": [value[:8] for value in values]}))
    spark = session()
    reader = spark.readStream.format("tidelog").options(lake=uri, subscribe="in", startingOffsets="earliest")
    rows = reader.option("maxOffsetsPerTrigger", _BATCH_RECORDS).load().select("key", "value", "offset")
    routed = rows.withColumn("topic", F.concat(F.lit("routed-"), F.col("offset") % 2))
    times_ms: dict[str, list[float]] = {"one": [], "routed": []}
    for number in range(_ROUNDS):
        for name in sorted(times_ms, reverse=bool(number % 2)):
            checkpoint = str(plan.work / f"routing-checkpoint-{name}-{number}")
            found = _batches_ms(routed if name == "routed" else rows, uri, name, checkpoint)
            times_ms[name].extend(found[_WARMUP:])
    spark.stop()
    _check(uri, len(values) * _ROUNDS)
    one, two = percentile(times_ms["one"], 50), percentile(times_ms["routed"], 50)
    return [
        Row(
            f"micro-batch of {_BATCH_RECORDS:,} records that a column `topic` routes to two topics, against one into"
            " one topic, p50",
            f"≤ {_MUST:g}x",
            f"{two / one:.2f}x ({two:.0f} ms against {one:.0f})",
            two <= _MUST * one,
            {"ms": {name: summary(taken, 1) for name, taken in times_ms.items()}},
        )
    ]


def _batches_ms(rows: DataFrame, uri: str, name: str, checkpoint: str) -> list[float]:
    """Milliseconds of each micro-batch of a query that reads everything there is."""
    writer = rows.drop("offset").writeStream.format("tidelog").options(lake=uri, checkpointLocation=checkpoint)
    writer = writer if name == "routed" else writer.option("topic", name)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [one for one in query.recentProgress if one["numInputRows"]]
    return [one["durationMs"]["triggerExecution"] for one in progress]


def _check(uri: str, records: int) -> None:
    with tidelog.Lake(uri, create=False) as lake:
        ends = {name: sum(end for _, end in lake.offsets(name).values()) for name in lake.topics()}
    if ends["one"] != records or ends["routed-0"] + ends["routed-1"] != records:
        raise RuntimeError(f"the queries wrote {ends}, not {records} records each")
