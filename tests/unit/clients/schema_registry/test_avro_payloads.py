"""Payloads of Avro are read as fastavro reads them, or refused: none ends the process, or takes its memory."""

import io
from contextlib import suppress
from decimal import Decimal

import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from tidelog.clients.schema_registry.avro_payloads import MAX_DEPTH, MOST_DECIMAL, MOST_VALUES, AvroPayloads
from tidelog.clients.values.errors import SerializationError

NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
TREE = {
    "type": "record",
    "name": "a.Tree",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "children", "type": {"type": "array", "items": "Tree"}},
        {"name": "named", "type": {"type": "map", "values": ["null", "Tree", "long", "bytes"]}},
        {"name": "more", "type": ["null", {"type": "fixed", "name": "Id", "size": 3}, "double", "boolean"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    ],
}
NULLS = {"type": "array", "items": "null"}
EMPTY = {"type": "array", "items": {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}}
MAPS = {"type": "map", "values": {"type": "map", "values": "null"}}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}
MONEY = {"type": "record", "name": "M", "fields": [{"name": "m", "type": DECIMAL}]}
SCHEMAS = (NODE, TREE, NULLS, EMPTY, MAPS, MONEY, ["null", NODE], {"type": "array", "items": NODE})


def reading(schema):
    named = {}
    return AvroPayloads(parse_schema(schema, named_schemas=named), named)


def written(schema, value):
    buffer = io.BytesIO()
    schemaless_writer(buffer, schema, value)
    return buffer.getvalue()


def read_or_refused(schema, payload):
    """Nothing but these two: another error fails the test, and a crash all of them."""
    with suppress(SerializationError):
        reading(schema).read(payload)


def varint(number):
    number, out = ((number << 1) ^ (number >> 63)) & (1 << 64) - 1, b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def doubled(levels):
    """Records that each hold two of the next: no bytes at all, and 2 to the power of `levels` values."""
    schema = {"type": "record", "name": "R0", "fields": []}
    for at in range(1, levels + 1):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{at - 1}"}]
        schema = {"type": "record", "name": f"R{at}", "fields": fields}
    return schema


@pytest.mark.parametrize(
    ("schema", "payload", "why"),
    [
        (NODE, b"\x02" * 30_000 + b"\0", f"nested deeper than {MAX_DEPTH} levels"),
        (NODE, b"\x02" * MAX_DEPTH + b"\0", f"nested deeper than {MAX_DEPTH} levels"),
        (TREE, (b"\0" + varint(1)) * 30_000, f"nested deeper than {MAX_DEPTH} levels"),
        (NODE, b"\x04", "none of the 2 branches"),
        (NODE, b"\x01", "none of the 2 branches"),
        (NODE, b"\x80" * 20, "more than 10 bytes"),
        (NODE, b"", "ends within a value"),
        (TREE, varint(1 << 40), "a length is"),
        (TREE, varint(-5), "a length is -5"),
        (NULLS, varint(1 << 60) + b"\0", "values"),
        (NULLS, (varint(MOST_VALUES // 2) * 3) + b"\0", "values"),
        (EMPTY, varint(-(1 << 60)) + b"\0\0", "values"),
        (MAPS, varint(1 << 60), "EOFError"),
        (doubled(40), b"", f"more than {MOST_VALUES} values"),
        (MONEY, varint(MOST_DECIMAL + 1) + b"\x7f" * (MOST_DECIMAL + 1), "a decimal has"),
        (DECIMAL, b"\x7f" * (MOST_DECIMAL + 1), "a decimal has"),
        ("long", b"\x80", ""),
        ("string", varint(1 << 40) + b"a", ""),
        ({"type": "long", "logicalType": "timestamp-micros"}, varint(1 << 62), ""),
    ],
)
def test_payloads_beyond_the_bounds_are_refused(schema, payload, why):
    with pytest.raises(SerializationError) as refused:
        reading(schema).read(payload)
    assert why in str(refused.value)


def test_schemas_that_are_nested_too_deep_are_refused():
    schema = "int"
    for _ in range(100_000):
        schema = {"type": "array", "items": schema}
    with pytest.raises(SerializationError):
        AvroPayloads(schema, {})


def test_payloads_up_to_the_bounds_are_read():
    found = reading(NODE).read(b"\x02" * (MAX_DEPTH - 1) + b"\0")
    for _ in range(MAX_DEPTH - 1):
        found = found["next"]
    assert found == {"next": None}
    assert len(reading(NULLS).read(varint(100_000) + b"\0")) == 100_000
    assert reading(MONEY).read(written(MONEY, {"m": Decimal(1)}))["m"] == 1
    assert reading(doubled(3)).read(b"")["b"]["a"] == {"a": {}, "b": {}}


TREES = st.deferred(
    lambda: st.fixed_dictionaries(
        {
            "name": st.text(max_size=5),
            "children": st.lists(TREES, max_size=3),
            "named": st.dictionaries(
                st.text(max_size=3), st.none() | TREES | st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=9),
                max_size=2,
            ),
            "more": st.none() | st.binary(min_size=3, max_size=3) | st.floats(allow_nan=False) | st.booleans(),
            "kind": st.sampled_from("AB"),
        }
    )
)  # fmt: skip


@given(TREES)
def test_what_fits_a_recursive_schema_is_read(value):
    assert reading(TREE).read(written(TREE, value)) == value


@given(
    st.sampled_from(SCHEMAS),
    st.binary(max_size=64)
    | st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=40).map(
        lambda found: b"".join(map(varint, found))
    )
    | st.tuples(st.binary(max_size=4), st.integers(0, 10_000), st.binary(max_size=4)).map(
        lambda one: one[0] * one[1] + one[2]
    ),
)
def test_any_bytes_are_a_value_or_refused(schema, payload):
    read_or_refused(schema, payload)


@given(TREES, st.integers(0, 200), st.binary(min_size=1, max_size=8))
def test_a_payload_that_is_changed_somewhere_is_a_value_or_refused(value, at, put):
    payload = written(TREE, value)
    at %= len(payload)
    for changed in (payload[:at], payload[:at] + put + payload[at:], payload[:at] + put + payload[at + len(put) :]):
        read_or_refused(TREE, changed)
