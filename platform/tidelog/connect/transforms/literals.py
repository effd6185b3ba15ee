"""Values of texts, as Connect reads a header's (`Values.parseString`): the narrowest type that the text is of."""

import re
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import numpy as np
import orjson

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
from tidelog.connect.transforms.date_patterns import DatePattern, moment_of

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,999}")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]{1,999}\.?[0-9]{0,999}|\.[0-9]{1,999})([eE][+-]?[0-9]{1,4})?")
_MOMENTS: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d"), DatePattern("yyyy-MM-dd"), date_schema()),
    (re.compile(r"\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d{4})"), DatePattern("HH:mm:ss.SSSX"), time_schema()),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d{4})"), DatePattern("yyyy-MM-dd'T'HH:mm:ss.SSSX"),
     timestamp_schema()),
)  # fmt: skip


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
            found = orjson.loads(trimmed)
        except orjson.JSONDecodeError:
            return text, STRING
        return (found, STRING) if isinstance(found, str) else (found, None)
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
