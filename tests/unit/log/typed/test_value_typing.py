"""Values become columns where records are checked, and are exactly what they were where they are read."""

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.value_typings import FLIGHT, LATER, avro_payload, flight, prefixed, typing_with

from tidelog.log.base.errors import InvalidRecordError, InvalidValueError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta import schema
from tidelog.log.group_commit.requests import refused_units
from tidelog.log.records.checks import to_records
from tidelog.log.typed.value_typing import Typing, Writer
from tidelog.schemas.compile import compile_schema

GUID = bytes(range(16))
CONFIG = TopicConfig.parse({})


def made(typing: Typing, values: list[bytes | None], **more: Any) -> pa.Table:
    return to_records(pa.table({"value": pa.array(values, pa.binary()), **more}), "t", CONFIG, 0, typing=typing)


def read_back(typing: Typing, records: pa.Table) -> list[bytes | None]:
    parts = []
    for batch in records.to_batches():
        columns = batch.column("columns") if "columns" in batch.schema.names else None
        parts += typing.bytes_of(
            batch.column("value"), batch.column("value_schema"), batch.column("value_length"), columns
        ).to_pylist()
    return parts


def of_7(number: int) -> bytes:
    return prefixed(7, avro_payload(FLIGHT, flight(number)))


def of_8(number: int) -> bytes:
    plane = {"tail": "x", "year": number}
    return prefixed(8, avro_payload(LATER, flight(number, plane=plane, cancelled=True)))


STRANGE = [None, b"", b"\0", b"\0\0\0\0\7", b"text", prefixed(9, b"abc"), of_7(1) + b"x", of_7(2)[:-1], of_8(3)]


@pytest.mark.parametrize("bytes_", ["keep", "derive"])
def test_values_of_all_kinds_are_read_as_they_came(bytes_):
    typing = typing_with({7: FLIGHT, 8: LATER}, bytes=bytes_)
    values = [of_7(1), *STRANGE, of_8(2), of_7(4)]
    records = made(typing, values)
    assert records.schema == typing.segment.remove(0)
    assert read_back(typing, records) == values
    assert records.column("value_schema").to_pylist() == [7, *[None] * 8, 8, 8, 7]
    fit = [i for i, one in enumerate(records.column("value_schema").to_pylist()) if one]
    derived = [values[i] if bytes_ == "keep" or i not in fit else None for i in range(len(values))]
    assert records.column("value").to_pylist() == derived
    lengths = [len(values[i] or b"") if bytes_ == "derive" and i in fit else None for i in range(len(values))]
    assert records.column("value_length").to_pylist() == lengths


def test_columns_have_the_fields_of_all_schemas():
    typing = typing_with({7: FLIGHT, 8: LATER})
    columns = made(typing, [of_7(1), of_8(5)]).column("columns").to_pylist()
    assert columns[0] == {
        **flight(1, stops=["HNL"], seats=[("f", 1), ("none", None)], plane={"tail": "N1", "year": None}),
        "cancelled": None,
    }
    assert columns[1]["plane"] == {"tail": "x", "year": 5}
    assert columns[1]["cancelled"] is True


def test_a_batch_of_one_schema_is_derived_whole():
    typing = typing_with({7: FLIGHT}, bytes="derive")
    values = [of_7(i) for i in range(50)]
    records = made(typing, values)
    assert records.column("value").null_count == 50
    assert read_back(typing, records) == values
    assert read_back(typing, records.slice(3, 20)) == values[3:23]


def test_what_is_written_in_another_way_keeps_its_bytes():
    # A map whose items come in two blocks says the same as in one.
    one = avro_payload(FLIGHT, flight(0, seats={"a": 1}))
    at = one.index(b"\x02\x02a")
    two = one[: at + 5] + b"\x02\x02b\x02\x04" + one[at + 5 :]
    typing = typing_with({7: FLIGHT}, bytes="derive")
    records = made(typing, [prefixed(7, two), prefixed(7, one)])
    assert records.column("columns")[0].as_py()["seats"] == [("a", 1), ("b", 2)]
    assert records.column("value").to_pylist() == [prefixed(7, two), None]
    assert read_back(typing, records) == [prefixed(7, two), prefixed(7, one)]


def test_a_schema_with_a_field_left_out_gives_the_others_and_keeps_bytes():
    several = {**FLIGHT, "fields": [*FLIGHT["fields"], {"name": "any", "type": ["int", "string"]}]}
    typing = typing_with({7: several}, bytes="derive")
    value = prefixed(7, avro_payload(several, flight(1, any="x")))
    records = made(typing, [value])
    assert records.column("value").to_pylist() == [value]
    assert records.column("value_schema").to_pylist() == [7]
    assert "any" not in records.column("columns")[0].as_py()


def test_a_field_whose_type_another_schema_gave_is_null_and_its_value_keeps_bytes():
    other = {"type": "record", "name": "Flight", "fields": [{"name": "number", "type": "string"}]}
    typing = typing_with({7: FLIGHT, 8: other}, bytes="derive")
    values = [of_7(1), prefixed(8, avro_payload(other, {"number": "one"}))]
    records = made(typing, values)
    assert [one["number"] for one in records.column("columns").to_pylist()] == [1, None]
    assert read_back(typing, records) == values
    assert records.column("value").to_pylist() == [None, values[1]]


def test_a_header_names_the_schema_of_a_bare_payload():
    typing = typing_with({7: FLIGHT}, bytes="derive", guids={GUID: 7})
    payload = avro_payload(FLIGHT, flight(3))
    name = "__value_schema_id"
    headers: list[Any] = [
        [{"key": "a", "value": b"b"}, {"key": name, "value": b"\1" + GUID}],
        [{"key": name, "value": b"\1" + bytes(16)}],
        None,
        [{"key": name, "value": None}],
        [{"key": name, "value": b"\1" + GUID}],
    ]
    values = [payload, payload, of_7(3), of_7(4), None]
    records = made(typing, values, headers=pa.array(headers, schema.HEADERS))
    assert records.column("value_schema").to_pylist() == [7, None, 7, 7, None]
    assert records.column("value_length").to_pylist() == [len(payload), None, len(payload) + 5, len(of_7(4)), None]
    assert read_back(typing, records) == values
    assert read_back(typing, records.slice(1)) == values[1:]
    table = records.slice(1).combine_chunks()
    value, header = (table.column(c).chunk(0) for c in ("value", "headers"))
    assert typing.unknown(value, header) == {bytes(16)}


@pytest.mark.parametrize(("indexes", "found"), [(b"\0", {"a": 5}), (b"\x02\x02", {"b": 5}), (b"", None)])
def test_a_header_has_the_message_indexes_of_protobuf(indexes, found):
    text = 'syntax = "proto3"; message One { int32 a = 1; } message Other { int32 b = 1; }'
    writer = compile_schema("protobuf", text)
    assert writer.columns is not None
    typing = Typing("protobuf", "keep", False, writer.columns, {7: Writer(7, writer, False)}, {GUID: 7}, 7)
    header = [{"key": "__value_schema_id", "value": b"\1" + GUID + indexes}]
    records = made(typing, [b"\x08\x05"], headers=pa.array([header], schema.HEADERS))
    (columns,) = records.column("columns").to_pylist()
    assert (columns and {name: value for name, value in columns.items() if value}) == found
    assert records.column("value").to_pylist() == [b"\x08\x05"]


def test_an_inline_schema_takes_bare_payloads():
    typing = typing_with({-1: FLIGHT}, bytes="derive")
    values = [avro_payload(FLIGHT, flight(1)), b"no", None]
    records = made(typing, values)
    assert records.column("value_schema").to_pylist() == [-1, None, None]
    assert records.column("value_length").to_pylist() == [len(values[0]), None, None]
    assert read_back(typing, records) == values
    assert typing.unknown(records.column("value").chunk(0), records.column("headers").chunk(0)) == frozenset()


def test_ids_that_the_table_does_not_know_are_told():
    typing = typing_with({7: FLIGHT})
    values = pa.array([of_7(1), prefixed(9, b""), prefixed(10, b"x"), None, b"\1\0\0\0\7", prefixed(9, b"")])
    assert typing.unknown(values, pa.nulls(6, schema.HEADERS)) == {9, 10}
    assert typing.unknown(values.slice(2), pa.nulls(4, schema.HEADERS)) == {9, 10}


def test_before_the_first_schema_and_after_the_last_there_are_no_columns():
    before = typing_with({})
    assert made(before, [of_7(1)]).schema.names[-2:] == ["value_schema", "value_length"]
    typing = typing_with({7: FLIGHT}, bytes="derive")
    none = Typing(None, "keep", True, typing.columns, typing.writers, {}, None)
    records = made(none, [of_7(1), b"x"])
    assert records.column("columns").null_count == 2
    assert records.column("value").to_pylist() == [of_7(1), b"x"]
    assert none.unknown(records.column("value").chunk(0), records.column("headers").chunk(0)) == frozenset()
    assert read_back(none, made(typing, [of_7(1)])) == [of_7(1)]


def test_records_in_many_chunks_are_taken_as_one():
    typing = typing_with({7: FLIGHT, 8: LATER}, bytes="derive")
    values = [of_7(1), None, of_8(2), b"x", of_7(3)]
    chunked = pa.chunked_array([pa.array([one], pa.binary()) for one in values])
    records = to_records(pa.table({"value": chunked}), "t", CONFIG, 0, typing=typing)
    assert read_back(typing, records) == values
    assert to_records(pa.table({"value": pa.array([], pa.binary())}), "t", CONFIG, 0, typing=typing).num_rows == 0


# --- refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"text", "it names no schema"),
        (prefixed(9, b"abc"), "it names schema 9, which is not one of the subject"),
        (of_7(1) + b"x", "it does not fit schema 7: "),
        (of_7(1)[:-1], "it does not fit schema 7: "),
    ],
)
def test_validate_refuses_a_value_and_names_its_row(value, why):
    typing = typing_with({7: FLIGHT, 8: LATER}, validate=True)
    with pytest.raises(InvalidValueError, match=r"topic.validate=true.*row 2 is refused") as refused:
        made(typing, [of_7(1), None, value, of_8(1), value])
    assert list(refused.value.rows) == [2, 4]
    assert refused.value.rows[2].startswith(why)
    assert "Row 4 is refused, too." in str(refused.value)
    assert pickle.loads(pickle.dumps(refused.value)).rows == refused.value.rows


def test_all_rows_that_are_refused_are_named() -> None:
    with pytest.raises(InvalidValueError, match=r"row 0 is refused: .*\. Rows 1, 2 are refused, too\. Write"):
        made(typing_with({7: FLIGHT}, validate=True), [b"a", b"b", b"c", of_7(1)])


def test_units_with_values_that_do_not_fit_are_found_at_once() -> None:
    typing, calls = typing_with({7: FLIGHT}, validate=True), []
    values = [b"no" if row % 3 == 0 else of_7(row) for row in range(90)]

    def check(part: pa.Table) -> pa.Table:
        calls.append(part.num_rows)
        return to_records(part, "t", CONFIG, 0, typing=typing)

    units = np.arange(90) // 2
    table = pa.table({"value": pa.array(values)})
    _, refused = refused_units(table, units, check)
    assert calls == [90]
    assert sorted(refused) == sorted({row // 2 for row in range(0, 90, 3)})
    assert [list(refused[unit].rows) for unit in (0, 1, 3)] == [[0], [1], [0]]


@pytest.mark.parametrize("fault", [MemoryError, RuntimeError, pa.ArrowInvalid])
def test_a_unit_that_the_check_fails_at_fails_no_other(fault) -> None:
    def check(part: pa.Table) -> pa.Table:
        if b"poison" in part.column("value").to_pylist():
            raise fault("no rule knows it")
        return part

    units = np.arange(30) // 2
    table = pa.table({"value": pa.array([b"poison" if row == 11 else b"sound" for row in range(30)])})
    _, refused = refused_units(table, units, check)
    assert {unit: error.kafka_code for unit, error in refused.items()} == {5: 87}
    with pytest.raises(fault):
        refused_units(table, None, check)


def test_validate_takes_tombstones_and_all_that_fits():
    typing = typing_with({7: FLIGHT, 8: LATER}, validate=True)
    values = [of_7(1), None, of_8(2)]
    assert read_back(typing, made(typing, values)) == values


def test_validate_looks_at_schemas_without_columns_too():
    several = {"type": "record", "name": "R", "fields": [{"name": "any", "type": ["int", "string"]}]}
    typing = typing_with({7: several}, validate=True)
    good = prefixed(7, avro_payload(several, {"any": "x"}))
    assert made(typing, [good]).column("value").to_pylist() == [good]
    with pytest.raises(InvalidRecordError, match="row 1 is refused: it does not fit schema 7"):
        made(typing, [good, good + b"x"])


def test_validate_refuses_a_guid_that_is_not_the_subjects():
    typing = typing_with({7: FLIGHT}, validate=True)
    headers = pa.array([[{"key": "__value_schema_id", "value": b"\1" + GUID}]], schema.HEADERS)
    with pytest.raises(InvalidRecordError, match=f"names {GUID.hex()}, which is no schema of the subject"):
        made(typing, [avro_payload(FLIGHT, flight(1))], headers=headers)


# --- columns come instead of values -------------------------------------------------------------------------


def columns_of(rows: list[Any], kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"columns": pa.array(rows, kind)})


@pytest.mark.parametrize("bytes_", ["keep", "derive"])
def test_columns_become_values_of_the_newest_schema(bytes_):
    typing = typing_with({7: FLIGHT, 8: LATER}, bytes=bytes_)
    kind = typing.writers[8].schema.columns
    rows = [{**flight(1), "cancelled": True, "seats": [("f", 1)]}, None]
    records = to_records(columns_of(rows, kind), "t", CONFIG, 0, typing=typing)
    expected = prefixed(8, avro_payload(LATER, {**rows[0], "seats": {"f": 1}}))
    assert read_back(typing, records) == [expected, None]
    assert records.column("value_schema").to_pylist() == [8, None]


def test_columns_that_are_missing_have_the_schemas_defaults():
    typing = typing_with({-1: FLIGHT}, bytes="derive")
    records = to_records(columns_of([{"carrier": "HA", "number": 1}]), "t", CONFIG, 0, typing=typing)
    expected = flight(1, dep_delay=None, stops=[], seats={}, plane=None)
    assert read_back(typing, records) == [avro_payload(FLIGHT, expected)]


def record_of(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": one, "type": kind} for one, kind in fields.items()]}


def test_columns_that_lack_a_field_of_a_record_within_have_its_default():
    inner = record_of("Plane", tail="string")
    inner["fields"].append({"name": "seats", "type": "int", "default": 180})
    planes = record_of("R", plane=["null", inner], others={"type": "array", "items": "Plane"})
    rows = [{"plane": {"tail": "N1"}, "others": [{"tail": "N2"}]}, {"plane": None, "others": []}]
    typing = typing_with({-1: planes}, bytes="derive")
    records = to_records(columns_of(rows), "t", CONFIG, 0, typing=typing)
    whole = {"plane": {"tail": "N1", "seats": 180}, "others": [{"tail": "N2", "seats": 180}]}
    assert read_back(typing, records) == [avro_payload(planes, whole), avro_payload(planes, rows[1])]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([{"carrier": "HA", "number": 1, "colour": "red"}], "fields that the schema does not: colour"),
        ([{"carrier": "HA", "number": 1, "plane": {"tail": "N1", "colour": "red"}}], "does not: plane.colour"),
        ([{"carrier": "HA", "number": 1 << 40}], "1099511627776"),
        ([{"carrier": "HA", "number": 1}, {"carrier": "HA"}], "Row 1: the field 'number'"),
        (["text"], "not a struct"),
    ],
)
def test_columns_that_do_not_fit_are_refused(rows, why):
    typing = typing_with({7: FLIGHT})
    with pytest.raises(InvalidRecordError, match=why):
        to_records(columns_of(rows), "t", CONFIG, 0, typing=typing)


def test_columns_need_a_schema():
    with pytest.raises(InvalidRecordError, match="it knows no schema"):
        to_records(columns_of([{"a": 1}]), "t", CONFIG, 0, typing=typing_with({}))
    with pytest.raises(InvalidRecordError, match="no column 'value'"):
        to_records(columns_of([{"a": 1}]), "t", CONFIG, 0)


def test_a_typing_goes_to_other_processes():
    typing = pickle.loads(pickle.dumps(typing_with({7: FLIGHT}, bytes="derive")))
    assert read_back(typing, made(typing, [of_7(1)])) == [of_7(1)]
