"""Every API asks before it does: one rule for each, over the rights of `operations/rights.py`."""

from collections.abc import Mapping
from functools import wraps
from typing import Final

from tidelog.broker.access import cluster_rules, group_rules, topic_rules, transaction_rules
from tidelog.broker.access.authorization import GuardedRequest, Rule
from tidelog.broker.access.cluster_rules import Configurations, cluster
from tidelog.broker.base.calls import Call, Handler, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.wire.apis import ApiKey
from tidelog.operations.rights import Right


async def for_all(request: GuardedRequest) -> Reply:
    """The rule of what everyone may ask."""
    return await request.go_on()


async def in_handler(request: GuardedRequest) -> Reply:
    """The rule of APIs whose handlers ask by themselves, for what they answer with depends on it."""
    return await request.go_on()


RULES: Final[Mapping[ApiKey, Rule]] = {
    # what every client needs to begin
    ApiKey.API_VERSIONS: for_all,
    ApiKey.SASL_HANDSHAKE: for_all,
    ApiKey.SASL_AUTHENTICATE: for_all,
    # what every client may say of itself; where it goes, subscriptions say
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: for_all,
    ApiKey.PUSH_TELEMETRY: for_all,
    # topics and records
    ApiKey.PRODUCE: in_handler,  # Right.WRITE_RECORDS
    ApiKey.FETCH: in_handler,  # Right.READ_RECORDS
    ApiKey.METADATA: in_handler,  # Right.DESCRIBE_TOPIC, CREATE_TOPIC
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: in_handler,  # Right.DESCRIBE_TOPIC
    ApiKey.LIST_OFFSETS: topic_rules.LIST_OFFSETS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: topic_rules.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.CREATE_TOPICS: topic_rules.create_topics,
    ApiKey.DELETE_TOPICS: topic_rules.delete_topics,
    ApiKey.CREATE_PARTITIONS: topic_rules.CREATE_PARTITIONS,
    ApiKey.DELETE_RECORDS: topic_rules.DELETE_RECORDS,
    ApiKey.DESCRIBE_PRODUCERS: topic_rules.DESCRIBE_PRODUCERS,
    # groups
    ApiKey.FIND_COORDINATOR: cluster_rules.find_coordinator,
    ApiKey.JOIN_GROUP: group_rules.JOIN_GROUP,
    ApiKey.SYNC_GROUP: group_rules.SYNC_GROUP,
    ApiKey.HEARTBEAT: group_rules.HEARTBEAT,
    ApiKey.LEAVE_GROUP: group_rules.LEAVE_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: group_rules.consumer_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: group_rules.describe_consumer_groups,
    ApiKey.STREAMS_GROUP_HEARTBEAT: group_rules.streams_heartbeat,
    ApiKey.STREAMS_GROUP_DESCRIBE: group_rules.describe_streams_groups,
    ApiKey.OFFSET_COMMIT: group_rules.commit_offsets,
    ApiKey.OFFSET_FETCH: group_rules.fetch_offsets,
    ApiKey.OFFSET_DELETE: group_rules.delete_offsets,
    ApiKey.DESCRIBE_GROUPS: group_rules.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS: group_rules.list_groups,
    ApiKey.DELETE_GROUPS: group_rules.DELETE_GROUPS,
    # transactions
    ApiKey.INIT_PRODUCER_ID: transaction_rules.init_producer,
    ApiKey.ADD_PARTITIONS_TO_TXN: transaction_rules.add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: transaction_rules.add_offsets,
    ApiKey.TXN_OFFSET_COMMIT: group_rules.commit_offsets,
    ApiKey.END_TXN: transaction_rules.END_TXN,
    ApiKey.WRITE_TXN_MARKERS: transaction_rules.write_markers,
    ApiKey.DESCRIBE_TRANSACTIONS: transaction_rules.describe,
    ApiKey.LIST_TRANSACTIONS: transaction_rules.list_transactions,
    # the cluster
    ApiKey.DESCRIBE_CLUSTER: for_all,  # what Metadata tells, too; the operations of whom may see the cluster
    ApiKey.DESCRIBE_QUORUM: cluster(Right.DESCRIBE_CLUSTER, "topics", "nodes"),
    ApiKey.DESCRIBE_LOG_DIRS: cluster(Right.DESCRIBE_CLUSTER, "results", text=False),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: cluster(Right.DESCRIBE_CLUSTER, "topics"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: cluster(Right.ALTER_CLUSTER, "responses"),
    ApiKey.ELECT_LEADERS: cluster_rules.ELECT_LEADERS,
    ApiKey.UPDATE_FEATURES: cluster(Right.ALTER_CLUSTER, "results"),
    ApiKey.UNREGISTER_BROKER: cluster(Right.ALTER_CLUSTER),
    ApiKey.DESCRIBE_CONFIGS: Configurations(Right.DESCRIBE_CONFIG, "results"),
    ApiKey.ALTER_CONFIGS: Configurations(Right.ALTER_CONFIG, "responses"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Configurations(Right.ALTER_CONFIG, "responses"),
    ApiKey.LIST_CONFIG_RESOURCES: cluster(Right.LIST_CONFIGS, "config_resources", text=False),
    # access
    ApiKey.DESCRIBE_ACLS: cluster(Right.DESCRIBE_ACLS, "resources"),
    ApiKey.CREATE_ACLS: cluster_rules.CREATE_ACLS,
    ApiKey.DELETE_ACLS: cluster_rules.DELETE_ACLS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: cluster_rules.DESCRIBE_QUOTAS,
    ApiKey.ALTER_CLIENT_QUOTAS: cluster_rules.ALTER_QUOTAS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: cluster(Right.DESCRIBE_USERS, "results"),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: cluster_rules.ALTER_USERS,
    ApiKey.CREATE_DELEGATION_TOKEN: for_all,  # there are none: each request is refused
    ApiKey.RENEW_DELEGATION_TOKEN: for_all,
    ApiKey.EXPIRE_DELEGATION_TOKEN: for_all,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: for_all,
    # between brokers
    ApiKey.HAND_OVER: cluster_rules.hand_over,
}
# APIs that need no way through the guard.
_UNGUARDED: Final = (for_all, in_handler)


def guarded(context: Context, handlers: Handlers) -> Handlers:
    """The handlers, each behind its rule. Raises `KeyError` for an API that has none."""

    def behind(rule: Rule, handler: Handler) -> Handler:
        if rule in _UNGUARDED:
            return handler

        @wraps(handler, assigned=(), updated=())
        async def answer(call: Call) -> Reply:
            if context.access.is_open:
                return await handler(call)
            return await rule(GuardedRequest(context, call, handler))

        return answer

    return {key: behind(RULES[key], handler) for key, handler in handlers.items()}
