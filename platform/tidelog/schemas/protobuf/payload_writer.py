"""Columns as messages."""

from typing import Any, Final

import pyarrow as pa
from google.protobuf.message import EncodeError

from tidelog.schemas.base.errors import EncodingError
from tidelog.schemas.protobuf.columns import ProtoColumn, ProtoShape
from tidelog.schemas.protobuf.payload_reader import FIRST_SECOND, LAST_SECOND

_MICROS: Final = 1_000_000


def write_payloads(message: Any, column: ProtoColumn, columns: pa.StructArray, before: bytes) -> pa.BinaryArray:
    """The payloads of rows, null for null rows: `before`, then the message, deterministically written.

    A null field is absent. Raises `EncodingError`, naming the first row that the message can't hold.
    """
    payloads: list[bytes | None] = []
    for number, row in enumerate(columns.cast(_countable(columns.type)).to_pylist()):
        made = message()
        try:
            if row is not None:
                _fill(made, column, row, "")
            payloads.append(None if row is None else before + made.SerializeToString(deterministic=True))
        except EncodingError as error:
            raise EncodingError(f"Row {number}: {error}") from None
        except EncodeError as error:
            missing = ", ".join(made.FindInitializationErrors())
            raise EncodingError(f"Row {number}: {f'the required {missing} is null' if missing else error}") from None
    return pa.array(payloads, pa.binary())


def _countable(kind: pa.DataType) -> pa.DataType:
    """The type with timestamps as numbers."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _countable(one.type)) for one in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _countable(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _countable(kind.item_type))
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def _fill(message: Any, column: ProtoColumn, row: dict[str, Any], path: str) -> None:
    by_name = message.DESCRIPTOR.fields_by_name
    chosen: dict[str, str] = {}
    for field in column.fields:
        value = row.get(field.name)
        if value is None:
            continue
        oneof = by_name[field.name].containing_oneof
        if oneof is not None:
            other = chosen.setdefault(oneof.name, field.name)
            if other != field.name:
                raise EncodingError(f"'{other}' and '{field.name}' are both there, of the oneof '{oneof.name}'")
        here = f"{path}.{field.name}" if path else field.name
        try:
            _set(message, field.name, field.column, value, here)
        except (TypeError, ValueError) as error:
            raise EncodingError(f"'{here}' can't be {value!r}: {error}") from None


def _set(message: Any, name: str, column: ProtoColumn, value: Any, path: str) -> None:
    shape = column.shape
    if shape is ProtoShape.LIST:
        (inner,) = column.inner
        there = getattr(message, name)
        for element in _whole(value, path):
            if inner.index < 0:
                there.append(_scalar(inner, element))
            else:
                _fill_message(there.add(), inner, element, f"{path}.element")
    elif shape is ProtoShape.MAP:
        key, inner = column.inner
        there = getattr(message, name)
        for text, element in value:
            _whole([element], path)
            if inner.index < 0:
                there[_key(key, text)] = _scalar(inner, element)
            else:
                _fill_message(there[_key(key, text)], inner, element, f"{path}.value")
    elif column.index < 0:
        setattr(message, name, _scalar(column, value))
    else:
        _fill_message(getattr(message, name), column, value, path)


def _whole(values: list[Any], path: str) -> list[Any]:
    if any(one is None for one in values):
        raise EncodingError(f"'{path}' holds a null, which Protobuf has no form for")
    return values


def _fill_message(message: Any, column: ProtoColumn, value: Any, path: str) -> None:
    message.SetInParent()
    if column.shape is ProtoShape.TIMESTAMP:
        message.seconds, micros = divmod(value, _MICROS)
        message.nanos = 1_000 * micros
        if not FIRST_SECOND <= message.seconds <= LAST_SECOND:
            raise EncodingError(f"'{path}' lies outside of the years 1 to 9999")
    elif column.shape is ProtoShape.WRAPPER:
        message.value = value
    else:
        _fill(message, column, value, path)


def _scalar(column: ProtoColumn, value: Any) -> Any:
    if column.shape is not ProtoShape.ENUM:
        return value
    for number, name in column.names.items():
        if name == value:
            return number
    return int(value)


def _key(column: ProtoColumn, text: str) -> Any:
    if pa.types.is_boolean(column.type):
        if text not in ("true", "false"):
            raise ValueError("the map's keys are true and false")
        return text == "true"
    return int(text) if pa.types.is_integer(column.type) else text
