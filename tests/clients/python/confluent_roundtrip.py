"""confluent-kafka (librdkafka) sends records by every codec and reads them in a group; see support/kafka_clients.py."""

import json
import sys

from confluent_kafka import Consumer, KafkaException, Producer

address, topic, group, codecs, number, transactional_id = sys.argv[1:7]
count = int(number)


def send(producer: Producer, prefix: str) -> None:
    for i in range(count):
        producer.produce(
            topic,
            key=f"{prefix}-{i}",
            value=None if i % 7 == 0 else f"value {i}",
            headers=[("number", str(i))],
            timestamp=1_700_000_000_000 + i,
            on_delivery=delivered,
        )
        producer.poll(0)
    if producer.flush(60):
        sys.exit("records were not acknowledged within 60 s")


def delivered(error, message) -> None:
    if error is not None:
        raise KafkaException(error)


for codec in codecs.split(","):
    settings = {"bootstrap.servers": address, "compression.type": codec}
    producer = Producer(settings | ({"transactional.id": transactional_id} if transactional_id else {}))
    if transactional_id:
        producer.init_transactions()
        producer.begin_transaction()
        send(producer, "aborted")
        producer.abort_transaction()
        producer.begin_transaction()
    send(producer, codec)
    if transactional_id:
        producer.commit_transaction()

consumer = Consumer(
    {
        "bootstrap.servers": address,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
)
consumer.subscribe([topic])
found = 0
while found < count * len(codecs.split(",")):
    for record in consumer.consume(1000, timeout=1.0):
        if record.error():
            raise KafkaException(record.error())
        found += 1
        value = None if record.value() is None else record.value().decode()
        line = {
            "partition": record.partition(),
            "offset": record.offset(),
            "key": record.key().decode(),
            "value": value,
        }
        seen = dict(record.headers())["number"].decode()
        print(json.dumps(line | {"number": seen, "timestamp": record.timestamp()[1]}))
consumer.commit(asynchronous=False)
consumer.close()
