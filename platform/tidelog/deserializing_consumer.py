"""`confluent_kafka.deserializing_consumer` under tidelog's name."""

from tidelog.clients.deserializing_consumer import DeserializingConsumer
from tidelog.clients.errors import ConsumeError, KeyDeserializationError, ValueDeserializationError
from tidelog.clients.message import Message
from tidelog.clients.serialization import MessageField, SerializationContext

__all__ = [
    "ConsumeError",
    "DeserializingConsumer",
    "KeyDeserializationError",
    "Message",
    "MessageField",
    "SerializationContext",
    "ValueDeserializationError",
]
