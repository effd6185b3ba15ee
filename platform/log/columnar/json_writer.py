"""Rows as JSON."""

import math
from typing import Any

import orjson
import pyarrow as pa

from tidelog.log.columnar.json_columns import JsonColumn
from tidelog.log.columnar.model import EncodingError


def write_payloads(column: JsonColumn, columns: pa.StructArray) -> pa.BinaryArray:
    """The payloads of rows, null for null rows: one line without blanks, properties in the schema's order.

    A null property is left out where it may be, else written where null fits. Raises `EncodingError`, naming the
    first row that the schema does not allow.
    """
    found: list[bytes | None] = []
    for number, row in enumerate(columns.to_pylist()):
        try:
            found.append(None if row is None else orjson.dumps(_plain(column, row, "")))
        except EncodingError as error:
            raise EncodingError(f"Row {number}: {error}") from None
    return pa.array(found, pa.binary())


def _plain(column: JsonColumn, value: Any, path: str) -> Any:
    """A value as JSON has it."""
    if value is None:
        if column.nullable:
            return None
        raise EncodingError(f"'{path}' is null, which its schema does not allow")
    if column.fields:
        made = {}
        for name, one in column.fields:
            given = value.get(name)
            if given is not None or name in column.required:
                made[name] = _plain(one, given, f"{path}.{name}" if path else name)
        unknown = column.required - made.keys()
        if unknown:
            raise EncodingError(f"the schema requires '{min(unknown)}' in '{path}', which is no column")
        return made
    if column.inner is None:
        if isinstance(value, float) and not math.isfinite(value):
            raise EncodingError(f"'{path}' is {value}, which JSON has no number for")
        return value
    if pa.types.is_map(column.type):
        return {key: _plain(column.inner, one, f"{path}.value") for key, one in value}
    return [_plain(column.inner, one, f"{path}.element") for one in value]
