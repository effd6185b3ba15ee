"""What `list_topics` answers, in the shape of `confluent_kafka.admin.ClusterMetadata`.

tidelog's own clients ask no broker, whether or not some serve the lake. Programs that look for one find one: number 0,
the lake itself, which leads every partition and is its only replica.
"""

import base64
from dataclasses import dataclass, field
from typing import Final

from tidelog.clients.values.errors import KafkaError, kafka_error
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.operations.topics import read_topic

BROKER_ID: Final = 0
BROKER_PORT: Final = 0


@dataclass
class Node:
    """A broker. `rack` is always None."""

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def id_string(self) -> str:
        """The id as a text."""
        return str(self.id)

    def __str__(self) -> str:
        return f"({self.id}) {self.host}:{self.port}"


@dataclass(frozen=True)
class Uuid:
    """A topic's id: 128 bits, shown in URL-safe base64 as Kafka shows them."""

    most_significant_bits: int
    least_significant_bits: int

    @classmethod
    def of(cls, text: str) -> "Uuid":
        """Return the id that a UUID's usual text stands for."""
        return cls(*(_signed(half) for half in divmod(int(text.replace("-", ""), 16), 1 << 64)))

    def get_most_significant_bits(self) -> int:
        """The upper 64 bits, signed."""
        return self.most_significant_bits

    def get_least_significant_bits(self) -> int:
        """The lower 64 bits, signed."""
        return self.least_significant_bits

    def __str__(self) -> str:
        mask = (1 << 64) - 1
        raw = ((self.most_significant_bits & mask) << 64 | (self.least_significant_bits & mask)).to_bytes(16, "big")
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    def __repr__(self) -> str:
        return f"Uuid({self})"


def _signed(half: int) -> int:
    return half - (1 << 64) if half >> 63 else half


@dataclass
class BrokerMetadata:
    """A broker."""

    id: int = -1
    host: str = ""
    port: int = -1

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.id}"


@dataclass
class PartitionMetadata:
    """A partition: the ids of the brokers that lead it and hold replicas of it."""

    id: int = -1
    leader: int = -1
    replicas: list[int] = field(default_factory=list)
    isrs: list[int] = field(default_factory=list)
    error: KafkaError | None = None

    def __str__(self) -> str:
        return str(self.id)


@dataclass
class TopicMetadata:
    """A topic and its partitions by number; `error` says why there are none."""

    topic: str = ""
    partitions: dict[int, PartitionMetadata] = field(default_factory=dict)
    error: KafkaError | None = None

    def __str__(self) -> str:
        return self.topic


@dataclass
class ClusterMetadata:
    """A lake: its address as the cluster's id, and topics by name."""

    cluster_id: str = ""
    controller_id: int = -1
    brokers: dict[int, BrokerMetadata] = field(default_factory=dict)
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    orig_broker_id: int = -1
    orig_broker_name: str = ""

    def __str__(self) -> str:
        return self.cluster_id


def lake_node(lake: Lake) -> Node:
    """Return the lake as the one broker there is."""
    return Node(BROKER_ID, lake.uri, BROKER_PORT)


def cluster_metadata(lake: Lake, topic: str | None = None) -> ClusterMetadata:
    """Return what there is in a lake: all topics but internal ones, or the one that is asked for.

    A topic's `error` says what is wrong with it. Raises `LakeNotFoundError` and the storage's errors.
    """
    lake.require_lake()
    topics = lake.topics() if topic is None else [topic]
    broker = BrokerMetadata(BROKER_ID, lake.uri, BROKER_PORT)
    described = {name: _topic_metadata(lake, name) for name in topics}
    return ClusterMetadata(lake.uri, BROKER_ID, {BROKER_ID: broker}, described, BROKER_ID, str(broker))


def _topic_metadata(lake: Lake, name: str) -> TopicMetadata:
    try:
        partitions = range(read_topic(lake, name).partitions)
    except TidelogError as e:
        return TopicMetadata(name, {}, kafka_error(e))
    return TopicMetadata(name, {p: PartitionMetadata(p, BROKER_ID, [BROKER_ID], [BROKER_ID]) for p in partitions})
