"""Payloads of Avro, read within bounds: in one place for deserializers, converters, commands and the console.

fastavro reads in C, by recursion and without a bound: 30 KB of a linked list end the process, and two bytes can claim a
list of a billion nulls. So what a payload makes of its schema is measured before it is read. Only schemas pay for that
by which a payload can be deep, or have many more values than bytes.
"""

import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Any, Final

from fastavro import parse_schema, schemaless_reader
from fastavro.schema import SchemaParseException

from tidelog.clients.values.errors import SerializationError
from tidelog.schemas.avro.reading import json_or_name
from tidelog.schemas.base.errors import SchemaError

# Records, lists and maps within each other.
MAX_DEPTH: Final = 500
# Values of a payload, besides two for each of its bytes.
MOST_VALUES: Final = 1_000_000
# Bytes of a decimal: to make a number of more takes the square of their count.
MOST_DECIMAL: Final = 4_096
# Values for each byte, and of a payload at least, up to which a schema's payloads need not be measured.
_FEW_A_BYTE: Final = 64
_FEW: Final = 10_000
_MANY: Final = 1 << 62
_LONG_BITS: Final = 63


def parsed_avro(
    text: str, references: Iterable[str], change: Callable[[Any], Any] = lambda schema: schema
) -> tuple[Any, dict[str, Any]]:
    """A schema as fastavro takes it, and all types that it names. `change`: makes of each text's JSON what is parsed.

    `references`: the texts of all schemas that it needs, those that others need first. Raises `SerializationError`.
    """
    named: dict[str, Any] = {}
    try:
        for other in references:
            parse_schema(change(json_or_name(other)), named_schemas=named)
        return parse_schema(change(json_or_name(text)), named_schemas=named), named
    except (ValueError, TypeError, KeyError, RecursionError, SchemaError, SchemaParseException) as error:
        raise SerializationError(f"The schema is no Avro: {error}") from error


class AvroPayloads:
    """Reads payloads that a schema wrote. `parsed`: as `fastavro.parse_schema` gives it; `named`: what it references.

    Raises `SerializationError` for a schema that is none, or nested too deep.
    """

    def __init__(self, parsed: Any, named: Mapping[str, Any]) -> None:
        self.parsed = parsed
        self.is_bytes = parsed == "bytes" or (isinstance(parsed, Mapping) and parsed.get("type") == "bytes")
        try:
            self._root = _Types(named).of(parsed)
            self._measured = _must_be_measured(self._root)
        except (RecursionError, KeyError, TypeError, AttributeError) as error:
            raise SerializationError(f"The schema can't be read: {type(error).__name__}: {error}") from error

    @property
    def values(self) -> int:
        """How many values one may have at most, without those of lists and maps."""
        return self._root.values

    def read(self, payload: bytes, reader: Any = None, *, return_record_name: bool = False) -> Any:
        """What a payload holds, as fastavro gives it. `reader`: a parsed schema to read it as.

        Raises `SerializationError`.

        A schema that is `bytes` alone: the payload as it is, without a length before it, as Confluent's write it.
        """
        if self.is_bytes:
            if self._root.kind is _NodeKind.DECIMAL:
                _check_decimal(len(payload))
            return payload
        if self._measured:
            _measure(self._root, payload)
        try:
            return schemaless_reader(io.BytesIO(payload), self.parsed, reader, return_record_name=return_record_name)
        except Exception as error:  # of many kinds: those of fastavro, of times and of decimals
            raise SerializationError(f"{type(error).__name__}: {error}".removesuffix(": ")) from error


class _NodeKind(IntEnum):
    NULL = auto()
    LONG = auto()
    SIZED = auto()
    DECIMAL = auto()
    FIXED = auto()
    LARGE = auto()  # a fixed that is a decimal of too many bytes
    UNION = auto()
    RECORD = auto()
    ARRAY = auto()
    MAP = auto()


_LEAVES: Final[Mapping[str, tuple[_NodeKind, int]]] = {
    "null": (_NodeKind.NULL, 0),
    "boolean": (_NodeKind.FIXED, 1),
    "int": (_NodeKind.LONG, 1),
    "long": (_NodeKind.LONG, 1),
    "enum": (_NodeKind.LONG, 1),
    "float": (_NodeKind.FIXED, 4),
    "double": (_NodeKind.FIXED, 8),
    "bytes": (_NodeKind.SIZED, 1),
    "string": (_NodeKind.SIZED, 1),
}


@dataclass(slots=True, eq=False)
class _Type:
    """A type; it may hold itself. `least`: bytes of a value; `values`: that one has without those of lists and maps."""

    kind: _NodeKind
    inner: tuple["_Type", ...] = ()
    least: int = 0
    values: int = 1
    is_open: bool = False
    is_known: bool = False


class _Types:
    """Makes types of parsed schemas, each name once."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._made: dict[str, _Type] = {}

    def of(self, schema: Any) -> _Type:
        if isinstance(schema, list):
            return _Type(_NodeKind.UNION, tuple(self.of(one) for one in schema))
        if isinstance(schema, str):
            if schema in _LEAVES:
                kind, least = _LEAVES[schema]
                return _Type(kind, (), least)
            return self._made[schema] if schema in self._made else self.of(self._named[schema])
        kind = schema["type"]
        if kind == "array":
            return _Type(_NodeKind.ARRAY, (self.of(schema["items"]),))
        if kind == "map":
            return _Type(_NodeKind.MAP, (self.of(schema["values"]),))
        if kind == "bytes" and schema.get("logicalType") == "decimal":
            return _Type(_NodeKind.DECIMAL, (), 1)
        if kind in ("record", "error"):
            made = self._made[schema["name"]] = _Type(_NodeKind.RECORD)
            made.inner = tuple(self.of(field["type"]) for field in schema["fields"])
            return made
        if kind == "fixed":
            size = int(schema["size"])
            large = schema.get("logicalType") == "decimal" and size > MOST_DECIMAL
            made = self._made[schema["name"]] = _Type(_NodeKind.LARGE if large else _NodeKind.FIXED, (), size)
            return made
        if kind == "enum":
            made = self._made[schema["name"]] = _Type(_NodeKind.LONG, (), 1)
            return made
        return self.of(kind)


def _must_be_measured(root: _Type) -> bool:
    """Whether payloads of a type can be deeper than it, have many more values than bytes, or large decimals."""
    return _is_risky(root) or root.values > _FEW


def _is_risky(node: _Type) -> bool:
    if node.is_known:
        return False  # the first to find it has said so
    if node.is_open:
        return True
    node.is_open = True
    risky = [_is_risky(one) for one in node.inner]
    node.is_open, node.is_known = False, True
    if node.kind is _NodeKind.RECORD:
        node.least = min(_MANY, sum(one.least for one in node.inner))
        node.values = min(_MANY, 1 + sum(one.values for one in node.inner))
    elif node.kind is _NodeKind.UNION:
        node.least = 1 + min((one.least for one in node.inner), default=0)
        node.values = max((one.values for one in node.inner), default=1)
    elif node.kind in (_NodeKind.ARRAY, _NodeKind.MAP):
        node.least = 1
        (item,) = node.inner
        each = item.least + (node.kind is _NodeKind.MAP)
        risky.append(not each or item.values > _FEW_A_BYTE * each)
    return any(risky) or node.kind in (_NodeKind.DECIMAL, _NodeKind.LARGE)


def _measure(root: _Type, payload: bytes) -> None:
    """Go over a payload as fastavro would. Raises `SerializationError` where it is too deep, or too much."""
    try:
        end = _walked(root, payload)
    except IndexError:
        raise _cut() from None
    if end > len(payload):
        raise _cut()


def _walked(root: _Type, data: bytes) -> int:
    """The place behind the payload."""
    at, values, most = 0, 0, MOST_VALUES + 2 * len(data)
    # Types that come next, each with its depth, and items that are left of a block of a list or map, -1 before it.
    todo: list[tuple[_Type, int, int]] = [(root, 0, -1)]
    while todo:
        node, depth, left = todo.pop()
        values += 1
        if values > most or at > len(data):
            raise _too_much(most) if values > most else _cut()
        kind = node.kind
        if kind is _NodeKind.UNION:
            branch, at = _long(data, at)
            if not 0 <= branch < len(node.inner):
                raise SerializationError(f"the number {branch} is none of the {len(node.inner)} branches of a union")
            todo.append((node.inner[branch], depth, -1))
            values -= 1
        elif kind is _NodeKind.LONG:
            at = _long(data, at)[1]
        elif kind in (_NodeKind.SIZED, _NodeKind.DECIMAL):
            size, at = _size(data, at)
            if kind is _NodeKind.DECIMAL:
                _check_decimal(size)
            at += size
        elif kind in (_NodeKind.FIXED, _NodeKind.LARGE):
            if kind is _NodeKind.LARGE:
                _check_decimal(node.least)
            at += node.least
        elif kind is _NodeKind.RECORD:
            if depth >= MAX_DEPTH:
                raise _too_deep()
            todo.extend((one, depth + 1, -1) for one in reversed(node.inner))
        elif kind is not _NodeKind.NULL:
            if depth >= MAX_DEPTH:
                raise _too_deep()
            (item,), is_map = node.inner, kind is _NodeKind.MAP
            if left <= 0:
                left, at = _block(data, at)
                if left * (item.least + is_map) > len(data) - at:
                    raise _cut()
                if left + values > most:
                    raise _too_much(most)
            if left:
                if is_map:
                    size, at = _size(data, at)
                    at += size
                values -= left != 0
                todo += ((node, depth, left - 1), (item, depth + 1, -1))
    return at


def _block(data: bytes, at: int) -> tuple[int, int]:
    """How many items a block has, and the place of the first."""
    count, at = _long(data, at)
    return (count, at) if count >= 0 else (-count, _long(data, at)[1])


def _size(data: bytes, at: int) -> tuple[int, int]:
    """The length of text or bytes, and the place of the first."""
    size, at = _long(data, at)
    if not 0 <= size <= len(data) - at:
        raise SerializationError(f"a length is {size}, where {len(data) - at} bytes are left")
    return size, at


def _long(data: bytes, at: int) -> tuple[int, int]:
    number, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > _LONG_BITS:
            raise SerializationError("a number has more than 10 bytes")
    number &= (1 << 64) - 1
    return (number >> 1) ^ -(number & 1), at


def _check_decimal(size: int) -> None:
    if size > MOST_DECIMAL:
        raise SerializationError(f"a decimal has {size} bytes, more than {MOST_DECIMAL}")


def _cut() -> SerializationError:
    return SerializationError("the payload ends within a value")


def _too_deep() -> SerializationError:
    return SerializationError(f"it is nested deeper than {MAX_DEPTH} levels")


def _too_much(most: int) -> SerializationError:
    return SerializationError(f"it has more than {most} values")
