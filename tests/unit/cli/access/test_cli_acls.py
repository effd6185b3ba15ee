"""`tidelog acl`: options as those of kafka-acls.sh, and which ACLs they mean."""

import json

import pytest
from support.cli_calls import answer, done, lake_address, open_lake, refused

from tidelog.access.access_log import AccessLog
from tidelog.access.model import Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.quotas import Entity, Quota

TOPIC, GROUP, CLUSTER, TXN = AclResource.TOPIC, AclResource.GROUP, AclResource.CLUSTER, AclResource.TRANSACTIONAL_ID
LITERAL, PREFIXED = AclPattern.LITERAL, AclPattern.PREFIXED
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
Op = AclOperation


@pytest.fixture
def lake() -> str:
    address = lake_address()
    open_lake(address)
    return address


def acl(resource, name, operation, principal="User:alice", pattern=LITERAL, host="*", permission=ALLOW) -> Acl:
    return Acl(resource, pattern, name, principal, host, operation, permission)


def there(lake: str) -> set[Acl]:
    with open_lake(lake) as opened:
        return set(AccessLog(opened).look().acls)


ALICE = ["--principal", "User:alice"]


@pytest.mark.parametrize(
    ("words", "made"),
    [
        ([*ALICE, "--topic", "t"], {acl(TOPIC, "t", Op.ALL)}),
        (["--principal", "alice", "--topic", "t"], {acl(TOPIC, "t", Op.ALL)}),
        (["--principal", "*", "--topic", "*"], {acl(TOPIC, "*", Op.ALL, "User:*")}),
        (["--principal", "User:CN=a:b", "--topic", "t"], {acl(TOPIC, "t", Op.ALL, "User:CN=a:b")}),
        (
            [*ALICE, "--principal", "bo", "--operation", "read", "--operation", "DescribeConfigs", "--topic", "t"],
            {acl(TOPIC, "t", op, p) for op in (Op.READ, Op.DESCRIBE_CONFIGS) for p in ("User:alice", "User:bo")},
        ),
        (
            [*ALICE, "--operation", "alter-configs", "--topic", "p.", "--group", "g", "--prefixed"],
            {acl(r, n, Op.ALTER_CONFIGS, pattern=PREFIXED) for r, n in ((TOPIC, "p."), (GROUP, "g"))},
        ),
        (
            [*ALICE, "--cluster", "--prefixed", "--operation", "Create", "--deny", "--host", "10.0.0.1"],
            {acl(CLUSTER, "kafka-cluster", Op.CREATE, host="10.0.0.1", permission=DENY)},
        ),
        (
            [*ALICE, "--topic", "t", "--host", "0:0::1", "--host", "*"],
            {acl(TOPIC, "t", Op.ALL, host="::1"), acl(TOPIC, "t", Op.ALL)},
        ),
        (
            [*ALICE, "--producer", "--topic", "t", "--transactional-id", "x"],
            {
                *(acl(TOPIC, "t", op) for op in (Op.WRITE, Op.DESCRIBE, Op.CREATE)),
                *(acl(TXN, "x", op) for op in (Op.WRITE, Op.DESCRIBE)),
            },
        ),
        (
            [*ALICE, "--consumer", "--topic", "t", "--group", "g"],
            {acl(TOPIC, "t", Op.READ), acl(TOPIC, "t", Op.DESCRIBE), acl(GROUP, "g", Op.READ)},
        ),
        (
            [*ALICE, "--consumer", "--producer", "--topic", "t"],
            {acl(TOPIC, "t", op) for op in (Op.READ, Op.WRITE, Op.DESCRIBE, Op.CREATE)},
        ),
    ],
)
def test_acls_are_added(lake, words, made):
    shown = answer("acl", "add", *words, "--lake", lake)
    assert there(lake) == made
    assert len(shown) == len(made)
    again = done("acl", "add", *words, "--lake", lake)
    assert (again.stdout, again.stderr) == ("", "% All of them are there already.\n")


@pytest.mark.parametrize(
    ("code", "words", "why"),
    [
        (2, ["--topic", "t"], "give --principal"),
        (2, ALICE, "give --topic, --group"),
        (2, ["--principal", "Group:x", "--topic", "t"], "know no other kind of principal"),
        (2, ["--principal", "User:", "--topic", "t"], "A principal has a name"),
        (2, [*ALICE, "--topic", "t", "--operation", "reed"], "'reed' is no operation of Kafka's. There are All, Read"),
        (2, [*ALICE, "--topic", "t", "--operation", "any"], "'any' is no operation"),
        (2, [*ALICE, "--topic", "t", "--host", "example.org"], "a broker sees addresses, not names"),
        (2, [*ALICE, "--consumer", "--topic", "t", "--deny"], "give them alone"),
        (2, [*ALICE, "--consumer", "--cluster"], "needs no ACL of a cluster"),
        (2, [*ALICE, "--producer", "--group", "g"], "needs no ACL of a group"),
        (1, [*ALICE, "--group", "g", "--operation", "write"], "There is no write of a group"),
        (1, [*ALICE, "--topic", "*", "--prefixed"], "make it literal"),
    ],
)
def test_acls_that_can_not_be(lake, code, words, why):
    assert why in refused(code, "acl", "add", *words, "--lake", lake)
    assert not there(lake)


READS = acl(TOPIC, "orders", Op.READ)
PREFIX = acl(TOPIC, "ord", Op.WRITE, "User:bo", PREFIXED)
EVERY = acl(TOPIC, "*", Op.DESCRIBE, "User:*", host="::1")
OTHER = acl(GROUP, "orders", Op.READ, permission=DENY)
ALL = (READS, PREFIX, EVERY, OTHER)


@pytest.fixture
def filled(lake) -> str:
    with open_lake(lake) as opened:
        AccessLog(opened).add_acls(ALL)
    return lake


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ([], set(ALL)),
        (["--topic", "orders"], {READS, PREFIX, EVERY}),
        (["--topic", "ord", "--prefixed"], {PREFIX}),
        (["--prefixed"], {PREFIX}),
        (["--topic", "ordinary", "--group", "orders"], {PREFIX, EVERY, OTHER}),
        (["--principal", "alice"], {READS, OTHER}),
        (["--principal", "alice", "--operation", "read", "--topic", "orders"], {READS}),
        (["--host", "::1"], {EVERY}),
        (["--deny"], {OTHER}),
        (["--cluster"], set()),
    ],
)
def test_which_acls_are_listed(filled, words, meant):
    shown = answer("acl", "list", *words, "--lake", filled)
    assert {(one["resource"], one["name"], one["operation"]) for one in shown} == {
        (one.resource.name, one.name, one.operation.name) for one in meant
    }


def test_how_acls_are_listed(filled, lake):
    assert answer("acl", "list", "--topic", "ordinary", "--principal", "bo", "--lake", filled) == [
        {
            "resource": "TOPIC",
            "pattern": "PREFIXED",
            "name": "ord",
            "principal": "User:bo",
            "host": "*",
            "operation": "WRITE",
            "permission": "ALLOW",
        }
    ]
    lines = done("acl", "list", "--lake", filled).stdout.splitlines()
    assert lines[0].split() == ["RESOURCE", "PATTERN", "NAME", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"]
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        (["--topic", "orders"], {READS}),
        (["--topic", "ord"], set()),
        (["--topic", "ord", "--prefixed"], {PREFIX}),
        (["--principal", "alice"], {READS, OTHER}),
        (["--principal", "alice", "--principal", "bo"], {READS, OTHER, PREFIX}),
        (["--all"], set(ALL)),
    ],
)
def test_which_acls_are_removed(filled, words, gone):
    shown = answer("acl", "remove", *words, "--lake", filled)
    assert len(shown) == len(gone)
    assert there(filled) == set(ALL) - gone


def test_a_removal_without_words_removes_nothing(filled):
    assert "say which ACLs" in refused(2, "acl", "remove", "--lake", filled)
    assert "say which ACLs" in refused(2, "acl", "remove", "--all", "--topic", "t", "--lake", filled)
    assert there(filled) == set(ALL)
    assert "no such ACLs" in done("acl", "remove", "--topic", "t", "--lake", filled).stderr


# --- export ------------------------------------------------------------------------------------------------


def test_an_export_says_what_it_leaves_out(filled):
    with open_lake(filled) as opened:
        AccessLog(opened).alter_quotas({Entity("bo"): {Quota.PRODUCER_BYTE_RATE: 1.0}})
    words = ["acl", "export", "--iam", "--root", "s3://bucket/lake", "--lake", filled]
    everyone = done(*words)
    assert set(json.loads(everyone.stdout)) == {"User:*", "User:alice", "User:bo"}
    assert "% User:bo: quotas: the store has none" in everyone.stderr
    one = done(*words, "--principal", "bo")
    assert json.loads(one.stdout) == json.loads(everyone.stdout)["User:bo"]
    assert "User:alice" not in one.stderr
    document = answer(*words)
    assert document["policies"] == json.loads(everyone.stdout)
    assert {"principal": "User:bo", "what": "quotas", "why": "the store has none"} in document["not_expressed"]


def test_an_export_is_about_s3(filled):
    assert "--root s3://bucket/lake" in refused(1, "acl", "export", "--iam", "--lake", filled)
    assert "Say in which form" in refused(2, "acl", "export", "--lake", filled)
