"""Payloads of JSON as columns and back: what becomes of each, and never of another."""

import json
import math
import re
import sys
from decimal import Decimal

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidelog.schemas.base.errors import EncodingError
from tidelog.schemas.compile import compile_schema

SCHEMA = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"},
        "d": {"type": "number"},
        "s": {"type": "string"},
        "t": {"type": "boolean"},
        "l": {"type": "array", "items": {"type": "integer"}},
        "o": {"type": "object", "properties": {"i": {"type": ["null", "integer"]}, "s": {"type": "string"}}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "a": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "number"}}}},
        "u": {"type": ["string", "integer"]},
    },
}
VALUES = compile_schema("json", json.dumps(SCHEMA))


def binaries(payloads):
    return pa.array(payloads, pa.binary())


def decoded(payload, values=VALUES):
    """The columns of one payload that aren't null; None where it has none."""
    found = values.decode(binaries([payload]))
    (row,) = found.columns.to_pylist(maps_as_pydicts="strict")
    assert found.ok.tolist() == [row is not None]
    return None if row is None else {name: one for name, one in row.items() if one is not None}


READ = [
    (b"{}", {}),
    (b' \t\r\n{ "i" :\n1 } \n', {"i": 1}),
    (b'{"i":1,"other":[1,{"x":"y"}],"u":5}', {"i": 1}),
    (b'{"i":null,"d":null,"s":null,"t":null,"l":null,"o":null,"m":null,"a":null}', {}),
    (b'{"i":9223372036854775807}', {"i": 2**63 - 1}),
    (b'{"i":-9223372036854775808}', {"i": -(2**63)}),
    (b'{"i":1.0}', {"i": 1}),
    (b'{"i":-1.50e1}', {"i": -15}),
    (b'{"i":1E3}', {"i": 1000}),
    (b'{"i":0e99999999999999999999}', None),
    (b'{"i":9007199254740993.0}', {"i": 9007199254740993}),
    (b'{"i":922337203685477580700e-2}', {"i": 2**63 - 1}),
    (b'{"i":-0}', {"i": 0}),
    (b'{"i":-0.0}', {"i": 0}),
    (b'{"i":1.5}', None),
    (b'{"i":1.00000000000000000000001}', None),
    (b'{"i":9223372036854775808}', None),
    (b'{"i":-9223372036854775809}', None),
    (b'{"i":18446744073709551616}', None),
    (b'{"i":1e19}', None),
    (b'{"i":1e999999999}', None),
    (b'{"i":1e-999999999}', None),
    (b'{"i":"1"}', None),
    (b'{"i":true}', None),
    (b'{"i":[1]}', None),
    (b'{"i":{}}', None),
    (b'{"d":1}', {"d": 1.0}),
    (b'{"d":-0.0}', {"d": -0.0}),
    (b'{"d":123456789012345678901234567890}', {"d": 1.2345678901234568e29}),
    (b'{"d":1e-400}', {"d": 0.0}),
    (b'{"d":1.7976931348623157e308}', {"d": sys.float_info.max}),
    (b'{"d":1e400}', None),
    (b'{"d":1.7976931348623159e308}', None),
    (b'{"d":"1"}', None),
    (b'{"d":NaN}', None),
    (b'{"d":Infinity}', None),
    (b'{"d":-Infinity}', None),
    (b'{"d":nan}', None),
    (b'{"other":NaN}', None),
    (b'{"d":.5}', None),
    (b'{"d":1.}', None),
    (b'{"d":+1}', None),
    (b'{"d":01}', None),
    (b'{"d":0x1}', None),
    (b'{"t":true}', {"t": True}),
    (b'{"t":1}', None),
    (b'{"t":"true"}', None),
    (b'{"s":""}', {"s": ""}),
    (b'{"s":"\\u0041\\ud83d\\ude00\\n\\/"}', {"s": "A\U0001f600\n/"}),
    (b'{"s":"\\u0000"}', {"s": "\0"}),
    ('{"s":"é\u2028值"}'.encode(), {"s": "é\u2028值"}),
    (b'{"\\u0073":"x"}', {"s": "x"}),
    (b'{"s":"\\ud800"}', None),
    (b'{"s":"\\udc00x"}', None),
    (b'{"other":"\\ud800"}', None),
    (b'{"s":"\xff"}', None),
    (b'{"other":"\xff"}', None),
    (b'{"\xff":1}', None),
    (b'{"s":"\xed\xa0\x80"}', None),
    (b'{"s":"a\nb"}', None),
    (b'{"s":"a\tb"}', None),
    (b'{"s":"a\0b"}', None),
    (b'{"s":"\\x"}', None),
    (b'{"s":5}', None),
    (b'{"l":[]}', {"l": []}),
    (b'{"l":[1,null,2.0]}', {"l": [1, None, 2]}),
    (b'{"l":[1,"2"]}', None),
    (b'{"l":5}', None),
    (b'{"l":{"0":1}}', None),
    (b'{"o":{}}', {"o": {"i": None, "s": None}}),
    (b'{"o":{"s":"x","i":3.0,"z":[]}}', {"o": {"i": 3, "s": "x"}}),
    (b'{"o":{"i":"x"}}', None),
    (b'{"o":[]}', None),
    (b'{"m":{}}', {"m": {}}),
    (b'{"m":{"a":1,"":2.0,"b":null}}', {"m": {"a": 1, "": 2, "b": None}}),
    (b'{"m":{"a":1,"a":2}}', {"m": {"a": 2}}),
    (b'{"m":{"a":"x"}}', None),
    (b'{"a":[{"d":1},null,{}]}', {"a": [{"d": 1.0}, None, {"d": None}]}),
    (b'{"i":1,"i":2}', {"i": 2}),
    (b'{"i":1,"i":2.0}', {"i": 2}),
    (b'{"other":1,"other":2}', {}),
    (b'{"o":{"i":1},"o":{"s":"x"}}', {"o": {"i": None, "s": "x"}}),
    (b"", None),
    (b" ", None),
    (b"null", None),
    (b"5", None),
    (b'"{}"', None),
    (b"[]", None),
    (b"[{}]", None),
    (b"true", None),
    (b"\xef\xbb\xbf{}", None),
    (b"{}\0", None),
    (b"{}{}", None),
    (b"{} {}", None),
    (b"{}\n{}", None),
    (b"{},", None),
    (b'{"i":1,}', None),
    (b'{"i":1} // x', None),
    (b"{'i':1}", None),
    (b"{i:1}", None),
    (b'{"i":1', None),
    (b'{"i":1},"w":2', None),
    (b'{"i":1}} {"n":1,"v":{"i":2}', None),
    (b'{"i":1}\n{"i":2}\n', None),
    (b'{"other":' + b"[" * 100_000 + b"]" * 100_000 + b"}", None),
    (b'{"other":' + b'{"o":' * 100_000 + b"1" + b"}" * 100_000 + b"}", None),
    (b'{"l":' + b"[" * 100_000, None),
    (b'{"other":' + b"[" * 200 + b"]" * 200 + b',"i":1}', {"i": 1}),
    (b'{"i":' + b"9" * 100_000 + b"}", None),
    (b'{"i":1.' + b"0" * 100_000 + b"}", {"i": 1}),
    (b'{"s":"' + b"x" * 1_000_000 + b'"}', {"s": "x" * 1_000_000}),
]


@pytest.mark.parametrize(("payload", "columns"), READ, ids=[repr(payload[:60]) for payload, _ in READ])
def test_what_becomes_of_a_payload(payload, columns):
    found = decoded(payload)
    assert found == columns
    if columns and "d" in columns:
        assert math.copysign(1, found["d"]) == math.copysign(1, columns["d"])


def test_the_whole_table_at_once():
    """Each among all others: bad ones take nothing from their neighbours."""
    payloads = [payload for payload, _ in READ] + [None]
    found = VALUES.decode(binaries(payloads))
    assert found.columns.type == VALUES.columns
    alone = [decoded(payload) for payload, _ in READ] + [None]
    rows = found.columns.to_pylist(maps_as_pydicts="strict")
    assert [None if row is None else {k: v for k, v in row.items() if v is not None} for row in rows] == alone
    assert found.ok.tolist() == [one is not None for one in alone]


@pytest.mark.parametrize("count", [0, 1, 1999, 2000, 2001, 5000])
def test_rows_keep_their_places(count):
    payloads = [b'{"i":%d}' % row if row % 7 else b'{"i":"bad"}' for row in range(count)]
    found = VALUES.decode(binaries(payloads))
    assert found.columns.type == VALUES.columns
    assert [row and row["i"] for row in found.columns.to_pylist()] == [row if row % 7 else None for row in range(count)]
    assert np.array_equal(found.ok, np.arange(count) % 7 != 0)


def test_slices_of_payloads():
    payloads = binaries([b'{"i":1}', b'{"i":2}', None, b'{"i":3}'])
    assert [row and row["i"] for row in VALUES.decode(payloads.slice(1, 3)).columns.to_pylist()] == [2, None, 3]


def expected(payload):
    """The columns of a payload by Python's own parser, which keeps a number's digits."""
    try:
        payload.decode()
        orjson.loads(payload)  # stricter about strings than Python's
        found = json.loads(payload, parse_float=Decimal)
    except ValueError:
        return None
    try:
        return fitted(found, SCHEMA)
    except TypeError:
        return None


def fitted(value, schema):
    kind = schema["type"][1] if isinstance(schema["type"], list) else schema["type"]
    if value is None and schema is not SCHEMA:
        return None
    if kind == "integer":
        if type(value) not in (int, Decimal) or value != int(value) or not -(2**63) <= value < 2**63:
            raise TypeError
        return int(value)
    python = {"number": (int, Decimal), "string": str, "boolean": bool, "array": list, "object": dict}[kind]
    if not isinstance(value, python) or (kind == "number" and isinstance(value, bool)):
        raise TypeError
    if kind == "array":
        return [fitted(one, schema["items"]) for one in value]
    if kind == "object" and "properties" in schema:
        inner = {name: one for name, one in schema["properties"].items() if name != "u"}
        return {name: fitted(value.get(name), one) for name, one in inner.items()}
    if kind == "object":
        return {key: fitted(one, schema["additionalProperties"]) for key, one in value.items()}
    return float(value) if kind == "number" else value


ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text() | st.integers(-5, 5).map(float),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("isdx"), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
FITTING = st.fixed_dictionaries(
    {},
    optional={
        "i": st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9).map(float),
        "d": st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
        "s": st.none() | st.text(),
        "t": st.none() | st.booleans(),
        "l": st.none() | st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)),
        "o": st.fixed_dictionaries({}, optional={"i": st.none() | st.integers(-9, 9), "s": st.text(), "q": ANY}),
        "m": st.dictionaries(st.text(), st.none() | st.integers(-9, 9)),
        "a": st.lists(st.none() | st.fixed_dictionaries({}, optional={"d": st.floats(-1e300, 1e300)})),
        "u": ANY,
    },
)
PAYLOADS = st.one_of(
    FITTING.map(lambda value: json.dumps(value).encode()),
    FITTING.map(lambda value: json.dumps(value, ensure_ascii=False, indent=1).encode()),
    st.dictionaries(st.sampled_from([*SCHEMA["properties"], "z"]), ANY).map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=30),
    st.text(alphabet='{}[]",:0123456789.eE+-\\ntrueulfasid \n', max_size=30).map(str.encode),
)


@given(st.lists(PAYLOADS | st.none(), max_size=6))
@example([b'{"i":1}},{"i":2}', b'{"i":1}', b'"', b'{"s":"'])
def test_each_payload_by_itself_as_another_parser_has_it(payloads):
    found = VALUES.decode(binaries(payloads))
    wanted = [None if payload is None else expected(payload) for payload in payloads]
    assert found.columns.to_pylist(maps_as_pydicts="strict") == wanted
    assert found.ok.tolist() == [one is not None for one in wanted]
    found.columns.validate(full=True)


@given(st.lists(FITTING, min_size=1, max_size=4), st.data())
def test_a_broken_byte_breaks_one_payload(values, data):
    payloads = [json.dumps(value).encode() for value in values]
    before = VALUES.decode(binaries(payloads)).columns.to_pylist()
    row = data.draw(st.integers(0, len(payloads) - 1))
    at = data.draw(st.integers(0, len(payloads[row]) - 1))
    broken = bytearray(payloads[row])
    broken[at] = data.draw(st.integers(0, 255))
    payloads[row] = bytes(broken)
    after = VALUES.decode(binaries(payloads)).columns.to_pylist()
    assert after[:row] + after[row + 1 :] == before[:row] + before[row + 1 :]
    assert after[row] == VALUES.decode(binaries([payloads[row]])).columns.to_pylist()[0]


# --- encode ------------------------------------------------------------------------------------------------

WRITING = {
    "type": "object",
    "required": ["i", "n"],
    "properties": {
        "z": {"type": "string"},
        "i": {"type": "integer"},
        "n": {"type": ["null", "number"]},
        "l": {"type": "array", "items": {"type": ["integer", "null"]}},
        "k": {"type": "array", "items": {"type": "integer"}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "o": {"type": "object", "required": ["b"], "properties": {"b": {"type": "boolean"}}},
    },
}
WRITER = compile_schema("json", json.dumps(WRITING))

WRITTEN = [
    ({"i": 1}, b'{"i":1,"n":null}'),
    ({"n": 1.0, "z": 'é"\n', "i": -(2**63)}, '{"z":"é\\"\\n","i":-9223372036854775808,"n":1.0}'.encode()),
    ({"i": 1, "n": -0.0, "l": [1, None], "k": [], "m": [("b", 1), ("a", 2)], "o": {"b": True}},
     b'{"i":1,"n":-0.0,"l":[1,null],"k":[],"m":{"b":1,"a":2},"o":{"b":true}}'),
]  # fmt: skip


@pytest.mark.parametrize(("row", "payload"), WRITTEN)
def test_the_canonical_form(row, payload):
    assert WRITER.encode(pa.array([row, None], WRITER.columns)).to_pylist() == [payload, None]
    assert WRITER.problem(payload) is None


REFUSED = [
    ({}, "'i' is null"),
    ({"i": 1, "n": math.nan}, "'n' is nan"),
    ({"i": 1, "n": -math.inf}, "'n' is -inf"),
    ({"i": 1, "k": [None]}, "'k.element' is null"),
    ({"i": 1, "m": [("a", None)]}, "'m.value' is null"),
    ({"i": 1, "o": {"b": None}}, "'o.b' is null"),
]


@pytest.mark.parametrize(("row", "why"), REFUSED)
def test_rows_that_no_payload_can_be_made_of(row, why):
    columns = pa.array([{"i": 1}, None, row, {}], WRITER.columns)
    with pytest.raises(EncodingError, match=f"^Row 2: {re.escape(why)}"):
        WRITER.encode(columns)


def test_a_required_property_that_is_no_column():
    for properties in ({"a": {"type": "string"}, "u": {}}, {"a": {"type": "string"}}):
        values = compile_schema("json", json.dumps({"type": "object", "properties": properties, "required": ["u"]}))
        with pytest.raises(EncodingError, match="requires 'u'"):
            values.encode(pa.array([{"a": "x"}], values.columns))


def test_a_schema_without_columns_writes_nothing():
    with pytest.raises(EncodingError, match="no columns"):
        compile_schema("json", "true").encode(pa.array([{}], pa.struct([])))


@given(st.lists(FITTING | st.none(), max_size=5))
def test_written_columns_are_read_again(rows):
    columns = VALUES.decode(binaries([None if row is None else json.dumps(row).encode() for row in rows])).columns
    try:
        payloads = VALUES.encode(columns)
    except EncodingError:  # a null that the schema does not allow
        return
    assert VALUES.decode(payloads).columns.equals(columns)
    assert [payload is None for payload in payloads.to_pylist()] == [row is None for row in rows]


# --- problem -----------------------------------------------------------------------------------------------

JUDGED = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"$ref": "tag.json"}},
        "date": {"type": "string", "format": "date"},
    },
    "additionalProperties": False,
}
JUDGE = compile_schema("json", json.dumps(JUDGED), (("tag.json", '{"type":"string","pattern":"^[a-z]+$"}'),))
PROBLEMS = [
    (b'{"id":1}', None),
    (b'{"id":1.0,"tags":["a"]}', None),
    (b'{"id":1,"date":"no date"}', None),
    (b'{"id":-1}', "at '#/id': -1 is less than the minimum of 0 (the schema's rule '#/properties/id/minimum')"),
    (b'{"tags":[]}', "at '#': \"id\" is a required property (the schema's rule '#/required')"),
    (b'{"id":1,"tags":["a","B"]}', "at '#/tags/1': \"B\" does not match"),
    (b'{"id":1,"z":1}', "additionalProperties"),
    (b'{"id":"x"}', '"x" is not of type "integer"'),
    (b"5", "5 is not of type"),
    (b"{", "The payload is no JSON"),
    (b"", "The payload is no JSON"),
    (b'{"id":1}\xff', "The payload is no JSON"),
    (b"[" * 100_000, "The payload is no JSON"),
]


@pytest.mark.parametrize(("payload", "why"), PROBLEMS, ids=[repr(payload[:30]) for payload, _ in PROBLEMS])
def test_why_a_payload_does_not_fit(payload, why):
    found = JUDGE.problem(payload)
    assert found is None if why is None else why in found


def test_an_unknown_dialect_is_not_asked_for_anywhere():
    values = compile_schema("json", json.dumps({**SCHEMA, "$schema": "http://127.0.0.1:9/none"}))
    assert values.problem(b'{"i":"x"}') is not None
    assert values.columns == VALUES.columns


def test_a_pattern_that_backtracks_hangs_nothing():
    values = compile_schema("json", '{"type":"object","properties":{"s":{"type":"string","pattern":"^(a+)+$"}}}')
    assert "pattern" in values.problem(b'{"s":"' + b"a" * 100_000 + b'!"}')
