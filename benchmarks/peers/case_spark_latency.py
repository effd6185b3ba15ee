"""Micro-batch latency: from `produce` of a record to its copy in the hands of a consumer, by way of a query.

A streaming query copies topic `in` to topic `out` as fast as it can (no trigger interval). The clients around it are
each log's own for Python, on both sides with the same calls; of Delta there are none, so its table is appended to and
looked at by deltalake.

Spark's Kafka source often waits for `fetch.max.wait.ms` (500 by default) when there is a single record to get, so Kafka
has a second variant with 10 ms, which asks the broker fifty times as often.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import confluent_kafka
import pyarrow as pa
from bench import Bench
from deltalake import DeltaTable, write_deltalake
from figures import percentile
from measures import Measure
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery
from spark_systems import kafka_topic, new_lake, reader_of_kafka, reader_of_lake

import tidelog

TITLE = "Micro-batch latency"

_PATIENCE_S = 60.0
# Makes one record and waits for its copy.
RoundTrip = Callable[[], None]
_System = Callable[[Bench, SparkSession], AbstractContextManager[RoundTrip]]


def run(bench: Bench) -> list[Measure]:
    """Each round starts each query in turn, on the checkpoint that it left, so that no two run at once."""
    spark = bench.spark("spark-latency")
    systems: dict[str, tuple[_System, int]] = {
        "tidelog": (_lake, 14),
        "kafka": (_kafka, 10),
        "kafka fetch.max.wait.ms=10": (partial(_kafka, options={"kafka.fetch.max.wait.ms": "10"}), 14),
        "delta": (_delta, 2),
    }
    samples: dict[str, list[list[float]]] = {name: [] for name in systems}
    names = list(systems)
    with kafka_topic(bench, "in", 1), kafka_topic(bench, "out", 1):
        for number in range(bench.rounds + 1):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                system, count = systems[name]
                warming_up = number == 0
                with system(bench, spark) as round_trip:
                    taken = latencies_ms(round_trip, (count + 1) // 2 if warming_up else count)
                if not warming_up:
                    samples[name].append(taken)
    spark.stop()
    return [measure for name, rounds in samples.items() for measure in _measures(name, rounds)]


def _measures(system: str, rounds: list[list[float]]) -> Iterator[Measure]:
    everything = [round(ms, 2) for taken in rounds for ms in taken]
    for q in (50, 99):
        figures = [round(percentile(taken, q), 2) for taken in rounds]
        yield Measure("micro-batch latency", system, f"p{q}", "ms", "lower", figures, samples=everything)


def latencies_ms(round_trip: RoundTrip, count: int) -> list[float]:
    """How long round trips take. The first ones, while the query gets under way, are left out."""
    for _ in range(max(2, count // 3)):
        round_trip()
    taken = []
    for _ in range(count):
        time.sleep(random.random() * 0.2)  # at any point of the query's turn
        began = time.perf_counter()
        round_trip()
        taken.append((time.perf_counter() - began) * 1e3)
    return taken


@contextmanager
def copying(bench: Bench, name: str, writer: DataStreamWriter, options: Mapping[str, str]) -> Iterator[StreamingQuery]:
    """A query on the checkpoint of this name, which is stopped at the end."""
    checkpoint = str(bench.work / f"checkpoint-{name}")
    query = writer.options(**options).option("checkpointLocation", checkpoint).start()
    try:
        yield query
    finally:
        query.stop()


# --- the two logs ----------------------------------------------------------------------------------------------


@contextmanager
def _lake(bench: Bench, spark: SparkSession) -> Iterator[RoundTrip]:
    lake = str(bench.work / "lake")
    if not (bench.work / "lake").exists():
        new_lake(bench.work / "lake", "in", "out", partitions=1)
    rows = reader_of_lake(spark, lake, streaming=True, topic="in").select("key", "value")
    options = {"lake": lake, "topic": "out"}
    with copying(bench, "lake", rows.writeStream.format("tidelog"), options) as query:
        yield from between(tidelog.Producer, tidelog.Consumer, tidelog.TopicPartition, {"lake": lake}, query)


@contextmanager
def _kafka(bench: Bench, spark: SparkSession, options: Mapping[str, str] | None = None) -> Iterator[RoundTrip]:
    rows = reader_of_kafka(spark, bench, streaming=True, topic="in", options=options).select("key", "value")
    sink = {"kafka.bootstrap.servers": bench.kafka, "topic": "out", "kafka.compression.type": "zstd"}
    with copying(bench, "kafka", rows.writeStream.format("kafka"), sink) as query:
        where = {"bootstrap.servers": bench.kafka}
        kinds = confluent_kafka.Producer, confluent_kafka.Consumer, confluent_kafka.TopicPartition
        yield from between(*kinds, where, query)


def between(
    make_producer: Any, make_consumer: Any, place: Any, where: dict[str, Any], query: StreamingQuery
) -> Iterator[RoundTrip]:
    """A round trip by a log's own producer and consumer, both with their defaults but for linger.ms."""
    producer = make_producer({**where, "linger.ms": 0})
    consumer = make_consumer({**where, "group.id": "reader", "enable.auto.commit": False})
    _, high = consumer.get_watermark_offsets(place("out", 0), timeout=_PATIENCE_S)
    consumer.assign([place("out", 0, high)])
    consumer.poll(0.5)  # it has found its place before the first record comes

    def round_trip() -> None:
        value = uuid4().hex.encode().ljust(100, b"v")
        producer.produce("in", key=b"k", value=value)
        producer.poll(0)
        deadline = time.perf_counter() + _PATIENCE_S
        # A query that is started again repeats its last batch, and what it wrote to Kafka is there twice then.
        while (message := consumer.poll(_PATIENCE_S)) is None or message.value() != value:
            if message is None or message.error() or time.perf_counter() > deadline:
                raise _nothing_came(query)

    try:
        yield round_trip
    finally:
        producer.flush(_PATIENCE_S)
        consumer.close()


# --- Delta -----------------------------------------------------------------------------------------------------


@contextmanager
def _delta(bench: Bench, spark: SparkSession) -> Iterator[RoundTrip]:
    source, copy = (str(bench.work / f"table-{name}") for name in ("in", "out"))
    record = pa.table({"key": [b"k"], "value": [b"v" * 100]})
    if not DeltaTable.is_deltatable(source):
        for path in (source, copy):
            write_deltalake(path, record.slice(0, 0))
    rows: DataFrame = spark.readStream.format("delta").load(source)
    with copying(bench, "delta", rows.writeStream.format("delta"), {"path": copy}) as query:
        yield partial(_delta_round_trip, source, DeltaTable(copy), record, query)


def _delta_round_trip(source: str, copy: DeltaTable, record: pa.Table, query: StreamingQuery) -> None:
    before = copy.version()
    write_deltalake(source, record, mode="append")
    deadline = time.perf_counter() + _PATIENCE_S
    while copy.version() == before:
        if time.perf_counter() > deadline:
            raise _nothing_came(query)
        time.sleep(0.001)
        copy.update_incremental()


def _nothing_came(query: StreamingQuery) -> RuntimeError:
    return RuntimeError(f"the query copied nothing for {_PATIENCE_S:g} s: {query.exception() or query.status}")
