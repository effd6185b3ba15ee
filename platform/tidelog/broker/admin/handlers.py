"""Which requests of administration are answered by what."""

from tidelog.broker.admin.cluster import ClusterHandlers
from tidelog.broker.admin.configs import ConfigHandlers
from tidelog.broker.admin.metadata import MetadataHandler
from tidelog.broker.admin.partitions import PartitionHandlers
from tidelog.broker.admin.topics import TopicHandlers
from tidelog.broker.base.calls import Handlers
from tidelog.broker.base.context import Context
from tidelog.broker.wire.apis import ApiKey


def handlers(context: Context) -> Handlers:
    """The handlers of this part, over a broker's surroundings."""
    topics, configs = TopicHandlers(context), ConfigHandlers(context)
    cluster, partitions = ClusterHandlers(context), PartitionHandlers(context)
    return {
        ApiKey.METADATA: MetadataHandler(context),
        ApiKey.CREATE_TOPICS: topics.create,
        ApiKey.DELETE_TOPICS: topics.delete,
        ApiKey.CREATE_PARTITIONS: topics.create_partitions,
        ApiKey.DELETE_RECORDS: topics.delete_records,
        ApiKey.DESCRIBE_CONFIGS: configs.describe,
        ApiKey.ALTER_CONFIGS: configs.replace,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.alter,
        ApiKey.LIST_CONFIG_RESOURCES: configs.list_resources,
        ApiKey.DESCRIBE_CLUSTER: cluster.describe,
        ApiKey.DESCRIBE_QUORUM: cluster.describe_quorum,
        ApiKey.UPDATE_FEATURES: cluster.update_features,
        ApiKey.UNREGISTER_BROKER: cluster.unregister,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: partitions.describe,
        ApiKey.DESCRIBE_LOG_DIRS: partitions.describe_log_dirs,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: partitions.list_reassignments,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: partitions.reassign,
        ApiKey.ELECT_LEADERS: partitions.elect,
    }
