"""What the topics of workers, their leases, and databases' slots say of connectors that are not well."""

import json

from support.connect_plugins import COUNTER, PLUGINS
from support.logs import memory_lake
from support.waiting import eventually
from test_connect_api import CONVERTERS, Rest

from tidelog.connect.api.operations import ConnectOperations
from tidelog.connect.api.rest_server import ConnectServer
from tidelog.connect.connectors.postgres.slots import slot_health
from tidelog.connect.data.errors import RetriableConnectError
from tidelog.connect.runtime.plugins import Plugins
from tidelog.log.config.lake_file import Follows
from tidelog.log.lake import Lake
from tidelog.operations.connector_health import SlotHealth, connector_health
from tidelog.operations.connectors import CONFIGS, STATUSES
from tidelog.operations.snapshots import SnapshotReader

POSTGRES = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "topic.prefix": "shop",
    "database.hostname": "db", "database.user": "u", "database.password": "p", "database.dbname": "shop",
    "slot.name": "mine",
}  # fmt: skip


def seen(lake):
    with SnapshotReader(lake, 0) as reader:
        return connector_health(lake, reader.read().groups.values())


def test_a_worker_that_is_gone_is_seen_by_its_lease(tmp_path, monkeypatch):
    rest = Rest(tmp_path, started=True)
    try:
        rest.lake.create_topic("t", 1)
        config = {"connector.class": COUNTER, "topic": "t", "most": "3", **CONVERTERS}
        rest.ok("PUT", "/connectors/c/config", config, 201)
        eventually(lambda: rest.states("c") == ["RUNNING", "RUNNING"], "the connector runs")
        assert seen(rest.lake) == {}
        # No worker was heard of for some minutes: all leases are as old as that.
        monkeypatch.setattr("tidelog.operations.connector_health._SILENT_MS", -1)
        assert seen(rest.lake)["c"].silent == {"connector": "127.0.0.1:8083", "task 0": "127.0.0.1:8083"}
    finally:
        rest.close()
    monkeypatch.undo()
    found = seen_again(tmp_path)
    assert found["c"].unassigned == ("connector", "task 0")


def seen_again(folder):
    with Lake(str(folder / "lake")) as lake:
        return seen(lake)


def lake_with(**connectors):
    lake, _, _ = memory_lake()
    lake.create_topic(CONFIGS, 1, {"cleanup.policy": "compact"})
    rows = [
        {"key": f"connector-{name}".encode(), "value": json.dumps({"properties": config}).encode()}
        for name, config in connectors.items()
    ]
    lake.topic(CONFIGS).append(rows)
    return lake


class Asked:
    """A database with three slots, or one that is away."""

    def __init__(self, settings):
        if settings.host == "away":
            raise RetriableConnectError("PostgreSQL does not take a connection")
        self.closed = False

    def ask(self, query):
        assert "pg_replication_slots" in query
        return [("mine", True, 10), ("old", False, 5_000_000_000)]

    def close(self):
        self.closed = True


def test_slots_of_the_databases_that_connectors_read():
    lake = lake_with(a=POSTGRES, b={"connector.class": COUNTER}, c={**POSTGRES, "database.hostname": "away"})
    first, second, third = slot_health(lake, Asked)
    assert first == SlotHealth("mine", first.database, "a", True, 10)
    assert second == SlotHealth("old", first.database, "", False, 5_000_000_000)
    assert (third.connector, third.problem) == ("c", "PostgreSQL does not take a connection")


def test_slots_need_no_topic_of_statuses():
    lake = lake_with(a=POSTGRES)
    lake.create_topic(STATUSES, 1, {"cleanup.policy": "delete"})  # which workers refuse
    assert [found.slot for found in slot_health(lake, Asked)] == ["mine", "old"]


def test_a_password_that_only_a_worker_can_look_up_is_said():
    (found,) = slot_health(lake_with(a={**POSTGRES, "database.password": "${file:/secrets:pw}"}), Asked)
    assert "only its worker can look up" in found.problem


def test_connectors_of_a_lake_that_follows_another_run_at_its_source():
    lake = lake_with(a=POSTGRES)
    lake.follow(Follows("memory://there"))
    assert (seen(lake), slot_health(lake, Asked)) == ({}, [])


def test_a_workers_health_names_a_connector_that_failed(tmp_path):
    lake = Lake(str(tmp_path / "lake"), True)
    server = ConnectServer(lake, ("127.0.0.1", 0), plugins=Plugins((), PLUGINS))
    try:
        assert server.troubles() == []
        server.start()
        lake.create_topic("t", 1)
        config = {"connector.class": COUNTER, "topic": "t", "most": "9", "fail.at": "5", **CONVERTERS}
        ConnectOperations(server.worker).create("c", config, None)
        wanted = [
            "Connector 'c', task 0, has failed: tidelog.connect.data.errors.ConnectError: failed at 5, as it was to"
        ]
        eventually(lambda: server.troubles() == wanted, "the failure is named")
    finally:
        server.stop()
        lake.close()
