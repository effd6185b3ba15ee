"""Which columns a message has: the Arrow type of each field, and why a field is none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

import pyarrow as pa
from google.protobuf import descriptor_pb2

from tidelog.schemas.base.value_schemas import name_problem

MAX_COLUMNS: Final = 10_000
MAX_DEPTH: Final = 50
_KINDS: Final = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final[Mapping[int, pa.DataType]] = {
    _KINDS.TYPE_DOUBLE: pa.float64(),
    _KINDS.TYPE_FLOAT: pa.float32(),
    _KINDS.TYPE_INT64: pa.int64(),
    _KINDS.TYPE_UINT64: pa.int64(),
    _KINDS.TYPE_INT32: pa.int32(),
    _KINDS.TYPE_FIXED64: pa.int64(),
    _KINDS.TYPE_FIXED32: pa.int64(),
    _KINDS.TYPE_BOOL: pa.bool_(),
    _KINDS.TYPE_STRING: pa.string(),
    _KINDS.TYPE_BYTES: pa.binary(),
    _KINDS.TYPE_UINT32: pa.int64(),
    _KINDS.TYPE_SFIXED32: pa.int32(),
    _KINDS.TYPE_SFIXED64: pa.int64(),
    _KINDS.TYPE_SINT32: pa.int32(),
    _KINDS.TYPE_SINT64: pa.int64(),
}
_TIMESTAMP: Final = "google.protobuf.Timestamp"
# Messages of one field, "value", that are columns of its type: null where they are absent.
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
# Messages that hold any JSON.
_ANYTHING: Final = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))


class ProtoShape(Enum):
    """How a field's values become a column's."""

    PLAIN = auto()
    ENUM = auto()
    TIMESTAMP = auto()
    WRAPPER = auto()
    MESSAGE = auto()
    LIST = auto()
    MAP = auto()


@dataclass(frozen=True, slots=True, eq=False)
class ProtoColumn:
    """A type at one place of a message.

    `scalar`: the field's type, where it is one (of an enum: int32). `names`: of an enum's numbers. `inner`: a list's
    elements, a wrapper's value, a map's key and value. `fields`: a message's fields that are columns. `index`: of the
    message in the file that `derived_file` gives.
    """

    type: pa.DataType
    shape: ProtoShape
    scalar: int = 0
    names: Mapping[int, str] = field(default_factory=dict)
    inner: "tuple[ProtoColumn, ...]" = ()
    fields: "tuple[ColumnField, ...]" = ()
    index: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class ColumnField:
    """A message's field that is a column. `optional`: a scalar that may be absent, which is null then."""

    name: str
    number: int
    optional: bool
    column: ProtoColumn


@dataclass(slots=True)
class ProtoPlan:
    """The columns of several messages of one schema, and the path of each field that is left out -> why.

    `messages`: what the messages of `derived_file` are, by their index. `has_maps`: whether a column is a map.
    """

    left_out: dict[str, str] = field(default_factory=dict)
    messages: list[ProtoColumn] = field(default_factory=list)
    has_maps: bool = False
    count: int = 0

    def root(self, descriptor: Any, path: str = "") -> ProtoColumn | None:
        """The columns of a message; None where it has none."""
        return self._message(descriptor, path, ())

    def _no(self, path: str, why: str) -> ProtoColumn | None:
        self.left_out[path] = why
        return None

    def _made(self, kind: pa.DataType, shape: ProtoShape, **more: Any) -> ProtoColumn:
        """A column that is a message in the derived file."""
        column = ProtoColumn(kind, shape, index=len(self.messages), **more)
        self.messages.append(column)
        return column

    def _message(self, descriptor: Any, path: str, around: tuple[str, ...]) -> ProtoColumn | None:
        name = descriptor.full_name
        if name in around:
            return self._no(path, f"the message '{name}' holds itself")
        if len(around) > MAX_DEPTH:
            return self._no(path, f"it is nested deeper than {MAX_DEPTH} levels")
        names: dict[str, str] = {}
        fields = []
        for proto_field in descriptor.fields:
            here = f"{path}.{proto_field.name}" if path else proto_field.name
            problem = name_problem(proto_field.name, names)
            column = self._no(here, problem) if problem else self._field(proto_field, here, (*around, name))
            if column is not None:
                names[proto_field.name.lower()] = proto_field.name
                optional = proto_field.has_presence and column.shape in (ProtoShape.PLAIN, ProtoShape.ENUM)
                fields.append(ColumnField(proto_field.name, proto_field.number, optional, column))
        if not fields:
            return self._no(path, "no field of it can be a column")
        kind = pa.struct([pa.field(one.name, one.column.type) for one in fields])
        return self._made(kind, ProtoShape.MESSAGE, fields=tuple(fields))

    def _field(self, proto_field: Any, path: str, around: tuple[str, ...]) -> ProtoColumn | None:
        self.count += 1
        if self.count > MAX_COLUMNS:
            return self._no(path, f"the schema has more than {MAX_COLUMNS} fields")
        if proto_field.message_type is not None and proto_field.message_type.GetOptions().map_entry:
            return self._map(proto_field, path, around)
        if proto_field.label != proto_field.LABEL_REPEATED:
            return self._value(proto_field, path, around)
        inside = f"{path}.element"
        inner = self._value(proto_field, inside, around)
        if inner is None:
            return self._no(path, f"what it holds is left out: {self.left_out[inside]}")
        return ProtoColumn(pa.list_(pa.field("element", inner.type)), ProtoShape.LIST, inner=(inner,))

    def _map(self, one: Any, path: str, around: tuple[str, ...]) -> ProtoColumn | None:
        entry = one.message_type.fields_by_name
        inside = f"{path}.value"
        key, value = self._value(entry["key"], f"{path}.key", around), self._value(entry["value"], inside, around)
        assert key is not None  # keys are scalars
        if value is None:
            return self._no(path, f"what it holds is left out: {self.left_out[inside]}")
        self.has_maps = True
        return ProtoColumn(pa.map_(pa.string(), value.type), ProtoShape.MAP, inner=(key, value))

    def _value(self, proto_field: Any, path: str, around: tuple[str, ...]) -> ProtoColumn | None:
        if proto_field.type in _SCALARS:
            return ProtoColumn(_SCALARS[proto_field.type], ProtoShape.PLAIN, proto_field.type)
        if proto_field.type == proto_field.TYPE_ENUM:
            names: dict[int, str] = {}
            for value in proto_field.enum_type.values:
                names.setdefault(value.number, value.name)
            return ProtoColumn(pa.string(), ProtoShape.ENUM, _KINDS.TYPE_INT32, names)
        if proto_field.type == proto_field.TYPE_GROUP:
            return self._no(path, "it is a group")
        name = proto_field.message_type.full_name
        if name == _TIMESTAMP:
            return self._made(pa.timestamp("us", "UTC"), ProtoShape.TIMESTAMP)
        if name in _ANYTHING:
            return self._no(path, "it may be anything")
        if name in _WRAPPERS:
            inner = self._value(proto_field.message_type.fields_by_name["value"], path, around)
            assert inner is not None  # a scalar
            return self._made(inner.type, ProtoShape.WRAPPER, inner=(inner,))
        return self._message(proto_field.message_type, path, around)


def derived_file(messages: Sequence[ProtoColumn]) -> descriptor_pb2.FileDescriptorProto:
    """A file whose messages M0, M1, … have the columns alone, under the same numbers: fields f1, f2, … by number.

    Enums are int32 there, and no message has a meaning of its own: a reader of it knows nothing but bytes.
    """
    file = descriptor_pb2.FileDescriptorProto(name="columns.proto", package="columns", syntax="proto3")
    for column in messages:
        message = file.message_type.add(name=f"M{column.index}")
        if column.shape is ProtoShape.TIMESTAMP:
            _add(message, 1, _KINDS.TYPE_INT64)
            _add(message, 2, _KINDS.TYPE_INT32)
        elif column.shape is ProtoShape.WRAPPER:
            _add(message, 1, column.inner[0].scalar)
        else:
            _add_fields(message, column.fields)
    return file


def _add_fields(message: Any, fields: Iterable[ColumnField]) -> None:
    for column_field in fields:
        column = column_field.column
        if column.shape is ProtoShape.MAP:
            entry = message.nested_type.add(name=f"F{column_field.number}Entry")
            entry.options.map_entry = True
            for number, inner in enumerate(column.inner, 1):
                made = _add(entry, number, inner.scalar, inner.index)
                made.name = ("key", "value")[number - 1]
            made = _add(message, column_field.number, _KINDS.TYPE_MESSAGE, label=_KINDS.LABEL_REPEATED)
            made.type_name = f".columns.{message.name}.{entry.name}"
        elif column.shape is ProtoShape.LIST:
            (inner,) = column.inner
            _add(message, column_field.number, inner.scalar, inner.index, _KINDS.LABEL_REPEATED)
        else:
            made = _add(message, column_field.number, column.scalar, column.index)
            if column_field.optional:
                made.proto3_optional = True
                made.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_f{column_field.number}")


def _add(message: Any, number: int, scalar: int, index: int = -1, label: int = _KINDS.LABEL_OPTIONAL) -> Any:
    made = message.field.add(name=f"f{number}", number=number, label=label, type=scalar or _KINDS.TYPE_MESSAGE)
    if index >= 0:
        made.type_name = f".columns.M{index}"
    return made
