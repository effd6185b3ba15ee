"""`confluent_kafka.serializing_producer` under tidelog's name."""

# ruff: noqa: I001 - one import for each module, with the aliases that name what is public

from tidelog.clients.producer.serializing import SerializingProducer as SerializingProducer
from tidelog.clients.values.errors import (
    KeySerializationError as KeySerializationError,
    ValueSerializationError as ValueSerializationError,
)
from tidelog.clients.values.serialization import (
    MessageField as MessageField,
    SerializationContext as SerializationContext,
)
