"""TimestampConverter: instants as numbers, texts, and Connect's Date, Time and Timestamp."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, time
from typing import Any, Final

from tidelog.connect.data.errors import ConnectError, DataError
from tidelog.connect.data.schema import (
    DATE,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    SchemaField,
    SchemaType,
    date_schema,
    time_schema,
    timestamp_schema,
)
from tidelog.connect.transforms.base import R, RecordSide, basics_of, cached, field_of, require_map, require_struct
from tidelog.connect.transforms.date_patterns import DatePattern, epoch_ms_of, moment_of

_SCHEMAS: Final = {
    "string": STRING, "unix": INT64, "Date": date_schema(), "Time": time_schema(), "Timestamp": timestamp_schema(),
}  # fmt: skip
TARGETS: Final = tuple(_SCHEMAS)
# How many of each unit a millisecond has, or how many milliseconds it has, negative.
_UNITS: Final = {"seconds": -1000, "milliseconds": 1, "microseconds": 1000, "nanoseconds": 1_000_000}
PRECISIONS: Final = tuple(_UNITS)
_LOGICAL: Final = frozenset({DATE, TIME, TIMESTAMP})


class TimestampConverter:
    """Convert a whole side (an empty `field`), or a field of it, to one of `TARGETS`.

    `pattern`: of texts, read or written. `precision`: what numbers count, read or written; parts of a millisecond are
    cut off.
    """

    def __init__(
        self,
        side: RecordSide,
        field: str,
        target: str,
        pattern: DatePattern | None = None,
        precision: str = "milliseconds",
        *,
        replace_null: bool = True,
    ) -> None:
        self._side, self._field, self._target, self._pattern = side, field, target, pattern
        self._unit, self._replace_null = _UNITS[precision], replace_null
        self._schema = cached(self._converted_schema)

    def apply(self, record: R, /) -> R | None:
        """Convert. Raises `DataError` for a value that is no instant, `ConnectError` for such a schema."""
        schema, value = self._side.of(record)
        if schema is None:
            if value is None or not self._field:
                return self._side.put(record, None, self._converted(value, None))
            fields = dict(require_map(value, "converting timestamp formats"))
            fields[self._field] = self._converted(fields.get(self._field), None)
            return self._side.put(record, None, fields)
        if not self._field:
            converted = replace(_SCHEMAS[self._target], optional=schema.optional)
            return self._side.put(record, converted, self._converted(value, schema))
        updated = self._schema(schema)
        if value is None:
            return self._side.put(record, updated, None)
        return self._side.put(record, updated, self._converted_struct(schema, value))

    def _converted_schema(self, schema: ConnectSchema) -> ConnectSchema:
        fields = tuple(
            SchemaField(field.name, replace(_SCHEMAS[self._target], optional=field.schema.optional))
            if field.name == self._field
            else field
            for field in schema.fields
        )
        default = None if schema.default is None else self._converted_struct(schema, schema.default)
        return replace(basics_of(schema, fields), optional=schema.optional, default=default)

    def _converted_struct(self, schema: ConnectSchema, value: Any) -> Mapping[str, Any]:
        struct = require_struct(schema, value, "converting timestamp formats")
        fields = {one.name: field_of(struct, one, with_default=self._replace_null) for one in schema.fields}
        at = schema.field_named(self._field)
        if at is not None:
            fields[self._field] = self._converted(fields[self._field], at.schema)
        return fields

    def _converted(self, value: Any, schema: ConnectSchema | None) -> Any:
        if (
            schema is not None
            and schema.name not in _LOGICAL
            and schema.type not in (SchemaType.STRING, SchemaType.INT64)
        ):
            raise ConnectError(
                f"Schema {schema.name or schema.type.value} does not correspond to a known timestamp type format: "
                "TimestampConverter takes int64, string, Date, Time and Timestamp. Correct `field`."
            )
        if value is None:
            return None
        try:
            return self._written(self._read(value))
        except (ValueError, OverflowError) as error:
            raise DataError(f"Could not convert the timestamp {value!r}: {error}") from None

    def _read(self, value: Any) -> int:
        """Milliseconds since 1970."""
        if isinstance(value, date | time):
            return epoch_ms_of(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value * -self._unit if self._unit < 0 else _toward_zero(value, self._unit)
        if not isinstance(value, str):
            raise DataError(
                f"TimestampConverter does not support {type(value).__name__} objects as timestamps. Correct `field`."
            )
        if self._pattern is None:
            raise DataError(f"Could not parse timestamp: {value!r} is a text, and `format` is empty. Set `format`.")
        return self._pattern.parse(value)

    def _written(self, epoch_ms: int) -> int | str | date | time | datetime:
        if self._target == "unix":
            return epoch_ms * self._unit if self._unit > 0 else _toward_zero(epoch_ms, -self._unit)
        if self._target == "string" and self._pattern is not None:
            return self._pattern.format(epoch_ms)
        moment = moment_of(epoch_ms)
        if self._target == "Date":
            return moment.date()
        return moment.time() if self._target == "Time" else moment


def _toward_zero(number: int, by: int) -> int:
    return number // by if number >= 0 else -(-number // by)
