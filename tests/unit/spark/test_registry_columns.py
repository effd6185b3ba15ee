"""What Spark's workers do of from_registry and to_registry: several writers in one batch, and what doesn't fit."""

import io
import json
import struct
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest

from tidelog.log.base.errors import InvalidRecordError
from tidelog.schemas.base.errors import EncodingError
from tidelog.schemas.compile import compile_schema
from tidelog.spark.registry_columns import ColumnDecoder, ColumnEncoder

GUID = "0f8fad5b-d9cb-469f-a165-70867728950e"


def text(*fields):
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": n, "type": t} | m for n, t, m in fields]})


V1 = text(("a", "long", {}), ("gone", "string", {}))
V2 = text(("a", "long", {}), ("b", "string", {"default": "none"}))
OTHER = text(("a", "string", {}))
BYTES = text(("a", "long", {}), ("b", "bytes", {}))


def value(schema, number, **fields):
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(schema)), fields)
    return (b"" if number is None else struct.pack(">bI", 0, number)) + buffer.getvalue()


class Registry:
    """Schemas by id, and how often each was asked for."""

    def __init__(self):
        self.asked = []
        self.known = {1: V1, 2: V2, 3: OTHER, 4: BYTES, GUID: V1}

    def __call__(self, named):
        self.asked.append(named)
        found = self.known.get(named)
        return "the registry does not know it" if found is None else compile_schema("avro", found)


def decoder(fail_fast=False):
    registry = Registry()
    return ColumnDecoder(compile_schema("avro", V2), registry, fail_fast=fail_fast), registry


def test_several_writers_in_one_batch_keep_their_rows() -> None:
    decode, registry = decoder()
    values = [
        value(V2, 2, a=1, b="x"),
        None,
        value(V1, 1, a=2, gone="-"),
        value(V2, 2, a=3, b="y"),
        value(V1, 1, a=4, gone="-"),
    ]
    found = decode(pa.array(values, pa.binary()))
    assert found.to_pylist() == [
        {"a": 1, "b": "x"},
        None,
        {"a": 2, "b": "none"},
        {"a": 3, "b": "y"},
        {"a": 4, "b": "none"},
    ]
    assert found.type == compile_schema("avro", V2).columns
    decode(pa.array(values, pa.binary()))
    assert sorted(registry.asked) == [1, 2]


BAD = {
    "no prefix": b"plain text",
    "shorter than a prefix": b"\0\0",
    "empty": b"",
    "an unknown id": value(V2, 99, a=1, b="x"),
    "truncated": value(V2, 2, a=1, b="xyz")[:-1],
    "trailing bytes": value(V2, 2, a=1, b="x") + b"!",
    "a schema with another type": value(OTHER, 3, a="text"),
    "bytes that are no text": value(BYTES, 4, a=1, b=b"\xff"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_value_that_does_not_fit_is_null_and_the_others_are_not(bad: bytes) -> None:
    decode, _ = decoder()
    values = [value(V2, 2, a=1, b="x"), bad, value(BYTES, 4, a=2, b=b"y"), value(V2, 2, a=3, b="z")]
    assert decode(pa.array(values)).to_pylist() == [{"a": 1, "b": "x"}, None, {"a": 2, "b": "y"}, {"a": 3, "b": "z"}]


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_it_fails_fast(bad: bytes) -> None:
    decode, _ = decoder(fail_fast=True)
    good = [value(V2, 2, a=1, b="x"), None]
    assert decode(pa.array(good)).to_pylist() == [{"a": 1, "b": "x"}, None]
    with pytest.raises(InvalidRecordError, match=r"A value does not fit: .*PERMISSIVE"):
        decode(pa.array([*good, bad]))


def test_a_schema_that_was_unknown_is_asked_for_again() -> None:
    decode, registry = decoder()
    values = pa.array([value(V2, 99, a=1, b="x")])
    assert decode(values).to_pylist() == [None]
    registry.known[99] = V2
    assert decode(values).to_pylist() == [{"a": 1, "b": "x"}]


def test_a_header_counts_before_the_value() -> None:
    decode, _ = decoder()
    guid = b"\1" + UUID(GUID).bytes
    values = [value(V1, None, a=1, gone="-"), value(V2, 2, a=2, b="x"), value(V1, None, a=3, gone="-"), None]
    headers = pa.array([guid, None, guid, guid], pa.binary())
    assert decode(pa.array(values), headers).to_pylist() == [
        {"a": 1, "b": "none"},
        {"a": 2, "b": "x"},
        {"a": 3, "b": "none"},
        None,
    ]


PROTO = 'syntax = "proto3"; message First { int32 n = 1; } message Second { string a = 1; }'


def test_a_header_has_the_message_indexes_of_protobuf() -> None:
    schema = compile_schema("protobuf", PROTO)
    decode = ColumnDecoder(schema, {GUID: schema}.__getitem__, fail_fast=True)
    guid = b"\1" + UUID(GUID).bytes
    headers = pa.array([guid + b"\0", guid + b"\2\2"])
    found = decode(pa.array([b"\x08\x05", b"\x0a\x01x"]), headers)
    assert found.to_pylist() == [{"n": 5, "a": None}, {"n": None, "a": "x"}]


@pytest.mark.parametrize("header", [b"", b"\1", b"\0" + UUID(GUID).bytes, b"\1" + UUID(GUID).bytes[:15]])
def test_a_header_that_names_no_schema_leaves_it_to_the_value(header: bytes) -> None:
    decode, _ = decoder()
    assert decode(pa.array([value(V2, 2, a=1, b="x")]), pa.array([header])).to_pylist() == [{"a": 1, "b": "x"}]


@pytest.mark.parametrize("values", [[], [None, None]])
def test_no_values_are_no_rows(values) -> None:
    decode, _ = decoder(fail_fast=True)
    assert decode(pa.array(values, pa.binary())).to_pylist() == values


def test_rows_are_written_behind_their_schemas_id() -> None:
    encode = ColumnEncoder(compile_schema("avro", V2), 7)
    rows = pa.array([{"a": 1, "b": "x"}, None, {"a": 2, "b": "y"}], compile_schema("avro", V2).columns)
    assert encode(rows).to_pylist() == [value(V2, 7, a=1, b="x"), None, value(V2, 7, a=2, b="y")]


def test_a_missing_field_is_written_with_its_default() -> None:
    encode = ColumnEncoder(compile_schema("avro", V2), 7)
    assert encode(pa.array([{"a": 1}], pa.struct([("a", pa.int64())]))).to_pylist() == [value(V2, 7, a=1, b="none")]


def test_a_row_that_can_not_be_written_is_refused() -> None:
    encode = ColumnEncoder(compile_schema("avro", V2), 7)
    with pytest.raises(EncodingError, match="a"):
        encode(pa.array([{"a": None, "b": "x"}], compile_schema("avro", V2).columns))
