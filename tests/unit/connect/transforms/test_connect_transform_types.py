"""Cast, TimestampConverter and Flatten: Kafka's own cases as rows."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest
from support.connect_records import source_record, transformed

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.data.errors import ConnectError, DataError
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
    check_value,
    date_schema,
    decimal_schema,
    map_of,
    struct_of,
    time_schema,
    timestamp_schema,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = date(1970, 1, 2)
OPTIONAL_10 = ConnectSchema(SchemaType.INT32, optional=True, default=10)

# --- Cast --------------------------------------------------------------------------------------------------

# (schema, value, target, what it becomes)
CASTS = [
    (INT32, 42, "int8", 42),
    (INT32, 300, "int8", 44),
    (INT32, -129, "int8", 127),
    (INT32, 42, "int16", 42),
    (INT32, 42, "int32", 42),
    (INT32, 42, "int64", 42),
    (INT32, 42, "float32", 42.0),
    (INT32, 42, "float64", 42.0),
    (INT32, 42, "boolean", True),
    (INT32, 0, "boolean", False),
    (INT32, 42, "string", "42"),
    (INT64, (1 << 40) + 5, "int32", 5),
    (BOOLEAN, True, "int8", 1),
    (BOOLEAN, False, "float64", 0.0),
    (BOOLEAN, True, "string", "true"),
    (FLOAT32, 42.125, "int32", 42),
    (FLOAT64, -64.9, "int64", -64),
    (FLOAT64, 1e20, "int64", (1 << 63) - 1),
    (FLOAT64, 1e20, "int32", (1 << 31) - 1),
    (FLOAT64, 1e20, "int8", -1),
    (FLOAT64, float("nan"), "int32", 0),
    (FLOAT64, 0.5, "boolean", False),
    (FLOAT64, 0.1, "float32", 0.10000000149011612),
    (FLOAT64, 42.0, "string", "42.0"),
    (FLOAT64, 1e10, "string", "1.0E10"),
    (FLOAT64, 1.5e-5, "string", "1.5E-5"),
    (FLOAT64, float("-inf"), "string", "-Infinity"),
    (FLOAT32, 0.10000000149011612, "string", "0.1"),
    (STRING, "42", "int32", 42),
    (STRING, "+42", "int64", 42),
    (STRING, "1.5", "float64", 1.5),
    (STRING, " 1e3f ", "float32", 1000.0),
    (STRING, "-Infinity", "float64", float("-inf")),
    (STRING, "TRUE", "boolean", True),
    (STRING, "yes", "boolean", False),
    (BYTES, bytes.fromhex("fedcba9876543210"), "string", "/ty6mHZUMhA="),
]


@pytest.mark.parametrize(("schema", "value", "target", "found"), CASTS)
def test_cast_with_and_without_schema(schema, value, target, found):
    kind = "double" if target == "float64" else "float" if target == "float32" else target
    got = transformed("Cast$Value", {"spec": target}, source_record(schema, value))
    assert (got.value_schema, got.value) == (ConnectSchema(SchemaType(kind)), found)
    assert type(got.value) is type(found)
    got = transformed("Cast$Key", {"spec": f"f:{target}"}, source_record(struct_of({"f": schema}), {"f": value}, "Key"))
    assert got.key == {"f": found}
    assert got.key_schema == struct_of({"f": ConnectSchema(SchemaType(kind))})
    if schema is not FLOAT32:  # without schema, floats are double
        got = transformed("Cast$Value", {"spec": target}, source_record(None, value))
        assert (got.value_schema, got.value) == (None, found)


LOGICAL_CASTS = [
    (date_schema(), DAY, "int32", 1),
    (timestamp_schema(), EPOCH, "int64", 0),
    (time_schema(), time(0, 0, 0, 1000), "int64", 1),
    (decimal_schema(0), Decimal(1 << 31), "int32", -(1 << 31)),
    (timestamp_schema(), datetime(2026, 1, 2, tzinfo=UTC), "float64", 1767312000000.0),
    (timestamp_schema(optional=True), None, "int32", None),
    (decimal_schema(0), Decimal(1982), "string", "1982"),
    (date_schema(), DAY, "string", "1970-01-02"),
    (time_schema(), time(1, 0), "string", "01:00:00.000Z"),
    (timestamp_schema(), EPOCH + timedelta(days=1, milliseconds=1), "string", "1970-01-02T00:00:00.001Z"),
]


@pytest.mark.parametrize(("schema", "value", "target", "found"), LOGICAL_CASTS)
def test_cast_of_logical_types(schema, value, target, found):
    record = source_record(struct_of({"f": schema}), {"f": value})
    got = transformed("Cast$Value", {"spec": f"f:{target}"}, record)
    assert got.value == {"f": found}
    check_value(got.value_schema, got.value)
    if value is not None:
        whole = transformed("Cast$Value", {"spec": target}, source_record(schema, value))
        check_value(whole.value_schema, whole.value)
        assert whole.value == found


@pytest.mark.parametrize(
    ("schema", "value"),
    [(None, ["foo"]), (None, {"a": 1}), (None, Decimal(1)), (array_of(INT32), [1]), (struct_of({}), {})],
)
def test_cast_refuses_what_is_no_scalar(schema, value):
    with pytest.raises(DataError, match="does not support casting from"):
        transformed("Cast$Value", {"spec": "int8"}, source_record(schema, value))


@pytest.mark.parametrize(
    ("value", "target"), [("300", "int8"), ("4_2", "int32"), ("x", "float64"), (" 1", "int32"), ("", "int8")]
)
def test_cast_refuses_texts_that_are_no_such_number(value, target):
    with pytest.raises(DataError, match="was out of range for requested data type"):
        transformed("Cast$Value", {"spec": target}, source_record(None, value))


def test_cast_refuses_bytes_as_numbers():
    with pytest.raises(DataError, match="Binary values"):
        transformed("Cast$Value", {"spec": "int8"}, source_record(None, b"1"))


@pytest.mark.parametrize("schema", [None, STRING, struct_of({"foo": INT32})])
@pytest.mark.parametrize("side", ["Key", "Value"])
def test_cast_leaves_null_alone(schema, side):
    record = source_record(schema, None, side)
    assert transformed(f"Cast${side}", {"spec": "foo:int64"}, record) is record


def test_cast_casts_defaults_of_schemas():
    schema = ConnectSchema(SchemaType.FLOAT32, default=-42.125)
    found = transformed("Cast$Value", {"spec": "int32"}, source_record(schema, 42.125))
    assert (found.value_schema, found.value) == (ConnectSchema(SchemaType.INT32, default=-42), 42)
    schema = struct_of(
        {"a": ConnectSchema(SchemaType.FLOAT64, default=-1.125), "b": INT16.as_optional()}, default={"a": 1.0}
    )
    found = transformed("Cast$Value", {"spec": "a:boolean,b:int32"}, source_record(schema, {"a": -64.0, "b": 16}))
    assert found.value == {"a": True, "b": 16}
    assert found.value_schema == struct_of(
        {"a": ConnectSchema(SchemaType.BOOLEAN, default=True), "b": INT32.as_optional()}, default={"a": True, "b": None}
    )


@pytest.mark.parametrize(("replaces", "value"), [("true", "10"), ("false", None)])
def test_cast_replaces_null_with_defaults_when_asked(replaces, value):
    record = source_record(struct_of({"magic": OPTIONAL_10}), {"magic": None})
    found = transformed("Cast$Value", {"spec": "magic:string", "replace.null.with.default": replaces}, record)
    assert found.value == {"magic": value}
    assert found.value_schema.fields[0].schema.type is SchemaType.STRING


@pytest.mark.parametrize(
    "spec", ["", "foo:faketype", "foo:array", "array", "foo:bytes", "foo:int8:extra", "foo:int8,int32"]
)
def test_cast_refuses_specs(spec):
    with pytest.raises(ConnectConfigError):
        transformed("Cast$Key", {"spec": spec}, source_record(None, {}))


# --- TimestampConverter ------------------------------------------------------------------------------------

PATTERN = "yyyy MM dd HH mm ss SSS z"
MOMENT = EPOCH + timedelta(days=1, milliseconds=1234)
MOMENT_MS, TEXT = 86_401_234, "1970 01 02 00 00 01 234 UTC"
FORMS = {
    "Timestamp": (timestamp_schema(), MOMENT),
    "Date": (date_schema(), DAY),
    "Time": (time_schema(), time(0, 0, 1, 234_000)),
    "unix": (INT64, MOMENT_MS),
    "string": (STRING, TEXT),
}


@pytest.mark.parametrize("target", FORMS)
@pytest.mark.parametrize("with_schema", [True, False])
def test_timestamps_become_every_form(target, with_schema):
    schema, expected = FORMS[target]
    record = source_record(timestamp_schema() if with_schema else None, MOMENT)
    found = transformed("TimestampConverter$Value", {"target.type": target, "format": PATTERN}, record)
    assert (found.value_schema, found.value) == (schema if with_schema else None, expected)
    assert type(found.value) is type(expected)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("Timestamp", MOMENT),
        ("unix", MOMENT),
        ("string", MOMENT),
        ("Date", EPOCH + timedelta(days=1)),
        ("Time", EPOCH + timedelta(milliseconds=1234)),
    ],
)
@pytest.mark.parametrize("with_schema", [True, False])
def test_every_form_becomes_a_timestamp(form, expected, with_schema):
    schema, value = FORMS[form]
    record = source_record(schema if with_schema else None, value, "Key")
    found = transformed("TimestampConverter$Key", {"target.type": "Timestamp", "format": PATTERN}, record)
    assert (found.key_schema, found.key) == (timestamp_schema() if with_schema else None, expected)


@pytest.mark.parametrize("target", FORMS)
@pytest.mark.parametrize("form", FORMS)
def test_null_stays_null_of_the_new_schema(form, target):
    source, converted = (FORMS[one][0].as_optional() for one in (form, target))
    config = {"target.type": target, "format": PATTERN}
    found = transformed("TimestampConverter$Value", config, source_record(source, None))
    assert (found.value_schema, found.value) == (converted, None)
    config["field"] = "ts"
    for optional in (False, True):
        schema = struct_of({"ts": source, "other": STRING}, optional=optional)
        value = None if optional else {"ts": None, "other": "test"}
        found = transformed("TimestampConverter$Value", config, source_record(schema, value))
        assert found.value_schema == struct_of({"ts": converted, "other": STRING}, optional=optional)
        assert found.value == value
    assert transformed("TimestampConverter$Value", config, source_record(None, None)).value is None


@pytest.mark.parametrize(
    ("precision", "unix", "expected"),
    [
        ("seconds", 86_401, EPOCH + timedelta(days=1, seconds=1)),
        ("milliseconds", MOMENT_MS, MOMENT),
        ("microseconds", MOMENT_MS * 1000 + 123, MOMENT),
        ("nanoseconds", (MOMENT_MS * 1000 + 123) * 1000 + 456, MOMENT),
        ("microseconds", -1_999, EPOCH - timedelta(milliseconds=1)),
    ],
)
def test_unix_numbers_are_of_a_precision(precision, unix, expected):
    config = {"target.type": "Timestamp", "field": "ts", "unix.precision": precision}
    found = transformed("TimestampConverter$Value", config, source_record(struct_of({"ts": INT64}), {"ts": unix}))
    assert found.value == {"ts": expected}
    assert found.value_schema == struct_of({"ts": timestamp_schema()})
    assert transformed("TimestampConverter$Value", config, source_record(None, {"ts": unix})).value == {"ts": expected}


@pytest.mark.parametrize(
    ("precision", "unix"),
    [("seconds", 86_401), ("microseconds", 86_401_234_000), ("nanoseconds", 86_401_234_000_000)],
)
def test_texts_become_unix_numbers_of_a_precision(precision, unix):
    config = {"target.type": "unix", "unix.precision": precision, "format": PATTERN}
    assert transformed("TimestampConverter$Value", config, source_record(None, TEXT)).value == unix


@pytest.mark.parametrize(("replaces", "value"), [("true", EPOCH), ("false", None)])
def test_timestamps_of_defaults_where_asked(replaces, value):
    ts = ConnectSchema(SchemaType.INT64, optional=True, default=0)
    record = source_record(struct_of({"ts": ts, "other": STRING}), {"ts": None, "other": "test"})
    config = {"target.type": "Timestamp", "field": "ts", "replace.null.with.default": replaces}
    found = transformed("TimestampConverter$Value", config, record)
    assert found.value == {"ts": value, "other": "test"}
    assert found.value_schema == struct_of({"ts": timestamp_schema(optional=True), "other": STRING})


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"target.type": "invalid"},
        {"target.type": "unix", "unix.precision": "invalid"},
        {"target.type": "string"},
        {"target.type": "string", "format": "bad-format"},
    ],
)
def test_timestamp_converter_refuses_configurations(config):
    with pytest.raises(ConnectConfigError):
        transformed("TimestampConverter$Value", config, source_record(None, None))


@pytest.mark.parametrize(
    ("schema", "value", "error"),
    [
        (None, 1.5, DataError),
        (None, True, DataError),
        (None, "1970", DataError),
        (INT32, 1, ConnectError),
        (None, 1 << 62, DataError),
    ],
)
def test_timestamp_converter_refuses_values_that_are_no_instants(schema, value, error):
    with pytest.raises(error, match=r"timestamp|Timestamp"):
        transformed("TimestampConverter$Value", {"target.type": "Date"}, source_record(schema, value))


def test_a_text_that_does_not_match_the_pattern_is_refused():
    with pytest.raises(DataError, match="does not match the pattern"):
        transformed(
            "TimestampConverter$Value", {"target.type": "Date", "format": "yyyy"}, source_record(None, "no year")
        )


# --- Flatten -----------------------------------------------------------------------------------------------

LEAVES = {
    "int8": (INT8, 8), "int16": (INT16, 16), "int32": (INT32, 32), "int64": (INT64, 64), "float32": (FLOAT32, 32.0),
    "float64": (FLOAT64, 64.0), "boolean": (BOOLEAN, True), "string": (STRING, "stringy"), "bytes": (BYTES, b"bytes"),
}  # fmt: skip
INNER = struct_of({name: schema for name, (schema, _) in LEAVES.items()})
INNER_VALUES = {name: value for name, (_, value) in LEAVES.items()}


@pytest.mark.parametrize(("config", "mark"), [({}, "."), ({"delimiter": "#"}, "#")])
def test_flatten_joins_names(config, mark):
    value = {"A": {"B": INNER_VALUES}, "top": 1}
    flat = {f"A{mark}B{mark}{name}": one for name, one in INNER_VALUES.items()} | {"top": 1}
    assert transformed("Flatten$Value", config, source_record(None, value)).value == flat
    schema = struct_of({"A": struct_of({"B": INNER}), "top": INT32}, name="outer")
    found = transformed("Flatten$Key", config, source_record(schema, value, "Key"))
    assert found.key == flat
    schemas = {f"A{mark}B{mark}{name}": one for name, (one, _) in LEAVES.items()} | {"top": INT32}
    assert found.key_schema == struct_of(schemas, name="outer")


@pytest.mark.parametrize("inner", [{"opt": None}, None])
def test_flatten_of_optional_parents_gives_optional_fields(inner):
    schema = struct_of({"B": struct_of({"opt": INT32}, optional=True)})
    found = transformed("Flatten$Value", {}, source_record(schema, {"B": inner}))
    assert found.value == {"B.opt": None}
    assert found.value_schema == struct_of({"B.opt": INT32.as_optional()})


def test_flatten_takes_defaults_of_parents():
    child = ConnectSchema(SchemaType.STRING, optional=True, default="child")
    parent = struct_of({"req": STRING, "opt": child}, optional=True, default={"req": "parent"})
    found = transformed("Flatten$Value", {}, source_record(struct_of({"p": parent}), {}))
    required = ConnectSchema(SchemaType.STRING, optional=True, default="parent")
    assert found.value_schema == struct_of({"p.req": required, "p.opt": child})
    assert found.value == {"p.req": "parent", "p.opt": "child"}


def test_flatten_leaves_lists_alone():
    value = {"foo": ["bar", {"baz": {"lfg": "lfg"}}]}
    assert transformed("Flatten$Value", {}, source_record(None, value)).value == value
    inner = struct_of({"baz": struct_of({"lfg": STRING})})
    schema = struct_of({"foo": array_of(inner, doc="durk")})
    found = transformed("Flatten$Value", {}, source_record(schema, {"foo": [{"baz": {"lfg": "lfg"}}]}))
    assert (found.value_schema, found.value) == (schema, {"foo": [{"baz": {"lfg": "lfg"}}]})


@pytest.mark.parametrize("schema", [None, struct_of({"a": STRING.as_optional(), "b": STRING.as_optional()})])
def test_flatten_keeps_null_fields_in_their_order(schema):
    value = {"a": None, "b": "x"}
    found = transformed("Flatten$Value", {}, source_record(schema, value))
    assert [*found.value.items()] == [*value.items()]


@pytest.mark.parametrize("schema", [None, struct_of({"magic": INT64.as_optional()})])
def test_flatten_leaves_tombstones_alone(schema):
    record = source_record(schema, None)
    assert transformed("Flatten$Value", {}, record) is record


def test_flatten_refuses_what_it_can_not_flatten():
    with pytest.raises(DataError, match="Only Struct objects supported"):
        transformed("Flatten$Value", {}, source_record(INT32, 42))
    with pytest.raises(DataError, match="Only Map objects supported"):
        transformed("Flatten$Value", {}, source_record(None, 42))
    schema = struct_of({"a": struct_of({"m": map_of(STRING, STRING)})})
    with pytest.raises(DataError, match=r"does not support map .*\(for field a\.m\)"):
        transformed("Flatten$Value", {}, source_record(schema, {"a": {"m": {}}}))
    with pytest.raises(DataError, match="not supported by Connect's data API"):
        transformed("Flatten$Value", {}, source_record(None, {"a": object()}))
