"""Random Avro schemas and values, payloads that fastavro writes, and what columns hold as plain values."""

import io
import json
import math
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader, schemaless_writer

SIMPLE: dict[str, Any] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "bytes",
    "string": "string",
    "date": {"type": "int", "logicalType": "date"},
    "time-millis": {"type": "int", "logicalType": "time-millis"},
    "time-micros": {"type": "long", "logicalType": "time-micros"},
    "timestamp-millis": {"type": "long", "logicalType": "timestamp-millis"},
    "timestamp-micros": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp-nanos": {"type": "long", "logicalType": "timestamp-nanos"},
    "local-timestamp-millis": {"type": "long", "logicalType": "local-timestamp-millis"},
    "local-timestamp-micros": {"type": "long", "logicalType": "local-timestamp-micros"},
    "uuid": {"type": "string", "logicalType": "uuid"},
    "decimal": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    "wide decimal": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10},
    "unknown logical": {"type": "bytes", "logicalType": "big-decimal"},
}
NAMED: dict[str, Any] = {
    "fixed": {"type": "fixed", "name": "F", "size": 5},
    "empty fixed": {"type": "fixed", "name": "F", "size": 0},
    "enum": {"type": "enum", "name": "F", "symbols": ["A", "B", "C"]},
    "fixed decimal": {
        "type": "fixed",
        "name": "F",
        "size": 7,
        "logicalType": "decimal",
        "precision": 16,
        "scale": 16,
    },
    "large fixed decimal": {
        "type": "fixed",
        "name": "F",
        "size": 20,
        "logicalType": "decimal",
        "precision": 38,
        "scale": 0,
    },
    "duration": {"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"},
}


def record(**fields: Any) -> dict[str, Any]:
    """A record schema of these fields."""
    return {"type": "record", "name": "Top", "fields": [{"name": name, "type": one} for name, one in fields.items()]}


def around(kind: Any) -> dict[str, Any]:
    """A type by itself and within others."""
    return {
        "itself": kind,
        "null first": ["null", kind],
        "null last": [kind, "null"],
        "array": {"type": "array", "items": kind},
        "array of nullable": {"type": "array", "items": ["null", kind]},
        "map": {"type": "map", "values": kind},
        "array of arrays": {"type": "array", "items": {"type": "array", "items": kind}},
        "nullable record": ["null", {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": kind}]}],
    }


def random_schema(random: Random) -> dict[str, Any]:
    """A record schema of 1 to 6 fields."""
    namer = iter(range(1 << 20))
    return record(**{f"f{i}": _random_type(random, 3, namer) for i in range(random.randint(1, 6))})


def _random_type(random: Random, depth: int, namer: Any) -> Any:
    choice = random.random()
    if choice < 0.25 and depth:
        other = _random_type(random, depth - 1, namer)
        if not isinstance(other, list) and other != "null":
            return ["null", other] if random.random() < 0.5 else [other, "null"]
        return other
    if choice < 0.35 and depth:
        return {"type": "array", "items": _random_type(random, depth - 1, namer)}
    if choice < 0.42 and depth:
        return {"type": "map", "values": _random_type(random, depth - 1, namer)}
    if choice < 0.52 and depth:
        inner = [{"name": f"g{i}", "type": _random_type(random, depth - 1, namer)} for i in range(random.randint(1, 3))]
        return {"type": "record", "name": f"N{next(namer)}", "fields": inner}
    if choice < 0.55:
        return ["int", "string", "null"] if random.random() < 0.7 else "null"
    if choice < 0.65:
        return {**NAMED[random.choice([*NAMED])], "name": f"N{next(namer)}"}
    return SIMPLE[random.choice([*SIMPLE])]


def random_value(random: Random, schema: Any) -> Any:
    """A value of a schema, as fastavro takes it."""
    if isinstance(schema, list):
        return random_value(random, random.choice(schema))
    kind = schema if isinstance(schema, str) else schema["type"]
    if not isinstance(schema, str) and schema.get("logicalType") == "decimal":
        digits = random.randint(0, schema["precision"])
        number = random.choice([-1, 1]) * random.randint(0, 10**digits - 1)
        if number < 0 and -number & (-number - 1) == 0:
            number += 1  # fastavro writes -128 and -32768 longer than Avro's other libraries
        sign, all_digits = (1 if number < 0 else 0), tuple(map(int, str(abs(number))))
        return Decimal((sign, all_digits, -schema["scale"]))
    if kind == "record":
        return {field["name"]: random_value(random, field["type"]) for field in schema["fields"]}
    if kind == "array":
        return [random_value(random, schema["items"]) for _ in range(_some(random))]
    if kind == "map":
        return {_text(random) + str(i): random_value(random, schema["values"]) for i in range(_some(random))}
    if kind == "fixed":
        return random.randbytes(schema["size"])
    if kind == "enum":
        return random.choice(schema["symbols"])
    return _primitive(random, kind, schema)


def _primitive(random: Random, kind: str, schema: Any) -> Any:
    if kind in ("int", "long"):
        bits = random.randint(0, 31 if kind == "int" else 63)
        if not isinstance(schema, str) and schema.get("logicalType") == "timestamp-millis":
            bits = min(bits, 53)
        return random.choice([random.randint(0, (1 << bits) - 1), ~random.randint(0, (1 << bits) - 1)])
    if kind == "float":
        return random.choice([0.0, -0.0, 1.5, -(2.0**100), math.inf, float(random.randint(-99, 99))])
    if kind == "double":
        return random.choice([0.0, -0.0, math.inf, -math.inf, random.random(), 1e300, 5e-324])
    if kind == "boolean":
        return random.random() < 0.5
    if kind == "bytes":
        return random.randbytes(_some(random) * random.randint(1, 9))
    return _text(random) if kind == "string" else None


def _some(random: Random) -> int:
    return random.choice(
        [0, 0, 1, 1, 2, 3, random.randint(4, 12), random.randint(0, 90) if random.random() < 0.03 else 1]
    )


def _text(random: Random) -> str:
    return "".join(random.choice("abcZ09 é漢🎈\0") for _ in range(_some(random) * random.randint(1, 7)))


def write(schema: Any, values: list[Any]) -> list[bytes]:
    """Values as fastavro writes them."""
    parsed = parse_schema(json.loads(json.dumps(schema)))
    found = []
    for value in values:
        buffer = io.BytesIO()
        schemaless_writer(buffer, parsed, value)
        found.append(buffer.getvalue())
    return found


def read(schema: Any, payload: bytes) -> Any:
    """A payload as fastavro reads it, with logical types as their base types; raises for what it can't read."""
    buffer = io.BytesIO(payload)
    found = schemaless_reader(buffer, parse_schema(base(schema)), None)
    if buffer.read(1):
        raise ValueError("bytes follow")
    return found


def base(schema: Any) -> Any:
    """A schema without logical types."""
    if isinstance(schema, dict):
        return {key: base(one) for key, one in schema.items() if key != "logicalType"}
    return [base(one) for one in schema] if isinstance(schema, list) else schema


def plain(value: Any, kind: pa.DataType, schema: Any) -> Any:
    """What fastavro reads by the base schema, as the columns of a type hold it: fields left out are not there."""
    if isinstance(schema, list):
        rest = [one for one in schema if one != "null"]
        return None if value is None else plain(value, kind, rest[0])
    if pa.types.is_struct(kind):
        types = {field["name"]: field["type"] for field in schema["fields"]}
        return {field.name: plain(value[field.name], field.type, types[field.name]) for field in kind}
    if pa.types.is_list(kind):
        return [plain(one, kind.value_type, schema["items"]) for one in value]
    if pa.types.is_map(kind):
        return [(key, plain(one, kind.item_type, schema["values"])) for key, one in value.items()]
    if pa.types.is_decimal(kind):
        return int.from_bytes(value, "big", signed=True)
    if pa.types.is_timestamp(kind):
        return value * (1000 if schema["logicalType"] == "timestamp-millis" else 1)
    return value


def rows(columns: pa.Array) -> list[Any]:
    """Rows of columns with dates, times and decimals as whole numbers, to compare with `plain`."""
    return [_number(row, columns.type) for row in columns.cast(_numbers(columns.type)).to_pylist()]


def _numbers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _numbers(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _numbers(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _numbers(kind.item_type))
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def _number(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _number(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_number(one, kind.value_type) for one in value]
    if pa.types.is_map(kind):
        return [(key, _number(one, kind.item_type)) for key, one in value]
    if pa.types.is_decimal(kind):
        sign, digits, exponent = value.as_tuple()
        number = int("".join(map(str, digits))) * 10 ** (exponent + kind.scale)
        return -number if sign else number
    return value
