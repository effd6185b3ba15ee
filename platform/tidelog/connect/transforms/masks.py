"""MaskField: fields' values replaced by nothing, or by a text of the user's."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import ConnectSchema, SchemaType
from tidelog.connect.transforms.base import R, RecordSide, field_of, require_map, require_struct
from tidelog.connect.transforms.date_patterns import moment_of

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_BITS: Final = {SchemaType.INT8: 8, SchemaType.INT16: 16, SchemaType.INT32: 32, SchemaType.INT64: 64}


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
