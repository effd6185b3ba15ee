"""From one record's append to its copy's commit by a streaming query's sink.

Beside it a query whose source and sink do nothing: what Spark takes, whichever source and sink in Python it runs.
"""

import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import empty_python
import pyarrow as pa
from figures import Row, interleaved, percentile, summary
from plan import Plan
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from sparks import session

import tidelog
from tidelog.log.topic import Topic

HERE = Path(__file__).resolve().parent

_WARMUP = 10
_PATIENCE_S = 60.0
_MOST = 1.1

# Makes one record; asks whether its copy is there.
Steps = tuple[Callable[[], object], Callable[[], bool]]


def run(plan: Plan) -> list[Row]:
    """A query copies topic `in` to topic `out`; one record at a time is appended and looked for.

    Each round starts each query in turn, on the checkpoint that it left, so that no two run at once.
    """
    # Spark's workers import the empty source and sink from here.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    spark = session()
    spark.dataSource.register(empty_python.EmptyPython)
    samples: dict[str, list[float]] = {"tidelog": [], "empty": []}
    phases: dict[str, list[dict[str, int]]] = {"tidelog": [], "empty": []}
    with tidelog.Lake(str(plan.work / "latency")) as lake:
        for name in ("in", "out"):
            lake.create_topic(name, partitions=1)
        copying = {
            "tidelog": partial(_tidelog, spark, plan.work, lake),
            "empty": partial(_empty, spark, plan.work),
        }
        count = -(-plan.latencies // plan.rounds)
        arms = {name: partial(_p50_ms, copy, count, samples[name], phases[name]) for name, copy in copying.items()}
        rounds = interleaved(arms, plan.rounds)
    spark.stop()
    ours = {name: taken[count:] for name, taken in samples.items()}  # without the round of warming up
    p50, p99 = percentile(ours["tidelog"], 50), percentile(ours["tidelog"], 99)
    ratio = statistics.median(own / base for own, base in zip(rounds["tidelog"], rounds["empty"], strict=True))
    figures = {
        "ms": {name: summary(taken, 1) for name, taken in ours.items()},
        "phases_p50_ms": {name: _medians(taken) for name, taken in phases.items()},
    }
    what = "one record, from append to the sink's commit in a running streaming query"
    return [
        Row(f"{what}, p50", "≤ 300 ms", f"{p50:.0f} ms (p99 {p99:.0f})", p50 <= 300, figures),
        Row(
            "the same, against a source and a sink in Python that do nothing, p50",
            f"≤ {_MOST}x",
            f"{ratio:.2f}x ({percentile(ours['empty'], 50):.0f} ms)",
            ratio <= _MOST,
            figures,
        ),
    ]


def _p50_ms(
    copying: Callable[[], "Iterator[tuple[StreamingQuery, Steps]]"],
    count: int,
    samples: list[float],
    phases: list[dict[str, int]],
) -> float:
    """The p50 of a round; its samples and its micro-batches' phases (ms) go to the lists."""
    with contextmanager(copying)() as (query, steps):
        for _ in range(_WARMUP):
            _round_trip_ms(query, *steps)
        taken = [_round_trip_ms(query, *steps) for _ in range(count)]
        phases += [one["durationMs"] for one in query.recentProgress if one["numInputRows"]]
    samples += taken
    return percentile(taken, 50)


def _round_trip_ms(query: StreamingQuery, make: Callable[[], object], is_copied: Callable[[], bool]) -> float:
    time.sleep(random.random() * 0.2)  # at any point of the query's turn
    began = time.perf_counter()
    make()
    while not is_copied():
        if time.perf_counter() - began > _PATIENCE_S:
            raise RuntimeError(f"the query copied nothing for {_PATIENCE_S:g} s: {query.exception() or query.status}")
        time.sleep(0.001)
    return (time.perf_counter() - began) * 1e3


def _tidelog(spark: SparkSession, work: Path, lake: tidelog.Lake) -> Iterator[tuple[StreamingQuery, Steps]]:
    reader = spark.readStream.format("tidelog").option("lake", lake.uri).option("subscribe", "in")
    rows = reader.option("startingOffsets", "earliest").load().select("key", "value")
    query = _started(rows, work, "tidelog", lake=lake.uri, topic="out")
    record = pa.table({"key": [b"k"], "value": [b"v" * 100]})
    source, copy = lake.topic("in"), lake.topic("out")
    yield query, (lambda: source.append(record, acks=1), lambda: _end(copy) >= _end(source))
    query.stop()


def _end(topic: Topic) -> int:
    return topic.offsets()[0][1]


def _empty(spark: SparkSession, work: Path) -> Iterator[tuple[StreamingQuery, Steps]]:
    source, copy = work / "empty-in", work / "empty-out"
    source.touch()
    if not copy.exists():
        copy.write_bytes(b"%0100d" % -1)
    rows = spark.readStream.format("empty_python").option("path", str(source)).load()
    query = _started(rows, work, "empty_python", path=str(copy))

    def append() -> None:
        with source.open("ab") as file:
            file.write(b"r")

    yield query, (append, lambda: int(copy.read_bytes()) + 1 == source.stat().st_size)
    query.stop()


def _started(rows: DataFrame, work: Path, sink: str, **options: str) -> StreamingQuery:
    writer = rows.writeStream.format(sink).options(**options)
    return writer.option("checkpointLocation", str(work / f"checkpoint-{sink}")).start()


def _medians(phases: list[dict[str, int]]) -> dict[str, float]:
    """The median of each phase of the micro-batches that had input."""
    return {phase: percentile([one.get(phase, 0) for one in phases], 50) for phase in (phases[-1] if phases else {})}
