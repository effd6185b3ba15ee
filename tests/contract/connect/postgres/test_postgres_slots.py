"""What the doctor sees of the slots of a real server."""

import json

from support.logs import memory_lake
from support.postgres import Postgres
from support.postgres_sources import SourceRun, config_of, fresh_database
from support.waiting import eventually

from tidelog.connect.connectors.postgres.slots import slot_health
from tidelog.operations.connectors import CONFIGS

_TABLE = "CREATE TABLE items (id integer PRIMARY KEY)"


def test_a_slot_is_active_while_its_connector_reads_and_inactive_afterwards(postgres_server: Postgres) -> None:
    with fresh_database(postgres_server, _TABLE) as name:
        config = config_of(postgres_server, name)
        lake, _, _ = memory_lake()
        lake.create_topic(CONFIGS, 1, {"cleanup.policy": "compact"})
        properties = {"connector.class": "io.debezium.connector.postgresql.PostgresConnector", **config}
        value = json.dumps({"properties": properties}).encode()
        lake.topic(CONFIGS).append([{"key": b"connector-items", "value": value}])
        run = SourceRun(config)
        run.until(lambda: [one.active for one in slot_health(lake)] == [True], "the stream")
        run.kill()
        eventually(lambda: [one.active for one in slot_health(lake)] == [False], "the session has ended")
        (found,) = slot_health(lake)
        assert (found.slot, found.connector, found.problem) == (config["slot.name"], "items", "")
        assert found.held_bytes >= 0
