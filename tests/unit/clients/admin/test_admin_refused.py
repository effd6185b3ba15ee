"""AdminClient: access rules, users and leaders, which a lake has not."""

import pytest

from tidelog import admin
from tidelog.admin import TopicCollection
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import TopicPartition

RULE = (admin.ResourceType.TOPIC, "a", admin.ResourcePatternType.LITERAL, "User:u", "*")
ALLOWED = (admin.AclOperation.READ, admin.AclPermissionType.ALLOW)
BINDING, FILTER = admin.AclBinding(*RULE, *ALLOWED), admin.AclBindingFilter(*RULE, *ALLOWED)
DELETION = admin.UserScramCredentialDeletion("u", admin.ScramMechanism.SCRAM_SHA_256)


@pytest.mark.parametrize(
    ("call", "code", "why"),
    [
        (lambda c: c.create_acls([BINDING], request_timeout=5)[BINDING], "SECURITY_DISABLED", "access rules"),
        (lambda c: c.describe_acls(FILTER, request_timeout=5), "SECURITY_DISABLED", "access rules"),
        (lambda c: c.delete_acls([FILTER])[FILTER], "SECURITY_DISABLED", "access rules"),
        (lambda c: c.describe_user_scram_credentials(), "_UNSUPPORTED_FEATURE", "users"),
        (lambda c: c.describe_user_scram_credentials(["u"])["u"], "_UNSUPPORTED_FEATURE", "users"),
        (lambda c: c.alter_user_scram_credentials([DELETION])["u"], "_UNSUPPORTED_FEATURE", "users"),
        (
            lambda c: c.elect_leaders(admin.ElectionType.PREFERRED, [TopicPartition("a", 0)]),
            "_UNSUPPORTED_FEATURE",
            "replicas",
        ),
    ],
)
def test_what_a_lake_has_not_is_refused_by_the_answer(client, call, code, why):
    future = call(client)
    with pytest.raises(KafkaException, match=why) as caught:
        future.result()
    assert caught.value.args[0].name() == code


def test_credentials_are_refused_at_once(client):
    with pytest.raises(KafkaException, match="users") as caught:
        client.set_sasl_credentials("me", "secret")
    assert caught.value.args[0] == KafkaError._UNSUPPORTED_FEATURE


ON_TOPICS_AND_CLUSTER = [
    "ALTER ALTER_CONFIGS CREATE DELETE DESCRIBE DESCRIBE_CONFIGS READ WRITE",
    "ALTER ALTER_CONFIGS CLUSTER_ACTION CREATE DESCRIBE DESCRIBE_CONFIGS IDEMPOTENT_WRITE",
]


def test_every_operation_is_allowed_and_told_where_asked_for(client, lake):
    """As Kafka answers without an authorizer: what its AclEntry supports for a topic and for the cluster."""
    lake.create_topic("t", 1)
    for asked in (True, False):
        topic = client.describe_topics(TopicCollection(["t"]), include_authorized_operations=asked)["t"].result()
        cluster = client.describe_cluster(include_authorized_operations=asked).result()
        told = [topic.authorized_operations, cluster.authorized_operations]
        names = [None if one is None else " ".join(sorted(operation.name for operation in one)) for one in told]
        assert names == (ON_TOPICS_AND_CLUSTER if asked else [None, None])
