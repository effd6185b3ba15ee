"""Spark's own `format("kafka")` over brokers: batches, micro-batches and real-time mode, compared with the data."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from confluent_kafka import Consumer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.streaming import StreamingQuery
from support.kafka_clients import KafkaClient, fetch_jars
from support.streams_runs import FIRST_MS, PARTITIONS, Text, create, reading, send
from support.waiting import eventually

_LIMIT_S = 120.0
# How long a batch of real-time mode is: the shortest that Spark allows.
_REAL_TIME = "5 seconds"

# Records of each run in real-time mode.
_LIVE = 20


def _make_connector(client: KafkaClient, folder: Path) -> None:
    """What else it needs is in Spark itself. Its token provider of the same version is not to be had everywhere."""
    for group, name, version in (
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", client.version),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
        ("org.apache.kafka", "kafka-clients", "3.9.2"),
        ("org.apache.commons", "commons-pool2", "2.13.1"),
    ):
        fetch_jars(folder, group, name, version, transitive=False)


CONNECTOR = KafkaClient("spark-kafka", pyspark.__version__, "java", _make_connector, lambda _: ())


def load(spark: SparkSession) -> None:
    """Let a local session that runs already load the connector (after `install(CONNECTOR)`)."""
    jvm = spark._jvm
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for jar in sorted(CONNECTOR.folder.glob("*.jar")):
        loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())


def batches(spark: SparkSession, address: str, _folder: Path) -> None:
    """Rows with keys, headers and places in partitions are written, and read back: all, by offsets and by time."""
    create(address, "batch")
    number = F.col("id").cast("string")
    header = F.struct(F.lit("n").alias("key"), number.cast("binary").alias("value"))
    rows = spark.range(1000).select(
        F.when(F.col("id") % 7 > 0, number).alias("key"),
        F.concat(F.lit("value "), number).alias("value"),
        F.array(header).alias("headers"),
        (F.col("id") % PARTITIONS).cast("int").alias("partition"),
    )
    rows.write.format("kafka").option("kafka.bootstrap.servers", address).option("topic", "batch").mode("append").save()
    found = _read(spark, address, "batch", {"includeHeaders": "true"}).select(
        F.col("key").cast("string"), F.col("value").cast("string"), "partition", "offset", "headers"
    )
    seen = [(r.key, r.value, r.partition, r.headers[0].key, bytes(r.headers[0].value)) for r in found.collect()]
    wanted = [(str(n) if n % 7 else None, f"value {n}", n % PARTITIONS, "n", str(n).encode()) for n in range(1000)]
    assert Counter(seen) == Counter(wanted), "a batch was not read as it was written"
    some = {"startingOffsets": '{"batch":{"0":100,"1":-2}}', "endingOffsets": '{"batch":{"0":300,"1":-1}}'}
    assert _read(spark, address, "batch", some).count() == 200 + 500
    texts = [Text(None, str(n), FIRST_MS + n) for n in range(100)]
    create(address, "timed", partitions=1)
    send(address, {"timed": texts})
    since = {"startingOffsetsByTimestamp": f'{{"timed":{{"0":{FIRST_MS + 60}}}}}'}
    assert _read(spark, address, "timed", since).count() == 40


def micro_batches(spark: SparkSession, address: str, folder: Path) -> None:
    """A query copies a topic, and goes on at its checkpoint when it is started again: each record comes once."""
    create(address, "from", "to")
    copied = 0
    for part in range(3):
        texts = [Text(f"k{n % 50}", f"{part}-{n}", FIRST_MS + n) for n in range(500)]
        send(address, {"from": texts})
        copied += len(texts)
        with _copy(spark, address, "from", "to", folder, {"trigger": "availableNow"}) as query:
            assert query.awaitTermination(int(_LIMIT_S)), "the query did not end"
    with reading(address, "to") as consumer:
        found = _consumed(consumer, copied)
    assert found == Counter(f"{part}-{n}" for part in range(3) for n in range(500))


def real_time(spark: SparkSession, address: str, folder: Path) -> None:
    """A query in real-time mode copies records while its batch runs, and goes on at its checkpoint."""
    create(address, "live", "copied")
    sent = 0
    with reading(address, "copied") as consumer:
        for part in range(2):
            with _copy(spark, address, "live", "copied", folder, {"trigger": "realTime"}) as query:
                for n in range(_LIVE):
                    send(address, {"live": [Text("k", f"{part}-{n}", FIRST_MS + n)]})
                    sent += 1
                    (value,) = _consumed(consumer, 1)
                    assert value == f"{part}-{n}", f"{value} came, and not {part}-{n}"
                # The end of the batch that took the last one commits it: a query that begins again repeats nothing.
                # It may be the next one to be reported, or that after it.
                done = len(query.recentProgress) + 2
                eventually(lambda: _progress(query) >= done, "batches end", _LIMIT_S)  # noqa: B023 - ended here
        ends = [consumer.get_watermark_offsets(place, 30)[1] for place in consumer.assignment()]
    assert sum(ends) == sent, f"{sum(ends)} records were copied of {sent}"


def _progress(query: StreamingQuery) -> int:
    assert query.exception() is None, query.exception()
    return len(query.recentProgress)


def _read(spark: SparkSession, address: str, topic: str, options: Mapping[str, str]) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", topic)
    return reader.options(**options).load()


@contextmanager
def _copy(
    spark: SparkSession, address: str, source: str, target: str, folder: Path, how: Mapping[str, str]
) -> Iterator[StreamingQuery]:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", source)
    rows = reader.option("startingOffsets", "earliest").load().select("key", "value")
    writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", address).option("topic", target)
    writer = writer.option("checkpointLocation", str(folder / f"checkpoint-{target}"))
    if how["trigger"] == "realTime":
        query = writer.outputMode("update").trigger(realTime=_REAL_TIME).start()
    else:
        query = writer.trigger(availableNow=True).start()
    try:
        yield query
    finally:
        query.stop()


def _consumed(consumer: Consumer, count: int) -> Counter[str]:
    found: Counter[str] = Counter()

    def all_there() -> bool:
        for message in consumer.consume(count, 0.2):
            assert message.error() is None, message.error()
            found[message.value().decode()] += 1
        return found.total() >= count

    eventually(all_there, f"{count} records", _LIMIT_S)
    return found
