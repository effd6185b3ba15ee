"""Upper case of one partition in another topic, exactly once. Arguments: address, group, from, to, records a commit."""

import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

address, group, source, target, most = sys.argv[1:]
consumer = Consumer(
    {
        "bootstrap.servers": address,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
)
consumer.assign([TopicPartition(source, 0)])
producer = Producer({"bootstrap.servers": address, "transactional.id": f"{group}-0"})
producer.init_transactions()
producer.begin_transaction()
lost, open_records, commits = [], 0, 0


def told(err, msg):
    if err:
        lost.append((msg.topic(), err))


def commit():
    producer.send_offsets_to_transaction(consumer.position(consumer.assignment()), consumer.consumer_group_metadata())
    producer.commit_transaction()


while True:
    producer.poll(0)
    msg = consumer.poll(timeout=1.0)
    if msg is None:
        continue
    if msg.error():
        if msg.error().code() == KafkaError._PARTITION_EOF:
            break
        raise KafkaException(msg.error())
    producer.produce(target, msg.value().upper(), msg.key(), on_delivery=told)
    open_records += 1
    if open_records == int(most):
        commit()
        commits, open_records = commits + 1, 0
        producer.begin_transaction()
commit()
print(f"{commits} full commits, {open_records} records in the last one, {len(lost)} lost")
committed = consumer.committed([TopicPartition(source, 0)], timeout=10)
print(f"committed {committed[0].offset}, position {consumer.position([TopicPartition(source, 0)])[0].offset}")
consumer.close()
