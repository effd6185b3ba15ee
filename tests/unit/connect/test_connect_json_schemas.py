"""The JSON Schema converter: Confluent's forms of schemas, values there and back, and what it refuses."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.converters.json_schema_converter import (
    ENUM,
    JsonSchemaReader,
    json_schema_converter,
    json_schema_of,
)
from tidelog.connect.converters.json_values import ONE_OF, from_json, to_json
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
from tidelog.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from tidelog.schema_registry.json_schema import JSONSerializer

LOGICAL = "org.apache.kafka.connect.data."
NULL = {"type": "null"}
UNION = struct_of(
    {f"{ONE_OF}.field.0": STRING.as_optional(), f"{ONE_OF}.field.1": INT32.as_optional()}, name=ONE_OF, optional=True
)
COLOR = ConnectSchema(SchemaType.STRING, parameters={ENUM: "", f"{ENUM}.RED": "RED", f"{ENUM}.BLUE": "BLUE"})


def integer(kind, **others):
    return {"type": "integer", "connect.type": kind, **others}


# (Connect's schema, JSON Schema)
SCHEMAS = [
    (BOOLEAN, {"type": "boolean"}),
    (INT8, integer("int8")),
    (INT16, integer("int16")),
    (INT32, integer("int32")),
    (INT64, integer("int64")),
    (FLOAT32, {"type": "number", "connect.type": "float32"}),
    (FLOAT64, {"type": "number", "connect.type": "float64"}),
    (STRING, {"type": "string"}),
    (BYTES, {"type": "string", "connect.type": "bytes"}),
    (STRING.as_optional(), {"oneOf": [NULL, {"type": "string"}]}),
    (ConnectSchema(SchemaType.INT32, doc="d", version=2, name="n", default=5, parameters={"a": "b"}),
     integer("int32", title="n", description="d", default=5,
             **{"connect.version": 2, "connect.parameters": {"a": "b"}})),
    (decimal_schema(2),
     {"type": "string", "connect.type": "bytes", "title": f"{LOGICAL}Decimal", "connect.version": 1,
      "connect.parameters": {"scale": "2"}}),
    (date_schema(), integer("int32", title=f"{LOGICAL}Date", **{"connect.version": 1})),
    (time_schema(), integer("int32", title=f"{LOGICAL}Time", **{"connect.version": 1})),
    (timestamp_schema(), integer("int64", title=f"{LOGICAL}Timestamp", **{"connect.version": 1})),
    (COLOR, {"enum": ["RED", "BLUE"]}),
    (array_of(INT32.as_optional()), {"type": "array", "items": {"oneOf": [NULL, integer("int32")]}}),
    (map_of(STRING, INT64), {"type": "object", "connect.type": "map", "additionalProperties": integer("int64")}),
    (map_of(INT32, STRING),
     {"type": "array", "connect.type": "map", "items": {"type": "object", "properties": {
         "key": integer("int32", **{"connect.index": 0}), "value": {"type": "string", "connect.index": 1}}}}),
    (struct_of({"b": STRING, "a": struct_of({"x": INT32}, name="P").as_optional()}, name="R", version=3),
     {"type": "object", "title": "R", "connect.version": 3, "properties": {
         "b": {"type": "string", "connect.index": 0},
         "a": {"connect.index": 1, "oneOf": [NULL, {"type": "object", "title": "P", "properties": {
             "x": integer("int32", **{"connect.index": 0})}}]}}}),
    (UNION, {"oneOf": [NULL, {"type": "string"}, integer("int32")]}),
]  # fmt: skip


@pytest.mark.parametrize(("connect", "found"), SCHEMAS)
def test_schemas_have_confluents_form_and_come_back(connect, found):
    assert json_schema_of(connect) == found
    assert JsonSchemaReader(json.loads(json.dumps(found)), {}).schema() == connect


@pytest.mark.parametrize(
    ("found", "connect"),
    [
        ({"type": "integer"}, INT64),
        ({"type": "number"}, FLOAT64),
        ({"type": "number", "connect.type": "bytes"}, BYTES),
        ({"type": ["null", "string"]}, STRING.as_optional()),
        ({"anyOf": [{"type": "string"}, NULL]}, STRING.as_optional()),
        ({"type": "object", "additionalProperties": {"type": "string"}}, map_of(STRING, STRING)),
        ({"properties": {"z": {"type": "string"}, "a": {"type": "boolean"}}}, struct_of({"z": STRING, "a": BOOLEAN})),
        ({"properties": {"z": {"type": "string", "connect.index": 1}, "a": {"type": "boolean", "connect.index": 0}}},
         struct_of({"a": BOOLEAN, "z": STRING})),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "boolean"}}}, BOOLEAN),
        ({"$ref": "other.json#/definitions/x"}, STRING),
        ({"type": "array", "items": {"$ref": "http://h/other.json"}}, array_of(struct_of({"y": BOOLEAN}))),
        ({"allOf": [{"$ref": "other.json"}, {"properties": {"z": {"type": "string"}}}], "title": "T"},
         struct_of({"y": BOOLEAN, "z": STRING}, name="T")),
    ],
)  # fmt: skip
def test_schemas_of_other_writers(found, connect):
    others = {
        "other.json": {
            "type": "object", "properties": {"y": {"$ref": "#/definitions/y"}},
            "definitions": {"x": {"type": "string"}, "y": {"type": "boolean"}},
        }
    }  # fmt: skip
    assert JsonSchemaReader(found, others).schema() == connect


def test_properties_that_are_not_required_are_optional_when_asked():
    found = {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}
    schema = JsonSchemaReader(found, {}, optional_unless_required=True).schema()
    assert [one.schema.optional for one in schema.fields] == [False, True]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (True, "says nothing of its values"),
        ({}, "no type of Connect's"),
        ({"type": "array"}, "did not specify the items type"),
        ({"$ref": "#/$defs/gone"}, "is not there"),
        ({"$ref": "gone.json"}, "is not there"),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}}}}, "itself inside"),
    ],
)
def test_schemas_without_a_form_in_connect_are_refused(found, why):
    with pytest.raises(DataError, match=why):
        JsonSchemaReader(found, {}).schema()


VALUES = [
    (INT8, -5),
    (INT64, (1 << 63) - 1),
    (FLOAT64, 0.5),
    (STRING, "ä"),
    (BYTES, b"\x00\xff"),
    (BOOLEAN, True),
    (decimal_schema(2), Decimal("-12.30")),
    (date_schema(), date(2026, 1, 2)),
    (time_schema(), time(3, 4, 5, 6000)),
    (timestamp_schema(), datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)),
    (COLOR, "RED"),
    (array_of(INT32.as_optional()), [1, None]),
    (map_of(STRING, decimal_schema(1)), {"a": Decimal("1.5")}),
    (map_of(INT32, STRING), {1: "a", 2: "b"}),
    (struct_of({"a": STRING.as_optional(), "s": struct_of({"x": INT32}, optional=True)}, name="R"),
     {"a": None, "s": {"x": 1}}),
    (UNION, {f"{ONE_OF}.field.1": 7}),
]  # fmt: skip


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path) as found:
        yield found


@pytest.mark.parametrize("is_key", [True, False])
@pytest.mark.parametrize("decimals", ["BASE64", "NUMERIC"])
def test_values_come_back_as_they_were(lake, is_key, decimals):
    config = {"decimal.format": decimals, "json.fail.invalid.schema": "true"}
    converter = converter_plugin("JsonSchemaConverter").make(config, is_key, lake)
    client = SchemaRegistryClient({"lake": lake})
    for number, (schema, value) in enumerate(VALUES):
        topic = f"t{number}"
        data = converter.from_connect(topic, schema, value)
        assert data[0] == 0
        assert converter.to_connect(topic, data) == (schema, value)
        assert client.get_versions(f"{topic}-{'key' if is_key else 'value'}") == [1]
    assert converter.from_connect("t", INT32, None) is None
    assert converter.to_connect("t", None) == (None, None)
    converter.close()


def test_the_bytes_are_what_other_clients_read(lake):
    converter = json_schema_converter({"decimal.format": "NUMERIC"}, False, lake)
    schema = struct_of({"m": map_of(INT32, decimal_schema(3)), "n": ConnectSchema(SchemaType.INT32, default=7)})
    data = converter.from_connect("t", schema, {"m": {1: Decimal("0.100")}})
    assert data[5:] == b'{"m":[{"key":1,"value":0.100}],"n":7}'


def test_what_other_clients_wrote_is_read_with_its_references(lake):
    client = SchemaRegistryClient({"lake": lake})
    client.register_schema("p", Schema('{"type": "object", "properties": {"x": {"type": "integer"}}}', "JSON"))
    root = {"type": "object", "properties": {"p": {"$ref": "p.json"}, "s": {"type": ["null", "string"]}}}
    schema = Schema(json.dumps(root), "JSON", [SchemaReference("p.json", "p", 1)])
    data = JSONSerializer(schema, client)({"p": {"x": 1}}, SerializationContext("t", MessageField.VALUE))
    found, value = json_schema_converter({}, False, lake).to_connect("t", data)
    assert value == {"p": {"x": 1}, "s": None}
    assert found == struct_of({"p": struct_of({"x": INT64}), "s": STRING.as_optional()})


def test_bad_input_is_a_data_error(lake):
    converter = json_schema_converter({"json.fail.invalid.schema": "true"}, False, lake)
    with pytest.raises(DataError, match="has no schema"):
        converter.from_connect("t", None, object())
    with pytest.raises(DataError, match="Invalid Python object"):
        converter.from_connect("t", INT32, "x")
    with pytest.raises(DataError, match="does not fit its JSON Schema"):
        converter.from_connect("t", COLOR, "GREEN")
    for data in (b"", b"\x00\x00\x00\x00\x63x", b"\x01abc"):
        with pytest.raises(DataError):
            converter.to_connect("t", data)
    good = converter.from_connect("u", STRING, "long enough")
    with pytest.raises(DataError, match="can't be read as JSON"):
        converter.to_connect("u", good[:-1])
    with pytest.raises(DataError, match="Did not find matching oneof"):
        converter.to_connect("v", converter.from_connect("v", UNION, {f"{ONE_OF}.field.1": 7})[:5] + b"[]")
    with pytest.raises(DataError, match="refused the schema"):
        converter.from_connect("u", INT32, 1)  # incompatible with the text before
    with pytest.raises(ConnectConfigError, match=r"schema\.registry\.url is missing"):
        json_schema_converter({}, False, None)


def test_what_no_branch_and_no_map_has_is_refused():
    with pytest.raises(DataError, match='"other" is not a valid field name'):
        to_json(struct_of({"a": INT32.as_optional()}, name=ONE_OF), {"other": 1}, registry=True)
    with pytest.raises(DataError, match="Invalid type for MAP"):
        from_json(map_of(array_of(INT32), INT32), [{"key": [1], "value": 1}], registry=True)
