"""Enumerations of `confluent_kafka.admin`, with librdkafka's numbers."""

from enum import Enum
from typing import Final


class _Ordered(Enum):
    """Members sort by their numbers."""

    def __lt__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self.value < other.value)


class ResourceType(_Ordered):
    """What has a configuration or access rules."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    BROKER = 4
    TRANSACTIONAL_ID = 5


class ResourcePatternType(_Ordered):
    """How a resource's name is matched."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class ConfigSource(Enum):
    """Where a configuration's value was set: at the topic itself, at its lake as a default of topics, or nowhere."""

    UNKNOWN_CONFIG = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    GROUP_CONFIG = 8


class AlterConfigOpType(Enum):
    """What to do with a configuration's key; APPEND and SUBTRACT change lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConsumerGroupState(_Ordered):
    """What a group is about."""

    UNKNOWN = 0
    PREPARING_REBALANCING = 1
    COMPLETING_REBALANCING = 2
    STABLE = 3
    DEAD = 4
    EMPTY = 5


class ConsumerGroupType(_Ordered):
    """Which protocol a group's members speak."""

    UNKNOWN = 0
    CONSUMER = 1
    CLASSIC = 2


class IsolationLevel(_Ordered):
    """Which records a reader sees. No reader sees records of an open transaction, whatever it says."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class ElectionType(_Ordered):
    """How a partition's leader is elected."""

    PREFERRED = 0
    UNCLEAN = 1


class AclOperation(_Ordered):
    """What access rules allow."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class AclPermissionType(_Ordered):
    """Whether an access rule allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ScramMechanism(_Ordered):
    """How a SCRAM password is hashed."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


# The same numbers under the names that older programs use.
RESOURCE_UNKNOWN: Final = ResourceType.UNKNOWN.value
RESOURCE_ANY: Final = ResourceType.ANY.value
RESOURCE_TOPIC: Final = ResourceType.TOPIC.value
RESOURCE_GROUP: Final = ResourceType.GROUP.value
RESOURCE_BROKER: Final = ResourceType.BROKER.value
RESOURCE_TRANSACTIONAL_ID: Final = ResourceType.TRANSACTIONAL_ID.value

CONFIG_SOURCE_UNKNOWN_CONFIG: Final = ConfigSource.UNKNOWN_CONFIG.value
CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG: Final = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
CONFIG_SOURCE_DYNAMIC_BROKER_CONFIG: Final = ConfigSource.DYNAMIC_BROKER_CONFIG.value
CONFIG_SOURCE_DYNAMIC_DEFAULT_BROKER_CONFIG: Final = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value
CONFIG_SOURCE_STATIC_BROKER_CONFIG: Final = ConfigSource.STATIC_BROKER_CONFIG.value
CONFIG_SOURCE_DEFAULT_CONFIG: Final = ConfigSource.DEFAULT_CONFIG.value
CONFIG_SOURCE_GROUP_CONFIG: Final = ConfigSource.GROUP_CONFIG.value
