"""Transformations of headers: HeaderFrom, InsertHeader and DropHeaders."""

import re
from collections.abc import Collection, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import numpy as np
import orjson

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import ConnectHeader
from tidelog.connect.data.schema import (
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    ConnectSchema,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from tidelog.connect.transforms.base import R, RecordSide, basics_of, cached, field_of, require_map, require_struct
from tidelog.connect.transforms.date_patterns import DatePattern, moment_of

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,999}")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]{1,999}\.?[0-9]{0,999}|\.[0-9]{1,999})([eE][+-]?[0-9]{1,4})?")
_MOMENTS: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d"), DatePattern("yyyy-MM-dd"), date_schema()),
    (re.compile(r"\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d{4})"), DatePattern("HH:mm:ss.SSSX"), time_schema()),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d{4})"), DatePattern("yyyy-MM-dd'T'HH:mm:ss.SSSX"),
     timestamp_schema()),
)  # fmt: skip


class HeaderFrom:
    """Copy fields into headers, or move them. `headers`: a name for each of the fields, in order."""

    def __init__(
        self,
        side: RecordSide,
        fields: Sequence[str],
        headers: Sequence[str],
        *,
        move: bool,
        replace_null: bool = True,
    ) -> None:
        self._side, self._named, self._move, self._replace_null = (
            side,
            [*zip(fields, headers, strict=True)],
            move,
            replace_null,
        )
        self._fields = frozenset(fields)
        self._schema = cached(
            lambda schema: basics_of(schema, tuple(one for one in schema.fields if one.name not in self._fields))
        )

    def apply(self, record: R, /) -> R | None:
        """Append the headers. Raises `DataError` for a field that the schema lacks."""
        schema, value = self._side.of(record)
        purpose = f"header {'move' if self._move else 'copy'}"
        if schema is None:
            fields = dict(require_map(value, purpose))
            added = [ConnectHeader(header, fields.get(name)) for name, header in self._named]
        else:
            struct = require_struct(schema, value, purpose)
            fields = {one.name: field_of(struct, one, with_default=self._replace_null) for one in schema.fields}
            added = [self._header(schema, name, header, fields) for name, header in self._named]
        if self._move:
            kept = {name: one for name, one in fields.items() if name not in self._fields}
            record = self._side.put(record, None if schema is None else self._schema(schema), kept)
        return record.but(headers=(*record.headers, *added))

    def _header(self, schema: ConnectSchema, name: str, header: str, fields: dict[str, Any]) -> ConnectHeader:
        field = schema.field_named(name)
        if field is None:
            raise DataError(f"Field does not exist: {name}. Correct `fields`, or insert the field before.")
        return ConnectHeader(header, fields[name], field.schema)


class InsertHeader:
    """Append a header with a fixed value."""

    def __init__(self, name: str, value: Any, schema: ConnectSchema | None) -> None:
        self._header = ConnectHeader(name, value, schema)

    def apply(self, record: R, /) -> R | None:
        """Append the header, also behind one of the same name."""
        return record.but(headers=(*record.headers, self._header))


class DropHeaders:
    """Remove all headers of some names."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)

    def apply(self, record: R, /) -> R | None:
        """Remove the headers."""
        return record.but(headers=tuple(one for one in record.headers if one.key not in self._names))


def parsed_literal(text: str) -> tuple[Any, ConnectSchema | None]:
    """(value, schema) of a text: null, a boolean, a number, a date, a JSON array or object (no schema), else a text."""
    trimmed = text.strip()
    if trimmed in ("null", "true", "false"):
        return (None, None) if trimmed == "null" else (trimmed == "true", BOOLEAN)
    if _WHOLE.fullmatch(trimmed):
        return _whole(int(trimmed))
    if _DECIMAL.fullmatch(trimmed):
        return _fraction(trimmed)
    for shape, pattern, schema in _MOMENTS:
        if shape.fullmatch(trimmed):
            return _moment(pattern.parse(trimmed.replace("+0000", "Z")), schema)
    if trimmed[:1] in ("[", "{", '"'):
        try:
            value = orjson.loads(trimmed)
        except orjson.JSONDecodeError:
            return text, STRING
        return (value, STRING) if isinstance(value, str) else (value, None)
    return text, STRING


def _whole(number: int) -> tuple[Any, ConnectSchema]:
    for bits, schema in ((8, INT8), (16, INT16), (32, INT32), (64, INT64)):
        if -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            return number, schema
    return Decimal(number), decimal_schema(0)


def _fraction(text: str) -> tuple[Any, ConnectSchema]:
    exact = Decimal(text)
    with np.errstate(over="ignore"):
        single = float(np.float32(float(exact)))
    for number, schema in ((single, FLOAT32), (float(exact), FLOAT64)):
        if abs(number) != float("inf") and (number != 0 or exact == 0):
            return number, schema
    exponent = exact.as_tuple().exponent
    return exact, decimal_schema(-exponent if isinstance(exponent, int) else 0)


def _moment(epoch_ms: int, schema: ConnectSchema) -> tuple[date | time | datetime, ConnectSchema]:
    moment = moment_of(epoch_ms)
    if schema == date_schema():
        return moment.date(), schema
    return (moment.time() if schema == time_schema() else moment), schema
