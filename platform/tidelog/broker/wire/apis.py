"""The APIs that a broker offers, and in which versions: those of Kafka 4.2's brokers, and one between brokers.

Source: `ApiKeys` and the message definitions of Kafka 4.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Final


class ApiKey(IntEnum):
    """The number of an API in a request's header."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    # tidelog's own, far from Kafka's numbers: a broker asks the committer of a topic to commit what it has staged.
    HAND_OVER = 32_001


@lru_cache(None)
def title_of(api: str) -> str:
    """An API's name as Kafka writes it.

    >>> title_of("LIST_OFFSETS")
    'ListOffsets'
    """
    return "".join(word.capitalize() for word in api.split("_"))


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of an API, first and last. `shown`: the first one that clients get to see."""

    first: int
    last: int
    shown: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


def _versions(first: int, last: int, shown: int | None = None) -> Versions:
    return Versions(first, last, first if shown is None else shown)


OFFERED: Final[Mapping[ApiKey, Versions]] = {
    # librdkafka compresses only where Produce is offered from 0 on (KAFKA-18659); 0 to 2 are refused all the same.
    ApiKey.PRODUCE: _versions(3, 13, shown=0),
    ApiKey.FETCH: _versions(4, 18),
    ApiKey.LIST_OFFSETS: _versions(1, 11),
    ApiKey.METADATA: _versions(0, 13),
    ApiKey.OFFSET_COMMIT: _versions(2, 10),
    ApiKey.OFFSET_FETCH: _versions(1, 10),
    ApiKey.FIND_COORDINATOR: _versions(0, 6),
    ApiKey.JOIN_GROUP: _versions(0, 9),
    ApiKey.HEARTBEAT: _versions(0, 4),
    ApiKey.LEAVE_GROUP: _versions(0, 5),
    ApiKey.SYNC_GROUP: _versions(0, 5),
    ApiKey.DESCRIBE_GROUPS: _versions(0, 6),
    ApiKey.LIST_GROUPS: _versions(0, 5),
    ApiKey.SASL_HANDSHAKE: _versions(0, 1),
    ApiKey.API_VERSIONS: _versions(0, 4),
    ApiKey.CREATE_TOPICS: _versions(2, 7),
    ApiKey.DELETE_TOPICS: _versions(1, 6),
    ApiKey.DELETE_RECORDS: _versions(0, 2),
    ApiKey.INIT_PRODUCER_ID: _versions(0, 6),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _versions(2, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: _versions(0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: _versions(0, 4),
    ApiKey.END_TXN: _versions(0, 5),
    ApiKey.WRITE_TXN_MARKERS: _versions(1, 2),
    ApiKey.TXN_OFFSET_COMMIT: _versions(0, 5),
    ApiKey.DESCRIBE_ACLS: _versions(1, 3),
    ApiKey.CREATE_ACLS: _versions(1, 3),
    ApiKey.DELETE_ACLS: _versions(1, 3),
    ApiKey.DESCRIBE_CONFIGS: _versions(1, 4),
    ApiKey.ALTER_CONFIGS: _versions(0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: _versions(1, 4),
    ApiKey.SASL_AUTHENTICATE: _versions(0, 2),
    ApiKey.CREATE_PARTITIONS: _versions(0, 3),
    ApiKey.CREATE_DELEGATION_TOKEN: _versions(1, 3),
    ApiKey.RENEW_DELEGATION_TOKEN: _versions(1, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: _versions(1, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _versions(1, 3),
    ApiKey.DELETE_GROUPS: _versions(0, 2),
    ApiKey.ELECT_LEADERS: _versions(0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _versions(0, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _versions(0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _versions(0, 0),
    ApiKey.OFFSET_DELETE: _versions(0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _versions(0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: _versions(0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _versions(0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _versions(0, 0),
    ApiKey.DESCRIBE_QUORUM: _versions(0, 2),
    ApiKey.UPDATE_FEATURES: _versions(0, 2),
    ApiKey.DESCRIBE_CLUSTER: _versions(0, 2),
    ApiKey.DESCRIBE_PRODUCERS: _versions(0, 0),
    ApiKey.UNREGISTER_BROKER: _versions(0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: _versions(0, 0),
    ApiKey.LIST_TRANSACTIONS: _versions(0, 2),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _versions(0, 1),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _versions(0, 1),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _versions(0, 0),
    ApiKey.PUSH_TELEMETRY: _versions(0, 0),
    ApiKey.LIST_CONFIG_RESOURCES: _versions(0, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _versions(0, 0),
    ApiKey.STREAMS_GROUP_HEARTBEAT: _versions(0, 0),
    ApiKey.STREAMS_GROUP_DESCRIBE: _versions(0, 0),
}

# What brokers ask each other, and no client learns of. Their messages are not Kafka's.
BETWEEN_BROKERS: Final[Mapping[ApiKey, Versions]] = {ApiKey.HAND_OVER: _versions(0, 0)}


# Versions are what clients ask for: no more of them are remembered.
@lru_cache(1024)
def is_offered(key: ApiKey, version: int) -> bool:
    """Whether a broker takes requests of this version, of clients or of other brokers."""
    return version in (BETWEEN_BROKERS.get(key) or OFFERED[key])
