"""Types of columns as Connect's schemas, and back."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal
from typing import Any, Final

import orjson
import sqlalchemy as sa

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import (
    ALL_DIGITS,
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    SCALE,
    STRING,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    SchemaType,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)

NUMERIC_MAPPINGS: Final = ("none", "precision_only", "best_fit", "best_fit_eager_double")
Reader = Callable[[Any], Any]


def _text(value: Any) -> Any:
    if isinstance(value, str | None):
        return value
    return orjson.dumps(value).decode() if isinstance(value, dict | list) else str(value)


def _bytes(value: Any) -> Any:
    return None if value is None else bytes(value)


def _same(value: Any) -> Any:
    return value


def _moments(zone: tzinfo) -> Reader:
    """What reads times as instants; those without a time zone are of `zone`."""

    def read(value: Any) -> Any:
        if not isinstance(value, datetime):
            return value
        return (value.replace(tzinfo=zone) if value.tzinfo is None else value).astimezone(UTC)

    return read


def _float(value: Any) -> Any:
    return None if value is None else float(value)


def _whole(value: Any) -> Any:
    return None if value is None else int(value)


def column_schema(kind: Any, dialect: str, mapping: str = "none", zone: tzinfo = UTC) -> tuple[ConnectSchema, Reader]:
    """(schema, reader of values) of a column's type; the schema is required. Unknown types are texts.

    `mapping`: numeric.mapping. `zone`: of times without one. A numeric column without scale is a text, for its values
    have no scale in common.
    """
    if isinstance(kind, sa.Boolean):
        return BOOLEAN, lambda value: None if value is None else bool(value)
    if isinstance(kind, sa.Integer):
        small = INT16 if isinstance(kind, sa.SmallInteger) else INT32
        wide = isinstance(kind, sa.BigInteger) or dialect == "sqlite"
        return (INT64 if wide else small), _same
    if isinstance(kind, sa.Float):
        return (FLOAT32 if isinstance(kind, sa.REAL) and dialect == "postgresql" else FLOAT64), _float
    if isinstance(kind, sa.Numeric):
        return _numeric(kind.precision, kind.scale, mapping)
    if isinstance(kind, sa.DateTime):
        return timestamp_schema(), _moments(zone)
    if isinstance(kind, sa.Date):
        return date_schema(), _same
    if isinstance(kind, sa.Time):
        return time_schema(), _same
    return (BYTES, _bytes) if isinstance(kind, sa.LargeBinary) else (STRING, _text)


def _numeric(precision: int | None, scale: int | None, mapping: str) -> tuple[ConnectSchema, Reader]:
    if scale is None:
        return STRING, _text
    best = mapping.startswith("best_fit")
    if mapping != "none" and scale == 0 and precision is not None and precision < 19:
        sizes = ((3, INT8), (5, INT16), (10, INT32))
        return next((schema for digits, schema in sizes if precision < digits), INT64), _whole
    if (best and precision is not None and precision < 19) or mapping == "best_fit_eager_double":
        return FLOAT64, _float
    return decimal_schema(scale), lambda value: None if value is None else _scaled(value, scale)


def _scaled(value: Any, scale: int) -> Decimal:
    return Decimal(value).quantize(Decimal(1).scaleb(-scale), context=ALL_DIGITS)


def row_schemas(
    rows: Sequence[Sequence[Any]], description: Sequence[Any], zone: tzinfo = UTC
) -> list[tuple[ConnectSchema, Reader]]:
    """What a query's columns are: PostgreSQL says it, elsewhere the values of its first rows do. Each is optional.

    `zone`: of times without one.
    """
    column_types: list[tuple[ConnectSchema, Reader]] = []
    for index, column in enumerate(description):
        kind = _POSTGRES.get(column[1]) if isinstance(column[1], int) else None
        if kind is None:
            kind = next((_of_value(row[index]) for row in rows if row[index] is not None), (STRING, _text))
        reads = _moments(zone) if kind[0].name == TIMESTAMP else kind[1]
        column_types.append((kind[0].as_optional(), reads))
    return column_types


def _of_value(value: Any) -> tuple[ConnectSchema, Reader]:
    for of, kind in (
        (bool, (BOOLEAN, _same)), (int, (INT64, _same)), (float, (FLOAT64, _float)), (bytes, (BYTES, _bytes)),
        (datetime, (timestamp_schema(), _same)), (date, (date_schema(), _same)), (time, (time_schema(), _same)),
    ):  # fmt: skip
        if isinstance(value, of):
            return kind
    return STRING, _text


# By the ids of PostgreSQL's types.
_POSTGRES: Final[Mapping[int, tuple[ConnectSchema, Reader]]] = {
    16: (BOOLEAN, _same), 17: (BYTES, _bytes), 20: (INT64, _same), 21: (INT16, _same), 23: (INT32, _same),
    25: (STRING, _text), 700: (FLOAT32, _float), 701: (FLOAT64, _float), 1043: (STRING, _text),
    1082: (date_schema(), _same), 1083: (time_schema(), _same), 1114: (timestamp_schema(), _same),
    1184: (timestamp_schema(), _same), 1700: (STRING, _text), 2950: (STRING, lambda value: _text(value)),
}  # fmt: skip
_SQL: Final[Mapping[SchemaType, Callable[[], Any]]] = {
    SchemaType.INT8: sa.SmallInteger, SchemaType.INT16: sa.SmallInteger, SchemaType.INT32: sa.Integer,
    SchemaType.INT64: sa.BigInteger, SchemaType.FLOAT32: sa.REAL, SchemaType.FLOAT64: sa.Double,
    SchemaType.BOOLEAN: sa.Boolean, SchemaType.STRING: sa.Text, SchemaType.BYTES: sa.LargeBinary,
}  # fmt: skip


def sql_type(schema: ConnectSchema, name: str) -> Any:
    """The type of a column for a field's values. Raises `DataError` for structs, arrays and maps."""
    if schema.name == DECIMAL:
        return sa.Numeric(38, int(schema.parameters[SCALE]))
    if schema.name == TIMESTAMP:
        return sa.DateTime()
    if schema.name in (DATE, TIME):
        return sa.Date() if schema.name == DATE else sa.Time()
    if schema.type not in _SQL:
        raise DataError(f"The field {name} is {schema.type.value}, which no column takes. Flatten it, or leave it out.")
    return _SQL[schema.type]()


def sql_value(value: Any, zone: tzinfo = UTC) -> Any:
    """A value as drivers take it: instants without time zone, as clocks of `zone` show them."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(zone).replace(tzinfo=None)
    return str(value) if isinstance(value, uuid.UUID) else value
