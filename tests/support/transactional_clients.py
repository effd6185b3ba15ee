"""Kafka's transactional producers in tests, and what consumers of all kinds read of a topic."""

import time
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tidelog import Consumer as NativeConsumer
from tidelog.log.lake import Lake

WAIT_S = 60.0


def transactional(address: str, name: str = "x", **more: object) -> Producer:
    """librdkafka's, initialized."""
    settings: dict[str, object] = {"bootstrap.servers": address, "transactional.id": name, "linger.ms": 0}
    producer = Producer(settings | {key.replace("_", "."): value for key, value in more.items()})
    producer.init_transactions(WAIT_S)
    return producer


def send(producer: Producer, texts: Iterable[str], topic: str = "out") -> None:
    """Produce, and wait until all of it is taken."""
    for text in texts:
        producer.produce(topic, text.encode(), key=text.encode())
    assert producer.flush(WAIT_S) == 0


def read(address: str, isolation: str, topic: str = "out") -> list[str]:
    """What a Kafka consumer reads of a topic from its beginning to its end, sorted."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    try:
        left = set(consumer.list_topics(topic, WAIT_S).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        found, until_s = [], time.monotonic() + WAIT_S
        while left:
            assert time.monotonic() < until_s, f"partitions {left} have not ended"
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error() is None:
                found.append(message.value().decode())
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                left.discard(message.partition())
        return sorted(found)
    finally:
        consumer.close()


def read_natively(lake: Lake, topic: str = "out") -> list[str]:
    """What tidelog's own consumer reads of it, sorted."""
    state = lake.topic(topic).state()
    ends = {partition: state.end(partition) for partition in range(state.partitions)}
    consumer = NativeConsumer({"lake": lake, "group.id": "native", "enable.auto.commit": False})
    try:
        consumer.assign([_native_place(topic, partition) for partition in ends])
        found: list[str] = []
        until_s = time.monotonic() + WAIT_S
        while len(found) < sum(ends.values()):
            assert time.monotonic() < until_s, f"{len(found)} of {ends}"
            found += [message.value().decode() for message in consumer.consume(100, 0.2)]
        return sorted(found)
    finally:
        consumer.close()


def _native_place(topic: str, partition: int) -> object:
    from tidelog import TopicPartition as NativePartition

    return NativePartition(topic, partition, 0)


def agreed(lake: Lake, address: str, topic: str = "out") -> list[str]:
    """What all kinds of consumers read: they agree on it."""
    found = read(address, "read_committed", topic)
    assert read(address, "read_uncommitted", topic) == found
    assert read_natively(lake, topic) == found
    return found
