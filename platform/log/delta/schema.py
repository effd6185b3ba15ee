"""Schemas: of a topic's table (docs/format.md), of a segment file, and of what readers get."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import orjson
import pyarrow as pa

PARTITION_COLUMNS = ("partition", "base_offset")

HEADERS = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))
TIMESTAMP = pa.timestamp("us", tz="UTC")
CREATE_TIME = 0
LOG_APPEND_TIME = 1

# The columns of a segment file, in its order.
SEGMENT = pa.schema(
    [
        pa.field("position", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestamp_type", pa.int32()),
    ]
)

# What readers get: the columns of Spark's Kafka source, `headers` where asked for.
RECORDS = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestampType", pa.int32()),
    ]
)
RECORDS_WITH_HEADERS = RECORDS.append(pa.field("headers", HEADERS))

_TYPES: Final = {field.name: field.type for field in (*SEGMENT, *RECORDS)}
# Columns of no more values are kept: to make one takes as long as most else that is done for a record.
_FEW: Final = 100


def alike(name: str, value: object, count: int) -> pa.Array:
    """A column of a segment, or of what readers get, in which `count` records have one value, or null (None)."""
    return (_few_alike if count <= _FEW else _few_alike.__wrapped__)(name, value, count)


@lru_cache(4096)
def _few_alike(name: str, value: object, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, _TYPES[name]), count)


# Delta's names of the types that its tables have here.
DELTA_TYPES = {
    pa.string(): "string",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    TIMESTAMP: "timestamp",
}


def delta_schema(columns: Iterable[tuple[str, pa.DataType]]) -> str:
    """Delta's JSON of a table's columns ("Schema Serialization Format" of the Delta protocol)."""
    return orjson.dumps(_struct(columns)).decode()


def _struct(fields: Iterable[tuple[str, pa.DataType]]) -> dict[str, object]:
    named = [{"name": name, "type": _delta_type(kind), "nullable": True, "metadata": {}} for name, kind in fields]
    return {"type": "struct", "fields": named}


def _delta_type(kind: pa.DataType) -> object:
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _delta_type(kind.value_type), "containsNull": True}
    if pa.types.is_struct(kind):
        return _struct((field.name, field.type) for field in kind)
    return DELTA_TYPES[kind]


_IDS = [("partition", pa.int32()), ("base_offset", pa.int64())]
DELTA_SCHEMA = delta_schema([*_IDS, *((field.name, field.type) for field in SEGMENT)])
