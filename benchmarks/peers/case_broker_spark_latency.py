"""Latency of Spark's own Kafka source and sink, in micro-batches and in real-time mode: through a broker, and Kafka.

A streaming query copies topic `in` to topic `out`, from a `produce` of a record to its copy in a consumer's hands. In
real-time mode a batch runs for 5 s, the shortest that Spark allows, and hands records on while it runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import confluent_kafka
from bench import Bench
from case_spark_latency import RoundTrip, between, copying, latencies_ms
from figures import percentile
from measures import Measure
from peer import Peer
from pyspark.sql import SparkSession
from through_brokers import both

TITLE = "Latency of Spark's Kafka source and sink"
CASE = "broker spark latency"
_MICRO_BATCH, _REAL_TIME = "micro-batches", "real-time mode"
_BATCH = "5 seconds"
_COUNT = 20


def run(bench: Bench) -> list[Measure]:
    """Each round runs each query in turn, on the checkpoint that it left, so that no two run at once."""
    spark = bench.spark("broker-spark-latency")
    samples: dict[str, list[list[float]]] = {}
    with both(bench) as peers:
        for peer in peers.values():
            for topic in ("in", "out"):
                peer.create_topic(topic, 1)
        for number in range(bench.rounds + 1):
            for mode in (_MICRO_BATCH, _REAL_TIME):
                for system, peer in sorted(peers.items(), reverse=number % 2 == 1):
                    name = f"{system} {mode}"
                    with _query(bench, spark, peer, name) as round_trip:
                        taken = latencies_ms(round_trip, _COUNT)
                    if number:
                        samples.setdefault(name, []).append(taken)
    spark.stop()
    return [one for name, rounds in samples.items() for one in _measures(name, rounds)]


def _measures(system: str, rounds: list[list[float]]) -> Iterator[Measure]:
    everything = [round(ms, 2) for taken in rounds for ms in taken]
    for q in (50, 99):
        figures = [round(percentile(taken, q), 2) for taken in rounds]
        yield Measure(CASE, system, f"p{q}", "ms", "lower", figures, samples=everything)


@contextmanager
def _query(bench: Bench, spark: SparkSession, peer: Peer, name: str) -> Iterator[RoundTrip]:
    where = {"kafka.bootstrap.servers": peer.address}
    reader = spark.readStream.format("kafka").options(**where).option("subscribe", "in")
    # Else the source waits for up to half a second when there is a single record to get.
    reader = reader.option("startingOffsets", "earliest").option("kafka.fetch.max.wait.ms", "10")
    writer = reader.load().select("key", "value").writeStream.format("kafka").option("topic", "out")
    if name.endswith(_REAL_TIME):
        writer = writer.outputMode("update").trigger(realTime=_BATCH)
    with copying(bench, name.replace(" ", "-"), writer, where) as query:
        kinds = confluent_kafka.Producer, confluent_kafka.Consumer, confluent_kafka.TopicPartition
        yield from between(*kinds, {"bootstrap.servers": peer.address}, query)
