"""`tidelog quota` and `tidelog tenant`."""

import pytest
from support.cli_calls import answer, done, lake_address, open_lake, refused

from tidelog.access.access_log import AccessLog
from tidelog.access.quotas import DEFAULT, Entity, Quota
from tidelog.access.state import AccessState

RATE, TAKE, CONNECT = Quota.PRODUCER_BYTE_RATE, Quota.CONSUMER_BYTE_RATE, Quota.CONNECTION_CREATION_RATE


@pytest.fixture
def lake() -> str:
    address = lake_address()
    open_lake(address)
    return address


def state(lake: str) -> AccessState:
    with open_lake(lake) as opened:
        return AccessLog(opened).look()


@pytest.mark.parametrize(
    ("words", "entity", "limits"),
    [
        (["--user", "alice", "producer_byte_rate=1048576"], Entity("alice"), {RATE: 1048576.0}),
        (
            ["--user", "alice", "--client-id", "app", "producer_byte_rate=1", "consumer_byte_rate=2"],
            Entity("alice", "app"),
            {RATE: 1.0, TAKE: 2.0},
        ),
        (["--default-user", "--default-client-id", "consumer_byte_rate=1e3"], Entity(DEFAULT, DEFAULT), {TAKE: 1000.0}),
        (["--ip", "0::1", "connection_creation_rate=5"], Entity(ip="::1"), {CONNECT: 5.0}),
        (["--default-ip", "connection_creation_rate=5"], Entity(ip=DEFAULT), {CONNECT: 5.0}),
    ],
)
def test_quotas_are_set(lake, words, entity, limits):
    shown = answer("quota", "set", *words, "--lake", lake)
    assert state(lake).quotas == {entity: limits}
    assert shown == {
        "user": entity.user,
        "client_id": entity.client_id,
        "ip": entity.ip,
        "limits": {quota.value: limit for quota, limit in limits.items()},
    }
    assert answer("quota", "list", "--lake", lake) == [shown]


@pytest.mark.parametrize(
    ("code", "words", "why"),
    [
        (1, ["producer_byte_rate=1"], "is for a user, a client id, both"),
        (1, ["--user", "a", "--ip", "::1", "producer_byte_rate=1"], "is for a user, a client id, both"),
        (1, ["--user", "a", "producer_byte_rate=0"], "a rate above 0"),
        (1, ["--user", "a", "producer_byte_rate=nan"], "a rate above 0"),
        (1, ["--user", "a", "producer_byte_rate=inf"], "a rate above 0"),
        (1, ["--ip", "::1", "producer_byte_rate=1"], "is a quota of users and client ids"),
        (2, ["--user", "a", "producer_byte_rate=x"], "'x' is no number"),
        (2, ["--user", "a", "bytes=1"], "'bytes' is no quota of Kafka's"),
        (2, ["--user", "a", "producer_byte_rate"], "not of the form key=value"),
        (2, ["--user", "a", "--default-user", "producer_byte_rate=1"], "are two quotas"),
        (2, ["--ip", "example.org", "connection_creation_rate=1"], "a broker sees addresses"),
    ],
)
def test_quotas_that_can_not_be(lake, code, words, why):
    assert why in refused(code, "quota", "set", *words, "--lake", lake)
    assert not state(lake).quotas


def test_quotas_are_removed(lake):
    done("quota", "set", "--user", "a", "producer_byte_rate=1", "consumer_byte_rate=2", "--lake", lake)
    done("quota", "set", "--default-user", "producer_byte_rate=9", "--lake", lake)
    assert "consumer_byte_rate" in done("quota", "remove", "--user", "a", "producer_byte_rate", "--lake", lake).stdout
    assert state(lake).quotas[Entity("a")] == {TAKE: 2.0}
    assert "No limit is left" in done("quota", "remove", "--user", "a", "--lake", lake).stderr
    assert state(lake).quotas == {Entity(DEFAULT): {RATE: 9.0}}
    lines = done("quota", "list", "--lake", lake).stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["USER", "CLIENT-ID", "IP", "QUOTA", "RATE"],
        [DEFAULT, "-", "-", "producer_byte_rate", "9"],
    ]


def test_a_tenants_time(lake):
    made = answer(
        "tenant", "create", "sales", "--prefix", "sales.", "--quota", "producer_byte_rate=100", "--lake", lake
    )
    expected = {"name": "sales", "prefix": "sales.", "users": ["sales"], "quotas": {"producer_byte_rate": 100.0}}
    assert made == expected
    assert answer("tenant", "list", "--lake", lake) == [expected]
    assert done("tenant", "list", "--lake", lake).stdout == "sales\n"
    known = state(lake)
    assert {(acl.principal, acl.name) for acl in known.acls} == {("User:sales", "sales.")}
    assert known.quotas == {Entity("sales"): {RATE: 100.0}}
    changes = ["--add-user", "ann", "--remove-user", "sales", "--quota", "consumer_byte_rate=5"]
    changed = answer("tenant", "alter", "sales", *changes, "--remove-quota", "producer_byte_rate", "--lake", lake)
    assert changed == {**expected, "users": ["ann"], "quotas": {"consumer_byte_rate": 5.0}}
    known = state(lake)
    assert {acl.principal for acl in known.acls} == {"User:ann"}
    assert known.quotas == {Entity("ann"): {TAKE: 5.0}}
    assert "Removed tenant sales" in done("tenant", "remove", "sales", "--lake", lake).stdout
    assert state(lake) == AccessState()
    assert answer("tenant", "list", "--lake", lake) == []


def test_tenants_that_can_not_be(lake):
    done("tenant", "create", "sales", "--prefix", "sales.", "--user", "ann", "--user", "bo", "--lake", lake)
    assert "would share names" in refused(1, "tenant", "create", "eu", "--prefix", "sales.eu.", "--lake", lake)
    assert "belongs to tenant" in refused(1, "tenant", "create", "b", "--prefix", "b.", "--user", "bo", "--lake", lake)
    assert "no quota of Kafka's" in refused(
        2, "tenant", "create", "b", "--prefix", "b.", "--quota", "x=1", "--lake", lake
    )
    assert "There is no tenant 'crm'" in refused(1, "tenant", "remove", "crm", "--lake", lake)
    assert "There is no tenant 'crm'" in refused(1, "tenant", "alter", "crm", "--lake", lake)
