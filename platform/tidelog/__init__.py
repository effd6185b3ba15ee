"""tidelog: a streaming platform with Kafka's semantics over Delta tables; the table is the log.

`import tidelog` loads little; each name below is loaded when it is first used. Those of `confluent_kafka` have its
names here.
"""

# ruff: noqa: I001 - one import for each module, with the aliases that name what is public

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelog import (
        admin as admin,
        aio as aio,
        clients as clients,
        deserializing_consumer as deserializing_consumer,
        error as error,
        groups as groups,
        serialization as serialization,
        serializing_producer as serializing_producer,
        spark as spark,
        streams as streams,
    )
    from tidelog.admin import (
        AdminClient as AdminClient,
        ConsumerGroupState as ConsumerGroupState,
        ConsumerGroupTopicPartitions as ConsumerGroupTopicPartitions,
        ConsumerGroupType as ConsumerGroupType,
        ElectionType as ElectionType,
        IsolationLevel as IsolationLevel,
        NewPartitions as NewPartitions,
        NewTopic as NewTopic,
        TopicCollection as TopicCollection,
        TopicPartitionInfo as TopicPartitionInfo,
    )
    from tidelog.clients.cluster import Node as Node, Uuid as Uuid
    from tidelog.clients.consumer.consumer import Consumer as Consumer
    from tidelog.clients.consumer.deserializing import DeserializingConsumer as DeserializingConsumer
    from tidelog.clients.producer.key_partitions import consistent as consistent, fnv1a as fnv1a, murmur2 as murmur2
    from tidelog.clients.producer.producer import Producer as Producer
    from tidelog.clients.producer.serializing import SerializingProducer as SerializingProducer
    from tidelog.clients.values.errors import KafkaError as KafkaError, KafkaException as KafkaException
    from tidelog.clients.values.message import (
        TIMESTAMP_CREATE_TIME as TIMESTAMP_CREATE_TIME,
        TIMESTAMP_LOG_APPEND_TIME as TIMESTAMP_LOG_APPEND_TIME,
        TIMESTAMP_NOT_AVAILABLE as TIMESTAMP_NOT_AVAILABLE,
        Message as Message,
    )
    from tidelog.clients.values.partitions import (
        OFFSET_BEGINNING as OFFSET_BEGINNING,
        OFFSET_END as OFFSET_END,
        OFFSET_INVALID as OFFSET_INVALID,
        OFFSET_STORED as OFFSET_STORED,
        TopicPartition as TopicPartition,
    )
    from tidelog.clients.versions import libversion as libversion, version as version
    from tidelog.lakes import Lake as Lake
    from tidelog.log.base import errors as errors
    from tidelog.log.records import partitioners as partitioners
    from tidelog.log.topic import Topic as Topic


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
    "streams": "tidelog.streams",
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
    "tidelog.clients.consumer.consumer": ("Consumer",),
    "tidelog.clients.consumer.deserializing": ("DeserializingConsumer",),
    "tidelog.clients.values.errors": ("KafkaError", "KafkaException"),
    "tidelog.clients.producer.key_partitions": ("consistent", "fnv1a", "murmur2"),
    "tidelog.clients.values.message": (
        "Message",
        "TIMESTAMP_CREATE_TIME",
        "TIMESTAMP_LOG_APPEND_TIME",
        "TIMESTAMP_NOT_AVAILABLE",
    ),
    "tidelog.clients.producer.producer": ("Producer",),
    "tidelog.clients.producer.serializing": ("SerializingProducer",),
    "tidelog.clients.values.partitions": (
        "OFFSET_BEGINNING",
        "OFFSET_END",
        "OFFSET_INVALID",
        "OFFSET_STORED",
        "TopicPartition",
    ),
    "tidelog.clients.versions": ("libversion", "version"),
    "tidelog.lakes": ("Lake",),
    "tidelog.log.topic": ("Topic",),
}

__all__ = sorted([*_MODULES, *(name for names in _HOMES.values() for name in names)])


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
