"""Columns become the payloads that they were read from, byte for byte; rows that can't be one are named."""

import json
import pickle
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.avro_payloads import NAMED, SIMPLE, around, random_schema, random_value, record, write

from tidelog.schemas.avro import encoder
from tidelog.schemas.base.errors import EncodingError
from tidelog.schemas.compile import compile_schema


def compiled(schema):
    return compile_schema("avro", json.dumps(schema))


def again(schema, payloads):
    """Payloads, decoded and encoded again."""
    found = compiled(schema).decode(pa.array(payloads, pa.binary()))
    return compiled(schema).encode(found.columns).to_pylist()


@pytest.mark.parametrize("shape", around("int"))
@pytest.mark.parametrize("name", [*SIMPLE, *NAMED])
def test_every_type_comes_back_byte_for_byte(name, shape):
    schema = record(before="string", it=around({**SIMPLE, **NAMED}[name])[shape], after=["null", "long"])
    random = Random(f"{name}{shape}")
    payloads = write(schema, [random_value(random, schema) for _ in range(70)])
    if compiled(schema).exact:
        assert again(schema, payloads) == payloads
    else:
        assert (name, shape) in {("empty fixed", "array"), ("empty fixed", "array of arrays")}


@given(st.integers(0, 1 << 32), st.integers(0, 100), st.sampled_from([1, 7, 1 << 14]))
def test_random_records_come_back_byte_for_byte(seed, count, batch):
    random = Random(seed)
    schema = random_schema(random)
    payloads = [one if random.random() < 0.9 else None for one in write_some(random, schema, count)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "BATCH_ROWS", batch)
        if compiled(schema).exact:
            assert again(schema, payloads) == payloads


@given(st.integers(0, 1 << 32), st.integers(1, 60))
def test_a_slice_of_rows_is_encoded_as_the_rows_are(seed, count):
    random = Random(seed)
    schema = random_schema(random)
    if compiled(schema).exact:
        payloads = write_some(random, schema, count)
        columns = compiled(schema).decode(pa.array(payloads, pa.binary())).columns
        first = random.randrange(count)
        last = random.randrange(first, count + 1)
        assert compiled(schema).encode(columns.slice(first, last - first)).to_pylist() == payloads[first:last]


def write_some(random, schema, count):
    return write(schema, [random_value(random, schema) for _ in range(count)])


NUMBERS = [sign * (2**bits + more) for bits in range(64) for sign in (1, -1) for more in (-1, 0)]


def test_numbers_of_every_size_come_back():
    schema = record(a="long", b=["null", "long"], c={"type": "array", "items": "long"})
    inside = [number for number in NUMBERS if -(1 << 63) <= number < 1 << 63]
    payloads = write(schema, [{"a": n, "b": ~n, "c": inside} for n in inside])
    assert again(schema, payloads) == payloads
    found = compiled(schema).decode(pa.array(payloads, pa.binary())).columns
    assert found.field("a").to_pylist() == inside
    assert found.field("c")[3].as_py() == inside


@pytest.mark.parametrize("size", [*range(66), 1000])
def test_strings_of_every_size_come_back(size):
    schema = record(a=["null", "string"], b="string", c=["string", "null"])
    values = [{"a": None, "b": "b" * size, "c": "c"}, {"a": "a" * size, "b": "b", "c": None}] * 3
    assert again(schema, write(schema, values)) == write(schema, values)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 15, 16, 17, 30])
def test_decimals_of_every_width_come_back(size):
    digits = min(38, len(str(1 << (8 * size - 1))) - 1)
    kind = {"type": "fixed", "name": "F", "size": size, "logicalType": "decimal", "precision": digits}
    by_bytes = {"type": "bytes", "logicalType": "decimal", "precision": digits}
    raw = record(a={"type": "fixed", "name": "F", "size": size}, b=["null", "bytes"])
    numbers = [n for n in NUMBERS if abs(n) < 10**digits] + [10**digits - 1, 1 - 10**digits, 0]
    rows = []
    for number in numbers:
        least = ((number if number >= 0 else ~number).bit_length() + 8) // 8
        rows.append({"a": number.to_bytes(size, "big", signed=True), "b": number.to_bytes(least, "big", signed=True)})
    payloads = write(raw, [*rows, {"a": bytes(size), "b": None}])
    schema = record(a=kind, b=["null", by_bytes])
    assert again(schema, payloads) == payloads
    found = compiled(schema).decode(pa.array(payloads, pa.binary())).columns
    assert [int(one) for one in found.field("a").to_pylist()] == [*numbers, 0]


def test_another_way_of_writing_blocks_is_read_and_not_given_back():
    schema = record(a={"type": "array", "items": "int"}, m={"type": "map", "values": "int"})
    in_one = bytes([6, 2, 4, 6, 0]) + bytes([4, 2, 97, 2, 2, 98, 4, 0])
    in_blocks = bytes([2, 2, 3, 4, 4, 6, 0]) + bytes([2, 2, 97, 2, 1, 6, 2, 98, 4, 0])
    found = compiled(schema).decode(pa.array([in_blocks, in_one], pa.binary()))
    assert found.ok.all()
    assert found.columns[0].as_py() == found.columns[1].as_py() == {"a": [1, 2, 3], "m": [("a", 1), ("b", 2)]}
    assert again(schema, [in_blocks]) == [in_one]


REFUSED = {
    "null": ("long", pa.array([1, None]), "is null"),
    "a symbol": ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.array(["A", "B"]), "none of the symbols A"),
    "microseconds": (SIMPLE["timestamp-millis"], pa.array([1000, 1001], pa.timestamp("us", "UTC")), "milliseconds"),
    "a size": ({"type": "fixed", "name": "F", "size": 2}, pa.array([b"ab", b"a"]), "2 bytes"),
    "a decimal": (
        {"type": "fixed", "name": "F", "size": 1, "logicalType": "decimal", "precision": 3},
        pa.array([127, 128]).cast(pa.decimal128(19)).cast(pa.decimal128(3)),
        "1 bytes",
    ),
    "a number": ("int", pa.array([1, 1 << 31]), "needs int32"),
    "a type": ("int", pa.array([["a"], ["b"]]), "needs int32"),
    "no list": ({"type": "array", "items": "int"}, pa.array([1, 2]), "list"),
    "no struct": (
        {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]},
        pa.array([1, 2]),
        "struct",
    ),
    "an element": ({"type": "array", "items": "int"}, pa.array([[1, 2], [3, None]]), "is null"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_row_that_can_t_be_written_is_named(name):
    kind, values, why = REFUSED[name]
    columns = pa.StructArray.from_arrays([values.take(pa.array([0, 0, 1]))], ["it"])
    with pytest.raises(EncodingError, match=why) as raised:
        compiled(record(it=kind)).encode(columns)
    assert name in ("a type", "no list", "no struct") or "Row 2: " in str(raised.value)
    assert "'it" in str(raised.value)


def test_columns_that_the_schema_lacks_must_be_null():
    schema = record(a="int")
    columns = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([None, None], pa.string())], ["a", "b"])
    assert compiled(schema).encode(columns).to_pylist() == [b"\x02", b"\x04"]
    columns = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([None, "x"])], ["a", "b"])
    with pytest.raises(EncodingError, match="Row 1: the field 'b' has a value"):
        compiled(schema).encode(columns)


def test_columns_that_are_not_given_are_null():
    columns = pa.StructArray.from_arrays([pa.array([1, 2], pa.int64())], ["b"])
    assert compiled(record(a=["null", "int"], b="int")).encode(columns).to_pylist() == [b"\0\x02", b"\0\x04"]
    with pytest.raises(EncodingError, match="Row 0: the field 'a' is null"):
        compiled(record(a="int", b="int")).encode(columns)


def test_a_schema_goes_to_another_process():
    schema = compiled(record(a=["null", "int"]))
    other = pickle.loads(pickle.dumps(schema))
    columns = schema.decode(pa.array([b"\x02\x04"])).columns
    assert other.encode(columns).to_pylist() == [b"\x02\x04"]
    assert other.columns == schema.columns


def test_no_rows_are_no_payloads():
    schema = compiled(record(a=["null", "int"], b={"type": "array", "items": "string"}))
    found = schema.decode(pa.array([None, None], pa.binary()))
    assert not found.ok.any()
    assert schema.encode(found.columns).to_pylist() == [None, None]
    found = schema.decode(pa.array([], pa.binary()))
    assert schema.encode(found.columns).to_pylist() == []
    assert found.ok.dtype == np.bool_
