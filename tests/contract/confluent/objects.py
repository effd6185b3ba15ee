"""Objects there and back: JSON, and serializers of the library, without a registry. Argument: address."""

import json
import sys
from uuid import UUID

from confluent_kafka import DeserializingConsumer, SerializingProducer
from confluent_kafka.deserializing_consumer import ValueDeserializationError
from confluent_kafka.error import KeySerializationError
from confluent_kafka.serialization import (
    DoubleDeserializer,
    IntegerSerializer,
    MessageField,
    SerializationContext,
    StringDeserializer,
    StringSerializer,
)
from confluent_kafka.serializing_producer import SerializingProducer as TheSame


class User:
    def __init__(self, name, age):
        self.name = name
        self.age = age


def user_to_json(user, ctx):
    assert ctx.field == MessageField.VALUE
    assert ctx.topic == "users"
    return json.dumps(vars(user)).encode("utf-8")


def json_to_user(data, ctx):
    return None if data is None else User(**json.loads(data))


address = sys.argv[1]
assert TheSame is SerializingProducer
producer = SerializingProducer(
    {"bootstrap.servers": address, "key.serializer": StringSerializer("utf_8"), "value.serializer": user_to_json}
)
for number, name in enumerate(["ann", "bob"]):
    producer.produce(topic="users", key=str(UUID(int=number)), value=User(name, 30 + number), on_delivery=None)
producer.flush()
numbers = SerializingProducer({"bootstrap.servers": address, "key.serializer": IntegerSerializer()})
try:
    numbers.produce("users", key="seven", value=b"{}")
except KeySerializationError as e:
    print(e.name)
assert StringSerializer()("ä", SerializationContext("users", MessageField.KEY)) == "ä".encode()
assert DoubleDeserializer()(b"?\xf8\0\0\0\0\0\0") == 1.5

producer.poll(0.0)
consumer = DeserializingConsumer(
    {
        "bootstrap.servers": address,
        "group.id": "readers",
        "auto.offset.reset": "earliest",
        "key.deserializer": StringDeserializer(),
        "value.deserializer": json_to_user,
    }
)
consumer.subscribe(["users"])
found = {}
while len(found) < 2:
    msg = consumer.poll(1.0)
    if msg is not None:
        found[msg.key()] = (msg.value().name, msg.deserialized_value().age)
print(sorted(found.items()))
numbers.produce("users", value=b"no JSON")
numbers.flush()
while True:
    try:
        consumer.poll(1.0)
    except ValueDeserializationError as e:
        print(e.name, e.kafka_message.value())
        break
consumer.close()
