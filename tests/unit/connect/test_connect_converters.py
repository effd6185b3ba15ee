"""Converters: Connect's data as bytes, and back."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.converters.base import schema_of
from tidelog.connect.converters.json_converter import JsonConverter, schema_as_json, schema_of_json
from tidelog.connect.converters.table import CONVERTERS, converter_plugin
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
    array_of,
    date_schema,
    decimal_schema,
    map_of,
    struct_of,
    time_schema,
    timestamp_schema,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
PERSON = struct_of({"name": STRING, "age": INT32.as_optional()}, name="Person", version=2, doc="who")

# (schema, value, payload of the envelope): those of Kafka's JsonConverterTest, and what its rules say of others.
ENVELOPES = [
    (BOOLEAN, True, True),
    (INT8, 12, 12),
    (INT16, 12, 12),
    (INT32, 12, 12),
    (INT64, 4398046511104, 4398046511104),
    (FLOAT32, 12.5, 12.5),
    (FLOAT64, 12.5, 12.5),
    (BYTES, b"test-string", "dGVzdC1zdHJpbmc="),
    (STRING, "test-string", "test-string"),
    (STRING.as_optional(), None, None),
    (array_of(INT32), [1, 2, 3], [1, 2, 3]),
    (map_of(STRING, INT32), {"key1": 12, "key2": 15}, {"key1": 12, "key2": 15}),
    (map_of(INT32, INT32), {1: 12, 2: 15}, [[1, 12], [2, 15]]),
    (map_of(STRING.as_optional(), INT32), {"a": 12}, [["a", 12]]),
    (PERSON, {"name": "Ada", "age": None}, {"name": "Ada", "age": None}),
    (decimal_schema(2), Decimal("1.56"), "AJw="),
    (decimal_schema(0), Decimal(-128), "gA=="),
    (date_schema(), date(2004, 2, 29), 12477),
    (time_schema(), time(4, 0, 0, 1000), 14400001),
    (timestamp_schema(), NOW, 1767323045678),
]


@pytest.mark.parametrize(("schema", "value", "payload"), ENVELOPES)
def test_json_with_schemas_goes_there_and_back(schema, value, payload):
    converter = JsonConverter()
    written = converter.from_connect("t", schema, value)
    assert json.loads(written) == {"schema": schema_as_json(schema), "payload": payload}
    assert converter.to_connect("t", written) == (schema, value)


@pytest.mark.parametrize(
    ("schema", "shape"),
    [
        (INT32, {"type": "int32", "optional": False}),
        (FLOAT32.as_optional(), {"type": "float", "optional": True}),
        (
            decimal_schema(3, default=Decimal("0.125")),
            {
                "type": "bytes", "optional": False, "name": "org.apache.kafka.connect.data.Decimal", "version": 1,
                "parameters": {"scale": "3"}, "default": "fQ==",
            },
        ),
        (
            PERSON,
            {
                "type": "struct", "optional": False, "name": "Person", "version": 2, "doc": "who",
                "fields": [
                    {"type": "string", "optional": False, "field": "name"},
                    {"type": "int32", "optional": True, "field": "age"},
                ],
            },
        ),
        (
            map_of(STRING, array_of(INT8)),
            {
                "type": "map", "optional": False, "keys": {"type": "string", "optional": False},
                "values": {"type": "array", "optional": False, "items": {"type": "int8", "optional": False}},
            },
        ),
    ],
)  # fmt: skip
def test_schemas_have_connects_form(schema, shape):
    assert schema_as_json(schema) == shape
    assert schema_of_json(shape) == schema


def test_a_null_is_the_default_unless_it_is_to_stay():
    schema = STRING.as_optional()
    with_default = struct_of({"a": type(schema)(schema.type, optional=True, default="x")})
    written = JsonConverter().from_connect("t", with_default, {"a": None})
    assert json.loads(written)["payload"] == {"a": "x"}
    assert JsonConverter(default=False).to_connect("t", written.replace(b'"a":"x"', b'"a":null'))[1] == {"a": None}


def test_json_without_schemas():
    converter = JsonConverter(schemas=False)
    assert converter.from_connect("t", PERSON, {"name": "Ada", "age": 3}) == b'{"name":"Ada","age":3}'
    assert converter.from_connect("t", None, {"a": b"x", "b": [1.5, None]}) == b'{"a":"eA==","b":[1.5,null]}'
    assert converter.from_connect("t", None, None) is None
    assert converter.from_connect("t", STRING.as_optional(), None) is None
    assert converter.to_connect("t", b'{"a":1.5}') == (None, {"a": 1.5})
    assert converter.to_connect("t", None) == (None, None)


def test_decimals_as_numbers_keep_every_digit():
    value, schema = Decimal("12345678901234567890.12"), decimal_schema(2)
    written = JsonConverter(numeric=True).from_connect("t", schema, value)
    assert b"12345678901234567890.12" in written
    assert JsonConverter(numeric=True).to_connect("t", written) == (schema, value)


REFUSED = [
    b"{",
    b"[1]",
    b'{"schema":null}',
    b'{"schema":{"type":"int8"},"payload":1,"more":1}',
    b'{"schema":{},"payload":1}',
    b'{"schema":{"type":"int9"},"payload":1}',
    b'{"schema":{"type":"int8"},"payload":300}',
    b'{"schema":{"type":"int8"},"payload":true}',
    b'{"schema":{"type":"int8"},"payload":null}',
    b'{"schema":{"type":"string"},"payload":1}',
    b'{"schema":{"type":"bytes"},"payload":"*"}',
    b'{"schema":{"type":"array"},"payload":[]}',
    b'{"schema":{"type":"map","keys":{"type":"array","items":{"type":"int8"}},"values":{"type":"int8"}},"payload":[[[1],1]]}',
    b'{"schema":{"type":"map","keys":{"type":"int8"},"values":{"type":"int8"}},"payload":[1]}',
    b'{"schema":{"type":"struct","fields":[{"type":"int8"}]},"payload":{}}',
    b'{"schema":{"type":"struct","fields":[{"type":"int8","field":"a"},{"type":"int8","field":"a"}]},"payload":{}}',
    b'{"schema":{"type":"int32","name":"org.apache.kafka.connect.data.Time"},"payload":-1}',
    b'{"schema":{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp"},"payload":9223372036854775807}',
    b'{"schema":{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"x"}},"payload":""}',
    b'{"schema":{"type":"int8","parameters":{"a":1}},"payload":1}',
    b'{"schema":{"type":"int8","version":"1"},"payload":1}',
    b"[" * 100_000,
    b'{"schema":' + b'{"type":"array","items":' * 500 + b'{"type":"int8"}' + b"}" * 500 + b',"payload":1}',
    b"\xff",
]


@pytest.mark.parametrize("data", REFUSED)
def test_other_bytes_are_refused_with_a_reason(data):
    with pytest.raises(DataError, match=r"[tT]opic:? t"):
        JsonConverter().to_connect("t", data)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INT8, "x"),
        (STRING, None),
        (PERSON, {"name": "a", "shoe": 1}),
        (decimal_schema(1), Decimal("1.25")),
        (None, object()),
        (STRING, "\ud800"),
    ],
)
def test_what_has_no_form_in_json_is_refused(schema, value):
    with pytest.raises(DataError):
        JsonConverter().from_connect("t", schema, value)


def made(name, **config):
    return converter_plugin(name).make(config, False, None)


# (converter, schema, value, bytes, what is read back)
PLAIN = [
    ("StringConverter", STRING, "äb", "äb".encode(), (STRING.as_optional(), "äb")),
    ("string", INT32, 12, b"12", (STRING.as_optional(), "12")),
    ("string", BOOLEAN, True, b"true", (STRING.as_optional(), "true")),
    ("string", None, {"a": 1}, b'{"a":1}', (STRING.as_optional(), '{"a":1}')),
    ("string", None, None, None, (STRING.as_optional(), None)),
    ("bytes", BYTES, b"x", b"x", (BYTES.as_optional(), b"x")),
    ("ByteArrayConverter", None, None, None, (BYTES.as_optional(), None)),
    ("LongConverter", INT64, 1, b"\0" * 7 + b"\1", (INT64.as_optional(), 1)),
    ("IntegerConverter", INT32, -1, b"\xff" * 4, (INT32.as_optional(), -1)),
    ("ShortConverter", INT16, 258, b"\1\2", (INT16.as_optional(), 258)),
    ("DoubleConverter", FLOAT64, 1.0, b"?\xf0" + b"\0" * 6, (FLOAT64.as_optional(), 1.0)),
    ("FloatConverter", FLOAT32, 1.0, b"?\x80\0\0", (FLOAT32.as_optional(), 1.0)),
    ("org.apache.kafka.connect.converters.BooleanConverter", BOOLEAN, True, b"\1", (BOOLEAN.as_optional(), True)),
]


@pytest.mark.parametrize(("name", "schema", "value", "data", "back"), PLAIN)
def test_texts_bytes_and_numbers(name, schema, value, data, back):
    assert made(name).from_connect("t", schema, value) == data
    assert made(name).to_connect("t", data) == back


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [("bytes", "x", None), ("LongConverter", "1", b"1"), ("ShortConverter", 70000, b"123"),
     ("IntegerConverter", True, b""),
     ("string", "\ud800", b"\xff")],
)  # fmt: skip
def test_what_they_do_not_take(name, value, data):
    with pytest.raises(DataError):
        made(name).from_connect("t", None, value)
    if data is not None:
        with pytest.raises(DataError):
            made(name).to_connect("t", data)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("12", INT8, 12),
        ("300", INT16, 300),
        ("70000", INT32, 70000),
        ("-9999999999", INT64, -9999999999),
        ("1.5", FLOAT64, 1.5),
        ("true", BOOLEAN, True),
        ("null", None, None),
        ("abc", STRING, "abc"),
        ("[1, 2]", array_of(INT64), [1, 2]),
        ("[1", STRING, "[1"),
        ('{"a": "b"}', map_of(STRING, STRING), {"a": "b"}),
    ],
)
def test_headers_are_read_with_the_smallest_schema(text, schema, value):
    assert made("SimpleHeaderConverter").to_connect("t", text.encode()) == (schema, value)


def test_headers_are_written_as_texts():
    converter = made("SimpleHeaderConverter")
    assert [converter.from_connect("t", None, one) for one in ("a", 1, None, [1])] == [b"a", b"1", None, b"[1]"]
    assert converter.to_connect("t", b"\xff")[1] == "\ufffd"


def test_configuration_of_converters():
    assert made("json", **{"schemas.enable": "false"}).from_connect("t", STRING, "a") == b'"a"'
    assert made("json", **{"decimal.format": "numeric"}).from_connect("t", None, Decimal("1.5")).endswith(b":1.5}")
    assert made("string", **{"converter.encoding": "latin-1"}).from_connect("t", STRING, "ä") == b"\xe4"
    with pytest.raises(ConnectConfigError, match="no encoding"):
        made("string", **{"converter.encoding": "utf-99"})
    with pytest.raises(ConnectConfigError, match="JsonConverter"):
        converter_plugin("XmlConverter")
    assert [one for one in CONVERTERS if one.headers_only] == [converter_plugin("SimpleHeaderConverter")]


def test_schemas_of_values():
    assert schema_of([1, "a"]) is None
    assert schema_of({"a": [b"x"]}) == map_of(STRING, array_of(BYTES))
    assert schema_of(object()) is None


@pytest.mark.parametrize("number", ["1e999999999", "-1.5E+100001", "1e-999999999"])
def test_a_number_is_not_written_out_at_any_length(number):
    """A value of 12 bytes would take a gigabyte, and the worker's time."""
    for kind in ("int64", "double"):
        envelope = f'{{"schema": {{"type": "{kind}"}}, "payload": {number}}}'
        with pytest.raises(DataError, match="100000 digits"):
            JsonConverter().to_connect("t", envelope.encode())
