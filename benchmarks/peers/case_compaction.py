"""Key compaction: the same records, of which the newest of each key stays, by tidelog's maintenance (here and on Spark)
and by Kafka's log cleaner.

Both work with two threads. The cleaner is configured to clean at once, whatever share of a log is dirty; a record more
to each partition rolls the active segment, which the cleaner would leave. It is timed from then to the last partition's
mark in its checkpoint of cleaned offsets.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from uuid import uuid4

from bench import Bench
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from measures import Measure
from pyspark.sql import DataFrame, SparkSession
from spark_systems import TOPIC, awaited, kafka_topic, new_lake, produce_kafka, reader_of_kafka, require, sized
from sparks import PARTITIONS, keyed_records, produce, seconds

import tidelog
from tidelog.jobs.on_spark.compaction import SparkCompactor
from tidelog.retention.compaction.run import Compactor, LocalCompactor, compact

TITLE = "Key compaction"

_CASE = "key compaction"
_RECORDS_A_KEY = 5
_PATIENCE_S = 120.0
# The cleaner looks for work every 15 s by default.
_CLEANER = {"log.cleaner.backoff.ms": "50", "log.cleaner.threads": "2"}
_SEGMENT_S = 600
# A segment is rolled by a record that is later; what a cleaning deletes is deleted at once, and so not counted.
_TO_FILL = {"cleanup.policy": "delete", "segment.ms": str(_SEGMENT_S * 1000), "file.delete.delay.ms": "0"}
_TO_CLEAN = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}


def run(bench: Bench) -> list[Measure]:
    """Each round compacts a copy of the lake both ways, and a new topic of Kafka."""
    spark = bench.spark("compaction")
    count = sized(bench, 2_000_000)
    rows = keyed_records(spark, bench.work / "rows", count, keys=count // _RECORDS_A_KEY)
    lake = new_lake(bench.work / "lake", TOPIC, config={"cleanup.policy": "compact", "segment.ms": "1"})
    produce(rows, lake, TOPIC)
    sizes: dict[str, list[float]] = {}

    def local(opened: tidelog.Lake) -> Compactor:
        return LocalCompactor(opened.storage, opened.ids)

    def on_spark(opened: tidelog.Lake) -> Compactor:
        return SparkCompactor(spark, opened.uri)

    _hurry_cleaner(bench)
    arms: dict[str, Callable[[], float]] = {
        "tidelog": partial(_compacted, bench, Path(lake), local, count, sizes.setdefault("tidelog", [])),
        "tidelog on Spark": partial(
            _compacted, bench, Path(lake), on_spark, count, sizes.setdefault("tidelog on Spark", [])
        ),
        "kafka": partial(_cleaned, bench, spark, rows, count, sizes.setdefault("kafka", [])),
    }
    times = bench.interleaved(arms)
    spark.stop()
    return [*_speeds(times, count), *_bytes(sizes, bench.rounds, count // _RECORDS_A_KEY)]


def _speeds(times: dict[str, list[float]], count: int) -> Iterator[Measure]:
    for system, taken in times.items():
        yield Measure(_CASE, system, "throughput", "records/s", "higher", [round(count / one) for one in taken])


def _bytes(sizes: dict[str, list[float]], rounds: int, kept: int) -> Iterator[Measure]:
    for system, found in sizes.items():
        figures = [round(size / kept, 2) for size in found[-rounds:]]
        yield Measure(_CASE, system, "bytes per record kept", "B", "lower", figures)


# --- tidelog ---------------------------------------------------------------------------------------------------


def _compacted(
    bench: Bench, source: Path, compactor: Callable[[tidelog.Lake], Compactor], count: int, sizes: list[float]
) -> float:
    folder = bench.work / "compacted"
    shutil.copytree(source, folder, copy_function=os.link)  # segments never change
    with tidelog.Lake(str(folder), create=False) as lake:
        took = seconds(lambda: _compact(lake, compactor(lake), count))
        live = [lake.topic(TOPIC).state().live(partition) for partition in range(PARTITIONS)]
        sizes.append(sum(segment.size for segments in live for segment in segments))
    shutil.rmtree(folder)
    return took


def _compact(lake: tidelog.Lake, compactor: Compactor, count: int) -> None:
    report = compact(lake, TOPIC, now_ms=lake.clock.now_ms() + 10, compactor=compactor)
    if report.failures:
        raise RuntimeError(f"the compaction failed: {report.to_json()}")
    require("the compacted topic", report.records_out, count // _RECORDS_A_KEY)


# --- Kafka -----------------------------------------------------------------------------------------------------


def _hurry_cleaner(bench: Bench) -> None:
    """The broker, which is this case's own, looks for work at once, with as many threads as a local compaction."""
    admin = AdminClient({"bootstrap.servers": bench.kafka})
    (broker,) = admin.list_topics(timeout=_PATIENCE_S).brokers
    _configure(admin, ResourceType.BROKER, str(broker), _CLEANER)


def _configure(admin: AdminClient, kind: ResourceType, name: str, config: Mapping[str, str]) -> None:
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in config.items()]
    for altered in admin.incremental_alter_configs([ConfigResource(kind, name, incremental_configs=entries)]).values():
        altered.result(_PATIENCE_S)


def _cleaned(bench: Bench, spark: SparkSession, rows: DataFrame, count: int, sizes: list[float]) -> float:
    # The cleaner remembers how far it got by a topic's name, so each round has one of its own.
    with kafka_topic(bench, f"compacted-{uuid4().hex}", config=_TO_FILL) as topic:
        produce_kafka(rows, bench, topic)
        ends = _rolled(bench, topic)
        admin = AdminClient({"bootstrap.servers": bench.kafka})

        def clean() -> None:
            _configure(admin, ResourceType.TOPIC, topic, _TO_CLEAN)
            awaited(lambda: _is_cleaned(bench, topic, ends), "the cleaning of the topic", _PATIENCE_S)

        took = seconds(clean)
        left = reader_of_kafka(spark, bench, streaming=False, topic=topic).count()
        require("the cleaned topic", left - len(ends), count // _RECORDS_A_KEY)
        logs = (path for p in ends for path in (bench.kafka_logs / f"{topic}-{p}").glob("*.log"))
        sizes.append(sum(path.stat().st_size for path in logs))
    return took


def _rolled(bench: Bench, topic: str) -> dict[int, int]:
    """{partition: its end}, with one record more in each, in a segment of its own because it is much later."""
    failures: list[str] = []
    producer, consumer = (
        Producer({"bootstrap.servers": bench.kafka}),
        Consumer({"bootstrap.servers": bench.kafka, "group.id": "ends"}),
    )
    ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p))[1] for p in range(PARTITIONS)}
    consumer.close()
    later_ms = int((time.time() + 2 * _SEGMENT_S) * 1e3)
    for p in ends:
        producer.produce(
            topic, key=b"later", value=b"", partition=p, timestamp=later_ms,
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )  # fmt: skip
    if producer.flush(_PATIENCE_S) or failures:
        raise RuntimeError(f"the segments could not be rolled: {failures}")
    return ends


def _is_cleaned(bench: Bench, topic: str, ends: dict[int, int]) -> bool:
    """Whether the cleaner's checkpoint says so: lines of topic, partition and the offset up to which it has cleaned."""
    try:
        lines = (bench.kafka_logs / "cleaner-offset-checkpoint").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return False
    found = {int(p): int(end) for name, p, end in (line.split() for line in lines[2:]) if name == topic}
    return all(found.get(p, 0) >= end for p, end in ends.items())
