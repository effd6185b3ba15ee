"""`produce --value-as` and `consume --value-as`: JSON in, the registry's bytes between, JSON out."""

import json

import pytest
from support.cli_calls import done, lake_address, open_lake, refused

from tidelog.schema_registry import Schema, SchemaReference, SchemaRegistryClient

AVRO = Schema(
    '{"type":"record","name":"R","fields":[{"name":"n","type":"int"},'
    '{"name":"s","type":["null","string"],"default":null}]}'
)
JSON = Schema('{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}', "JSON")
INNER = Schema('syntax = "proto3";\nmessage In {\n  string t = 1;\n}\n', "PROTOBUF")
PROTO = Schema(
    'syntax = "proto3";\nimport "in.proto";\nimport "google/protobuf/timestamp.proto";\nmessage R {\n  int32 n = 1;\n'
    "  In in = 2;\n  google.protobuf.Timestamp at = 3;\n}\n",
    "PROTOBUF",
    [SchemaReference("in.proto", "in", 1)],
)
KINDS = {
    "avro": (AVRO, {"n": 1, "s": "a"}, {"n": 2, "s": None}),
    "json": (JSON, {"n": 1}, {}),
    "protobuf": (PROTO, {"n": 1, "in": {"t": "a"}, "at": "2020-01-01T00:00:00Z"}, {}),
}


@pytest.fixture
def lake():
    address = lake_address()
    with open_lake(address) as opened:
        opened.create_topic("t")
        client = SchemaRegistryClient({"lake": opened})
        client.register_schema("in", INNER)
        for kind, (schema, _, _) in KINDS.items():
            client.register_schema(f"{kind}-value", schema)
    return address


def lines(*values):
    return "".join(f"{json.dumps(one)}\n" for one in values)


@pytest.mark.parametrize("kind", KINDS)
def test_values_come_back_as_they_were(lake, kind):
    schema, *values = KINDS[kind]
    done("--lake", lake, "topic", "create", kind)
    done("--lake", lake, "produce", kind, "--value-as", kind, stdin=lines(*values))
    with open_lake(lake) as opened:
        stored = [one for batch in opened.topic(kind).read(0, 0, 2) for one in batch.column("value").to_pylist()]
        number = SchemaRegistryClient({"lake": opened}).lookup_schema(f"{kind}-value", schema).schema_id
    assert [one[:5] for one in stored] == [b"\0" + number.to_bytes(4, "big")] * 2
    found = done("--lake", lake, "consume", kind, "-e", "-q", "--value-as", kind).stdout.splitlines()
    assert [json.loads(one) for one in found] == values
    # In lines of JSON, the value is a text that holds JSON.
    found = done("--lake", lake, "consume", kind, "-e", "-q", "--value-as", kind, "-J").stdout.splitlines()
    assert [json.loads(json.loads(one)["payload"]) for one in found] == values


def test_null_stays_null_and_keys_stay_as_they_are(lake):
    done(
        "--lake",
        lake,
        "produce",
        "t",
        "--value-as",
        "avro",
        "--value-subject",
        "avro-value",
        "-K:",
        "-Z",
        stdin='k:{"n":1}\nj:\n',
    )
    found = done("--lake", lake, "consume", "t", "-e", "-q", "--value-as", "avro", "-K=", "-Z").stdout
    assert found.splitlines() == ['k={"n":1,"s":null}', "j=NULL"]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("avro", '{"n": "x"}', "version 1 of avro-value"),
        ("avro", '{"n": 1, "other": 2}', "other"),
        ("avro", "{}", "version 1 of avro-value"),
        ("avro", "plain", "the value is no JSON"),
        ("protobuf", '{"n": 1', "version 1 of protobuf-value"),
        ("json", '{"n": 1.5}', "#/n"),
        ("json", '{"other": 1}', "other"),
        ("protobuf", '{"other": 1}', "other"),
        ("protobuf", '{"n": "x"}', "version 1 of protobuf-value"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(lake, kind, value, said):
    good = lines(KINDS[kind][1])
    words = ["--lake", lake, "produce", "t", "-q", "--value-as", kind, "--value-subject", f"{kind}-value"]
    found = refused(1, *words, stdin=f"{good}{value}\n")
    assert "stdin, line 2: the value " in found
    assert said in found
    # All before it is produced.
    assert len(done("--lake", lake, "consume", "t", "-e", "-q", "--value-as", kind).stdout.splitlines()) == 1


def test_a_value_that_names_no_schema_is_told_with_its_place(lake):
    done("--lake", lake, "produce", "t", stdin="plain\n")
    for kind in KINDS:
        shown = done("--lake", lake, "consume", "t", "-e", "-q", "--value-as", kind)
        assert "t [0] at offset 0 is shown as its bytes: The message names no schema" in shown.stderr
        assert shown.stdout == "plain\n"


def test_a_subject_that_is_not_there_and_one_of_another_type(lake):
    found = refused(1, "--lake", lake, "produce", "t", "-q", "--value-as", "avro", stdin="{}\n")
    assert "Register one: tidelog schema register t-value FILE" in found
    done(
        "--lake", lake, "produce", "t", "-q", "--value-as", "avro", "--value-subject", "avro-value", stdin='{"n": 1}\n'
    )
    shown = done("--lake", lake, "consume", "t", "-e", "-q", "--value-as", "protobuf")
    assert "The schema is of type AVRO, not PROTOBUF" in shown.stderr
    words = ["--lake", lake, "produce", "t", "-q", "--value-as", "json", "--value-subject", "avro-value"]
    assert "is of type AVRO, not json" in refused(1, *words, stdin="{}\n")
    assert "goes with --value-as" in refused(2, "--lake", lake, "produce", "t", "--value-subject", "a", stdin="")


TYPES = Schema(
    'syntax = "proto3";\npackage p;\nmessage A {\n  int32 a = 1;\n}\nmessage B {\n  map<string, int32> m = 1;\n'
    "  message C {\n    message D {\n      string d = 1;\n    }\n  }\n  message E {\n    bool e = 1;\n  }\n}\n",
    "PROTOBUF",
)


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        (None, {"a": 1}, b"\0"),
        ("A", {"a": 1}, b"\0"),
        ("p.A", {"a": 1}, b"\0"),
        ("p.B", {"m": {"k": 2}}, b"\2\2"),
        ("B.C.D", {"d": "x"}, b"\6\2\2\0"),
        ("p.B.E", {"e": True}, b"\4\2\4"),
    ],
)
def test_messages_of_each_type_of_a_schema(lake, name, value, place):
    with open_lake(lake) as opened:
        SchemaRegistryClient({"lake": opened}).register_schema("types", TYPES)
    words = ["--lake", lake, "produce", "t", "-q", "--value-as", "protobuf", "--value-subject", "types"]
    done(*words, *([] if name is None else ["--value-type", name]), stdin=lines(value))
    with open_lake(lake) as opened:
        (stored,) = [one for batch in opened.topic("t").read(0, 0, 1) for one in batch.column("value").to_pylist()]
    assert stored[5:].startswith(place)
    found = done("--lake", lake, "consume", "t", "-e", "-q", "--value-as", "protobuf").stdout
    assert [json.loads(one) for one in found.splitlines()] == [value]


def test_a_message_type_that_is_not_there_or_has_no_use(lake):
    words = ["--lake", lake, "produce", "t", "-q", "--value-as", "protobuf", "--value-subject", "protobuf-value"]
    found = refused(1, *words, "--value-type", "Q", stdin="{}\n")
    assert "it has no message type 'Q'; it has R" in found
    words = ["--lake", lake, "produce", "t", "-q", "--value-as", "json", "--value-type", "Q"]
    assert "--value-type goes with --value-as protobuf" in refused(2, *words, stdin="{}\n")
