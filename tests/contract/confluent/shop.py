"""A program as people write them: create a topic, produce, consume in a group, look at the group. Argument: address."""

import json
import sys

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec

ADDRESS = sys.argv[1]
TOPIC = "orders"
COUNT = 1_000


def create(admin):
    for topic, future in admin.create_topics([NewTopic(TOPIC, num_partitions=2, replication_factor=1)]).items():
        future.result()
        print(f"created {topic}")
    try:
        admin.create_topics([NewTopic(TOPIC, 2)])[TOPIC].result()
    except KafkaException as e:
        if e.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        print(f"again: {e.args[0].name()}")
    admin.create_partitions([NewPartitions(TOPIC, 3)])[TOPIC].result()
    metadata = admin.list_topics(TOPIC, timeout=10)
    print(f"partitions {sorted(metadata.topics[TOPIC].partitions)}")
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC)
    print(f"policy {admin.describe_configs([resource])[resource].result()['cleanup.policy'].value}")


def produce():
    delivered = []

    def acked(err, msg):
        assert err is None, err
        delivered.append((msg.partition(), msg.offset(), msg.key()))

    producer = Producer({"bootstrap.servers": ADDRESS, "client.id": "shop", "linger.ms": 5, "acks": "all"})
    for number in range(COUNT):
        while True:
            try:
                producer.produce(
                    TOPIC,
                    key=f"customer-{number % 10}",
                    value=json.dumps({"number": number}).encode("utf-8"),
                    headers={"source": b"shop"},
                    on_delivery=acked,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    left = producer.flush(30)
    keys = {}
    for partition, _, key in delivered:
        keys.setdefault(key, set()).add(partition)
    print(f"delivered {len(delivered)}, left {left}, partitions of a key {max(map(len, keys.values()))}")


def consume():
    events = []
    consumer = Consumer(
        {
            "bootstrap.servers": ADDRESS,
            "group.id": "billing",
            "client.id": "till",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "session.timeout.ms": 6000,
        }
    )

    def assigned(consumer, partitions):
        events.append(f"assigned {sorted(p.partition for p in partitions)}")

    def revoked(consumer, partitions):
        events.append(f"revoked {sorted(p.partition for p in partitions)}")

    consumer.subscribe([TOPIC], on_assign=assigned, on_revoke=revoked)
    numbers, ends = [], set()
    try:
        while len(numbers) < COUNT or len(ends) < 3:
            msg = consumer.poll(1.0)
            if msg is None:
                continue
            if msg.error():
                if msg.error().code() == KafkaError._PARTITION_EOF:
                    ends.add(msg.partition())
                    continue
                raise KafkaException(msg.error())
            assert msg.topic() == TOPIC
            assert dict(msg.headers()) == {"source": b"shop"}
            assert msg.timestamp()[1] > 0
            numbers.append(json.loads(msg.value())["number"])
            if len(numbers) % 70 == 0:  # never the last one, so that the commit after the loop has something to do
                consumer.commit(msg, asynchronous=False)
        consumer.commit(asynchronous=False)
        committed = consumer.committed([TopicPartition(TOPIC, p) for p in range(3)], timeout=10)
        print(f"committed {sum(max(0, p.offset) for p in committed)}")
        low, high = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=10)
        print(f"watermarks {low} {high == committed[0].offset}")
        consumer.seek(TopicPartition(TOPIC, 0, OFFSET_BEGINNING))
        again = consumer.poll(10.0)
        print(f"sought {again.partition()} {again.offset()}")
    finally:
        consumer.close()
    print(f"consumed {len(numbers)}, distinct {len(set(numbers))}, {'; '.join(events)}")


def look(admin):
    groups = admin.list_consumer_groups(request_timeout=10).result()
    print(f"groups {[(group.group_id, group.state.name) for group in groups.valid]}")
    request = [ConsumerGroupTopicPartitions("billing")]
    found = admin.list_consumer_group_offsets(request)["billing"].result().topic_partitions
    latest = admin.list_offsets({TopicPartition(TOPIC, p): OffsetSpec.latest() for p in range(3)})
    ends = {partition.partition: future.result().offset for partition, future in latest.items()}
    print(f"lag {sum(ends[p.partition] - p.offset for p in found)}")
    admin.delete_consumer_groups(["billing"])["billing"].result()
    admin.delete_topics([TOPIC])[TOPIC].result()
    print(f"topics {list(admin.list_topics(timeout=10).topics)}")


if __name__ == "__main__":
    client = AdminClient({"bootstrap.servers": ADDRESS})
    create(client)
    produce()
    consume()
    look(client)
