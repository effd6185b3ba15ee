"""Producer, Consumer and what they share, in the shape of confluent-kafka's Python client.

Each name is loaded when it is first used, so that errors and constants come without Arrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelog.clients.consumer.consumer import Consumer as Consumer
    from tidelog.clients.consumer.deserializing import DeserializingConsumer as DeserializingConsumer
    from tidelog.clients.producer.producer import Producer as Producer
    from tidelog.clients.producer.serializing import SerializingProducer as SerializingProducer
    from tidelog.clients.values.errors import KafkaError as KafkaError
    from tidelog.clients.values.errors import KafkaException as KafkaException
    from tidelog.clients.values.message import Message as Message
    from tidelog.clients.values.partitions import TopicPartition as TopicPartition

_HOMES = {
    "Consumer": "tidelog.clients.consumer.consumer",
    "DeserializingConsumer": "tidelog.clients.consumer.deserializing",
    "KafkaError": "tidelog.clients.values.errors",
    "KafkaException": "tidelog.clients.values.errors",
    "Message": "tidelog.clients.values.message",
    "Producer": "tidelog.clients.producer.producer",
    "SerializingProducer": "tidelog.clients.producer.serializing",
    "TopicPartition": "tidelog.clients.values.partitions",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tidelog.clients' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
