"""tidelog and Kafka as one: topics, producers and consumers of the same shape, of which only the address differs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import confluent_kafka
from bench import Bench
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec
from leaders import await_leaders

import tidelog
from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.producer.producer import Producer
from tidelog.clients.values.partitions import TopicPartition

TIDELOG, KAFKA, DELTA = "tidelog", "kafka", "delta"
# Records that a producer may hold: all of a case's, so that no case measures how a full queue is waited for.
_QUEUED = 2_000_000
_QUEUED_KB = 1 << 20
_MADE_S = 60.0
# A controller refuses requests that make more than 10,000 records.
_PARTITIONS_AT_ONCE = 5_000
# Records between two flushes, where a topic is filled.
_FILLED_AT_ONCE = 500_000
# librdkafka writes what it retries to stderr, as often as it does.
_QUIET = {"log_level": 3}


def unled(admin: AdminClient, topic: str, partitions: Sequence[int]) -> list[int]:
    """Those of a Kafka topic's partitions whose leader does not answer."""
    wanted = {confluent_kafka.TopicPartition(topic, p): OffsetSpec.latest() for p in partitions}
    answers = admin.list_offsets(wanted, request_timeout=_MADE_S)
    return [place.partition for place, answer in answers.items() if answer.exception() is not None]


@dataclass(frozen=True)
class Peer:
    """One of the two systems. Picklable. `address`: a lake's folder, or a broker's."""

    system: str
    address: str

    @property
    def is_kafka(self) -> bool:
        """Whether it is the broker."""
        return self.system == KAFKA

    def create_topic(
        self, name: str, partitions: int, config: Mapping[str, str] | None = None, replicas: int = 1
    ) -> None:
        """Create a topic and wait until it is there."""
        if not self.is_kafka:
            with tidelog.Lake(self.address) as lake:
                lake.create_topic(name, partitions=partitions, config=dict(config or {}))
            return
        made = min(partitions, _PARTITIONS_AT_ONCE)
        new = NewTopic(name, num_partitions=made, replication_factor=replicas, config=dict(config or {}))
        admin = self._admin()
        admin.create_topics([new], operation_timeout=_MADE_S, request_timeout=_MADE_S)[name].result()
        while made < partitions:
            made = min(partitions, made + _PARTITIONS_AT_ONCE)
            more = NewPartitions(name, made)
            admin.create_partitions([more], operation_timeout=_MADE_S, request_timeout=_MADE_S)[name].result()
        await_leaders(partial(unled, admin, name), partitions)

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        if self.is_kafka:
            admin = self._admin()
            admin.delete_topics([name], operation_timeout=_MADE_S)[name].result()
        else:
            with tidelog.Lake(self.address, create=False) as lake:
                lake.delete_topic(name)

    def _admin(self) -> AdminClient:
        # Keep it until its futures are done: they end with it.
        return AdminClient({"bootstrap.servers": self.address, **_QUIET})

    def producer(self, **conf: Any) -> Any:
        """A producer, acks=all and idempotent unless `conf` (Kafka's keys, `_` for `.`) says otherwise."""
        settings = {
            "acks": "all",
            "enable.idempotence": "acks" not in conf,
            "compression.type": "none",
            "queue.buffering.max.messages": _QUEUED,
            "queue.buffering.max.kbytes": _QUEUED_KB,
            **_dotted(conf),
        }
        if self.is_kafka:
            return confluent_kafka.Producer({"bootstrap.servers": self.address, **_QUIET, **settings})
        return Producer({"lake": self.address, **settings})

    def consumer(self, **conf: Any) -> Any:
        """A consumer without a group's help: it starts where it is assigned, and commits nothing."""
        settings = {
            "group.id": "bench",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **_dotted(conf),
        }
        if self.is_kafka:
            return confluent_kafka.Consumer({"bootstrap.servers": self.address, **_QUIET, **settings})
        return Consumer({"lake": self.address, **settings})

    def reader(self, topic: str, partition: int, offset: int | None = None, **conf: Any) -> Any:
        """A consumer that is assigned one partition."""
        consumer = self.consumer(**conf)
        consumer.assign([self.place(topic, partition, offset)])
        return consumer

    def place(self, topic: str, partition: int, offset: int | None = None) -> Any:
        """A partition, from an offset on, else from the beginning."""
        kind: Any = confluent_kafka.TopicPartition if self.is_kafka else TopicPartition
        return kind(topic, partition, confluent_kafka.OFFSET_BEGINNING if offset is None else offset)


def both(bench: Bench, lake: str = "lake") -> dict[str, Peer]:
    """tidelog in a lake of the case, and the broker."""
    return {TIDELOG: Peer(TIDELOG, str(bench.work / lake)), KAFKA: Peer(KAFKA, bench.kafka)}


def flushed(producer: Any) -> None:
    """Wait until all is delivered, or fail."""
    left = producer.flush(120)
    if left:
        raise RuntimeError(f"{left} records were not delivered")


def fill(peer: Peer, topic: str, values: Sequence[bytes], keys: Sequence[bytes], times: int = 1, **conf: Any) -> None:
    """Produce these records a number of times, unmeasured."""
    producer = peer.producer(**conf)
    for _ in range(times):
        for first in range(0, len(values), _FILLED_AT_ONCE):
            part = slice(first, first + _FILLED_AT_ONCE)
            for value, key in zip(values[part], keys[part], strict=True):
                producer.produce(topic, value, key)
            flushed(producer)
    producer.close()


def _dotted(conf: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in conf.items()}
