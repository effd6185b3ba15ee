"""An admin client, a producer and a consumer, each in its scope. Argument: address."""

import sys

from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

CONF = {"bootstrap.servers": sys.argv[1]}

with AdminClient(CONF) as admin:
    for name, future in admin.create_topics([NewTopic("scoped", num_partitions=1, replication_factor=1)]).items():
        print(f"created {name}: {future.result()}")
    admin.poll(timeout=1.0)

with Producer(CONF) as producer:
    for number in range(3):
        producer.produce("scoped", key=f"k{number}", value=f"v{number}".encode(), callback=lambda err, _: print(err))
        producer.poll(0)

with Consumer({**CONF, "group.id": "scopes", "auto.offset.reset": "earliest"}) as consumer:
    consumer.subscribe(["scoped"])
    left = 3
    while left:
        msg = consumer.poll(timeout=1.0)
        if msg is None or (msg.error() and msg.error().code() == KafkaError._PARTITION_EOF):
            continue
        print(msg.key().decode(), msg.value().decode(), msg.offset())
        left -= 1
