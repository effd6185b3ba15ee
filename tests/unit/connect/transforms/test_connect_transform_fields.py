"""InsertField, ReplaceField, ExtractField, HoistField, ValueToKey and MaskField: Kafka's own cases as rows."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from support.connect_records import sink_record, source_record, transformed

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import (
    BOOLEAN,
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

OPTIONAL_42 = ConnectSchema(SchemaType.INT32, optional=True, default=42)
MAGIC = struct_of({"magic": INT64.as_optional()}, name="name", version=1, doc="doc")
INSERT = {
    "topic.field": "topic_field!",
    "partition.field": "partition_field",
    "timestamp.field": "timestamp_field?",
    "static.field": "instance_id",
    "static.value": "my-instance-id",
}


# --- InsertField -------------------------------------------------------------------------------------------


def test_insert_field_adds_fields_to_a_struct_and_its_schema():
    record = source_record(MAGIC, {"magic": 42}, partition=0, timestamp_ms=789)
    found = transformed("InsertField$Value", INSERT, record)
    assert found.value == {
        "magic": 42,
        "topic_field": "test",
        "partition_field": 0,
        "timestamp_field": datetime.fromtimestamp(0.789, UTC),
        "instance_id": "my-instance-id",
    }
    assert found.value_schema == struct_of(
        {
            "magic": INT64.as_optional(),
            "topic_field": STRING,
            "partition_field": INT32.as_optional(),
            "timestamp_field": timestamp_schema(optional=True),
            "instance_id": STRING.as_optional(),
        },
        name="name",
        version=1,
        doc="doc",
    )


@pytest.mark.parametrize(
    ("side", "timestamp_ms", "inserted"), [("Value", 123, {"timestamp_field": 123}), ("Key", None, {})]
)
def test_insert_field_adds_fields_to_a_map(side, timestamp_ms, inserted):
    record = source_record(None, {"magic": 42}, side=side, partition=0, timestamp_ms=timestamp_ms)
    found = transformed(f"InsertField${side}", INSERT, record)
    expected = {"magic": 42, "topic_field": "test", "partition_field": 0, "instance_id": "my-instance-id"} | inserted
    assert (found.value if side == "Value" else found.key) == expected
    assert (found.value_schema if side == "Value" else found.key_schema) is None


@pytest.mark.parametrize("schema", [None, MAGIC])
@pytest.mark.parametrize("side", ["Key", "Value"])
def test_insert_field_leaves_null_alone(schema, side):
    record = source_record(schema, None, side=side)
    assert transformed(f"InsertField${side}", INSERT, record) is record


def test_insert_field_inserts_offsets_of_sinks_only():
    config = {"offset.field": "o!"}
    assert transformed("InsertField$Value", config, sink_record(None, {}, offset=7)).value == {"o": 7}
    schema = struct_of({})
    assert transformed("InsertField$Value", config, sink_record(schema, {}, offset=7)).value_schema.fields == (
        struct_of({"o": INT64}).fields
    )
    with pytest.raises(DataError, match="a source has none"):
        transformed("InsertField$Value", config, source_record(None, {}))


def test_insert_field_takes_structs_only_where_there_is_a_schema():
    with pytest.raises(DataError, match="Only Struct objects supported"):
        transformed("InsertField$Value", {"topic.field": "topic_field"}, source_record(INT32, 42))


@pytest.mark.parametrize(("replaces", "value"), [("true", 42), ("false", None)])
def test_insert_field_replaces_null_with_defaults_when_asked(replaces, value):
    schema = struct_of({"d": OPTIONAL_42}, name="name")
    found = transformed(
        "InsertField$Value", INSERT | {"replace.null.with.default": replaces}, source_record(schema, {"d": None})
    )
    assert found.value["d"] == value
    assert found.value_schema.fields[0].schema == OPTIONAL_42


@pytest.mark.parametrize("config", [{}, {"static.field": "s"}])
def test_insert_field_needs_something_to_insert(config):
    with pytest.raises(ConnectConfigError, match=r"No field insertion|No value specified for static field"):
        transformed("InsertField$Value", config, source_record(None, {}))


# --- ReplaceField ------------------------------------------------------------------------------------------

FOUR = struct_of({"dont": STRING, "abc": INT32, "foo": BOOLEAN, "etc": STRING})
FOUR_VALUES = {"dont": "whatever", "abc": 42, "foo": True, "etc": "etc"}
RENAMES = {"renames": "abc:xyz,foo:bar"}


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ({"exclude": "dont"} | RENAMES, {"xyz": 42, "bar": True, "etc": "etc"}),
        ({"include": "abc,foo"} | RENAMES, {"xyz": 42, "bar": True}),
        ({"include": "abc,foo", "exclude": "foo"}, {"abc": 42}),
        ({}, FOUR_VALUES),
    ],
)
def test_replace_field_keeps_and_renames(config, fields):
    assert transformed("ReplaceField$Value", config, source_record(None, FOUR_VALUES)).value == fields
    found = transformed("ReplaceField$Value", config, source_record(FOUR, FOUR_VALUES))
    assert found.value == fields
    assert [field.name for field in found.value_schema.fields] == [*fields]


@pytest.mark.parametrize("schema", [None, FOUR])
def test_replace_field_leaves_tombstones_alone(schema):
    record = source_record(schema, None)
    assert transformed("ReplaceField$Value", {"include": "abc,foo"} | RENAMES, record) is record


@pytest.mark.parametrize(("replaces", "value"), [("true", 42), ("false", None)])
@pytest.mark.parametrize("side", ["Key", "Value"])
def test_replace_field_replaces_null_with_defaults_when_asked(side, replaces, value):
    record = source_record(struct_of({"abc": OPTIONAL_42}), {"abc": None}, side=side)
    config = {"include": "abc", "renames": "abc:new", "replace.null.with.default": replaces}
    found = transformed(f"ReplaceField${side}", config, record)
    assert (found.value if side == "Value" else found.key) == {"new": value}


@pytest.mark.parametrize("renames", ["abc", "a:b:c", "a:"])
def test_replace_field_refuses_renames_that_are_no_pairs(renames):
    with pytest.raises(ConnectConfigError, match="Invalid rename mapping"):
        transformed("ReplaceField$Value", {"renames": renames}, source_record(None, {}))


# --- ExtractField ------------------------------------------------------------------------------------------

NESTED = struct_of({"magic": struct_of({"foo": INT32})})
V2 = {"field.syntax.version": "v2"}


@pytest.mark.parametrize(
    ("config", "schema", "value", "found"),
    [
        ({"field": "magic"}, None, {"magic": 42}, (None, 42)),
        ({"field": "magic.foo"} | V2, None, {"magic": {"foo": 42}}, (None, 42)),
        ({"field": "magic"}, None, None, (None, None)),
        ({"field": "magic"}, struct_of({"magic": INT32}), {"magic": 42}, (INT32, 42)),
        ({"field": "magic.foo"} | V2, NESTED, {"magic": {"foo": 42}}, (INT32, 42)),
        ({"field": "magic"}, struct_of({"magic": INT32}, optional=True), None, (INT32, None)),
        ({"field": "nonexistent"}, None, {"magic": 42}, (None, None)),
        ({"field": "magic.nonexistent"} | V2, None, {"magic": {"foo": 42}}, (None, None)),
        ({"field": "magic.foo"}, None, {"magic": {"foo": 42}, "magic.foo": 1}, (None, 1)),
        ({"field": "un.known"} | V2, None, {"magic": {"foo": 42}}, (None, None)),
        ({"field": "magic.foo.inner"} | V2, None, {"magic": {"foo": None}}, (None, None)),
        (
            {"field": "magic.foo"} | V2,
            struct_of({"magic": struct_of({"foo": INT32}, optional=True)}),
            {"magic": None},
            (INT32, None),
        ),
        (
            {"field": "magic.foo"} | V2,
            struct_of({"magic": struct_of({"foo": INT32}, optional=True, default={"foo": 5})}),
            {},
            (INT32, 5),
        ),
    ],
)
@pytest.mark.parametrize("side", ["Key", "Value"])
def test_extract_field(side, config, schema, value, found):
    got = transformed(f"ExtractField${side}", config, source_record(schema, value, side=side))
    assert ((got.value_schema, got.value) if side == "Value" else (got.key_schema, got.key)) == found


@pytest.mark.parametrize(
    ("config", "schema"), [({"field": "nonexistent"}, FOUR), ({"field": "magic.nonexistent"} | V2, NESTED)]
)
def test_extract_field_refuses_fields_that_a_schema_lacks(config, schema):
    with pytest.raises(DataError, match=f"Unknown field: {config['field']}"):
        transformed("ExtractField$Key", config, source_record(schema, {}, side="Key"))


@pytest.mark.parametrize(("replaces", "value"), [("true", 42), ("false", None)])
def test_extract_field_replaces_null_with_defaults_when_asked(replaces, value):
    record = source_record(struct_of({"d": OPTIONAL_42}), {"d": None})
    assert (
        transformed("ExtractField$Value", {"field": "d", "replace.null.with.default": replaces}, record).value == value
    )


# --- HoistField and ValueToKey -----------------------------------------------------------------------------


def test_hoist_field_wraps_a_side():
    found = transformed("HoistField$Key", {"field": "magic"}, source_record(None, 42, side="Key"))
    assert (found.key_schema, found.key) == (None, {"magic": 42})
    found = transformed("HoistField$Key", {"field": "magic"}, source_record(INT32, 42, side="Key"))
    assert (found.key_schema, found.key) == (struct_of({"magic": INT32}), {"magic": 42})


def test_value_to_key_takes_fields():
    found = transformed("ValueToKey", {"fields": "a,b"}, source_record(None, {"a": 1, "b": 2, "c": 3}))
    assert (found.key_schema, found.key) == (None, {"a": 1, "b": 2})
    schema = struct_of({"a": INT32, "b": INT32, "c": INT32})
    found = transformed("ValueToKey", {"fields": "a,b"}, source_record(schema, {"a": 1, "b": 2, "c": 3}))
    assert (found.key_schema, found.key) == (struct_of({"a": INT32, "b": INT32}), {"a": 1, "b": 2})
    with pytest.raises(DataError, match="Field does not exist: not_exist"):
        transformed("ValueToKey", {"fields": "not_exist"}, source_record(schema, {"a": 1, "b": 2, "c": 3}))
    with pytest.raises(ConnectConfigError, match="Empty list"):
        transformed("ValueToKey", {"fields": ""}, source_record(schema, {}))


@pytest.mark.parametrize(("replaces", "value"), [("true", 42), ("false", None)])
def test_value_to_key_replaces_null_with_defaults_when_asked(replaces, value):
    record = source_record(struct_of({"d": OPTIONAL_42}), {"d": None})
    found = transformed("ValueToKey", {"fields": "d", "replace.null.with.default": replaces}, record)
    assert found.key == {"d": value}


# --- MaskField ---------------------------------------------------------------------------------------------

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
# (field, schema, value, what it is masked with, what "123" is as a replacement: None when it is none)
MASKED = [
    ("bool", BOOLEAN, True, False, None),
    ("byte", INT8, 42, 0, 123),
    ("short", INT16, 42, 0, 123),
    ("int", INT32, 42, 0, 123),
    ("long", INT64, 42, 0, 123),
    ("float", FLOAT32, 42.0, 0.0, 123.0),
    ("double", FLOAT64, 42.0, 0.0, 123.0),
    ("string", STRING, "55.121.20.20", "", "123"),
    ("date", date_schema(), NOW.date(), date(1970, 1, 1), None),
    ("time", time_schema(), NOW.time(), time(), None),
    ("timestamp", timestamp_schema(), NOW, datetime(1970, 1, 1, tzinfo=UTC), None),
    ("decimal", decimal_schema(0), Decimal(42), Decimal(0), Decimal(123)),
    ("array", array_of(INT32), [1, 2, 3], [], None),
    ("map", map_of(STRING, STRING), {"what": "what"}, {}, None),
]


@pytest.mark.parametrize(("name", "schema", "value", "nothing", "replaced"), MASKED, ids=lambda one: str(one)[:9])
def test_mask_field(name, schema, value, nothing, replaced):
    both = [source_record(None, {"magic": 42, name: value}),
            source_record(struct_of({"magic": INT32, name: schema}), {"magic": 42, name: value})]  # fmt: skip
    for record in both:
        found = transformed("MaskField$Value", {"fields": name}, record)
        assert found.value == {"magic": 42, name: nothing}
        assert type(found.value[name]) is type(nothing)
        assert found.value_schema == record.value_schema
        if replaced is None:
            with pytest.raises(DataError, match="Cannot mask value of type"):
                transformed("MaskField$Value", {"fields": name, "replacement": "123"}, record)
        else:
            found = transformed("MaskField$Value", {"fields": name, "replacement": "123"}, record)
            assert found.value == {"magic": 42, name: replaced}


def test_mask_field_gives_new_lists_and_maps_that_may_be_changed():
    values = {"l": [1], "m": {"a": 1}}
    first = transformed("MaskField$Value", {"fields": "l,m"}, source_record(None, values)).value
    first["l"].append(1)
    first["m"]["k"] = "v"
    assert transformed("MaskField$Value", {"fields": "l,m"}, source_record(None, values)).value == {"l": [], "m": {}}


@pytest.mark.parametrize("value", [42, 42.0, Decimal(42)])
@pytest.mark.parametrize("replacement", ["foo", "2026-01-01"])
def test_mask_field_refuses_a_replacement_that_is_no_number_for_numbers(value, replacement):
    with pytest.raises(DataError, match="Unable to convert"):
        transformed("MaskField$Value", {"fields": "f", "replacement": replacement}, source_record(None, {"f": value}))


def test_mask_field_refuses_a_replacement_that_its_type_has_no_room_for():
    record = source_record(struct_of({"f": INT8}), {"f": 1})
    with pytest.raises(DataError, match="Unable to convert"):
        transformed("MaskField$Value", {"fields": "f", "replacement": "128"}, record)


@pytest.mark.parametrize(
    ("config", "why"), [({"fields": ""}, "Empty list"), ({"fields": "a", "replacement": ""}, "non-empty")]
)
def test_mask_field_refuses_empty_configurations(config, why):
    with pytest.raises(ConnectConfigError, match=why):
        transformed("MaskField$Value", config, source_record(None, {}))


@pytest.mark.parametrize(("replaces", "value"), [("true", ""), ("false", None)])
def test_mask_field_masks_defaults_in_place_of_null_when_asked(replaces, value):
    record = source_record(
        struct_of({"d": ConnectSchema(SchemaType.STRING, optional=True, default="default")}), {"d": None}
    )
    config = {"fields": "d", "replace.null.with.default": replaces}
    assert transformed("MaskField$Value", config, record).value == {"d": value}
