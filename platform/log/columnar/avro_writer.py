"""Columns as payloads of Avro."""

import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tidelog.log.columnar.avro_columns import Column
from tidelog.log.columnar.model import EncodingError


def write_payloads(column: Column, columns: pa.StructArray) -> pa.BinaryArray:
    """The payloads of rows, null for null rows. Raises `EncodingError`, naming the first row that can't be written."""
    rows = columns.cast(_plain(columns.type)).to_pylist()
    found: list[bytes | None] = []
    for number, row in enumerate(rows):
        out = bytearray()
        if row is not None:
            try:
                _write(out, column, row, "")
            except EncodingError as error:
                raise EncodingError(f"Row {number}: {error}") from None
        found.append(None if row is None else bytes(out))
    return pa.array(found, pa.binary())


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _plain(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _plain(kind.item_type))
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def _write(out: bytearray, column: Column, value: Any, path: str) -> None:
    node = column.node
    if node.kind == "union":
        if value is None and column.null_at >= 0:
            _number(out, column.null_at)
            return
        _number(out, 1 if column.null_at == 0 else 0)
        _write(out, column.inner[0], value, path)
        return
    if column.type is None:
        raise EncodingError(f"the field '{path}' is no column, so that its bytes are not known")
    if value is None:
        raise EncodingError(f"the field '{path}' is null, which its schema does not allow")
    if node.kind == "record":
        for field, one in zip(node.fields, column.inner, strict=True):
            _write(out, one, value.get(field.name), f"{path}.{field.name}" if path else field.name)
    elif node.kind in ("array", "map"):
        if value:
            _number(out, len(value))
        for item in value:
            if node.kind == "map":
                _bytes(out, item[0].encode())
                item = item[1]
            _write(out, column.inner[0], item, f"{path}.element")
        _number(out, 0)
    else:
        _simple(out, column, value, path)


def _simple(out: bytearray, column: Column, value: Any, path: str) -> None:
    node = column.node
    if node.kind in ("int", "long"):
        if node.logical == "timestamp-millis":
            value, rest = divmod(value, 1000)
            if rest:
                raise EncodingError(f"the field '{path}' has microseconds, and its schema milliseconds")
        _number(out, value)
    elif node.kind == "boolean":
        out.append(value)
    elif node.kind == "float":
        out += struct.pack("<f", value)
    elif node.kind == "double":
        out += struct.pack("<d", value)
    elif node.kind == "string":
        _bytes(out, value.encode())
    elif node.kind == "enum":
        if value not in node.symbols:
            raise EncodingError(f"the field '{path}' is '{value}', none of its schema's symbols")
        _number(out, node.symbols.index(value))
    else:
        data = _decimal(value, node.scale, node.size) if node.logical == "decimal" else value
        if node.kind == "bytes":
            _number(out, len(data))
        elif len(data) != node.size:
            raise EncodingError(f"the field '{path}' has {len(data)} bytes, and its schema {node.size}")
        out += data


def _decimal(value: Decimal, scale: int, size: int) -> bytes:
    number = int(value.scaleb(scale))
    least = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    return number.to_bytes(max(size, least), "big", signed=True)


def _bytes(out: bytearray, data: bytes) -> None:
    _number(out, len(data))
    out += data


def _number(out: bytearray, value: int) -> None:
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
