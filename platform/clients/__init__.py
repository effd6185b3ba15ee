"""Producer, Consumer and what they share, in the shape of confluent-kafka's Python client.

Each name is loaded when it is first used, so that errors and constants come without Arrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelog.admin.client import AdminClient
    from tidelog.clients.consumer import Consumer
    from tidelog.clients.deserializing_consumer import DeserializingConsumer
    from tidelog.clients.errors import KafkaError, KafkaException
    from tidelog.clients.message import Message
    from tidelog.clients.producer import Producer
    from tidelog.clients.serializing_producer import SerializingProducer
    from tidelog.clients.topic_partition import TopicPartition

__all__ = [
    "AdminClient",
    "Consumer",
    "DeserializingConsumer",
    "KafkaError",
    "KafkaException",
    "Message",
    "Producer",
    "SerializingProducer",
    "TopicPartition",
]

_HOMES = {
    "AdminClient": "tidelog.admin.client",
    "Consumer": "tidelog.clients.consumer",
    "DeserializingConsumer": "tidelog.clients.deserializing_consumer",
    "KafkaError": "tidelog.clients.errors",
    "KafkaException": "tidelog.clients.errors",
    "Message": "tidelog.clients.message",
    "Producer": "tidelog.clients.producer",
    "SerializingProducer": "tidelog.clients.serializing_producer",
    "TopicPartition": "tidelog.clients.topic_partition",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tidelog.clients' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
