"""Packed records: read as others are, and written by converters with the same bytes."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import orjson
import pytest
from unit.connect.test_connect_json_writers import SCHEMAS, VALUES

from tidelog.connect.converters.json_converter import JsonConverter
from tidelog.connect.data import schema as schemas
from tidelog.connect.data.errors import ConnectError, DataError
from tidelog.connect.data.packed import Constant, LazyRecord, RecordLayout, StructLayout
from tidelog.connect.data.records import ConnectHeader, SourceRecord
from tidelog.connect.data.schema import ConnectSchema, check_value, struct_of
from tidelog.connect.runtime.conversion import Conversion
from tidelog.connect.runtime.task_figures import TaskFigure
from tidelog.connect.runtime.tolerance import RecordFailedError, ToleranceOperator, TolerancePolicy

ROW = struct_of({"id": schemas.INT64, "100%": schemas.STRING.as_optional()}, optional=True, name="row")
ENVELOPE = struct_of({"before": ROW, "after": ROW, "op": schemas.STRING, "%b": schemas.FLOAT64}, name="envelope")
LAYOUT = StructLayout(
    ENVELOPE, {"%b": 2, "op": Constant("50%"), "before": Constant(None), "after": StructLayout.of_run(ROW)}
)
KEY = StructLayout(struct_of({"id": schemas.INT64}), {"id": 0})
RECORD = LazyRecord(
    RecordLayout("t", KEY, LAYOUT, {"server": "s"}), (7, "x", 0.5), {"lsn": 1}, (ConnectHeader("h", "v"),)
)
PLAIN = SourceRecord(
    topic="t", key={"id": 7}, key_schema=KEY.schema, headers=(ConnectHeader("h", "v"),), value_schema=ENVELOPE,
    value={"before": None, "after": {"id": 7, "100%": "x"}, "op": "50%", "%b": 0.5},
    source_partition={"server": "s"}, source_offset={"lsn": 1},
)  # fmt: skip


def test_it_reads_as_the_record_that_it_is() -> None:
    assert RECORD.but() == PLAIN
    assert list(RECORD.value) == ["before", "after", "op", "%b"]
    assert RECORD.but(topic="other").topic == "other"
    keyless = LazyRecord(RecordLayout("t", None, LAYOUT, {}), (7, "x", 0.5), {})
    assert (keyless.key, keyless.key_schema, keyless.but().key_schema) == (None, None, None)


def values_of(schema: ConnectSchema) -> Iterator[Any]:
    for value in VALUES:
        try:
            check_value(schema, value)
        except DataError:
            continue
        yield value
    if schema.default is not None:
        yield None


def outcome(write: Any) -> bytes | str:
    try:
        return write()  # type: ignore[no-any-return]
    except DataError as error:
        return str(error)


@pytest.mark.parametrize("converter", [JsonConverter(), JsonConverter(schemas=False, numeric=True)], ids=["", "plain"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda one: f"{one.type} {one.name} {one.optional} {one.default}")
def test_json_is_that_of_the_struct(schema: ConnectSchema, converter: JsonConverter) -> None:
    whole = struct_of({"first": schemas.INT8, "f": schema, "c": schema})
    for value in values_of(schema):
        layout = StructLayout(whole, {"first": 1, "f": 0, "c": Constant(value)})
        struct = {"first": 1, "f": value, "c": value}
        packed = outcome(lambda: converter.from_packed("t", layout, (value, 1)))  # noqa: B023 called here
        assert packed == outcome(lambda: converter.from_connect("t", whole, struct)), value  # noqa: B023 called here


def test_layouts_that_are_gone_are_not_taken_for_others() -> None:
    converter = JsonConverter(schemas=False)
    for number in range(2500):
        layout = StructLayout.of_run(struct_of({f"f{number}": schemas.INT32}))
        assert orjson.loads(converter.from_packed("t", layout, (number,))) == {f"f{number}": number}


def conversion(config: dict[str, str], policy: TolerancePolicy | None = None) -> tuple[Conversion, ToleranceOperator]:
    operator = ToleranceOperator(policy or TolerancePolicy(), lambda _: False, lambda: 0.0, lambda: 0.5)
    return Conversion(config, None, operator), operator


CONVERTERS = [
    {},
    {"key.converter": "string", "value.converter": "json", "value.converter.schemas.enable": "false"},
    {"value.converter": "string"},
    {"transforms": "a", "transforms.a.type": "org.apache.kafka.connect.transforms.InsertField$Value",
     "transforms.a.static.field": "more", "transforms.a.static.value": "1"},
]  # fmt: skip


@pytest.mark.parametrize("config", CONVERTERS, ids=["json", "both", "string", "transformed"])
def test_its_bytes_are_those_of_the_record(config: dict[str, str]) -> None:
    converted, _ = conversion(config)
    assert converted.to_raw(RECORD) == converted.to_raw(PLAIN)


def test_a_failure_is_tried_again_and_told_as_that_of_any_record() -> None:
    wrong = LazyRecord(RECORD.layout, (7, "\ud800", 0.5), {"lsn": 1})
    told = []
    for record in (wrong, wrong.but()):
        converted, operator = conversion({})
        with pytest.raises(RecordFailedError) as failure:
            converted.to_raw(record)
        told.append((str(failure.value), operator.figures.total(TaskFigure.FAILURES)))
        assert isinstance(failure.value, ConnectError)
    assert told[0] == told[1]
    assert told[0][1] == 1


def test_decimals_have_all_their_digits() -> None:
    """Python's usual context would round to 28."""
    number = Decimal("1234567890" * 5 + ".25")
    schema = schemas.decimal_schema(2)
    converter = JsonConverter()
    assert converter.to_connect("t", converter.from_connect("t", schema, number)) == (schema, number)
