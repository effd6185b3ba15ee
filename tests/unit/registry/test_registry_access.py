"""What clients may do at the API: principals of HTTP, and the rights of topics that subjects have."""

import asyncio
import json
from base64 import b64encode
from urllib.parse import quote

import httpx
import pytest
from support.logs import memory_lake

from tidelog.access.access_log import AccessLog
from tidelog.access.broker_user import BROKER_PRINCIPAL
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.following import LOOK_EVERY_S
from tidelog.access.model import CLUSTER_NAME, Acl, AclOperation, AclPattern, AclPermission, AclResource, Identity
from tidelog.log.base.errors import AuthenticationError, StorageUnavailableError
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.registry.api import app
from tidelog.registry.api.app import RegistryApp
from tidelog.server.logins import KNOWN_FOR_S, HttpAccess, HttpLogins

INT, LONG = '"int"', '"long"'
Op, TOPIC, CLUSTER = AclOperation, AclResource.TOPIC, AclResource.CLUSTER


def acl(operation, name, resource=TOPIC, *, pattern=AclPattern.LITERAL, principal="User:ann", host="*", deny=False):
    permission = AclPermission.DENY if deny else AclPermission.ALLOW
    return Acl(resource, pattern, name, principal, host, operation, permission)


def basic(user, password):
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


ANN = basic("ann", "ann-pw")


class Server:
    """A registry whose clients log in; `ann` has the password ann-pw, `root` may do everything."""

    def __init__(self, **settings):
        self.lake, self.storage, self.clock = memory_lake()
        self.access = AccessLog(self.lake)
        for name in ("ann", "root"):
            self.access.upsert_scram(name, credential(ScramMechanism.SHA_512, f"{name}-pw", b"salt" * 4))
        settings = {"authenticates": True, "super_users": frozenset({"User:root"}), **settings}
        self.logins = HttpLogins(self.lake, HttpAccess(**settings), "REGISTRY")
        self.app = RegistryApp(RegistryLog(self.lake), logins=self.logins)

    def allow(self, *acls):
        self.access.add_acls(acls)
        self.pass_time(LOOK_EVERY_S)

    def pass_time(self, seconds):
        self.clock.pass_s(seconds)

    def send(self, method, path, body=None, authorization=ANN, **query):
        async def sent():
            transport = httpx.ASGITransport(self.app, client=("10.0.0.1", 5))
            async with httpx.AsyncClient(transport=transport, base_url="http://registry") as client:
                headers = {} if authorization is None else {"authorization": authorization}
                content = None if body is None else json.dumps(body).encode()
                return await client.request(method, path, content=content, headers=headers, params=query or None)

        return asyncio.run(sent())

    def ok(self, *request, **more):
        answer = self.send(*request, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def code(self, *request, **more):
        answer = self.send(*request, **more)
        assert answer.status_code >= 400, answer.text
        assert str(answer.json()["error_code"]).startswith(str(answer.status_code))
        return answer.json()["error_code"]

    def as_root(self, *request, **more):
        return self.ok(*request, authorization=basic("root", "root-pw"), **more)


@pytest.fixture
def server():
    return Server()


# --- principals ---------------------------------------------------------------------------------------------


def test_who_is_not_logged_in_is_asked_to(server):
    answer = server.send("GET", "/subjects", authorization=None)
    assert (answer.status_code, answer.json()["error_code"]) == (401, 401)
    assert answer.headers["www-authenticate"].startswith("Basic")
    for wrong in (
        basic("ann", "other"),
        basic("other", "ann-pw"),
        basic("ann", ""),
        "Basic !!",
        "Basic " + b64encode(b"\xff:\xff").decode(),
        "Basic " + b64encode(b"ann").decode(),
        "Digest ann",
        "Bearer a.b.c",
        "",
    ):
        assert server.code("GET", "/subjects", authorization=wrong) == 401
    assert server.ok("GET", "/subjects") == []


def test_a_body_of_a_client_that_is_not_logged_in_is_not_read():
    server, reads = Server(), []

    async def receive():
        reads.append(1)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        reads.append(message["status"]) if message["type"] == "http.response.start" else None

    scope = {
        "type": "http", "method": "POST", "path": "/subjects/a/versions", "raw_path": b"/subjects/a/versions",
        "query_string": b"", "headers": [], "client": ("10.0.0.1", 1),
    }  # fmt: skip
    asyncio.run(server.app(scope, receive, send))
    assert reads == [401]


def test_a_password_is_hashed_once_until_credentials_change(server, monkeypatch):
    checked = []
    original = type(server.logins._authenticator).basic

    def counted(self, user, password):
        checked.append(user)
        return original(self, user, password)

    monkeypatch.setattr(type(server.logins._authenticator), "basic", counted)
    for _ in range(3):
        server.ok("GET", "/schemas/types")
    assert checked == ["ann"]
    server.pass_time(KNOWN_FOR_S)
    server.ok("GET", "/schemas/types")
    assert checked == ["ann", "ann"]
    server.access.upsert_scram("ann", credential(ScramMechanism.SHA_512, "new", b"salt" * 4))
    server.pass_time(LOOK_EVERY_S)
    assert server.code("GET", "/schemas/types") == 401
    server.ok("GET", "/schemas/types", authorization=basic("ann", "new"))


def test_a_token_is_its_principal_until_it_ends(server, monkeypatch):
    ends_s = server.clock.now_ms() / 1000 + 30

    def bearer(token):
        if token != "good":
            raise AuthenticationError("another token")
        return Identity("User:ann", ends_s)

    monkeypatch.setattr(server.logins._authenticator, "bearer", bearer)
    server.ok("GET", "/schemas/types", authorization="Bearer good")
    assert server.code("GET", "/schemas/types", authorization="Bearer bad") == 401
    server.pass_time(30)
    assert server.code("GET", "/schemas/types", authorization="Bearer good") == 401


def test_nobody_comes_as_a_broker(server, monkeypatch):
    monkeypatch.setattr(server.logins._authenticator, "basic", lambda *_: Identity(BROKER_PRINCIPAL))
    assert server.code("GET", "/subjects") == 401


def test_an_address_that_fails_too_often_is_not_heard():
    server = Server(failures_per_minute=2)
    for _ in range(2):
        assert server.code("GET", "/subjects", authorization=basic("ann", "no")) == 401
    assert server.code("GET", "/subjects") == 42901
    server.pass_time(60)
    assert server.ok("GET", "/subjects") == []


def test_without_log_ins_acls_bind_everyone():
    server = Server(authenticates=False)
    server.ok("POST", "/subjects/a/versions", {"schema": INT}, authorization=None)
    server.allow(acl(Op.WRITE, "a"))
    assert server.code("POST", "/subjects/a/versions", {"schema": LONG}, authorization=None) == 40301
    # What no ACL is about is everyone's, as at a broker without log-ins.
    server.ok("POST", "/subjects/b/versions", {"schema": INT}, authorization=None)
    server.allow(acl(Op.WRITE, "a", principal="User:ANONYMOUS", host="10.0.0.1"))
    server.ok("POST", "/subjects/a/versions", {"schema": LONG}, authorization=None)


def test_what_was_known_holds_while_the_store_is_away(server, monkeypatch):
    server.allow(acl(Op.WRITE, "a"))
    server.ok("POST", "/subjects/a/versions", {"schema": INT})

    def away():
        raise StorageUnavailableError("the store is away")

    monkeypatch.setattr(AccessLog, "seen", lambda _: away())
    server.pass_time(LOOK_EVERY_S)
    assert server.code("POST", "/subjects/b/versions", {"schema": INT}) == 40301
    server.ok("POST", "/subjects/a/versions", {"schema": INT})


# --- what it may do ----------------------------------------------------------------------------------------

BODY = {"schema": INT}
# (method, path, body, the right that it needs and that is enough).
ROWS = [
    ("POST", "subjects/orders-value", BODY, (Op.DESCRIBE, "orders")),
    ("DELETE", "subjects/orders-value", None, (Op.DELETE, "orders")),
    ("GET", "subjects/orders-value/metadata", None, (Op.DESCRIBE, "orders")),
    ("GET", "subjects/orders-value/versions", None, (Op.DESCRIBE, "orders")),
    ("POST", "subjects/orders-value/versions", BODY, (Op.WRITE, "orders")),
    ("GET", "subjects/orders-value/versions/1", None, (Op.DESCRIBE, "orders")),
    ("DELETE", "subjects/orders-value/versions/1", None, (Op.DELETE, "orders")),
    ("GET", "subjects/orders-value/versions/1/schema", None, (Op.DESCRIBE, "orders")),
    ("GET", "subjects/orders-value/versions/1/referencedby", None, (Op.DESCRIBE, "orders")),
    ("GET", "schemas/ids/1", None, (Op.DESCRIBE, "orders")),
    ("GET", "schemas/ids/1/schema", None, (Op.DESCRIBE, "orders")),
    ("GET", "schemas/ids/1/subjects", None, (Op.DESCRIBE, "orders")),
    ("GET", "schemas/ids/1/versions", None, (Op.DESCRIBE, "orders")),
    ("GET", "schemas/guids/GUID", None, (Op.DESCRIBE, "orders")),
    ("GET", "schemas/guids/GUID/ids", None, (Op.DESCRIBE, "orders")),
    ("GET", "contexts", None, (Op.DESCRIBE, None)),
    ("DELETE", "contexts/.gone", None, (Op.ALTER, None)),
    ("POST", "compatibility/subjects/orders-value/versions", BODY, (Op.DESCRIBE, "orders")),
    ("POST", "compatibility/subjects/orders-value/versions/1", BODY, (Op.DESCRIBE, "orders")),
    ("GET", "config", None, (Op.DESCRIBE_CONFIGS, None)),
    ("PUT", "config", {"compatibility": "NONE"}, (Op.ALTER_CONFIGS, None)),
    ("DELETE", "config", None, (Op.ALTER_CONFIGS, None)),
    ("GET", "config/orders-value", None, (Op.DESCRIBE_CONFIGS, "orders")),
    ("PUT", "config/orders-value", {"compatibility": "NONE"}, (Op.ALTER_CONFIGS, "orders")),
    ("DELETE", "config/orders-value", None, (Op.ALTER_CONFIGS, "orders")),
    ("GET", "mode", None, (Op.DESCRIBE_CONFIGS, None)),
    ("PUT", "mode", {"mode": "READWRITE"}, (Op.ALTER_CONFIGS, None)),
    ("DELETE", "mode", None, (Op.ALTER_CONFIGS, None)),
    ("GET", "mode/orders-value", None, (Op.DESCRIBE_CONFIGS, "orders")),
    ("PUT", "mode/orders-value", {"mode": "READWRITE"}, (Op.ALTER_CONFIGS, "orders")),
    ("DELETE", "mode/orders-value", None, (Op.ALTER_CONFIGS, "orders")),
]  # fmt: skip
FREE = [
    ("GET", "schemas/types"),
    ("GET", ""),
    ("POST", ""),
    *(("GET", f"v1/metadata/{name}") for name in ("id", "version", "deployment")),
]
LISTS = [("GET", "subjects"), ("GET", "schemas")]


def test_every_request_has_its_row():
    asked = [(method, path) for method, path, *_ in ROWS] + FREE + LISTS
    handlers = {app.ROUTES.routed(method, f"/{path}")[0].handler for method, path in asked}
    assert handlers == {route.handler for route in app.ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_a_request_needs_its_right(row):
    server = Server()
    method, path, body, (operation, name) = row
    guid = server.as_root("POST", "/subjects/orders-value/versions", BODY)["guid"]
    for setting, value in (("config", {"compatibility": "FULL"}), ("mode", {"mode": "READWRITE"})):
        server.as_root("PUT", f"/{setting}/orders-value", value)
    path = f"/{path.replace('GUID', guid)}"
    # All other rights, of this topic and of others, are not enough.
    implied = {Op.DESCRIBE: {Op.READ, Op.WRITE, Op.DELETE, Op.ALTER}, Op.DESCRIBE_CONFIGS: {Op.ALTER_CONFIGS}}
    others = {Op.READ, Op.WRITE, Op.CREATE, Op.DELETE, Op.ALTER, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS}
    server.allow(*(acl(one, "orders") for one in others - {operation} - implied.get(operation, set()) if name))
    server.allow(acl(Op.ALL, "orders-value"), acl(Op.ALL, "other"))
    refused = server.send(method, path, body)
    hidden = path.startswith("/schemas")  # an id that the client sees in no subject is not there for it
    assert refused.status_code == (404 if hidden else 403), refused.text
    assert refused.json()["error_code"] == (40403 if hidden else 40301)
    server.allow(acl(operation, name) if name else acl(operation, CLUSTER_NAME, CLUSTER))
    assert server.send(method, path, body).status_code in (200, 404 if path.endswith(".gone") else 200)


@pytest.mark.parametrize("row", FREE, ids=lambda row: f"{row[0]}-{row[1]}")
def test_what_says_nothing_of_schemas_is_for_all_who_are_logged_in(server, row):
    method, path = row
    server.ok(method, f"/{path}", {} if method == "POST" else None)
    assert server.code(method, f"/{path}", {} if method == "POST" else None, authorization=None) == 401


def test_lists_have_what_the_client_sees(server):
    for subject in ("a-value", "b-value", "com.acme.Order", quote(":.team:a-value", safe="")):
        server.as_root("POST", f"/subjects/{subject}/versions", {"schema": INT})
    assert server.ok("GET", "/subjects") == []
    assert server.ok("GET", "/schemas") == []
    server.allow(acl(Op.READ, "b"), acl(Op.WRITE, "com.acme.Order"))
    assert server.ok("GET", "/subjects") == ["b-value", "com.acme.Order"]
    # A page is one of what is seen.
    assert server.ok("GET", "/subjects", offset=1, limit=1) == ["com.acme.Order"]
    assert [one["subject"] for one in server.ok("GET", "/schemas")] == ["b-value", "com.acme.Order"]
    assert server.ok("GET", "/schemas/ids/1/subjects") == ["b-value", "com.acme.Order"]
    # A context's subjects are others.
    assert server.code("GET", f"/subjects/{quote(':.team:a-value', safe='')}/versions") == 40301
    assert server.code("GET", "/contexts/.team/subjects/a-value/versions") == 40301
    server.allow(acl(Op.READ, ":.team:", pattern=AclPattern.PREFIXED))
    assert server.ok("GET", "/contexts/.team/subjects/a-value/versions") == [1]


def test_a_schema_is_read_by_an_id_that_another_subject_has_too(server):
    for subject in ("secret-value", "b-value"):
        server.as_root("POST", f"/subjects/{subject}/versions", {"schema": INT})
    server.allow(acl(Op.READ, "b"))
    assert server.ok("GET", "/schemas/ids/1")["schema"] == INT
    assert server.ok("GET", "/schemas/ids/1/subjects") == ["b-value"]
    assert server.ok("GET", "/schemas/ids/1", subject="secret-value")["schema"] == INT  # no more than a hint


def test_references_are_read_by_who_may_read_them(server):
    inner = '{"type":"record","name":"In","fields":[]}'
    server.as_root("POST", "/subjects/in/versions", {"schema": inner})
    server.allow(acl(Op.WRITE, "orders"))
    body = {"schema": '{"type":"array","items":"In"}', "references": [{"name": "In", "subject": "in", "version": 1}]}
    for path in (
        "subjects/orders-value/versions",
        "subjects/orders-value",
        "compatibility/subjects/orders-value/versions",
    ):
        assert server.code("POST", f"/{path}", body) == 40301
    server.allow(acl(Op.DESCRIBE, "in"))
    server.ok("POST", "/subjects/orders-value/versions", body)


def test_an_alias_is_the_subject_that_it_stands_for(server):
    server.as_root("POST", "/subjects/secret-value/versions", BODY)
    server.allow(acl(Op.ALL, "mine"))
    server.ok("PUT", "/config/mine-value", {"alias": "secret-value"})
    assert server.code("GET", "/subjects/mine-value/versions/1") == 40301
    assert server.code("POST", "/subjects/mine-value/versions", BODY) == 40301


def test_settings_of_a_context_are_the_clusters(server):
    server.allow(acl(Op.ALL, ":.team:"))
    path = f"/config/{quote(':.team:', safe='')}"
    assert server.code("PUT", path, {"compatibility": "NONE"}) == 40301
    assert server.code("PUT", "/contexts/.team/config", {"compatibility": "NONE"}) == 40301
    server.allow(acl(Op.ALTER_CONFIGS, CLUSTER_NAME, CLUSTER))
    server.ok("PUT", path, {"compatibility": "NONE"})


def test_denials_win(server):
    server.allow(acl(Op.ALL, "*"), acl(Op.WRITE, "a", deny=True))
    assert server.code("POST", "/subjects/a-value/versions", BODY) == 40301
    server.ok("POST", "/subjects/b-value/versions", BODY)


def test_denials_and_failed_log_ins_are_audited(server, caplog):
    caplog.set_level("INFO", "tidelog.audit")
    server.code("POST", "/subjects/a-value/versions", BODY)
    server.code("GET", "/subjects", authorization=basic("ann", "very-secret"))
    denied, failed = (json.loads(one.message) for one in caplog.records)
    assert (denied["principal"], denied["api"], denied["operation"], denied["name"], denied["host"]) == (
        "User:ann", "register", "WRITE", "a", "10.0.0.1",
    )  # fmt: skip
    assert (failed["event"], failed["user"], failed["mechanism"]) == ("not authenticated", "ann", "Basic")
    assert "very-secret" not in caplog.text


def test_who_registers_without_a_test_may_switch_the_tests_off(server):
    server.allow(acl(Op.WRITE, "a"))
    server.ok("POST", "/subjects/a/versions", {"schema": INT})
    other = {"schema": '"string"'}
    assert server.code("POST", "/subjects/a/versions?force=true", other) == 40301
    server.allow(acl(Op.WRITE, "a"), acl(Op.ALTER_CONFIGS, "a"))
    server.ok("POST", "/subjects/a/versions?force=true", other)


def test_lists_have_the_aliases_that_the_client_sees(server):
    server.as_root("POST", "/subjects/a/versions", {"schema": INT})
    for alias in ("other", "secret"):
        server.as_root("PUT", f"/config/{alias}", {"alias": "a"})
    server.allow(acl(Op.READ, "a"), acl(Op.READ, "other"))
    assert server.ok("GET", "/schemas?aliases=true")[0]["aliases"] == ["other"]
