"""Real clients at a broker that knows ACLs: administrators make users and rights, which hold at once."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from support.brokers import running_broker
from support.waiting import eventually

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism as Mechanism
from tidelog.access.credentials import credential
from tidelog.broker.base.access import AccessSettings
from tidelog.log.lake import Lake
from tidelog.server.base.listener_settings import ListenerSettings, SecurityProtocol

MECHANISMS = ("SCRAM-SHA-512",)
LISTENERS = {"CLIENTS": ListenerSettings("127.0.0.1", 0, SecurityProtocol.SASL_PLAINTEXT, mechanisms=MECHANISMS)}
ROOT = AccessSettings(super_users=frozenset({"User:root"}))
WAIT_S = 60
ANY = (ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)


def as_user(address: str, user: str, **more: object) -> dict[str, object]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": f"of {user}",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


@pytest.fixture
def address(lake: Lake) -> Iterator[str]:
    AccessLog(lake).upsert_scram("root", credential(Mechanism.SHA_512, "of root", b"salt of 16 bytes"))
    lake.create_topic("secret")
    with running_broker(lake, listeners=LISTENERS, access=ROOT) as address:
        yield address


@pytest.fixture
def root(address: str) -> AdminClient:
    return AdminClient(as_user(address, "root"))


def make_user(root: AdminClient, user: str) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(user, info, f"of {user}".encode(), b"sixteen bytes...")
    for future in root.alter_user_scram_credentials([change]).values():
        future.result(WAIT_S)


def allow(root: AdminClient, kind: ResourceType, name: str, user: str, *operations: AclOperation) -> None:
    bindings = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", one, AclPermissionType.ALLOW)
        for one in operations
    ]
    for future in root.create_acls(bindings).values():
        future.result(WAIT_S)


def sent(producer: Producer, topic: str) -> KafkaError | None:
    """Why a record was not taken; None where it was."""
    outcomes: list[KafkaError | None] = []
    producer.produce(topic, b"v", partition=0, on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(WAIT_S) == 0
    return outcomes[0]


def test_a_user_writes_where_it_may_as_soon_as_it_may(address: str, root: AdminClient) -> None:
    make_user(root, "alice")
    producer = Producer(as_user(address, "alice", enable_idempotence=False, message_timeout_ms=WAIT_S * 1000))
    denied = sent(producer, "t")
    assert denied is not None
    assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    allow(root, ResourceType.TOPIC, "t", "alice", AclOperation.WRITE)
    again = Producer(as_user(address, "alice", enable_idempotence=True))
    assert sent(again, "t") is None
    refused = sent(again, "secret")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert sent(again, "t") is None, "the rest goes on"


def test_a_user_reads_where_it_may_and_sees_nothing_else(address: str, root: AdminClient) -> None:
    make_user(root, "alice")
    alice = AdminClient(as_user(address, "alice"))
    assert not alice.list_topics(timeout=WAIT_S).topics
    allow(root, ResourceType.TOPIC, "t", "alice", AclOperation.READ)
    assert set(alice.list_topics(timeout=WAIT_S).topics) == {"t"}
    consumer = Consumer(as_user(address, "alice", group_id="g", auto_offset_reset="earliest"))
    try:
        consumer.subscribe(["t"])
        error = eventually(lambda: (m := consumer.poll(0.2)) and m.error(), "the group is refused")
        assert error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    finally:
        consumer.close()
    allow(root, ResourceType.GROUP, "g", "alice", AclOperation.READ)
    consumer = Consumer(as_user(address, "alice", group_id="g", auto_offset_reset="earliest"))
    try:
        consumer.subscribe(["t"])
        found = eventually(lambda: (m := consumer.poll(0.2)) and not m.error() and m, "a record")
        consumer.commit(found, asynchronous=False)
        (place,) = consumer.committed([TopicPartition("t", found.partition())], timeout=WAIT_S)
        assert place.offset == found.offset() + 1
    finally:
        consumer.close()


def test_administration_is_for_those_that_may(address: str, root: AdminClient) -> None:
    make_user(root, "alice")
    alice = AdminClient(as_user(address, "alice"))
    with pytest.raises(KafkaException) as refused:
        allow(alice, ResourceType.TOPIC, "t", "bob", AclOperation.READ)
    assert refused.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    allow(root, ResourceType.BROKER, "kafka-cluster", "alice", AclOperation.ALTER)
    allow(alice, ResourceType.TOPIC, "t", "bob", AclOperation.READ)
    found = {(acl.name, acl.principal) for acl in alice.describe_acls(AclBindingFilter(*ANY)).result(WAIT_S)}
    assert found == {("kafka-cluster", "User:alice"), ("t", "User:bob")}
    mine = AclBindingFilter(*ANY[:3], "User:alice", *ANY[4:])
    (deleted,) = (future.result(WAIT_S) for future in alice.delete_acls([mine]).values())
    assert [acl.name for acl in deleted] == ["kafka-cluster"]
    with pytest.raises(KafkaException):
        allow(alice, ResourceType.TOPIC, "t", "bob", AclOperation.WRITE)
    assert alice.describe_acls(AclBindingFilter(*ANY)).result(WAIT_S) == [], "librdkafka passes over the error"
