"""A program of others that drives Connect, run as it is against a worker: kafka-connect-py, its library and command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kafka_connect import KafkaConnect
from requests.exceptions import HTTPError
from support.broker_processes import broker_command
from support.cli_calls import done
from support.waiting import eventually

from tidelog.log.lake import Lake

CLASS = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def test_kafka_connect_py_drives_a_worker(tmp_path):
    lake, password = tmp_path / "lake", tmp_path / "password"
    password.write_text("secret")
    done("--lake", str(lake), "topic", "create", "lines", "--partitions", "1")
    done("--lake", str(lake), "user", "add", "ann", "--password-file", str(password))
    properties = tmp_path / "worker.properties"
    properties.write_text("super.users=User:ann\n")
    (tmp_path / "in").write_text("one\ntwo\n")
    config = {
        "connector.class": CLASS, "topic": "lines", "file": str(tmp_path / "in"), "tasks.max": "1",
        "key.converter": "string", "value.converter": "string",
    }  # fmt: skip
    arguments = ("--listener", "127.0.0.1:0", "--config", str(properties), "--authenticate")
    with broker_command(lake, *arguments, family="connect") as command, Lake(str(lake)) as opened:
        url = command.ready()["url"]
        with pytest.raises(HTTPError, match="401"):
            KafkaConnect(url, auth="ann:other").list_connectors()
        client = KafkaConnect(url, auth="ann:secret")
        assert client.get_cluster_info()["version"]
        assert CLASS in [one["class"] for one in client.list_connector_plugins()]
        checked = client.validate_connector_config("FileStreamSource", {"name": "c", **config})
        assert checked["error_count"] == 0
        assert client.create_connector({"name": "c", "config": config})["name"] == "c"
        eventually(
            lambda: [one["state"] for one in client.get_connector_status("c")["tasks"]] == ["RUNNING"], "it runs"
        )
        rows = eventually(lambda: [*opened.topic("lines").read(0)], "its records are there")
        assert rows[0].column("value").to_pylist() == [b"one", b"two"]
        assert client.get_connector("c")["type"] == "source"
        assert client.get_connector_config("c")["file"] == str(tmp_path / "in")
        assert client.update_connector("c", {**config, "batch.size": "7"})["config"]["batch.size"] == "7"
        assert set(client.list_connectors(expand="status")["c"]) == {"status"}
        assert client.list_connectors(pattern="^c$") == ["c"]
        assert client.list_connector_topics("c") == {"c": {"topics": ["lines"]}}
        client.pause_connector("c")
        eventually(lambda: client.get_connector_status("c")["connector"]["state"] == "PAUSED", "it is paused")
        client.resume_connector("c")
        eventually(lambda: client.get_connector_status("c")["connector"]["state"] == "RUNNING", "it runs again")
        client.restart_connector("c", include_tasks=True)
        client.restart_connector_task("c", 0)
        eventually(lambda: client.get_connector_task_status("c", 0)["state"] == "RUNNING", "its task runs again")
        client.reset_connector_topics("c")
        client.stop_connector("c")
        eventually(lambda: client.list_connector_tasks("c") == [], "it has no tasks")
        # The same by its command.
        program = Path(sys.executable).parent / "kafka-connect"
        environment = {**os.environ, "KAFKA_CONNECT_URL": url, "KAFKA_CONNECT_BASIC_AUTH": "ann:secret"}
        shown = subprocess.run([program, "list"], env=environment, capture_output=True, text=True, check=True)
        assert json.loads(shown.stdout) == ["c"]
        client.delete_connector("c")
        assert client.list_connectors() == []
        assert command.stop() == 0
