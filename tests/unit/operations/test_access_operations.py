"""ACLs, users and quotas, as all faces ask for them."""

import pytest
from support.logs import memory_lake

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import DEFAULT_ITERATIONS, ScramMechanism, credential, is_password
from tidelog.access.model import Acl, AclFilter, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.quotas import DEFAULT, Entity, Quota
from tidelog.access.state import DuplicateCredentialError, Tenant, UnacceptableCredentialError, UnknownCredentialError
from tidelog.log.base.errors import InvalidConfigError
from tidelog.operations.access import (
    UserDescription,
    alter_user,
    create_acls,
    delete_acls,
    describe_acls,
    describe_users,
    remove_password,
    set_password,
)
from tidelog.operations.quotas import QuotaFilter, alter_quotas, describe_quotas, parts_of, require_quota

SHA_256, SHA_512 = ScramMechanism
RATE, CONNECT = Quota.PRODUCER_BYTE_RATE, Quota.CONNECTION_CREATION_RATE


@pytest.fixture
def log():
    return AccessLog(memory_lake()[0])


def acl(name="t", operation=AclOperation.READ, resource=AclResource.TOPIC, principal="User:alice"):
    return Acl(resource, AclPattern.LITERAL, name, principal, "*", operation, AclPermission.ALLOW)


# --- ACLs --------------------------------------------------------------------------------------------------


def test_acls_are_created_described_and_deleted(log):
    one, other, bobs = acl("a"), acl("b"), acl("a", principal="User:bob")
    assert create_acls(log, [other, one, bobs]) == [one, bobs, other]
    assert create_acls(log, [one]) == []
    assert describe_acls(log, [AclFilter()]) == [one, bobs, other]
    assert describe_acls(log, [AclFilter(name="b"), AclFilter(principal="User:bob")]) == [bobs, other]
    assert describe_acls(log, []) == []
    assert delete_acls(log, [AclFilter(name="a"), AclFilter(name="none")]) == [[one, bobs], []]
    assert describe_acls(log, [AclFilter()]) == [other]


def test_acls_that_match_no_request_are_refused_where_that_is_asked_for(log):
    strange = acl("g", AclOperation.WRITE, AclResource.GROUP)
    with pytest.raises(InvalidConfigError, match="no write of a group"):
        create_acls(log, [acl(), strange], sensible=True)
    assert describe_acls(log, [AclFilter()]) == []
    assert create_acls(log, [strange]) == [strange]
    with pytest.raises(InvalidConfigError, match="names a resource"):
        create_acls(log, [acl("")])


# --- users -------------------------------------------------------------------------------------------------


def test_users_are_described_with_their_tenants(log):
    set_password(log, "bo", "of bo", [SHA_512, SHA_256], 8192)
    set_password(log, "ann", "of ann", [SHA_512])
    log.create_tenant(Tenant("sales", "sales.", ("bo",)))
    assert list(describe_users(log).values()) == [
        UserDescription("ann", {SHA_512: DEFAULT_ITERATIONS}, None),
        UserDescription("bo", {SHA_256: 8192, SHA_512: 8192}, "sales"),
    ]


def test_a_password_takes_the_place_of_another(log):
    set_password(log, "ann", "first", [SHA_256])
    before = log.look().scram["ann", SHA_256]
    set_password(log, "ann", "second", [SHA_256])
    after = log.look().scram["ann", SHA_256]
    assert is_password(after, "second")
    assert not is_password(after, "first")
    assert before.salt != after.salt
    for user, password, iterations, error in (
        ("__broker", "pw", None, UnacceptableCredentialError),
        ("ann", "", None, InvalidConfigError),
        ("ann", "pw", 1, InvalidConfigError),
    ):
        with pytest.raises(error):
            set_password(log, user, password, [SHA_256], iterations)
    assert log.look().scram == {("ann", SHA_256): after}


def test_a_users_credentials_are_changed_together(log):
    set_password(log, "ann", "pw", [SHA_256])
    alter_user(log, "ann", [SHA_256], [credential(SHA_512, "pw", b"salt" * 4)])
    assert describe_users(log)["ann"].iterations == {SHA_512: DEFAULT_ITERATIONS}
    with pytest.raises(DuplicateCredentialError, match="twice"):
        alter_user(log, "ann", [SHA_512], [credential(SHA_512, "other", b"salt" * 4)])
    with pytest.raises(UnknownCredentialError):
        alter_user(log, "ann", [SHA_256], [])
    assert is_password(log.look().scram["ann", SHA_512], "pw")


def test_a_password_goes_and_acls_stay(log):
    set_password(log, "ann", "pw", list(ScramMechanism))
    hers = acl(principal="User:ann")
    create_acls(log, [hers, acl(principal="User:bo")])
    gone = remove_password(log, "ann", SHA_256)
    assert (gone.mechanisms, gone.acls) == ([SHA_256], [hers])
    assert remove_password(log, "ann").mechanisms == [SHA_512]
    with pytest.raises(UnknownCredentialError):
        remove_password(log, "ann")


# --- quotas ------------------------------------------------------------------------------------------------


def test_quotas_are_described_in_order(log):
    entities = [Entity(ip="10.0.0.1"), Entity("b"), Entity("a", "x"), Entity("a"), Entity(None, "x")]
    limits = {entity: {CONNECT if entity.ip else RATE: 1.0} for entity in entities}
    assert alter_quotas(log, limits) == limits
    assert list(describe_quotas(log)) == [Entity(None, "x"), Entity("a"), Entity("a", "x"), Entity("b"), entities[0]]
    assert alter_quotas(log, {Entity("a"): {RATE: None}}) == {Entity("a"): {}}
    assert describe_quotas(log, QuotaFilter({"user": "a"})) == {Entity("a", "x"): {RATE: 1.0}}


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        (QuotaFilter(), {"a", "a x", "default", "x", "ip"}),
        (QuotaFilter(strict=True), set()),
        (QuotaFilter({"user": "a"}), {"a", "a x"}),
        (QuotaFilter({"user": "a"}, strict=True), {"a"}),
        (QuotaFilter({"user": DEFAULT}), {"default"}),
        (QuotaFilter(any_name=frozenset({"user"})), {"a", "a x", "default"}),
        (QuotaFilter({"client_id": "x"}, frozenset({"user"})), {"a x"}),
        (QuotaFilter(any_name=frozenset({"ip"}), strict=True), {"ip"}),
    ],
)
def test_which_entities_a_filter_means(wanted, meant):
    entities = {
        "a": Entity("a"), "a x": Entity("a", "x"), "default": Entity(DEFAULT), "x": Entity(None, "x"),
        "ip": Entity(ip="::1"),
    }  # fmt: skip
    assert {name for name, entity in entities.items() if wanted.matches(entity)} == meant


def test_the_parts_of_an_entity():
    assert parts_of(Entity("a", DEFAULT)) == {"user": "a", "client_id": DEFAULT}
    assert parts_of(Entity(ip="::1")) == {"ip": "::1"}


@pytest.mark.parametrize(
    ("entity", "changes", "why"),
    [
        (Entity(ip="example.org"), {CONNECT: 1.0}, "not a valid IP address"),
        (Entity("a"), {CONNECT: None}, "is a quota of an address"),
        (Entity("a"), {RATE: 0.0}, "above 0"),
    ],
)
def test_changes_of_quotas_that_can_not_be(entity, changes, why):
    with pytest.raises(InvalidConfigError, match=why):
        require_quota(entity, changes)


def test_changes_of_quotas_that_can_be():
    require_quota(Entity(ip=DEFAULT), {CONNECT: 1.0})
    require_quota(Entity(ip="::1"), {CONNECT: None})
