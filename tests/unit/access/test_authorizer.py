"""What ACLs allow: Kafka's rules as tables, and by property against a plain reading of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.access.authorizer import Authorizer, Subject
from tidelog.access.model import Acl, AclOperation, AclPattern, AclPermission, AclResource

TOPIC, GROUP, CLUSTER = AclResource.TOPIC, AclResource.GROUP, AclResource.CLUSTER
READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL
ALICE = Subject("User:alice", "10.0.0.1")


def acl(
    name: str = "orders",
    operation: AclOperation = READ,
    permission: AclPermission = AclPermission.ALLOW,
    *,
    pattern: AclPattern = AclPattern.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    resource: AclResource = TOPIC,
) -> Acl:
    return Acl(resource, pattern, name, principal, host, operation, permission)


def deny(name: str = "orders", operation: AclOperation = READ, **more: object) -> Acl:
    return acl(name, operation, AclPermission.DENY, **more)  # type: ignore[arg-type]


PREFIXED = AclPattern.PREFIXED

# what, ACLs, operation on topic "orders", whether alice may
RULES: list[tuple[str, list[Acl], AclOperation, bool]] = [
    ("no ACL", [], READ, False),
    ("an ACL of the topic", [acl()], READ, True),
    ("of another topic", [acl("order")], READ, False),
    ("of a longer name", [acl("orders2")], READ, False),
    ("of every topic", [acl("*")], READ, True),
    ("of a group by that name", [acl(resource=GROUP)], READ, False),
    ("by a prefix", [acl("ord", pattern=PREFIXED)], READ, True),
    ("by the whole name as prefix", [acl("orders", pattern=PREFIXED)], READ, True),
    ("by another prefix", [acl("orc", pattern=PREFIXED)], READ, False),
    ("by a longer prefix", [acl("orders-", pattern=PREFIXED)], READ, False),
    ("of another principal", [acl(principal="User:bob")], READ, False),
    ("of everyone", [acl(principal="User:*")], READ, True),
    ("of a name with alice's at its beginning", [acl(principal="User:alice2")], READ, False),
    ("from her host", [acl(host="10.0.0.1")], READ, True),
    ("from another host", [acl(host="10.0.0.2")], READ, False),
    ("another operation", [acl(operation=WRITE)], READ, False),
    ("all operations", [acl(operation=ALL)], READ, True),
    ("read implies describe", [acl(operation=READ)], DESCRIBE, True),
    ("write implies describe", [acl(operation=WRITE)], DESCRIBE, True),
    ("delete implies describe", [acl(operation=AclOperation.DELETE)], DESCRIBE, True),
    ("alter implies describe", [acl(operation=AclOperation.ALTER)], DESCRIBE, True),
    ("create implies nothing", [acl(operation=AclOperation.CREATE)], DESCRIBE, False),
    ("describe implies no read", [acl(operation=DESCRIBE)], READ, False),
    (
        "alter configs implies describe configs",
        [acl(operation=AclOperation.ALTER_CONFIGS)],
        AclOperation.DESCRIBE_CONFIGS,
        True,
    ),
    ("describe configs is no describe", [acl(operation=AclOperation.DESCRIBE_CONFIGS)], DESCRIBE, False),
    ("a denial wins", [acl(), deny()], READ, False),
    ("a denial of all wins", [acl(), deny(operation=ALL)], READ, False),
    ("a denial of everyone wins", [acl(), deny(principal="User:*")], READ, False),
    ("a denial by a prefix wins over the name", [acl(), deny("o", pattern=PREFIXED)], READ, False),
    ("a denial of every topic wins", [acl(), deny("*")], READ, False),
    ("a denial from another host does not", [acl(), deny(host="10.0.0.2")], READ, True),
    ("a denial of another operation does not", [acl(), deny(operation=WRITE)], READ, True),
    ("a denial of read implies none of describe", [acl(operation=DESCRIBE), deny(operation=READ)], DESCRIBE, True),
    ("a denial of describe denies no read", [acl(), deny(operation=DESCRIBE)], READ, True),
    ("a name that is an asterisk is every topic", [acl("*", pattern=AclPattern.LITERAL)], WRITE, False),
]


@pytest.mark.parametrize(("what", "acls", "operation", "allowed"), RULES, ids=[rule[0] for rule in RULES])
def test_rules(what: str, acls: list[Acl], operation: AclOperation, allowed: bool) -> None:
    assert Authorizer(acls).verdict(ALICE, operation, TOPIC, "orders").allowed is allowed, what


def test_super_users_may_do_what_is_denied() -> None:
    authorizer = Authorizer([deny("*", ALL, principal="User:*")], ["User:alice"])
    assert authorizer.verdict(ALICE, READ, TOPIC, "orders").allowed
    assert not authorizer.verdict(Subject("User:bob", "h"), READ, TOPIC, "orders").allowed


def test_what_no_acl_is_about_may_be_open_to_everyone() -> None:
    """Any ACL of the resource closes it, whomever it names (`allow.everyone.if.no.acl.found`)."""
    authorizer = Authorizer([acl(principal="User:bob")], everyone=True)
    assert not authorizer.verdict(ALICE, READ, TOPIC, "orders").allowed
    assert authorizer.verdict(ALICE, READ, TOPIC, "payments").allowed


def test_a_verdict_names_the_acl_that_decides() -> None:
    allows, denies = acl("ord", ALL, pattern=PREFIXED), deny(operation=WRITE)
    authorizer = Authorizer([allows, denies])
    assert authorizer.verdict(ALICE, READ, TOPIC, "orders").by == allows
    assert authorizer.verdict(ALICE, WRITE, TOPIC, "orders").by == denies
    assert authorizer.verdict(ALICE, READ, TOPIC, "payments").by is None


# what, ACLs, whether alice may write any topic (KIP-679)
ANY: list[tuple[str, list[Acl], bool]] = [
    ("no ACL", [], False),
    ("one topic", [acl(operation=WRITE)], True),
    ("all operations on one", [acl(operation=ALL)], True),
    ("reading is not enough", [acl()], False),
    ("a group is no topic", [acl(operation=ALL, resource=GROUP)], False),
    ("another principal's", [acl(operation=WRITE, principal="User:bob")], False),
    ("a prefix", [acl("o", WRITE, pattern=PREFIXED)], True),
    ("the one is denied", [acl(operation=WRITE), deny(operation=WRITE)], False),
    ("the one is denied by a prefix", [acl(operation=WRITE), deny("or", WRITE, pattern=PREFIXED)], False),
    ("another one is denied", [acl(operation=WRITE), deny("payments", WRITE)], True),
    ("the prefix is denied", [acl("o", WRITE, pattern=PREFIXED), deny("o", ALL, pattern=PREFIXED)], False),
    ("one below the prefix is denied", [acl("o", WRITE, pattern=PREFIXED), deny("ord", WRITE, pattern=PREFIXED)], True),
    ("a literal below the prefix is denied", [acl("o", WRITE, pattern=PREFIXED), deny("o", WRITE)], True),
    ("everything is denied", [acl("*", WRITE), deny("*", WRITE)], False),
    ("every topic, but a prefix is denied", [acl("*", WRITE), deny("o", WRITE, pattern=PREFIXED)], True),
]


@pytest.mark.parametrize(("what", "acls", "allowed"), ANY, ids=[rule[0] for rule in ANY])
def test_any_resource_of_a_type(what: str, acls: list[Acl], allowed: bool) -> None:
    assert Authorizer(acls).may_any(ALICE, WRITE, TOPIC) is allowed, what


def test_any_resource_for_super_users_and_for_everyone() -> None:
    assert Authorizer([], ["User:alice"]).may_any(ALICE, WRITE, TOPIC)
    assert Authorizer([], everyone=True).may_any(ALICE, WRITE, TOPIC)
    assert not Authorizer([deny("*", WRITE)], everyone=True).may_any(ALICE, WRITE, TOPIC)


NAMES = st.text("ab", min_size=1, max_size=4) | st.just("*")
ACLS = st.lists(
    st.builds(
        Acl,
        st.sampled_from([TOPIC, GROUP]),
        st.sampled_from([AclPattern.LITERAL, PREFIXED]),
        NAMES,
        st.sampled_from(["User:alice", "User:bob", "User:*"]),
        st.sampled_from(["*", "10.0.0.1", "h"]),
        st.sampled_from([READ, WRITE, DESCRIBE, ALL]),
        st.sampled_from([AclPermission.ALLOW, AclPermission.DENY]),
    ),
    max_size=12,
)


@given(ACLS, st.sampled_from([READ, WRITE, DESCRIBE]), st.text("ab", min_size=1, max_size=5), st.booleans())
def test_as_a_plain_reading_of_the_rules(acls: list[Acl], operation: AclOperation, name: str, everyone: bool) -> None:
    about = [
        one
        for one in acls
        if one.resource is TOPIC and (name.startswith(one.name) if one.pattern is PREFIXED else one.name in (name, "*"))
    ]
    hers = [one for one in about if one.principal in ("User:alice", "User:*") and one.host in ("*", "10.0.0.1")]
    implied = {DESCRIBE: {READ, WRITE}}.get(operation, set())
    denied = any(one.permission is AclPermission.DENY and one.operation in (operation, ALL) for one in hers)
    allowed = any(one.permission is AclPermission.ALLOW and one.operation in {operation, ALL, *implied} for one in hers)
    expected = not denied and (allowed or (everyone and not about))
    assert Authorizer(acls, everyone=everyone).verdict(ALICE, operation, TOPIC, name).allowed is expected
