"""`confluent_kafka.serializing_producer` under tidelog's name."""

from tidelog.clients.producer.serializing import SerializingProducer
from tidelog.clients.values.errors import KeySerializationError, ValueSerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext

__all__ = [
    "KeySerializationError",
    "MessageField",
    "SerializationContext",
    "SerializingProducer",
    "ValueSerializationError",
]
