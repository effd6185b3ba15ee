"""What the Spark cases share: the same records in a topic of tidelog, a topic of Kafka and a Delta table.

Both logs get zstd at its default level (tidelog's default; Kafka's producers need an option) and acks=all (the default
of both), which means an fsync to tidelog and the broker's page cache to a single broker of Kafka.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench import Bench
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from measures import Measure
from peer import KAFKA, Peer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from sparks import PARTITIONS, produce

import tidelog

TOPIC = "records"
_TIMEOUT_S = 30.0


def sized(bench: Bench, count: int) -> int:
    """The records of a full run, or a fifth of them of a quick one."""
    return count // 5 if bench.quick else count


def throughput(case: str, times: Mapping[str, Sequence[float]], count: int) -> list[Measure]:
    """Records a second of each system from its seconds a round."""
    return [
        Measure(case, system, "throughput", "records/s", "higher", [round(count / taken) for taken in rounds])
        for system, rounds in times.items()
    ]


# --- tidelog and Delta -----------------------------------------------------------------------------------------


def new_lake(folder: Path, *topics: str, partitions: int = PARTITIONS, config: Mapping[str, str] | None = None) -> str:
    """The address of a lake, made if need be, with these empty topics."""
    with tidelog.Lake(str(folder)) as lake:
        for topic in topics:
            lake.create_topic(topic, partitions=partitions, config=dict(config or {}))
    return str(folder)


def end_of_lake_topic(lake: str, topic: str) -> int:
    """How many records were written to the topic."""
    with tidelog.Lake(lake, create=False) as opened:
        return sum(end for _, end in opened.offsets(topic).values())


def filled_lake(bench: Bench, rows: DataFrame) -> str:
    """The address of a lake whose topic `TOPIC` holds the rows."""
    lake = new_lake(bench.work / "lake", TOPIC)
    produce(rows, lake, TOPIC)
    return lake


def filled_table(bench: Bench, rows: DataFrame) -> str:
    """A Delta table of the rows."""
    folder = bench.work / "table"
    rows.write.format("delta").save(str(folder))
    return str(folder)


# --- Kafka -----------------------------------------------------------------------------------------------------


@contextmanager
def kafka_topic(
    bench: Bench, topic: str = TOPIC, partitions: int = PARTITIONS, config: Mapping[str, str] | None = None
) -> Iterator[str]:
    """An empty topic, which is deleted at the end."""
    Peer(KAFKA, bench.kafka).create_topic(topic, partitions, config)
    try:
        yield topic
    finally:
        admin = AdminClient({"bootstrap.servers": bench.kafka})
        for deleted in admin.delete_topics([topic]).values():
            deleted.result(_TIMEOUT_S)
        _await_gone(admin, topic)


def produce_kafka(rows: DataFrame, bench: Bench, topic: str = TOPIC, codec: str = "zstd") -> None:
    """Append the rows to the topic through Spark's Kafka sink."""
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", bench.kafka).option("topic", topic)
    writer.option("kafka.compression.type", codec).mode("append").save()


def end_of_kafka_topic(bench: Bench, topic: str = TOPIC, partitions: int = PARTITIONS) -> int:
    """How many records were written to the topic."""
    consumer = Consumer({"bootstrap.servers": bench.kafka, "group.id": "ends"})
    try:
        places = [TopicPartition(topic, partition) for partition in range(partitions)]
        return sum(consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)[1] for place in places)
    finally:
        consumer.close()


def require(system: str, found: int, expected: int) -> None:
    """A system that lost or doubled records has no figure."""
    if found != expected:
        raise RuntimeError(f"{system} has {found} of {expected} records")


def awaited(condition: Callable[[], bool], what: str, timeout_s: float = _TIMEOUT_S, pause_s: float = 0.005) -> None:
    """Wait until the condition holds; raises RuntimeError when it takes longer than `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not happen within {timeout_s:g} s")
        time.sleep(pause_s)


def _await_gone(admin: AdminClient, topic: str) -> None:
    awaited(lambda: topic not in admin.list_topics(timeout=_TIMEOUT_S).topics, f"the end of topic {topic}")


# --- reading by Spark ------------------------------------------------------------------------------------------


def reader_of_kafka(
    spark: SparkSession, bench: Bench, *, streaming: bool, topic: str = TOPIC, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Spark's Kafka source on the whole topic."""
    reader = (spark.readStream if streaming else spark.read).format("kafka")
    reader = reader.option("kafka.bootstrap.servers", bench.kafka).option("subscribe", topic)
    return reader.option("startingOffsets", "earliest").options(**(options or {})).load()


def reader_of_lake(spark: SparkSession, lake: str, *, streaming: bool, topic: str = TOPIC) -> DataFrame:
    """tidelog's source on the whole topic."""
    reader = (spark.readStream if streaming else spark.read).format("tidelog")
    return reader.option("lake", lake).option("subscribe", topic).option("startingOffsets", "earliest").load()


def drained(rows: DataFrame, count: int, mode: str = "append") -> float:
    """Seconds that the micro-batches take of a query that reads all there is and keeps nothing of it.

    All of each micro-batch counts: finding the newest offsets, planning, reading, and writing the checkpoint. Starting
    the query and stopping it do not, as a stream does that once.
    """
    query = rows.writeStream.format("noop").outputMode(mode).trigger(availableNow=True).start()
    query.awaitTermination()
    require("the stream", sum(one["numInputRows"] for one in query.recentProgress), count)
    return trigger_seconds(query)


def trigger_seconds(query: StreamingQuery) -> float:
    """What the query's micro-batches took in all."""
    return sum(one["durationMs"]["triggerExecution"] for one in query.recentProgress) / 1e3
