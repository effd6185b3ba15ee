"""Requests, schemas and records of clients that mean harm: each is refused, and harms no other client."""

import asyncio
import gzip
import json

import httpx
import pytest
from support.logs import memory_lake

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.following import LOOK_EVERY_S
from tidelog.access.model import Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.operations.schemas.fold import MOST_NUMBER, RegistryState
from tidelog.operations.schemas.records import read
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.registry.api.app import RegistryApp
from tidelog.server.logins import HttpAccess, HttpLogins

V1 = "application/vnd.schemaregistry.v1+json"
PROTO = 'syntax = "proto3";\n'


class Server:
    """A registry over a lake in memory, open to all unless it has log-ins."""

    def __init__(self, lake=None, *, access=None, **settings):
        self.lake = lake or memory_lake()[0]
        self.log = RegistryLog(self.lake)
        logins = None if access is None else HttpLogins(self.lake, access, "REGISTRY")
        self.app = RegistryApp(self.log, logins=logins, **settings)

    def send(self, method, path, body=None, content=None, auth=None, **headers):
        async def sent():
            transport = httpx.ASGITransport(self.app, client=("10.0.0.1", 5))
            async with httpx.AsyncClient(transport=transport, base_url="http://registry", auth=auth) as client:
                data = json.dumps(body).encode() if content is None and body is not None else content
                return await client.request(method, path, content=data, headers=headers)

        return asyncio.run(sent())

    def code(self, *request, **more):
        answer = self.send(*request, **more)
        return answer.status_code, answer.json().get("error_code") if isinstance(answer.json(), dict) else None

    def register(self, subject, text, kind="AVRO", **more):
        return self.send("POST", f"/subjects/{subject}/versions", {"schema": text, "schemaType": kind, **more})


@pytest.fixture
def server():
    return Server()


def test_an_alias_that_another_registry_has_set_gives_no_rights():
    """The client sets the alias at one registry, and asks the other, which has not looked since."""
    lake, _, clock = memory_lake()
    credentials = AccessLog(lake)
    for name in ("ann", "root"):
        credentials.upsert_scram(name, credential(ScramMechanism.SHA_512, f"{name}-pw", b"salt" * 4))
    mine = Acl(AclResource.TOPIC, AclPattern.LITERAL, "mine", "User:ann", "*", AclOperation.ALL, AclPermission.ALLOW)
    credentials.add_acls([mine])
    clock.pass_s(LOOK_EVERY_S)
    access = HttpAccess(authenticates=True, super_users=frozenset({"User:root"}))
    one, other = Server(lake, access=access), Server(lake, access=access)
    root, ann = ("root", "root-pw"), ("ann", "ann-pw")
    body = {"schema": '"int"'}
    assert one.send("POST", "/subjects/secret-value/versions", body, auth=root).status_code == 200
    assert one.send("POST", "/subjects/mine-value/versions", body, auth=ann).status_code == 200
    assert other.send("GET", "/subjects/mine-value/versions", auth=ann).json() == [1]
    assert one.send("PUT", "/config/mine-value", {"alias": "secret-value"}, auth=ann).status_code == 200
    for method, path in (
        ("GET", "/subjects/mine-value/versions/1"),
        ("POST", "/subjects/mine-value/versions"),
        ("POST", "/subjects/mine-value"),
        ("DELETE", "/subjects/mine-value"),
        ("POST", "/compatibility/subjects/mine-value/versions"),
    ):
        fresh = Server(lake, access=access)
        fresh.log.look(len)
        one.send("DELETE", "/config/mine-value", auth=ann)
        fresh.log.look(len)
        one.send("PUT", "/config/mine-value", {"alias": "secret-value"}, auth=ann)
        sent = body if method == "POST" else None
        assert fresh.code(method, path, sent, auth=ann) == (403, 40301), (method, path)
    assert one.send("GET", "/subjects/secret-value/versions", auth=root).json() == [1]


@pytest.mark.parametrize(("field", "value"), [("id", 2**31), ("id", 2**60), ("version", 2**31), ("id", -2)])
def test_numbers_that_no_message_can_name_are_refused(server, field, value):
    """One would leave the others no ids: the next is the highest plus one."""
    assert server.send("PUT", "/mode/imported", {"mode": "IMPORT"}).status_code == 200
    body = {"schema": '"int"', "id": 7, "version": 1, field: value}
    assert server.code("POST", "/subjects/imported/versions", body) == (400, 400)
    assert server.register("a", '"long"').json()["id"] == 1


def test_a_context_whose_last_id_is_given_refuses_by_a_sentence(server):
    server.send("PUT", "/mode/imported", {"mode": "IMPORT"})
    assert server.register("imported", '"int"', id=MOST_NUMBER, version=1).status_code == 200
    answer = server.register("a", '"long"')
    assert answer.json()["error_code"] == 42205
    assert "has given its last id" in answer.json()["message"]
    assert server.register(":.other:a", '"long"').json()["id"] == 1


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/subjects/a/versions/" + "9" * 5000, 422),
        ("/schemas/ids/" + "9" * 5000, 404),
        ("/subjects?limit=" + "9" * 5000, 404),
        ("/subjects?offset=--1", 404),
        ("/schemas/ids/٣", 404),
    ],
)
def test_numbers_of_any_length_are_refused_by_a_short_sentence(server, path, status):
    answer = server.send("GET", path)
    assert answer.status_code == status
    assert len(answer.content) < 300


def test_a_compressed_body_is_not_unpacked(server):
    bomb = gzip.compress(b" " * 50_000_000)
    for encoding in ("gzip", "deflate", "br"):
        more = {"content-type": V1, "content-encoding": encoding}
        assert server.code("POST", "/subjects/a/versions", content=bomb, **more) == (415, 415)
    assert server.code("POST", "/subjects/a/versions", content=bomb, **{"content-type": V1}) == (400, 400)


def test_a_page_of_another_site_changes_nothing(server):
    """A browser sends such a request without asking, with the log-in that it has kept."""
    body = {"schema": '"int"'}
    for site in ("cross-site", "same-site"):
        for method, path in (("POST", "/subjects/a/versions"), ("DELETE", "/subjects/a"), ("PUT", "/config")):
            assert server.code(method, path, body, **{"sec-fetch-site": site})[0] == 403
    assert server.send("GET", "/subjects", **{"sec-fetch-site": "cross-site"}).json() == []
    assert server.send("POST", "/subjects/a/versions", body, **{"sec-fetch-site": "same-origin"}).status_code == 200


def test_a_schema_that_could_not_be_stored_is_not_read_first(server, monkeypatch):
    monkeypatch.setattr("tidelog.schemas.protobuf.text.Parser", None)
    text = PROTO + "// " + "x" * 1_100_000
    answer = server.register("a", text, "PROTOBUF")
    assert answer.json()["error_code"] == 42209


@pytest.mark.parametrize(
    "name",
    [
        "google/protobuf/../../../../etc/hostname",
        "google/protobuf/./x.proto",
        "google/protobuf/none.proto",
        "/etc/hostname",
        "../x.proto",
    ],
)
def test_a_file_of_the_machine_is_not_imported(server, name):
    server.register("x", PROTO + "message X {}", "PROTOBUF")
    references = [{"name": "google/protobuf/x.proto", "subject": "x", "version": 1}]
    answer = server.register("a", PROTO + f'import "{name}";\nmessage M {{}}', "PROTOBUF", references=references)
    assert answer.json()["error_code"] == 42201
    assert "is not found" in answer.json()["message"]


@pytest.mark.parametrize("names", [["x" * 300], ["a", "a/b"], ["a/" * 3000 + "b"]])
def test_names_of_references_that_no_file_can_have(server, names):
    server.register("x", PROTO + "message X {}", "PROTOBUF")
    references = [{"name": name, "subject": "x", "version": 1} for name in names]
    answer = server.register("a", PROTO + "message M {}", "PROTOBUF", references=references)
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42201)
    assert "/tmp" not in answer.text


def test_a_server_does_not_say_where_the_lake_is(server):
    assert server.lake.uri not in server.send("GET", "/v1/metadata/id").text


DEEP = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def key(kind, **more):
    return json.dumps({"keytype": kind, "subject": "s", "magic": 0, **more}).encode()


@pytest.mark.parametrize(
    ("record", "value"),
    [
        (key("SCHEMA", version=1), DEEP),
        (key("SCHEMA", version=1), b'{"id": 1, "schema": "x", "references": 7}'),
        (key("SCHEMA", version=1), b'{"id": 1, "schema": "x", "references": [7]}'),
        (key("SCHEMA", version=1), b'{"id": 1, "schema": "x", "schemaType": [1]}'),
        (key("SCHEMA", version=1), b'{"id": 1, "schema": "x", "metadata": 7}'),
        (key("SCHEMA", version=1), b'{"id": 1, "schema": "x", "ruleSet": {"domainRules": 7}}'),
        (key("SCHEMA", version=1), b'{"id": "1", "schema": "x"}'),
        (key("DELETE_SUBJECT"), b'{"version": []}'),
        (key("DELETE_SUBJECT"), b'{"version": {}}'),
        (key("NOOP"), b'{"ids": 7}'),
        (key("NOOP"), b'{"ids": {".": []}}'),
        (key("MODE"), b'{"mode": 7}'),
        (b"[" * 100_000, b"{}"),
        (b"\xff", b"{}"),
    ],
)
def test_a_record_that_can_not_be_read_stops_no_registry(record, value):
    """A client that may write to the topic could end all registries over it by one record."""
    state = RegistryState()
    found = read(record, value)
    state.take([found] if found is not None else [])
    good = read(key("SCHEMA", version=2), b'{"id": 3, "schema": "\\"int\\"", "subject": "s", "version": 2}')
    state.take([good])
    assert [one.version for one in state.versions("s")] == [2]
    assert state.next_id(".") == 4
