"""Word count of tidelog.streams and of Kafka Streams: the same records, at the same broker, exactly once."""

import itertools
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import brokers
import jars
from bench import Bench
from confluent_kafka import Consumer, TopicPartition
from measures import Measure
from peer import KAFKA, TIDELOG, Peer, fill
from pyspark.sql import SparkSession
from runner import CaseError
from spark_systems import require, sized, throughput

import tidelog
from tidelog.streams import Streams, StreamsBuilder

TITLE = "Word count of streams"

_PROGRAMS = Path(__file__).resolve().parents[2] / "tests" / "support" / "StreamsPrograms.java"
_LINES, _WORDS_A_LINE, _VOCABULARY = 400_000, 8, 5_000
_PARTITIONS = 2
_LIMIT_S = 300.0
# Its defaults, a thread for each of the machine's cores.
_SETTINGS = ("num.stream.threads=2", f"statestore.cache.max.bytes={10 << 20}", "commit.interval.ms=100")


def run(bench: Bench) -> list[Measure]:
    """Each round counts the words of all lines into a topic that is read_committed; starting Java is not in its time.

    Kafka Streams is timed from RUNNING until each word's count is there, tidelog.streams from `start` on: the queries'
    own start-up is in its time, that of Spark's session is not.
    """
    count = sized(bench, _LINES)
    rng = random.Random(19)
    words = [f"word{number}" for number in range(_VOCABULARY)]
    lines = [" ".join(rng.choices(words, k=_WORDS_A_LINE)).encode() for _ in range(count)]
    folder = bench.work / "lake"
    tidelog.Lake(str(folder)).close()
    spark = bench.spark("streams-word-count")
    spark.conf.set("spark.sql.shuffle.partitions", str(_PARTITIONS))
    numbers = itertools.count()
    with brokers.running(folder) as (broker,):
        peer = Peer(KAFKA, broker.address)
        for topic in ("lines", "counts"):
            peer.create_topic(topic, _PARTITIONS)
        fill(peer, "lines", lines, [str(at).encode() for at in range(count)], compression_type="zstd")
        times = bench.interleaved(
            {
                TIDELOG: lambda: _by_tidelog(spark, str(folder), next(numbers), count * _WORDS_A_LINE),
                KAFKA: lambda: _by_kafka(bench, broker.address, next(numbers), count * _WORDS_A_LINE),
            }
        )
    spark.stop()
    return throughput("streams word count", times, count)


def _by_tidelog(spark: SparkSession, lake: str, number: int, words: int) -> float:
    builder = StreamsBuilder()
    split = builder.stream("lines").flat_map_values(r"split(lower(value), '\\W+')").filter("value != ''")
    split.group_by("value").count().to_stream().map_values("string(value)").to(f"counts-{number}")
    application = Streams(builder.build(), {"application.id": f"words-{number}", "lake": lake}, spark)
    begun = time.perf_counter()
    with application:
        application.process_all_available()
        taken = time.perf_counter() - begun
    require(TIDELOG, _counted(lake, f"counts-{number}"), words)
    return taken


def _counted(lake: str, topic: str) -> int:
    """The newest counts of all words, added up."""
    newest = dict[bytes, bytes]()
    with tidelog.Lake(lake, create=False) as opened:
        for partition in opened.offsets(topic):
            for batch in opened.topic(topic).read(partition):
                newest.update(zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True))
    return sum(map(int, newest.values()))


def _by_kafka(bench: Bench, address: str, number: int, words: int) -> float:
    scratch = bench.work / "streams"
    scratch.mkdir(exist_ok=True)
    with _at_end(address, "counts") as consumer, _started(address, number, scratch):
        begun, newest = time.perf_counter(), dict[bytes, int]()
        while sum(newest.values()) < words:
            for message in consumer.consume(10_000, 0.1):
                newest[message.key()] = int(message.value())
            if time.perf_counter() - begun > _LIMIT_S:
                raise CaseError(f"Kafka Streams counted {sum(newest.values())} of {words} words in {_LIMIT_S} s.")
        return time.perf_counter() - begun


@contextmanager
def _started(address: str, number: int, scratch: Path) -> Iterator[None]:
    """Kafka Streams' word count, running."""
    class_path = ":".join(str(jar) for jar in jars.fetched(jars.STREAMS))
    logging = scratch / "log4j2.properties"
    logging.write_text("rootLogger.level=OFF\n", encoding="utf-8")
    java = [jars.java(), "-Xmx1g", f"-Djava.io.tmpdir={scratch}", f"-Dlog4j2.configurationFile={logging}"]
    told = ["word-count", address, f"words-{number}", str(scratch / f"state-{number}"), *_SETTINGS]
    with subprocess.Popen(
        [*java, "-cp", class_path, str(_PROGRAMS), *told],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            if not any(line.strip() == "RUNNING" for line in process.stdout):
                raise CaseError("Kafka Streams ended before it ran; it needs a JDK, which compiles its program.")
            yield
        finally:
            process.kill()


@contextmanager
def _at_end(address: str, topic: str) -> Iterator[Consumer]:
    """A consumer of what comes into a topic from now on."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "look", "isolation.level": "read_committed"})
    try:
        places = [TopicPartition(topic, partition) for partition in range(_PARTITIONS)]
        ends = [consumer.get_watermark_offsets(place, timeout=30)[1] for place in places]
        consumer.assign([TopicPartition(topic, at, end) for at, end in enumerate(ends)])
        yield consumer
    finally:
        consumer.close()
