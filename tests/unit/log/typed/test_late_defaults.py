"""Defaults of the newest schema for rows whose writer lacked a field."""

import json

import pyarrow as pa

from tidelog.log.typed.growth import grown
from tidelog.log.typed.late_defaults import LateDefault, filled, late_defaults
from tidelog.log.typed.value_typing import Typing, Writer
from tidelog.schemas.compile import compile_schema


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
    assert found == (LateDefault(("b",), "none", (1,)), LateDefault(("c",), 7, (1, 2)))


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
    found = filled(pa.array(rows, kind), ids, [LateDefault(("b",), "none", (1,)), LateDefault(("gone",), 1, (1,))])
    assert found.to_pylist() == [{"a": 1, "b": "none"}, {"a": 2, "b": "x"}, None, {"a": 3, "b": None}]
    assert found.type == kind


def struct(*fields):
    return {"type": "record", "name": "Who", "fields": [*fields]}


NAME, NICK = field("name", "string"), field("nick", "string", default="none")


def within(kind, nullable=False):
    """Two schemas of a field that holds a record, whose second version has one field more."""
    found = []
    for fields in ([NAME], [NAME, NICK]):
        inner = kind(struct(*fields))
        found.append([A, field("who", ["null", inner] if nullable else inner)])
    return typing(*found, newest=2)


def test_fields_within_records_are_filled_where_the_record_is() -> None:
    found = late_defaults(within(lambda inner: inner, nullable=True))
    assert found == (LateDefault(("who", "nick"), "none", (1,)),)
    kind = pa.struct([("a", pa.int64()), ("who", pa.struct([("name", pa.string()), ("nick", pa.string())]))])
    rows = [
        {"a": 0, "who": {"name": "x", "nick": None}},
        {"a": 1, "who": {"name": "Ann", "nick": None}},
        {"a": 2, "who": {"name": "Bob", "nick": "B"}},
        {"a": 3, "who": None},
        None,
    ]
    ids = pa.array([1, 1, 2, 1, None], pa.int32())
    for first in (0, 1):
        made = filled(pa.array(rows, kind).slice(first), ids.slice(first), found)
        made.validate(full=True)
        wanted = [
            {**rows[0], "who": {"name": "x", "nick": "none"}},
            {**rows[1], "who": {"name": "Ann", "nick": "none"}},
        ]
        assert made.to_pylist() == [*wanted, *rows[2:]][first:]


def test_fields_of_records_within_lists_and_maps_are_filled() -> None:
    who = pa.struct([("name", pa.string()), ("nick", pa.string())])
    cases = (
        ("element", lambda inner: {"type": "array", "items": inner}, pa.list_(who), lambda *inner: [*inner]),
        ("value", lambda inner: {"type": "map", "values": inner}, pa.map_(pa.string(), who),
         lambda *inner: [(str(at), one) for at, one in enumerate(inner)]),
    )  # fmt: skip
    for step, kind, arrow, of in cases:
        found = late_defaults(within(kind))
        assert found == (LateDefault(("who", step, "nick"), "none", (1,)),)
        ann, bob = {"name": "Ann", "nick": None}, {"name": "Bob", "nick": "B"}
        rows = [of(ann), of(), of(bob, bob), of(ann, ann), None]
        columns = pa.array([{"who": one} for one in rows], pa.struct([("who", arrow)])).slice(1)
        made = filled(columns, pa.array([1, 2, 1, None], pa.int32()), found)
        made.validate(full=True)
        said = {"name": "Ann", "nick": "none"}
        assert [row["who"] for row in made.to_pylist()] == [of(), of(bob, bob), of(said, said), None]


def test_a_writer_that_lacks_the_record_gets_its_default_alone() -> None:
    whole = field("who", struct(NAME, NICK), default={"name": "nobody"})
    found = late_defaults(typing([A], [A, field("who", struct(NAME))], [A, whole], newest=3))
    who = LateDefault(("who",), {"name": "nobody", "nick": "none"}, (1,))
    assert found == (who, LateDefault(("who", "nick"), "none", (2,)))
    kind = pa.struct([("who", pa.struct([("name", pa.string()), ("nick", pa.string())]))])
    rows = pa.array([{"who": None}, {"who": {"name": "Ann", "nick": None}}], kind)
    made = filled(rows, pa.array([1, 2], pa.int32()), found).to_pylist()
    assert [row["who"] for row in made] == [who.value, {"name": "Ann", "nick": "none"}]
