"""Schemas of Connect: which values they take."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import ConnectHeader, SinkRecord, SourceRecord
from tidelog.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    INT8,
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

PERSON = struct_of(
    {"name": STRING, "age": INT32.as_optional(), "langs": array_of(STRING, default=["en"])}, name="Person"
)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

TAKEN = [
    (INT8, -128),
    (INT8, 127),
    (INT64, 1 << 62),
    (FLOAT64, 1),
    (FLOAT64, 1.5),
    (BOOLEAN, True),
    (STRING, ""),
    (BYTES, b"x"),
    (BYTES, memoryview(b"x")),
    (INT32.as_optional(), None),
    (array_of(INT32), [1, 2]),
    (array_of(INT32.as_optional()), [1, None]),
    (map_of(STRING, INT32), {"a": 1}),
    (PERSON, {"name": "Ada", "age": None, "langs": []}),
    (PERSON, {"name": "Ada"}),
    (decimal_schema(2), Decimal("1.25")),
    (date_schema(), date(2026, 1, 2)),
    (time_schema(), time(3, 4, 5)),
    (timestamp_schema(), NOW),
]
REFUSED = [
    (INT8, 128, "INT8"),
    (INT8, -129, "INT8"),
    (INT32, True, "INT32"),
    (INT32, 1.0, "INT32"),
    (FLOAT64, True, "FLOAT64"),
    (BOOLEAN, 1, "BOOLEAN"),
    (STRING, b"x", "STRING"),
    (BYTES, "x", "BYTES"),
    (STRING, None, "null used for required field"),
    (array_of(INT32), [1, "2"], "INT32"),
    (array_of(INT32), [None], "null"),
    (map_of(STRING, INT32), {1: 1}, "STRING"),
    (map_of(STRING, INT32), {"a": "b"}, "INT32"),
    (PERSON, {"age": 3}, '"name"'),
    (PERSON, {"name": "Ada", "shoe": 42}, '"shoe" is not a valid field name'),
    (struct_of({"in": PERSON}), {"in": {"name": 1}}, '"in.name"'),
    (decimal_schema(2), 1.25, "Decimal"),
    (date_schema(), NOW, "Date"),
    (timestamp_schema(), 12, "Timestamp"),
]


@pytest.mark.parametrize(("schema", "value"), TAKEN)
def test_a_schema_takes_its_values(schema, value):
    check_value(schema, value)


@pytest.mark.parametrize(("schema", "value", "named"), REFUSED)
def test_a_schema_refuses_others_and_names_the_field(schema, value, named):
    with pytest.raises(DataError, match=named):
        check_value(schema, value)


def test_schemas_are_keys_of_mappings_and_equal_by_what_they_say():
    assert {PERSON: 1}[ConnectSchema(**{name: getattr(PERSON, name) for name in PERSON.__slots__})] == 1
    assert decimal_schema(2) != decimal_schema(3)
    assert PERSON.as_optional() != PERSON


def test_fields_are_found_by_their_names_and_replaced():
    assert PERSON.field_named("age").schema == INT32.as_optional()
    assert PERSON.field_named("shoe") is None
    assert [one.name for one in PERSON.with_fields(PERSON.fields[:1]).fields] == ["name"]


def test_names_and_json_names_of_types_are_connects():
    assert {(one.name, one.value) for one in SchemaType} >= {("FLOAT32", "float"), ("INT8", "int8"), ("MAP", "map")}


def test_a_record_is_changed_by_copies_and_keeps_its_kind():
    source = SourceRecord(topic="t", value=1, source_partition={"file": "a"}, source_offset={"at": 3})
    changed = source.but(topic="u", headers=(ConnectHeader("k", 1, INT32),))
    assert (source.topic, changed.topic, changed.source_offset) == ("t", "u", {"at": 3})
    sink = SinkRecord(topic="t", partition=1, offset=5, original_topic="t", original_partition=1)
    assert sink.but(topic="u", partition=0).original == ("t", 1)
