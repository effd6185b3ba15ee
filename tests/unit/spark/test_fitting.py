"""A writer's columns as a reader's schema has them: defaults, promotions, and what can't be read."""

import json

import pyarrow as pa
import pytest

from tidelog.schemas.compile import compile_schema
from tidelog.spark.fitting import fitted, why_unreadable, why_unwritable


def avro(*fields, name="r"):
    return compile_schema("avro", json.dumps({"type": "record", "name": name, "fields": [*fields]}))


def field(name, kind, **more):
    return {"name": name, "type": kind, **more}


def each(kind, **of):
    return {"type": kind, **of}


def inner(*fields):
    return each("record", name="i", fields=[*fields])


def of(rows, kind):
    return pa.array(rows, kind)


def test_what_the_writer_lacks_has_the_readers_default() -> None:
    reader = avro(field("a", "long"), field("b", "string", default="x"), field("c", ["null", "int"], default=None))
    columns = of([{"a": 1}, None, {"a": 3}], pa.struct([("a", pa.int64())]))
    found = fitted(columns, reader.columns, reader.defaults)
    assert found.type == reader.columns
    assert found.to_pylist() == [{"a": 1, "b": "x", "c": None}, None, {"a": 3, "b": "x", "c": None}]


def test_fields_within_records_have_their_defaults_too() -> None:
    more = [field("n", "int"), field("more", "string", default="x")]
    reader = avro(field("a", inner(*more)), field("b", each("array", items="i")))
    lone = pa.struct([("n", pa.int32())])
    columns = of([{"a": {"n": 1}, "b": [{"n": 2}]}, None], pa.struct([("a", lone), ("b", pa.list_(lone))]))
    found = fitted(columns, reader.columns, reader.defaults)
    assert found.to_pylist() == [{"a": {"n": 1, "more": "x"}, "b": [{"n": 2, "more": "x"}]}, None]


def test_fields_go_by_their_names_and_what_the_reader_lacks_is_left_out() -> None:
    columns = of([{"b": "x", "a": 1}], pa.struct([("b", pa.string()), ("a", pa.int64())]))
    assert fitted(columns, pa.struct([("a", pa.int64())]), {}).to_pylist() == [{"a": 1}]


NESTED = pa.struct(
    [
        ("list", pa.list_(pa.struct([("n", pa.int32())]))),
        ("map", pa.map_(pa.string(), pa.int32())),
        ("struct", pa.struct([("n", pa.int32())])),
    ]
)
WIDER = pa.struct(
    [
        ("list", pa.list_(pa.struct([("n", pa.int64()), ("more", pa.string())]))),
        ("map", pa.map_(pa.string(), pa.float64())),
        ("struct", pa.struct([("more", pa.string()), ("n", pa.int64())])),
    ]
)


@pytest.mark.parametrize("sliced", [False, True])
def test_types_are_promoted_in_structs_lists_and_maps(sliced: bool) -> None:
    rows = [
        {"list": [{"n": 9}], "map": [("z", 9)], "struct": {"n": 9}},
        {"list": [{"n": 1}, None, {"n": None}], "map": [("a", 1)], "struct": {"n": 1}},
        None,
        {"list": None, "map": None, "struct": None},
        {"list": [], "map": [], "struct": {"n": None}},
    ]
    columns = of(rows, NESTED)
    found = fitted(columns.slice(1) if sliced else columns, WIDER, {})
    found.validate(full=True)
    wanted = [
        {"list": [{"n": 9, "more": None}], "map": [("z", 9.0)], "struct": {"more": None, "n": 9}},
        {
            "list": [{"n": 1, "more": None}, None, {"n": None, "more": None}],
            "map": [("a", 1.0)],
            "struct": {"more": None, "n": 1},
        },
        None,
        {"list": None, "map": None, "struct": None},
        {"list": [], "map": [], "struct": {"more": None, "n": None}},
    ]
    assert found.to_pylist() == wanted[1 if sliced else 0 :]


def test_numbers_that_a_double_does_not_hold_are_rounded_as_avro_says() -> None:
    columns = of([{"a": 2**53 + 1}], pa.struct([("a", pa.int64())]))
    assert fitted(columns, pa.struct([("a", pa.float64())]), {}).to_pylist() == [{"a": float(2**53)}]


def test_bytes_that_are_no_text_are_told() -> None:
    columns = of([{"a": b"\xff"}], pa.struct([("a", pa.binary())]))
    with pytest.raises(pa.ArrowInvalid):
        fitted(columns, pa.struct([("a", pa.string())]), {})


@pytest.mark.parametrize(
    ("writer", "reader", "why"),
    [
        (avro(field("a", "int")), avro(field("a", "long")), None),
        (avro(field("a", "long")), avro(field("a", "int")), "its field 'a' is int64, and int32 in the reader's schema"),
        (avro(field("a", "int")), avro(field("a", "int"), field("b", "int", default=1)), None),
        (avro(field("a", "int")), avro(field("a", "int"), field("b", "int")), "it has no field 'b'"),
        (avro(field("a", ["int", "string"]), field("b", "int")), avro(field("a", "int")), "its field 'a' can't be"),
        (
            avro(field("a", each("array", items=inner(field("n", "int"))))),
            avro(field("a", each("array", items=inner(field("n", "int"), field("o", "int"))))),
            "it has no field 'a.element.o', and the reader's schema has no default",
        ),
        (
            avro(field("a", inner(field("n", "string")))),
            avro(field("a", inner(field("n", "int")))),
            "its field 'a.n' is string",
        ),
        (
            avro(field("a", each("array", items="int"))),
            avro(field("a", each("array", items="long"))),
            None,
        ),
        (
            avro(field("a", each("map", values="long"))),
            avro(field("a", each("map", values="int"))),
            "'a'",
        ),
        (avro(field("a", ["int", "string"])), avro(field("a", "int")), "no field that can be a column"),
    ],
)
def test_what_can_be_read(writer, reader, why: str | None) -> None:
    found = why_unreadable(writer, reader)
    assert (found is None) if why is None else (found is not None and why in found)


@pytest.mark.parametrize(
    ("given", "schema", "why"),
    [
        ({"a": pa.int32()}, avro(field("a", "long")), None),
        ({"a": pa.int64()}, avro(field("a", "int")), "its field 'a' is int64"),
        ({"a": pa.int64(), "b": pa.int64()}, avro(field("a", "long")), "the schema has no field 'b'"),
        ({}, avro(field("a", "long", default=1)), None),
        ({}, avro(field("a", "long")), "the column has no field 'a'"),
        ({"a": pa.struct([])}, avro(field("a", inner(field("n", "int")))), "the column has no field 'a.n'"),
        ({"a": pa.int64()}, avro(field("a", "long"), field("b", ["int", "string"])), "'b' can't be a column"),
        (
            {"a": pa.list_(pa.struct([("n", pa.int32()), ("more", pa.int32())]))},
            avro(field("a", each("array", items=inner(field("n", "int"))))),
            "the schema has no field 'a.more'",
        ),
    ],
)
def test_what_can_be_written(given, schema, why: str | None) -> None:
    found = why_unwritable(pa.struct(list(given.items())), schema)
    assert (found is None) if why is None else (found is not None and why in found)
