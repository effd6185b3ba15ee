"""Connect's REST API over a worker in the test's process: the paths and bodies that its clients send."""

import asyncio
import json
import logging
from importlib.metadata import version

import httpx
import pytest
from support.connect_plugins import COLLECTOR, COUNTER, PLUGINS, collected
from support.waiting import eventually

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.model import RegisteredBroker
from tidelog.connect.api.operations import ConnectOperations
from tidelog.connect.api.routes import RestApp
from tidelog.connect.runtime.plugins import Plugins
from tidelog.connect.runtime.worker_settings import WorkerSettings
from tidelog.connect.worker import Worker
from tidelog.log.lake import Lake
from tidelog.server.connections import HttpBounds

CONVERTERS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.converters.LongConverter",
}
SOURCE = {"connector.class": COUNTER, "topic": "t", "most": "20", "tasks.max": "2", **CONVERTERS}


class Rest:
    """Requests to a worker's application. `started`: whether its worker runs connectors."""

    def __init__(self, folder, *, started, **settings):
        self.lake = Lake(str(folder / "lake"), True)
        self.worker = Worker(
            self.lake, "127.0.0.1:8083", WorkerSettings(flush_interval_s=0.1, **settings), Plugins((), PLUGINS)
        )
        self.app = RestApp(ConnectOperations(self.worker), HttpBounds(body=100_000))
        if started:
            self.worker.start()
            eventually(lambda: not self.worker.rebalancing, "the worker is in its group")

    def __call__(self, method, path, body=None, **headers):
        async def send():
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://worker") as client:
                content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
                return await client.request(method, path, content=content, headers=headers)

        return asyncio.run(send())

    def ok(self, method, path, body=None, status=200):
        answer = self(method, path, body)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def refused(self, method, path, body=None, **headers):
        """(status, message) of a refusal in Connect's form."""
        answer = self(method, path, body, **headers)
        found = answer.json()
        assert sorted(found) == ["error_code", "message"]
        assert found["error_code"] == answer.status_code
        assert "Traceback" not in found["message"]
        return answer.status_code, found["message"]

    def states(self, name):
        found = self.ok("GET", f"/connectors/{name}/status")
        return [found["connector"]["state"], *(task["state"] for task in found["tasks"])]

    def close(self):
        self.worker.stop()
        self.lake.close()


@pytest.fixture
def idle(tmp_path):
    rest = Rest(tmp_path, started=False)
    yield rest
    rest.close()


@pytest.fixture
def rest(tmp_path):
    rest = Rest(tmp_path, started=True)
    yield rest
    rest.close()


# --- without a running worker: the shared topics alone ----------------------------------------------------------


def test_a_connector_from_its_creation_to_its_deletion(idle):
    made = idle("POST", "/connectors", {"name": "c", "config": SOURCE})
    assert (made.status_code, made.headers["location"]) == (201, "/connectors/c")
    assert made.json() == {"name": "c", "config": {**SOURCE, "name": "c"}, "tasks": [], "type": "source"}
    assert idle.ok("GET", "/connectors") == ["c"]
    assert idle.ok("GET", "/connectors/c/config") == {**SOURCE, "name": "c"}
    assert idle.ok("PUT", "/connectors/c/config", {**SOURCE, "most": 7})["config"]["most"] == "7"
    idle.ok("PUT", "/connectors/d/config", SOURCE, 201)
    patched = idle.ok("PATCH", "/connectors/c/config", {"most": None, "batch": "3"})["config"]
    assert "most" not in patched
    assert patched["batch"] == "3"
    expanded = idle.ok("GET", "/connectors?expand=info&expand=status")
    assert expanded["c"]["info"]["config"] == patched
    assert expanded["c"]["status"]["connector"]["state"] == "UNASSIGNED"
    assert set(idle.ok("GET", "/connectors?expand=status")["d"]) == {"status"}
    assert idle.ok("GET", "/connectors/c/tasks") == []
    idle.ok("DELETE", "/connectors/c", None, 204)
    assert idle.ok("GET", "/connectors") == ["d"]


def test_a_patch_is_made_of_the_newest_configuration(idle, monkeypatch):
    idle.ok("POST", "/connectors", {"name": "c", "config": SOURCE}, 201)
    validate, others = PLUGINS[0].validate, [{"batch": "4"}]

    def meanwhile(config):
        if others:
            idle.ok("PATCH", "/connectors/c/config", others.pop())
        return validate(config)

    monkeypatch.setattr(PLUGINS[0], "validate", meanwhile)
    found = idle.ok("PATCH", "/connectors/c/config", {"most": "9"})["config"]
    assert (found["batch"], found["most"]) == ("4", "9")


def test_names_may_have_any_characters(idle):
    for path, name in (("a%2Fb%25", "a/b%"), ("%C3%A4%20x", "ä x")):
        idle.ok("PUT", f"/connectors/{path}/config", SOURCE, 201)
        assert idle.ok("GET", f"/connectors/{path}")["name"] == name


REFUSED = [
    ("GET", "/nowhere", None, 404, "Not Found"),
    ("PATCH", "/connectors", None, 405, "Not Allowed"),
    ("GET", "/connectors/x", None, 404, "Connector x not found"),
    ("GET", "/connectors/x/status", None, 404, "Connector x not found"),
    ("DELETE", "/connectors/x", None, 404, "Connector x not found"),
    ("PUT", "/connectors/x/pause", None, 404, "Connector x not found"),
    ("GET", "/connectors/c/tasks/0/status", None, 404, "Task c-0 not found"),
    ("GET", "/connectors/c/tasks/zero/status", None, 404, "Not Found"),
    ("POST", "/connectors", {"name": "c", "config": SOURCE}, 409, "Connector c already exists"),
    ("POST", "/connectors", {"name": "e"}, 400, "config"),
    ("POST", "/connectors", {"config": SOURCE}, 400, "name"),
    ("POST", "/connectors", {"name": " ", "config": SOURCE}, 400, "name"),
    ("POST", "/connectors", {"name": 5, "config": SOURCE}, 400, "name"),
    ("POST", "/connectors", {"name": "e", "config": SOURCE, "initial_state": "LAZY"}, 400, "STARTED"),
    ("POST", "/connectors", {"name": "e", "config": SOURCE, "initial_state": 5}, 400, "STARTED"),
    ("POST", "/connectors", {"name": "e", "config": {"name": "f", **SOURCE}}, 400, "doesn't match"),
    ("POST", "/connectors", {"name": "e", "config": {}}, 400, "no connector type"),
    ("POST", "/connectors", {"name": "e", "config": {"connector.class": "Nothing"}}, 400, "Failed to find any class"),
    ("POST", "/connectors", {"name": "e", "config": {**SOURCE, "a": [1]}}, 400, "list or an object"),
    ("POST", "/connectors", {"name": "e", "config": {**SOURCE, "tasks.max": "0"}}, 400, "at least 1"),
    ("POST", "/connectors", {"name": "e\u0001", "config": SOURCE}, 400, "control characters"),
    ("POST", "/connectors", {"name": "e", "config": {**SOURCE, "transforms": "a,a"}}, 400, "Duplicate alias"),
    ("POST", "/connectors", {"name": "e", "config": {**SOURCE, "value.converter": "Xml"}}, 400, "could not be found"),
    ("POST", "/connectors", {"name": "e", "config": {"connector.class": COLLECTOR, "file": "f"}}, 400, "topics"),
    ("PUT", "/connectors/c/config", [], 400, "object"),
    ("PUT", "/connectors/c/config", None, 400, "object"),
    ("PUT", "/connectors/c/config", b"{", 400, "no JSON"),
    ("PUT", "/connectors/c/config", b"[" * 50_000, 400, "no JSON"),
    ("PUT", "/connectors/c/config", b"\xff\xfe", 400, "no JSON"),
    ("PUT", "/connectors/c/config", b"x" * 200_000, 413, "bytes"),
    ("PATCH", "/connectors/x/config", {"most": "1"}, 404, "Connector x not found"),
    ("PATCH", "/connectors/c/config", {"topic": None}, 400, "Missing required configuration"),
    ("PATCH", "/connectors/c/offsets", {"offsets": [{"partition": {}, "offset": {}}]}, 400, "STOPPED state"),
    ("DELETE", "/connectors/c/offsets", None, 400, "STOPPED state"),
    ("PATCH", "/connectors/c/offsets", {"offsets": []}, 400, "need to be provided"),
    ("PATCH", "/connectors/c/offsets", {"offsets": [{"partition": 1}]}, 400, "partition"),
    ("PUT", "/connector-plugins/Nothing/config/validate", {}, 404, "Failed to find any class"),
    ("PUT", f"/connector-plugins/{COUNTER}/config/validate", {"connector.class": COLLECTOR}, 400, "does not match"),
    ("GET", "/connector-plugins/Nothing/config", None, 404, "Failed to find any class"),
    ("GET", "/admin/loggers/no.such", None, 404, "not found"),
    ("PUT", "/admin/loggers/tidelog", {"level": "LOUD"}, 404, "invalid log level"),
    ("PUT", "/admin/loggers/tidelog", {}, 400, "level"),
    ("POST", "/connectors/c/restart", None, 409, "rebalance"),
]


def test_refusals_have_connects_form(idle):
    idle.ok("POST", "/connectors", {"name": "c", "config": SOURCE}, 201)
    for method, path, body, status, message in REFUSED:
        found = idle.refused(method, path, body)
        assert found[0] == status, (method, path, found)
        assert message in found[1], (method, path, found)
    assert idle.refused("PUT", "/connectors/c/config", b"a=1", **{"content-type": "text/plain"})[0] == 415
    assert idle.refused("PUT", "/connectors/c/config", b"x", **{"content-encoding": "gzip"})[0] == 415
    assert idle.refused("PUT", "/connectors/c/pause", **{"sec-fetch-site": "cross-site"})[0] == 403
    assert idle.ok("GET", "/connectors") == ["c"]


def test_all_errors_of_a_configuration_are_named_at_once(idle):
    status, message = idle.refused(
        "POST", "/connectors", {"name": "e", "config": {"connector.class": COUNTER, "batch": "x"}}
    )
    assert status == 400
    assert "contains the following 2 error(s)" in message
    assert "batch" in message
    assert '"topic"' in message


def test_what_a_worker_has_to_offer(idle):
    assert {"class": COUNTER, "type": "source", "version": "1.0"} in idle.ok("GET", "/connector-plugins")
    every = idle.ok("GET", "/connector-plugins?connectorsOnly=false")
    assert {one["type"] for one in every} == {
        "source", "sink", "transformation", "predicate", "converter", "header_converter",
    }  # fmt: skip
    names = [key["name"] for key in idle.ok("GET", f"/connector-plugins/{COUNTER}/config")]
    assert {"topic", "tasks.max", "errors.tolerance", "transforms", "transaction.boundary"} <= set(names)
    assert idle.ok("GET", "/connector-plugins/JsonConverter/config")[0]["name"] == "schemas.enable"
    found = idle.ok("PUT", "/connector-plugins/CounterSource/config/validate", {**SOURCE, "name": "c", "batch": "0"})
    assert (found["name"], found["error_count"]) == (COUNTER, 1)
    errors = {one["value"]["name"]: one["value"]["errors"] for one in found["configs"] if one["value"]["errors"]}
    assert errors == {"batch": ["Invalid value 0 for configuration batch: Value must be at least 1"]}
    assert {"Common", "Error Handling", "Exactly Once Support"} <= set(found["groups"])


def test_the_worker_says_what_it_is(idle):
    found = idle.ok("GET", "/")
    assert sorted(found) == ["commit", "kafka_cluster_id", "version"]
    assert found["kafka_cluster_id"] == idle.lake.uri
    assert found["commit"] == f"tidelog-{version('tidelog')}"
    assert idle("GET", "/health").status_code == 503
    assert idle("HEAD", "/").status_code == 200


def test_its_version_is_that_of_the_connect_whose_interface_it_has(idle):
    """Clients such as kcctl compare it with the versions in which Connect got stopped connectors, offsets, scopes."""
    assert tuple(map(int, idle.ok("GET", "/")["version"].split("."))) >= (3, 7)


def test_its_cluster_is_that_of_the_brokers(idle):
    ClusterLog(idle.lake).register(RegisteredBroker(1, "a-registration"), any_id=False)
    assert idle.ok("GET", "/")["kafka_cluster_id"] == ClusterLog(idle.lake).cluster_id() != idle.lake.uri


@pytest.fixture
def levels_kept():
    """The levels of tidelog's loggers are as before when a test ends: others go by what is logged."""
    known = {
        name: logger.level
        for name, logger in [("tidelog", logging.getLogger("tidelog")), *logging.Logger.manager.loggerDict.items()]
        if name.partition(".")[0] == "tidelog" and isinstance(logger, logging.Logger)
    }
    yield
    for name, level in known.items():
        logging.getLogger(name).setLevel(level)


def test_loggers_have_levels(idle, levels_kept):
    assert "root" in idle.ok("GET", "/admin/loggers")
    assert "tidelog.connect" in idle.ok("PUT", "/admin/loggers/tidelog", {"level": "WARN"})
    assert idle.ok("GET", "/admin/loggers/tidelog.connect")["level"] == "WARN"
    assert "tidelog" in idle.ok("PUT", "/admin/loggers/tidelog", {"level": "INFO"})
    assert idle.ok("GET", "/admin/loggers/tidelog")["last_modified"]


# --- with a running one -----------------------------------------------------------------------------------------


def numbers(lake):
    if lake.peek("t") is None:
        return []
    batches = [one for p in lake.topic("t").offsets() for one in lake.topic("t").read(p)]
    return sorted(int.from_bytes(value, "big") for one in batches for value in one.column("value").to_pylist())


def test_a_source_runs_pauses_stops_and_goes_on_where_it_was(rest):
    rest.ok("POST", "/connectors", {"name": "c", "config": {**SOURCE, "tasks.max": "1"}}, 201)
    eventually(lambda: numbers(rest.lake) == list(range(20)), "all records are there")
    eventually(lambda: rest.states("c") == ["RUNNING"] * 2, "it runs")
    assert rest.ok("GET", "/connectors/c/topics") == {"c": {"topics": ["t"]}}
    rest.ok("PUT", "/connectors/c/pause", None, 202)
    eventually(lambda: rest.states("c") == ["PAUSED"] * 2, "it is paused")
    rest.ok("PUT", "/connectors/c/resume", None, 202)
    eventually(lambda: rest.states("c") == ["RUNNING"] * 2, "it runs again")
    rest.ok("PUT", "/connectors/c/config", {**SOURCE, "tasks.max": "1", "most": "30"})
    eventually(lambda: numbers(rest.lake) == list(range(30)), "it goes on")
    rest.ok("PUT", "/connectors/c/stop", None, 204)
    eventually(lambda: rest.states("c") == ["STOPPED"], "it is stopped")
    assert rest.ok("GET", "/connectors/c/offsets") == {
        "offsets": [{"partition": {"counter": "0"}, "offset": {"next": 30}}]
    }
    altered = {"offsets": [{"partition": {"counter": "0"}, "offset": {"next": 28}}]}
    found = eventually(lambda: rest("PATCH", "/connectors/c/offsets", altered).status_code == 200, "tasks have ended")
    assert found
    assert (
        rest.refused("PATCH", "/connectors/c/offsets", {"offsets": [{"partition": {"x": 1}, "offset": None}]})[0] == 400
    )
    rest.ok("PUT", "/connectors/c/resume", None, 202)
    eventually(lambda: numbers(rest.lake) == sorted([*range(30), 28, 29]), "it goes on from the altered offset")
    rest.ok("PUT", "/connectors/c/stop", None, 204)
    eventually(lambda: rest("DELETE", "/connectors/c/offsets").status_code == 200, "offsets are reset")
    assert rest.ok("GET", "/connectors/c/offsets") == {"offsets": []}
    rest.ok("PUT", "/connectors/c/topics/reset")
    rest.ok("DELETE", "/connectors/c", None, 204)
    eventually(lambda: not rest.worker.shared.statuses.look(lambda state: dict(state.runs)), "no status is left")


def test_a_connector_may_begin_stopped(rest):
    rest.ok("POST", "/connectors", {"name": "c", "config": SOURCE, "initial_state": "STOPPED"}, 201)
    eventually(lambda: rest.states("c") == ["STOPPED"], "it is stopped")
    assert rest.lake.peek("t") is None


def test_failed_tasks_are_restarted(rest):
    rest.ok("POST", "/connectors", {"name": "c", "config": {**SOURCE, "fail.at": "5"}}, 201)
    eventually(lambda: rest.states("c") == ["RUNNING", "FAILED", "FAILED"], "its tasks fail")
    assert "failed at 5, as it was to" in rest.ok("GET", "/connectors/c/tasks/1/status")["trace"]
    found = rest.ok("POST", "/connectors/c/restart?includeTasks=true&onlyFailed=true", None, 202)
    assert [found["connector"]["state"], *(one["state"] for one in found["tasks"])] == ["RUNNING"] + ["RESTARTING"] * 2
    eventually(lambda: rest.states("c") == ["RUNNING", "FAILED", "FAILED"], "they fail again")
    rest.ok("POST", "/connectors/c/tasks/0/restart", None, 204)
    rest.ok("POST", "/connectors/c/restart", None, 204)
    assert rest.refused("POST", "/connectors/c/tasks/9/restart")[0] == 404
    rest.ok("PATCH", "/connectors/c/config", {"fail.at": None})
    eventually(lambda: rest.states("c") == ["RUNNING"] * 3, "with another configuration they run")
    eventually(lambda: numbers(rest.lake) == sorted([*range(20)] * 2), "and all is there once")


def test_a_sink_commits_retries_and_gives_up_what_is_refused(rest, tmp_path):
    rest.ok("PUT", "/connectors/c/config", {**SOURCE, "tasks.max": "1"}, 201)
    sink = {
        "connector.class": COLLECTOR, "topics": "t", "file": str(tmp_path / "out"), "busy": "2", "refuse": "7",
        "errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead",
        "errors.deadletterqueue.context.headers.enable": "true", **CONVERTERS,
    }  # fmt: skip
    rest.ok("PUT", "/connectors/s/config", sink, 201)
    wanted = [number for number in range(20) if number != 7]
    eventually(lambda: sorted(one[4] for one in collected(tmp_path / "out")) == wanted, "the sink has all")
    (letter,) = [row for batch in rest.lake.topic("dead").read(0, include_headers=True) for row in batch.to_pylist()]
    headers = {one["key"]: one["value"] for one in letter["headers"]}
    assert letter["value"] == (7).to_bytes(8, "big")
    assert headers["__connect.errors.exception.message"] == b"refused, as it was to be"
    assert headers["__connect.errors.stage"] == b"TASK_PUT"
    partition = {"kafka_topic": "t", "kafka_partition": 0}
    at = [{"partition": partition, "offset": {"kafka_offset": 20}}]
    eventually(lambda: rest.ok("GET", "/connectors/s/offsets") == {"offsets": at}, "its offsets are committed")
    rest.ok("PUT", "/connectors/s/stop", None, 204)
    altered = {"offsets": [{"partition": partition, "offset": {"kafka_offset": 18}}]}
    eventually(lambda: rest("PATCH", "/connectors/s/offsets", altered).status_code == 200, "its tasks have ended")
    rest.ok("PUT", "/connectors/s/resume", None, 202)
    eventually(lambda: len(collected(tmp_path / "out")) == 21, "two come again")


def test_topics_of_a_worker_that_tracks_none(tmp_path):
    rest = Rest(tmp_path, started=False, tracks_topics=False)
    rest.ok("PUT", "/connectors/c/config", SOURCE, 201)
    assert rest.refused("GET", "/connectors/c/topics")[0] == 403
    rest.close()
