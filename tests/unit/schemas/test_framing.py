"""Confluent's prefix of values: taken off and put on again, for whole batches."""

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidelog.schemas.base.framing import encoded_indexes, framed, guids_of, id_of, read_indexes, split

IDS = st.sampled_from([1, 7, 255, 256, 1 << 24, (1 << 31) - 1])
FRAMED = st.builds(lambda number, payload: b"\0" + struct.pack(">I", number) + payload, IDS, st.binary(max_size=9))
VALUES = st.lists(st.none() | FRAMED | st.binary(max_size=9), max_size=30)


def one_by_one(value):
    """The id and the payload of one value."""
    if value is None or len(value) < 5 or value[0]:
        return 0, value
    number = struct.unpack(">I", value[1:5])[0]
    return (number, value[5:]) if 0 < number < 1 << 31 else (0, value)


@given(VALUES, st.integers(0, 30), st.integers(0, 30))
def test_ids_and_payloads_are_split_as_one_by_one(values, first, count):
    some = values[first : first + count]
    ids, payloads = split(pa.array(values, pa.binary()).slice(first, count))
    payloads.validate(full=True)
    assert list(zip(ids.tolist(), payloads.to_pylist(), strict=True)) == [one_by_one(value) for value in some]
    assert ids.dtype == np.int32
    assert framed(payloads, ids).to_pylist() == some


@pytest.mark.parametrize("number", [0, 1 << 31, (1 << 32) - 1])
def test_a_prefix_of_an_id_that_there_can_t_be_is_none(number):
    value = b"\0" + struct.pack(">I", number) + b"x"
    ids, payloads = split(pa.array([value, b"\0\0\0\0\1"], pa.binary()))
    assert ids.tolist() == [0, 1]
    assert payloads.to_pylist() == [value, b""]


def test_values_without_any_prefix_are_not_copied():
    values = pa.array([b"abc", None, b"\0\0\0\0\0abc"], pa.binary())
    ids, payloads = split(values)
    assert not ids.any()
    assert payloads is values


def headers_of(*rows):
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return pa.array([row and [{"key": key, "value": value} for key, value in row] for row in rows], kind)


def test_the_last_header_of_a_record_names_its_schema():
    one, other = b"\1" + bytes(range(16)), b"\1" + bytes(16)
    name = "__value_schema_id"
    found = guids_of(
        headers_of(
            None,
            [(name, one)],
            [(name, one), ("x", None), (name, other)],
            [(name, b"\0" + bytes(16))],
            [(name, b"\1short")],
            [(name, None)],
            [("__key_schema_id", one)],
        )
    )
    assert found == {1: (one[1:], b""), 2: (other[1:], b"")}
    assert guids_of(headers_of([(name, one + b"\x02\x04")])) == {0: (one[1:], b"\x02\x04")}
    assert guids_of(headers_of(None, None)) == {}


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=6).map(tuple), st.binary(max_size=5))
@example((0,), b"")
def test_message_indexes_are_read_as_they_are_written(indexes, rest):
    written = encoded_indexes(indexes)
    assert read_indexes(written + rest) == (indexes, len(written))
    assert read_indexes(rest + written, len(rest)) == (indexes, len(rest + written))


@pytest.mark.parametrize(
    ("place", "encoded"), [((0,), b"\0"), ((1,), b"\2\2"), ((1, 1), b"\4\2\2"), ((100, 0), b"\4\xc8\1\0")]
)
def test_message_indexes_have_confluents_form(place, encoded):
    assert encoded_indexes(place) == encoded


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\2",  # one, and nothing follows
        b"\1",  # -1 of them
        b"\2\1",  # the message -1
        b"\xff\xff\xff\xff\xff\xff",  # no end
        b"\x82\1" + b"\2" * 65,  # deeper than any type
        b"\xfe\xff\xff\xff\x0f" + b"\0" * 10,
    ],
)
def test_what_are_no_message_indexes(payload):
    assert read_indexes(payload) == ((), 0)
    assert read_indexes(b"\x80\1" + b"\2" * 64) == ((1,) * 64, 66)


@pytest.mark.parametrize(("value", "number"), [(b"\0\0\0\1\2x", 258), (b"\0\xff\xff\xff\xff", (1 << 32) - 1)])
def test_the_id_of_one_value(value, number):
    assert id_of(value) == number
    assert id_of(value[:4]) is None
    assert id_of(b"\1" + value[1:]) is None
