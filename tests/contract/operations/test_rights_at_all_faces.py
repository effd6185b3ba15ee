"""Each row of the table of rights is what brokers, the registry, a worker and the console ask for.

A row is changed to ask for what no client may do: then each request that is of this operation is refused, though its
client may do all else.
"""

import asyncio
from dataclasses import replace

import httpx
import pytest
from support.broker_requests import Requests, error_codes
from support.connect_plugins import PLUGINS
from support.produce_requests import batch, encoded_produce

from tidelog.access.model import ANONYMOUS, CLUSTER_NAME, Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.state import AccessState
from tidelog.broker.base.access import AccessSettings
from tidelog.broker.wire.apis import ApiKey
from tidelog.connect.api.operations import ConnectOperations
from tidelog.connect.api.routes import RestApp
from tidelog.connect.runtime.plugins import Plugins
from tidelog.connect.worker import Worker
from tidelog.console.app import ConsoleApp
from tidelog.console.base.console import Console
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.operations.rights import Right
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.registry.api.app import RegistryApp
from tidelog.server.logins import HttpAccess, HttpLogins
from tidelog.transactions.transaction_log import TransactionLog

DENIALS = {29, 30, 31, 53}
# An operation that no request asks for.
FORBIDDEN = AclOperation.CREATE_TOKENS
ALLOWED = set(AclOperation) - {FORBIDDEN, AclOperation.ALL, AclOperation.ANY}
ALL_ELSE = frozenset(
    Acl(resource, AclPattern.LITERAL, name, ANONYMOUS, "*", operation, AclPermission.ALLOW)
    for resource, name in (
        (AclResource.TOPIC, "*"),
        (AclResource.GROUP, "*"),
        (AclResource.TRANSACTIONAL_ID, "*"),
        (AclResource.CLUSTER, CLUSTER_NAME),
    )
    for operation in ALLOWED
)


class Broker:
    def __init__(self, lake):
        self.requests = Requests(lake, access=AccessSettings(everyone=False))
        self.requests.broker._context.access.take(AccessState(acls=ALL_ELSE))

    def refuses(self, key, version, body, hidden=None):
        answer = self.requests.reply(key, version, body)
        return hidden(answer) if hidden else bool(error_codes(answer) & DENIALS)


class Http:
    """`make`: an application of log-ins."""

    def __init__(self, lake, make, **headers):
        logins = HttpLogins(lake, HttpAccess(everyone=False), "TEST")
        logins._access.take(AccessState(acls=ALL_ELSE))
        self.app, self.headers = make(logins), headers

    def refuses(self, method, path, body=None, hidden=None):
        async def sent():
            transport = httpx.ASGITransport(self.app, client=("10.0.0.1", 5))
            async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
                return await client.request(method, path, json=body, headers=self.headers)

        answer = asyncio.run(sent())
        if hidden is None:
            return answer.status_code == 403
        assert answer.status_code == 200, answer.text
        return hidden(answer.json())


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    with Lake(tmp_path_factory.mktemp("rights") / "lake") as lake:
        lake.create_topic("t")
        GroupLog(lake).commit_offsets("g", {("t", 0): CommittedOffset(0)})
        TransactionLog(lake).begin("x", 60_000)
        registry = Http(lake, lambda logins: RegistryApp(RegistryLog(lake), logins=logins))
        assert not registry.refuses("POST", "/subjects/t-value/versions", {"schema": '"int"'})
        worker = Worker(lake, "127.0.0.1:8083", None, Plugins((), PLUGINS))
        with Console(lake) as console:
            broker = Broker(lake)
            token = {"x-tidelog-csrf": console.csrf_token(ANONYMOUS)}
            yield {
                "broker": broker,
                "registry": registry,
                "worker": Http(lake, lambda logins: RestApp(ConnectOperations(worker), logins=logins)),
                "console": Http(lake, lambda logins: ConsoleApp(console, logins=logins), **token),
            }
            broker.requests.__exit__()


# --- requests ----------------------------------------------------------------------------------------------

TOPIC, OFFSETS = {"name": "t"}, {"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 0}]}
MEMBER = {"group_id": "g", "member_id": "m", "generation_id": 1, "generation_id_or_member_epoch": 1}
JOIN = {"group_id": "g", "session_timeout": 10_000, "rebalance_timeout": 10_000, "protocol_type": "consumer"}
HEARTBEAT = {
    "group_id": "g", "member_id": "m", "member_epoch": 0, "rebalance_timeout": 10_000, "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}  # fmt: skip
STREAMS_HEARTBEAT = {
    "group_id": "g", "member_id": "m", "member_epoch": 1, "rebalance_timeout": 10_000,
    "topology": {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["t"]}]},
}  # fmt: skip
TXN = {"transactional_id": "x", "producer_id": 1, "producer_epoch": 0}
TXN_V3 = {
    "v3_and_below_transactional_id": "x", "v3_and_below_producer_id": 1, "v3_and_below_producer_epoch": 0,
    "v3_and_below_topics": [{"name": "t", "partitions": [0]}],
}  # fmt: skip
TXN_V4 = {"transactions": [{**TXN, "topics": [{"name": "t", "partitions": [0]}]}]}
FETCH = {
    "replica_id": -1, "session_epoch": -1, "max_bytes": 1000,
    "topics": [{"topic": "t", "partitions": [{"partition": 0, "partition_max_bytes": 9}]}],
}  # fmt: skip
FETCH_OFFSETS = {"groups": [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}]}
DELETE_OFFSETS = {"group_id": "g", "topics": [{"name": "t", "partitions": [{"partition_index": 7}]}]}
NEW = {"topics": [{"name": "new", "num_partitions": 1, "replication_factor": 1}], "validate_only": True}
MARKER = {"producer_id": 1, "topics": [{"name": "t", "partition_indexes": [0]}], "coordinator_epoch": 0}
FILTER = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
NO_FILTER = {**FILTER, "principal_filter": "User:none"}
QUOTA = {"entries": [{"entity": [{"entity_type": "user", "entity_name": "bob"}], "ops": []}]}
RESET = {"to": "earliest", "dry_run": True}


def config(kind, name):
    return {"resources": [{"resource_type": kind, "resource_name": name}]}


def none_of(name):
    """Whether a list of the answer is empty."""
    return lambda answer: not answer[name]


# (right, its argument, the face, a request). What would change the lake is about what is not there, or not valid.
ROWS = [
    (Right.READ_RECORDS, "topic", "broker", ApiKey.FETCH, 12, FETCH),
    (Right.READ_RECORDS, "topic", "console", "GET", "/api/topics/t/records"),
    (Right.WRITE_RECORDS, "topic", "broker", ApiKey.PRODUCE, 9, encoded_produce(9, {"t": {0: b""}})),
    (Right.WRITE_RECORDS, "topic", "console", "POST", "/api/topics/t/records", {"no": 1}),
    (
        Right.WRITE_RECORDS, "transactional_id", "broker", ApiKey.PRODUCE, 9,
        encoded_produce(
            9, {"t": {0: batch(b"a", producer=(1, 0, 0), transactional=True)}}, transactional_id="x", timeout_s=1.0
        ),
    ),
    (
        Right.DELETE_RECORDS, "topic", "broker", ApiKey.DELETE_RECORDS, 2,
        {"topics": [{"name": "t", "partitions": [{"partition_index": 7, "offset": 0}]}]},
    ),
    (
        Right.DESCRIBE_PRODUCERS, "topic", "broker", ApiKey.DESCRIBE_PRODUCERS, 0,
        {"topics": [{"name": "t", "partition_indexes": [0]}]},
    ),
    (Right.DESCRIBE_PRODUCERS, "topic", "console", "GET", "/api/producers?topic=t"),
    (Right.WRITE_IDEMPOTENTLY, "", "broker", ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": None}),
    # --- topics
    (Right.DESCRIBE_TOPIC, "topic", "broker", ApiKey.METADATA, 9, {"topics": [TOPIC]}),
    (Right.DESCRIBE_TOPIC, "topic", "broker", ApiKey.METADATA, 9, {"topics": None}, none_of("topics")),
    (Right.DESCRIBE_TOPIC, "topic", "broker", ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": [TOPIC]}),
    (
        Right.DESCRIBE_TOPIC, "topic", "broker", ApiKey.LIST_OFFSETS, 7,
        {"replica_id": -1, "topics": [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -2}]}]},
    ),
    (
        Right.DESCRIBE_TOPIC, "topic", "broker", ApiKey.OFFSET_FOR_LEADER_EPOCH, 4,
        {"replica_id": -1, "topics": [{"topic": "t", "partitions": [{"partition": 0}]}]},
    ),
    (Right.DESCRIBE_TOPIC, "topic", "console", "GET", "/api/topics/t"),
    (Right.DESCRIBE_TOPIC, "topic", "console", "GET", "/api/topics", None, none_of("topics")),
    (Right.CREATE_TOPIC, "topic", "broker", ApiKey.CREATE_TOPICS, 7, NEW),
    (Right.CREATE_TOPIC, "topic", "console", "POST", "/api/topics", {"name": "not a name"}),
    (Right.DELETE_TOPIC, "topic", "broker", ApiKey.DELETE_TOPICS, 5, {"topic_names": ["none"]}),
    (Right.DELETE_TOPIC, "topic", "console", "DELETE", "/api/topics/t", {}),
    (Right.ADD_PARTITIONS, "topic", "broker", ApiKey.CREATE_PARTITIONS, 3, {"topics": [{"name": "none", "count": 3}]}),
    (Right.ADD_PARTITIONS, "topic", "console", "PATCH", "/api/topics/t", {"no": 1}),
    # --- configurations
    (Right.DESCRIBE_CONFIG, "topic", "broker", ApiKey.DESCRIBE_CONFIGS, 4, config(2, "t")),
    (Right.DESCRIBE_CONFIG, "group", "broker", ApiKey.DESCRIBE_CONFIGS, 4, config(32, "g")),
    (Right.DESCRIBE_CONFIG, "", "broker", ApiKey.DESCRIBE_CONFIGS, 4, config(4, "1")),
    (Right.DESCRIBE_CONFIG, "topic", "console", "GET", "/api/topics/t/config"),
    (Right.DESCRIBE_CONFIG, "subject", "registry", "GET", "/config/t-value"),
    (Right.DESCRIBE_CONFIG, "", "registry", "GET", "/mode"),
    (Right.ALTER_CONFIG, "topic", "broker", ApiKey.ALTER_CONFIGS, 1, config(2, "none")),
    (Right.ALTER_CONFIG, "topic", "broker", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, config(2, "none")),
    (Right.ALTER_CONFIG, "group", "broker", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, config(32, "g")),
    (Right.ALTER_CONFIG, "", "broker", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, config(4, "")),
    (Right.LIST_CONFIGS, "", "broker", ApiKey.LIST_CONFIG_RESOURCES, 1, {"resource_types": [32]}),
    (Right.ALTER_CONFIG, "topic", "console", "PATCH", "/api/topics/t/config", {"no": 1}),
    (Right.ALTER_CONFIG, "subject", "registry", "PUT", "/config/t-value", {"compatibility": "no such"}),
    (Right.ALTER_CONFIG, "", "registry", "PUT", "/mode", {"mode": "no such"}),
    # --- groups
    (Right.LIST_GROUPS, "group", "broker", ApiKey.LIST_GROUPS, 4, {}, none_of("groups")),
    (Right.DESCRIBE_GROUP, "group", "broker", ApiKey.DESCRIBE_GROUPS, 5, {"groups": ["g"]}),
    (Right.DESCRIBE_GROUP, "group", "console", "GET", "/api/groups/g"),
    (Right.DESCRIBE_GROUP, "group", "console", "GET", "/api/groups", None, none_of("groups")),
    (
        Right.JOIN_GROUP, "group", "broker", ApiKey.JOIN_GROUP, 7,
        {**JOIN, "protocols": [{"name": "range", "metadata": b""}]},
    ),
    (Right.JOIN_GROUP, "group", "broker", ApiKey.SYNC_GROUP, 5, MEMBER),
    (Right.JOIN_GROUP, "group", "broker", ApiKey.HEARTBEAT, 4, MEMBER),
    (Right.JOIN_GROUP, "group", "broker", ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, HEARTBEAT),
    (Right.DESCRIBE_TOPIC, "topic", "broker", ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, HEARTBEAT),
    (Right.DESCRIBE_GROUP, "group", "broker", ApiKey.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": ["g"]}),
    (Right.JOIN_GROUP, "group", "broker", ApiKey.STREAMS_GROUP_HEARTBEAT, 0, STREAMS_HEARTBEAT),
    (Right.DESCRIBE_TOPIC, "topic", "broker", ApiKey.STREAMS_GROUP_HEARTBEAT, 0, STREAMS_HEARTBEAT),
    (Right.DESCRIBE_GROUP, "group", "broker", ApiKey.STREAMS_GROUP_DESCRIBE, 0, {"group_ids": ["g"]}),
    (Right.JOIN_GROUP, "group", "broker", ApiKey.LEAVE_GROUP, 4, {"group_id": "g", "members": [{"member_id": "m"}]}),
    (Right.DELETE_GROUP, "group", "broker", ApiKey.DELETE_GROUPS, 2, {"groups_names": ["none"]}),
    (Right.DELETE_GROUP, "group", "console", "DELETE", "/api/groups/g", {}),
    (Right.FETCH_OFFSETS, "group", "broker", ApiKey.OFFSET_FETCH, 8, FETCH_OFFSETS),
    (Right.FETCH_OFFSETS, "topic", "broker", ApiKey.OFFSET_FETCH, 8, FETCH_OFFSETS),
    (Right.COMMIT_OFFSETS, "group", "broker", ApiKey.OFFSET_COMMIT, 8, {**MEMBER, "topics": [OFFSETS]}),
    (Right.COMMIT_OFFSETS, "topic", "broker", ApiKey.OFFSET_COMMIT, 8, {**MEMBER, "topics": [OFFSETS]}),
    (
        Right.COMMIT_OFFSETS, "transactional_id", "broker", ApiKey.TXN_OFFSET_COMMIT, 3,
        {**TXN, "group_id": "g", "topics": [OFFSETS]},
    ),
    (Right.COMMIT_OFFSETS, "group", "console", "POST", "/api/groups/g/reset", RESET),
    (Right.COMMIT_OFFSETS, "topic", "console", "POST", "/api/groups/g/reset", RESET),
    (Right.DELETE_OFFSETS, "group", "broker", ApiKey.OFFSET_DELETE, 0, DELETE_OFFSETS),
    (Right.DELETE_OFFSETS, "topic", "broker", ApiKey.OFFSET_DELETE, 0, DELETE_OFFSETS),
    # --- transactions
    (Right.USE_TRANSACTIONAL_ID, "transactional_id", "broker", ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": "x"}),
    (Right.USE_TRANSACTIONAL_ID, "transactional_id", "broker", ApiKey.END_TXN, 4, {**TXN, "committed": True}),
    (Right.ADD_TO_TRANSACTION, "transactional_id", "broker", ApiKey.ADD_PARTITIONS_TO_TXN, 3, TXN_V3),
    (Right.ADD_TO_TRANSACTION, "topic", "broker", ApiKey.ADD_PARTITIONS_TO_TXN, 3, TXN_V3),
    (Right.ADD_TO_TRANSACTION, "topic", "broker", ApiKey.ADD_PARTITIONS_TO_TXN, 4, TXN_V4),
    (
        Right.ADD_TO_TRANSACTION, "transactional_id", "broker", ApiKey.ADD_OFFSETS_TO_TXN, 3,
        {**TXN, "group_id": "g"},
    ),
    (Right.ADD_TO_TRANSACTION, "group", "broker", ApiKey.ADD_OFFSETS_TO_TXN, 3, {**TXN, "group_id": "g"}),
    (
        Right.DESCRIBE_TRANSACTION, "transactional_id", "broker", ApiKey.DESCRIBE_TRANSACTIONS, 0,
        {"transactional_ids": ["x"]},
    ),
    (
        Right.DESCRIBE_TRANSACTION, "transactional_id", "broker", ApiKey.LIST_TRANSACTIONS, 0, {},
        none_of("transaction_states"),
    ),
    (Right.DESCRIBE_TRANSACTION, "transactional_id", "console", "GET", "/api/transactions", None, none_of("ids")),
    (Right.ABORT_TRANSACTION, "", "broker", ApiKey.WRITE_TXN_MARKERS, 1, {"markers": [MARKER]}),
    (Right.ABORT_TRANSACTION, "", "console", "POST", "/api/transactions/abort", {}),
    (
        Right.FIND_COORDINATOR, "group", "broker", ApiKey.FIND_COORDINATOR, 4,
        {"coordinator_keys": ["g"], "key_type": 0},
    ),
    (
        Right.FIND_COORDINATOR, "transactional_id", "broker", ApiKey.FIND_COORDINATOR, 4,
        {"coordinator_keys": ["x"], "key_type": 1},
    ),
    # --- the cluster
    (Right.DESCRIBE_CLUSTER, "", "broker", ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": None}),
    (Right.DESCRIBE_CLUSTER, "", "broker", ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None}),
    (
        Right.DESCRIBE_CLUSTER, "", "broker", ApiKey.DESCRIBE_QUORUM, 1,
        {"topics": [{"topic_name": "__cluster_metadata", "partitions": []}]},
    ),
    *(
        (Right.DESCRIBE_CLUSTER, "", "console", "GET", f"/api/{what}")
        for what in ("brokers", "mirrors", "cuts", "maintenance", "check", "doctor")
    ),
    (
        Right.ALTER_CLUSTER, "", "broker", ApiKey.ELECT_LEADERS, 2,
        {"election_type": 0, "topic_partitions": [{"topic": "t", "partitions": [0]}]},
    ),
    (
        Right.ALTER_CLUSTER, "", "broker", ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0,
        {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "replicas": [1]}]}]},
    ),
    (Right.ALTER_CLUSTER, "", "broker", ApiKey.UPDATE_FEATURES, 1, {}),
    (Right.ALTER_CLUSTER, "", "broker", ApiKey.UNREGISTER_BROKER, 0, {"broker_id": 7}),
    (Right.ALTER_CLUSTER, "", "console", "GET", "/api/session", None, lambda told: not told["may"]["alter_cluster"]),
    (Right.ACT_AS_BROKER, "", "broker", ApiKey.ADD_PARTITIONS_TO_TXN, 4, TXN_V4),
    (Right.RUN_MAINTENANCE, "", "console", "POST", "/api/maintenance/run", {"no": 1}),
    # --- access
    (Right.DESCRIBE_ACLS, "", "broker", ApiKey.DESCRIBE_ACLS, 3, FILTER),
    (
        Right.ALTER_ACLS, "", "broker", ApiKey.CREATE_ACLS, 3,
        {"creations": [{"resource_type": 2, "resource_name": "", "resource_pattern_type": 3, "principal": "User:none",
                        "host": "*", "operation": 3, "permission_type": 3}]},
    ),
    (Right.ALTER_ACLS, "", "broker", ApiKey.DELETE_ACLS, 3, {"filters": [NO_FILTER]}),
    (Right.DESCRIBE_USERS, "", "broker", ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": None}),
    (
        Right.ALTER_USERS, "", "broker", ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0,
        {"deletions": [{"name": "bob", "mechanism": 1}]},
    ),
    (Right.DESCRIBE_QUOTAS, "", "broker", ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {"components": []}),
    (Right.ALTER_QUOTAS, "", "broker", ApiKey.ALTER_CLIENT_QUOTAS, 1, {**QUOTA, "validate_only": True}),
    # --- schemas
    (Right.READ_SCHEMA, "subject", "registry", "GET", "/subjects/t-value/versions"),
    (Right.READ_SCHEMA, "subject", "registry", "GET", "/subjects", None, lambda subjects: subjects == []),
    (Right.READ_SCHEMA, "subject", "registry", "POST", "/subjects/t-value", {"schema": '"int"'}),
    (
        Right.READ_SCHEMA, "subject", "registry", "POST", "/compatibility/subjects/t-value/versions",
        {"schema": '"int"'},
    ),
    (Right.READ_SCHEMA, "subject", "console", "GET", "/api/schemas", None, none_of("subjects")),
    (Right.REGISTER_SCHEMA, "subject", "registry", "POST", "/subjects/t-value/versions", {"schema": '"int"'}),
    (Right.DELETE_SCHEMA, "subject", "registry", "DELETE", "/subjects/none-value"),
    (Right.LIST_CONTEXTS, "", "registry", "GET", "/contexts"),
    (Right.DELETE_CONTEXT, "", "registry", "DELETE", "/contexts/.none"),
    # --- connectors
    (Right.DESCRIBE_CONNECTOR, "", "worker", "GET", "/connectors/c/status"),
    (Right.DESCRIBE_CONNECTOR, "", "console", "GET", "/api/connectors"),
    (Right.DESCRIBE_CONNECTOR_CONFIG, "", "worker", "GET", "/connectors"),
    (Right.ALTER_CONNECTOR, "", "worker", "DELETE", "/connectors/c"),
    (Right.DESCRIBE_LOGGERS, "", "worker", "GET", "/admin/loggers"),
    (Right.ALTER_LOGGERS, "", "worker", "PUT", "/admin/loggers/none", {}),
]  # fmt: skip
# Other rights by which a request is allowed, too: they are taken away with it.
OTHER_WAYS = {
    Right.WRITE_IDEMPOTENTLY: [(Right.WRITE_RECORDS, "topic")],
    Right.ABORT_TRANSACTION: [(Right.ACT_AS_BROKER, "")],
}
IDS = [f"{row[0].name}-{row[1] or 'cluster'}-{row[2]}-{number}" for number, row in enumerate(ROWS)]


def test_every_right_is_asked_for_by_a_face():
    assert {row[:2] for row in ROWS} == {(right, argument) for right in Right for argument in right.needs}


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_face_asks_for_the_right_of_the_table(faces, monkeypatch, row):
    right, argument, face, *request = row
    assert not faces[face].refuses(*request)
    for taken, its_argument in [(right, argument), *OTHER_WAYS.get(right, ())]:
        need = replace(taken.needs[its_argument], operation=FORBIDDEN, everywhere=False)
        monkeypatch.setitem(taken.needs, its_argument, need)
    assert faces[face].refuses(*request)
