"""The property that holds a typed topic's schemas: in and out, and what is refused."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.delta.written_schemas import KINDS, WrittenSchema, parse_written_schemas, written_schemas_text

_TEXT = st.text(max_size=8)
_SCHEMAS = st.builds(
    WrittenSchema,
    st.integers(-(2**31), 2**31 - 1).filter(bool),
    st.sampled_from(KINDS),
    _TEXT,
    st.lists(st.tuples(_TEXT, _TEXT), max_size=2).map(tuple),
    st.none() | _TEXT,
    st.none() | st.integers(1, 2**31 - 1),
    st.none() | st.binary(min_size=16, max_size=16).map(bytes.hex),
)


@given(st.lists(_SCHEMAS, unique_by=lambda one: one.id))
def test_schemas_come_back_as_they_were_by_id(schemas: list[WrittenSchema]) -> None:
    text = written_schemas_text(schemas)
    assert parse_written_schemas(text) == tuple(sorted(schemas, key=lambda one: one.id))


def test_the_text_is_what_the_format_says() -> None:
    schemas = [
        WrittenSchema(7, "avro", '"long"', (("a.B", "{}"),), "orders-value", 2, "0f" * 16),
        WrittenSchema(-1, "json", "true"),
    ]
    assert orjson.loads(written_schemas_text(schemas)) == [
        {"id": -1, "type": "JSON", "schema": "true"},
        {
            "id": 7,
            "type": "AVRO",
            "schema": '"long"',
            "references": [{"name": "a.B", "schema": "{}"}],
            "subject": "orders-value",
            "version": 2,
            "guid": "0f" * 16,
        },
    ]


_GOOD = {"id": 1, "type": "AVRO", "schema": "x"}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "it is no JSON"),
        ("{", "it is no JSON"),
        ("{}", "it is no JSON list"),
        ([1], "its element 0 is no JSON object"),
        ([_GOOD, _GOOD], "its ids do not rise"),
        ([_GOOD | {"id": 2}, _GOOD], "its ids do not rise"),
        ([_GOOD | {"id": 0}], "has the id 0"),
        ([_GOOD | {"id": True}], "has the id True"),
        ([_GOOD | {"id": "1"}], "has the id '1'"),
        ([_GOOD | {"id": 2**31}], "has the id 2147483648"),
        ([_GOOD | {"type": "XML"}], "has the type 'XML'"),
        ([_GOOD | {"type": []}], "has the type []"),
        ([{"id": 1, "type": "AVRO"}], "has no text 'schema'"),
        ([_GOOD | {"schema": None}], "has no text 'schema'"),
        ([_GOOD | {"subject": 1}], "has no text 'subject'"),
        ([_GOOD | {"version": 0}], "has the version 0"),
        ([_GOOD | {"version": "1"}], "has the version '1'"),
        ([_GOOD | {"guid": "0F" * 16}], "which is no 32 hexadecimal digits"),
        ([_GOOD | {"guid": "0f"}], "which is no 32 hexadecimal digits"),
        ([_GOOD | {"references": {}}], "has references that are no list"),
        ([_GOOD | {"references": [{"name": "a"}]}], "has references that are no list"),
        ([_GOOD | {"references": [{"name": "a", "schema": 1}]}], "has references that are no list"),
        ([_GOOD | {"more": 1}], "has 'more', which is not known"),
    ],
)
def test_what_is_no_such_list_is_refused_by_what_is_wrong(body: object, why: str) -> None:
    text = body if isinstance(body, str) else orjson.dumps(body).decode()
    with pytest.raises(ValueError, match=r".") as refused:
        parse_written_schemas(text)
    assert why in str(refused.value)
