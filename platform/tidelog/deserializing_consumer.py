"""`confluent_kafka.deserializing_consumer` under tidelog's name."""

# ruff: noqa: I001 - one import for each module, with the aliases that name what is public

from tidelog.clients.consumer.deserializing import DeserializingConsumer as DeserializingConsumer
from tidelog.clients.values.errors import (
    ConsumeError as ConsumeError,
    KeyDeserializationError as KeyDeserializationError,
    ValueDeserializationError as ValueDeserializationError,
)
from tidelog.clients.values.message import Message as Message
from tidelog.clients.values.serialization import (
    MessageField as MessageField,
    SerializationContext as SerializationContext,
)
