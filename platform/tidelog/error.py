"""`confluent_kafka.error` under tidelog's name. tidelog's own errors are `tidelog.errors`."""

# ruff: noqa: I001 - one import for each module, with the aliases that name what is public

from tidelog.clients.values.errors import (
    ConsumeError as ConsumeError,
    KafkaError as KafkaError,
    KafkaException as KafkaException,
    KeyDeserializationError as KeyDeserializationError,
    KeySerializationError as KeySerializationError,
    ProduceError as ProduceError,
    SerializationError as SerializationError,
    ValueDeserializationError as ValueDeserializationError,
    ValueSerializationError as ValueSerializationError,
)
from tidelog.clients.values.message import Message as Message
