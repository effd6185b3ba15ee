"""`produce --value-as` and `consume --value-as` with a registry at another address: HTTP between."""

import json
import sys

import pyarrow as pa
import pytest
from support.nursery import run_forked
from test_registry_processes import registry_process

from tidelog.log.lake import Lake
from tidelog.schema_registry import Schema, SchemaReference, SchemaRegistryClient

SCHEMAS = {
    "avro": Schema('{"type":"record","name":"R","fields":[{"name":"n","type":"int"}]}'),
    "json": Schema(
        '{"type":"object","properties":{"n":{"$ref":"int.json"}}}', "JSON", [SchemaReference("int.json", "int", 1)]
    ),
    "protobuf": Schema(
        'syntax = "proto3";\nimport "in.proto";\nmessage First {\n  string s = 1;\n}\nmessage R {\n  int32 n = 1;\n'
        "  In in = 2;\n}\n",
        "PROTOBUF",
        [SchemaReference("in.proto", "in", 1)],
    ),
}
VALUES = {"avro": {"n": 1}, "json": {"n": 1}, "protobuf": {"n": 1, "in": {"t": "a"}}}


def tidelog(*arguments, stdin=""):
    command = [sys.executable, "-m", "tidelog", *map(str, arguments)]
    return run_forked(command, input=stdin)


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    """The URL of a registry over a lake of its own, with the schemas."""
    with registry_process(tmp_path_factory.mktemp("registry") / "lake") as (_, ready):
        with SchemaRegistryClient({"url": ready["url"]}) as client:
            client.register_schema("in", Schema('syntax = "proto3";\nmessage In {\n  string t = 1;\n}\n', "PROTOBUF"))
            client.register_schema("int", Schema('{"type":"integer"}', "JSON"))
            for kind, schema in SCHEMAS.items():
                client.register_schema(f"{kind}-value", schema)
        yield ready["url"]


@pytest.fixture
def lake(tmp_path):
    address = tmp_path / "lake"
    with Lake(address, create=True) as opened:
        for name in ("t", *SCHEMAS):
            opened.create_topic(name)
        opened.topic("t").append(pa.table({"value": [b"\0\0\0\0\1x"]}))
    return address


@pytest.mark.parametrize("kind", SCHEMAS)
def test_values_go_through_a_registry_elsewhere(registry, lake, kind):
    at = ("--registry", registry)
    more = ("--value-type", "R") if kind == "protobuf" else ()
    line = f"{json.dumps(VALUES[kind])}\n"
    made = tidelog("--lake", lake, "produce", kind, "-q", "--value-as", kind, *at, *more, stdin=line)
    assert (made.returncode, made.stderr) == (0, "")
    found = tidelog("--lake", lake, "consume", kind, "-e", "-q", "--value-as", kind, *at)
    assert (found.returncode, found.stderr) == (0, "")
    assert [json.loads(one) for one in found.stdout.splitlines()] == [VALUES[kind]]
    # The lake itself has no schemas: what the values name is not there.
    lost = tidelog("--lake", lake, "consume", kind, "-e", "-q", "--value-as", kind)
    assert lost.returncode != 0
    assert "Traceback" not in lost.stderr
    assert "40403" in lost.stderr


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        ("none", "Subject none has no schema to write values by"),
        ("json-value", "is of type JSON, not avro"),
        ("avro-value", "stdin, line 1: the value does not fit"),
    ],
)
def test_what_a_registry_elsewhere_refuses(registry, lake, subject, why):
    words = ("produce", "t", "-q", "--value-as", "avro", "--value-subject", subject, "--registry", registry)
    found = tidelog("--lake", lake, *words, stdin='{"n": "x"}\n')
    assert found.returncode == 1
    assert why in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("word", ["produce", "consume"])
def test_a_registry_that_does_not_answer(lake, word):
    words = ("-e",) if word == "consume" else ()
    found = tidelog(
        "--lake", lake, word, "t", "-q", *words, "--value-as", "avro", "--registry", "http://127.0.0.1:9", stdin="{}\n"
    )
    assert found.returncode == 1
    assert "127.0.0.1:9" in found.stderr
    assert "Traceback" not in found.stderr
