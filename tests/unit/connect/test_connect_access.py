"""What clients may send to a worker: log-ins with the users of the lake, and the cluster's ACLs, route by route."""

import asyncio
from base64 import b64encode

import httpx
import pytest
from support.connect_plugins import COUNTER, PLUGINS

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.model import CLUSTER_NAME, Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.connect.api.operations import ConnectOperations
from tidelog.connect.api.routes import RestApp, rest_routes
from tidelog.connect.runtime.plugins import Plugins
from tidelog.connect.worker import Worker
from tidelog.log.lake import Lake
from tidelog.server.connections import HttpBounds
from tidelog.server.logins import HttpAccess, HttpLogins

CONFIG = {"connector.class": COUNTER, "topic": "t"}
PATHS = {"{name}": "c", "{task}": "0", "{plugin}": COUNTER, "{logger}": "tidelog.connect.tests"}


def basic(user, password):
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


class Server:
    """A worker that runs nothing, whose clients log in: `ann` with the password ann-pw, `root` may do everything."""

    def __init__(self, folder):
        self.lake = Lake(str(folder / "lake"), True)
        self.access = AccessLog(self.lake)
        for name in ("ann", "root"):
            self.access.upsert_scram(name, credential(ScramMechanism.SHA_512, f"{name}-pw", b"salt" * 4))
        settings = HttpAccess(authenticates=True, super_users=frozenset({"User:root"}), failed_delay_s=0.0)
        worker = Worker(self.lake, "127.0.0.1:8083", None, Plugins((), PLUGINS))
        self.operations = ConnectOperations(worker)
        self.settings = settings
        self.log_in()

    def log_in(self):
        """Log-ins that know the ACLs of this moment."""
        self.logins = HttpLogins(self.lake, self.settings, "CONNECT")
        self.app = RestApp(self.operations, HttpBounds(), self.logins)

    def allow(self, *operations):
        self.access.add_acls(
            [
                Acl(AclResource.CLUSTER, AclPattern.LITERAL, CLUSTER_NAME, "User:ann", "*", one, AclPermission.ALLOW)
                for one in operations
            ]
        )
        self.log_in()

    def send(self, method, path, authorization, body=None):
        async def sent():
            transport = httpx.ASGITransport(self.app, client=("10.0.0.1", 5))
            async with httpx.AsyncClient(transport=transport, base_url="http://worker") as client:
                headers = {} if authorization is None else {"authorization": authorization}
                return await client.request(method, path, json=body, headers=headers)

        return asyncio.run(sent())


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path)
    yield server
    server.lake.close()


def rows(server):
    """(method, path with values, its right) of each route."""
    for route in rest_routes(server.operations):
        path = route.path
        for variable, value in PATHS.items():
            path = path.replace(variable, value)
        yield route.method, f"/{path}", route.right.right


def test_a_client_that_is_not_logged_in_is_asked_to_at_every_route(server):
    for method, path, _ in rows(server):
        for authorization in (None, basic("ann", "other"), basic("nobody", "ann-pw"), "Bearer a.b.c", "Digest x", ""):
            answer = server.send(method, path, authorization)
            assert (path, answer.status_code, answer.json()["error_code"]) == (path, 401, 401)
            assert answer.headers["www-authenticate"].startswith("Basic")


def test_a_body_of_a_client_that_is_not_logged_in_is_not_read(server):
    seen = []

    async def receive():
        seen.append("body")
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message):
        seen.append(message.get("status"))

    scope = {
        "type": "http", "method": "POST", "path": "/connectors", "raw_path": b"/connectors", "query_string": b"",
        "headers": [], "client": ("10.0.0.1", 1),
    }  # fmt: skip
    asyncio.run(server.app(scope, receive, send))
    assert seen[0] == 401
    assert "body" not in seen


def test_a_client_needs_the_clusters_right_that_the_route_says(server):
    root, ann = basic("root", "root-pw"), basic("ann", "ann-pw")
    assert server.send("PUT", "/connectors/c/config", root, CONFIG).status_code == 201
    for method, path, right in rows(server):
        denied = server.send(method, path, ann)
        if right is None:
            assert denied.status_code != 403, path
        else:
            assert (path, denied.status_code) == (path, 403)
            assert right.only.operation.name in denied.json()["message"]
    server.allow(AclOperation.DESCRIBE)
    assert server.send("GET", "/connectors/c/status", ann).status_code == 200
    assert server.send("GET", "/connectors/c/config", ann).status_code == 403
    assert server.send("GET", "/connectors?expand=info", ann).status_code == 403
    server.allow(AclOperation.DESCRIBE_CONFIGS)
    assert server.send("GET", "/connectors/c/config", ann).json()["name"] == "c"
    assert server.send("DELETE", "/connectors/c", ann).status_code == 403
    server.allow(AclOperation.ALTER)
    assert server.send("DELETE", "/connectors/c", ann).status_code == 204


def test_an_address_that_fails_too_often_waits(server):
    server.settings = HttpAccess(authenticates=True, failures_per_minute=2, failed_delay_s=0.0)
    server.log_in()
    wrong = basic("ann", "other")
    found = [server.send("GET", "/connectors", wrong).status_code for _ in range(4)]
    assert found[:2] == [401, 401]
    assert found[-1] == 429
