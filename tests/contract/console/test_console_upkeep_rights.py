"""What a console shows of groups, transactions, schemas and upkeep goes by the ACLs of the lake, as brokers have it."""

import pytest
from support.console import running_console
from support.waiting import eventually

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.model import Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.operations.cuts import create_cut
from tidelog.operations.schemas.records import SubjectVersion
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.schemas.base.model import Schema
from tidelog.server.logins import HttpAccess
from tidelog.transactions.transaction_log import TransactionLog

ALLOWED = (
    (AclOperation.READ, AclResource.TOPIC, "orders"),
    (AclOperation.DESCRIBE, AclResource.TOPIC, "stock"),
    (AclOperation.READ, AclResource.GROUP, "billing"),
    (AclOperation.DESCRIBE, AclResource.TRANSACTIONAL_ID, "copier"),
)
SEEN_BY_A_GUARD = (
    (AclResource.CLUSTER, "kafka-cluster"),
    (AclResource.TOPIC, "orders"),
    (AclResource.GROUP, "billing"),
)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    address = tmp_path_factory.mktemp("place") / "lake"
    with Lake(address) as lake:
        users = AccessLog(lake)
        for user in ("ann", "guard", "root"):
            users.upsert_scram(user, credential(ScramMechanism.SHA_512, f"{user}-pw", b"salt" * 4))
        users.add_acls(
            [
                Acl(kind, AclPattern.LITERAL, name, "User:ann", "*", may, AclPermission.ALLOW)
                for may, kind, name in ALLOWED
            ]
            + [
                Acl(kind, AclPattern.LITERAL, name, "User:guard", "*", AclOperation.DESCRIBE, AclPermission.ALLOW)
                for kind, name in SEEN_BY_A_GUARD
            ]
        )
        for topic in ("orders", "stock", "wages"):
            lake.create_topic(topic, 1)
            lake.topic(topic).append([{"value": topic}])
            RegistryLog(lake).decide(_registered(topic))
        offsets = {("orders", 0): CommittedOffset(0), ("wages", 0): CommittedOffset(0)}
        for group in ("billing", "payroll"):
            GroupLog(lake).commit_offsets(group, offsets)
        for name in ("copier", "payer"):
            TransactionLog(lake).begin(name, 60_000)
        create_cut(lake, "friday")
        users.close()
    access = HttpAccess(authenticates=True, super_users=frozenset({"User:root"}))
    with running_console(address, access=access) as console:
        yield console


def _registered(topic):
    def rule(state):
        number = state.next_id()
        return None, [SubjectVersion(f"{topic}-value", 1, number, Schema(f'"{topic}"')).record()]

    return rule


def test_what_is_not_to_be_seen_is_not_listed(running):
    with running.client(("ann", "ann-pw")) as page:
        assert [one["group"] for one in page.ok("GET", "/api/groups")["groups"]] == ["billing"]
        found = page.ok("GET", "/api/transactions")
        assert ([one["transactional_id"] for one in found["ids"]], found["total"]) == (["copier"], 1)
        assert [one["subject"] for one in page.ok("GET", "/api/schemas")["subjects"]] == ["orders-value", "stock-value"]
        page.refused(404, "GET", "/api/schemas/wages-value")
    with running.client(("root", "root-pw")) as page:
        assert len(page.ok("GET", "/api/groups")["groups"]) == 2
        assert page.ok("GET", "/api/schemas/wages-value")["versions"][0]["schema"] == '"wages"'


def test_a_cut_shows_the_topics_and_groups_that_a_client_sees(running):
    seen = {}
    for user in ("guard", "root"):
        with running.client((user, f"{user}-pw")) as page:
            cut = page.ok("GET", "/api/cuts/friday")
            (row,) = page.ok("GET", "/api/cuts")["cuts"]
            assert row == {name: cut[name] for name in row}
            topics = {one["topic"] for one in cut["partitions"]}
            places = {(one["group"], one["topic"]) for one in cut["positions"]}
            seen[user] = (topics, places, row["topics"], row["offsets"], row["groups"])
    assert seen["guard"] == ({"orders"}, {("billing", "orders")}, 1, 1, 1)
    every = {(group, topic) for group in ("billing", "payroll") for topic in ("orders", "wages")}
    topics = {"orders", "stock", "wages", "_schemas"}
    assert seen["root"] == (topics, every, 4, 6, 2)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/groups/payroll", None),
        ("GET", "/api/groups/payroll/history", None),
        ("POST", "/api/groups/payroll/reset", {"to": "earliest"}),
        ("DELETE", "/api/groups/billing", {"confirm": "billing"}),
        ("POST", "/api/groups/billing/reset", {"to": "latest", "dry_run": True, "topic": "wages"}),
        ("POST", "/api/groups/billing/reset", {"to": "latest", "dry_run": False, "topic": "stock"}),
        ("POST", "/api/transactions/abort", {"transactional_id": "copier"}),
        ("GET", "/api/maintenance", None),
        ("POST", "/api/maintenance/run", {"topic": "orders"}),
        ("GET", "/api/check", None),
        ("POST", "/api/check/run", {}),
        ("GET", "/api/doctor", None),
        ("GET", "/api/brokers", None),
        ("GET", "/api/connectors", None),
        ("GET", "/api/mirrors", None),
        ("GET", "/api/cuts", None),
        ("GET", "/api/cuts/friday", None),
    ],
)
def test_what_is_not_allowed(running, method, path, body):
    with running.client(("ann", "ann-pw")) as page:
        assert "denied" in page.refused(403, method, path, body)


def test_sql_reads_what_the_client_may_read(running):
    pytest.importorskip("duckdb")
    with running.client(("ann", "ann-pw")) as page, running.client(("root", "root-pw")) as other:
        found = {}
        for query in ("SHOW TABLES", "SELECT value FROM orders", "SELECT value FROM stock", "SELECT value FROM wages"):
            run = page.ok("POST", "/api/sql", {"query": query})["id"]
            other.refused(404, "GET", f"/api/sql/{run}")
            ended = lambda run=run: (r := page.ok("GET", f"/api/sql/{run}"))["state"] != "running" and r  # noqa: E731
            found[query] = eventually(ended, query)
        assert found["SHOW TABLES"]["rows"] == [["orders"]]
        assert found["SELECT value FROM orders"]["rows"] == [["orders"]]
        for topic in ("stock", "wages"):
            assert f'no topic "{topic}"' in found[f"SELECT value FROM {topic}"]["error"]
