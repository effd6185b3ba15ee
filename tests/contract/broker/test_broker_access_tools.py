"""Kafka's own kafka-acls and kafka-configs at a broker, in all that they do with access."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.brokers import running_broker
from support.kafka_clients import ACCESS_TOOLS, ready
from support.kafka_tool_runs import run

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, is_password
from tidelog.access.model import CLUSTER_NAME, Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.quotas import DEFAULT, Entity, Quota
from tidelog.access.state import AccessState
from tidelog.broker.base.access import AccessSettings
from tidelog.log.lake import Lake

ACLS, CONFIGS = "org.apache.kafka.tools.AclCommand", "kafka.admin.ConfigCommand"
ADMINISTERED = AccessSettings(frozenset({"User:ANONYMOUS"}), everyone=False)


@pytest.fixture
def address(lake: Lake) -> Iterator[str]:
    ready(ACCESS_TOOLS)
    with running_broker(lake, access=ADMINISTERED) as address:
        yield address


def state(lake: Lake) -> AccessState:
    return AccessLog(lake).look()


def acl(resource: AclResource, name: str, user: str, operation: str, **more: Any) -> Acl:
    fields = {
        "pattern": AclPattern.LITERAL,
        "principal": f"User:{user}",
        "host": "*",
        "permission": AclPermission.ALLOW,
    }
    return Acl(resource=resource, name=name, operation=AclOperation[operation], **{**fields, **more})


TOPIC, GROUP = AclResource.TOPIC, AclResource.GROUP


def test_acls_are_added_listed_and_removed(lake: Lake, address: str) -> None:
    add, remove = (ACLS, "--add"), (ACLS, "--remove", "--force")
    secret = ("--topic", "secret.", "--resource-pattern-type", "prefixed")
    printed = run(
        address,
        (*add, "--allow-principal", "User:alice", *ops("read", "describe"), "--topic", "t", "--group", "g"),
        (*add, "--deny-principal", "User:bob", "--deny-host", "10.0.0.1", *ops("all"), *secret),
        (
            *add,
            "--allow-principal",
            "User:carol",
            "--producer",
            "--topic",
            "t",
            "--idempotent",
            "--transactional-id",
            "x",
        ),
        (*add, "--allow-principal", "User:dan", "--consumer", "--topic", "t", "--group", "*"),
        (*add, "--allow-principal", "User:ann", *ops("alter"), "--cluster"),
        (ACLS, "--list"),
        (ACLS, "--list", "--topic", "secret.plan", "--resource-pattern-type", "match"),
        (ACLS, "--list", "--principal", "User:ann"),
        (*remove, "--allow-principal", "User:alice", *ops("read"), "--topic", "t"),
        (*remove, *secret),
        (*remove, "--group", "*"),
    )
    every, of_secret, of_ann = printed[5:8]
    assert every.count("(principal=") == 15
    assert "(principal=User:bob, host=10.0.0.1, operation=ALL, permissionType=DENY)" in every
    assert "name=secret., patternType=PREFIXED" in of_secret
    assert of_secret.count("(principal=") == of_ann.count("(principal=") == 1
    assert state(lake).acls == {
        *(acl(TOPIC, "t", "carol", operation) for operation in ("WRITE", "DESCRIBE", "CREATE")),
        *(acl(AclResource.TRANSACTIONAL_ID, "x", "carol", operation) for operation in ("WRITE", "DESCRIBE")),
        acl(AclResource.CLUSTER, CLUSTER_NAME, "carol", "IDEMPOTENT_WRITE"),
        *(acl(TOPIC, "t", "dan", operation) for operation in ("READ", "DESCRIBE")),
        acl(AclResource.CLUSTER, CLUSTER_NAME, "ann", "ALTER"),
        acl(TOPIC, "t", "alice", "DESCRIBE"),
        *(acl(GROUP, "g", "alice", operation) for operation in ("READ", "DESCRIBE")),
    }


def ops(*names: str) -> list[str]:
    return [word for name in names for word in ("--operation", name)]


def of(*entity: str) -> list[str]:
    """Options of entities: a type and a name in turn, "" for the default."""
    words = []
    for kind, name in zip(entity[::2], entity[1::2], strict=True):
        words += ["--entity-type", kind, *(["--entity-name", name] if name else ["--entity-default"])]
    return words


def test_users_are_made_described_and_removed(lake: Lake, address: str) -> None:
    add, remove = (CONFIGS, "--alter", "--add-config"), (CONFIGS, "--alter", "--delete-config")
    both = "SCRAM-SHA-512=[password=sesame],SCRAM-SHA-256=[iterations=8192,password=sesame]"
    printed = run(
        address,
        (*add, both, *of("users", "alice")),
        (*add, "SCRAM-SHA-256=[password=other]", *of("users", "bob")),
        (CONFIGS, "--describe", *of("users", "alice")),
        (*remove, "SCRAM-SHA-256", *of("users", "alice")),
        (*remove, "SCRAM-SHA-256", *of("users", "bob")),
        (CONFIGS, "--describe", "--entity-type", "users"),
    )
    assert "SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096" in printed[2]
    assert "bob" not in printed[5]
    ((key, credential),) = state(lake).scram.items()
    assert key == ("alice", ScramMechanism.SHA_512)
    assert is_password(credential, "sesame")


def test_quotas_are_set_described_and_removed(lake: Lake, address: str) -> None:
    add, remove = (CONFIGS, "--alter", "--add-config"), (CONFIGS, "--alter", "--delete-config")
    both, describe = of("users", "alice", "clients", ""), (CONFIGS, "--describe")
    printed = run(
        address,
        (*add, "producer_byte_rate=1000,consumer_byte_rate=2000", *both),
        (*add, "request_percentage=50", *of("users", "")),
        (*add, "controller_mutation_rate=5", *of("clients", "c")),
        (*add, "connection_creation_rate=7", *of("ips", "10.0.0.1")),
        (*describe, "--entity-type", "users"),
        (*describe, "--entity-type", "clients"),
        (*describe, "--entity-type", "ips"),
        (*describe, *both),
        (*remove, "producer_byte_rate", *both),
        (*remove, "controller_mutation_rate", *of("clients", "c")),
    )
    assert "default user-principal are request_percentage=50.0" in printed[4]
    assert "client-id 'c' are controller_mutation_rate=5.0" in printed[5]
    assert "ip '10.0.0.1' are connection_creation_rate=7.0" in printed[6]
    assert "consumer_byte_rate=2000.0, producer_byte_rate=1000.0" in printed[7]
    assert state(lake).quotas == {
        Entity("alice", DEFAULT): {Quota.CONSUMER_BYTE_RATE: 2000.0},
        Entity(DEFAULT): {Quota.REQUEST_PERCENTAGE: 50.0},
        Entity(ip="10.0.0.1"): {Quota.CONNECTION_CREATION_RATE: 7.0},
    }
