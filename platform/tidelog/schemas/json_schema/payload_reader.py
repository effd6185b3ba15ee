"""Payloads of JSON as rows: each is read by itself, by a strict typed parser, so that none can pass for another."""

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, TypedDict

import msgspec
import pyarrow as pa

from tidelog.schemas.base.cells import list_cells_of
from tidelog.schemas.json_schema.columns import JsonColumn

_LEAST, _MOST = -(2**63), 2**63 - 1
_INT64: Final = Annotated[int, msgspec.Meta(ge=_LEAST, le=_MOST)]
_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")

Row = dict[str, Any]


class BadJsonError(ValueError):
    """A payload that is no JSON, or whose values have other types than the schema's columns."""


class JsonReader:
    """Reads payloads as rows of an object's columns.

    What no column stands for is skipped: its syntax counts, its values do not. Of names that an object has twice the
    last counts. null fits every column. An integer may be written as 1.0 or 1e2, as in JSON Schema; beyond 64 bits
    it fits no column, nor does a number that no double holds. Lists of many empty elements do not, either, where
    their columns would take far more than their bytes.
    """

    def __init__(self, column: JsonColumn) -> None:
        self._column = column
        self._list_cells = list_cells_of(column.type)
        self._read: Callable[[bytes], Row] = msgspec.json.Decoder(_typed(column, _INT64)).decode
        # Integers as the bytes that they are written with: for payloads that have them in another form.
        self._read_raw: Callable[[bytes], Row] = msgspec.json.Decoder(_typed(column, msgspec.Raw)).decode

    def rows(self, payloads: Sequence[bytes | None]) -> list[Row | None]:
        """The row of each payload; None where it is None, or no JSON of the schema's types. The bytes are UTF-8."""
        rows: list[Row | None]
        try:
            rows = [*map(self._read, payloads)]  # type: ignore[arg-type] # None is refused, as bad ones are
        except (msgspec.MsgspecError, RecursionError, TypeError):
            rows = [*map(self._row, payloads)]
        if self._list_cells is None:
            return rows
        sizes = (0 if one is None else len(one) for one in payloads)
        return [None if self._is_too_much(size, row) else row for size, row in zip(sizes, rows, strict=True)]

    def row(self, payload: bytes) -> Row:
        """A payload's row. Raises `BadJsonError` with the place and the reason."""
        try:
            return self._read(payload)
        except msgspec.ValidationError as error:
            try:
                row: Row = _settled(self._column, self._read_raw(payload))
                return row
            except (msgspec.MsgspecError, ValueError, ArithmeticError, RecursionError):
                raise BadJsonError(str(error)) from None
        except msgspec.MsgspecError as error:
            raise BadJsonError(str(error)) from None
        except RecursionError:
            raise BadJsonError("it is nested too deeply") from None

    def _is_too_much(self, size: int, row: Row | None) -> bool:
        cells = self._list_cells
        return cells is not None and cells.may_be_too_much(size) and cells.is_too_much(size, row, dict.get)

    def _row(self, payload: bytes | None) -> Row | None:
        if payload is None:
            return None
        try:
            return self.row(payload)
        except BadJsonError:
            return None


def _typed(column: JsonColumn, integer: Any) -> Any:
    """The type that the parser takes for a column's values."""
    kind = column.type
    assert kind is not None  # such columns have none around them, nor within
    if pa.types.is_struct(kind):
        fields: dict[str, Any] = {name: _or_null(one, integer) for name, one in column.fields}
        return TypedDict("Row", fields, total=False)  # type: ignore[operator] # made of data
    if column.inner is not None:
        inner = _or_null(column.inner, integer)
        return dict[str, inner] if pa.types.is_map(kind) else list[inner]  # type: ignore[valid-type]
    if pa.types.is_integer(kind):
        return integer
    return {pa.string(): str, pa.float64(): float, pa.bool_(): bool}[kind]


def _or_null(column: JsonColumn, integer: Any) -> Any:
    made = _typed(column, integer)
    return made if made is msgspec.Raw else made | None


def _settled(column: JsonColumn, value: Any) -> Any:
    """A value with its integers read."""
    if value is None:
        return None
    if isinstance(value, msgspec.Raw):
        return _integer(bytes(value))
    if column.fields:
        return {name: _settled(one, value[name]) for name, one in column.fields if name in value}
    if column.inner is None:
        return value
    if isinstance(value, dict):
        return {key: _settled(column.inner, one) for key, one in value.items()}
    return [_settled(column.inner, one) for one in value]


def _integer(text: bytes) -> int | None:
    if text == b"null":
        return None
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no number")
    number = Decimal(text.decode())
    if not _LEAST <= number <= _MOST or number != number.to_integral_value():
        raise ValueError(f"{text!r} is no integer of 64 bits")
    return int(number)
