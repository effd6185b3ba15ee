"""`confluent_kafka.serializing_producer` under tidelog's name."""

from tidelog.clients.errors import KeySerializationError, ValueSerializationError
from tidelog.clients.serialization import MessageField, SerializationContext
from tidelog.clients.serializing_producer import SerializingProducer

__all__ = [
    "KeySerializationError",
    "MessageField",
    "SerializationContext",
    "SerializingProducer",
    "ValueSerializationError",
]
