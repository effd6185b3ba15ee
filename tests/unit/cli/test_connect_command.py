"""`tidelog connect plugins`, `list` and `status`: what they show of a lake without workers."""

import json

import pytest
from support.cli_calls import done, refused
from support.connect_plugins import COUNTER

from tidelog.connect.runtime.plugins import Plugins
from tidelog.connect.runtime.shared import WorkerShared
from tidelog.connect.runtime.worker_settings import WorkerSettings
from tidelog.log.lake import Lake
from tidelog.operations.connector_configs import decide_create, decide_tasks
from tidelog.operations.connector_statuses import RunState

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.fixture
def address(tmp_path):
    with Lake(str(tmp_path / "lake"), True) as lake:
        shared = WorkerShared(lake, WorkerSettings(), "w:1", Plugins(()))
        for rule in (
            lambda state: decide_create(state, "lines", {"connector.class": SOURCE}),
            lambda state: decide_create(state, "strange", {"connector.class": COUNTER}),
            lambda state: decide_tasks(state, "lines", state.versions["lines"], [{"file": "x"}]),
        ):
            shared.configs.decide(lambda state, rule=rule: (None, [one.bytes() for one in rule(state)]))
        shared.report("lines", None, RunState.RUNNING)
        shared.report("lines", 0, RunState.FAILED, "Traceback: it is broken")
    return str(tmp_path / "lake")


def test_plugins_say_what_they_guarantee():
    rows = json.loads(done("--format", "json", "connect", "plugins").stdout)
    (one,) = (row for row in rows if row["class"] == SOURCE)
    assert (one["type"], one["guarantee"].startswith("Exactly once")) == ("source", True)
    converters = {row["class"] for row in rows if row["type"] == "converter"}
    assert {
        "io.confluent.connect.avro.AvroConverter", "io.confluent.connect.json.JsonSchemaConverter",
        "io.confluent.connect.protobuf.ProtobufConverter",
    } <= converters  # fmt: skip
    assert "GUARANTEE" in done("connect", "plugins").stdout


def test_connectors_are_listed_with_their_states(address):
    rows = json.loads(done("--lake", address, "--format", "json", "connect", "list").stdout)
    assert rows == [
        {"name": "lines", "type": "source", "state": "RUNNING", "tasks": "FAILED"},
        {"name": "strange", "type": "unknown", "state": "UNASSIGNED", "tasks": ""},
    ]
    assert "strange" in done("--lake", address, "connect", "list").stdout


def test_a_connector_is_described_with_what_broke(address):
    text = done("--lake", address, "connect", "status", "lines").stdout
    assert "Traceback: it is broken" in text
    assert "w:1" in text
    found = json.loads(done("--lake", address, "--format", "json", "connect", "status", "lines").stdout)
    assert found["tasks"][0]["state"] == "FAILED"


def test_a_connector_that_is_not_there(address):
    assert "Connector none not found" in refused(2, "--lake", address, "connect", "status", "none")
