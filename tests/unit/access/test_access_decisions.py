"""What is decided about ACLs, credentials, quotas and tenants: rules as tables."""

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.access import decisions, tenant_rules
from tidelog.access.broker_user import BROKER_USER
from tidelog.access.credentials import ScramCredential, ScramMechanism
from tidelog.access.model import Acl, AclFilter, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.quotas import Entity, Quota
from tidelog.access.rows import SCHEMA, AccessFold
from tidelog.access.state import (
    AccessState,
    Tenant,
    TenantExistsError,
    UnacceptableCredentialError,
    UnknownCredentialError,
    UnknownTenantError,
)
from tidelog.log.base.errors import InvalidConfigError, TidelogError

SHA_256, SHA_512 = ScramMechanism
RATE, TAKE = Quota.PRODUCER_BYTE_RATE, Quota.CONSUMER_BYTE_RATE


def acl(name="orders", operation=AclOperation.READ, principal="User:alice", pattern=AclPattern.LITERAL) -> Acl:
    return Acl(AclResource.TOPIC, pattern, name, principal, "*", operation, AclPermission.ALLOW)


def scram(mechanism=SHA_512, iterations=4096, salt=b"s") -> ScramCredential:
    return ScramCredential(mechanism, salt, b"stored", b"server", iterations)


class Log:
    """The fold, going on by what is decided, as its rows come back from a log."""

    def __init__(self) -> None:
        self.fold = AccessFold()
        self.entries = 0

    @property
    def state(self) -> AccessState:
        return self.fold.state

    def decide(self, rule, *args, **more):
        outcome = rule(self.state, *args, **more)
        self.entries += bool(outcome.rows)
        self.fold.take([SCHEMA.from_json(SCHEMA.to_json(SCHEMA.checked(row))) for row in outcome.rows])
        return outcome.response


@pytest.fixture
def log() -> Log:
    return Log()


# --- ACLs --------------------------------------------------------------------------------------------------


def test_acls_that_are_there_are_not_added_again(log):
    one, other = acl("a"), acl("b")
    assert log.decide(decisions.decide_add_acls, [other, one, one]) == [one, other]
    assert log.decide(decisions.decide_add_acls, [one, other]) == []
    assert log.state.acls == {one, other}
    assert log.entries == 1


def test_one_acl_that_can_not_be_keeps_all_of_them_out(log):
    with pytest.raises(InvalidConfigError, match="is no principal"):
        log.decide(decisions.decide_add_acls, [acl(), acl(principal="alice")])
    assert not log.state.acls


def test_filters_delete_and_say_which(log):
    one, other, kept = acl("a"), acl("b"), acl("c", principal="User:bob")
    log.decide(decisions.decide_add_acls, [one, other, kept])
    alice, named = AclFilter(principal="User:alice"), AclFilter(name="a")
    assert log.decide(decisions.decide_delete_acls, [alice, named]) == [[one, other], [one]]
    assert log.state.acls == {kept}
    assert log.decide(decisions.decide_delete_acls, [alice]) == [[]]
    assert log.entries == 2


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        ("0:0:0:0:0:0:0:1", "::1"),
        ("2001:DB8::A", "2001:db8::a"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1"),
        ("*", "*"),
        ("a-name", "a-name"),
    ],
)
def test_addresses_are_kept_as_brokers_see_them(log, given_, kept):
    one = replace(acl(), host=given_)
    log.decide(decisions.decide_add_acls, [one])
    assert [known.host for known in log.state.acls] == [kept]
    log.decide(decisions.decide_add_acls, [one])
    assert log.decide(decisions.decide_delete_acls, [AclFilter(host=given_)]) == [[replace(one, host=kept)]]
    if kept != "*":
        entity, limits = Entity(ip=given_), {Quota.CONNECTION_CREATION_RATE: 1.0}
        assert log.decide(decisions.decide_alter_quotas, {entity: limits}) == {entity: limits}
        assert log.state.quotas == {Entity(ip=kept): limits}
    assert log.entries == 2 + (kept != "*")


# --- credentials -------------------------------------------------------------------------------------------


def test_the_secret_comes_with_the_first_user_and_stays(log):
    log.decide(decisions.decide_upsert_scram, "alice", [scram()], b"first")
    log.decide(decisions.decide_upsert_scram, "bob", [scram()], b"second")
    assert log.state.secret == b"first"
    assert log.decide(decisions.decide_secret, b"third") == b"first"
    assert log.entries == 2


def test_a_secret_can_come_before_any_user(log):
    assert log.decide(decisions.decide_secret, b"drawn") == b"drawn"
    assert log.state.secret == b"drawn"
    assert b"drawn" not in repr(log.state).encode()


def test_a_credential_takes_the_place_of_the_one_before(log):
    log.decide(decisions.decide_upsert_scram, "alice", [scram(SHA_256), scram(SHA_512)], b"x")
    log.decide(decisions.decide_upsert_scram, "alice", [scram(SHA_256, salt=b"new")], b"x")
    assert {mechanism: one.salt for (_, mechanism), one in log.state.scram.items()} == {SHA_256: b"new", SHA_512: b"s"}
    log.decide(decisions.decide_upsert_scram, "alice", [scram(SHA_256, salt=b"new")], b"x")
    assert log.entries == 2


def test_credentials_are_taken_away_one_by_one_or_all_together(log):
    log.decide(decisions.decide_upsert_scram, "alice", [scram(SHA_256), scram(SHA_512)], b"x")
    log.decide(decisions.decide_upsert_scram, "bob", [scram()], b"x")
    log.decide(decisions.decide_delete_scram, "alice", [SHA_256])
    with pytest.raises(UnknownCredentialError, match="'alice' has no credential of SCRAM-SHA-256"):
        log.decide(decisions.decide_delete_scram, "alice", [SHA_512, SHA_256])
    assert ("alice", SHA_512) in log.state.scram
    assert log.decide(decisions.decide_delete_user, "alice") == [SHA_512]
    assert list(log.state.scram) == [("bob", SHA_512)]
    with pytest.raises(UnknownCredentialError, match="no user 'alice'"):
        log.decide(decisions.decide_delete_user, "alice")


def test_credentials_go_and_come_in_one_entry_or_not_at_all(log):
    log.decide(decisions.decide_upsert_scram, "alice", [scram(SHA_256)], b"x")
    log.decide(decisions.decide_alter_scram, "alice", [SHA_256], [scram(SHA_512)], b"x")
    assert list(log.state.scram) == [("alice", SHA_512)]
    before = log.state
    with pytest.raises(UnknownCredentialError):
        log.decide(decisions.decide_alter_scram, "alice", [SHA_256], [scram(SHA_512, salt=b"new")], b"x")
    with pytest.raises(InvalidConfigError):
        log.decide(decisions.decide_alter_scram, "alice", [SHA_512], [scram(SHA_256, iterations=1)], b"x")
    assert log.state == before
    log.decide(decisions.decide_alter_scram, "alice", [SHA_512], [], b"x")
    assert not log.state.scram
    assert log.entries == 3


@pytest.mark.parametrize("user", ["", " ", "a\nb", "*", "<default>", BROKER_USER])
def test_names_that_no_user_has(log, user):
    with pytest.raises(UnacceptableCredentialError):
        log.decide(decisions.decide_upsert_scram, user, [scram()], b"x")
    assert not log.state.secret


@pytest.mark.parametrize("iterations", [4095, 16385])
def test_iterations_have_bounds(log, iterations):
    with pytest.raises(InvalidConfigError, match="iterations"):
        log.decide(decisions.decide_upsert_scram, "alice", [scram(iterations=iterations)], b"x")


# --- quotas ------------------------------------------------------------------------------------------------


def test_limits_are_set_changed_and_taken_away(log):
    alice, both = Entity("alice"), Entity("alice", "app")
    assert log.decide(decisions.decide_alter_quotas, {alice: {RATE: 10.0}, both: {TAKE: 2.0}}) == {
        alice: {RATE: 10.0},
        both: {TAKE: 2.0},
    }
    assert log.decide(decisions.decide_alter_quotas, {alice: {TAKE: 7.0, RATE: None}}) == {alice: {TAKE: 7.0}}
    log.decide(decisions.decide_alter_quotas, {both: {TAKE: None}, Entity(ip="::1"): {RATE: None}})
    assert log.state.quotas == {alice: {TAKE: 7.0}}
    log.decide(decisions.decide_alter_quotas, {alice: {TAKE: 7.0}})
    assert log.entries == 3


def test_one_address_in_two_spellings_is_one(log):
    first, second = Entity(ip="::1"), Entity(ip="0:0:0:0:0:0:0:1")
    rate = Quota.CONNECTION_CREATION_RATE
    changes = {first: {rate: 5.0}, second: {rate: 6.0}}
    assert log.decide(decisions.decide_alter_quotas, changes) == {first: {rate: 6.0}, second: {rate: 6.0}}
    assert log.state.quotas == {first: {rate: 6.0}}


def test_one_limit_that_can_not_be_keeps_all_of_them_out(log):
    with pytest.raises(InvalidConfigError, match="above 0"):
        log.decide(decisions.decide_alter_quotas, {Entity("alice"): {RATE: 10.0}, Entity("bob"): {RATE: 0.0}})
    assert not log.state.quotas


# --- tenants -----------------------------------------------------------------------------------------------

SALES = Tenant("sales", "sales.", ("ann", "bo"), {RATE: 100.0})


def acls_for(*users: str, prefix: str = "sales.") -> set[Acl]:
    return {
        Acl(resource, AclPattern.PREFIXED, prefix, f"User:{user}", "*", AclOperation.ALL, AclPermission.ALLOW)
        for user in users
        for resource in (AclResource.TOPIC, AclResource.GROUP, AclResource.TRANSACTIONAL_ID)
    }


def test_a_tenant_is_acls_and_quotas_in_one_entry(log):
    log.decide(tenant_rules.decide_create_tenant, SALES)
    assert log.state.tenants == {"sales": SALES}
    assert log.state.acls == acls_for("ann", "bo")
    assert log.state.quotas == {Entity("ann"): {RATE: 100.0}, Entity("bo"): {RATE: 100.0}}
    log.decide(tenant_rules.decide_create_tenant, SALES)
    assert log.entries == 1


def test_a_tenants_users_and_limits_change_together(log):
    log.decide(tenant_rules.decide_create_tenant, SALES)
    changed = log.decide(
        tenant_rules.decide_alter_tenant,
        "sales",
        add_users=["cy"],
        remove_users=["ann"],
        limits={RATE: None, TAKE: 5.0},
    )
    assert changed == Tenant("sales", "sales.", ("bo", "cy"), {TAKE: 5.0})
    assert log.state.tenants == {"sales": changed}
    assert log.state.acls == acls_for("bo", "cy")
    assert log.state.quotas == {Entity("bo"): {TAKE: 5.0}, Entity("cy"): {TAKE: 5.0}}
    assert log.entries == 2


def test_what_was_removed_by_hand_comes_back_with_a_change(log):
    log.decide(tenant_rules.decide_create_tenant, SALES)
    log.decide(decisions.decide_delete_acls, [AclFilter(principal="User:ann")])
    log.decide(tenant_rules.decide_alter_tenant, "sales")
    assert log.state.acls == acls_for("ann", "bo")


def test_what_was_removed_by_hand_is_not_removed_again(log):
    log.decide(tenant_rules.decide_create_tenant, SALES)
    log.decide(decisions.decide_delete_acls, [AclFilter(principal="User:ann")])
    rows = tenant_rules.decide_remove_tenant(log.state, "sales").rows
    assert {row["principal"] for row in rows if row["kind"] == "acl"} == {"User:bo"}


def test_a_tenant_that_goes_leaves_what_was_set_by_hand(log):
    by_hand = acl("shared", principal="User:ann")
    log.decide(decisions.decide_add_acls, [by_hand])
    log.decide(decisions.decide_alter_quotas, {Entity("ann"): {TAKE: 3.0}})
    log.decide(tenant_rules.decide_create_tenant, SALES)
    assert log.decide(tenant_rules.decide_remove_tenant, "sales") == SALES
    assert log.state == AccessState(frozenset({by_hand}), quotas={Entity("ann"): {TAKE: 3.0}})
    assert log.entries == 4


@pytest.mark.parametrize(
    ("other", "error", "why"),
    [
        (Tenant("sales", "other.", ("x",)), TenantExistsError, "already, with the prefix 'sales.'"),
        (Tenant("b", "sales.eu.", ("x",)), TenantExistsError, "would share names with tenant 'sales'"),
        (Tenant("b", "s", ("x",)), TenantExistsError, "would share names"),
        (Tenant("b", "b.", ("x", "bo")), TenantExistsError, "User 'bo' belongs to tenant 'sales'"),
        (Tenant("b", "", ("x",)), InvalidConfigError, "can't begin the names"),
        (Tenant("b", "b/", ("x",)), InvalidConfigError, "can't begin the names"),
        (Tenant("b", "__b.", ("x",)), InvalidConfigError, "can't begin the names"),
        (Tenant("b", "_", ("x",)), InvalidConfigError, "can't begin the names"),  # which begins '__' as well
        (Tenant("b", "b.", ()), InvalidConfigError, "has no user"),
        (Tenant(" ", "b.", ("x",)), InvalidConfigError, "can't be a tenant's name"),
        (Tenant("b", "b.", ("x",), {RATE: -1.0}), InvalidConfigError, "above 0"),
        (Tenant("b", "b.", (BROKER_USER,)), UnacceptableCredentialError, "brokers ask each other"),
    ],
)
def test_tenants_that_can_not_be(log, other, error, why):
    log.decide(tenant_rules.decide_create_tenant, SALES)
    before = log.state
    with pytest.raises(error, match=why):
        log.decide(tenant_rules.decide_create_tenant, other)
    assert log.state == before


def test_a_change_obeys_the_rules_of_a_new_tenant(log):
    log.decide(tenant_rules.decide_create_tenant, SALES)
    log.decide(tenant_rules.decide_create_tenant, Tenant("b", "b.", ("x",)))
    for changes, why in (
        ({"add_users": ["bo"]}, "belongs to tenant 'sales'"),
        ({"remove_users": ["x"]}, "has no user"),
        ({"limits": {Quota.CONNECTION_CREATION_RATE: 1.0}}, "is a quota of an address"),
    ):
        with pytest.raises(TidelogError, match=why):
            log.decide(tenant_rules.decide_alter_tenant, "b", **changes)
    for rule in (tenant_rules.decide_alter_tenant, tenant_rules.decide_remove_tenant):
        with pytest.raises(UnknownTenantError, match="no tenant 'c'"):
            log.decide(rule, "c")


USERS = st.lists(st.sampled_from("abcd"), max_size=2)
LIMITS = st.dictionaries(st.sampled_from([RATE, TAKE]), st.none() | st.sampled_from([1.0, 2.0]), max_size=2)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just(tenant_rules.decide_create_tenant),
            st.tuples(
                st.builds(
                    Tenant,
                    st.sampled_from("xyz"),
                    st.sampled_from(["p", "p.", "q"]),
                    USERS.map(tuple),
                    LIMITS.map(lambda limits: {quota: limit for quota, limit in limits.items() if limit}),
                )
            ),
            st.just({}),
        ),
        st.tuples(
            st.just(tenant_rules.decide_alter_tenant),
            st.tuples(st.sampled_from("xyz")),
            st.fixed_dictionaries({"add_users": USERS, "remove_users": USERS, "limits": LIMITS}),
        ),
        st.tuples(st.just(tenant_rules.decide_remove_tenant), st.tuples(st.sampled_from("xyz")), st.just({})),
    ),
    max_size=12,
)


@given(STEPS)
def test_in_every_order_acls_and_quotas_are_those_of_the_tenants(steps):
    log = Log()
    for rule, given_, more in steps:
        with contextlib.suppress(TidelogError):
            log.decide(rule, *given_, **more)
    tenants = log.state.tenants.values()
    assert log.state.acls == {acl for one in tenants for acl in acls_for(*one.users, prefix=one.prefix)}
    assert log.state.quotas == {Entity(user): one.limits for one in tenants for user in one.users if one.limits}
