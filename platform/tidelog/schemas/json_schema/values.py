"""JSON Schemas, compiled: payloads to columns and back."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import jsonschema_rs
import msgspec
import numpy as np
import orjson
import pyarrow as pa

from tidelog.schemas.base.errors import EncodingError
from tidelog.schemas.base.value_schemas import Decoded, FieldPath
from tidelog.schemas.json_schema.columns import JsonColumn, JsonDocument, columns_of
from tidelog.schemas.json_schema.payload_reader import BadJsonError, JsonReader

_KEPT_SCHEMAS: Final = 1000
# What is read at once: few enough rows that they stay in the processor's cache.
_ROWS: Final = 2_000
_BYTES: Final = 1 << 24


class JsonValues:
    """A JSON Schema, compiled: a `ValueSchema`. Raises `SchemaError` for a text that is none.

    Its columns say which types values have; what else the schema demands is for `problem` alone.
    """

    kind = "json"
    exact = False
    lenient = True

    def __init__(self, text: str, references: tuple[tuple[str, str], ...] = ()) -> None:
        self._text, self._references = text, references
        document = JsonDocument(text, references)
        self._validator: jsonschema_rs.Validator = document.validator()
        self._column, left_out = columns_of(document)
        self.left_out: Mapping[str, str] = left_out
        self.columns: pa.StructType | None = self._column.type
        self._reader = None if self.columns is None else JsonReader(self._column)
        self.defaults: Mapping[FieldPath, Any] = dict(_defaults(self._column, ()))

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_json, (self._text, self._references)

    def decode(self, payloads: pa.BinaryArray) -> Decoded:
        """The columns of payloads; null rows where a payload is null or has values of other types."""
        kind = pa.struct([]) if self.columns is None else self.columns
        if self._reader is None or not len(payloads):
            return Decoded(pa.nulls(len(payloads), kind), np.zeros(len(payloads), np.bool_))
        step = max(1, min(_ROWS, _BYTES * len(payloads) // max(1, payloads.nbytes)))
        pieces = []
        for first in range(0, len(payloads), step):
            piece = payloads.slice(first, step)
            rows = self._reader.rows(_of_utf8(piece))
            pieces.append(pa.array(rows, kind))
        columns = pa.concat_arrays(pieces)
        return Decoded(columns, columns.is_valid().to_numpy(zero_copy_only=False))

    def encode(self, columns: pa.StructArray) -> pa.BinaryArray:
        """The payloads of rows, null for null rows. Raises `EncodingError`, naming the first row that can't be one."""
        if self.columns is None:
            raise EncodingError("The schema has no columns, so that no payload can be made of them.")
        return _written(self._column, columns)

    def problem(self, payload: bytes) -> str | None:
        """Why a payload does not fit the schema, None where it does."""
        try:
            value = orjson.loads(payload)
        except ValueError as error:
            return f"The payload is no JSON: {error}."
        if self._validator.is_valid(value):
            return None
        found = next(iter(self._validator.iter_errors(value)))
        place, rule = (_pointer(path) for path in (found.instance_path, found.schema_path))
        return f"The payload does not fit its schema at '{place}': {found.message} (the schema's rule '{rule}')."


@lru_cache(maxsize=_KEPT_SCHEMAS)
def compile_json(text: str, references: tuple[tuple[str, str], ...] = ()) -> JsonValues:
    """A JSON Schema by its text, compiled once. Raises `SchemaError`."""
    return JsonValues(text, references)


def _pointer(steps: Iterable[str | int]) -> str:
    return "/".join(str(step) for step in ("#", *steps))


def _of_utf8(payloads: pa.BinaryArray) -> list[bytes | None]:
    """The payloads, None for those that are no UTF-8: the parser does not look at what it skips."""
    values: list[bytes | None] = payloads.to_pylist()
    try:
        payloads.cast(pa.string())
    except pa.ArrowInvalid:
        return [one if one is None or _is_utf8(one) else None for one in values]
    return values


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def _defaults(column: JsonColumn, path: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
    """The defaults that have their columns' types, as Arrow takes them, by their paths."""
    if column.inner is not None:
        inside = "value" if pa.types.is_map(column.type) else "element"
        yield from _defaults(column.inner, (*path, inside))
    for name, field in column.fields:
        if name in column.defaults:
            alone = JsonColumn(pa.struct([pa.field(name, field.type)]), False, None, ((name, field),))
            with suppress(BadJsonError):
                written = msgspec.json.encode({name: column.defaults[name]})
                yield (*path, name), JsonReader(alone).row(written)[name]
        yield from _defaults(field, (*path, name))


def _written(column: JsonColumn, columns: pa.StructArray) -> pa.BinaryArray:
    """The payloads of rows, null for null rows: one line without blanks, properties in the schema's order.

    A null property is left out where it may be, else written where null fits. Raises `EncodingError`, naming the
    first row that the schema does not allow.
    """
    payloads: list[bytes | None] = []
    for number, row in enumerate(columns.to_pylist()):
        try:
            payloads.append(None if row is None else orjson.dumps(_as_json(column, row, "")))
        except EncodingError as error:
            raise EncodingError(f"Row {number}: {error}") from None
    return pa.array(payloads, pa.binary())


def _as_json(column: JsonColumn, value: Any, path: str) -> Any:
    """A value as JSON has it."""
    if value is None:
        if column.nullable:
            return None
        raise EncodingError(f"'{path}' is null, which its schema does not allow")
    if column.fields:
        made = {}
        for name, field in column.fields:
            given = value.get(name)
            if given is not None or name in column.required:
                made[name] = _as_json(field, given, f"{path}.{name}" if path else name)
        unknown = column.required - made.keys()
        if unknown:
            raise EncodingError(f"the schema requires '{min(unknown)}' in '{path}', which is no column")
        return made
    if column.inner is None:
        if isinstance(value, float) and not math.isfinite(value):
            raise EncodingError(f"'{path}' is {value}, which JSON has no number for")
        return value
    if pa.types.is_map(column.type):
        return {key: _as_json(column.inner, one, f"{path}.value") for key, one in value}
    return [_as_json(column.inner, one, f"{path}.element") for one in value]
