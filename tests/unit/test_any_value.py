"""Whatever a stranger writes as a value, each face that reads values shows it, or says why not in its own way.

An error of another class would end a list, a task or a thread; a crash all of them, and this test.
"""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.clients.schema_registry.json_values import decoder
from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.connect.converters.avro_converter import AvroConverter
from tidelog.connect.converters.json_schema_converter import json_schema_converter
from tidelog.connect.converters.protobuf_converter import protobuf_converter
from tidelog.connect.converters.table import converter_plugin
from tidelog.connect.data.errors import DataError
from tidelog.console.base.console import Console
from tidelog.console.records.forms import FORMATS, ValueForms
from tidelog.log.lake import Lake
from tidelog.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from tidelog.schema_registry.avro import AvroDeserializer
from tidelog.schema_registry.json_schema import JSONDeserializer

TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [
        {"name": "children", "type": {"type": "array", "items": "Tree"}},
        {"name": "named", "type": {"type": "map", "values": ["null", "Tree", "double"]}},
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2}]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
    ],
}
FLAT = {
    "type": "record",
    "name": "Flat",
    "fields": [
        {"name": "nulls", "type": {"type": "array", "items": "null"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    ],
}
ANYTHING = {"properties": {"n": {"$ref": "#"}, "price": {"type": "number"}, "count": {"type": "integer"}}}
PROTO = """syntax = "proto3"; import "google/protobuf/struct.proto"; import "google/protobuf/any.proto";
import "google/protobuf/duration.proto"; import "google/protobuf/timestamp.proto";
message M { google.protobuf.Value v = 1; google.protobuf.Any any = 2; M m = 3; repeated int32 n = 4;
google.protobuf.Duration d = 5; google.protobuf.Timestamp t = 6; string s = 7; map<string, M> named = 8; }"""
SCHEMAS = (
    Schema(json.dumps(TREE)),
    Schema(json.dumps(FLAT)),
    Schema('"bytes"'),
    Schema(json.dumps(ANYTHING), "JSON"),
    Schema(PROTO, "PROTOBUF"),
)
_REFUSED = (SerializationError, SchemaRegistryError)
CONTEXT = SerializationContext("t", MessageField.VALUE, [])


@pytest.fixture(scope="module")
def faces():
    """{name: (what reads a value, the errors by which it may refuse it)}."""
    with Lake("memory://any-value", create=True) as lake, SchemaRegistryClient({"lake": lake}) as client:
        for at, schema in enumerate(SCHEMAS):
            client.register_schema(f"s{at}-value", schema)
        with Console(lake) as console:
            forms, found = ValueForms(console), {}
            for kind in ("avro", "json", "protobuf"):
                found[f"consume --value-as {kind}"] = _decoding(decoder(kind, client)), _REFUSED
            avro, text = AvroDeserializer(client), JSONDeserializer(None, schema_registry_client=client)
            found["AvroDeserializer"] = _decoding(avro), _REFUSED
            found["JSONDeserializer"] = _decoding(text), _REFUSED
            own: dict[str, str] = {}
            plain = converter_plugin("org.apache.kafka.connect.json.JsonConverter")
            for name, converter in {
                "AvroConverter": AvroConverter(client),
                "JsonSchemaConverter": json_schema_converter(own, False, lake),
                "ProtobufConverter": protobuf_converter(own, False, lake),
                "JsonConverter": plain.make({}, False, lake),
                "JsonConverter without schemas": plain.make({"schemas.enable": "false"}, False, lake),
                "SimpleHeaderConverter": converter_plugin(
                    "org.apache.kafka.connect.storage.SimpleHeaderConverter"
                ).make({}, False, lake),
            }.items():
                found[name] = _converting(converter), DataError
            for form in FORMATS:
                found[f"console {form}"] = _showing(forms, form), ()
            found["console path"] = (lambda value: forms.as_json("t", value)), ValueError
            yield found
            forms.close()


def _decoding(decode):
    return lambda value: decode(value, CONTEXT)


def _converting(converter):
    return lambda value: converter.to_connect("t", value)


def _showing(forms, form):
    return lambda value: (forms.shown(value, form, "t", whole=False), forms.shown(value, form, "t", whole=True))


def repeated(*parts):
    """Bytes that are deep or long: some of these, many times."""
    begin, middle, end = parts
    return st.tuples(begin, st.integers(0, 20_000), middle, end).map(lambda one: one[0] + one[2] * one[1] + one[3])


SMALL = st.binary(max_size=6)
PAYLOADS = (
    st.binary(max_size=200)
    | repeated(SMALL, st.binary(min_size=1, max_size=3), SMALL)
    | repeated(st.just(b""), st.sampled_from([b"[", b'{"n":', b'{"a":[', b"[[],", b'"', b"9", b"-0.", b"\\ud8"]), SMALL)
    | st.integers(0, 2_000).map(lambda depth: b'{"n":' * depth + b"{}" + b"}" * depth)
    | st.integers(0, 2_000).map(lambda depth: b"[" * depth + b"]" * depth)
    | st.sampled_from([b'{"price": 1e%d}', b'{"count": 1e%d}', b'{"count": -1.5e-%d}', b"1e%d"]).flatmap(
        lambda text: st.integers(0, 10**12).map(lambda exponent: text % exponent)
    )
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["n", "price", "x"]), inner),
        max_leaves=20,
    ).map(lambda value: json.dumps(value).encode())
)
PREFIXES = st.sampled_from(
    [b"", *(b"\0" + struct.pack(">I", number) for number in range(7)), b"\0" + struct.pack(">I", 5) + b"\0"]
)


@given(PREFIXES, PAYLOADS)
def test_every_face_reads_any_value_or_refuses_it(faces, prefix, payload):
    value = prefix + payload
    for name, (read, refusals) in faces.items():
        try:
            read(value)
        except refusals:
            continue
        except Exception as error:
            raise AssertionError(f"{name} of {value[:60]!r}: {type(error).__name__}: {error}") from error
