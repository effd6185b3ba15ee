"""Every path of Confluent's API with each of its parameters (its REST resources of version 8.2)."""

import json

import pytest
from support.registries import record
from support.registry_api import ApiClient

from tidelog.registry.api.app import ROUTES, ROWS
from tidelog.schemas.base.model import Reference, Schema

INT, LONG, TEXT = '"int"', '"long"', '"string"'
ARRAY = '{"type":"array","items":"n"}'
PROTO = 'syntax = "proto3";\n\nmessage M {}\n'
LIST = "offset limit"
GUID = Schema(ARRAY, references=(Reference("n", "n", 1),)).guid
# {(method, path): its parameters}. Those of tags and of associations are in NOT_THERE.
API = {
    ("GET", "subjects"): f"subjectPrefix deleted deletedOnly {LIST}",
    ("POST", "subjects/{subject}"): "normalize format deleted",
    ("DELETE", "subjects/{subject}"): "permanent",
    ("GET", "subjects/{subject}/metadata"): "key format deleted",
    ("GET", "subjects/{subject}/versions"): f"deleted deletedOnly deletedAsNegative {LIST}",
    ("POST", "subjects/{subject}/versions"): "normalize format force",
    ("GET", "subjects/{subject}/versions/{version}"): "format referenceFormat deleted",
    ("DELETE", "subjects/{subject}/versions/{version}"): "permanent",
    ("GET", "subjects/{subject}/versions/{version}/schema"): "format deleted",
    ("GET", "subjects/{subject}/versions/{version}/referencedby"): f"deleted {LIST}",
    ("GET", "schemas"): f"subjectPrefix aliases deleted latestOnly ruleType {LIST}",
    ("GET", "schemas/types"): "",
    ("GET", "schemas/ids/{id}"): "subject format referenceFormat fetchMaxId",
    ("GET", "schemas/ids/{id}/schema"): "subject format",
    ("GET", "schemas/ids/{id}/subjects"): f"subject deleted {LIST}",
    ("GET", "schemas/ids/{id}/versions"): f"subject deleted {LIST}",
    ("GET", "schemas/guids/{guid}"): "format",
    ("GET", "schemas/guids/{guid}/ids"): "",
    ("GET", "contexts"): f"contextPrefix {LIST}",
    ("DELETE", "contexts/{context}"): "",
    ("POST", "compatibility/subjects/{subject}/versions"): "normalize verbose",
    ("POST", "compatibility/subjects/{subject}/versions/{version}"): "normalize verbose",
    ("GET", "config"): "defaultToGlobal",
    ("PUT", "config"): "",
    ("DELETE", "config"): "",
    ("GET", "config/{subject}"): "defaultToGlobal",
    ("PUT", "config/{subject}"): "",
    ("DELETE", "config/{subject}"): "",
    ("GET", "mode"): "defaultToGlobal",
    ("PUT", "mode"): "force",
    ("DELETE", "mode"): "recursive",
    ("GET", "mode/{subject}"): "defaultToGlobal",
    ("PUT", "mode/{subject}"): "force",
    ("DELETE", "mode/{subject}"): "recursive",
    ("GET", "v1/metadata/id"): "",
    ("GET", "v1/metadata/version"): "",
    ("GET", "v1/metadata/deployment"): "",
    ("GET", ""): "",
    ("POST", ""): "",
}
# What belongs to other products, or is not built (docs/schemas.md).
NOT_THERE = [
    ("POST", "subjects/a/versions/1/tags"),
    ("GET", "exporters"),
    ("POST", "exporters"),
    ("GET", "exporters/e/status"),
    ("GET", "dek-registry/v1/keks"),
    ("POST", "dek-registry/v1/keks/k/deks"),
    ("GET", "associations/subjects/a"),
    ("GET", "associations/resources/n/r"),
    ("POST", "associations"),
    ("PUT", "associations/resources/r"),
    ("DELETE", "associations/resources/r"),
    ("POST", "associations:batchGet"),
    ("GET", "catalog/v1/types/tagdefs"),
]


def filled_client():
    """Subjects `a`, `ab`, `n` and `p`, `gone` softly deleted, `mixed` half, a context `.c`, an alias `other` of `a`."""
    client = ApiClient()
    client.ok("PUT", "/config", {"compatibility": "NONE"})
    rules = {"domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "disabled": False}]}
    reference = {"references": [{"name": "n", "subject": "n", "version": 1}]}
    assert client.register("n", record(name="n")) == 1
    assert client.register("a", ARRAY, **reference) == 2
    assert client.register("a", INT, metadata={"properties": {"k": "v"}}) == 3
    assert client.register("a", TEXT, metadata={"properties": {"k": "w"}}) == 4
    assert client.register("ab", LONG, ruleSet=rules) == 5
    assert client.register("gone", ARRAY, **reference) == 2
    assert client.register("p", PROTO, schemaType="PROTOBUF") == 6
    assert client.register("mixed", INT) == 7
    assert client.register("mixed", LONG) == 8
    client.register(":.c:n", record(name="n"))
    client.register(":.c:a", ARRAY, **reference)
    assert client.register(":.c:z", LONG) == 3
    client.register("only", ARRAY, references=[{"name": "n", "subject": ":.c:n", "version": 1}])
    client.ok("DELETE", "/subjects/gone")
    client.ok("DELETE", "/subjects/mixed/versions/1")
    client.ok("PUT", "/config/other", {"alias": "a"})
    client.ok("PUT", "/config/:.__GLOBAL:", {"compatibility": "FULL"})
    client.ok("PUT", "/mode/:.__GLOBAL:", {"mode": "READONLY"})
    client.ok("PUT", "/mode/gone", {"mode": "READWRITE"})
    for place in ("mode/ab", "mode"):
        client.ok("PUT", f"/{place}", {"mode": "READWRITE"})
    return client


@pytest.fixture(scope="module")
def read_client():
    """For requests that change nothing, and need nothing of their own (PREPARED)."""
    return filled_client()


@pytest.fixture
def client(request):
    """A client of its own for a test that changes something."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    method, path, *_ = parameters.get("case", ("", ""))
    reads = method == "GET" and not any(needs in path for needs in PREPARED)
    return request.getfixturevalue("read_client") if reads else filled_client()


def part(*names):
    """These keys of an answer, or of each of its values."""

    def of(answer):
        if isinstance(answer, list):
            return [of(one) for one in answer]
        return tuple(answer.get(name) for name in names)

    return of


def referenced(answer):
    return answer["references"][0]["subject"]


def explained(answer):
    return "messages" in answer


def same(answer):
    return answer


NAMES = part("subject", "version")
ALIASES = part("subject", "aliases")
RESOLVED = f'{{"type":"array","items":{record(name="n")}}}'.replace(" ", "")
SPACED = {"schema": '{"b":1,"a":2}', "schemaType": "JSON"}
SORTED = '{"a":2,"b":1}'
OTHER = {"schema": TEXT, "metadata": {"properties": {"k": "z"}}}
# (method, path, parameters; what is taken of the answer, and what that is; the body). The same request without the
# first parameter gives another answer.
CASES = [
    ("GET", "subjects", "subjectPrefix=a", same, ["a", "ab"]),
    ("GET", "subjects", "subjectPrefix=:.c:", same, [":.c:a", ":.c:n", ":.c:z"]),
    ("GET", "subjects", "deleted=true", len, 10),
    ("GET", "subjects", "deletedOnly=true", same, ["gone"]),
    ("GET", "subjects", "offset=7", same, ["only", "p"]),
    ("GET", "subjects", "limit=1", same, [":.c:a"]),
    ("POST", "subjects/s", "normalize=true", part("schema"), (SORTED,), SPACED),
    ("POST", "subjects/a", "format=resolved", part("schema"), (RESOLVED,), "ARRAY"),
    ("POST", "subjects/gone", "deleted=true", NAMES, ("gone", 1), "ARRAY"),
    ("DELETE", "subjects/gone", "permanent=true", same, [1]),
    ("GET", "subjects/a/metadata", "key=k&value=v", NAMES, ("a", 2)),
    ("GET", "subjects/only/metadata", "format=resolved", part("schema"), (RESOLVED,)),
    ("GET", "subjects/gone/metadata", "deleted=true", NAMES, ("gone", 1)),
    ("GET", "subjects/mixed/versions", "deleted=true", same, [1, 2]),
    ("GET", "subjects/mixed/versions", "deletedOnly=true", same, [1]),
    ("GET", "subjects/mixed/versions", "deletedAsNegative=true", same, [-1, 2]),
    ("GET", "subjects/a/versions", "offset=1", same, [2, 3]),
    ("GET", "subjects/a/versions", "limit=2", same, [1, 2]),
    ("POST", "subjects/t/versions", "normalize=true", part("schema"), (SORTED,), SPACED),
    ("POST", "subjects/q/versions", "format=resolved", part("schema"), (RESOLVED,), "ARRAY"),
    ("POST", "subjects/strict/versions", "force=true", part("version"), (2,), OTHER),
    ("GET", "subjects/a/versions/1", "format=resolved", part("schema"), (RESOLVED,)),
    (
        "GET",
        "subjects/:.c:a/versions/1",
        "referenceFormat=qualified",
        referenced,
        ":.c:n",
    ),
    ("GET", "subjects/mixed/versions/1", "deleted=true", NAMES, ("mixed", 1)),
    ("DELETE", "subjects/mixed/versions/1", "permanent=true", same, 1),
    ("GET", "subjects/a/versions/1/schema", "format=resolved", part("items"), (json.loads(record(name="n")),)),
    ("GET", "subjects/mixed/versions/1/schema", "deleted=true", same, "int"),
    ("GET", "subjects/m/versions/1/referencedby", "deleted=true", len, 3),
    ("GET", "subjects/m/versions/1/referencedby", "offset=1", len, 1),
    ("GET", "subjects/m/versions/1/referencedby", "limit=1", len, 1),
    ("GET", "schemas", "subjectPrefix=ab", NAMES, [("ab", 1)]),
    (
        "GET",
        "schemas",
        "aliases=true&subjectPrefix=o&latestOnly=true",
        part("subject", "aliases"),
        [("a", ["other"]), ("only", None)],
    ),
    ("GET", "schemas", "deleted=true", len, 13),
    ("GET", "schemas", "latestOnly=true", len, 9),
    ("GET", "schemas", "ruleType=CEL", NAMES, [("ab", 1)]),
    ("GET", "schemas", "offset=10", NAMES, [("p", 1)]),
    ("GET", "schemas", "limit=1", NAMES, [(":.c:a", 1)]),
    ("GET", "schemas/ids/3", "subject=a", NAMES, ("a", 2)),
    ("GET", "schemas/ids/3", "subject=other", NAMES, ("a", 2)),
    ("GET", "schemas/ids/2", "format=resolved", part("schema"), (RESOLVED,)),
    (
        "GET",
        "schemas/ids/2",
        "referenceFormat=qualified&subject=:.c:",
        referenced,
        ":.c:n",
    ),
    ("GET", "schemas/ids/1", "fetchMaxId=true", part("maxId"), (9,)),
    ("GET", "schemas/ids/3/schema", "subject=:.c:", same, "long"),
    ("GET", "schemas/ids/2/schema", "format=resolved", part("items"), (json.loads(record(name="n")),)),
    ("GET", "schemas/ids/2/subjects", "subject=:.c:", same, [":.c:a"]),
    ("GET", "schemas/ids/2/subjects", "deleted=true", same, ["a", "gone"]),
    ("GET", "schemas/ids/2/subjects", "offset=1", same, []),
    ("GET", "schemas/ids/2/subjects", "limit=1&deleted=true", same, ["a"]),
    ("GET", "schemas/ids/2/versions", "subject=:.c:", NAMES, [(":.c:a", 1)]),
    ("GET", "schemas/ids/2/versions", "deleted=true", NAMES, [("a", 1), ("gone", 1)]),
    ("GET", "schemas/ids/2/versions", "offset=1", same, []),
    ("GET", "schemas/ids/2/versions", "limit=1&deleted=true", NAMES, [("a", 1)]),
    ("GET", "schemas/guids/" + GUID, "format=resolved", part("schema"), (RESOLVED,)),
    ("GET", "contexts", "contextPrefix=.c", same, [".c"]),
    ("GET", "contexts", "offset=1", same, [".c"]),
    ("GET", "contexts", "limit=1", same, ["."]),
    (
        "POST",
        "compatibility/subjects/strict/versions",
        "verbose=true",
        explained,
        True,
        OTHER,
    ),
    (
        "POST",
        "compatibility/subjects/strict/versions/1",
        "verbose=true",
        explained,
        True,
        OTHER,
    ),
    ("GET", "config", "defaultToGlobal=true", same, {"compatibilityLevel": "FULL"}),
    ("GET", "config/a", "defaultToGlobal=true", same, {"compatibilityLevel": "FULL"}),
    ("GET", "mode", "defaultToGlobal=true", same, {"mode": "READONLY"}),
    ("GET", "mode/a", "defaultToGlobal=true", same, {"mode": "READONLY"}),
    ("PUT", "mode", "force=true", same, {"mode": "IMPORT"}, {"mode": "IMPORT"}),
    ("PUT", "mode/a", "force=true", same, {"mode": "IMPORT"}, {"mode": "IMPORT"}),
    ("DELETE", "mode/:.c:", "recursive=true", same, {"mode": None}),
]
# Parameters whose effect shows elsewhere than in the answer: a test of its own below.
BY_THEMSELVES = {
    ("DELETE", "mode", "recursive"),
    ("POST", "compatibility/subjects/{subject}/versions", "normalize"),
    ("POST", "compatibility/subjects/{subject}/versions/{version}", "normalize"),
}


def test_the_api_has_each_path_and_no_other():
    assert {(route.method, route.path) for route in ROWS} == API.keys()


def template(method, path):
    """The path of API that a request goes to."""
    handler, parts = ROUTES.routed(method, f"/{path}")[0].handler, path.count("/")
    rows = ((route.path, (route.method, route.handler, route.path.count("/"))) for route in ROWS)
    return next(own for own, row in rows if row == (method, handler, parts))


def test_each_parameter_has_a_case():
    requests = [(case[0], template(*case[:2]), case[2]) for case in CASES]
    cases = {(method, path, one.split("=")[0]) for method, path, query in requests for one in query.split("&")}
    wanted = {(method, path, name) for (method, path), names in API.items() for name in names.split()}
    assert wanted <= cases | BY_THEMSELVES
    assert not BY_THEMSELVES & cases


# Parts of paths whose requests need more than all have.
PREPARED = ("/s", "strict", "subjects/m/", "config", "mode")


def prepared(client, method, path, body):
    """What single cases need beside the others' subjects."""
    if "/s" in path or "strict" in path:
        client.register("s", SORTED, schemaType="JSON")
        client.ok("PUT", "/config/strict", {"compatibility": "FULL"})
        client.register("strict", INT)
    if "subjects/m/" in path:
        client.register("m", record(name="m"))
        for i in range(3):
            reference = {"references": [{"name": "m", "subject": "m", "version": 1}]}
            client.register(f"m{i}", f'{{"type":"map","values":"m","n":{i}}}', **reference)
        client.ok("DELETE", "/subjects/m2")
    if path.startswith(("config", "mode")):
        client.ok("DELETE", "/config")
        if method == "GET":
            client.ok("DELETE", "/mode")
    if body == "ARRAY":
        body = {"schema": ARRAY, "references": [{"name": "n", "subject": "n", "version": 1}]}
    return path, body


def asked(client, method, path, query, taken, body=None):
    path, body = prepared(client, method, path, body)
    found = client(method, f"/{path}{query and '?' + query}", body)
    if found.status_code != 200:
        return found.json()["error_code"]
    return taken(found.json())


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case[:3]))
def test_a_parameter_changes_the_answer(client, case):
    method, path, query, taken, expected, *body = case
    assert asked(client, method, path, query, taken, *body) == expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case[:3]))
def test_the_answer_without_a_parameter_is_another(client, case):
    method, path, query, taken, expected, *body = case
    first, _, others = query.partition("&")
    without = "" if first.startswith("key=") else others
    assert asked(client, method, path, without, taken, *body) != expected


def test_a_context_modes_end_with_it(client):
    """DELETE /mode?recursive=true."""
    client.ok("DELETE", "/mode")
    assert client.ok("GET", "/mode/ab") == {"mode": "READWRITE"}
    client.ok("PUT", "/mode/:.c:a", {"mode": "READWRITE"})
    client.ok("DELETE", "/mode", recursive="true")
    assert client.refused("GET", "/mode/ab")[:2] == (404, 40409)
    assert client.ok("GET", "/mode/:.c:a") == {"mode": "READWRITE"}
    client.ok("DELETE", "/mode/:.c:", recursive="true")
    assert client.refused("GET", "/mode/:.c:a")[:2] == (404, 40409)


@pytest.mark.parametrize("ending", ["", "/1"])
def test_a_schema_that_can_not_be_normalised_is_refused_when_it_is_tested(client, ending):
    """POST /compatibility/…?normalize=true: types have their full names then."""
    path = f"/compatibility/subjects/p/versions{ending}"
    body = {"schema": 'syntax = "proto3"; message M { Unknown u = 1; }', "schemaType": "PROTOBUF"}
    assert client.refused("POST", path, body, normalize="true")[1] == 42201
    good = {"schema": PROTO, "schemaType": "PROTOBUF"}
    assert client.ok("POST", path, good, normalize="true") == {"is_compatible": True}


@pytest.mark.parametrize(("method", "path"), NOT_THERE, ids=lambda one: one)
def test_paths_that_are_not_there(client, method, path):
    assert client.refused(method, f"/{path}", {} if method in ("POST", "PUT") else None)[:2] == (404, 404)
