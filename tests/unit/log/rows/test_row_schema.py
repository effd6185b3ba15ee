"""Rows as JSON and as Parquet: what goes in comes out, and what is no row is refused."""

import io
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parquet import sealed_file

from tidelog.log.delta.schema import TIMESTAMP
from tidelog.log.rows.schema import Row, RowSchema

PAIRS = pa.list_(pa.field("element", pa.struct([("name", pa.string()), ("data", pa.binary())])))
SCHEMA = RowSchema(
    {
        "text": pa.string(),
        "small": pa.int32(),
        "large": pa.int64(),
        "yes": pa.bool_(),
        "data": pa.binary(),
        "at": TIMESTAMP,
        "items": pa.list_(pa.field("element", pa.struct([("id", pa.string()), ("pairs", PAIRS)]))),
    }
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
PAIR = st.fixed_dictionaries({}, optional={"name": TEXTS, "data": st.binary(max_size=5)})
ITEM = st.fixed_dictionaries({}, optional={"id": TEXTS, "pairs": st.lists(PAIR, max_size=2)})
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "text": TEXTS,
        "small": st.integers(-(2**31), 2**31 - 1),
        "large": st.integers(-(2**63), 2**63 - 1),
        "yes": st.booleans(),
        "data": st.binary(max_size=5),
        "at": st.integers(-(10**12), 10**13),
        "items": st.lists(ITEM, max_size=3),
    },
)


@given(ROWS)
def test_json_gives_the_row_back(row: Row) -> None:
    assert SCHEMA.from_json(orjson.loads(orjson.dumps(SCHEMA.to_json(row)))) == row


@given(st.lists(ROWS, max_size=4))
def test_parquet_gives_the_rows_back(rows: list[Row]) -> None:
    placed = [(3 * i, row) for i, row in enumerate(rows)]
    assert SCHEMA.from_file(io.BytesIO(SCHEMA.to_file(placed))) == placed


def test_many_rows_come_back_too() -> None:
    rows = [(i, {"text": f"t{i % 7}", "large": i}) for i in range(20_000)]
    data = SCHEMA.to_file(rows)
    assert SCHEMA.from_file(io.BytesIO(data)) == rows
    assert len(data) < 200_000  # compressed


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("text", "no row"),
        ({"word": 1}, "no column 'word'"),
        ({"text": 1}, "column 'text' is 1"),
        ({"text": None}, "column 'text' is None"),
        ({"small": True}, "column 'small' is True"),
        ({"small": 2**31}, "no room"),
        ({"large": -(2**63) - 1}, "no room"),
        ({"yes": 1}, "column 'yes' is 1"),
        ({"data": "%"}, "base64|Non-base64|padding"),
        ({"at": "now"}, "column 'at' is 'now'"),
        ({"items": {}}, "column 'items'"),
        ({"items": ["x"]}, "no row"),
        ({"items": [{"pairs": [{"name": 3}]}]}, "column 'name' is 3"),
    ],
)
def test_what_is_no_row_is_refused(body: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        SCHEMA.from_json(body)


def test_deltas_schema_names_every_column_and_partitions_by_the_base_offset() -> None:
    fields = {f["name"]: f["type"] for f in orjson.loads(SCHEMA.shape().schema)["fields"]}
    assert list(fields) == ["base_offset", "position", "text", "small", "large", "yes", "data", "at", "items"]
    assert (fields["small"], fields["large"], fields["at"]) == ("integer", "long", "timestamp")
    assert fields["items"]["elementType"]["fields"][1]["type"]["elementType"]["fields"][1]["type"] == "binary"
    assert SCHEMA.shape().partition_columns == ("base_offset",)


def test_a_file_has_the_columns_that_a_row_has_a_value_of() -> None:
    data = SCHEMA.to_file([(0, {"text": "a"}), (2, {"items": []})])
    assert pq.read_schema(io.BytesIO(data)).names == ["position", "text", "items"]


def file_of(**columns: list[Any]) -> io.BytesIO:
    return io.BytesIO(sealed_file(pa.table(columns)))


def test_a_column_that_a_file_does_not_have_has_no_values() -> None:
    assert SCHEMA.from_file(file_of(position=[0, 2], text=["a", None])) == [(0, {"text": "a"}), (2, {})]


@pytest.mark.parametrize("columns", [{"text": ["a"]}, {"position": [0], "large": ["a"]}])
def test_a_file_without_positions_or_with_other_types_is_refused(columns: dict[str, list[Any]]) -> None:
    with pytest.raises((KeyError, pa.ArrowException, ValueError)):
        SCHEMA.from_file(file_of(**columns))
