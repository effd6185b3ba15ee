"""One payload of Avro, read value by value: for small batches, and for what is too deep or uneven to be read at once.

Each type is compiled to a function of (payload, place) that gives a value, as Arrow takes it, and the place behind it.
"""

import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from tidelog.schemas.avro.columns import EXACT, Column, leaf_column, least_bytes
from tidelog.schemas.avro.model import AvroType

MAX_DEPTH: Final = 100
_MICROS: Final = 1000  # in a millisecond
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_MOST_BITS: Final = 63

_Read = Callable[[bytes, int], tuple[Any, int]]
_Skip = Callable[[bytes, int, int], int]
PayloadReader = Callable[[bytes], Any]


class BadPayloadError(ValueError):
    """A payload that is not of its schema; never leaves this package."""


def payload_reader(column: Column) -> PayloadReader:
    """What reads a payload of a schema, raising `BadPayloadError` that says what is wrong."""
    read = _reader(column)

    def whole(payload: bytes) -> Any:
        try:
            value, at = read(payload, 0)
        except IndexError:
            raise _cut() from None
        except UnicodeDecodeError:
            raise BadPayloadError("a string is no UTF-8") from None
        if at != len(payload):
            raise BadPayloadError(f"{len(payload) - at} bytes follow the record")
        return value

    return whole


def _cut() -> BadPayloadError:
    return BadPayloadError("it ends within a value")


def _reader(column: Column) -> _Read:
    node = column.node
    if column.type is None:
        skip = _skipper(node, {})
        return lambda data, at: (None, skip(data, at, 0))
    if node.kind == "union":
        return _union(column)
    if node.kind == "record":
        return _record(column)
    if node.kind in ("array", "map"):
        return _many(column)
    return _LEAVES[node.kind](column)


def _record(column: Column) -> _Read:
    pairs = zip(column.node.fields, column.inner, strict=True)
    fields = [(None if one.type is None else field.name, _reader(one)) for field, one in pairs]

    def read(data: bytes, at: int) -> tuple[Any, int]:
        row: dict[str | None, Any] = {}
        for name, one in fields:
            row[name], at = one(data, at)
        row.pop(None, None)
        return row, at

    return read


def _union(column: Column) -> _Read:
    value = _reader(column.inner[0])
    null_at, count = column.null_at, len(column.node.inner)
    null_byte, value_byte = (0, 2) if null_at == 0 else (2, 0)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        byte = data[at]
        if byte == value_byte:
            return value(data, at + 1)
        if byte == null_byte and null_at >= 0:
            return None, at + 1
        branch, at = _index(data, at, count, "branches of the union")
        return (None, at) if branch == null_at else value(data, at)

    return read


def _many(column: Column) -> _Read:
    inner = column.inner[0]
    value = _reader(inner)
    is_map = column.node.kind == "map"
    least = 1 if is_map else least_bytes(inner.node)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        elements: list[Any] = []
        while True:
            count, size, at = _block(data, at, least)
            if count == 0:
                return elements, at
            start = at
            for _ in range(count):
                if is_map:
                    key, at = _text(data, at)
                    item, at = value(data, at)
                    elements.append((key, item))
                else:
                    item, at = value(data, at)
                    elements.append(item)
            _check_block(size, at - start)

    return read


def _block(data: bytes, at: int, least: int) -> tuple[int, int | None, int]:
    """How many items a block has, its size where it has one, and the place behind both."""
    count, at = _long(data, at)
    size = None
    if count < 0:
        count = -count
        size, at = _long(data, at)
    if count * least > len(data) - at:
        raise BadPayloadError(f"a block says {count} items, more than the payload's bytes can hold")
    return count, size, at


def _check_block(given: int | None, size: int) -> None:
    if given is not None and given != size:
        raise BadPayloadError(f"a block says {given} bytes and has {size}")


def _skipper(node: AvroType, skippers: dict[int, _Skip]) -> _Skip:
    """What goes over a value; one function for each type, as a type may hold itself. It takes the depth, too."""
    if id(node) not in skippers:
        skippers[id(node)] = lambda data, at, depth: made(data, at, depth + 1)
        made = _deeper(_skipping(node, skippers))
    return skippers[id(node)]


def _deeper(skip: _Skip) -> _Skip:
    def checked(data: bytes, at: int, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise BadPayloadError(f"it is nested deeper than {MAX_DEPTH} levels")
        return skip(data, at, depth)

    return checked


def _skipping(node: AvroType, skippers: dict[int, _Skip]) -> _Skip:
    if node.kind == "null":
        return lambda _, at, __: at
    if node.kind in _LEAVES:
        leaf = _reader(leaf_column(node))
        return lambda data, at, _: leaf(data, at)[1]
    if node.kind == "record":
        inner = [_skipper(field.type, skippers) for field in node.fields]

        def record(data: bytes, at: int, depth: int) -> int:
            for one in inner:
                at = one(data, at, depth)
            return at

        return record
    branches = [_skipper(one, skippers) for one in node.inner]
    if node.kind == "union":

        def union(data: bytes, at: int, depth: int) -> int:
            branch, at = _index(data, at, len(branches), "branches of the union")
            return branches[branch](data, at, depth)

        return union
    return _skipping_many(node, branches[0])


def _skipping_many(node: AvroType, item: _Skip) -> _Skip:
    is_map = node.kind == "map"
    least = 1 if is_map else least_bytes(node.inner[0])

    def many(data: bytes, at: int, depth: int) -> int:
        while True:
            count, size, at = _block(data, at, least)
            if count == 0:
                return at
            start = at
            for _ in range(count if least else 0):
                if is_map:
                    at = _text(data, at)[1]
                at = item(data, at, depth)
            _check_block(size, at - start)

    return many


def _long(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    number, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > _MOST_BITS:
            raise BadPayloadError("a number has more than 10 bytes")
    if number >> (_MOST_BITS + 1):
        raise BadPayloadError("a number is no long, it has more than 64 bits")
    return (number >> 1) ^ -(number & 1), at + 1


def _int(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    number, at = _long(data, at)
    if not -(1 << 31) <= number < 1 << 31:
        raise BadPayloadError(f"the number {number} is no int")
    return number, at


def _index(data: bytes, at: int, count: int, of: str) -> tuple[int, int]:
    index, at = _long(data, at)
    if not 0 <= index < count:
        raise BadPayloadError(f"the number {index} is none of the {count} {of}")
    return index, at


def _span(data: bytes, at: int) -> tuple[int, int]:
    """Where the bytes of a value begin and end."""
    size, at = _long(data, at)
    if size < 0:
        raise BadPayloadError(f"a length is {size}")
    if size > len(data) - at:
        raise _cut()
    return at, at + size


def _text(data: bytes, at: int) -> tuple[str, int]:
    at, end = _span(data, at)
    return str(data[at:end], "utf-8"), end


def _millis(data: bytes, at: int) -> tuple[int, int]:
    number, at = _long(data, at)
    if not -(1 << 63) <= number * _MICROS < 1 << 63:
        raise BadPayloadError("a time in milliseconds does not fit a column of microseconds")
    return number * _MICROS, at


def _boolean(data: bytes, at: int) -> tuple[bool, int]:
    if data[at] > 1:
        raise BadPayloadError(f"a boolean is the byte {data[at]}")
    return data[at] == 1, at + 1


def _floating(numbers: struct.Struct) -> _Read:
    def read(data: bytes, at: int) -> tuple[float, int]:
        end = at + numbers.size
        if end > len(data):
            raise _cut()
        return numbers.unpack_from(data, at)[0], end

    return read


def _enum(column: Column) -> _Read:
    symbols = column.node.symbols

    def read(data: bytes, at: int) -> tuple[str, int]:
        index, at = _index(data, at, len(symbols), "symbols of the enum")
        return symbols[index], at

    return read


def _binary(column: Column) -> _Read:
    fixed, width = column.node.kind == "fixed", column.node.size

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        at, end = (at, at + width) if fixed else _span(data, at)
        if end > len(data):
            raise _cut()
        return data[at:end], end

    if column.logical != "decimal":
        return read
    precision, scale = column.precision, column.scale

    def decimal(data: bytes, at: int) -> tuple[Decimal, int]:
        found, at = read(data, at)
        number = int.from_bytes(found, "big", signed=True)
        if abs(number) >= 10**precision:
            raise BadPayloadError(f"a decimal has more than its {precision} digits")
        return Decimal(number).scaleb(-scale, EXACT), at

    return decimal


_LEAVES: Final[Mapping[str, Callable[[Column], _Read]]] = {
    "boolean": lambda _: _boolean,
    "int": lambda _: _int,
    "long": lambda column: _millis if column.logical == "timestamp-millis" else _long,
    "float": lambda _: _floating(_FLOAT),
    "double": lambda _: _floating(_DOUBLE),
    "bytes": _binary,
    "fixed": _binary,
    "string": lambda _: _text,
    "enum": _enum,
}
