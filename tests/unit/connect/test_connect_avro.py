"""The Avro converter: Confluent's forms of schemas, values there and back, and a registry that refuses."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.converters.avro_converter import AvroConverter, avro_converter
from tidelog.connect.converters.avro_schemas import UNION, AvroWriter, connect_schema_of
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
from tidelog.schema_registry import Schema, SchemaRegistryClient
from tidelog.schema_registry.avro import AvroSerializer
from tidelog.schemas.avro.reading import read

LOGICAL = "org.apache.kafka.connect.data."

# (Connect's schema, Avro's)
SCHEMAS = [
    (BOOLEAN, "boolean"),
    (INT8, {"type": "int", "connect.type": "int8"}),
    (INT16, {"type": "int", "connect.type": "int16"}),
    (INT32, "int"),
    (INT64, "long"),
    (FLOAT32, "float"),
    (FLOAT64, "double"),
    (STRING, "string"),
    (BYTES, "bytes"),
    (STRING.as_optional(), ["null", "string"]),
    (ConnectSchema(SchemaType.INT32, doc="d", version=2, name="n"),
     {"type": "int", "connect.doc": "d", "connect.version": 2, "connect.name": "n"}),
    (ConnectSchema(SchemaType.INT32, optional=True, default=5), [{"type": "int", "connect.default": 5}, "null"]),
    (decimal_schema(2),
     {"type": "bytes", "scale": 2, "precision": 64, "connect.version": 1, "connect.parameters": {"scale": "2"},
      "connect.name": f"{LOGICAL}Decimal", "logicalType": "decimal"}),
    (date_schema(), {"type": "int", "connect.version": 1, "connect.name": f"{LOGICAL}Date", "logicalType": "date"}),
    (time_schema(),
     {"type": "int", "connect.version": 1, "connect.name": f"{LOGICAL}Time", "logicalType": "time-millis"}),
    (timestamp_schema(),
     {"type": "long", "connect.version": 1, "connect.name": f"{LOGICAL}Timestamp", "logicalType": "timestamp-millis"}),
    (array_of(INT32.as_optional()), {"type": "array", "items": ["null", "int"]}),
    (map_of(STRING, INT64), {"type": "map", "values": "long"}),
    (map_of(INT32, STRING),
     {"type": "array", "items": {"type": "record", "name": "MapEntry", "namespace": "io.confluent.connect.avro",
      "connect.internal.type": "MapEntry",
      "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}]}}),
    (struct_of({"a": ConnectSchema(SchemaType.STRING, doc="why", default="x"), "b": INT32.as_optional()},
               name="com.x.R", version=3, doc="r"),
     {"type": "record", "name": "R", "namespace": "com.x", "connect.doc": "r", "connect.version": 3,
      "connect.name": "com.x.R", "fields": [
         {"name": "a", "type": {"type": "string", "connect.doc": "why", "connect.default": "x"}, "doc": "why",
          "default": "x"},
         {"name": "b", "type": ["null", "int"], "default": None}]}),
    (struct_of({"a": struct_of({"x": INT32})}),
     {"type": "record", "name": "ConnectDefault", "namespace": "io.confluent.connect.avro", "fields": [
         {"name": "a", "type": {"type": "record", "name": "ConnectDefault2", "namespace": "io.confluent.connect.avro",
                                "fields": [{"name": "x", "type": "int"}]}}]}),
    (struct_of({"a": struct_of({"x": INT32}, name="P"), "b": struct_of({"x": INT32}, name="P").as_optional()},
               name="R"),
     {"type": "record", "name": "R", "connect.name": "R", "fields": [
         {"name": "a", "type": {"type": "record", "name": "P", "connect.name": "P",
                                "fields": [{"name": "x", "type": "int"}]}},
         {"name": "b", "type": ["null", "P"], "default": None}]}),
]  # fmt: skip


def tree(avro):
    return read(json.dumps(avro), strict=False)[0]


@pytest.mark.parametrize(("connect", "avro"), SCHEMAS)
def test_schemas_have_confluents_form_and_come_back(connect, avro):
    assert AvroWriter().schema(connect) == avro
    assert connect_schema_of(tree(avro)) == connect


@pytest.mark.parametrize(
    ("avro", "connect"),
    [
        ({"type": "enum", "name": "E", "namespace": "n", "symbols": ["A"]},
         ConnectSchema(SchemaType.STRING, name="n.E", parameters={
             "io.confluent.connect.avro.Enum": "n.E", "io.confluent.connect.avro.Enum.A": "A"})),
        ({"type": "fixed", "name": "F", "size": 4},
         ConnectSchema(SchemaType.BYTES, name="F", parameters={"connect.fixed.size": "4"})),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
         decimal_schema(2, parameters={"connect.decimal.precision": "9"})),
        ({"type": "long", "logicalType": "timestamp-micros"}, INT64),
        (["int", "null"], INT32.as_optional()),
        (["int"], INT32),
        (["null", "int", "string"],
         struct_of({"int": INT32.as_optional(), "string": STRING.as_optional()}, name=UNION, optional=True)),
        ({"type": "record", "name": "R", "fields": [{"name": "d", "type": "bytes", "default": "\u00ff"}]},
         struct_of({"d": ConnectSchema(SchemaType.BYTES, default=b"\xff")}, name="R")),
    ],
)  # fmt: skip
def test_schemas_of_others(avro, connect):
    assert connect_schema_of(tree(avro)) == connect


def test_schemas_without_a_form_are_refused():
    with pytest.raises(DataError, match="Two structs of one schema are named P"):
        AvroWriter().schema(struct_of({"a": struct_of({}, name="P"), "b": struct_of({"x": INT32}, name="P")}, name="R"))
    with pytest.raises(DataError, match="has itself inside"):
        connect_schema_of(tree({"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}))
    with pytest.raises(DataError, match="a null that is no branch of a union"):
        connect_schema_of(tree({"type": "array", "items": "null"}))


@pytest.fixture
def client(tmp_path):
    client = SchemaRegistryClient({"lake": Lake(tmp_path)})
    yield client
    client.close()


VALUES = [
    (INT8, -5),
    (INT64, 1 << 40),
    (FLOAT64, 0.5),
    (STRING, "ä"),
    (BYTES, b"\x00\xff"),
    (BOOLEAN, True),
    (decimal_schema(2), Decimal("-12.30")),
    (date_schema(), date(2026, 1, 2)),
    (time_schema(), time(3, 4, 5, 6000)),
    (timestamp_schema(), datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)),
    (array_of(INT32.as_optional()), [1, None]),
    (map_of(STRING, decimal_schema(1)), {"a": Decimal("1.5")}),
    (map_of(INT32, STRING), {1: "a", 2: "b"}),
    (struct_of({"a": STRING.as_optional(), "s": struct_of({"x": INT32}, optional=True)}, name="R"),
     {"a": None, "s": {"x": 1}}),
    (struct_of({"int": INT32.as_optional(), "string": STRING.as_optional()}, name=UNION), {"string": "x"}),
]  # fmt: skip


@pytest.mark.parametrize("is_key", [True, False])
def test_values_come_back_as_they_were(client, is_key):
    converter = AvroConverter(client, is_key=is_key)
    for number, (schema, value) in enumerate(VALUES):
        topic = f"t{number}"
        data = converter.from_connect(topic, schema, value)
        assert data[0] == 0
        assert converter.to_connect(topic, data) == (schema, value)
        assert client.get_versions(f"{topic}-{'key' if is_key else 'value'}") == [1]
    assert converter.from_connect("t", INT32, None) is None
    assert converter.to_connect("t", None) == (None, None)


def test_missing_fields_have_their_defaults(client):
    schema = struct_of({"a": ConnectSchema(SchemaType.INT32, default=7), "b": INT32.as_optional()}, name="R")
    converter = AvroConverter(client)
    data = converter.from_connect("t", schema, {})
    assert converter.to_connect("t", data)[1] == {"a": 7, "b": None}


def test_what_other_clients_wrote_is_read_by_their_schema(client):
    text = json.dumps({"type": "record", "name": "R", "fields": [
        {"name": "u", "type": ["null", {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}]},
        {"name": "m", "type": {"type": "long", "logicalType": "timestamp-micros"}}]})  # fmt: skip
    data = AvroSerializer(client, Schema(text, "AVRO"))(
        {"u": {"x": 1}, "m": 5}, SerializationContext("t", MessageField.VALUE)
    )
    schema, value = AvroConverter(client).to_connect("t", data)
    assert value == {"u": {"x": 1}, "m": 5}
    assert [field.schema.name for field in schema.fields] == ["P", None]


def test_bad_input_is_a_data_error(client):
    converter = AvroConverter(client)
    with pytest.raises(DataError, match="has no schema"):
        converter.from_connect("t", None, object())
    with pytest.raises(DataError, match="Invalid"):
        converter.from_connect("t", INT32, "x")
    for data in (b"", b"\x00\x00\x00\x00\x63x", b"\x01abc"):
        with pytest.raises(DataError):
            converter.to_connect("t", data)
    good = converter.from_connect("t", STRING, "long enough")
    with pytest.raises(DataError, match="can't be read as Avro"):
        converter.to_connect("t", good[:-3])
    with pytest.raises(DataError, match="refused the schema"):
        converter.from_connect("t", INT32, 1)  # incompatible with the text before


def test_the_configuration_names_a_registry(tmp_path):
    lake = Lake(tmp_path)
    converter = avro_converter({"auto.register.schemas": "false"}, False, lake)
    with pytest.raises(DataError, match="refused the schema"):
        converter.from_connect("t", INT32, 1)
    converter.close()
    with pytest.raises(ConnectConfigError, match=r"schema\.registry\.url is missing"):
        avro_converter({}, False, None)


def test_values_that_strangers_wrote_fail_their_record_alone():
    """fastavro reads by recursion, in C, and as much as a payload claims: a few bytes end a process."""
    wide = {"type": "record", "name": "R0", "fields": []}
    for at in range(1, 41):  # 2 to the power of 40 records, in no bytes at all
        fields = [{"name": "a", "type": wide}, {"name": "b", "type": f"R{at - 1}"}]
        wide = {"type": "record", "name": f"R{at}", "fields": fields}
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    nulls = {"type": "array", "items": {"type": "record", "name": "E", "fields": []}}
    with Lake("memory://strangers", create=True) as lake, SchemaRegistryClient({"lake": lake}) as client:
        converter = AvroConverter(client)
        for name, schema, payload in (
            ("deep", node, b"\x02" * 30_000 + b"\0"),
            ("many", nulls, b"\x80\x80\x80\x80\x80\x20"),
            ("wide", wide, b""),
        ):
            number = client.register_schema(name, Schema(json.dumps(schema)))
            with pytest.raises(DataError):
                converter.to_connect("t", b"\0" + number.to_bytes(4, "big") + payload)
        assert converter.to_connect("t", b"\0\0\0\0\2\x02\0")[1] == [{}]
