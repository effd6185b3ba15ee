"""What a column of each of PostgreSQL's types becomes: its schema, and what reads the type's text form.

The mapping is Debezium's ("Data type mappings" of its PostgreSQL connector).
"""

import base64
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import orjson

from tidelog.connect.connectors.postgres import literals, times
from tidelog.connect.connectors.postgres.times import TimePrecision
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.data.schema import (
    ALL_DIGITS,
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    ConnectSchema,
    SchemaType,
    array_of,
    decimal_schema,
    map_of,
    struct_of,
)


class DecimalHandling(StrEnum):
    """`decimal.handling.mode`."""

    PRECISE = "precise"
    DOUBLE = "double"
    STRING = "string"


class BinaryHandling(StrEnum):
    """`binary.handling.mode`."""

    BYTES = "bytes"
    BASE64 = "base64"
    BASE64_URL_SAFE = "base64-url-safe"
    HEX = "hex"


class HstoreHandling(StrEnum):
    """`hstore.handling.mode`."""

    JSON = "json"
    MAP = "map"


class IntervalHandling(StrEnum):
    """`interval.handling.mode`."""

    NUMERIC = "numeric"
    STRING = "string"


@dataclass(frozen=True, slots=True)
class TypeModes:
    """How values are written where Debezium leaves a choice; its defaults."""

    decimals: DecimalHandling = DecimalHandling.PRECISE
    times: TimePrecision = TimePrecision.ADAPTIVE
    binary: BinaryHandling = BinaryHandling.BYTES
    hstores: HstoreHandling = HstoreHandling.JSON
    intervals: IntervalHandling = IntervalHandling.NUMERIC
    money_digits: int = 2
    include_unknown: bool = False
    placeholder: str = "__debezium_unavailable_value"


@dataclass(frozen=True, slots=True)
class PostgresType:
    """A type of `pg_type`. `kind`: its `typtype`; `element`: of an array; `base`: of a domain, with the typmod that
    the domain gives it; `labels`: of an enumeration, in their order.
    """

    oid: int
    name: str
    kind: str = "b"
    element: "PostgresType | None" = None
    base: "PostgresType | None" = None
    base_typmod: int = -1
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CellReader:
    """How a column is read: the schema of a column with NOT NULL, what makes a value of a text, the value that stands
    for a null there, and the one that stands for a TOASTed value that is not in the log.
    """

    schema: ConnectSchema
    read: Callable[[str], Any]
    empty: Any
    unavailable: Any = None


_Maker = Callable[[int, TypeModes], CellReader]


def reader_of(column_type: PostgresType, typmod: int, modes: TypeModes) -> CellReader | None:
    """How to read a column of a type; None leaves the column out, as Debezium does for types that it does not know."""
    while column_type.base is not None:
        column_type, typmod = column_type.base, column_type.base_typmod if column_type.base_typmod >= 0 else typmod
    if column_type.element is not None:
        return _array(column_type.element, typmod, modes)
    if column_type.kind == "e":
        schema = _semantic("io.debezium.data.Enum", parameters={"allowed": ",".join(column_type.labels)})
        return _with_unavailable(CellReader(schema, str, ""), modes)
    maker = _MAKERS.get(column_type.name)
    if maker is not None:
        return _with_unavailable(maker(typmod, modes), modes)
    if column_type.kind in "rm":
        return _with_unavailable(_TEXT, modes)
    return _with_unavailable(_unknown(modes), modes) if modes.include_unknown else None


def _semantic(name: str, like: ConnectSchema = STRING, **others: Any) -> ConnectSchema:
    return replace(like, name=name, version=1, **others)


def _with_unavailable(reader: CellReader, modes: TypeModes) -> CellReader:
    """Texts, bytes and maps can be TOASTed; other values of these sizes are always in the log."""
    kind = reader.schema.type
    if reader.schema.name == "org.apache.kafka.connect.data.Decimal":
        return reader
    if kind is SchemaType.STRING:
        return replace(reader, unavailable=modes.placeholder)
    if kind is SchemaType.BYTES:
        return replace(reader, unavailable=modes.placeholder.encode())
    if kind is SchemaType.MAP:
        return replace(reader, unavailable={modes.placeholder: modes.placeholder})
    return reader


def _array(element: PostgresType, typmod: int, modes: TypeModes) -> CellReader | None:
    """An array; of what can't be in an array that Debezium knows, none."""
    if element.name in _NOT_IN_ARRAYS:
        return None
    inner = reader_of(element, typmod, modes)
    if inner is None:
        return None
    read = inner.read
    unavailable: list[Any] = []
    if inner.unavailable is not None:
        unavailable = [inner.unavailable]
    elif inner.schema.type in (SchemaType.INT16, SchemaType.INT32, SchemaType.INT64):
        unavailable = list(modes.placeholder.encode())
    # Debezium has labels in arrays as required.
    schema = inner.schema if element.kind == "e" else inner.schema.as_optional()
    return CellReader(array_of(schema), lambda text: literals.array(text, read), [], unavailable)


# --- the readers of each type --------------------------------------------------------------------------------


def _true(text: str) -> bool:
    return text == "t"


def _bytea(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def _numeric(typmod: int, modes: TypeModes) -> CellReader:
    if modes.decimals is DecimalHandling.DOUBLE:
        return CellReader(FLOAT64, float, 0.0)
    if modes.decimals is DecimalHandling.STRING:
        return CellReader(STRING, _decimal_text, "0")
    if typmod < 4:
        return CellReader(VARIABLE_SCALE_DECIMAL, _variable_scale, _variable_scale("0"))
    precision, scale = (typmod - 4) >> 16 & 0xFFFF, ((typmod - 4 & 0x7FF) ^ 0x400) - 0x400
    schema = decimal_schema(scale, parameters={"connect.decimal.precision": str(precision)})
    unit = Decimal(1).scaleb(-scale)
    read = _decimal if scale >= 0 else lambda text: _decimal(text).quantize(unit, context=ALL_DIGITS)
    return CellReader(schema, read, Decimal(0))


VARIABLE_SCALE_DECIMAL: Final = struct_of(
    {"scale": INT32, "value": BYTES},
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
)


def _decimal(text: str) -> Decimal:
    if text[-1:] in ("N", "y"):
        raise ConnectError(
            f"A column of the type numeric holds {text}, which no decimal can say."
            " Set decimal.handling.mode to double or string, or exclude the column with column.exclude.list."
        )
    return Decimal(text)


def _decimal_text(text: str) -> str:
    return _SPECIAL_DECIMALS.get(text, text)


_SPECIAL_DECIMALS: Final = {"NaN": "NAN", "Infinity": "POSITIVE_INFINITY", "-Infinity": "NEGATIVE_INFINITY"}


def _variable_scale(text: str) -> dict[str, Any]:
    """The decimal without trailing zeros, its scale with it: two's complement, big endian, in few bytes."""
    decimal = _decimal(text)
    exponent = decimal.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = -exponent
    unscaled = int(decimal.scaleb(scale, ALL_DIGITS))
    while scale > 0 and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale - 1
    size = ((unscaled if unscaled >= 0 else ~unscaled).bit_length() + 8) // 8
    return {"scale": scale, "value": unscaled.to_bytes(size, "big", signed=True)}


def _money(_: int, modes: TypeModes) -> CellReader:
    if modes.decimals is DecimalHandling.DOUBLE:
        return CellReader(FLOAT64, lambda text: float(_money_decimal(text)), 0.0)
    if modes.decimals is DecimalHandling.STRING:
        return CellReader(STRING, lambda text: str(_money_decimal(text)), "0")
    unit = Decimal(1).scaleb(-modes.money_digits)
    return CellReader(
        decimal_schema(modes.money_digits), lambda text: _money_decimal(text).quantize(unit), Decimal(0).quantize(unit)
    )


def _money_decimal(text: str) -> Decimal:
    """An amount without its currency and its separators of thousands (the connection's lc_monetary is C)."""
    digits = "".join(one for one in text if one.isdigit() or one == ".")
    return -Decimal(digits) if "-" in text or "(" in text else Decimal(digits)


def _bits(length: int, _: TypeModes) -> CellReader:
    if length == 1:
        return CellReader(BOOLEAN, lambda text: text == "1", False)
    known = length if length > 0 else 2_147_483_647
    return CellReader(_semantic("io.debezium.data.Bits", BYTES, parameters={"length": str(known)}), literals.bits, b"")


def _binary(_: int, modes: TypeModes) -> CellReader:
    match modes.binary:
        case BinaryHandling.BASE64:
            return CellReader(STRING, lambda text: base64.b64encode(_bytea(text)).decode(), "")
        case BinaryHandling.BASE64_URL_SAFE:
            return CellReader(STRING, lambda text: base64.urlsafe_b64encode(_bytea(text)).decode(), "")
        case BinaryHandling.HEX:
            return CellReader(STRING, lambda text: text[2:], "")
        case _:
            return CellReader(BYTES, _bytea, b"")


def _unknown(modes: TypeModes) -> CellReader:
    """A type that is not known, as `include.unknown.datatypes` asks: its text form, as bytes."""
    return CellReader(BYTES, str.encode, b"") if modes.binary is BinaryHandling.BYTES else _TEXT


def _hstore(_: int, modes: TypeModes) -> CellReader:
    if modes.hstores is HstoreHandling.MAP:
        return CellReader(map_of(STRING, STRING.as_optional()), literals.hstore, {})
    return CellReader(_JSON, lambda text: orjson.dumps(literals.hstore(text)).decode(), "{}")


def _interval(_: int, modes: TypeModes) -> CellReader:
    if modes.intervals is IntervalHandling.STRING:
        schema = _semantic("io.debezium.time.Interval")
        return CellReader(schema, lambda text: literals.interval(text).as_iso(), "P0Y0M0DT0H0M0S")
    schema = _semantic("io.debezium.time.MicroDuration", INT64)
    return CellReader(schema, lambda text: literals.interval(text).as_microseconds(), 0)


POINT: Final = struct_of(
    {"x": FLOAT64, "y": FLOAT64, "wkb": BYTES.as_optional(), "srid": INT32.as_optional()},
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
)


def _point(text: str) -> dict[str, Any]:
    """A point, also in the well-known binary form: little endian, the kind 1, two doubles."""
    x, y = map(float, text.strip("()").split(","))
    return {"x": x, "y": y, "wkb": struct.pack("<BIdd", 1, 1, x, y), "srid": None}


_JSON: Final = _semantic("io.debezium.data.Json")
_TEXT: Final = CellReader(STRING, str, "")


def _of_times(made: times.TimeReader) -> CellReader:
    return CellReader(made.schema, made.read, made.empty)


def _same(reader: CellReader) -> _Maker:
    return lambda _, __: reader


def _texts(*names: str) -> dict[str, _Maker]:
    return {name: _same(_TEXT) for name in names}


_MAKERS: Final[Mapping[str, _Maker]] = {
    **_texts("text", "varchar", "bpchar", "char", "name", "citext", "inet", "cidr", "macaddr", "macaddr8", "isbn"),
    "bool": _same(CellReader(BOOLEAN, _true, False)),
    "int2": _same(CellReader(INT16, int, 0)),
    "int4": _same(CellReader(INT32, int, 0)),
    "int8": _same(CellReader(INT64, int, 0)),
    "oid": _same(CellReader(INT64, int, 0)),
    "float4": _same(CellReader(FLOAT32, float, 0.0)),
    "float8": _same(CellReader(FLOAT64, float, 0.0)),
    "numeric": _numeric,
    "money": _money,
    "bit": _bits,
    "varbit": _bits,
    "bytea": _binary,
    "json": _same(CellReader(_JSON, str, "{}")),
    "jsonb": _same(CellReader(_JSON, str, "{}")),
    "xml": _same(CellReader(_semantic("io.debezium.data.Xml"), str, "")),
    "uuid": _same(CellReader(_semantic("io.debezium.data.Uuid"), str, "")),
    "tsvector": _same(CellReader(_semantic("io.debezium.data.TsVector"), str, "")),
    "ltree": _same(CellReader(_semantic("io.debezium.data.Ltree"), str, "")),
    "hstore": _hstore,
    "interval": _interval,
    "point": _same(CellReader(POINT, _point, _point("(0,0)"))),
    "date": lambda _, modes: _of_times(times.date_reader(modes.times)),
    "time": lambda typmod, modes: _of_times(times.time_reader(modes.times, typmod)),
    "timestamp": lambda typmod, modes: _of_times(times.timestamp_reader(modes.times, typmod)),
    "timetz": _same(_of_times(times.ZONED_TIME)),
    "timestamptz": lambda typmod, _: _of_times(times.zoned_timestamp_reader(typmod)),
}
_NOT_IN_ARRAYS: Final = frozenset({"money", "name", "interval", "bit", "varbit", "xml", "point", "refcursor"})
