"""`topic.validate` where fitting a schema and having columns are two things: JSON Schema and Protobuf."""

import pyarrow as pa
import pytest
from support.value_typings import prefixed

from tidelog.log.base.errors import InvalidRecordError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.records.checks import to_records
from tidelog.log.typed.value_typing import Typing, Writer
from tidelog.schemas.compile import compile_schema

JSON = """{"type":"object","required":["id"],"properties":{"id":{"type":"integer","minimum":0},
    "any":{"type":["string","integer"]}}}"""
PROTO = 'syntax = "proto3"; message M { uint64 id = 1; string s = 2; }'
CONFIG = TopicConfig.parse({})


def made(kind, text, payloads):
    schema = compile_schema(kind, text)
    writers = {7: Writer(7, schema, False)}
    typing = Typing(kind, "keep", True, schema.columns, writers, {}, 7)
    values = pa.array([None if one is None else prefixed(7, one) for one in payloads], pa.binary())
    return to_records(pa.table({"value": values}), "t", CONFIG, 0, typing=typing)


TAKEN = [
    ("json", JSON, b'{"id":1}', True),
    ("json", JSON, b'{"id":1.0,"any":5}', True),
    ("json", JSON, b'{"id":18446744073709551615}', False),
    ("protobuf", PROTO, b"\0\x08\x05", True),
    ("protobuf", PROTO, b"\0\x08" + b"\xff" * 9 + b"\1", False),
]


@pytest.mark.parametrize(("kind", "text", "payload", "columns"), TAKEN)
def test_what_fits_is_taken_with_columns_or_without(kind, text, payload, columns):
    records = made(kind, text, [None, payload])
    assert records.column("value").to_pylist() == [None, prefixed(7, payload)]
    assert records.column("columns").is_valid().to_pylist() == [False, columns]
    assert records.column("value_schema").to_pylist() == [None, 7 if columns else None]


REFUSED = [
    ("json", JSON, b'{"id":-1}', "-1 is less than the minimum of 0"),
    ("json", JSON, b"{}", '"id" is a required property'),
    ("json", JSON, b'{"id":"x"}', "is not of type"),
    ("json", JSON, b'{"id":1}x', "no JSON"),
    ("protobuf", PROTO, b"\0\x08", "is no message 'M'"),
    ("protobuf", PROTO, b"\0\x12\1\xff", "is no message 'M'"),
    ("protobuf", PROTO, b"\2\2", r"message \[1\] of its schema"),
]


@pytest.mark.parametrize(("kind", "text", "payload", "why"), REFUSED)
def test_what_does_not_fit_is_refused(kind, text, payload, why):
    good = next(one for each, _, one, _ in TAKEN if each == kind)
    with pytest.raises(InvalidRecordError, match=f"row 2 is refused: it does not fit schema 7: .*{why}") as refused:
        made(kind, text, [good, None, payload, good])
    assert list(refused.value.rows) == [2]
