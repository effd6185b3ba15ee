"""The Protobuf converter: messages of Confluent's form, values there and back, and what it refuses."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from support.protobuf_messages import message_of

from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.converters.protobuf_converter import protobuf_converter
from tidelog.connect.converters.protobuf_schemas import ENUM, TAG, UNION, ProtoWriter
from tidelog.connect.converters.table import converter_plugin
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    ConnectSchema,
    SchemaType,
    array_of,
    date_schema,
    decimal_schema,
    map_of,
    struct_of,
    time_schema,
    timestamp_schema,
)
from tidelog.log.lake import Lake
from tidelog.schema_registry import SchemaRegistryClient
from tidelog.schema_registry.protobuf import ProtobufSerializer

COLORS = {ENUM: "Color", f"{ENUM}.RED": "0", f"{ENUM}.BLUE": "2"}
COLOR = ConnectSchema(SchemaType.STRING, name="Color", parameters=COLORS)
EITHER = struct_of({"s": STRING.as_optional(), "n": INT32.as_optional()}, name=f"{UNION}either", optional=True)
POINT = struct_of({"x": INT32}, name="Point")

# (a field's schema, the field named `f` in a .proto file, a value)
FIELDS = [
    (BOOLEAN, "bool f = 1;", True),
    (INT8, 'int32 f = 1 [(confluent.field_meta) = {params: [{key: "connect.type", value: "int8"}]}];', -5),
    (INT16, 'int32 f = 1 [(confluent.field_meta) = {params: [{key: "connect.type", value: "int16"}]}];', 300),
    (INT32, "int32 f = 1;", -(1 << 31)),
    (INT64, "int64 f = 1;", (1 << 63) - 1),
    (FLOAT32, "float f = 1;", 0.5),
    (FLOAT64, "double f = 1;", 0.1),
    (STRING, "string f = 1;", "ä"),
    (BYTES, "bytes f = 1;", b"\x00\xff"),
    (decimal_schema(2),
     '.confluent.type.Decimal f = 1 [(confluent.field_meta) = {params: [{key: "scale", value: "2"}]}];',
     Decimal("-12.30")),
    (date_schema(), ".google.type.Date f = 1;", date(2026, 1, 2)),
    (time_schema(), ".google.type.TimeOfDay f = 1;", time(3, 4, 5, 6000)),
    (timestamp_schema(), ".google.protobuf.Timestamp f = 1;", datetime(1969, 12, 31, 23, 59, 59, 678_000, UTC)),
    (COLOR, "Color f = 1;\nenum Color { RED = 0; BLUE = 2; }", "BLUE"),
    (POINT, "Point f = 1;\nmessage Point {\nint32 x = 1;\n}", {"x": 7}),
    (replace(POINT, name="f"), "fMessage f = 1;\nmessage fMessage {\nint32 x = 1;\n}", {"x": 7}),
    (array_of(INT32), "repeated int32 f = 1;", [1, 2]),
    (array_of(POINT), "repeated Point f = 1;\nmessage Point {\nint32 x = 1;\n}", [{"x": 1}, {"x": 0}]),
    (array_of(timestamp_schema()), "repeated .google.protobuf.Timestamp f = 1;", [datetime(2026, 1, 1, tzinfo=UTC)]),
    (map_of(STRING, INT64), "map<string, int64> f = 1;", {"a": 1}),
    (map_of(INT32, POINT), "map<int32, Point> f = 1;\nmessage Point {\nint32 x = 1;\n}", {5: {"x": 1}}),
    (replace(INT32, parameters={TAG: "9"}), "int32 f = 9;", 3),
]  # fmt: skip


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path) as found:
        yield found


@pytest.mark.parametrize(("schema", "field", "_"), FIELDS)
def test_structs_have_confluents_form(schema, field, _):
    proto = ProtoWriter()
    text = proto.text(struct_of({"f": schema}, name="a.b.Row"))
    assert proto.name == "a.b.Row"
    assert text.startswith('syntax = "proto3";\npackage a.b;\n')
    assert text.endswith(f"message Row {{\n{field}\n}}\n")


@pytest.mark.parametrize("is_key", [True, False])
def test_values_come_back_as_they_were(lake, is_key):
    converter = converter_plugin("ProtobufConverter").make({}, is_key, lake)
    client = SchemaRegistryClient({"lake": lake})
    for number, (schema, _, value) in enumerate(FIELDS):
        topic = f"t{number}"
        data = converter.from_connect(topic, struct_of({"f": schema}, name="a.Row"), {"f": value})
        assert data[0] == data[5] == 0
        read, found = converter.to_connect(topic, data)
        assert found == {"f": value}
        (field,) = read.fields
        assert (read.name, field.schema.type, field.schema.optional) == ("Row", schema.type, True)
        assert field.schema.parameters[TAG] == schema.parameters.get(TAG, "1")
        if schema.name is not None and schema.type is not SchemaType.STRUCT:
            assert field.schema.name == schema.name
        assert client.get_versions(f"{topic}-{'key' if is_key else 'value'}") == [1]
        # What was read can be written again, and says the same.
        assert converter.to_connect("again", converter.from_connect(f"again-{topic}", read, found)) == (read, found)
    assert converter.from_connect("t", POINT, None) is None
    assert converter.to_connect("t", None) == (None, None)
    converter.close()


WITH_CONFLUENTS_OPTION = """
import sys
from confluent_kafka.schema_registry.confluent import meta_pb2
from tidelog.connect.converters.table import converter_plugin
from tidelog.connect.data.schema import INT8, struct_of
from tidelog.log.lake import Lake
with Lake(sys.argv[1]) as lake:
    converter = converter_plugin("ProtobufConverter").make({}, False, lake)
    read, _ = converter.to_connect("t", converter.from_connect("t", struct_of({"f": INT8}, name="Row"), {"f": 5}))
    print(read.fields[0].schema.type.value)
"""


def test_a_process_may_know_confluents_option_already(tmp_path):
    command = [sys.executable, "-c", WITH_CONFLUENTS_OPTION, str(tmp_path / "lake")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "int8\n"


def test_a_union_is_a_oneof(lake):
    converter = protobuf_converter({}, False, lake)
    schema = struct_of({"id": INT32, "either_0": EITHER, "last": INT32}, name="Row")
    assert (
        ProtoWriter()
        .text(schema)
        .endswith("message Row {\nint32 id = 1;\noneof either { string s = 2; int32 n = 3; }\nint32 last = 4;\n}\n")
    )
    for value in ({"s": "x"}, {"n": 0}, None):
        row = {"id": 1, "either_0": value, "last": 2}
        read, found = converter.to_connect("t", converter.from_connect("t", schema, row))
        assert found == row
        assert [field.name for field in read.fields] == ["either_0", "id", "last"]


def test_null_is_nothing_or_as_protobuf_has_it(lake):
    schema = struct_of({"n": INT32.as_optional(), "p": POINT.as_optional(), "d": replace(INT32, default=7)}, name="Row")
    plain = protobuf_converter({}, False, lake)
    assert plain.to_connect("t", plain.from_connect("t", schema, {}))[1] == {"n": 0, "p": None, "d": 7}
    kept = protobuf_converter({"optional.for.nullables": "true"}, False, lake)
    read, found = kept.to_connect("u", kept.from_connect("u", schema, {"d": 0}))
    assert found == {"n": None, "p": None, "d": 0}
    assert [field.schema.optional for field in read.fields] == [True, True, False]


def test_what_other_clients_wrote_is_read_by_its_type(lake):
    client = SchemaRegistryClient({"lake": lake})
    text = """syntax = "proto3"; package p; message First { int32 a = 1; }
        message M { uint64 big = 1; In in = 2; message In { sint32 s = 1; } map<string, In> m = 3; }"""
    kind = message_of(text, "p.M")
    message = kind(big=(1 << 64) - 1)
    message.m["k"].s = -2
    data = ProtobufSerializer(kind, client)(message, SerializationContext("t", MessageField.VALUE))
    schema, value = protobuf_converter({}, False, lake).to_connect("t", data)
    assert value == {"big": -1, "in": None, "m": {"k": {"s": -2}}}
    assert (schema.name, schema.field_named("in").schema.name) == ("M", "In")
    schema, _ = protobuf_converter({"enhanced.protobuf.schema.support": "true"}, False, lake).to_connect("t", data)
    assert (schema.name, schema.field_named("in").schema.name) == ("p.M", "p.M.In")


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (None, 1, "has no schema"),
        (INT32, 1, "Unsupported root schema of type INT32"),
        (struct_of({"f": INT32}, name="R"), {"f": "x"}, "Invalid Python object"),
        (struct_of({"f": array_of(array_of(INT32))}, name="R"), {"f": []}, "inside a list or map"),
        (struct_of({"f": array_of(INT32.as_optional())}, name="R"), {"f": [None]}, "has a null inside"),
        (struct_of({"f": map_of(FLOAT64, INT32)}, name="R"), {"f": {}}, "can't be Protobuf"),
        (struct_of({"bad name": INT32}, name="R"), {"bad name": 1}, "can't be Protobuf"),
        (struct_of({"f": COLOR}, name="R"), {"f": "GREEN"}, "none of the values of Color"),
        (struct_of({"a": POINT, "b": struct_of({}, name="Point")}, name="R"), {"a": {"x": 1}, "b": {}}, "named Point"),
    ],
)
def test_what_no_message_has_is_refused(lake, schema, value, why):
    with pytest.raises(DataError, match=why):
        protobuf_converter({}, False, lake).from_connect("t", schema, value)


def test_bad_bytes_are_a_data_error(lake):
    converter = protobuf_converter({}, False, lake)
    good = converter.from_connect("t", struct_of({"f": STRING}, name="R"), {"f": "long enough"})
    for data in (b"", b"\x01abc", b"\x00\x00\x00\x00\x63\x00x", good[:-3], good[:5] + b"\x02\x0e" + good[6:]):
        with pytest.raises(DataError):
            converter.to_connect("t", data)
    loop = message_of('syntax = "proto3"; message N { N next = 1; }', "N")
    client = SchemaRegistryClient({"lake": lake})
    data = ProtobufSerializer(loop, client)(loop(), SerializationContext("n", MessageField.VALUE))
    with pytest.raises(DataError, match="itself inside"):
        converter.to_connect("n", data)
    with pytest.raises(ConnectConfigError, match=r"schema\.registry\.url is missing"):
        protobuf_converter({}, False, None)
