"""Avro schemas, read leniently: what a registry has taken is not judged again (specification of Avro 1.12)."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidelog.schemas.base.errors import SchemaError

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
# Logical types that change a column's type, and the types that may have them. Others count as their base type.
_LOGICAL: Final[Mapping[str, tuple[str, ...]]] = {
    "date": ("int",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "decimal": ("bytes", "fixed"),
}
_MAX_DIGITS: Final = 38  # of Delta's and Arrow's decimal128
MAX_TYPES: Final = 10_000
MAX_LEVELS: Final = 100
ABSENT: Final[Any] = object()


@dataclass(slots=True, eq=False)
class AvroNode:
    """A type; a named one is one object wherever it is used, also inside itself.

    `kind`: a primitive, "fixed", "enum", "array", "map", "record" or "union". `logical`: "" or one that makes another
    column of it. `least`: what `least_bytes` has found, -1 before. `inner`: an array's items, a map's values, a
    union's branches.
    """

    kind: str
    logical: str = ""
    precision: int = 0
    scale: int = 0
    size: int = 0
    least: int = -1
    name: str = ""
    symbols: tuple[str, ...] = ()
    inner: "list[AvroNode]" = field(default_factory=list)
    fields: "list[FieldNode]" = field(default_factory=list)


@dataclass(slots=True, eq=False)
class FieldNode:
    """A record's field; `default` is `ABSENT` where there is none."""

    name: str
    node: AvroNode
    default: Any = ABSENT


def read_schema(text: str, references: Iterable[tuple[str, str]] = ()) -> AvroNode:
    """The type that a schema's text says. Raises `SchemaError`."""
    reader = _SchemaReader()
    try:
        for _, other in references:
            reader.node(_loads(other), "")
        said = _loads(text)
        if isinstance(said, str) and said not in PRIMITIVES and said not in reader.names:
            raise SchemaError(
                f"The schema is '{said:.100}', which is neither JSON nor a type of Avro. Give the text: that of"
                " a file, not its name."
            )
        root = reader.node(said, "")
        _check_size(root, {}, [])
    except RecursionError:
        raise SchemaError("The schema is nested too deeply to be read.") from None
    return root


def _check_size(node: AvroNode, sizes: dict[int, int], around: list[AvroNode]) -> int:
    """How many types a type is made of, each counted where it is used. Raises `SchemaError` for too many."""
    if node in around:
        return 1
    if id(node) not in sizes:
        if len(around) > MAX_LEVELS:
            raise SchemaError(f"The schema is nested deeper than {MAX_LEVELS} levels.")
        around.append(node)
        size = 1 + sum(_check_size(one, sizes, around) for one in [*node.inner, *(field.node for field in node.fields)])
        around.pop()
        if size > MAX_TYPES:
            raise SchemaError(f"The schema has more than {MAX_TYPES} types, each counted where it is used.")
        sizes[id(node)] = size
    return sizes[id(node)]


def _loads(text: str) -> Any:
    text = text.strip()
    if text[:1] not in ("{", "[", '"'):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise SchemaError(f"The schema is no JSON: {error}.") from error


class _SchemaReader:
    def __init__(self) -> None:
        self.names: dict[str, AvroNode] = {}

    def node(self, value: Any, space: str) -> AvroNode:
        if isinstance(value, str):
            return self._named(value, space)
        if isinstance(value, list):
            return AvroNode("union", inner=[self.node(branch, space) for branch in value])
        if not isinstance(value, Mapping):
            raise SchemaError(f"The schema has {value!r} where a type must be.")
        kind = value.get("type")
        if isinstance(kind, (list, Mapping)):
            return self.node(kind, space)
        if kind in ("array", "map"):
            return AvroNode(kind, inner=[self.node(_need(value, "items" if kind == "array" else "values"), space)])
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(kind, value, space)
        if kind in PRIMITIVES:
            return _with_logical(AvroNode(kind), value)
        return self._named(kind, space)

    def _named(self, name: Any, space: str) -> AvroNode:
        if name in PRIMITIVES:
            return AvroNode(name)
        full = f"{space}.{name}" if space and "." not in str(name) else str(name)
        found = self.names.get(full.removeprefix(".")) or self.names.get(str(name))
        if found is None:
            raise SchemaError(f"The schema uses the type '{full}', which neither it nor a reference of it defines.")
        return found

    def _define(self, kind: str, value: Mapping[str, Any], space: str) -> AvroNode:
        name = str(_need(value, "name"))
        if "." in name:
            space, _, name = name.rpartition(".")
        elif isinstance(value.get("namespace"), str):
            space = value["namespace"]
        node = AvroNode("record" if kind == "error" else kind, name=f"{space}.{name}" if space else name)
        self.names[node.name] = node
        if kind == "enum":
            node.symbols = tuple(str(symbol) for symbol in _list(value, "symbols"))
        elif kind == "fixed":
            size = _need(value, "size")
            if not isinstance(size, int) or size < 0:
                raise SchemaError(f"The fixed '{node.name}' has the size {size!r}: a number from 0 on is needed.")
            node.size = size
            _with_logical(node, value)
        else:
            for one in _list(value, "fields"):
                inner = self.node(_need(one, "type"), space)
                node.fields.append(FieldNode(str(_need(one, "name")), inner, one.get("default", ABSENT)))
        return node


def _need(value: Any, key: str) -> Any:
    if not isinstance(value, Mapping) or key not in value:
        raise SchemaError(f"The schema lacks '{key}' in {value!r:.100}.")
    return value[key]


def _list(value: Any, key: str) -> list[Any]:
    found = _need(value, key)
    if not isinstance(found, list):
        raise SchemaError(f"The schema has {found!r:.100} where the list of {key} must be.")
    return found


def _with_logical(node: AvroNode, value: Mapping[str, Any]) -> AvroNode:
    logical = value.get("logicalType")
    if not isinstance(logical, str) or node.kind not in _LOGICAL.get(logical, ()):
        return node
    if logical == "decimal":
        precision, scale = value.get("precision"), value.get("scale", 0)
        if not isinstance(precision, int) or not isinstance(scale, int):
            return node
        if not 0 < precision <= _MAX_DIGITS or not 0 <= scale <= precision:
            return node
        node.precision, node.scale = precision, scale
    node.logical = logical
    return node
