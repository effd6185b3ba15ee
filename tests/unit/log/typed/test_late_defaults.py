"""Defaults of the newest schema for rows whose writer lacked a field."""

import json

import pyarrow as pa

from tidelog.log.columnar.compile import compile_schema
from tidelog.log.typed.growth import grown
from tidelog.log.typed.late_defaults import LateDefault, filled, late_defaults
from tidelog.log.typed.value_typing import Typing, Writer


def field(name, kind, **more):
    return {"name": name, "type": kind, **more}


def typing(*schemas, newest):
    """A typing whose writers 1, 2 ... have these fields."""
    texts = [json.dumps({"type": "record", "name": "r", "fields": [*fields]}) for fields in schemas]
    writers = {at: Writer(at, compile_schema("avro", text), True) for at, text in enumerate(texts, 1)}
    columns = None
    for writer in writers.values():
        columns = grown(columns, writer.schema.columns).columns
    return Typing("avro", "keep", False, columns, writers, {}, newest)


A = field("a", "long")
B = field("b", "string", default="none")


def test_fields_that_a_writer_lacked_have_the_newest_default() -> None:
    found = late_defaults(typing([A], [A, B], [A, B, field("c", "long", default=7)], newest=3))
    assert found == (LateDefault("b", "none", (1,)), LateDefault("c", 7, (1, 2)))


def test_only_the_newest_schema_says_so() -> None:
    assert late_defaults(typing([A], [A, B], [A], newest=3)) == ()
    assert late_defaults(typing([A], [A, B], newest=None)) == ()
    assert late_defaults(typing([A, B], newest=1)) == ()


def test_a_default_of_null_is_nothing_to_fill_in() -> None:
    assert late_defaults(typing([A], [A, field("b", ["null", "long"], default=None)], newest=2)) == ()


def test_a_field_that_is_no_column_for_its_writer_is_not_filled() -> None:
    """The writer had a value: it is in the bytes, and no default may hide that."""
    either = field("b", ["long", "string"])
    assert late_defaults(typing([A, either], [A, B], newest=2)) == ()


def test_a_default_of_another_type_than_the_columns_is_left() -> None:
    assert late_defaults(typing([A], [A, field("b", "long")], [A, B], newest=3)) == ()


def test_rows_are_filled_by_their_writers() -> None:
    kind = pa.struct([("a", pa.int64()), ("b", pa.string())])
    rows = [{"a": 1, "b": None}, {"a": 2, "b": "x"}, None, {"a": 3, "b": None}]
    ids = pa.array([1, 2, None, 2], pa.int32())
    found = filled(pa.array(rows, kind), ids, [LateDefault("b", "none", (1,)), LateDefault("gone", 1, (1,))])
    assert found.to_pylist() == [{"a": 1, "b": "none"}, {"a": 2, "b": "x"}, None, {"a": 3, "b": None}]
    assert found.type == kind
