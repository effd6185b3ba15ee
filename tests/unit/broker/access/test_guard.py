"""Every API that is offered, for a principal with all that it needs, with less, and for one without a name."""

import pytest
from support.broker_requests import Requests, error_codes
from support.logs import memory_lake

from tidelog.access.model import CLUSTER_NAME, Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.state import AccessState
from tidelog.broker.access.guard import RULES, guarded
from tidelog.broker.base.access import AccessSettings
from tidelog.broker.wire.apis import BETWEEN_BROKERS, OFFERED, ApiKey

ALICE, ANONYMOUS = "User:alice", "User:ANONYMOUS"
TOPIC, GROUP = AclResource.TOPIC, AclResource.GROUP
CLUSTER, TRANSACTION = AclResource.CLUSTER, AclResource.TRANSACTIONAL_ID
DENIALS = {29, 30, 31, 53}


def right(operation, resource, name=None):
    if name is None:
        name = {TOPIC: "t", GROUP: "g", CLUSTER: CLUSTER_NAME, TRANSACTION: "x"}[resource]
    literal, allow = AclPattern.LITERAL, AclPermission.ALLOW
    return Acl(resource, literal, name, ALICE, "*", AclOperation[operation], allow)


def txn(**more):
    return {"transactional_id": "x", "producer_id": 1, "producer_epoch": 0, **more}


NO_BATCH = {"name": "t", "partition_data": [{"index": 0, "records": b""}]}
OFFSET = {"partition_index": 0, "committed_offset": 0}
MEMBER = {"group_id": "g", "member_id": "m", "generation_id": 1, "generation_id_or_member_epoch": 1}
JOIN = {"group_id": "g", "session_timeout": 10_000, "rebalance_timeout": 10_000, "protocol_type": "consumer"}
HEARTBEAT = {
    "group_id": "g", "member_id": "m", "member_epoch": 1, "rebalance_timeout": 10_000, "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}  # fmt: skip
STREAMS_HEARTBEAT = {
    "group_id": "g", "member_id": "m", "member_epoch": 1, "rebalance_timeout": 10_000,
    "topology": {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["t"]}]},
}  # fmt: skip
FILTER = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
BINDING = {
    "resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": ALICE, "host": "*",
    "operation": 3, "permission_type": 3,
}  # fmt: skip
TXN_V3 = {
    "v3_and_below_transactional_id": "x", "v3_and_below_producer_id": 1, "v3_and_below_producer_epoch": 0,
    "v3_and_below_topics": [{"name": "t", "partitions": [0]}],
}  # fmt: skip

# (API, version, request, the rights that it needs, the codes of a refusal without any). One row for each way to ask.
ROWS = [
    (ApiKey.PRODUCE, 9, {"acks": 1, "timeout": 1000, "topic_data": [NO_BATCH]}, [right("WRITE", TOPIC)], {29}),
    (
        ApiKey.FETCH, 12,
        {
            "replica_id": -1, "session_epoch": -1, "max_bytes": 1000,
            "topics": [{"topic": "t", "partitions": [{"partition": 0, "partition_max_bytes": 9}]}],
        },
        [right("READ", TOPIC)], {29},
    ),
    (
        ApiKey.LIST_OFFSETS, 7,
        {"replica_id": -1, "topics": [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -2}]}]},
        [right("DESCRIBE", TOPIC)], {29},
    ),
    (ApiKey.METADATA, 9, {"topics": [{"name": "t"}]}, [right("DESCRIBE", TOPIC)], {29}),
    (
        ApiKey.METADATA, 9, {"topics": [{"name": "new"}], "allow_auto_topic_creation": True},
        [right("DESCRIBE", TOPIC, "new"), right("CREATE", TOPIC, "new")], {29},
    ),
    (
        ApiKey.METADATA, 9, {"topics": [{"name": "new"}], "allow_auto_topic_creation": True},
        [right("DESCRIBE", TOPIC, "new"), right("CREATE", CLUSTER)], {29},
    ),
    (
        ApiKey.OFFSET_COMMIT, 8, {**MEMBER, "topics": [{"name": "t", "partitions": [OFFSET]}]},
        [right("READ", GROUP), right("READ", TOPIC)], {30},
    ),
    (
        ApiKey.OFFSET_FETCH, 8, {"groups": [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}]},
        [right("DESCRIBE", GROUP), right("DESCRIBE", TOPIC)], {30},
    ),
    (
        ApiKey.OFFSET_FETCH, 5, {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]},
        [right("DESCRIBE", GROUP), right("DESCRIBE", TOPIC)], {30},
    ),
    (
        ApiKey.OFFSET_FETCH, 1, {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]},
        [right("DESCRIBE", GROUP), right("DESCRIBE", TOPIC)], {30},
    ),
    (ApiKey.FIND_COORDINATOR, 3, {"key": "g", "key_type": 0}, [right("DESCRIBE", GROUP)], {30}),
    (ApiKey.FIND_COORDINATOR, 4, {"coordinator_keys": ["g"], "key_type": 0}, [right("DESCRIBE", GROUP)], {30}),
    (ApiKey.FIND_COORDINATOR, 4, {"coordinator_keys": ["x"], "key_type": 1}, [right("DESCRIBE", TRANSACTION)], {53}),
    (ApiKey.JOIN_GROUP, 7, {**JOIN, "protocols": [{"name": "range", "metadata": b""}]}, [right("READ", GROUP)], {30}),
    (ApiKey.SYNC_GROUP, 5, MEMBER, [right("READ", GROUP)], {30}),
    (ApiKey.HEARTBEAT, 4, MEMBER, [right("READ", GROUP)], {30}),
    (ApiKey.LEAVE_GROUP, 4, {"group_id": "g", "members": [{"member_id": "m"}]}, [right("READ", GROUP)], {30}),
    (ApiKey.DESCRIBE_GROUPS, 5, {"groups": ["g"]}, [right("DESCRIBE", GROUP)], {30}),
    (ApiKey.DELETE_GROUPS, 2, {"groups_names": ["g"]}, [right("DELETE", GROUP)], {30}),
    (
        ApiKey.OFFSET_DELETE, 0, {"group_id": "g", "topics": [{"name": "t", "partitions": [{"partition_index": 0}]}]},
        [right("DELETE", GROUP), right("READ", TOPIC)], {30},
    ),
    (
        ApiKey.CREATE_TOPICS, 7, {"topics": [{"name": "new", "num_partitions": 1, "replication_factor": 1}]},
        [right("CREATE", TOPIC, "new")], {29},
    ),
    (
        ApiKey.CREATE_TOPICS, 7, {"topics": [{"name": "new", "num_partitions": 1, "replication_factor": 1}]},
        [right("CREATE", CLUSTER)], {29},
    ),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, HEARTBEAT, [right("READ", GROUP), right("DESCRIBE", TOPIC)], {30}),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": ["g"]}, [right("DESCRIBE", GROUP)], {30}),
    (ApiKey.STREAMS_GROUP_HEARTBEAT, 0, STREAMS_HEARTBEAT, [right("READ", GROUP), right("DESCRIBE", TOPIC)], {30}),
    (ApiKey.STREAMS_GROUP_DESCRIBE, 0, {"group_ids": ["g"]}, [right("DESCRIBE", GROUP)], {30}),
    (ApiKey.DELETE_TOPICS, 5, {"topic_names": ["t"]}, [right("DELETE", TOPIC)], {29}),
    (ApiKey.DELETE_TOPICS, 6, {"topics": [{"name": "t"}]}, [right("DELETE", TOPIC)], {29}),
    (
        ApiKey.DELETE_RECORDS, 2, {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "offset": 0}]}]},
        [right("DELETE", TOPIC)], {29},
    ),
    (ApiKey.CREATE_PARTITIONS, 3, {"topics": [{"name": "t", "count": 3}]}, [right("ALTER", TOPIC)], {29}),
    (ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": None}, [right("IDEMPOTENT_WRITE", CLUSTER)], {31}),
    (ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": None}, [right("WRITE", TOPIC, "any")], {31}),
    (ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": "x"}, [right("WRITE", TRANSACTION)], {53}),
    (
        ApiKey.OFFSET_FOR_LEADER_EPOCH, 4,
        {"replica_id": -1, "topics": [{"topic": "t", "partitions": [{"partition": 0}]}]},
        [right("DESCRIBE", TOPIC)], {29},
    ),
    (ApiKey.ADD_PARTITIONS_TO_TXN, 3, TXN_V3, [right("WRITE", TRANSACTION), right("WRITE", TOPIC)], {53}),
    (
        ApiKey.ADD_PARTITIONS_TO_TXN, 4,
        {"transactions": [txn(topics=[{"name": "t", "partitions": [0]}])]},
        [right("CLUSTER_ACTION", CLUSTER), right("WRITE", TOPIC)], {31},
    ),
    (ApiKey.ADD_OFFSETS_TO_TXN, 3, txn(group_id="g"), [right("WRITE", TRANSACTION), right("READ", GROUP)], {53}),
    (ApiKey.END_TXN, 4, txn(committed=True), [right("WRITE", TRANSACTION)], {53}),
    (
        ApiKey.TXN_OFFSET_COMMIT, 3, txn(group_id="g", topics=[{"name": "t", "partitions": [OFFSET]}]),
        [right("WRITE", TRANSACTION), right("READ", GROUP), right("READ", TOPIC)], {53},
    ),
    *(
        (
            ApiKey.WRITE_TXN_MARKERS, 1,
            {
                "markers": [
                    {"producer_id": 1, "topics": [{"name": "t", "partition_indexes": [0]}], "coordinator_epoch": 0}
                ]
            },
            [right(operation, CLUSTER)], {31},
        )
        for operation in ("ALTER", "CLUSTER_ACTION")
    ),
    (
        ApiKey.DESCRIBE_PRODUCERS, 0, {"topics": [{"name": "t", "partition_indexes": [0]}]},
        [right("READ", TOPIC)], {29},
    ),
    (ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ["x"]}, [right("DESCRIBE", TRANSACTION)], {53}),
    *(
        (ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [{"resource_type": kind, "resource_name": name}]}, rights, codes)
        for kind, name, rights, codes in (
            (2, "t", [right("DESCRIBE_CONFIGS", TOPIC)], {29}),
            (4, "1", [right("DESCRIBE_CONFIGS", CLUSTER)], {31}),
            (32, "g", [right("DESCRIBE_CONFIGS", GROUP)], {30}),
        )
    ),
    *(
        (key, 1, {"resources": [{"resource_type": kind, "resource_name": name}]}, rights, codes)
        for key in (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
        for kind, name, rights, codes in (
            (2, "t", [right("ALTER_CONFIGS", TOPIC)], {29}),
            (4, "", [right("ALTER_CONFIGS", CLUSTER)], {31}),
            (32, "g", [right("ALTER_CONFIGS", GROUP)], {30}),
        )
    ),
    (ApiKey.LIST_CONFIG_RESOURCES, 1, {"resource_types": [32]}, [right("DESCRIBE_CONFIGS", CLUSTER)], {31}),
    (ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": None}, [right("DESCRIBE", CLUSTER)], {31}),
    (
        ApiKey.ELECT_LEADERS, 2, {"election_type": 0, "topic_partitions": [{"topic": "t", "partitions": [0]}]},
        [right("ALTER", CLUSTER)], {31},
    ),
    (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0,
        {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "replicas": [1]}]}]},
        [right("ALTER", CLUSTER)], {31},
    ),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None}, [right("DESCRIBE", CLUSTER)], {31}),
    (
        ApiKey.DESCRIBE_QUORUM, 1, {"topics": [{"topic_name": "__cluster_metadata", "partitions": []}]},
        [right("DESCRIBE", CLUSTER)], {31},
    ),
    (ApiKey.UPDATE_FEATURES, 1, {}, [right("ALTER", CLUSTER)], {31}),
    (ApiKey.UNREGISTER_BROKER, 0, {"broker_id": 7}, [right("ALTER", CLUSTER)], {31}),
    (ApiKey.DESCRIBE_ACLS, 3, FILTER, [right("DESCRIBE", CLUSTER)], {31}),
    (ApiKey.CREATE_ACLS, 3, {"creations": [BINDING]}, [right("ALTER", CLUSTER)], {31}),
    (ApiKey.DELETE_ACLS, 3, {"filters": [FILTER]}, [right("ALTER", CLUSTER)], {31}),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {"components": []}, [right("DESCRIBE_CONFIGS", CLUSTER)], {31}),
    (
        ApiKey.ALTER_CLIENT_QUOTAS, 1,
        {"entries": [{"entity": [{"entity_type": "user", "entity_name": "bob"}], "ops": []}]},
        [right("ALTER_CONFIGS", CLUSTER)], {31},
    ),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": None}, [right("DESCRIBE", CLUSTER)], {31}),
    (
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, {"deletions": [{"name": "bob", "mechanism": 1}]},
        [right("ALTER", CLUSTER)], {31},
    ),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": [{"name": "t"}]}, [right("DESCRIBE", TOPIC)], {29}),
]  # fmt: skip
# What everyone may ask, and what answers leave out silently.
FOR_ALL = {
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
    ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.DESCRIBE_CLUSTER,
    ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
}  # fmt: skip
FILTERED = {ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS}
IDS = [f"{row[0].name}-{row[1]}-{number}" for number, row in enumerate(ROWS)]


@pytest.fixture
def requests():
    lake = memory_lake()[0]
    lake.create_topic("t", partitions=2)
    with Requests(lake, access=AccessSettings(everyone=False)) as requests:
        yield requests


def refused_codes(requests, key, version, body, principal):
    """The codes of the answer that refuse for want of a right."""
    return error_codes(requests.reply(key, version, body, principal=principal)) & DENIALS


def take(requests, acls):
    requests.broker._context.access.take(AccessState(acls=frozenset(acls)))


@pytest.mark.parametrize(("key", "version", "body", "rights", "refused"), ROWS, ids=IDS)
def test_what_a_principal_may_do_is_done(requests, key, version, body, rights, refused):
    take(requests, rights)
    assert not refused_codes(requests, key, version, body, ALICE)


@pytest.mark.parametrize(("key", "version", "body", "rights", "refused"), ROWS, ids=IDS)
def test_each_right_is_needed(requests, key, version, body, rights, refused):
    take(requests, ())
    assert refused_codes(requests, key, version, body, ALICE) == refused
    for missing in rights:
        take(requests, set(rights) - {missing})
        assert refused_codes(requests, key, version, body, ALICE)


@pytest.mark.parametrize(("key", "version", "body", "rights", "refused"), ROWS, ids=IDS)
def test_a_client_without_a_name_has_no_one_elses_rights(requests, key, version, body, rights, refused):
    take(requests, rights)
    assert refused_codes(requests, key, version, body, ANONYMOUS) == refused


def test_every_api_has_a_rule_and_a_row():
    assert set(RULES) == {*OFFERED, *BETWEEN_BROKERS}
    assert {row[0] for row in ROWS} | FOR_ALL | FILTERED | set(BETWEEN_BROKERS) == set(RULES)


def test_a_handler_without_a_rule_is_refused(requests):
    with pytest.raises(KeyError):
        guarded(requests.broker._context, {7: None})
