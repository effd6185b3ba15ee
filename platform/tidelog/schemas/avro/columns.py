"""Which columns an Avro schema has: the Arrow type of each field, and why a field is none."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa

from tidelog.schemas.avro.model import ABSENT, AvroType
from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.base.value_schemas import FieldPath, name_problem

MAX_DEPTH: Final = 50
# Of a schema that is compiled, whether its fields become columns or not.
MAX_TYPES: Final = 10_000
MAX_LEVELS: Final = 100
_MAX_DIGITS: Final = 38  # of Delta's and Arrow's decimal128
_MOST_LEAST: Final = 1 << 20
_MICROS: Final = 1000  # in a millisecond
# Decimals of columns have up to 38 digits; Python's usual context rounds to 28.
EXACT: Final = Context(prec=60)

_TYPES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "fixed": pa.binary(),
    "enum": pa.string(),
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
}
# Logical types that change a column's type, and the types that may have them. Others count as their base type.
_LOGICAL: Final[Mapping[str, tuple[str, ...]]] = {
    "date": ("int",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "decimal": ("bytes", "fixed"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A type at one place of a schema. `type`: its column's, None for what is read and left out.

    `null_at`: the index of null in a union of null and one type, -1 elsewhere; `node` is then the union, and `inner`
    the other branch alone. `inner` otherwise: a record's fields, an array's items, a map's values. `logical`: the
    logical type that makes another column of the type, "" for none; `precision` and `scale`: of a decimal.
    """

    node: AvroType
    type: pa.DataType | None
    inner: "tuple[Column, ...]" = ()
    null_at: int = -1
    logical: str = ""
    precision: int = 0
    scale: int = 0

    @property
    def kept(self) -> "tuple[tuple[str, Column], ...]":
        """A record's fields that are columns, with their names."""
        pairs = zip(self.node.fields, self.inner, strict=True)
        return tuple((field.name, column) for field, column in pairs if column.type is not None)


def leaf_column(node: AvroType) -> Column:
    """A type without inner ones as it is for itself."""
    logical = node.props.get("logicalType")
    if not isinstance(logical, str) or node.kind not in _LOGICAL.get(logical, ()):
        return Column(node, _TYPES[node.kind])
    if logical != "decimal":
        return Column(node, _TYPES[logical], logical=logical)
    precision, scale = node.props.get("precision"), node.props.get("scale", 0)
    if isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision <= _MAX_DIGITS and precision:
        return Column(node, pa.decimal128(precision, scale), logical=logical, precision=precision, scale=scale)
    return Column(node, _TYPES[node.kind])


def columns_of(root: AvroType) -> tuple[Column, dict[str, str]]:
    """A schema's columns, and the path of each field that is left out -> why.

    Raises `SchemaError` for a schema of more than `MAX_TYPES` types, or deeper than `MAX_LEVELS`.
    """
    _check_size(root, {}, [])
    planner = _Planner()
    column = planner.column(root, "", ()) if root.kind == "record" else planner.no("", "it is no record", root)
    return column, planner.left_out


def _check_size(node: AvroType, sizes: dict[AvroType, int], around: list[AvroType]) -> int:
    """How many types a type is made of, each counted where it is used. Raises `SchemaError` for too many."""
    if node in around:
        return 1
    if node not in sizes:
        if len(around) > MAX_LEVELS:
            raise SchemaError(f"The schema is nested deeper than {MAX_LEVELS} levels.")
        around.append(node)
        size = 1 + sum(_check_size(one, sizes, around) for one in [*node.inner, *(field.type for field in node.fields)])
        around.pop()
        if size > MAX_TYPES:
            raise SchemaError(f"The schema has more than {MAX_TYPES} types, each counted where it is used.")
        sizes[node] = size
    return sizes[node]


class _Planner:
    def __init__(self) -> None:
        self.left_out: dict[str, str] = {}

    def no(self, path: str, why: str, node: AvroType) -> Column:
        self.left_out[path] = why
        return Column(node, None)

    def column(self, node: AvroType, path: str, around: tuple[AvroType, ...]) -> Column:
        if len(around) > MAX_DEPTH:
            return self.no(path, f"it is nested deeper than {MAX_DEPTH} levels", node)
        if node.kind == "record":
            return self._record(node, path, around)
        if node.kind == "union":
            return self._union(node, path, around)
        if node.kind in ("array", "map"):
            return self._many(node, path, around)
        if node.kind == "null":
            return self.no(path, "null is no type of a column", node)
        return leaf_column(node)

    def _record(self, node: AvroType, path: str, around: tuple[AvroType, ...]) -> Column:
        if node in around:
            return self.no(path, f"the type '{node.full_name}' holds itself", node)
        inner = []
        names: dict[str, str] = {}
        for field in node.fields:
            here = f"{path}.{field.name}" if path else field.name
            problem = name_problem(field.name, names)
            if problem is None:
                column = self.column(field.type, here, (*around, node))
            else:
                column = self.no(here, problem, field.type)
            if column.type is not None:
                names[field.name.lower()] = field.name
            inner.append(column)
        if not names:
            return self.no(path, "no field of it can be a column", node)
        pairs = zip(node.fields, inner, strict=True)
        kind = pa.struct([pa.field(field.name, column.type) for field, column in pairs if column.type is not None])
        return Column(node, kind, tuple(inner))

    def _union(self, node: AvroType, path: str, around: tuple[AvroType, ...]) -> Column:
        values = [branch for branch in node.inner if branch.kind != "null"]
        if len(values) != 1 or len(node.inner) > 2:
            return self.no(path, "it is a union of several types", node)
        one = self.column(values[0], path, (*around, node))
        null_at = next((at for at, branch in enumerate(node.inner) if branch.kind == "null"), -1)
        return Column(node, one.type, (one,), null_at)

    def _many(self, node: AvroType, path: str, around: tuple[AvroType, ...]) -> Column:
        inside = f"{path}.{'element' if node.kind == 'array' else 'value'}"
        if node.kind == "array" and least_bytes(node.inner[0]) == 0:
            return self.no(path, "it is an array of what encodes to no bytes", node)
        inner = self.column(node.inner[0], inside, (*around, node))
        if inner.type is None:
            return self.no(path, f"what it holds is left out: {self.left_out[inside]}", node)
        if node.kind == "array":
            return Column(node, pa.list_(pa.field("element", inner.type)), (inner,))
        return Column(node, pa.map_(pa.string(), inner.type), (inner,))


def least_bytes(node: AvroType) -> int:
    """The fewest bytes that a value of a type takes: 0 only for types whose every value takes none."""
    if node.least < 0:
        node.least = _least(node, ())
    return node.least


def _least(node: AvroType, around: tuple[AvroType, ...]) -> int:
    if node.kind == "null" or node in around:
        return 0
    if node.kind == "fixed":
        return node.size
    if node.kind == "record":
        return min(_MOST_LEAST, sum(_least(field.type, (*around, node)) for field in node.fields))
    return {"float": 4, "double": 8}.get(node.kind, 1)


def default_values(column: Column, path: FieldPath = ()) -> dict[FieldPath, Any]:
    """The defaults of fields that are columns, as Arrow takes them, by their paths below `path`."""
    if column.node.kind in ("array", "map"):
        return default_values(column.inner[0], (*path, "element" if column.node.kind == "array" else "value"))
    if column.node.kind == "union":
        return default_values(column.inner[0], path)
    defaults = {}
    for field, inner in zip(column.node.fields, column.inner, strict=False):  # what is no record has none
        if inner.type is not None:
            if field.default is not ABSENT:
                defaults[(*path, field.name)] = _default(field.default, inner)
            defaults |= default_values(inner, (*path, field.name))
    return defaults


def _default(value: Any, column: Column) -> Any:
    node = column.node
    if node.kind == "union":
        return None if value is None else _default(value, column.inner[0])
    if node.kind == "record":
        given = value if isinstance(value, Mapping) else {}
        said = {field.name: field.default for field in node.fields if field.default is not ABSENT} | {**given}
        return {name: _default(said[name], one) for name, one in column.kept if name in said}
    if node.kind == "array":
        return [_default(one, column.inner[0]) for one in value]
    if node.kind == "map":
        return [(key, _default(one, column.inner[0])) for key, one in value.items()]
    if node.kind in ("bytes", "fixed"):
        data = str(value).encode("latin-1", "replace")
        if column.logical == "decimal":
            return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-column.scale, EXACT)
        return data
    if column.logical == "timestamp-millis":
        return value * _MICROS
    return value


KEY: Final = leaf_column(AvroType("string"))  # of a map
