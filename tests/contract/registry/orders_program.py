"""A program for confluent-kafka with its Avro serializers: produces orders, reads them as a member of a group.

Arguments: the brokers' address, the registry's, a topic, and JSON with settings of Kafka's clients and the registry's.
"""

import json
import sys

from confluent_kafka import DeserializingConsumer, SerializingProducer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import StringDeserializer, StringSerializer

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
    }
)
COUNT = 50


def main() -> None:
    """Print what was read, in order, and the subject's versions."""
    brokers, registry, topic, settings = sys.argv[1:]
    given = json.loads(settings)
    client = SchemaRegistryClient({"url": registry, **given["registry"]})
    kafka = {"bootstrap.servers": brokers, **given["kafka"]}
    failed = []
    producer = SerializingProducer(
        {**kafka, "key.serializer": StringSerializer(), "value.serializer": AvroSerializer(client, SCHEMA)}
    )
    for number in range(COUNT):
        value = {"id": number, "note": None if number % 3 else f"note {number}"}
        producer.produce(topic, key=str(number), value=value, on_delivery=lambda error, _: failed.append(error))
    producer.flush()
    assert not any(failed), failed[:1]
    consumer = DeserializingConsumer(
        {
            **kafka,
            "group.id": "orders",
            "auto.offset.reset": "earliest",
            "key.deserializer": StringDeserializer(),
            "value.deserializer": AvroDeserializer(client),
        }
    )
    consumer.subscribe([topic])
    found = {}
    while len(found) < COUNT:
        message = consumer.poll(1)
        if message is not None:
            assert message.error() is None, message.error()
            found[message.key()] = message.value()
    consumer.close()
    assert found == {str(n): {"id": n, "note": None if n % 3 else f"note {n}"} for n in range(COUNT)}, found
    print(f"{len(found)} orders, versions {client.get_versions(topic + '-value')}")


main()
