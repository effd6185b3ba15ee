"""Schemas: of a topic's table (docs/format.md), of a segment file, and of what readers get."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

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


_WIDER: Final = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A type as tables have it: not one of the wider variants of the same."""
    return _WIDER.get(kind, kind)


# Delta's names of the types that its tables have here.
DELTA_TYPES = {
    pa.string(): "string",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    TIMESTAMP: "timestamp",
}
_ARROW_TYPES: Final = {name: kind for kind, name in DELTA_TYPES.items()}
_DECIMAL: Final = re.compile(r"decimal\(([0-9]{1,2}),([0-9]{1,2})\)")
MOST_DIGITS: Final = 38


def delta_schema(columns: Iterable[tuple[str, pa.DataType]]) -> str:
    """Delta's JSON of a table's columns ("Schema Serialization Format" of the Delta protocol)."""
    return orjson.dumps(_struct(columns)).decode()


def delta_type(kind: pa.DataType) -> Any:
    """Delta's JSON of a type. Raises `TypeError` for one that Delta lacks."""
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": delta_type(kind.value_type), "containsNull": True}
    if pa.types.is_map(kind):
        key, value = delta_type(kind.key_type), delta_type(kind.item_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if pa.types.is_struct(kind):
        return _struct((field.name, field.type) for field in kind)
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision <= MOST_DIGITS:
        return f"decimal({kind.precision},{kind.scale})"
    if kind not in DELTA_TYPES:
        raise TypeError(f"Delta has no type for {kind}")
    return DELTA_TYPES[kind]


def arrow_type(delta: Any) -> pa.DataType:
    """The type that `delta_type` writes so. Raises `ValueError` for what it writes in no case."""
    if isinstance(delta, str):
        if delta in _ARROW_TYPES:
            return _ARROW_TYPES[delta]
        if match := _DECIMAL.fullmatch(delta):
            return pa.decimal128(int(match[1]), int(match[2]))
        raise ValueError(f"no type {delta!r}")
    kind: pa.DataType | None = None
    if delta.get("type") == "array":
        kind = pa.list_(pa.field("element", arrow_type(delta["elementType"])))
    elif delta.get("type") == "map":
        kind = pa.map_(arrow_type(delta["keyType"]), arrow_type(delta["valueType"]))
    elif delta.get("type") == "struct" and delta["fields"]:
        kind = pa.struct([pa.field(field["name"], arrow_type(field["type"])) for field in delta["fields"]])
    if kind is None or delta_type(kind) != delta:
        raise ValueError(f"no type {orjson.dumps(delta).decode()}")
    return kind


def _struct(fields: Iterable[tuple[str, pa.DataType]]) -> dict[str, object]:
    named = [{"name": name, "type": delta_type(kind), "nullable": True, "metadata": {}} for name, kind in fields]
    return {"type": "struct", "fields": named}


_IDS = [("partition", pa.int32()), ("base_offset", pa.int64())]
_TOPIC = [*_IDS, *((field.name, field.type) for field in SEGMENT)]
DELTA_SCHEMA = delta_schema(_TOPIC)

# The columns that a typed topic has besides: the id of a value's schema, and the length of a value whose bytes its
# columns give; then the columns of its values, once a schema is known.
TYPED: Final = (pa.field("value_schema", pa.int32()), pa.field("value_length", pa.int32()))
COLUMNS: Final = "columns"


def typed_schema(columns: pa.StructType | None) -> str:
    """Delta's JSON of a typed topic's table, whose values have these columns; None as long as none is known."""
    typed = [(field.name, field.type) for field in TYPED]
    return delta_schema([*_TOPIC, *typed, *([] if columns is None else [(COLUMNS, columns)])])


def columns_of(schema: str) -> pa.StructType | None:
    """The columns of a typed topic's values, by Delta's JSON of the table; None as long as none is known.

    Raises `ValueError`, `KeyError` or `TypeError` for what `typed_schema` didn't write.
    """
    found = [field for field in orjson.loads(schema)["fields"] if field["name"] == COLUMNS]
    kind = arrow_type(found[0]["type"]) if found else None
    if kind is not None and not pa.types.is_struct(kind):
        raise ValueError(f"column '{COLUMNS}' is no struct")
    return kind
