"""`confluent_kafka.deserializing_consumer` under tidelog's name."""

from tidelog.clients.consumer.deserializing import DeserializingConsumer
from tidelog.clients.values.errors import ConsumeError, KeyDeserializationError, ValueDeserializationError
from tidelog.clients.values.message import Message
from tidelog.clients.values.serialization import MessageField, SerializationContext

__all__ = [
    "ConsumeError",
    "DeserializingConsumer",
    "KeyDeserializationError",
    "Message",
    "MessageField",
    "SerializationContext",
    "ValueDeserializationError",
]
