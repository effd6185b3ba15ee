"""What requests about topics and their records take and give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidelog.clients.admin.enums import AclOperation
from tidelog.clients.cluster import Node, Uuid


@dataclass(order=True, unsafe_hash=True)
class NewTopic:
    """A topic to create.

    `num_partitions`: -1 for the lake's default. `replication_factor`: -1 or 1, for nothing here copies what the
    storage keeps. `replica_assignment`: refused. `config`: the topic's own configuration. Raises TypeError.
    """

    topic: str
    num_partitions: int = -1
    replication_factor: int = -1
    replica_assignment: Sequence[Sequence[int]] | None = field(default=None, compare=False)
    config: Mapping[str, str] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        _check_type("topic", self.topic, str)
        _check_type("num_partitions", self.num_partitions, int)
        _check_type("replication_factor", self.replication_factor, int)


@dataclass(order=True, unsafe_hash=True)
class NewPartitions:
    """How many partitions a topic shall have in all. Raises TypeError."""

    topic: str
    new_total_count: int
    replica_assignment: Sequence[Sequence[int]] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        _check_type("topic", self.topic, str)
        _check_type("new_total_count", self.new_total_count, int)


def _check_type(name: str, value: object, wanted: type) -> None:
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise TypeError(f"{name} must be {wanted.__name__}, not {type(value).__name__}")


@dataclass
class TopicCollection:
    """The topics that a request is about."""

    topic_names: list[str]


@dataclass
class TopicPartitionInfo:
    """A partition, and the brokers that hold it."""

    id: int
    leader: Node | None
    replicas: list[Node]
    isr: list[Node]


@dataclass
class TopicDescription:
    """A topic. `authorized_operations`: all of them where they were asked for, else None."""

    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: list[TopicPartitionInfo]
    authorized_operations: list[AclOperation] | None = None


@dataclass
class DescribeClusterResult:
    """The lake as a cluster of one broker."""

    controller: Node
    nodes: list[Node]
    cluster_id: str | None = None
    authorized_operations: list[AclOperation] | None = None


@dataclass
class DeletedRecords:
    """`low_watermark`: the partition's log start offset afterwards."""

    low_watermark: int


# --- offsets -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class OffsetSpec:
    """Which offset of a partition is asked for: `OffsetSpec.earliest()` and its like.

    `value`: ms since the epoch, or one of Kafka's numbers for the others (-2, -1, -3).
    """

    value: int

    @classmethod
    def earliest(cls) -> "OffsetSpec":
        """The log start offset."""
        return cls(-2)

    @classmethod
    def latest(cls) -> "OffsetSpec":
        """The log end offset."""
        return cls(-1)

    @classmethod
    def max_timestamp(cls) -> "OffsetSpec":
        """The first record that has the newest timestamp."""
        return cls(-3)

    @classmethod
    def for_timestamp(cls, timestamp: int) -> "OffsetSpec":
        """The first record at or after a time in ms since the epoch."""
        if timestamp < 0:
            raise ValueError(f"timestamp must be ms since the epoch, not {timestamp}")
        return cls(timestamp)


@dataclass
class ListOffsetsResultInfo:
    """An offset, and the time in ms of the record there; -1 for none, and where no record was asked for."""

    offset: int
    timestamp: int
    leader_epoch: int | None = None
