"""Confluent's API: paths, content types, codes; every refusal is JSON with a sentence."""

import asyncio
from urllib.parse import quote

import httpx
import pytest
from support.logs import quiet
from support.registry_api import ApiClient

from tidelog.log.base.errors import StorageUnavailableError
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.registry.api.app import V1
from tidelog.schemas.base.model import Schema
from tidelog.server.connections import HttpBounds

INT, LONG, TEXT = '"int"', '"long"', '"string"'
RECORD = '{"type":"record","name":"r","fields":[]}'


@pytest.fixture
def client():
    return ApiClient()


# --- subjects and versions ---------------------------------------------------------------------------------


def test_a_schema_is_registered_and_found(client):
    made = client.ok("POST", "/subjects/a/versions", {"schema": ' {"type": "int"} '})
    assert made == {"id": 1, "version": 1, "guid": Schema(INT).guid, "schema": INT}
    at_ms = client.lake.clock.now_ms()
    whole = {"subject": "a", "version": 1, "id": 1, "guid": Schema(INT).guid, "schema": INT, "ts": at_ms}
    assert client.ok("GET", "/subjects/a/versions/1") == whole
    assert client.ok("GET", "/subjects/a/versions/latest") == whole
    assert client.ok("GET", "/subjects/a/versions/-1") == whole
    assert client.ok("POST", "/subjects/a", {"schema": INT}) == whole
    assert client.ok("GET", "/schemas/ids/1") == {"guid": Schema(INT).guid, "schema": INT, "ts": at_ms}
    assert client.ok("GET", "/schemas/ids/1", fetchMaxId="true")["maxId"] == 1
    assert client.ok("GET", f"/schemas/guids/{Schema(INT).guid}")["schema"] == INT
    assert client.ok("GET", f"/schemas/guids/{Schema(INT).guid}/ids") == [{"context": ".", "id": 1}]
    assert client.ok("GET", "/schemas/ids/1/subjects") == ["a"]
    assert client.ok("GET", "/schemas/ids/1/versions") == [{"subject": "a", "version": 1}]
    assert client.ok("GET", "/subjects") == ["a"]
    assert client.ok("GET", "/subjects/a/versions") == [1]


def test_kinds_references_metadata_and_rules_come_back(client):
    client.register("n", 'syntax = "proto3"; package n; message N {}', schemaType="PROTOBUF")
    more = {
        "schemaType": "PROTOBUF",
        "references": [{"name": "n.proto", "subject": "n", "version": 1}],
        "metadata": {"properties": {"k": "v"}},
        "ruleSet": {"domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "disabled": False}]},
    }
    number = client.register("m", 'syntax = "proto3"; import "n.proto"; message M { n.N n = 1; }', **more)
    found = client.ok("GET", f"/schemas/ids/{number}")
    assert {key: found[key] for key in more} == more
    assert found["schema"] == 'syntax = "proto3";\n\nimport "n.proto";\n\nmessage M {\n  n.N n = 1;\n}\n'
    assert client.ok("GET", "/subjects/n/versions/1/referencedby") == [number]
    assert client.ok("GET", "/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]


def test_schemas_alone_and_in_other_forms(client):
    client.register("n", RECORD)
    client.register("a", '{"type":"array","items":"r"}', references=[{"name": "r", "subject": "n", "version": 1}])
    client.register("p", 'syntax = "proto3";\nmessage M {}', schemaType="PROTOBUF")
    assert client("GET", "/subjects/a/versions/1/schema").text == '{"type":"array","items":"r"}'
    assert client("GET", "/schemas/ids/2/schema").text == '{"type":"array","items":"r"}'
    assert client.ok("GET", "/schemas/ids/2", format="resolved")["schema"] == f'{{"type":"array","items":{RECORD}}}'
    serialized = client.ok("GET", "/subjects/p/versions/1", format="serialized")["schema"]
    assert client.ok("POST", "/subjects/p", {"schema": serialized, "schemaType": "PROTOBUF"})["version"] == 1
    assert client.ok("GET", "/schemas/ids/2", format="unknown")["schema"] == '{"type":"array","items":"r"}'


def test_lists_have_pages_prefixes_and_deleted_ones(client):
    client.ok("PUT", "/config", {"compatibility": "NONE"})
    for subject in ("ab", "ac", "b", ":.c:ab"):
        for text in (INT, TEXT):
            client.register(subject, text)
    assert client.ok("DELETE", "/subjects/ac/versions/1") == 1
    assert client.ok("DELETE", "/subjects/b") == [1, 2]
    assert client.ok("GET", "/subjects") == [":.c:ab", "ab", "ac"]
    assert client.ok("GET", "/subjects", subjectPrefix="a") == ["ab", "ac"]
    assert client.ok("GET", "/subjects", subjectPrefix=":.c:") == [":.c:ab"]
    assert client.ok("GET", "/subjects", deleted="true") == [":.c:ab", "ab", "ac", "b"]
    assert client.ok("GET", "/subjects", deletedOnly="true") == ["b"]
    assert client.ok("GET", "/subjects", offset="1", limit="1") == ["ab"]
    assert client.ok("GET", "/subjects/ac/versions") == [2]
    assert client.ok("GET", "/subjects/ac/versions", deleted="true") == [1, 2]
    assert client.ok("GET", "/subjects/ac/versions", deletedOnly="true") == [1]
    assert client.ok("GET", "/subjects/ac/versions", deleted="true", deletedAsNegative="true") == [-1, 2]
    assert client.ok("GET", "/subjects/ac/versions", deleted="true", limit="1") == [1]
    listed = client.ok("GET", "/schemas", subjectPrefix="a")
    assert [(one["subject"], one["version"]) for one in listed] == [("ab", 1), ("ab", 2), ("ac", 2)]
    assert [one["version"] for one in client.ok("GET", "/schemas", latestOnly="true")] == [2, 2, 2]
    assert len(client.ok("GET", "/schemas", deleted="true", offset="2")) == 6
    assert client.ok("GET", "/subjects/ac/versions/1", deleted="true")["deleted"] is True
    assert client.ok("GET", "/schemas/ids/1/subjects") == ["ab"]
    assert client.ok("GET", "/schemas/ids/1/subjects", deleted="true") == ["ab", "ac", "b"]


def test_deletes_are_soft_and_then_for_good(client):
    client.register("a", INT)
    assert client.refused("DELETE", "/subjects/a", permanent="true")[:2] == (404, 40405)
    assert client.ok("DELETE", "/subjects/a/versions/latest") == 1
    assert client.refused("DELETE", "/subjects/a/versions/1")[:2] == (404, 40406)
    assert client.ok("DELETE", "/subjects/a/versions/1", permanent="true") == 1
    assert client.refused("GET", "/schemas/ids/1")[:2] == (404, 40403)


def test_the_newest_version_with_properties(client):
    for text, value in ((INT, "x"), (LONG, "y")):
        client.register("a", text, metadata={"properties": {"k": value}})
    assert client.ok("GET", "/subjects/a/metadata", key="k", value="x")["version"] == 1
    assert client.refused("GET", "/subjects/a/metadata", key="k", value="z")[1] == 40402
    assert client.refused("GET", "/subjects/b/metadata")[1] == 40401


# --- compatibility, settings, contexts ---------------------------------------------------------------------


def test_compatibility_is_tested_and_explained(client):
    path = "/compatibility/subjects/a/versions"
    assert client.ok("POST", path, {"schema": INT}) == {"is_compatible": True}
    for newest in ("latest", "-1"):  # of a subject that has none
        assert client.ok("POST", f"{path}/{newest}", {"schema": INT}) == {"is_compatible": True}
    client.register("a", INT)
    assert client.ok("POST", f"{path}/latest", {"schema": LONG}) == {"is_compatible": True}
    assert client.ok("POST", path, {"schema": TEXT}) == {"is_compatible": False}
    (message, *_) = client.ok("POST", f"{path}/1", {"schema": TEXT}, verbose="true")["messages"]
    assert "TYPE_MISMATCH" in message
    assert client.refused("POST", f"{path}/2", {"schema": INT})[:2] == (404, 40402)
    assert client.refused("POST", "/compatibility/subjects/b/versions/1", {"schema": INT})[:2] == (404, 40401)
    assert client.refused("POST", path, {"schema": "x"})[:2] == (422, 42201)
    status, code, text = client.refused("POST", "/subjects/a/versions", {"schema": TEXT})
    assert (status, code) == (409, 40901)
    assert 'earlier schema for subject "a"' in text


def test_configurations(client):
    assert client.ok("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert client.ok("PUT", "/config", {"compatibility": "full"}) == {"compatibility": "FULL"}
    assert client.refused("GET", "/config/a")[:2] == (404, 40408)
    assert client.ok("GET", "/config/a", defaultToGlobal="true") == {"compatibilityLevel": "FULL"}
    assert client.ok("PUT", "/config/a", {"normalize": True}) == {"normalize": True}
    assert client.ok("PUT", "/config/a", {"alias": None}) == {}
    assert client.ok("GET", "/config/a") == {"compatibilityLevel": "FULL", "normalize": True}
    assert client.ok("DELETE", "/config/a") == {"compatibilityLevel": "FULL", "normalize": True}
    assert client.refused("DELETE", "/config/a")[:2] == (404, 40401)
    assert client.ok("DELETE", "/config") == {"compatibilityLevel": "FULL"}
    assert client.refused("PUT", "/config", {"compatibility": "x"})[:2] == (422, 42203)


def test_modes(client):
    assert client.ok("GET", "/mode") == {"mode": "READWRITE"}
    assert client.ok("PUT", "/mode/a", {"mode": "readonly"}) == {"mode": "READONLY"}
    assert client.refused("POST", "/subjects/a/versions", {"schema": INT})[:2] == (422, 42205)
    assert client.refused("GET", "/mode/b")[:2] == (404, 40409)
    assert client.ok("GET", "/mode/b", defaultToGlobal="true") == {"mode": "READWRITE"}
    assert client.ok("DELETE", "/mode/a") == {"mode": "READONLY"}
    assert client.refused("PUT", "/mode", {"mode": "x"})[:2] == (422, 42204)
    assert client.ok("PUT", "/mode/i", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    assert client.register("i", INT, id=7, version=3) == 7
    assert client.ok("GET", "/subjects/i/versions") == [3]


def test_contexts_by_subject_and_by_path(client):
    client.register(":.c:a", INT)
    assert client.ok("POST", "/contexts/.c/subjects/b/versions", {"schema": LONG})["id"] == 2
    assert client.ok("GET", "/contexts") == [".", ".c"]
    assert client.ok("GET", "/contexts/.c/subjects") == [":.c:a", ":.c:b"]
    assert client.ok("GET", "/contexts/.c/schemas/ids/2")["schema"] == LONG
    assert client.ok("GET", "/schemas/ids/2", subject=":.c:b")["schema"] == LONG
    assert client.refused("GET", "/schemas/ids/2")[:2] == (404, 40403)
    assert client.ok("PUT", "/contexts/.c/config", {"compatibility": "NONE"}) == {"compatibility": "NONE"}
    assert client.ok("GET", "/config/:.c:a", defaultToGlobal="true") == {"compatibilityLevel": "NONE"}
    assert client.refused("DELETE", "/contexts/.c")[:2] == (422, 42211)
    for subject in ("a", "b"):
        client.ok("DELETE", f"/subjects/:.c:{subject}")
        client.ok("DELETE", f"/subjects/:.c:{subject}", permanent="true")
    assert client.ok("DELETE", "/contexts/.c") is None
    assert client.ok("GET", "/contexts") == ["."]


def test_an_alias_stands_for_its_subject(client):
    client.register("a", INT)
    client.ok("PUT", "/config/other", {"alias": "a"})
    assert client.ok("GET", "/subjects/other/versions/1")["subject"] == "a"


def test_a_server_says_what_it_is(client):
    assert client.ok("GET", "/") == client.ok("POST", "/", {}) == {}
    assert client.ok("GET", "/v1/metadata/version")["version"]
    assert "clusters" in client.ok("GET", "/v1/metadata/id")["scope"]


# --- names, types and bodies -------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", ["a/b", "a%2Fb", "a b", "ä", "日本", "a?b#c", "100%", "types", ":a", "a\\b"])
def test_odd_subjects_are_decoded_once(client, subject):
    path = f"/subjects/{quote(subject, safe='')}"
    assert client.ok("POST", f"{path}/versions", {"schema": INT})["id"] == 1
    assert client.ok("GET", "/subjects") == [subject]
    assert client.ok("GET", f"{path}/versions/1")["subject"] == subject
    assert client.ok("PUT", f"/config/{quote(subject, safe='')}", {"compatibility": "NONE"})


@pytest.mark.parametrize("subject", ["%20", "__GLOBAL", "__EMPTY", "a%0Ab", ":.c:", ":.c:__EMPTY"])
def test_names_that_no_subject_may_have_are_refused(client, subject):
    assert client.refused("POST", f"/subjects/{subject}/versions", {"schema": INT})[:2] == (422, 42208)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("*/*", V1),
        ("", V1),
        ("application/json", "application/json"),
        ("application/vnd.schemaregistry+json", "application/vnd.schemaregistry+json"),
        ("text/html, application/json;q=0.5", "application/json"),
        ("application/json;q=0.5, application/vnd.schemaregistry.v1+json", V1),
        ("application/json, application/vnd.schemaregistry.v1+json;q=0.9", "application/json"),
        ("application/json;q=0, */*;q=0.1", V1),
    ],
)
def test_accept_decides_the_content_type(client, accept, content_type):
    answer = client("GET", "/subjects", headers={"accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, content_type)


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/nowhere", {}, 404),
        ("GET", "/subjects/a/b/c/d/e", {}, 404),
        ("GET", "/schemas/ids/x", {}, 404),
        ("GET", "/subjects?offset=x", {}, 404),
        ("PATCH", "/subjects", {}, 405),
        ("DELETE", "/schemas/types", {}, 405),
        ("GET", "/subjects", {"accept": "text/html"}, 406),
        ("GET", "/subjects", {"accept": "application/json;q=0"}, 406),
        ("POST", "/subjects/a/versions", {"content-type": "text/plain"}, 415),
    ],
)
def test_what_http_refuses_is_json_too(client, method, path, headers, status):
    assert client.refused(method, path, b"{}" if method == "POST" else None, headers)[:2] == (status, status)


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", V1, "application/octet-stream", "APPLICATION/JSON"],
)
def test_content_types_of_requests(client, content_type):
    answer = client("POST", "/subjects/a/versions", {"schema": INT}, {"content-type": content_type})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b"[" * 100_000, 400),
        (b'{"schema": "\\ud800"}', 400),
        (b"[]", 400),
        (b"null", 400),
        (b"{}", 42201),
        (b'{"schema": null}', 42201),
        (b'{"schema": ""}', 42201),
        (b'{"schema": 1}', 400),
        (b'{"schema": {"type": "int"}}', 400),
        (b'{"schema": "{"}', 42201),
        (b'{"schema": "\\"\\\\ud800\\""}', 42201),
        (b'{"schema": "true", "schemaType": "XML"}', 42201),
        (b'{"schema": "true", "schemaType": 1}', 42201),
        (b'{"schema": "\\"int\\"", "references": {}}', 400),
        (b'{"schema": "\\"int\\"", "references": [{}]}', 42201),
        (b'{"schema": "\\"int\\"", "references": ["a"]}', 400),
        (b'{"schema": "\\"int\\"", "references": [{"name": "a", "subject": "b", "version": "1"}]}', 400),
        (b'{"schema": "\\"int\\"", "references": [{"name": "a", "subject": "b", "version": 1}]}', 42201),
        (b'{"schema": "\\"int\\"", "metadata": []}', 400),
        (b'{"schema": "\\"int\\"", "id": "x"}', 400),
        (b'{"schema": "\\"int\\"", "version": "x"}', 400),
        (b'{"schema": "\\"int\\"", "version": true}', 400),
        (b'{"schema": "\\"int\\"", "version": 3}', 42201),
        (b'{"schema": "\\"int\\"", "id": 3}', 42205),
    ],
)
def test_bad_bodies_get_a_code_and_a_sentence(client, body, code):
    status, found, _ = client.refused("POST", "/subjects/a/versions", body)
    assert (status, found) == (int(str(code)[:3]), code)
    assert client.ok("GET", "/subjects") == []


@pytest.mark.parametrize("version", ["0", "-2", "x", "1.0", "2147483648", "٣"])
def test_versions_that_are_none_are_refused(client, version):
    client.register("a", INT)
    assert client.refused("GET", f"/subjects/a/versions/{quote(version)}")[:2] == (422, 42202)


def test_a_large_body_is_refused_before_it_is_read_whole():
    client = ApiClient(bounds=HttpBounds(body=1000))
    sent = []

    async def chunks():
        for _ in range(100):
            sent.append(1)
            yield b"x" * 100

    async def send():
        transport = httpx.ASGITransport(client.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://registry") as one:
            return await one.post("/subjects/a/versions", content=chunks())

    answer = asyncio.run(send())
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42209)
    assert len(sent) < 20


def test_a_store_that_fails_is_reported(client, caplog):
    client.register("a", INT)

    def down(*call):
        raise StorageUnavailableError("the disk is gone")

    client.storage.hook = down
    status, code, message = client.refused("GET", "/subjects")
    assert (status, code) == (500, 50001)
    assert "the disk is gone" in message
    client.storage.hook = quiet
    assert client.ok("GET", "/subjects") == ["a"]


def test_a_bug_is_no_traceback_for_the_client(client, monkeypatch, caplog):
    monkeypatch.setattr(RegistryLog, "look", lambda *_: 1 / 0)
    assert client.refused("GET", "/subjects") == (500, 500, "Internal Server Error")
    assert "ZeroDivisionError" in caplog.text
