"""A payload's columns take no more than its size: many empty elements of a wide list are no columns."""

import json

import pyarrow as pa
import pytest
from support.protobuf_messages import field, varint, within

from tidelog.schemas.base import cells
from tidelog.schemas.compile import compile_schema

WIDE = 500
JSON_ELEMENT = {"type": "object", "properties": {f"f{i}": {"type": "string"} for i in range(WIDE)}}
JSON = compile_schema(
    "json",
    json.dumps(
        {
            "type": "object",
            "properties": {
                "l": {"type": "array", "items": JSON_ELEMENT},
                "m": {"type": "object", "additionalProperties": JSON_ELEMENT},
                "n": {"type": "array", "items": {"type": "array", "items": JSON_ELEMENT}},
                "o": {"type": "object", "properties": {"l": {"type": "array", "items": JSON_ELEMENT}}},
            },
        }
    ),
)
PROTO = compile_schema(
    "protobuf",
    'syntax = "proto3"; message In { '
    + " ".join(f"string f{i} = {i + 1};" for i in range(WIDE))
    + " } message Box { repeated In l = 1; } message M { repeated In l = 1; map<string, In> m = 2; repeated Box n = 3; Box o = 4; }",  # noqa: E501
    bare=True,
)
MANY = 200_000
NUMBER = 3_000


def pairs(count):
    return b",".join(b'"%d":{}' % i for i in range(count))


def entries(count):
    return b"".join(within(2, within(1, b"%d" % i) + within(2, b"")) for i in range(count))


JSON_SHAPES = {
    "list": lambda count: b'{"l":[' + b",".join([b"{}"] * count) + b"]}",
    "nulls": lambda count: b'{"l":[' + b",".join([b"null"] * count) + b"]}",
    "map": lambda count: b'{"m":{' + pairs(count) + b"}}",
    "lists": lambda count: b'{"n":[' + b",".join([b"[{}]"] * count) + b"]}",
    "within": lambda count: b'{"o":{"l":[' + b",".join([b"{}"] * count) + b"]}}",
}
PROTO_SHAPES = {
    "list": lambda count: within(1, b"") * count,
    "map": entries,
    "lists": lambda count: within(3, within(1, b"")) * count,
    "within": lambda count: within(4, within(1, b"") * count),
}
SHAPES = [(JSON, name, made) for name, made in JSON_SHAPES.items()] + [
    (PROTO, name, made) for name, made in PROTO_SHAPES.items()
]


@pytest.mark.parametrize(("values", "name", "made"), SHAPES)
def test_many_empty_elements_of_a_wide_list_have_no_columns(values, name, made):
    found = values.decode(pa.array([made(2), made(MANY // 10), made(1)], pa.binary()))
    assert found.ok.tolist() == [True, False, True]
    assert found.columns.nbytes < 1_000_000


@pytest.mark.parametrize("count", [NUMBER, MANY])
def test_elements_that_have_their_bytes_are_columns(count):
    """As many cells, in a list of numbers, or with a value each."""
    numbers = compile_schema("json", '{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer"}}}}')
    payload = b'{"l":[' + b",".join([b"1"] * count) + b"]}"
    assert numbers.decode(pa.array([payload])).ok.all()
    packed = compile_schema("protobuf", 'syntax = "proto3"; message M { repeated int32 l = 1; }', bare=True)
    assert packed.decode(pa.array([field(1, 2, varint(count), b"\1" * count)])).ok.all()


def test_whole_elements_of_a_wide_list_are_columns():
    element = {f"f{i}": "value" for i in range(WIDE)}
    payload = json.dumps({"l": [element] * NUMBER}).encode()
    assert len(payload) // 2 * WIDE > cells.MOST_CELLS + len(payload) * cells.CELLS_OF_A_BYTE
    found = JSON.decode(pa.array([payload]))
    assert found.ok.all()
    assert found.columns.field("l").values.to_pylist()[-1] == element
    whole = within(1, b"".join(within(i + 1, b"value") for i in range(WIDE))) * NUMBER
    assert PROTO.decode(pa.array([whole])).ok.all()


def test_widths():
    inner = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string()), ("d", pa.list_(pa.int64()))]))])
    assert cells.cells_of(inner) == 3
    assert cells.list_cells_of(inner).widest == 1
    assert cells.list_cells_of(pa.struct([("m", pa.map_(pa.string(), inner))])).widest == 3
    assert cells.list_cells_of(pa.struct([("a", pa.int32())])) is None
