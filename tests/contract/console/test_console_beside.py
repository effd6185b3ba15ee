"""Brokers, schemas, connectors and mirrors at a console: none of them need run."""

import json

import pytest
from support.console import running_console

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.model import Listener, RegisteredBroker
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.operations.cuts import create_cut
from tidelog.operations.mirrors import MirrorStatus, TableStatus, write_status
from tidelog.operations.schemas.records import SubjectVersion
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.schemas.base.model import Schema, SchemaKind


@pytest.fixture
def running(tmp_path):
    with running_console(tmp_path / "lake") as console:
        console.lake.create_topic("orders", 1)
        yield console


def test_a_lake_alone(running):
    with running.client() as page:
        assert page.ok("GET", "/api/brokers") == {"brokers": []}
        assert page.ok("GET", "/api/schemas") == {"subjects": []}
        assert page.ok("GET", "/api/connectors") == {"connectors": [], "problem": ""}
        assert page.ok("GET", "/api/mirrors") == {"follows": None, "mirrors": []}
        assert page.ok("GET", "/api/cuts") == {"total": 0, "cuts": []}


def test_cuts(running):
    lake = running.lake
    lake.topic("orders").append([{"value": "1"}, {"value": "2"}])
    GroupLog(lake).commit_offsets("billing", {("orders", 0): CommittedOffset(1)})
    create_cut(lake, "friday", keep=True)
    with running.client() as page:
        (row,) = page.ok("GET", "/api/cuts")["cuts"]
        assert (row["name"], row["kept"], row["topics"], row["offsets"], row["groups"]) == ("friday", True, 1, 2, 1)
        shown = page.ok("GET", "/api/cuts/friday")
        assert shown["partitions"] == [{"topic": "orders", "partition": 0, "version": 1, "start": 0, "end": 2}]
        assert shown["positions"] == [{"group": "billing", "topic": "orders", "partition": 0, "position": 1}]
        page.refused(404, "GET", "/api/cuts/other")


def test_brokers(running):
    listener = Listener("PLAINTEXT", "host-1", 9092)
    ClusterLog(running.lake).register(RegisteredBroker(3, "a-registration", (listener,), "rack-1"), any_id=False)
    with running.client() as page:
        (broker,) = page.ok("GET", "/api/brokers")["brokers"]
        assert (broker["id"], broker["state"], broker["rack"]) == (3, "running", "rack-1")
        assert broker["listeners"] == [{"name": "PLAINTEXT", "host": "host-1", "port": 9092}]


def test_schemas(running):
    versions = [
        SubjectVersion("orders-value", n, n, Schema(json.dumps({"type": t}), SchemaKind.JSON))
        for n, t in ((1, "object"), (2, "string"))
    ]
    RegistryLog(running.lake).decide(lambda _: (None, [one.record() for one in versions]))
    with running.client() as page:
        (row,) = page.ok("GET", "/api/schemas")["subjects"]
        assert (row["subject"], row["versions"], row["version"], row["type"]) == ("orders-value", 2, 2, "JSON")
        found = page.ok("GET", "/api/schemas/orders-value")
        assert [one["schema"] for one in found["versions"]] == ['{"type": "string"}', '{"type": "object"}']
        page.refused(404, "GET", "/api/schemas/other")


def test_connectors_without_their_passwords(running):
    lake = running.lake
    config = {"connector.class": "JdbcSink", "topics": "orders", "connection.password": "secret"}
    lake.create_topic("connect-configs", 1, {"cleanup.policy": "compact"})
    lake.create_topic("connect-status", 2, {"cleanup.policy": "compact"})
    with running.client() as page:
        assert page.ok("GET", "/api/connectors")["connectors"] == []
        rows = {
            "connector-jdbc": {"properties": config},
            "task-jdbc-0": {"properties": {}},
            "commit-jdbc": {"tasks": 1},
        }
        for key, value in rows.items():
            lake.topic("connect-configs").append([{"key": key, "value": value}])
        failed = {"state": "FAILED", "trace": "no such table", "worker_id": "w:1", "generation": 1}
        lake.topic("connect-status").append([{"key": "status-task-jdbc-0", "value": failed}])
        (row,) = page.ok("GET", "/api/connectors")["connectors"]
        assert (row["name"], row["target"], row["state"]) == ("jdbc", "STARTED", "UNASSIGNED")
        assert row["config"] == {"connector.class": "JdbcSink", "topics": "orders"}
        (task,) = row["tasks"]
        assert (task["id"], task["state"], task["trace"]) == (0, "FAILED", "no such table")


def test_a_mirror(running):
    said = MirrorStatus("s3://source/lake", "a-run", running.lake.clock.now_ms(), behind_entries=7)
    write_status(running.lake.storage, MirrorStatus(**{**_fields(said), "tables": {"orders": TableStatus(9, 2)}}))
    with running.client() as page:
        (mirror,) = page.ok("GET", "/api/mirrors")["mirrors"]
        assert (mirror["source"], mirror["behind_entries"]) == ("s3://source/lake", 7)
        assert mirror["tables"]["orders"]["source"] == 9


def _fields(status):
    return {name: getattr(status, name) for name in status.__dataclass_fields__}
