"""Payloads made to do harm cost no more than their size, and harm no other."""

import json
import tracemalloc
from random import Random

import pyarrow as pa
import pytest
from support.avro_payloads import record, rows, write

from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.compile import compile_schema


def compiled(schema):
    return compile_schema("avro", json.dumps(schema))


def long(number):
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


HUGE = long(1 << 40)
ARRAYS = {
    "int": {"type": "array", "items": "int"},
    "string": {"type": "array", "items": "string"},
    "double": {"type": "array", "items": "double"},
    "null": {"type": "array", "items": "null"},
    "nullable": {"type": "array", "items": ["null", "int"]},
    "empty records": {"type": "array", "items": {"type": "record", "name": "E", "fields": []}},
    "arrays": {"type": "array", "items": {"type": "array", "items": "boolean"}},
    "map": {"type": "map", "values": "int"},
    "map of null": {"type": "map", "values": "null"},
}
BAD = {
    "a huge count": HUGE,
    "the hugest count": long((1 << 63) - 1),
    "a huge negative count": long(-(1 << 40)) + HUGE,
    "the least count": long(-(1 << 63)) + HUGE,
    "a count and no items": long(100),
    "a block of another size": long(-1) + long(77) + bytes(8) + b"\0",
    "a number without end": b"\xff" * 40,
    "nothing": b"",
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("many", [1, 100])
def test_a_bad_array_is_found_and_harms_no_neighbour(kind, bad, many):
    schema = record(it=ARRAYS[kind], after="string")
    empty = {} if ARRAYS[kind]["type"] == "map" else []
    good = write(schema, [{"it": empty, "after": f"{i}"} for i in range(many)])
    payloads = [one for i, other in enumerate(good) for one in (other, BAD[bad] + b"\x02x" * (i % 3))]
    found = compiled(schema).decode(pa.array(payloads, pa.binary()))
    assert found.ok.tolist() == [True, False] * many
    assert [row and row["after"] for row in rows(found.columns)] == [
        None if i % 2 else f"{i // 2}" for i in range(len(payloads))
    ]
    assert compiled(schema).problem(payloads[1])


LONG_ITEMS = {"string": b"\0", "nullable": b"\0", "arrays": b"\0", "map": b"\0\0", "int": b"\0", "map of null": b"\0"}


@pytest.mark.parametrize("kind", LONG_ITEMS)
@pytest.mark.parametrize("in_blocks", [False, True])
def test_one_large_array_is_read_in_time_and_memory_of_its_size(kind, in_blocks):
    items = 20_000
    schema = record(it=ARRAYS[kind])
    one = LONG_ITEMS[kind]
    payload = (long(1) + one) * items + b"\0" if in_blocks else long(items) + one * items + b"\0"
    small = write(schema, [{"it": {} if "map" in kind else []}] * 200)
    payloads = pa.array([*small, payload, payload[:-1], *small], pa.binary())
    compiled(schema).decode(payloads.slice(0, 10))
    tracemalloc.start()
    found = compiled(schema).decode(payloads)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.ok.tolist() == [True] * 201 + [False] + [True] * 200
    if kind != "map of null":
        assert len(found.columns.field("it")[200]) == items
    assert peak < 400 * len(payload)


def test_deep_nesting_of_types_is_read():
    kind = "int"
    for _ in range(45):
        kind = {"type": "array", "items": ["null", kind]}
    schema = record(it=kind)
    value = 7
    for _ in range(45):
        value = [value]
    payloads = write(schema, [{"it": value}, {"it": []}] * 60)
    found = compiled(schema).decode(pa.array([*payloads, payloads[0][:-3]], pa.binary()))
    assert found.ok.tolist() == [True] * 120 + [False]


@pytest.mark.parametrize(("levels", "refused"), [(60, False), (110, True), (400, True), (100_000, True)])
def test_a_schema_that_is_nested_too_deeply_is_left_out_or_refused(levels, refused):
    kind = '{"type": "array", "items": ' * levels + '"int"' + "}" * levels
    text = f'{{"type": "record", "name": "R", "fields": [{{"name": "it", "type": {kind}}}]}}'
    if refused:
        with pytest.raises(SchemaError, match="nested"):
            compile_schema("avro", text)
    else:
        assert "nested deeper" in compile_schema("avro", text).left_out["it"]


@pytest.mark.parametrize(
    ("kind", "bad", "why"),
    [
        ("boolean", b"\x02", "a boolean is the byte 2"),
        ("int", long(1 << 31), "is no int"),
        ("int", b"\xff" * 9 + b"\x01", "is no int"),
        ("long", b"\xff" * 9 + b"\x02", "more than 64 bits"),
        ("long", b"\x80" * 10 + b"\x00", "more than 10 bytes"),
        ("long", b"", "ends within"),
        ("double", bytes(7), "ends within"),
        ("string", b"\x02\xff", "UTF-8"),
        ("string", b"\x06\xed\xa0\x80", "UTF-8"),
        ("string", long(-1), "a length is -1"),
        ("bytes", long(1 << 62), "ends within"),
        ("bytes", b"\x00\x00", "1 bytes follow"),
        (["null", "int"], b"\x04\x00", "the number 2 is none of the 2 branches"),
        (["null", "int"], b"\x01\x00", "the number -1 is none"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x04", "the number 2 is none of the 2 symbols"),
        ({"type": "fixed", "name": "F", "size": 3}, b"ab", "ends within"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x04\x00\x64", "more than its 2 digits"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 38}, long(17) + b"\1" + bytes(16), "38 digits"),
        ({"type": "long", "logicalType": "timestamp-millis"}, long(1 << 61), "microseconds"),
    ],
)
@pytest.mark.parametrize("many", [1, 100])
def test_a_bad_value_is_told(kind, bad, why, many):
    schema = record(it=kind)
    found = compiled(schema).decode(pa.array([bad] * many, pa.binary()))
    assert not found.ok.any()
    assert found.columns.null_count == many
    assert why in compiled(schema).problem(bad)


def test_numbers_and_decimals_longer_than_they_need_are_read():
    schema = record(n="long", d={"type": "bytes", "logicalType": "decimal", "precision": 20})
    payload = b"\x82\x80\x80\x80\x80\x80\x80\x80\x80\x00" + long(30) + b"\xff" * 29 + b"\xfe"
    for many in (1, 100):
        found = compiled(schema).decode(pa.array([payload] * many, pa.binary()))
        assert found.ok.all()
        assert {(row["n"], row["d"]) for row in rows(found.columns)} == {(1, -2)}


def test_noise_is_never_taken_for_more_than_it_is():
    random = Random(4)
    schema = record(a="int", b=["null", "string"], c=ARRAYS["nullable"], d=ARRAYS["map"])
    noise = [random.randbytes(random.randint(0, 60)) for _ in range(3000)]
    found = compiled(schema).decode(pa.array(noise, pa.binary()))
    assert [compiled(schema).problem(one) is None for one in noise] == found.ok.tolist()
