"""`confluent_kafka.serialization` under tidelog's name."""

# ruff: noqa: I001 - one import for each module, with the aliases that name what is public

from tidelog.clients.values.errors import KafkaException as KafkaException, SerializationError as SerializationError
from tidelog.clients.values.serialization import (
    Deserializer as Deserializer,
    DeserializerBuilder as DeserializerBuilder,
    DoubleDeserializer as DoubleDeserializer,
    DoubleSerializer as DoubleSerializer,
    IntegerDeserializer as IntegerDeserializer,
    IntegerSerializer as IntegerSerializer,
    MessageField as MessageField,
    SerializationContext as SerializationContext,
    Serializer as Serializer,
    SerializerBuilder as SerializerBuilder,
    StringDeserializer as StringDeserializer,
    StringSerializer as StringSerializer,
)
