"""tidelog: a streaming platform with Kafka's semantics and no broker; the table is the log.

`import tidelog` loads little; each name below is loaded when it is first used. Those of `confluent_kafka` have its
names here.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelog import (
        admin,
        aio,
        clients,
        deserializing_consumer,
        error,
        groups,
        serialization,
        serializing_producer,
        spark,
    )
    from tidelog.admin import (
        AdminClient,
        ConsumerGroupState,
        ConsumerGroupTopicPartitions,
        ConsumerGroupType,
        ElectionType,
        IsolationLevel,
        NewPartitions,
        NewTopic,
        TopicCollection,
        TopicPartitionInfo,
    )
    from tidelog.clients.cluster import Node, Uuid
    from tidelog.clients.consumer.consumer import Consumer
    from tidelog.clients.consumer.deserializing import DeserializingConsumer
    from tidelog.clients.producer.key_partitions import consistent, fnv1a, murmur2
    from tidelog.clients.producer.producer import Producer
    from tidelog.clients.producer.serializing import SerializingProducer
    from tidelog.clients.values.constants import (
        OFFSET_BEGINNING,
        OFFSET_END,
        OFFSET_INVALID,
        OFFSET_STORED,
        TIMESTAMP_CREATE_TIME,
        TIMESTAMP_LOG_APPEND_TIME,
        TIMESTAMP_NOT_AVAILABLE,
    )
    from tidelog.clients.values.errors import KafkaError, KafkaException
    from tidelog.clients.values.message import Message
    from tidelog.clients.values.partitions import TopicPartition
    from tidelog.clients.versions import libversion, version
    from tidelog.log.base import errors
    from tidelog.log.lake import Lake
    from tidelog.log.records import partitioners
    from tidelog.log.topic import Topic

__all__ = [
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "OFFSET_INVALID",
    "OFFSET_STORED",
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_LOG_APPEND_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "AdminClient",
    "Consumer",
    "ConsumerGroupState",
    "ConsumerGroupTopicPartitions",
    "ConsumerGroupType",
    "DeserializingConsumer",
    "ElectionType",
    "IsolationLevel",
    "KafkaError",
    "KafkaException",
    "Lake",
    "Message",
    "NewPartitions",
    "NewTopic",
    "Node",
    "Producer",
    "SerializingProducer",
    "Topic",
    "TopicCollection",
    "TopicPartition",
    "TopicPartitionInfo",
    "Uuid",
    "admin",
    "aio",
    "clients",
    "consistent",
    "deserializing_consumer",
    "error",
    "errors",
    "fnv1a",
    "groups",
    "libversion",
    "murmur2",
    "partitioners",
    "serialization",
    "serializing_producer",
    "spark",
    "version",
]

# The modules that are names here themselves.
_MODULES = {
    "admin": "tidelog.admin",
    "aio": "tidelog.aio",
    "clients": "tidelog.clients",
    "deserializing_consumer": "tidelog.deserializing_consumer",
    "error": "tidelog.error",
    "errors": "tidelog.log.base.errors",
    "groups": "tidelog.groups",
    "partitioners": "tidelog.log.records.partitioners",
    "serialization": "tidelog.serialization",
    "serializing_producer": "tidelog.serializing_producer",
    "spark": "tidelog.spark",
}

# module -> what it has that is a name here
_HOMES = {
    "tidelog.admin": (
        "AdminClient",
        "ConsumerGroupState",
        "ConsumerGroupTopicPartitions",
        "ConsumerGroupType",
        "ElectionType",
        "IsolationLevel",
        "NewPartitions",
        "NewTopic",
        "TopicCollection",
        "TopicPartitionInfo",
    ),
    "tidelog.clients.cluster": ("Node", "Uuid"),
    "tidelog.clients.values.constants": (
        "OFFSET_BEGINNING",
        "OFFSET_END",
        "OFFSET_INVALID",
        "OFFSET_STORED",
        "TIMESTAMP_CREATE_TIME",
        "TIMESTAMP_LOG_APPEND_TIME",
        "TIMESTAMP_NOT_AVAILABLE",
    ),
    "tidelog.clients.consumer.consumer": ("Consumer",),
    "tidelog.clients.consumer.deserializing": ("DeserializingConsumer",),
    "tidelog.clients.values.errors": ("KafkaError", "KafkaException"),
    "tidelog.clients.producer.key_partitions": ("consistent", "fnv1a", "murmur2"),
    "tidelog.clients.values.message": ("Message",),
    "tidelog.clients.producer.producer": ("Producer",),
    "tidelog.clients.producer.serializing": ("SerializingProducer",),
    "tidelog.clients.values.partitions": ("TopicPartition",),
    "tidelog.clients.versions": ("libversion", "version"),
    "tidelog.log.lake": ("Lake",),
    "tidelog.log.topic": ("Topic",),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("tidelog")
    if name in _MODULES:
        return import_module(_MODULES[name])
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'tidelog' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
