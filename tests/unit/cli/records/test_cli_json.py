"""Records as JSON: the shape of kcat -J, and back without loss."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.cli.records.as_json import from_json, to_json_lines
from tidelog.cli.records.from_input import Record
from tidelog.log.delta.schema import RECORDS_WITH_HEADERS

MICROS = st.integers(0, 4_000_000_000_000_000)
BYTES = st.none() | st.binary(max_size=20) | st.text(max_size=10).map(str.encode)
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3)


def batch(*records, offset=7, kind=0):
    rows = [
        {
            "key": r.key,
            "value": r.value,
            "topic": "orders",
            "partition": r.partition,
            "offset": offset + i,
            "timestamp": r.timestamp_us,
            "timestampType": kind,
            "headers": None if r.headers is None else [{"key": k, "value": v} for k, v in r.headers],
        }
        for i, r in enumerate(records)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=RECORDS_WITH_HEADERS)


def test_shape():
    line = to_json_lines(batch(Record(b"ann", b'{"sum":3}', [("from", b"web")], 1_700_000_000_000_000, 2)))
    assert line == (
        b'{"topic":"orders","partition":2,"offset":7,"tstype":"create","ts":1700000000000,'
        b'"headers":["from","web"],"key":"ann","payload":"{\\"sum\\":3}"}\n'
    )


@pytest.mark.parametrize(
    ("record", "kind", "expected"),
    [
        (Record(None, None, None, 5_000, 0), 0, {"key": None, "payload": None, "ts": 5}),
        (Record(b"\xff", b"\xfe\x00", [("h", b"\xff")], 5_000, 0), 0, {"payload": {"base64": "/gA="}}),
        (Record(None, b"", [], 5_000, 0), 0, {"headers": [], "payload": ""}),
        (Record(None, b"x", [("n", None)], 5_000, 0), 0, {"headers": ["n", None]}),
        (Record(None, b"x", None, 5_001, 0), 0, {"ts": 5, "us": 1}),
        (Record(None, b"x", None, 5_000, 0), 1, {"tstype": "logappend"}),
    ],
)
def test_fields(record, kind, expected):
    body = json.loads(to_json_lines(batch(record, kind=kind)))
    assert {name: body[name] for name in expected} == expected
    assert ("headers" in body) == (record.headers is not None)
    assert ("us" in body) == bool(record.timestamp_us % 1000)


@given(st.lists(st.builds(Record, BYTES, BYTES, HEADERS, MICROS, st.integers(0, 99)), max_size=5))
def test_round_trip(records):
    lines = to_json_lines(batch(*records)).splitlines()
    assert [from_json(line) for line in lines] == records


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"payload":"x"}', Record(None, b"x")),
        (b'{"value":"x","timestamp":9}', Record(None, b"x", None, 9_000)),
        (b'{"payload":null,"key":"k","broker":0,"topic":"t","offset":4,"tstype":"create"}', Record(b"k", None)),
        (b'{"payload":"x","partition":3,"ts":null}', Record(None, b"x", None, None, 3)),
    ],
)
def test_what_others_write(line, expected):
    assert from_json(line) == expected


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"not json", "not JSON"),
        (b"", "not JSON"),
        (b'"x"', "a record is a JSON object"),
        (b"{}", "no field 'payload'"),
        (b'{"payload":"x","vaule":"y"}', "no field 'vaule'"),
        (b'{"payload":"x","value":"y"}', "two names of one field"),
        (b'{"payload":"x","ts":1,"timestamp":1}', "two names of one field"),
        (b'{"payload":{"sum":3}}', "field 'payload' is a string, null"),
        (b'{"payload":3}', "field 'payload' is a string, null"),
        (b'{"payload":{"base64":"?"}}', "no base64"),
        (b'{"payload":"x","key":["a"]}', "field 'key'"),
        (b'{"payload":"x","headers":{"a":"b"}}', "flat list"),
        (b'{"payload":"x","headers":["a"]}', "flat list"),
        (b'{"payload":"x","headers":[null,"b"]}', "flat list"),
        (b'{"payload":"x","headers":["a",1]}', "header 'a'"),
        (b'{"payload":"x","ts":1.5}', "field 'ts' is a whole number"),
        (b'{"payload":"x","ts":-1}', "field 'ts' is a whole number"),
        (b'{"payload":"x","ts":true}', "field 'ts' is a whole number"),
        (b'{"payload":"x","us":5}', "the rest of 'ts'"),
        (b'{"payload":"x","ts":1,"us":1000}', "field 'us' is a whole number"),
        (b'{"payload":"x","partition":"0"}', "field 'partition' is a whole number"),
        (b'{"payload":"x","partition":-1}', "field 'partition' is a whole number"),
    ],
)
def test_what_is_no_record(line, why):
    with pytest.raises(ValueError, match=r".") as error:
        from_json(line)
    assert why in str(error.value)
