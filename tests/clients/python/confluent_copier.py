"""confluent-kafka (librdkafka) copies a topic in transactions until it is killed; see compat/copier.py."""

import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

address, source, target, group, transactional_id, most = sys.argv[1:7]
ABORTED_EVERY = 5
WAIT_S = 60.0

consumer = Consumer(
    {
        "bootstrap.servers": address,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 1000,
    }
)
producer = Producer(
    {
        "bootstrap.servers": address,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": 10000,
        "linger.ms": 0,
    }
)


class RandomAbortError(Exception):
    """As if something went wrong."""


def copy(records: list) -> None:
    """One transaction. Raises `KafkaException` where it is to be aborted."""
    following = {}
    for record in records:
        producer.produce(target, record.value(), record.key(), partition=record.partition())
        following[record.partition()] = record.offset() + 1
    offsets = [TopicPartition(source, partition, offset) for partition, offset in following.items()]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), WAIT_S)


def go_back() -> None:
    """To what is committed: the records of an aborted transaction are to be read again."""
    for at in consumer.committed(consumer.assignment(), WAIT_S):
        consumer.seek(TopicPartition(at.topic, at.partition, at.offset if at.offset >= 0 else OFFSET_BEGINNING))


producer.init_transactions(WAIT_S)
consumer.subscribe([source])
number = 0
while True:
    records = [record for record in consumer.consume(int(most), timeout=0.2) if record.error() is None]
    if not records:
        continue
    number += 1
    try:
        producer.begin_transaction()
        copy(records)
        if number % ABORTED_EVERY == 0:
            raise RandomAbortError
        producer.commit_transaction(WAIT_S)
        print("committed", len(records), flush=True)
    except (KafkaException, RandomAbortError) as error:
        print("aborts:", error, flush=True)
        if isinstance(error, KafkaException) and error.args[0].fatal():
            raise
        producer.abort_transaction(WAIT_S)
        go_back()
