"""What requests about consumer groups take and give."""

from dataclasses import dataclass, field

from tidelog.clients.admin.enums import AclOperation, ConsumerGroupState, ConsumerGroupType
from tidelog.clients.cluster import Node
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import TopicPartition


@dataclass
class ConsumerGroupTopicPartitions:
    """A group, and partitions of it with offsets; None stands for all that have one."""

    group_id: str
    topic_partitions: list[TopicPartition] | None = None


@dataclass
class ConsumerGroupListing:
    """A group. A simple one has committed offsets, and never had members."""

    group_id: str
    is_simple_consumer_group: bool
    state: ConsumerGroupState = ConsumerGroupState.UNKNOWN
    type: ConsumerGroupType = ConsumerGroupType.CLASSIC


@dataclass
class ListConsumerGroupsResult:
    """The groups, and what went wrong with some."""

    valid: list[ConsumerGroupListing] = field(default_factory=list)
    errors: list[KafkaException] = field(default_factory=list)


@dataclass
class MemberAssignment:
    """The partitions that a member reads."""

    topic_partitions: list[TopicPartition] = field(default_factory=list)


@dataclass
class MemberDescription:
    """A member of a group."""

    member_id: str
    client_id: str
    host: str
    assignment: MemberAssignment
    group_instance_id: str | None = None
    target_assignment: MemberAssignment | None = None


@dataclass
class ConsumerGroupDescription:
    """A group and its members. Its coordinator is the lake."""

    group_id: str
    is_simple_consumer_group: bool
    members: list[MemberDescription]
    partition_assignor: str
    state: ConsumerGroupState
    coordinator: Node
    authorized_operations: list[AclOperation] | None = None
    type: ConsumerGroupType = ConsumerGroupType.CLASSIC


@dataclass
class GroupMember:
    """A member as `list_groups` tells it; `metadata` and `assignment` are bytes of Kafka's consumer protocol."""

    id: str
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass
class GroupMetadata:
    """A group as `list_groups` tells it."""

    broker: Node
    id: str
    error: KafkaError | None
    state: str
    protocol_type: str
    protocol: str
    members: list[GroupMember]

    def __str__(self) -> str:
        return self.id
