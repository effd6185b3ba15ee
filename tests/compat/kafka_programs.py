"""Kafka's own programs, unmodified, over brokers: killed and started again, judged by the data."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from compat import brokers
from compat.suite import FAILED, PASSED, Outcome
from confluent_kafka import KafkaException
from pyspark.errors import PySparkException
from support import debezium_runs, mirror_maker_runs, spark_kafka_runs
from support.connect_runs import files
from support.kafka_clients import KafkaClient, install
from support.kafka_programs import CONNECT, DEBEZIUM, STREAMS
from support.postgres import running_postgres
from support.postgres_sources import envelopes_of_changes
from support.streams_compared import COMPARED, Compared, compare
from support.streams_runs import sensor_join, word_count

import tidelog
from tidelog.log.lake import Lake

SUITE = "kafka-programs"

Case = Callable[[str, Path], None]


def _word_count(address: str, folder: Path) -> None:
    word_count(address, folder, 8_000, 3)


def _streams_group(address: str, folder: Path) -> None:
    word_count(address, folder, 8_000, 3, protocol="streams")


def _sensor_join(address: str, folder: Path) -> None:
    sensor_join(address, folder, 2_000, 3)


def _connect(address: str, folder: Path) -> None:
    files(address, folder, 8_000, 3)


def _mirror_maker(address: str, folder: Path) -> None:
    import broker

    with broker.running(folder / "kafka") as kafka:
        mirror_maker_runs.both_ways({"kafka": kafka.address, "tidelog": address}, folder, 2_000)


def _debezium_envelopes(address: str, folder: Path) -> None:
    """Debezium's of now are those that are kept, and those of tidelog's own connector."""
    found = debezium_runs.canonical(debezium_runs.captured(address, folder))
    assert found == debezium_runs.kept(), "Debezium's envelopes are not those that are kept"
    with running_postgres() as server:
        own = debezium_runs.canonical(envelopes_of_changes(server, "postgres"))
    assert own == debezium_runs.with_older_markers(found), "tidelog's connector makes other envelopes than Debezium"


def _debezium_killed(address: str, folder: Path) -> None:
    debezium_runs.killed(address, folder, 1_000, 3)


def _compared(one: Compared) -> Case:
    """The same in tidelog.streams' words, over the brokers' lake: the same tables come out."""

    def run(address: str, folder: Path) -> None:
        spark = tidelog.spark.session("compat", "local[2]", {"spark.sql.shuffle.partitions": "2"}, delta=False)
        with Lake(str(folder / "brokers" / "lake"), create=False) as lake:
            compare(one, address, lake, folder, spark)

    return run


def _spark(address: str, folder: Path) -> None:
    spark = tidelog.spark.session("compat", "local[2]", {"spark.sql.shuffle.partitions": "2"}, delta=False)
    spark.sparkContext.setLogLevel("OFF")
    spark_kafka_runs.load(spark)
    for run in (spark_kafka_runs.batches, spark_kafka_runs.micro_batches, spark_kafka_runs.real_time):
        run(spark, address, folder)


# By name: what is installed for it, and what it does. Each has brokers of its own.
CASES: dict[str, tuple[tuple[KafkaClient, ...], Case]] = {
    "streams word count": ((STREAMS,), _word_count),
    "streams word count, group.protocol=streams": ((STREAMS,), _streams_group),
    "streams windowed join": ((STREAMS,), _sensor_join),
    **{f"streams and tidelog.streams, {one.program}": ((STREAMS,), _compared(one)) for one in COMPARED},
    "connect files": ((CONNECT,), _connect),
    "mirror maker both ways": ((CONNECT,), _mirror_maker),
    "debezium postgres envelopes": ((CONNECT, DEBEZIUM), _debezium_envelopes),
    "debezium postgres killed": ((CONNECT, DEBEZIUM), _debezium_killed),
    "spark": ((spark_kafka_runs.CONNECTOR,), _spark),
}


def outcomes(work: Path, only: str = "") -> Iterator[Outcome]:
    """Run them, one after another. `only`: a part of a name."""
    for name, (clients, case) in CASES.items():
        if only not in name:
            continue
        began, state, words = time.monotonic(), PASSED, ""
        folder = work / name.replace(" ", "-")
        try:
            for client in clients:
                install(client)
            with brokers.running(folder / "brokers", {}, os.environ) as address:
                case(address, folder)
        except (AssertionError, RuntimeError, KafkaException, PySparkException) as error:
            state, words = FAILED, " ".join(str(error).split())[:600]
        yield Outcome(SUITE, name, state, time.monotonic() - began, words)
