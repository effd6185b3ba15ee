"""The table of rights: each row as Kafka has it, and what is asked by it."""

import pytest

from tidelog.access.authorizer import Subject
from tidelog.access.in_force import AccessInForce
from tidelog.access.model import (
    CLUSTER_NAME,
    OPERATIONS_OF,
    Acl,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
)
from tidelog.access.state import AccessState
from tidelog.operations.rights import AskedRight, Right

ALICE = Subject("User:alice", "10.0.0.1")
RESOURCES = {
    "topic": AclResource.TOPIC,
    "group": AclResource.GROUP,
    "transactional_id": AclResource.TRANSACTIONAL_ID,
    "subject": AclResource.TOPIC,
    "": AclResource.CLUSTER,
}
# {operation of a lake: {argument: operation of Kafka}}; "" is the cluster (Kafka's documentation, "Operations and
# Resources on Protocols"; schemas and connectors are ours).
ROWS = {
    "READ_RECORDS": {"topic": "READ"},
    "WRITE_RECORDS": {"topic": "WRITE", "transactional_id": "WRITE"},
    "DELETE_RECORDS": {"topic": "DELETE"},
    "DESCRIBE_PRODUCERS": {"topic": "READ"},
    "WRITE_IDEMPOTENTLY": {"": "IDEMPOTENT_WRITE"},
    "DESCRIBE_TOPIC": {"topic": "DESCRIBE"},
    "CREATE_TOPIC": {"topic": "CREATE"},
    "DELETE_TOPIC": {"topic": "DELETE"},
    "ADD_PARTITIONS": {"topic": "ALTER"},
    "DESCRIBE_CONFIG": dict.fromkeys(("topic", "group", "subject", ""), "DESCRIBE_CONFIGS"),
    "ALTER_CONFIG": dict.fromkeys(("topic", "group", "subject", ""), "ALTER_CONFIGS"),
    "LIST_GROUPS": {"group": "DESCRIBE"},
    "DESCRIBE_GROUP": {"group": "DESCRIBE"},
    "JOIN_GROUP": {"group": "READ"},
    "DELETE_GROUP": {"group": "DELETE"},
    "FETCH_OFFSETS": {"group": "DESCRIBE", "topic": "DESCRIBE"},
    "COMMIT_OFFSETS": {"group": "READ", "topic": "READ", "transactional_id": "WRITE"},
    "DELETE_OFFSETS": {"group": "DELETE", "topic": "READ"},
    "USE_TRANSACTIONAL_ID": {"transactional_id": "WRITE"},
    "ADD_TO_TRANSACTION": {"transactional_id": "WRITE", "topic": "WRITE", "group": "READ"},
    "DESCRIBE_TRANSACTION": {"transactional_id": "DESCRIBE"},
    "ABORT_TRANSACTION": {"": "ALTER"},
    "FIND_COORDINATOR": {"group": "DESCRIBE", "transactional_id": "DESCRIBE"},
    "DESCRIBE_CLUSTER": {"": "DESCRIBE"},
    "ALTER_CLUSTER": {"": "ALTER"},
    "ACT_AS_BROKER": {"": "CLUSTER_ACTION"},
    "RUN_MAINTENANCE": {"": "ALTER"},
    "DESCRIBE_ACLS": {"": "DESCRIBE"},
    "ALTER_ACLS": {"": "ALTER"},
    "DESCRIBE_USERS": {"": "DESCRIBE"},
    "ALTER_USERS": {"": "ALTER"},
    "DESCRIBE_QUOTAS": {"": "DESCRIBE_CONFIGS"},
    "LIST_CONFIGS": {"": "DESCRIBE_CONFIGS"},
    "ALTER_QUOTAS": {"": "ALTER_CONFIGS"},
    "READ_SCHEMA": {"subject": "DESCRIBE"},
    "REGISTER_SCHEMA": {"subject": "WRITE"},
    "DELETE_SCHEMA": {"subject": "DELETE"},
    "LIST_CONTEXTS": {"": "DESCRIBE"},
    "DELETE_CONTEXT": {"": "ALTER"},
    "DESCRIBE_CONNECTOR": {"": "DESCRIBE"},
    "DESCRIBE_CONNECTOR_CONFIG": {"": "DESCRIBE_CONFIGS"},
    "ALTER_CONNECTOR": {"": "ALTER"},
    "DESCRIBE_LOGGERS": {"": "DESCRIBE_CONFIGS"},
    "ALTER_LOGGERS": {"": "ALTER_CONFIGS"},
}
EVERYWHERE = {Right.CREATE_TOPIC, Right.DELETE_TOPIC, Right.LIST_GROUPS}


def test_each_row():
    found = {r.name: {argument: need.operation.name for argument, need in r.needs.items()} for r in Right}
    assert found == ROWS


@pytest.mark.parametrize("right", Right, ids=lambda right: right.name)
def test_a_row_asks_for_what_its_resource_has(right):
    for argument, need in right.needs.items():
        assert need.argument == argument
        assert need.resource is RESOURCES[argument]
        assert need.operation in OPERATIONS_OF[need.resource]
        assert need.everywhere == (right in EVERYWHERE)


def test_what_is_asked_is_of_the_name_that_is_given():
    asked = Right.COMMIT_OFFSETS.asked(group="g")
    assert asked == AskedRight(AclOperation.READ, AclResource.GROUP, "g")
    with pytest.raises(ValueError, match="unpack"):
        Right.COMMIT_OFFSETS.asked(group="g", topic="t")
    assert Right.ALTER_CONFIG.asked() == AskedRight(AclOperation.ALTER_CONFIGS, AclResource.CLUSTER, CLUSTER_NAME)
    assert Right.CREATE_TOPIC.asked(topic="t").everywhere
    with pytest.raises(KeyError):
        Right.DELETE_TOPIC.asked()
    with pytest.raises(KeyError):
        Right.ALTER_ACLS.asked(topic="t")


def test_the_one_need_of_what_is_about_one_resource():
    assert Right.JOIN_GROUP.only.argument == "group"
    with pytest.raises(ValueError, match="too many"):
        _ = Right.COMMIT_OFFSETS.only


def acl(operation, resource, name, permission=AclPermission.ALLOW):
    return Acl(resource, AclPattern.LITERAL, name, "User:alice", "*", operation, permission)


OF_ALL = acl(AclOperation.DELETE, AclResource.CLUSTER, CLUSTER_NAME)
OF_T = acl(AclOperation.DELETE, AclResource.TOPIC, "t")
NOT_T = acl(AclOperation.DELETE, AclResource.TOPIC, "t", AclPermission.DENY)
NOT_ALL = acl(AclOperation.DELETE, AclResource.CLUSTER, CLUSTER_NAME, AclPermission.DENY)


@pytest.mark.parametrize(
    ("acls", "everyone", "allowed"),
    [
        ((), False, False),
        ((), True, True),
        ((OF_T,), False, True),
        ((OF_ALL,), False, True),
        ((OF_ALL, NOT_T), False, True),
        ((OF_T, NOT_ALL), False, True),
        ((NOT_T,), True, False),  # that no ACL is about the cluster gives no right to what ACLs are about
        ((NOT_ALL,), True, True),
    ],
)
def test_the_cluster_counts_where_a_row_says_so(acls, everyone, allowed):
    access = AccessInForce(everyone=everyone)
    access.take(AccessState(acls=frozenset(acls)))
    assert Right.DELETE_TOPIC.asked(topic="t").verdict(access, ALICE).allowed == allowed


def test_the_cluster_does_not_count_elsewhere():
    access = AccessInForce(everyone=False)
    access.take(AccessState(acls=frozenset({acl(AclOperation.ALL, AclResource.CLUSTER, CLUSTER_NAME)})))
    assert not Right.READ_RECORDS.asked(topic="t").verdict(access, ALICE).allowed
    assert Right.LIST_GROUPS.asked(group="g").verdict(access, ALICE).allowed
    assert not Right.DESCRIBE_GROUP.asked(group="g").verdict(access, ALICE).allowed


@pytest.mark.parametrize(
    ("subject", "topic"),
    [
        ("orders-value", "orders"),
        ("orders-key", "orders"),
        ("orders-value-value", "orders-value"),
        ("orders", "orders"),
        ("-value", "-value"),
        (":.team:orders-key", ":.team:orders"),
    ],
)
def test_a_subject_is_asked_about_as_its_topic(subject, topic):
    assert Right.READ_SCHEMA.asked(subject=subject) == AskedRight(AclOperation.DESCRIBE, AclResource.TOPIC, topic)
