"""`confluent_kafka.admin` under tidelog's name; the code is in `clients/admin`."""

# ruff: noqa: I001 - one import for each module, with the aliases that name what is public

from tidelog.clients.admin.access import (
    AclBinding as AclBinding,
    AclBindingFilter as AclBindingFilter,
    ScramCredentialInfo as ScramCredentialInfo,
    UserScramCredentialAlteration as UserScramCredentialAlteration,
    UserScramCredentialDeletion as UserScramCredentialDeletion,
    UserScramCredentialsDescription as UserScramCredentialsDescription,
    UserScramCredentialUpsertion as UserScramCredentialUpsertion,
)
from tidelog.clients.admin.client import AdminClient as AdminClient
from tidelog.clients.admin.configs import ConfigEntry as ConfigEntry, ConfigResource as ConfigResource
from tidelog.clients.admin.enums import (
    CONFIG_SOURCE_DEFAULT_CONFIG as CONFIG_SOURCE_DEFAULT_CONFIG,
    CONFIG_SOURCE_DYNAMIC_BROKER_CONFIG as CONFIG_SOURCE_DYNAMIC_BROKER_CONFIG,
    CONFIG_SOURCE_DYNAMIC_DEFAULT_BROKER_CONFIG as CONFIG_SOURCE_DYNAMIC_DEFAULT_BROKER_CONFIG,
    CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG as CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG,
    CONFIG_SOURCE_GROUP_CONFIG as CONFIG_SOURCE_GROUP_CONFIG,
    CONFIG_SOURCE_STATIC_BROKER_CONFIG as CONFIG_SOURCE_STATIC_BROKER_CONFIG,
    CONFIG_SOURCE_UNKNOWN_CONFIG as CONFIG_SOURCE_UNKNOWN_CONFIG,
    RESOURCE_ANY as RESOURCE_ANY,
    RESOURCE_BROKER as RESOURCE_BROKER,
    RESOURCE_GROUP as RESOURCE_GROUP,
    RESOURCE_TOPIC as RESOURCE_TOPIC,
    RESOURCE_TRANSACTIONAL_ID as RESOURCE_TRANSACTIONAL_ID,
    RESOURCE_UNKNOWN as RESOURCE_UNKNOWN,
    AclOperation as AclOperation,
    AclPermissionType as AclPermissionType,
    AlterConfigOpType as AlterConfigOpType,
    ConfigSource as ConfigSource,
    ConsumerGroupState as ConsumerGroupState,
    ConsumerGroupType as ConsumerGroupType,
    ElectionType as ElectionType,
    IsolationLevel as IsolationLevel,
    ResourcePatternType as ResourcePatternType,
    ResourceType as ResourceType,
    ScramMechanism as ScramMechanism,
)
from tidelog.clients.admin.group_types import (
    ConsumerGroupDescription as ConsumerGroupDescription,
    ConsumerGroupListing as ConsumerGroupListing,
    ConsumerGroupTopicPartitions as ConsumerGroupTopicPartitions,
    GroupMember as GroupMember,
    GroupMetadata as GroupMetadata,
    ListConsumerGroupsResult as ListConsumerGroupsResult,
    MemberAssignment as MemberAssignment,
    MemberDescription as MemberDescription,
)
from tidelog.clients.admin.topics import (
    DeletedRecords as DeletedRecords,
    DescribeClusterResult as DescribeClusterResult,
    ListOffsetsResultInfo as ListOffsetsResultInfo,
    NewPartitions as NewPartitions,
    NewTopic as NewTopic,
    OffsetSpec as OffsetSpec,
    TopicCollection as TopicCollection,
    TopicDescription as TopicDescription,
    TopicPartitionInfo as TopicPartitionInfo,
)
from tidelog.clients.cluster import (
    BrokerMetadata as BrokerMetadata,
    ClusterMetadata as ClusterMetadata,
    Node as Node,
    PartitionMetadata as PartitionMetadata,
    TopicMetadata as TopicMetadata,
    Uuid as Uuid,
)
from tidelog.clients.values.errors import KafkaError as KafkaError, KafkaException as KafkaException
from tidelog.clients.values.partitions import OFFSET_INVALID as OFFSET_INVALID, TopicPartition as TopicPartition
