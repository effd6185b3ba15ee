"""Transformations of values: Cast, by Java's rules of its numbers and their texts, and MaskField."""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, ConnectSchema, SchemaField, SchemaType
from tidelog.connect.transforms.base import R, RecordSide, basics_of, cached, field_of, require_map, require_struct
from tidelog.connect.transforms.date_patterns import DatePattern, epoch_ms_of, moment_of

_DAY_MS: Final = 86_400_000
_BITS: Final = {SchemaType.INT8: 8, SchemaType.INT16: 16, SchemaType.INT32: 32, SchemaType.INT64: 64}
_FLOATS: Final = frozenset({SchemaType.FLOAT32, SchemaType.FLOAT64})
OUTPUTS: Final[Mapping[str, SchemaType]] = {
    "int8": SchemaType.INT8, "int16": SchemaType.INT16, "int32": SchemaType.INT32, "int64": SchemaType.INT64,
    "float32": SchemaType.FLOAT32, "float64": SchemaType.FLOAT64, "boolean": SchemaType.BOOLEAN,
    "string": SchemaType.STRING,
}  # fmt: skip
_INPUTS: Final = frozenset({*OUTPUTS.values(), SchemaType.BYTES})
_LOGICAL: Final = frozenset({DECIMAL, DATE, TIME, TIMESTAMP})
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"\s*[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)\s*")
_TIME_TEXT, _DATE_TEXT = DatePattern("HH:mm:ss.SSS'Z'"), DatePattern("yyyy-MM-dd")
_MOMENT_TEXT: Final = DatePattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")


class Cast:
    """Cast fields, or a whole side, to types.

    `casts`: types by fields' names; `whole`: the type of a whole side, in place of fields. A cast takes the name
    of a logical type away, which Kafka leaves at a type that its own converters then refuse.
    """

    def __init__(
        self,
        side: RecordSide,
        casts: Mapping[str, SchemaType],
        whole: SchemaType | None = None,
        *,
        replace_null: bool = True,
    ) -> None:
        self._side, self._casts, self._whole, self._replace_null = side, casts, whole, replace_null
        self._schema = cached(self._cast_schema)

    def apply(self, record: R, /) -> R | None:
        """Cast; records whose side is null pass. Raises `DataError` for a value that has no such cast."""
        schema, value = self._side.of(record)
        if value is None:
            return record
        if self._whole is not None:
            return self._side.put(record, schema and self._schema(schema), cast_value(schema, value, self._whole))
        if schema is None:
            fields = dict(require_map(value, "cast types"))
            fields |= {name: cast_value(None, fields.get(name), target) for name, target in self._casts.items()}
            return self._side.put(record, None, fields)
        struct = require_struct(schema, value, "cast types")
        return self._side.put(record, self._schema(schema), self._cast_fields(schema, struct))

    def _cast_fields(self, schema: ConnectSchema, struct: Mapping[str, Any]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for field in schema.fields:
            found = field_of(struct, field, with_default=self._replace_null)
            target = self._casts.get(field.name)
            fields[field.name] = found if target is None else cast_value(field.schema, found, target)
        return fields

    def _cast_schema(self, schema: ConnectSchema) -> ConnectSchema:
        if self._whole is not None:
            name = None if schema.name in _LOGICAL else schema.name
            default = cast_value(schema, schema.default, self._whole)
            parameters = {} if schema.name in _LOGICAL else schema.parameters
            return ConnectSchema(
                self._whole, schema.optional, name, schema.version if name else None, schema.doc, default, parameters
            )
        fields = tuple(
            SchemaField(field.name, _cast_field_schema(field.schema, self._casts[field.name]))
            if field.name in self._casts
            else field
            for field in schema.fields
        )
        default = None if schema.default is None else self._cast_fields(schema, schema.default)
        return replace(basics_of(schema, fields), optional=schema.optional, default=default)


def _cast_field_schema(schema: ConnectSchema, target: SchemaType) -> ConnectSchema:
    return ConnectSchema(target, schema.optional, default=cast_value(schema, schema.default, target))


def cast_value(schema: ConnectSchema | None, value: Any, target: SchemaType) -> Any:
    """A value as one of another type; null stays null. Raises `DataError` where Kafka raises DataException."""
    if value is None:
        return None
    if not _castable(schema, value):
        kind = schema.type.value if schema is not None else type(value).__name__
        raise DataError(f"Cast transformation does not support casting from {kind}. Leave the field out of `spec`.")
    if target is SchemaType.STRING:
        return text_of(value, schema)
    if isinstance(value, bytes | bytearray | memoryview):
        raise DataError(f"Binary values can be cast to string only, not to {target.value}. Correct `spec`.")
    number = _number_of(schema, value)
    try:
        if target is SchemaType.BOOLEAN:
            return number.lower() == "true" if isinstance(number, str) else _truncated(number, 64) != 0
        if target in _FLOATS:
            return _float(number, target)
        if isinstance(number, str):
            return _parsed(number, _BITS[target])
        return _truncated(number, _BITS[target])
    except (ValueError, OverflowError):
        raise DataError(f"Value ({value}) was out of range for requested data type {target.value}.") from None


def _castable(schema: ConnectSchema | None, value: Any) -> bool:
    if schema is not None:
        return schema.type in _INPUTS
    return isinstance(value, bool | int | float | str | bytes | bytearray | memoryview)


def _number_of(schema: ConnectSchema | None, value: Any) -> Any:
    """The number behind a value of a logical type; other values as they are."""
    if isinstance(value, date | time):
        milliseconds = epoch_ms_of(value)
        return milliseconds // _DAY_MS if schema is not None and schema.name == DATE else milliseconds
    return value


def _truncated(number: float | Decimal, bits: int) -> int:
    """Java's narrowing: decimals and whole numbers keep their low bits; floats saturate at 32 or 64 bits before."""
    if isinstance(number, float):
        if number != number:  # NaN
            return 0
        wide = 1 << (max(bits, 32) - 1)
        number = max(-wide, min(wide - 1, int(max(-1e30, min(1e30, number)))))
    low = int(number) & ((1 << bits) - 1)
    return low - (1 << bits) if low >> (bits - 1) else low


def _parsed(text: str, bits: int) -> int:
    number = int(text) if _WHOLE.fullmatch(text) else None
    if number is None or not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise ValueError(text)
    return number


def _float(number: Any, target: SchemaType) -> float:
    if isinstance(number, str):
        if _NUMBER.fullmatch(number) is None:
            raise ValueError(number)
        number = number.strip().rstrip("fFdD") if not number.strip().endswith("y") else number
    wide = float(number)
    with np.errstate(over="ignore"):
        return float(np.float32(wide)) if target is SchemaType.FLOAT32 else wide


def text_of(value: Any, schema: ConnectSchema | None = None) -> str:
    """A value's text, as Java's toString and Connect's formats of dates write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value, single=schema is not None and schema.type is SchemaType.FLOAT32)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, date | time):
        milliseconds = epoch_ms_of(value)
        if abs(milliseconds) < _DAY_MS:
            return _TIME_TEXT.format(milliseconds)
        return (_MOMENT_TEXT if milliseconds % _DAY_MS else _DATE_TEXT).format(milliseconds)
    return str(value)


def _float_text(value: float, *, single: bool) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    exact = np.float32(value) if single else np.float64(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(exact, trim="0")
    mantissa, exponent = np.format_float_scientific(exact, trim="0").split("e")
    return f"{mantissa}E{int(exponent)}"


class MaskField:
    """Replace fields' values: by what is valid and null of their types, or by `replacement` for numbers and texts."""

    def __init__(
        self, side: RecordSide, fields: Sequence[str], replacement: str | None = None, *, replace_null: bool = True
    ) -> None:
        self._side, self._fields, self._replace_null = side, frozenset(fields), replace_null
        self._replacement = replacement

    def apply(self, record: R, /) -> R | None:
        """Mask the fields. Raises `DataError` for a value that can't be masked so."""
        schema, value = self._side.of(record)
        if schema is None:
            fields = dict(require_map(value, "mask fields"))
            fields |= {name: self._masked(fields.get(name), None) for name in self._fields}
            return self._side.put(record, None, fields)
        struct = require_struct(schema, value, "mask fields")
        masked: dict[str, Any] = {}
        for field in schema.fields:
            found = field_of(struct, field, with_default=self._replace_null)
            masked[field.name] = self._masked(found, field.schema) if field.name in self._fields else found
        return self._side.put(record, schema, masked)

    def _masked(self, value: Any, schema: ConnectSchema | None) -> Any:
        if value is None:
            return None
        return _nothing_of(value) if self._replacement is None else _replaced(value, self._replacement, schema)


def _nothing_of(value: Any) -> Any:
    """The value of the same type that says nothing, a new one."""
    if isinstance(value, datetime):
        return moment_of(0)
    if isinstance(value, date):
        return moment_of(0).date()
    if isinstance(value, time):
        return time()
    if isinstance(value, Mapping):
        return {}
    for kind, nothing in ((bool, False), (int, 0), (float, 0.0), (Decimal, Decimal(0)), (str, "")):
        if isinstance(value, kind):
            return nothing
    if isinstance(value, list | tuple):
        return []
    raise DataError(f"Cannot mask value of type: {type(value).__name__}. Leave the field out with ReplaceField.")


def _replaced(value: Any, replacement: str, schema: ConnectSchema | None) -> Any:
    """The replacement as a value of the masked value's type."""
    if isinstance(value, str):
        return replacement
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise DataError(
            f"Cannot mask value of type {type(value).__name__} with custom replacement: it is for numbers and texts. "
            "Mask the field in a MaskField without `replacement`."
        )
    try:
        if isinstance(value, int):
            return _whole(replacement, schema)
        return float(replacement) if isinstance(value, float) else Decimal(replacement)
    except (ValueError, InvalidOperation):
        raise DataError(f"Unable to convert {replacement!r} to a number, as the masked value is. Correct it.") from None


def _whole(text: str, schema: ConnectSchema | None) -> int:
    number = float(text) if _WHOLE.fullmatch(text) is None else int(text)
    half = 1 << (_BITS.get(schema.type, 64) - 1 if schema is not None else 63)
    if not float(number).is_integer() or not -half <= number < half:
        raise ValueError(text)
    return int(number)
