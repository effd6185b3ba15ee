"""The requests of programs that drive Connect, each with the headers and the body that the program sends.

kcctl (its REST client's interface), Kafka UI (the description that its client is made of), Redpanda Console (CloudHut's
Connect client), AKHQ (SourceLab's Connect client).
"""

import json

import pytest
from support.connect_plugins import COUNTER
from support.waiting import eventually
from test_connect_api import Rest

JSON = {"accept": "application/json", "content-type": "application/json"}
KCCTL = {**JSON, "user-agent": "Quarkus REST Client"}
KAFKA_UI = {**JSON, "user-agent": "ReactorNetty/1.2"}
CONSOLE = {**JSON, "user-agent": "CloudHut-Connect-Client", "accept-encoding": "gzip"}
AKHQ = {
    "accept": "application/json",
    "content-type": "application/json; charset=UTF-8",
    "accept-encoding": "gzip,deflate",
}
SHORT = {"connector.class": COUNTER, "topic": "t", "most": "20", "tasks.max": "2"}
TYPED = {**SHORT, "most": 20, "tasks.max": 2, "batch": "3"}  # Kafka UI keeps the types of what was typed in
LEVEL = b'{"level": "DEBUG"}'
OFFSETS = {"offsets": [{"partition": {"counter": "0"}, "offset": {"next": 3}}]}
ENDS = "successfully"


def fields(*names):
    """That an answer is an object with these fields."""
    return lambda found: set(names) <= set(found)


def _both(found):
    return set(found["c"]) == {"info", "status"}


def listed(*names):
    """That an answer is a list of objects with these fields."""
    return lambda found: isinstance(found, list) and all(set(names) <= set(one) for one in found)


def _worker(found):
    """What they look up: kcctl asks for 3.7 before it sends some requests."""
    return fields("version", "commit", "kafka_cluster_id")(found) and found["version"].split(".") >= ["3", "7"]


RUN = fields("name", "connector", "tasks", "type")
INFO = fields("name", "config", "tasks", "type")
PLUGIN = f"/connector-plugins/{COUNTER}/config"

# (headers, method, path, body, status, what the program takes from the answer; None: it takes none), in this order.
SESSIONS = {
    "kcctl": (KCCTL, [
        ("GET", "/", None, 200, _worker),
        ("GET", "/connector-plugins?connectorsOnly=false", None, 200, listed("class", "type")),
        ("GET", "/connector-plugins", None, 200, listed("class", "type", "version")),
        ("GET", PLUGIN, None, 200, listed("name", "type", "required", "default_value", "importance", "documentation")),
        ("PUT", f"{PLUGIN}/validate", {**SHORT, "name": "c"}, 200, fields("name", "error_count", "groups", "configs")),
        ("POST", "/connectors/", {"name": "c", "config": SHORT}, 201, INFO),
        ("GET", "/connectors/", None, 200, lambda found: found == ["c"]),
        ("GET", "/connectors?expand=info&expand=status", None, 200, _both),
        ("GET", "/connectors/c", None, 200, INFO),
        ("GET", "/connectors/c/config", None, 200, fields("connector.class", "name")),
        ("PUT", "/connectors/c/config", {**SHORT, "batch": "2"}, 200, INFO),
        ("GET", "/connectors/c/status", None, 200, RUN),
        ("GET", "/connectors/c/tasks", None, 200, lambda found: isinstance(found, list)),
        ("GET", "/connectors/c/topics", None, 200, lambda found: isinstance(found["c"]["topics"], list)),
        ("PUT", "/connectors/c/pause", b"", 202, None),
        ("PUT", "/connectors/c/resume", b"", 202, None),
        ("POST", "/connectors/c/restart", b"", 204, None),
        ("POST", "/connectors/c/restart?includeTasks=true&onlyFailed=false", b"", 202, RUN),
        ("POST", "/connectors/c/tasks/0/restart", b"", 204, None),
        ("GET", "/connectors/c/offsets", None, 200, fields("offsets")),
        ("PUT", "/connectors/c/stop", b"", 204, None),
        ("PATCH", "/connectors/c/offsets", OFFSETS, 200, lambda found: ENDS in found["message"]),
        ("DELETE", "/connectors/c/offsets", None, 200, lambda found: ENDS in found["message"]),
        ("PUT", "/admin/loggers/tidelog.tests", LEVEL, 200, lambda found: found == ["tidelog.tests"]),
        ("PUT", "/admin/loggers/tidelog.tests?scope=cluster", LEVEL, 204, None),
        ("GET", "/admin/loggers/tidelog.tests", None, 200, lambda found: found["level"] == "DEBUG"),
        ("GET", "/admin/loggers", None, 200, lambda found: found["tidelog.tests"]["level"] == "DEBUG"),
        ("DELETE", "/connectors/c", None, 204, None),
        ("GET", "/connectors/c", None, 404, fields("error_code", "message")),
    ]),
    "Kafka UI": (KAFKA_UI, [
        ("GET", "/", None, 200, _worker),
        ("GET", "/connector-plugins", None, 200, listed("class")),
        ("PUT", f"{PLUGIN}/validate", TYPED, 200, lambda found: found["error_count"] == 1),  # the name comes later
        ("POST", "/connectors", {"name": "c", "config": TYPED}, 201, INFO),
        ("POST", "/connectors", {"name": "c", "config": TYPED}, 409, fields("error_code", "message")),
        ("GET", "/connectors", None, 200, lambda found: found == ["c"]),
        ("GET", "/connectors?expand=info&expand=status", None, 200, _both),
        ("GET", "/connectors/c", None, 200, INFO),
        ("GET", "/connectors/c/config", None, 200, lambda found: found["most"] == "20"),
        ("PUT", "/connectors/c/config", {**TYPED, "batch": 5}, 200, lambda found: found["config"]["batch"] == "5"),
        ("GET", "/connectors/c/status", None, 200, RUN),
        ("GET", "/connectors/c/tasks", None, 200, lambda found: isinstance(found, list)),
        ("GET", "/connectors/c/tasks/0/status", None, 200, fields("id", "state", "worker_id")),
        ("GET", "/connectors/c/topics", None, 200, lambda found: "topics" in found["c"]),
        ("POST", "/connectors/c/restart?includeTasks=false&onlyFailed=false", None, 204, None),
        ("POST", "/connectors/c/tasks/0/restart", None, 204, None),
        ("PUT", "/connectors/c/pause", None, 202, None),
        ("PUT", "/connectors/c/resume", None, 202, None),
        ("PUT", "/connectors/c/stop", None, 204, None),
        ("DELETE", "/connectors/c/offsets", None, 200, fields("message")),
        ("DELETE", "/connectors/c", None, 204, None),
    ]),
    "Redpanda Console": (CONSOLE, [
        ("GET", "/", None, 200, _worker),
        ("GET", "/connector-plugins", None, 200, listed("class", "type", "version")),
        ("PUT", f"{PLUGIN}/validate", {**SHORT, "name": "c"}, 200, fields("name", "error_count", "groups", "configs")),
        ("POST", "/connectors", {"name": "c", "config": SHORT}, 201, INFO),
        ("GET", "/connectors?expand=status&expand=info", None, 200, _both),
        ("PUT", "/connectors/c/config", {**SHORT, "batch": "2"}, 200, INFO),
        ("GET", "/connectors/c/topics", None, 200, lambda found: "topics" in found["c"]),
        ("PUT", "/connectors/c/topics/reset", None, 200, None),
        ("POST", "/connectors/c/restart?includeTasks=true&onlyFailed=true", None, 202, RUN),
        ("POST", "/connectors/c/tasks/0/restart", None, 204, None),
        ("PUT", "/connectors/c/pause", None, 202, None),
        ("PUT", "/connectors/c/resume", None, 202, None),
        ("PUT", "/connectors/c/stop", None, 204, None),
        ("DELETE", "/connectors/c", None, 204, None),
    ]),
    "AKHQ": (AKHQ, [
        ("GET", "/connector-plugins", None, 200, listed("class", "type", "version")),
        ("PUT", f"{PLUGIN}/validate", {**SHORT, "name": "c"}, 200, fields("name", "error_count", "groups", "configs")),
        ("POST", "/connectors", {"name": "c", "config": SHORT}, 201, INFO),
        ("GET", "/connectors?expand=info&expand=status", None, 200, _both),
        ("GET", "/connectors/c", None, 200, INFO),
        ("GET", "/connectors/c/status", None, 200, RUN),
        ("GET", "/connectors/c/tasks", None, 200, lambda found: isinstance(found, list)),
        ("PUT", "/connectors/c/config", {**SHORT, "batch": "2"}, 200, INFO),
        ("PUT", "/connectors/c/pause", b"", 202, None),
        ("PUT", "/connectors/c/resume", b"", 202, None),
        ("POST", "/connectors/c/restart", b"", 204, None),
        ("POST", "/connectors/c/tasks/0/restart", b"", 204, None),
        ("DELETE", "/connectors/c", None, 204, None),
    ]),
}  # fmt: skip


@pytest.fixture
def rest(tmp_path):
    rest = Rest(tmp_path, started=True)
    yield rest
    rest.close()


@pytest.mark.parametrize("program", SESSIONS)
def test_the_requests_of_a_program_are_answered_as_it_takes_them(rest, program):
    headers, requests = SESSIONS[program]
    for method, path, body, status, takes in requests:
        answer = answered(rest, method, path, body, headers, taken=status == 409)
        assert (method, path, answer.status_code) == (method, path, status), answer.text
        if takes is None:
            continue
        assert answer.headers["content-type"] == "application/json"
        assert takes(json.loads(answer.text)), (method, path, answer.text)


def answered(rest, method, path, body, headers, *, taken):
    """The answer, once it isn't 409 for what will pass: programs send such a request again. A task is asked about when
    it is there. `taken`: 409 is the answer.
    """
    if "/tasks/0/" in path:
        eventually(lambda: rest.ok("GET", "/connectors/c/tasks"), "the connector has tasks")
    last = []

    def settled():
        last[:] = [rest(method, path, body, **headers)]
        return taken or last[0].status_code != 409

    eventually(settled, f"{method} {path} is answered")
    return last[0]
