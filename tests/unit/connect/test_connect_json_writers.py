"""Writers made for a schema give what `to_json` gives, and refuse what it refuses."""

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import orjson
import pytest

from tidelog.connect.converters.json_converter import JsonConverter
from tidelog.connect.converters.json_values import to_json
from tidelog.connect.converters.json_writers import json_writer
from tidelog.connect.data import schema as schemas
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import ConnectSchema, SchemaType, struct_of

VALUES: list[Any] = [
    None, True, False, 0, -1, 127, 128, -129, 1 << 31, -(1 << 63), 1 << 63, 1.5, 3.0, math.nan, math.inf, "", "text",
    b"", b"\x00\xff", bytearray(b"b"), [], [1, None], (2,), {}, {"a": 1}, {"a": 1, "b": "x"}, {"b": None}, {"c": 1},
    {"a": True}, Decimal("1.50"), Decimal("1.234"), Decimal("NaN"), date(2024, 2, 29), time(1, 2, 3),
    datetime(2024, 2, 29, tzinfo=UTC),
]  # fmt: skip
PLAIN = [ConnectSchema(kind) for kind in SchemaType if kind not in ("array", "map", "struct")]
FIELDS = {"a": schemas.INT32, "b": ConnectSchema(SchemaType.STRING, optional=True)}
SCHEMAS = [
    *PLAIN,
    *(one.as_optional() for one in PLAIN),
    ConnectSchema(SchemaType.INT32, default=7),
    ConnectSchema(SchemaType.STRING, optional=True, default="d"),
    schemas.array_of(schemas.INT64.as_optional()),
    schemas.map_of(schemas.STRING, schemas.INT8),
    schemas.decimal_schema(2),
    schemas.decimal_schema(2, optional=True),
    schemas.date_schema(),
    schemas.time_schema(),
    schemas.timestamp_schema(optional=True),
    struct_of(FIELDS),
    struct_of(FIELDS, optional=True, name="s"),
    struct_of({"a": struct_of(FIELDS, optional=True), "b": schemas.array_of(struct_of(FIELDS))}),
]


def outcome(write: Any, value: Any) -> bytes | str:
    try:
        return orjson.dumps(write(value))
    except DataError as error:
        return str(error)


@pytest.mark.parametrize("numeric", [False, True])
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda one: f"{one.type} {one.name} {one.optional} {one.default}")
def test_as_to_json(schema: ConnectSchema, numeric: bool) -> None:
    write = json_writer(schema, numeric=numeric)
    for value in [*VALUES, {"a": {"a": 1}, "b": [{"a": 2, "b": "y"}]}]:
        assert outcome(write, value) == outcome(lambda one: to_json(schema, one, numeric=numeric), value), repr(value)


def test_a_struct_is_written_in_the_order_of_its_schema() -> None:
    assert json_writer(struct_of(FIELDS))({"b": "x", "a": 1}) == {"a": 1, "b": "x"}
    assert list(json_writer(struct_of(FIELDS))({"b": "x", "a": 1})) == ["a", "b"]


def test_schemas_that_are_gone_are_not_taken_for_others() -> None:
    """A converter knows schemas by their identity, which Python gives again; it keeps at most 1,000."""
    converter = JsonConverter()
    for number in range(2500):
        schema = struct_of({f"f{number}": schemas.INT32})
        data = orjson.loads(converter.from_connect("t", schema, {f"f{number}": number}) or b"")
        assert data["payload"] == {f"f{number}": number}
        assert data["schema"]["fields"][0]["field"] == f"f{number}"
    assert len(converter._writers) <= 1000
