"""Payloads of Protobuf as columns and back: what becomes of each, and never of another."""

import datetime as dt
import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from support.protobuf_messages import PLACE, PROTO2, TEXT, field, instant, message_of, varint, within

from tidelog.schemas.compile import compile_schema

LEFT = TEXT.replace("message M {", "message M { M again = 50;").replace("message In {", "message In { In again = 50;")
M, M2 = message_of(TEXT, "p.M"), message_of(PROTO2, "p.M")
VALUES, BARE = compile_schema("protobuf", TEXT), compile_schema("protobuf", TEXT, bare=True)
LEAVING, VALUES2 = compile_schema("protobuf", LEFT), compile_schema("protobuf", PROTO2)


def binaries(payloads):
    return pa.array(payloads, pa.binary())


def rows_of(values, payloads):
    found = values.decode(binaries(payloads))
    found.columns.validate(full=True)
    assert found.columns.type == values.columns
    rows = found.columns.to_pylist(maps_as_pydicts="strict")
    assert found.ok.tolist() == [row is not None for row in rows]
    return rows


def decoded(payload, values=BARE):
    """A message's fields that are not as in an empty message; None where it has no columns."""
    empty, row = rows_of(values, [b"", payload])
    return None if row is None else {name: one for name, one in row.items() if not same(one, empty[name])}


EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ONE, K = field(1, 0, b"\1"), within(1, b"k")
INNER = {"a": 0, "s": [], "u": None}
READ = [
    ("nothing", b"", {}),
    ("a default that is written", field(3, 0, b"\0"), {}),
    ("int32", field(3, 0, varint(-1)), {"i32": -1}),
    ("int32 of 32 bits", field(3, 0, varint(2**32 - 1)), {"i32": -1}),
    ("int32 that is cut", field(3, 0, varint(2**32 + 5)), {"i32": 5}),
    ("a varint longer than it must be", field(3, 0, b"\x81\x80\x80\x00"), {"i32": 1}),
    ("int64", field(4, 0, varint(-(2**63))), {"i64": -(2**63)}),
    ("uint32", field(5, 0, varint(2**32 - 1)), {"u32": 2**32 - 1}),
    ("uint64 of 63 bits", field(6, 0, varint(2**63 - 1)), {"u64": 2**63 - 1}),
    ("uint64 of 64 bits", field(6, 0, varint(2**63)), None),
    ("fixed64 of 64 bits", field(10, 1, b"\xff" * 8), None),
    ("uint64 of 64 bits, repeated", field(34, 0, varint(1)) + field(34, 0, varint(2**64 - 1)), None),
    ("uint64 of 64 bits, inside", within(20, b"") + within(20, field(3, 0, varint(2**63))), None),
    ("uint64 of 64 bits, in a map", within(24, field(1, 0, b"\1") + within(2, field(3, 0, varint(2**63)))), None),
    ("uint64 of 64 bits, wrapped", within(37, field(1, 0, varint(2**63))), None),
    ("sint", field(7, 0, b"\3") + field(8, 0, varint(2**64 - 1)), {"s32": -2, "s64": -(2**63)}),
    ("fixed", field(9, 5, b"\xff" * 4) + field(11, 5, b"\xff" * 4), {"f32": 2**32 - 1, "x32": -1}),
    ("sfixed64", field(12, 1, b"\xfe" + b"\xff" * 7), {"x64": -2}),
    ("double", field(1, 1, struct.pack("<d", math.inf)), {"d": math.inf}),
    ("float", field(2, 5, struct.pack("<f", 1.5)), {"f": 1.5}),
    ("bool", field(13, 0, b"\2"), {"b": True}),
    ("string", within(14, "é\0".encode()), {"s": "é\0"}),
    ("string that is no UTF-8", within(14, b"\xff"), None),
    ("string with a surrogate", within(14, b"\xed\xa0\x80"), None),
    ("strings within that are no UTF-8", within(20, within(2, b"\xff")), None),
    ("bytes", within(15, b"\xff\0"), {"y": b"\xff\0"}),
    ("enum", field(16, 0, varint(-5)), {"e": "C"}),
    ("enum that is unknown", field(16, 0, varint(77)), {"e": "77"}),
    ("optional default", field(17, 0, b"\0") + field(18, 0, b"\0"), {"o": 0, "oe": "A"}),
    ("message", within(19, b""), {"n": INNER}),
    ("message in two parts", within(19, ONE) + within(19, within(2, b"x")), {"n": {"a": 1, "s": ["x"], "u": None}}),
    ("messages", within(20, b"") + within(20, field(3, 0, b"\0")), {"rn": [INNER, {**INNER, "u": 0}]}),
    ("numbers, packed", within(21, b"\1\2\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"), {"ri": [1, 2, -1]}),
    ("numbers, one by one", field(21, 0, b"\1") + field(3, 0, b"\7") + field(21, 0, b"\2"), {"ri": [1, 2], "i32": 7}),
    ("numbers, both ways", within(21, b"\1") + field(21, 0, b"\2"), {"ri": [1, 2]}),
    ("numbers, cut", within(21, b"\1\x80"), None),
    ("enums", within(22, b"\0\1\x07"), {"re": ["A", "B", "7"]}),
    ("doubles, packed", within(38, struct.pack("<2d", 1, -0.0)), {"rd": [1.0, -0.0]}),
    ("doubles, cut", within(38, b"\0" * 9), None),
    ("map", within(23, within(1, b"k") + field(2, 0, b"\5")), {"ms": {"k": 5}}),
    ("map without key and value", within(23, b""), {"ms": {"": 0}}),
    ("map with a key twice", within(23, K + field(2, 0, b"\5")) + within(23, K), {"ms": {"k": 0}}),
    ("map with two values in an entry", within(23, K + field(2, 0, b"\5") + field(2, 0, b"\6")), {"ms": {"k": 6}}),
    ("map by numbers", within(24, field(1, 0, varint(-1))), {"mi": {"-1": INNER}}),
    ("map by truth", within(25, field(1, 0, b"\1") + field(2, 0, b"\1")), {"mb": {"true": "B"}}),
    ("map of instants", within(35, within(2, instant(1))), {"mt": {"": EPOCH + dt.timedelta(seconds=1)}}),
    ("oneof", field(26, 0, b"\0"), {"x1": 0}),
    ("oneof, the last counts", field(26, 0, b"\5") + within(27, b"x"), {"x2": "x"}),
    ("oneof, the last counts, otherwise", within(27, b"x") + field(26, 0, b"\5"), {"x1": 5}),
    ("oneof, message", field(26, 0, b"\5") + within(28, b""), {"x3": INNER}),
    ("instant", within(29, instant(1, 5_999)), {"ts": EPOCH + dt.timedelta(seconds=1, microseconds=5)}),
    ("instant before 1970", within(29, instant(-1, 999_999_999)), {"ts": EPOCH - dt.timedelta(microseconds=1)}),
    ("first instant", within(29, instant(-62_135_596_800)), {"ts": dt.datetime(1, 1, 1, tzinfo=dt.UTC)}),
    ("last instant", within(29, instant(253_402_300_799, 999_999_999)), {"ts": dt.datetime.max.replace(tzinfo=dt.UTC)}),
    ("instant too early", within(29, instant(-62_135_596_801)), None),
    ("instant too late", within(29, instant(253_402_300_800)), None),
    ("instant far away", within(29, instant(2**63 - 1)), None),
    ("instant with too many nanos", within(29, instant(1, 10**9)), None),
    ("instant with nanos below 0", within(29, instant(1, -1)), None),
    ("instants", within(30, b"") + within(30, instant(1)), {"rts": [EPOCH, EPOCH + dt.timedelta(seconds=1)]}),
    ("instants, one too late", within(30, b"") + within(30, instant(2**60)), None),
    ("wrapped", within(31, b"") + within(32, within(1, b"x")), {"w": 0, "ws": "x"}),
    ("wrapped, repeated", within(33, b"") + within(33, field(1, 0, b"\1")), {"rw": [False, True]}),
    ("a field twice", field(3, 0, b"\1") + field(3, 0, b"\2"), {"i32": 2}),
    ("unknown fields", field(99, 0, b"\1") + within(98, b"x") + field(97, 1, b"\0" * 8) + field(96, 5, b"\0" * 4), {}),
    ("an unknown group", field(99, 3) + field(1, 0, b"\1") + field(99, 4), {}),
    ("a field of another wire type", within(3, b"abc") + field(14, 0, b"\1"), {}),
    ("a group in a number's place", field(3, 3) + field(3, 4), {}),
    ("a group that does not end", field(99, 3), None),
    ("a group that did not begin", field(99, 4), None),
    ("groups too deep", field(99, 3) * 1000 + field(99, 4) * 1000, None),
    ("field 0", b"\0\0", None),
    ("wire type 6", b"\x0e", None),
    ("wire type 7", b"\x0f", None),
    ("a tag alone", b"\x18", None),
    ("a number that does not end", b"\x18\xff", None),
    ("a number of 11 bytes", b"\x18" + b"\xff" * 10 + b"\1", None),
    ("a length beyond the end", b"\x72\x05ab", None),
    ("a huge length", b"\x72" + varint(2**64 - 1) + b"ab", None),
    ("a huge length that overflows", b"\x72" + varint(2**64 - 3) + b"ab", None),
    ("a length of 31 bits", b"\x72" + varint(2**31 - 1) + b"ab", None),
    ("a tag beyond 32 bits", varint((2**32 + 3) << 3) + b"\1", None),
    ("a fixed32 that is cut", b"\x4d\0\0", None),
    ("trailing bytes", field(3, 0, b"\1") + b"\xff", None),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "columns"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_what_becomes_of_a_message(payload, columns):
    assert decoded(payload) == columns


def test_the_whole_table_at_once():
    """Each among all others: bad ones take nothing from their neighbours."""
    payloads = [PLACE + payload for _, payload, _ in READ]
    alone = [rows_of(VALUES, [payload])[0] for payload in payloads]
    assert rows_of(VALUES, [None, *payloads, None]) == [None, *alone, None]
    assert [row is None for row in alone] == [columns is None for _, _, columns in READ]


def test_the_whole_table_where_fields_are_left_out():
    """The same, as the rest of the message must be a message, too."""
    assert set(LEAVING.left_out) == {"again", "n.again", "rn.element.again", "mi.value.again", "x3.again"}
    payloads = [PLACE + payload for _, payload, _ in READ]
    assert rows_of(LEAVING, payloads) == rows_of(VALUES, payloads)
    again = [PLACE + within(50, payload) for _, payload, columns in READ]
    nothing = rows_of(LEAVING, [PLACE])
    for found, (_, payload, _) in zip(rows_of(LEAVING, again), READ, strict=True):
        assert [found] == (nothing if _is_message(payload) else [None])


def _is_message(payload):
    try:
        M.FromString(payload)
    except DecodeError:
        return False
    return True


@pytest.mark.parametrize("count", [0, 1, 9_999, 10_000, 10_001])
def test_rows_keep_their_places(count):
    payloads = [PLACE + field(3, 0, varint(row)) if row % 7 else PLACE + b"\xff" for row in range(count)]
    found = VALUES.decode(binaries(payloads))
    assert found.columns.type == VALUES.columns
    wanted = [row if row % 7 else None for row in range(count)]
    assert [row and row["i32"] for row in found.columns.to_pylist()] == wanted
    assert np.array_equal(found.ok, np.arange(count) % 7 != 0)


def test_slices_of_payloads():
    payloads = binaries([PLACE + field(3, 0, b"\1"), PLACE + field(3, 0, b"\2"), None, PLACE])
    assert [row and row["i32"] for row in VALUES.decode(payloads.slice(1, 3)).columns.to_pylist()] == [2, None, 0]


# --- message indexes ---------------------------------------------------------------------------------------

EVENTS = """syntax = "proto3"; message Created { int32 id = 1; string name = 2; message Part { int32 n = 1; } }
    message Moved { int32 id = 1; bool name = 3; double x = 4; } message Held { int32 id = 1; }
    message Holding { Held h = 1; }"""
INDEXED = [
    (b"\0" + field(1, 0, b"\5"), {"id": 5, "name": "", "x": None, "h": None}),
    (b"\2\0" + field(1, 0, b"\5"), {"id": 5, "name": "", "x": None, "h": None}),
    (b"\2\2" + field(1, 0, b"\5") + field(3, 0, b"\1"), {"id": 5, "name": None, "x": 0.0, "h": None}),
    (b"\2\x82\x00" + field(1, 0, b"\5"), {"id": 5, "name": None, "x": 0.0, "h": None}),
    (b"\2\6", {"id": None, "name": None, "x": None, "h": None}),
    (b"\2\6" + within(1, b""), {"id": None, "name": None, "x": None, "h": {"id": 0}}),
    (b"\2\4" + field(1, 0, b"\5"), None),
    (b"\4\0\0" + field(1, 0, b"\5"), None),
    (b"\2\x08", None),
    (b"\2\1", None),
    (b"", None),
    (b"\1\0", None),
    (b"\2", None),
    (b"\x80\x80\x80\x80\x80\x80\x80", None),
    (b"\xfe\xff\xff\xff\x0f" + b"\0" * 10, None),
]


@pytest.mark.parametrize(("payload", "row"), INDEXED)
def test_messages_by_their_indexes(payload, row):
    values = compile_schema("protobuf", EVENTS)
    assert list(values.left_out) == ["Moved.name"]
    assert rows_of(values, [payload]) == [row]
    assert rows_of(values, [one for one, _ in INDEXED] + [payload]) == [one for _, one in INDEXED] + [row]


# --- against Protobuf's own library ------------------------------------------------------------------------


def expected(message):
    """The columns of a message, by its fields; ValueError where a value has none."""
    row = {}
    for one in message.DESCRIPTOR.fields:
        value = getattr(message, one.name)
        if one.message_type is not None and one.message_type.GetOptions().map_entry:
            key_type, value_type = (one.message_type.fields_by_name[name] for name in ("key", "value"))
            text = {True: "true", False: "false"} if key_type.type == key_type.TYPE_BOOL else None
            row[one.name] = {text[key] if text else str(key): plain(value[key], value_type) for key in value}
        elif one.label == one.LABEL_REPEATED:
            row[one.name] = [plain(each, one) for each in value]
        else:
            row[one.name] = None if one.has_presence and not message.HasField(one.name) else plain(value, one)
    return row


def plain(value, one):
    if one.type == one.TYPE_ENUM:
        known = one.enum_type.values_by_number.get(value)
        return known.name if known else str(value)
    if one.message_type is None:
        if isinstance(value, int) and value >= 2**63:
            raise ValueError
        return value
    name = one.message_type.name
    if name == "Timestamp":
        if not 0 <= value.nanos < 10**9 or not -62_135_596_800 <= value.seconds <= 253_402_300_799:
            raise ValueError
        return EPOCH + dt.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if name.endswith("Value"):
        return plain(value.value, one.message_type.fields_by_name["value"])
    return expected(value)


def by_the_library(message, payload):
    try:
        return expected(message.FromString(payload))
    except (DecodeError, ValueError):
        return None


def same(one, other):
    return repr(one) == repr(other)  # NaN is itself here, and -0.0 is not 0.0


BYTES = st.deferred(
    lambda: st.lists(
        st.one_of(
            st.builds(lambda n, v: field(n, 0, varint(v)), NUMBERS, st.integers(0, 300) | st.integers(0, 2**64 - 1)),
            st.builds(lambda n, v: field(n, 1, v), NUMBERS, st.binary(min_size=8, max_size=8)),
            st.builds(lambda n, v: field(n, 5, v), NUMBERS, st.binary(min_size=4, max_size=4)),
            st.builds(within, NUMBERS, st.binary(max_size=12) | st.text(max_size=4).map(str.encode) | BYTES),
            st.builds(lambda n, v: field(n, 3) + v + field(n, 4), NUMBERS, BYTES),
        ),
        max_size=4,
    ).map(b"".join)
)
NUMBERS = st.integers(1, 39)
BROKEN = st.builds(
    lambda data, at, byte: data[: at % (len(data) + 1)] + byte + data[at % (len(data) + 1) + 1 :],
    BYTES, st.integers(0, 99), st.binary(max_size=2),
)  # fmt: skip


@given(st.lists(BYTES | BROKEN | st.binary(max_size=20) | st.none(), max_size=5))
def test_each_message_by_itself_as_the_library_has_it(payloads):
    wanted = [None if payload is None else by_the_library(M, payload) for payload in payloads]
    framed = [None if payload is None else PLACE + payload for payload in payloads]
    for found, row in zip(rows_of(VALUES, framed), wanted, strict=True):
        assert found is None if row is None else all(_equal(found[name], row[name]) for name in row)


def _equal(found, wanted):
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(_equal(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_equal, found, wanted))
    return found == wanted if isinstance(wanted, dt.datetime) else same(found, wanted)


@given(st.lists(BYTES | BROKEN | st.binary(max_size=20), max_size=4))
def test_proto2_as_the_library_has_it(payloads):
    found = rows_of(VALUES2, [b"\0" + payload for payload in payloads])
    for row, payload in zip(found, payloads, strict=True):
        try:
            message = M2.FromString(payload)
            wanted = {name: getattr(message, name) if message.HasField(name) else None for name in ("id", "s")}
        except (DecodeError, UnicodeDecodeError):
            assert row is None
            continue
        if row is None:
            assert not message.IsInitialized() or b"\xff" in payload or not _is_utf8(payload)
            continue
        assert message.IsInitialized()
        assert {name: row[name] for name in wanted} == wanted
        assert row["ri"] == [*message.ri]
        assert row["re"] == ["AB"[number] for number in message.re]


def _is_utf8(payload):
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


ID = field(1, 0, b"\5")
PROTO2_ROWS = [
    (ID, {"id": 5, "s": None, "e": None, "re": [], "ri": []}),
    (b"", None),
    (ID + within(2, b"\xff"), None),
    (ID + field(3, 0, b"\1"), {"id": 5, "s": None, "e": "B", "re": [], "ri": []}),
    (ID + field(3, 0, b"\7"), {"id": 5, "s": None, "e": None, "re": [], "ri": []}),
    (ID + field(4, 0, b"\7") + within(4, b"\1\7\0"), {"id": 5, "s": None, "e": None, "re": ["B", "A"], "ri": []}),
    (ID + field(6, 3) + field(1, 0, b"\1") + field(6, 4), {"id": 5, "s": None, "e": None, "re": [], "ri": []}),
    (ID + field(6, 3) + field(1, 0, b"\1"), None),
    (ID + field(100, 0, b"\1"), {"id": 5, "s": None, "e": None, "re": [], "ri": []}),
]


@pytest.mark.parametrize(("payload", "row"), PROTO2_ROWS)
def test_proto2(payload, row):
    assert rows_of(VALUES2, [b"\0" + payload, b"\0" + ID]) == [row, PROTO2_ROWS[0][1]]


def test_fields_that_are_not_in_the_order_of_their_numbers():
    values = compile_schema("protobuf", 'syntax = "proto3"; message M { int32 z = 9; int32 a = 2; int32 m = 5; }')
    payload = b"\0" + field(2, 0, b"\2") + field(5, 0, b"\5") + field(9, 0, b"\x09")
    assert rows_of(values, [payload]) == [{"z": 9, "a": 2, "m": 5}]
    assert list(rows_of(values, [payload])[0]) == ["z", "a", "m"]
    assert values.encode(values.decode(binaries([payload])).columns).to_pylist() == [payload]
