"""Typings of typed topics, as a table with some schemas has them, and values that serializers would send."""

import io
from collections.abc import Mapping
from typing import Any

import fastavro
import orjson
import pyarrow as pa

from tidelog.log.typed.growth import grown
from tidelog.log.typed.value_typing import Typing, Writer
from tidelog.schemas.compile import compile_schema

FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "carrier", "type": "string"},
        {"name": "number", "type": "int"},
        {"name": "dep_delay", "type": ["null", "double"], "default": None},
        {"name": "stops", "type": {"type": "array", "items": "string"}, "default": []},
        {"name": "seats", "type": {"type": "map", "values": ["null", "int"]}, "default": {}},
        {
            "name": "plane",
            "type": ["null", {"type": "record", "name": "Plane", "fields": [{"name": "tail", "type": "string"}]}],
            "default": None,
        },
    ],
}
# A later version: a field more, at the top and within.
LATER = {
    "type": "record",
    "name": "Flight",
    "fields": [
        *FLIGHT["fields"][:5],
        {
            "name": "plane",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Plane",
                    "fields": [
                        {"name": "tail", "type": "string"},
                        {"name": "year", "type": ["null", "long"], "default": None},
                    ],
                },
            ],
            "default": None,
        },
        {"name": "cancelled", "type": "boolean", "default": False},
    ],
}


def flight(number: int, **more: Any) -> dict[str, Any]:
    return {
        "carrier": "HA",
        "number": number,
        "dep_delay": number / 4,
        "stops": ["HNL"] * (number % 3),
        "seats": {"f": number, "none": None},
        "plane": {"tail": f"N{number}"} if number % 2 else None,
        **more,
    }


def avro_payload(schema: Mapping[str, Any], record: Any) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(dict(schema)), record)
    return sink.getvalue()


def prefixed(number: int, payload: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + payload


def typing_with(
    schemas: Mapping[int, Any],
    *,
    kind: str = "avro",
    bytes: str = "keep",  # noqa: A002 - the field's name
    validate: bool = False,
    guids: Mapping[bytes, int] | None = None,
    columns: pa.StructType | None = None,
) -> Typing:
    """The typing of a table that knows these schemas (parsed, or text) by id; `columns`: those that it had before."""
    left_out: dict[int, bool] = {}
    compiled = {
        id_: compile_schema(kind, one if isinstance(one, str) else orjson.dumps(one).decode())
        for id_, one in schemas.items()
    }
    for id_, one in compiled.items():
        if one.columns is not None:
            found = grown(columns, one.columns)
            columns, left_out[id_] = found.columns, bool(found.left_out)
    writers = {
        id_: Writer(id_, one, one.exact and not one.left_out and not left_out.get(id_, True))
        for id_, one in compiled.items()
    }
    newest = min(schemas) if schemas and min(schemas) < 0 else max(schemas, default=None)
    return Typing(kind, bytes, validate, columns, writers, guids or {}, newest)
