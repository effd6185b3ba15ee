"""One payload of Avro, read value by value: for what is too deep or too uneven to be read in columns."""

import struct
from decimal import Context, Decimal
from typing import Any, Final

from tidelog.log.columnar.avro_columns import Column, least_bytes
from tidelog.log.columnar.avro_schema import AvroNode

MAX_DEPTH: Final = 100
_MICROS: Final = 1000
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_EXACT: Final = Context(prec=60)


class BadPayloadError(ValueError):
    """A payload that is not of its schema; never leaves this package."""


def read_payload(column: Column, payload: bytes) -> Any:
    """A payload's value, as Arrow takes it. Raises `BadPayloadError`, saying what is wrong."""
    reader = _PayloadReader(payload)
    value = reader.value(column, 0)
    if reader.at != len(payload):
        raise BadPayloadError(f"{len(payload) - reader.at} bytes follow the record")
    return value


class _PayloadReader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def value(self, column: Column, depth: int) -> Any:
        node = column.node
        if column.type is None:
            self._skip(node, depth)
            return None
        if depth > MAX_DEPTH:
            raise BadPayloadError(f"it is nested deeper than {MAX_DEPTH} levels")
        if node.kind == "union":
            branch = self._index(len(node.inner), "branches of the union")
            return None if branch == column.null_at else self.value(column.inner[0], depth + 1)
        if node.kind == "record":
            pairs = zip(node.fields, column.inner, strict=True)
            found = [(field.name, self.value(one, depth + 1), one.type) for field, one in pairs]
            return {name: value for name, value, kind in found if kind is not None}
        if node.kind == "array":
            return [self.value(column.inner[0], depth + 1) for _ in self._items(least_bytes(node.inner[0]))]
        if node.kind == "map":
            return [(self._text(), self.value(column.inner[0], depth + 1)) for _ in self._items(1)]
        return self._simple(node)

    def _simple(self, node: AvroNode) -> Any:
        if node.kind in ("int", "long"):
            number = self._number(node.kind)
            if node.logical != "timestamp-millis":
                return number
            if not -(1 << 63) <= number * _MICROS < 1 << 63:
                raise BadPayloadError("a time in milliseconds does not fit a column of microseconds")
            return number * _MICROS
        if node.kind == "string":
            return self._text()
        if node.kind == "boolean":
            byte = self._take(1)[0]
            if byte > 1:
                raise BadPayloadError(f"a boolean is the byte {byte}")
            return bool(byte)
        if node.kind == "float":
            return _FLOAT.unpack(self._take(4))[0]
        if node.kind == "double":
            return _DOUBLE.unpack(self._take(8))[0]
        if node.kind == "enum":
            return node.symbols[self._index(len(node.symbols), "symbols of the enum")]
        data = self._take(node.size if node.kind == "fixed" else self._length())
        return _decimal(data, node) if node.logical == "decimal" else data

    def _skip(self, node: AvroNode, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise BadPayloadError(f"it is nested deeper than {MAX_DEPTH} levels")
        if node.kind == "union":
            self._skip(node.inner[self._index(len(node.inner), "branches of the union")], depth + 1)
        elif node.kind == "record":
            for field in node.fields:
                self._skip(field.node, depth + 1)
        elif node.kind == "array":
            least = least_bytes(node.inner[0])
            for _ in self._items(least):
                self._skip(node.inner[0], depth + 1)
        elif node.kind == "map":
            for _ in self._items(1):
                self._text()
                self._skip(node.inner[0], depth + 1)
        elif node.kind != "null":
            self._simple(node)

    def _items(self, least: int) -> Any:
        while True:
            count = self._number("long")
            size = None
            if count < 0:
                count, size = -count, self._number("long")
            if count == 0:
                return
            start = self.at
            if count * least > len(self._data) - self.at:
                raise BadPayloadError(f"a block says {count} items, more than the payload's bytes can hold")
            if least:
                yield from range(count)
            if size is not None and self.at - start != size:
                raise BadPayloadError(f"a block says {size} bytes and has {self.at - start}")

    def _take(self, size: int) -> bytes:
        found = self._data[self.at : self.at + size]
        if len(found) < size:
            raise BadPayloadError("it ends within a value")
        self.at += size
        return found

    def _text(self) -> str:
        try:
            return self._take(self._length()).decode()
        except UnicodeDecodeError:
            raise BadPayloadError("a string is no UTF-8") from None

    def _length(self) -> int:
        length = self._number("long")
        if length < 0:
            raise BadPayloadError(f"a length is {length}")
        return length

    def _index(self, count: int, of: str) -> int:
        index = self._number("int")
        if not 0 <= index < count:
            raise BadPayloadError(f"the number {index} is none of the {count} {of}")
        return index

    def _number(self, kind: str) -> int:
        number = shift = 0
        if self.at < len(self._data) and self._data[self.at] < 0x80:
            number = self._data[self.at]
            self.at += 1
            return (number >> 1) ^ -(number & 1)
        while True:
            if self.at >= len(self._data):
                raise BadPayloadError("it ends within a value")
            byte = self._data[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise BadPayloadError("a number has more than 10 bytes")
        number = (number >> 1) ^ -(number & 1)
        bits = 31 if kind == "int" else 63
        if not -(1 << bits) <= number < 1 << bits:
            raise BadPayloadError(f"the number {number} is no {kind}")
        return number


def _decimal(data: bytes, node: AvroNode) -> Decimal:
    number = int.from_bytes(data, "big", signed=True)
    if abs(number) >= 10**node.precision:
        raise BadPayloadError(f"a decimal has more than its {node.precision} digits")
    return Decimal(number).scaleb(-node.scale, _EXACT)
