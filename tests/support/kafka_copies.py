"""Copies of Kafka's topics: a source that is written to while mirrors of it are killed, and what must be equal then.

The source is any broker of Kafka's protocol: tidelog's own, or Kafka.
"""

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, IsolationLevel, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from support.waiting import eventually

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import LakeNotFoundError, UnknownTopicError
from tidelog.log.lake import Lake

WAIT_S = 60.0
Row = tuple[int, bytes | None, bytes | None, Any, int, int]


@cache
def admin(address: str) -> AdminClient:
    """One for all calls: what it was asked is forgotten when it goes."""
    return AdminClient({"bootstrap.servers": address, "log_level": 0})


def create(address: str, name: str, partitions: int = 1, **config: str) -> None:
    topic = NewTopic(name, partitions, 1, config={k.replace("_", "."): v for k, v in config.items()})
    admin(address).create_topics([topic])[name].result(WAIT_S)


def produced(producer: Producer, topic: str, partition: int, texts: Sequence[str], **more: Any) -> None:
    for text in texts:
        producer.produce(topic, text.encode(), key=text[-1:].encode(), partition=partition, **more)
    assert producer.flush(WAIT_S) == 0


def of_kafka(address: str, topic: str, partition: int, *, isolation: str = "read_committed") -> list[Row]:
    """The records of a partition, as a consumer of Kafka's gets them."""
    consumer = Consumer(
        {
            "bootstrap.servers": address, "group.id": "compared", "isolation.level": isolation,
            "enable.partition.eof": True, "enable.auto.commit": False, "auto.offset.reset": "earliest",
        }
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[Row] = []
        while (message := consumer.poll(WAIT_S)) is not None:
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                return found
            kind, timestamp = message.timestamp()
            headers = message.headers() or None
            found.append((message.offset(), message.key(), message.value(), headers, timestamp, kind - 1))
        raise AssertionError(f"{topic} {partition} has no end")
    finally:
        consumer.close()


def of_lake(lake: Lake, topic: str, partition: int) -> list[Row]:
    rows = []
    for batch in lake.topic(topic).read(partition, include_headers=True):
        micros = batch.column("timestamp").cast("int64").to_pylist()
        for row, us in zip(batch.to_pylist(), micros, strict=True):
            headers = [(one["key"], one["value"]) for one in row["headers"] or ()] or None
            assert us % 1000 == 0
            rows.append((row["offset"], row["key"], row["value"], headers, us // 1000, row["timestampType"]))
    return rows


def bounds(address: str, topic: str, partitions: int) -> dict[int, tuple[int, int]]:
    """{partition: (log start offset, last stable offset)}."""
    found = []
    for of in (OffsetSpec.earliest(), OffsetSpec.latest()):
        asked = admin(address).list_offsets(
            {TopicPartition(topic, p): of for p in range(partitions)}, isolation_level=IsolationLevel.READ_COMMITTED
        )
        found.append({at.partition: future.result(WAIT_S).offset for at, future in asked.items()})
    return {p: (found[0][p], found[1][p]) for p in range(partitions)}


def offsets_of(address: str, group: str) -> dict[tuple[str, int], int]:
    asked = admin(address).list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    return {(p.topic, p.partition): p.offset for p in asked[group].result(WAIT_S).topic_partitions if p.offset >= 0}


def differences(address: str, lake: Lake, topics: Sequence[str], groups: Sequence[str] = ()) -> list[str]:
    """What of a copy is not as at its source: records, offsets, log starts and ends, groups' positions."""
    found = []
    for topic in topics:
        partitions = len(admin(address).list_topics(topic, WAIT_S).topics[topic].partitions)
        there, here = bounds(address, topic, partitions), lake.offsets(topic)
        if there != here:
            found.append(f"{topic} begins and ends at {there} at the source, at {here} in the copy")
        for p in range(partitions):
            kafka, own = of_kafka(address, topic, p), of_lake(lake, topic, p)
            if kafka != own:
                first = next((pair for pair in itertools.zip_longest(kafka, own) if pair[0] != pair[1]), None)
                found.append(f"{topic} {p}: {len(kafka)} records at the source, {len(own)} here, first {first}")
    for group in groups:
        own = {place: one.offset for place, one in GroupLog(lake).offsets(group).items()}
        if own != offsets_of(address, group):
            found.append(f"group {group} is at {offsets_of(address, group)} at the source, at {own} here")
    return found


def mirror_command(address: str, lake: str, *more: str) -> list[str]:
    command = [sys.executable, "-m", "tidelog", "mirror", "start", "--from", f"kafka://{address}", "--to", lake]
    return [*command, *more]


def mirror_once(address: str, lake: str, *more: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        mirror_command(address, lake, "--once", *more), capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == code, done.stderr
    return done


@contextmanager
def mirroring(address: str, lake: str, log: Path) -> Iterator[Callable[[], None]]:
    """A mirror as a process, and what kills it and begins it again."""
    running: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        with open(log, "ab") as out:
            running.append(
                subprocess.Popen(mirror_command(address, lake), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            )

    def again() -> None:
        running[-1].kill()
        running[-1].wait()
        begin()

    begin()
    try:
        yield again
    finally:
        running[-1].kill()
        running[-1].wait()


class Writers:
    """Producers, transactions and a group on a source, until the block ends: topics `plain` and `moved`.

    Of each three transactions one is aborted; each has records in both partitions of `moved`.
    """

    GROUP = "readers"

    def __init__(self, address: str) -> None:
        self._address = address
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._produce, self._transact, self._consume)]
        self.failed: list[BaseException] = []
        self.produced = self.transactions = self.consumed = 0

    def __enter__(self) -> "Writers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._address, "linger.ms": 0})
        headers = [("h", None), ("h", b""), ("é", b"\x00")]
        for number in itertools.count():
            if self._stop.wait(0.01):
                break
            for partition in range(3):
                producer.produce("plain", f"{number}".encode(), key=None, partition=partition, headers=headers)
            producer.produce("plain", None, key=b"", partition=number % 3, timestamp=1_000_000 + number)
            producer.poll(0)
            self.produced += 4
        assert producer.flush(WAIT_S) == 0

    def _transact(self) -> None:
        producer = Producer({"bootstrap.servers": self._address, "transactional.id": "mover", "linger.ms": 0})
        producer.init_transactions(WAIT_S)
        while not self._stop.wait(0.02):
            producer.begin_transaction()
            for partition in range(2):
                producer.produce("moved", f"{self.transactions}".encode(), partition=partition)
            if self.transactions % 3 == 2:
                producer.flush(WAIT_S)
                producer.abort_transaction(WAIT_S)
            else:
                producer.commit_transaction(WAIT_S)
            self.transactions += 1

    def _consume(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._address, "group.id": self.GROUP, "enable.auto.commit": False,
                "auto.offset.reset": "earliest", "isolation.level": "read_committed",
            }
        )  # fmt: skip
        consumer.subscribe(["plain", "moved"])
        while not self._stop.is_set():
            messages = consumer.consume(500, 0.2)
            if messages:
                consumer.commit(asynchronous=False)
            self.consumed += len(messages)
        consumer.close()


def killed_again_and_again(address: str, lake: str, work: Path, kills: int, life_s: float) -> str:
    """Kill a mirror `kills` times while the source is written to, then compare; what was there to compare."""
    create(address, "plain", 3)
    create(address, "moved", 2)
    with Writers(address) as writers, mirroring(address, lake, work / "mirror.log") as again:
        for _ in range(kills):
            before = _copied(lake)
            eventually(lambda before=before: _copied(lake) > before, "the mirror copies", WAIT_S)
            threading.Event().wait(life_s)  # how long a mirror lives
            again()
    mirror_once(address, lake)
    with Lake(lake, create=False) as copy:
        found = differences(address, copy, ("plain", "moved"), (Writers.GROUP,))
        assert not found, found
        assert writers.transactions > 3
        assert writers.consumed
    return f"{kills} kills, {writers.produced} records, {writers.transactions} transactions"


def _copied(lake: str) -> int:
    with suppress(LakeNotFoundError, UnknownTopicError), Lake(lake, create=False) as copy:
        return sum(end for _, end in copy.offsets("plain").values())
    return 0
