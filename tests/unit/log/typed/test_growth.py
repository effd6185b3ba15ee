"""Columns of a typed topic only grow, and every field that is no column has its reason."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.delta.schema import TIMESTAMP, columns_of, typed_schema
from tidelog.log.typed import growth
from tidelog.log.typed.growth import grown
from tidelog.log.typed.placing import placed

INT, LONG, TEXT = pa.int32(), pa.int64(), pa.string()


def struct(**fields: pa.DataType) -> pa.StructType:
    return pa.struct(list(fields.items()))


def listed(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind))


@pytest.mark.parametrize(
    ("old", "new", "columns", "left_out"),
    [
        (None, None, None, {}),
        (None, struct(a=INT), struct(a=INT), {}),
        (struct(a=INT), None, struct(a=INT), {}),
        (struct(a=INT), struct(b=TEXT, a=INT), struct(a=INT, b=TEXT), {}),
        (struct(a=struct(x=INT)), struct(a=struct(y=INT)), struct(a=struct(x=INT, y=INT)), {}),
        (
            struct(a=listed(struct(x=INT))),
            struct(a=listed(struct(y=INT))),
            struct(a=listed(struct(x=INT, y=INT))),
            {},
        ),
        (
            struct(a=pa.map_(TEXT, struct(x=INT))),
            struct(a=pa.map_(TEXT, struct(y=INT))),
            struct(a=pa.map_(TEXT, struct(x=INT, y=INT))),
            {},
        ),
        (None, struct(a=pa.large_string(), b=pa.binary_view()), struct(a=TEXT, b=pa.binary()), {}),
        (None, struct(a=pa.large_list(INT)), struct(a=listed(INT)), {}),
        (struct(a=INT), struct(a=LONG, b=INT), struct(a=INT, b=INT), {"a": "its type is int64, and int32 in an"}),
        (struct(a=INT), struct(a=struct(x=INT)), struct(a=INT), {"a": "its type is a struct, and int32 in an"}),
        (
            struct(a=listed(INT)),
            struct(a=listed(TEXT)),
            struct(a=listed(INT)),
            {"a.element": "its type is string, and"},
        ),
        (struct(a=struct(x=INT)), struct(a=struct(x=TEXT)), struct(a=struct(x=INT)), {"a.x": "its type is string"}),
        (struct(Carrier=INT), struct(carrier=INT), struct(Carrier=INT), {"carrier": "differs from 'Carrier' only by"}),
        (None, struct(a=INT, A=INT), struct(a=INT), {"A": "its name differs from 'a' only by case"}),
        (None, pa.struct([("a", INT), ("a", TEXT)]), struct(a=INT), {"a": "the schema has the name twice"}),
        (
            None,
            pa.struct([("a b", INT), ("", INT), ("c=", INT)]),
            None,
            dict.fromkeys(["a b", "", "c="], "Delta forbids"),
        ),
        (None, struct(a=pa.time64("us")), None, {"a": "Delta has no type for time64[us]"}),
        (None, struct(a=pa.timestamp("us")), None, {"a": "Delta has no type for timestamp[us]"}),
        (None, struct(a=pa.decimal128(38, -2)), None, {"a": "Delta has no type for decimal128(38, -2)"}),
        (None, struct(a=pa.map_(INT, INT)), None, {"a": "its keys are int32, not string"}),
        (None, struct(a=pa.struct([])), None, {"a": "it has no fields"}),
        (None, struct(a=struct(b=pa.null()), c=INT), struct(c=INT), {"a.b": "Delta has no type for null"}),
        (None, struct(a=listed(pa.struct([]))), None, {"a.element": "it has no fields"}),
    ],
)
def test_fields_are_added_or_left_out_with_a_reason(
    old: pa.StructType | None, new: pa.StructType | None, columns: pa.StructType | None, left_out: dict[str, str]
) -> None:
    found = grown(old, new)
    assert found.columns == columns
    assert found.left_out.keys() == left_out.keys()
    for path, why in left_out.items():
        assert why in found.left_out[path]


def test_which_types_agree() -> None:
    def agree(one: pa.DataType, other: pa.DataType) -> bool:
        return not grown(struct(f=one), struct(f=other)).left_out

    one = struct(a=INT, b=listed(struct(x=LONG)))
    other = struct(b=listed(struct(x=LONG, y=TEXT)), c=pa.date32())
    assert agree(one, other)
    assert agree(other, one)
    assert not agree(one, struct(a=LONG))
    assert not agree(pa.map_(TEXT, INT), pa.map_(TEXT, LONG))
    assert not agree(listed(INT), INT)
    assert not agree(one, INT)


def test_a_table_has_no_more_fields_than_engines_plan_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "MOST_FIELDS", 4)
    found = grown(struct(a=struct(x=INT)), struct(a=struct(y=INT, z=INT), b=INT, c=INT))
    assert found.columns == struct(a=struct(x=INT, y=INT, z=INT))
    assert found.left_out == dict.fromkeys(["b", "c"], "the table has 4 fields already")


def test_what_lies_too_deep_is_no_column() -> None:
    deep: pa.DataType = INT
    for _ in range(growth.MOST_LEVELS + 10):
        deep = struct(a=deep)
    found = grown(None, struct(a=deep, b=INT))
    assert found.columns == struct(b=INT)
    assert [*found.left_out.values()] == ["it lies deeper than 32 levels"]


_NAMES = st.sampled_from(["a", "b", "A", "c d", "e"])
_LEAVES = st.sampled_from([INT, LONG, TEXT, TIMESTAMP, pa.decimal128(9, 2), pa.date32(), pa.time32("ms"), pa.null()])


def _structs(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.StructType]:
    return st.lists(st.tuples(_NAMES, kinds), max_size=4).map(pa.struct)


_KINDS = st.recursive(
    _LEAVES, lambda kinds: st.one_of(_structs(kinds), kinds.map(listed), kinds.map(lambda kind: pa.map_(TEXT, kind)))
)


def _paths(kind: pa.DataType, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    """{path: what is there} at all levels, to compare columns without the code under test."""
    found = {path: type(kind).__name__ if kind.num_fields else str(kind)}
    for i in range(kind.num_fields):
        field = kind.field(i)
        found |= _paths(field.type, (*path, field.name))
    return found


@given(st.lists(_structs(_KINDS), max_size=5))
def test_whatever_schemas_come_columns_only_grow(schemas: list[pa.StructType]) -> None:
    columns: pa.StructType | None = None
    for schema in schemas:
        after = grown(columns, schema)
        before = {} if columns is None else _paths(columns)
        assert before.items() <= ({} if after.columns is None else _paths(after.columns)).items()
        columns = after.columns
        assert grown(columns, schema).columns == columns  # nothing is left to do
        assert columns_of(typed_schema(columns)) == columns  # as the log has it, and back
    for schema in schemas:  # no schema that was taken in needs another column
        assert grown(columns, schema).columns == columns


def _value(kind: pa.DataType) -> object:
    """A value of a type without a null in it."""
    if pa.types.is_struct(kind):
        return {field.name: _value(field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_value(kind.value_type), _value(kind.value_type)]
    if pa.types.is_map(kind):
        return [("key", _value(kind.item_type))]
    return {
        pa.string(): "text",
        pa.int32(): 7,
        pa.int64(): 2**40,
        TIMESTAMP: datetime(2026, 1, 2, tzinfo=UTC),
        pa.date32(): date(2026, 1, 2),
    }.get(kind, Decimal("1.25"))


@given(st.lists(_structs(_KINDS), max_size=5))
def test_rows_of_every_earlier_schema_are_read_after_all_later_ones(schemas: list[pa.StructType]) -> None:
    columns: pa.StructType | None = None
    written: list[pa.Array] = []
    for schema in schemas:
        columns = grown(columns, schema).columns
        if columns is not None:
            written.append(pa.array([_value(columns), None], columns))
    for rows in written:
        now = placed(rows, columns)
        assert now.type == columns
        assert now.is_null().to_pylist() == [False, True]
        assert placed(now, rows.type).equals(rows)  # nothing of it was lost
