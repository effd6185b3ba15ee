"""What administrators ask of access: ACLs, users, quotas; and delegation tokens, which are refused."""

import hashlib
import json
import logging
from datetime import timedelta

import pytest
from support.broker_requests import Requests
from support.logs import memory_lake

from tidelog.access.access_log import AccessLog
from tidelog.access.authorizer import Authorizer, Subject
from tidelog.access.credentials import ScramMechanism, credential, is_password
from tidelog.access.model import AclOperation, AclResource
from tidelog.access.quotas import DEFAULT, Entity, Quota
from tidelog.broker.wire.apis import ApiKey


@pytest.fixture
def lake():
    return memory_lake()[0]


@pytest.fixture
def log(lake):
    return AccessLog(lake)


@pytest.fixture
def requests(lake):
    with Requests(lake) as requests:
        yield requests


def binding(name, operation=3, permission=3, **more):
    return {
        "resource_type": 2, "resource_name": name, "resource_pattern_type": 3, "principal": "User:alice", "host": "*",
        "operation": operation, "permission_type": permission, **more,
    }  # fmt: skip


def wanted(resource=1, name=None, pattern=1, **more):
    return {
        "resource_type_filter": resource, "resource_name_filter": name, "pattern_type_filter": pattern,
        "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1, **more,
    }  # fmt: skip


def described(requests, **filters):
    answer = requests.ask(ApiKey.DESCRIBE_ACLS, 3, wanted(**filters))
    assert answer.error_code == 0
    return [
        (one.resource_type, one.resource_name, one.pattern_type, acl.principal, acl.operation, acl.permission_type)
        for one in answer.resources
        for acl in one.acls
    ]


# --- ACLs --------------------------------------------------------------------------------------------------


def test_acls_are_created_where_they_are_valid_and_described(requests, log):
    asked = [
        binding("t"),
        binding("a.", resource_pattern_type=4),
        binding("t", resource_type=4),  # the cluster has another name
        binding("t", operation=99),
        binding("", operation=4),
        binding("t", operation=1),  # ANY is for filters
        binding("t", resource_pattern_type=2),
    ]
    answer = requests.ask(ApiKey.CREATE_ACLS, 3, {"creations": asked})
    assert [int(one.error_code) for one in answer.results] == [0, 0, 42, 42, 42, 42, 42]
    assert "kafka-cluster" in answer.results[2].error_message
    assert described(requests) == [(2, "t", 3, "User:alice", 3, 3), (2, "a.", 4, "User:alice", 3, 3)]
    assert len(log.look().acls) == 2


def test_acls_that_make_no_sense_for_their_resource_are_kept_and_match_what_kafka_matches(requests, log):
    """As `StandardAuthorizer` takes them: by resource, pattern and operation, whatever these are for."""
    asked = [
        binding("g", resource_type=3, operation=4),  # WRITE on a group, which implies DESCRIBE
        binding("t", operation=12),  # IDEMPOTENT_WRITE on a topic
        binding("t", operation=9, permission_type=2),  # CLUSTER_ACTION denied on a topic
        binding("*", resource_type=3, resource_pattern_type=4),  # groups that begin with an asterisk
    ]
    answer = requests.ask(ApiKey.CREATE_ACLS, 3, {"creations": asked})
    assert [int(one.error_code) for one in answer.results] == [0, 0, 0, 0]
    assert len(described(requests)) == 4
    authorizer, alice = Authorizer(log.look().acls), Subject("User:alice", "1.2.3.4")

    def may(operation, resource, name):
        return authorizer.verdict(alice, operation, resource, name).allowed

    assert may(AclOperation.DESCRIBE, AclResource.GROUP, "g")
    assert not may(AclOperation.READ, AclResource.GROUP, "g")
    assert not may(AclOperation.WRITE, AclResource.TOPIC, "t")
    assert may(AclOperation.READ, AclResource.GROUP, "*star")
    assert not may(AclOperation.READ, AclResource.GROUP, "star")


def test_a_filter_matches_all_that_concern_a_name(requests):
    acls = [binding("a.b"), binding("a.", resource_pattern_type=4), binding("*", operation=8), binding("b")]
    requests.ask(ApiKey.CREATE_ACLS, 3, {"creations": acls})
    assert {found[1] for found in described(requests, resource=2, name="a.b", pattern=2)} == {"a.b", "a.", "*"}
    assert {found[1] for found in described(requests, name="a.b", pattern=3)} == {"a.b"}
    assert described(requests, principal_filter="User:bob") == []


def test_a_filter_with_a_code_that_kafka_does_not_have_is_refused(requests):
    answer = requests.ask(ApiKey.DESCRIBE_ACLS, 3, wanted(resource=77))
    assert (answer.error_code, answer.resources) == (42, ())


def test_what_filters_mean_is_deleted(requests, log):
    requests.ask(ApiKey.CREATE_ACLS, 3, {"creations": [binding("t"), binding("u"), binding("v")]})
    filters = [wanted(name="t"), wanted(operation=99), wanted(name="u"), wanted(name="none")]
    answer = requests.ask(ApiKey.DELETE_ACLS, 3, {"filters": filters})
    assert [int(one.error_code) for one in answer.filter_results] == [0, 42, 0, 0]
    assert [[acl.resource_name for acl in one.matching_acls] for one in answer.filter_results] == [["t"], [], ["u"], []]
    assert [acl.name for acl in log.look().acls] == ["v"]


def test_acls_are_in_force_when_their_creation_is_answered(requests):
    """The broker that answers looks at the log first: it does not wait until a follower has."""
    access = requests.broker._context.access
    access.look_now = lambda: _take(access, requests)
    requests.ask(ApiKey.CREATE_ACLS, 3, {"creations": [binding("t", permission=2)]})
    answer = requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "t"}]}, principal="User:alice")
    assert access.state.acls
    assert answer.topics[0].error_code == 29


async def _take(access, requests):
    access.take(requests.broker._context.access_log.look())


# --- users -------------------------------------------------------------------------------------------------


def upsertion(name, mechanism=2, iterations=4096, password="secret of alice"):
    made = credential(ScramMechanism.SHA_512, password, b"salt and more salt", 4096)
    return {
        "name": name, "mechanism": mechanism, "iterations": iterations, "salt": made.salt,
        "salted_password": _salted(password, made.salt, iterations),
    }  # fmt: skip


def _salted(password, salt, iterations):
    return hashlib.pbkdf2_hmac("sha512", password.encode(), salt, iterations)


def alter(requests, deletions=(), upsertions=()):
    body = {"deletions": list(deletions), "upsertions": list(upsertions)}
    answer = requests.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, body)
    return {one.user: int(one.error_code) for one in answer.results}


def test_a_user_is_made_whose_password_is_right(requests, log):
    assert alter(requests, upsertions=[upsertion("alice")]) == {"alice": 0}
    known = log.look().scram["alice", ScramMechanism.SHA_512]
    assert is_password(known, "secret of alice")
    assert not is_password(known, "another")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"upsertions": [upsertion("alice", iterations=4095)]}, 93),
        ({"upsertions": [upsertion("alice", iterations=16385)]}, 93),
        ({"upsertions": [upsertion("alice", mechanism=3)]}, 33),
        ({"upsertions": [upsertion("alice") | {"salted_password": b""}]}, 93),
        ({"upsertions": [upsertion("alice"), upsertion("alice")]}, 92),
        ({"deletions": [{"name": "alice", "mechanism": 2}]}, 91),
        ({"deletions": [{"name": "alice", "mechanism": 2}], "upsertions": [upsertion("alice")]}, 92),
        ({"upsertions": [upsertion("")]}, 93),
        ({"upsertions": [upsertion("__broker")]}, 93),
    ],
)
def test_a_change_that_can_not_be_is_refused_and_other_users_are_made(requests, log, change, code):
    codes = alter(requests, change.get("deletions", ()), [*change.get("upsertions", ()), upsertion("bob")])
    assert codes.pop("bob") == 0
    assert list(codes.values()) == [code]
    assert {user for user, _ in log.look().scram} == {"bob"}


def test_users_are_described_without_what_is_kept_of_their_passwords(requests):
    alter(requests, upsertions=[upsertion("alice"), upsertion("bob", iterations=8192)])
    answer = requests.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": None})
    found = {one.user: [(info.mechanism, info.iterations) for info in one.credential_infos] for one in answer.results}
    assert found == {"alice": [(2, 4096)], "bob": [(2, 8192)]}
    named = [{"name": "bob"}, {"name": "carol"}, {"name": "alice"}, {"name": "alice"}]
    answer = requests.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": named})
    assert {one.user: int(one.error_code) for one in answer.results} == {"bob": 0, "carol": 91, "alice": 92}


def test_a_user_is_deleted(requests, log):
    alter(requests, upsertions=[upsertion("alice")])
    assert alter(requests, deletions=[{"name": "alice", "mechanism": 2}]) == {"alice": 0}
    assert not log.look().scram


# --- quotas ------------------------------------------------------------------------------------------------


def entry(entity, **ops):
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [
            {"key": key, "value": 0.0 if value is None else value, "remove": value is None}
            for key, value in ops.items()
        ],
    }


def alter_quotas(requests, *entries, **more):
    answer = requests.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, {"entries": list(entries), **more})
    return [int(one.error_code) for one in answer.entries]


def quotas_of(requests, *components, strict=False):
    named = [{"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components]
    answer = requests.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {"components": named, "strict": strict})
    if answer.error_code:
        return int(answer.error_code)
    return [
        (
            {one.entity_type: one.entity_name for one in found.entity},
            {value.key: value.value for value in found.values},
        )
        for found in answer.entries
    ]


def test_quotas_are_set_changed_and_taken_away(requests, log):
    entries = [
        entry({"user": "alice"}, producer_byte_rate=1000.0, consumer_byte_rate=2000.0),
        entry({"user": None, "client-id": "c"}, request_percentage=50.5),
        entry({"ip": "10.0.0.1"}, connection_creation_rate=5.0),
    ]
    assert alter_quotas(requests, *entries) == [0, 0, 0]
    assert alter_quotas(requests, entry({"user": "alice"}, producer_byte_rate=None, consumer_byte_rate=7.0)) == [0]
    assert log.look().quotas == {
        Entity("alice"): {Quota.CONSUMER_BYTE_RATE: 7.0},
        Entity(DEFAULT, "c"): {Quota.REQUEST_PERCENTAGE: 50.5},
        Entity(ip="10.0.0.1"): {Quota.CONNECTION_CREATION_RATE: 5.0},
    }


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (entry({"user": "alice"}, speed=1.0), 42),
        (entry({"user": "alice"}, producer_byte_rate=0.0), 42),
        (entry({"user": "alice"}, connection_creation_rate=1.0), 42),
        (entry({"ip": "10.0.0.1", "user": "alice"}, producer_byte_rate=1.0), 42),
        (entry({"ip": "not an address"}, connection_creation_rate=1.0), 42),
        (entry({"user": ""}, producer_byte_rate=1.0), 42),
        (entry({"group": "g"}, producer_byte_rate=1.0), 42),
        (entry({"user": "alice"}, producer_byte_rate=1.5), 42),
        (entry({"client-id": "c"}, consumer_byte_rate=0.999), 42),
        (entry({"ip": "10.0.0.1"}, connection_creation_rate=2.5), 42),
        (entry({}, producer_byte_rate=1.0), 42),
    ],
)
def test_a_quota_that_would_never_hold_is_refused_and_the_others_are_set(requests, log, bad, code):
    assert alter_quotas(requests, bad, entry({"user": "bob"}, producer_byte_rate=5.0)) == [code, 0]
    assert set(log.look().quotas) == {Entity("bob")}


def test_quotas_are_only_checked_where_that_is_asked_for(requests, log):
    assert alter_quotas(requests, entry({"user": "bob"}, producer_byte_rate=5.0), validate_only=True) == [0]
    assert not log.look().quotas


def test_quotas_are_found_by_filters(requests):
    rate = {"producer_byte_rate": 1.0}
    entities = [{"user": "a"}, {"user": None}, {"user": "a", "client-id": "c"}, {"client-id": "c"}]
    alter_quotas(requests, *(entry(entity, **rate) for entity in entities))
    exact, default, anything = range(3)

    def found(*components, strict=False):
        return [entity for entity, _ in quotas_of(requests, *components, strict=strict)]

    assert len(found()) == 4
    assert found(("user", exact, "a")) == [{"user": "a"}, {"user": "a", "client-id": "c"}]
    assert found(("user", exact, "a"), strict=True) == [{"user": "a"}]
    assert found(("user", default, None)) == [{"user": None}]
    assert len(found(("user", anything, None))) == 3
    assert found(("user", anything, None), ("client-id", exact, "c")) == [{"user": "a", "client-id": "c"}]
    assert quotas_of(requests, ("user", exact, "a"), strict=True) == [({"user": "a"}, rate)]
    assert quotas_of(requests, ("user", anything, None), ("user", exact, "a")) == 42
    assert quotas_of(requests, ("ip", anything, None), ("user", exact, "a")) == 42
    assert quotas_of(requests, ("user", exact, None)) == 42
    assert quotas_of(requests, ("planet", anything, None)) == 35


# --- tokens and the audit ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (ApiKey.CREATE_DELEGATION_TOKEN, 3),
        (ApiKey.RENEW_DELEGATION_TOKEN, 2),
        (ApiKey.EXPIRE_DELEGATION_TOKEN, 2),
        (ApiKey.DESCRIBE_DELEGATION_TOKEN, 3),
    ],
)
def test_there_are_no_delegation_tokens(requests, key, version):
    hour = timedelta(hours=1)
    asked = {"max_lifetime": hour, "renew_period": hour, "expiry_time_period": hour, "hmac": b"x"}
    assert requests.reply(key, version, asked)["error_code"] == 61


def test_every_change_is_audited_without_secrets(requests, caplog):
    caplog.set_level(logging.INFO, "tidelog.audit")
    requests.ask(ApiKey.CREATE_ACLS, 3, {"creations": [binding("t")]}, principal="User:root")
    requests.ask(ApiKey.DELETE_ACLS, 3, {"filters": [wanted(name="t")]}, principal="User:root")
    alter(requests, upsertions=[upsertion("alice")])
    alter(requests, deletions=[{"name": "alice", "mechanism": 2}])
    alter_quotas(requests, entry({"user": "bob"}, producer_byte_rate=5.0))
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "tidelog.audit"]
    assert [line["event"] for line in lines] == ["changed"] * 5
    assert [line["api"] for line in lines[:2]] == ["CREATE_ACLS", "DELETE_ACLS"]
    assert lines[0]["principal"] == "User:root"
    assert lines[0]["added"][0]["name"] == lines[1]["deleted"][0]["name"] == "t"
    assert lines[2]["set"] == [{"mechanism": "SCRAM-SHA-512", "iterations": 4096}]
    assert lines[3]["deleted"] == ["SCRAM-SHA-512"]
    assert lines[4]["limits"] == {"producer_byte_rate": 5.0}
    assert "salt" not in caplog.text
    assert "secret of alice" not in caplog.text


def test_what_changes_nothing_is_not_audited(requests, caplog):
    caplog.set_level(logging.INFO, "tidelog.audit")
    requests.ask(ApiKey.CREATE_ACLS, 3, {"creations": [binding("t")]})
    caplog.clear()
    requests.ask(ApiKey.CREATE_ACLS, 3, {"creations": [binding("t")]})
    requests.ask(ApiKey.DELETE_ACLS, 3, {"filters": [wanted(name="none")]})
    assert not caplog.records
