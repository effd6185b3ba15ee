"""Policies of IAM from ACLs: never more of a topic than an ACL allows, and each difference named."""

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.iam import documented

from tidelog.access.authorizer import Authorizer, Subject
from tidelog.access.iam_policy import IamPolicies, iam_policies
from tidelog.access.model import Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.state import AccessState
from tidelog.log.base.errors import InvalidUriError

Op = AclOperation
TOPIC, GROUP, CLUSTER, TXN = AclResource.TOPIC, AclResource.GROUP, AclResource.CLUSTER, AclResource.TRANSACTIONAL_ID
LITERAL, PREFIXED = AclPattern.LITERAL, AclPattern.PREFIXED
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
ALICE = "User:alice"
GET, PUT = "s3:GetObject", "s3:PutObject"


def acl(resource, name, operation, permission=ALLOW, pattern=LITERAL, principal=ALICE, host="*") -> Acl:
    return Acl(resource, pattern, name, principal, host, operation, permission)


def export(*acls: Acl, address="s3://bucket/lake") -> IamPolicies:
    return iam_policies(AccessState(frozenset(acls)), address, [ALICE])


def permits(policy: Mapping[str, Any], action: str, name: str, source="1.2.3.4") -> bool:
    """As IAM decides: a denial wins, and what nothing allows is denied."""
    effects = set()
    for statement in policy["Statement"]:
        address = statement.get("Condition", {}).get("IpAddress", {}).get("aws:SourceIp", source)
        covers = any(fnmatchcase(f"arn:aws:s3:::{name}", resource) for resource in statement["Resource"])
        if action in statement["Action"] and covers and address == source:
            effects.add(statement["Effect"])
    return effects == {"Allow"}


def why(found: IamPolicies, what: str) -> str:
    return next(gap.why for gap in found.gaps if gap.what == what)


def grants(policy: Mapping[str, Any]) -> set[tuple[str, str]]:
    return {(a, r) for one in policy["Statement"] for a in one["Action"] for r in one["Resource"]}


@pytest.mark.parametrize(
    ("page", "acls"),
    [
        (["read-a-topic"], [acl(TOPIC, "TOPIC", Op.READ)]),
        (["write-a-topic"], [acl(TOPIC, "TOPIC", Op.WRITE)]),
        (["read-a-topic", "consume-as-a-group"], [acl(TOPIC, "TOPIC", Op.READ), acl(GROUP, "g", Op.READ)]),
        (["write-a-topic", "use-transactions"], [acl(TOPIC, "TOPIC", Op.WRITE), acl(TXN, "x", Op.WRITE)]),
    ],
)
def test_the_policies_are_those_of_the_page(page, acls):
    policy = export(*acls, address="s3://BUCKET/LAKE").policies[ALICE]
    assert grants(policy) == {grant for name in page for grant in grants(json.loads(documented()[name]))}


def test_a_pattern_names_topics_and_none_of_tidelogs_own_tables():
    for made in (acl(TOPIC, "*", Op.ALL), acl(TOPIC, "_", Op.ALL, pattern=PREFIXED)):
        policy = export(made).policies[ALICE]
        assert permits(policy, PUT, "bucket/lake/_x/_delta_log/0.json")
        offsets = ("__consumer_offsets", "__consumer_offsets-1")
        for table in ("__access", "__cluster", "__transaction_state", *offsets, "__cuts", "__branches", "__mirror"):
            for action in (GET, PUT, "s3:DeleteObject", "s3:AbortMultipartUpload"):
                assert not permits(policy, action, f"bucket/lake/{table}/_delta_log/0.json")
    whole = export(acl(TOPIC, "*", Op.ALL), acl(GROUP, "*", Op.READ), acl(TXN, "*", Op.DESCRIBE)).policies[ALICE]
    assert permits(whole, PUT, "bucket/lake/__consumer_offsets/rows/0.parquet")
    assert permits(whole, "s3:DeleteObject", "bucket/lake/__consumer_offsets/_tidelog/leases/m")
    assert permits(whole, GET, "bucket/lake/__transaction_state/rows/0.parquet")
    assert not permits(whole, PUT, "bucket/lake/__transaction_state/rows/0.parquet")
    assert not permits(whole, GET, "bucket/lake/__access/rows/0.parquet")


@pytest.mark.parametrize("permission", [ALLOW, DENY])
@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("__access", LITERAL),
        ("__consumer_offsets-1", LITERAL),
        ("__access/_delta_log", LITERAL),
        ("ord?rs", LITERAL),
        ("o*s", LITERAL),
        ("${aws:username}", LITERAL),
        ("*s", PREFIXED),
        ("__access/", PREFIXED),
    ],
)
def test_what_is_no_topics_name_gives_and_takes_nothing(name, pattern, permission):
    made = acl(TOPIC, name, Op.READ, permission, pattern)
    found = export(made)
    assert found.policies[ALICE]["Statement"] == []
    assert [gap.why for gap in found.gaps] == ["no topic has such a name, but objects of the store may match it"]
    whole = export(made, acl(TOPIC, "*", Op.READ)).policies[ALICE]
    assert permits(whole, GET, "bucket/lake/orders/part-0.parquet")
    assert not permits(whole, GET, "bucket/lake/__access/_delta_log/0.json")


def test_a_prefix_ends_where_it_ends():
    policy = export(acl(TOPIC, "sales.", Op.READ, pattern=PREFIXED)).policies[ALICE]
    assert permits(policy, GET, "bucket/lake/sales.eu/part-0.parquet")
    assert not permits(policy, GET, "bucket/lake/sale/part-0.parquet")
    assert not permits(policy, GET, "bucket/other/sales.eu/part-0.parquet")
    assert not permits(policy, PUT, "bucket/lake/sales.eu/part-0.parquet")


def test_a_describer_sees_the_log_and_no_record():
    policy = export(acl(TOPIC, "t", Op.DESCRIBE)).policies[ALICE]
    assert permits(policy, GET, "bucket/lake/t/_delta_log/00.json")
    assert not permits(policy, GET, "bucket/lake/t/part-0.parquet")


def test_denials_win():
    policy = export(acl(TOPIC, "*", Op.ALL), acl(TOPIC, "t", Op.WRITE, DENY), acl(TOPIC, "u", Op.ALL, DENY))
    assert permits(policy.policies[ALICE], GET, "bucket/lake/t/part-0.parquet")
    assert not permits(policy.policies[ALICE], PUT, "bucket/lake/t/part-0.parquet")
    assert not permits(policy.policies[ALICE], GET, "bucket/lake/u/part-0.parquet")


@pytest.mark.parametrize(
    ("reads", "names", "allowed"),
    [
        ((), "t", False),
        ((acl(TOPIC, "t", Op.READ),), "t", True),
        ((acl(TOPIC, "*", Op.READ),), "t", True),
        ((acl(TOPIC, "u", Op.READ),), "t", False),
        ((acl(TOPIC, "t", Op.READ, host="10.0.0.1"),), "t", False),
        ((acl(TOPIC, "t", Op.READ),), "*", False),
    ],
)
def test_a_writer_that_is_denied_reads_no_more_either_unless_reading_is_allowed(reads, names, allowed):
    found = export(acl(TOPIC, "*", Op.WRITE), acl(TOPIC, names, Op.WRITE, DENY), *reads)
    assert permits(found.policies[ALICE], GET, "bucket/lake/t/part-0.parquet") == allowed
    named = [gap for gap in found.gaps if gap.why == "a writer reads the topic, so that reading is denied, too"]
    assert len(named) == (not allowed)


def test_an_address_is_a_condition():
    found = export(acl(TOPIC, "t", Op.READ, host="10.0.0.1"))
    assert permits(found.policies[ALICE], GET, "bucket/lake/t/x", source="10.0.0.1")
    assert not permits(found.policies[ALICE], GET, "bucket/lake/t/x", source="10.0.0.2")
    assert "as the store sees it" in why(found, "ALLOW READ on topic 't' from 10.0.0.1")


@pytest.mark.parametrize(
    ("made", "what", "reason"),
    [
        (acl(TOPIC, "t", Op.WRITE), "ALLOW WRITE on topic 't'", "a writer reads the topic"),
        (acl(TOPIC, "t", Op.READ, DENY), "DENY READ on topic 't'", "writers and describers read the log"),
        *(
            (acl(TOPIC, "t", op), f"ALLOW {op.name} on topic 't' is left out", "an entry of the topic's log")
            for op in (Op.CREATE, Op.DELETE, Op.ALTER, Op.ALTER_CONFIGS)
        ),
        (acl(TOPIC, "t", Op.DELETE, DENY), "DENY DELETE on topic 't' is left out", "can't tell it from"),
        (acl(GROUP, "g", Op.READ), "ALLOW READ on group 'g'", "it can take part in each"),
        (acl(GROUP, "g", Op.DESCRIBE), "ALLOW DESCRIBE on group 'g'", "it sees each"),
        (acl(GROUP, "g", Op.DELETE), "ALLOW DELETE on group 'g' is left out", "share a table"),
        (acl(GROUP, "g", Op.READ, DENY), "DENY READ on group 'g' is left out", "can't be denied alone"),
        (acl(GROUP, "*", Op.DELETE, DENY), "DENY DELETE on group '*' is left out", "can't be denied alone"),
        (acl(TXN, "x", Op.WRITE, pattern=PREFIXED), "ALLOW WRITE on transactional id 'x*'", "it can use each"),
        (acl(TXN, "x", Op.DESCRIBE), "ALLOW DESCRIBE on transactional id 'x'", "it sees each"),
        (acl(TXN, "x", Op.TWO_PHASE_COMMIT), "ALLOW TWO_PHASE_COMMIT on transactional id 'x' is left out", "share"),
        (acl(CLUSTER, "kafka-cluster", Op.ALTER), "ALLOW ALTER on cluster 'kafka-cluster' is left out", "brokers"),
        (acl(AclResource.USER, "u", Op.CREATE_TOKENS), "ALLOW CREATE_TOKENS on user 'u' is left out", "brokers only"),
    ],
)
def test_what_a_policy_does_not_express_is_named(made, what, reason):
    assert reason in why(export(made), what)


@pytest.mark.parametrize(
    "made",
    [
        acl(TOPIC, "t", Op.READ),
        acl(TOPIC, "t", Op.DESCRIBE),
        acl(GROUP, "*", Op.READ),
        acl(TXN, "*", Op.WRITE),
        acl(CLUSTER, "kafka-cluster", Op.IDEMPOTENT_WRITE),
        acl(CLUSTER, "kafka-cluster", Op.DESCRIBE),
        acl(GROUP, "*", Op.ALL, DENY),
        acl(TXN, "*", Op.WRITE, DENY),
        acl(TOPIC, "t", Op.WRITE, DENY),
    ],
)
def test_what_a_policy_expresses_is_no_gap(made):
    assert export(made).gaps == []


def test_acls_of_everyone_are_in_each_policy():
    state = AccessState(frozenset({acl(TOPIC, "t", Op.READ, principal="User:*"), acl(TOPIC, "u", Op.READ)}))
    found = iam_policies(state, "s3://bucket/lake")
    assert set(found.policies) == {"User:*", ALICE}
    assert permits(found.policies[ALICE], GET, "bucket/lake/t/x")
    assert not permits(found.policies["User:*"], GET, "bucket/lake/u/x")


def test_a_policy_that_is_too_long_is_named():
    found = export(*(acl(TOPIC, f"a-topic-with-a-name-{n}", Op.READ) for n in range(200)))
    assert "divide it" in why(found, "the policy's length")


@pytest.mark.parametrize("address", ["/data/lake", "gs://bucket/lake", "memory://lake"])
def test_other_stores_have_no_such_policy(address):
    with pytest.raises(InvalidUriError, match="--root s3://bucket/lake"):
        export(address=address)


TOPICS = ["t", "ta", "tab", "b"]
TOPIC_ACLS = st.frozensets(
    st.builds(
        acl,
        st.just(TOPIC),
        st.sampled_from(["*", *TOPICS]),
        st.sampled_from([Op.ALL, Op.READ, Op.WRITE, Op.DESCRIBE, Op.CREATE, Op.DELETE, Op.ALTER]),
        st.sampled_from([ALLOW, DENY]),
        st.sampled_from([LITERAL, PREFIXED]),
        st.sampled_from([ALICE, "User:*", "User:bo"]),
        st.sampled_from(["*", "1.2.3.4", "5.6.7.8"]),
    ).filter(lambda one: (one.pattern, one.name) != (PREFIXED, "*")),
    max_size=6,
)


@given(TOPIC_ACLS)
def test_no_policy_allows_more_of_a_topic_than_a_broker_does(acls):
    found = export(*acls)
    policy, less = found.policies[ALICE], any("reading is denied, too" in gap.why for gap in found.gaps)
    authorizer, subject = Authorizer(acls), Subject(ALICE, "1.2.3.4")

    def may(operation: AclOperation, topic: str) -> bool:
        return authorizer.verdict(subject, operation, TOPIC, topic).allowed

    for topic in TOPICS:
        records = f"bucket/lake/{topic}/part-0.parquet"
        if permits(policy, PUT, records):
            assert may(Op.WRITE, topic)
        if permits(policy, GET, records):  # a writer reads what it adds to
            assert may(Op.READ, topic) or may(Op.WRITE, topic)
        if may(Op.READ, topic) and not less:
            assert permits(policy, GET, records)
        if may(Op.WRITE, topic):
            assert permits(policy, PUT, records)
