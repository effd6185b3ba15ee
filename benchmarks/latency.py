"""From one record's append to its copy's commit by a streaming query's sink."""

import random
import time

import pyarrow as pa
from figures import Row, percentile, summary
from plan import Plan
from pyspark.sql.streaming import StreamingQuery
from sparks import session

import tidelog

_WARMUP = 30
_PATIENCE_S = 60.0


def run(plan: Plan) -> list[Row]:
    """A query copies topic `in` to topic `out`; one record at a time is appended and looked for."""
    spark = session()
    uri = str(plan.work / "latency")
    with tidelog.Lake(uri) as lake:
        for name in ("in", "out"):
            lake.create_topic(name, partitions=1)
        rows = spark.readStream.format("tidelog").option("lake", uri).option("subscribe", "in")
        rows = rows.option("startingOffsets", "earliest").load()
        writer = rows.select("key", "value").writeStream.format("tidelog").option("lake", uri).option("topic", "out")
        query = writer.option("checkpointLocation", str(plan.work / "latency-checkpoint")).start()
        times_ms = [_round_trip_ms(lake, query) for _ in range(_WARMUP + plan.latencies)][_WARMUP:]
        phases = _phases(query.recentProgress)
        query.stop()
    spark.stop()
    p50, p99 = percentile(times_ms, 50), percentile(times_ms, 99)
    return [
        Row(
            "one record, from append to the sink's commit in a running streaming query, p50",
            "≤ 300 ms",
            f"{p50:.0f} ms (p99 {p99:.0f})",
            p50 <= 300,
            {"ms": summary(times_ms, 1), "phases_p50_ms": phases},
        )
    ]


def _round_trip_ms(lake: tidelog.Lake, query: StreamingQuery) -> float:
    time.sleep(random.random() * 0.2)  # at any point of the query's turn
    source, copy = lake.topic("in"), lake.topic("out")
    before = copy.offsets()[0][1]
    began = time.perf_counter()
    source.append(pa.table({"key": [b"k"], "value": [b"v" * 100]}), acks=1)
    while copy.offsets()[0][1] == before:
        if time.perf_counter() - began > _PATIENCE_S:
            raise RuntimeError(f"the query copied nothing for {_PATIENCE_S:g} s: {query.exception() or query.status}")
        time.sleep(0.001)
    return (time.perf_counter() - began) * 1e3


def _phases(progress: list[dict[str, dict[str, int]]]) -> dict[str, float]:
    """The median of each phase of the micro-batches that had input."""
    busy = [one["durationMs"] for one in progress if one["numInputRows"]]
    return {phase: percentile([d.get(phase, 0) for d in busy], 50) for phase in (busy[-1] if busy else {})}
