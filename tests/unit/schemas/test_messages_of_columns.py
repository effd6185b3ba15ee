"""Columns written as messages of Protobuf, and why a payload is none."""

import datetime as dt
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.protobuf_messages import PLACE, PROTO2, TEXT, field, instant, message_of, varint, within

from tidelog.schemas.base.errors import EncodingError
from tidelog.schemas.compile import compile_schema

VALUES, BARE = compile_schema("protobuf", TEXT), compile_schema("protobuf", TEXT, bare=True)
VALUES2 = compile_schema("protobuf", PROTO2)
EVENTS = """syntax = "proto3"; message Created { int32 id = 1; message Part { int32 n = 1; } }
    message Moved { int32 id = 1; double x = 4; }"""
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ONE, K, ID = field(1, 0, b"\1"), within(1, b"k"), field(1, 0, b"\5")


def binaries(payloads):
    return pa.array(payloads, pa.binary())


M = message_of(TEXT, "p.M")
INNER = st.builds(dict, a=st.integers(-9, 9), s=st.lists(st.text(max_size=3), max_size=2))
SCALARS = {
    "d": st.floats(),
    "i64": st.integers(-(2**63), 2**63 - 1),
    "u64": st.integers(0, 2**64 - 1),
    "s": st.text(),
    "y": st.binary(),
    "e": st.sampled_from([0, 1, -5, 77]),
    "ri": st.lists(st.integers(-9, 9)),
    "ms": st.dictionaries(st.text(), st.integers(-9, 9)),
    "x2": st.text(),
}


def made(fields, inner):
    message = M(**fields)
    for one in inner:
        message.n.CopyFrom(message.rn.add(**one))
    return message.SerializeToString()


MESSAGES = st.builds(made, st.fixed_dictionaries({}, optional=SCALARS), st.lists(INNER, max_size=2))


# --- encode ------------------------------------------------------------------------------------------------


@given(st.lists(MESSAGES, max_size=4))
def test_written_columns_are_read_again(payloads):
    columns = BARE.decode(binaries([*payloads, None])).columns
    again = BARE.encode(columns)
    assert [one is None for one in again.to_pylist()] == [one is None for one in columns.to_pylist()]
    assert repr(BARE.decode(again).columns.to_pylist()) == repr(columns.to_pylist())


WRITTEN = [
    ({}, b""),
    ({"i32": -1, "d": 0.0, "s": "x"}, field(3, 0, varint(-1)) + within(14, b"x")),
    ({"e": "C", "oe": "77"}, field(16, 0, varint(-5)) + field(18, 0, varint(77))),
    ({"o": 0}, field(17, 0, b"\0")),
    ({"n": {}}, within(19, b"")),
    ({"rn": [{"a": 1}, {}], "ri": [1, 2]}, within(20, ONE) + within(20, b"") + within(21, b"\1\2")),
    (
        {"ms": [("k", 1), ("a", 2)]},
        within(23, within(1, b"a") + field(2, 0, b"\2")) + within(23, K + field(2, 0, b"\1")),
    ),
    ({"mb": [("true", "B")]}, within(25, field(1, 0, b"\1") + field(2, 0, b"\1"))),
    ({"mi": [("-1", {"a": 1})]}, within(24, field(1, 0, varint(-1)) + within(2, field(1, 0, b"\1")))),
    ({"x2": ""}, within(27, b"")),
    ({"ts": EPOCH - dt.timedelta(microseconds=1)}, within(29, instant(-1, 999_999_000))),
    (
        {"w": 0, "ws": "x", "rw": [True, False]},
        within(31, b"") + within(32, within(1, b"x")) + within(33, ONE) + within(33, b""),
    ),
]


@pytest.mark.parametrize(("row", "payload"), WRITTEN)
def test_what_rows_are_written_as(row, payload):
    columns = pa.array([row, None], VALUES.columns)
    assert VALUES.encode(columns).to_pylist() == [PLACE + payload, None]
    assert BARE.encode(columns.slice(0, 1)).to_pylist() == [payload] or BARE.columns != VALUES.columns


REFUSED = [
    ({"u32": -1}, "'u32' can't be -1"),
    ({"u32": 2**32}, "'u32' can't be 4294967296"),
    ({"n": {"u": -1}}, "'n.u' can't be -1"),
    ({"e": "D"}, "'e' can't be 'D'"),
    ({"e": str(2**40)}, "'e' can't be"),
    ({"ri": [1, None]}, "'ri' holds a null"),
    ({"rn": [None]}, "'rn' holds a null"),
    ({"ms": [("a", None)]}, "'ms' holds a null"),
    ({"mi": [("x", {})]}, "'mi' can't be"),
    ({"mi": [(str(2**40), {})]}, "'mi' can't be"),
    ({"mb": [("yes", "A")]}, "'mb' can't be"),
    ({"x1": 1, "x2": ""}, "'x1' and 'x2' are both there, of the oneof 'x'"),
]


@pytest.mark.parametrize(("row", "why"), REFUSED)
def test_rows_that_no_message_can_be_made_of(row, why):
    with pytest.raises(EncodingError, match=f"^Row 2: {re.escape(why)}"):
        VALUES.encode(pa.array([{}, None, row, {"u32": -1}], VALUES.columns))


def test_a_required_field_that_is_null():
    with pytest.raises(EncodingError, match=r"^Row 1: the required id is null"):
        VALUES2.encode(pa.array([{"id": 1}, {"s": "x"}], VALUES2.columns))


def test_a_schema_without_columns_writes_nothing():
    with pytest.raises(EncodingError, match="no columns"):
        compile_schema("protobuf", 'syntax = "proto3"; message M { }').encode(pa.array([{}], pa.struct([])))


# --- problem -----------------------------------------------------------------------------------------------

PROBLEMS = [
    (VALUES, PLACE, None),
    (VALUES, b"\0" + field(1, 0, b"\1"), None),
    (VALUES, PLACE + field(6, 0, varint(2**64 - 1)), None),
    (VALUES, PLACE + b"\xff", "is no message 'p.M'"),
    (VALUES, PLACE + within(14, b"\xff"), "is no message 'p.M'"),
    (VALUES, b"\0\xff", "is no message 'p.In'"),
    (VALUES, b"\2\x08", "message [4] of its schema, which has none there"),
    (VALUES, b"", "no message indexes"),
    (VALUES, b"\1\1", "no message indexes"),
    (VALUES, b"\2", "no message indexes"),
    (VALUES, b"\2\1", "no message indexes"),
    (VALUES2, b"\0", "lacks what 'p.M' requires: id"),
    (VALUES2, b"\0" + ID, None),
    (compile_schema("protobuf", EVENTS), b"\4\0\0" + ID, None),
    (compile_schema("protobuf", EVENTS), b"\4\0\2", "message [0, 1] of its schema"),
    (compile_schema("protobuf", EVENTS, bare=True), ID, None),
    (compile_schema("protobuf", EVENTS, bare=True), b"\0", "is no message 'Created'"),
]


@pytest.mark.parametrize(("values", "payload", "why"), PROBLEMS)
def test_why_a_payload_does_not_fit(values, payload, why):
    found = values.problem(payload)
    assert found is None if why is None else why in found
