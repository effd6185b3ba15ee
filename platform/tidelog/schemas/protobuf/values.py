"""Protobuf schemas, compiled: payloads to columns and back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from google.protobuf import message_factory
from google.protobuf.message import DecodeError

from tidelog.schemas.base.errors import EncodingError, SchemaError
from tidelog.schemas.base.framing import encoded_indexes, read_indexes
from tidelog.schemas.base.value_schemas import Decoded, FieldPath
from tidelog.schemas.protobuf.columns import ProtoColumn, ProtoPlan, ProtoShape, derived_file
from tidelog.schemas.protobuf.descriptors import message_at, place_of, pool_of
from tidelog.schemas.protobuf.loading import files_of
from tidelog.schemas.protobuf.payload_reader import ProtoReader
from tidelog.schemas.protobuf.payload_writer import write_payloads

_KEPT_SCHEMAS: Final = 1000
_ROWS: Final = 10_000
_BYTES: Final = 1 << 24


class ProtobufValues:
    """A Protobuf schema, compiled: a `ValueSchema`. Raises `SchemaError` for a text that is none.

    Payloads begin with Confluent's message indexes, which say what message of the schema they hold. The columns are
    those of its roots: messages at the top of the file that no other one holds. Of fields of several roots with one
    name and different types, the first root's alone is a column. Values of other messages have no columns.
    `bare`: payloads are the first root's messages, without indexes. Columns are written as the first root, too.
    """

    kind = "protobuf"
    exact = False
    lenient = False

    def __init__(self, text: str, references: tuple[tuple[str, str], ...] = (), *, bare: bool = False) -> None:
        self._made_of = text, references, bare
        self._bare = bare
        files = files_of(text, dict(references)).file
        self._file = pool_of(files).FindFileByName(files[-1].name)
        roots = _roots(self._file)[: 1 if bare else None]
        plan = ProtoPlan()
        columns = [plan.root(one, "" if one is roots[0] else one.name) for one in roots]
        derived = pool_of([derived_file(plan.messages)])
        once = not plan.left_out and all(file.syntax == "proto3" for file in files)
        self._roots: dict[tuple[int, ...], _Root] = {}
        for number, (descriptor, column) in enumerate(zip(roots, columns, strict=True)):
            if column is not None:
                cut = message_factory.GetMessageClass(derived.FindMessageTypeByName(f"columns.M{column.index}"))
                message = message_factory.GetMessageClass(descriptor)
                reader = ProtoReader(message, cut, column, once=once, has_maps=plan.has_maps)
                self._roots[place_of(descriptor)] = _Root(number, message, column, reader)
        self._first = next(iter(self._roots.values()), None)
        self.columns: pa.StructType | None = _united(self._roots.values(), plan.left_out)
        self.left_out: Mapping[str, str] = plan.left_out
        self.defaults: Mapping[FieldPath, Any] = _all_defaults(self._roots.values(), self.columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_protobuf, self._made_of

    def decode(self, payloads: pa.BinaryArray) -> Decoded:
        """The columns of payloads; null rows where a payload is null, no message, or one without columns."""
        kind = pa.struct([]) if self.columns is None else self.columns
        if self.columns is None or not len(payloads):
            return Decoded(pa.nulls(len(payloads), kind), np.zeros(len(payloads), np.bool_))
        step = max(1, min(_ROWS, _BYTES * len(payloads) // max(1, payloads.nbytes)))
        pieces = [self._piece(payloads.slice(first, step).to_pylist()) for first in range(0, len(payloads), step)]
        columns = pa.concat_arrays(pieces)
        return Decoded(columns, columns.is_valid().to_numpy(zero_copy_only=False))

    def encode(self, columns: pa.StructArray) -> pa.BinaryArray:
        """The payloads of rows, null for null rows. Raises `EncodingError`, naming the first row that can't be one."""
        if self._first is None:
            raise EncodingError("The schema has no columns, so that no payload can be made of them.")
        before = b"" if self._bare else encoded_indexes(place_of(self._first.message.DESCRIPTOR))
        return write_payloads(self._first.message, self._first.column, columns, before)

    def problem(self, payload: bytes) -> str | None:
        """Why a payload does not fit the schema, None where it does."""
        indexes, at = (place_of(_roots(self._file)[0]), 0) if self._bare else read_indexes(payload)
        descriptor = message_at(self._file, indexes)
        if descriptor is None:
            return (
                "The payload begins with no message indexes: it was not written by a serializer for registries."
                if not indexes
                else f"The payload is message {[*indexes]} of its schema, which has none there."
            )
        message = message_factory.GetMessageClass(descriptor)()
        try:
            message.ParseFromString(payload[at:])
        except DecodeError as error:
            return f"The payload is no message '{descriptor.full_name}': {error}."
        missing = message.FindInitializationErrors()
        return f"The payload lacks what '{descriptor.full_name}' requires: {', '.join(missing)}." if missing else None

    def _piece(self, payloads: list[bytes | None]) -> pa.StructArray:
        """The columns of some payloads."""
        assert self.columns is not None  # there is a root
        if self._bare and self._first is not None:
            return self._first.columns(payloads, self.columns)
        bodies: dict[tuple[int, ...], list[bytes]] = {indexes: [] for indexes in self._roots}
        rows: dict[tuple[int, ...], list[int]] = {indexes: [] for indexes in self._roots}
        for row, payload in enumerate(payloads):
            if payload is None:
                continue
            indexes, at = read_indexes(payload)
            if indexes in bodies:
                bodies[indexes].append(payload[at:])
                rows[indexes].append(row)
        pieces, order, made = [pa.nulls(1, self.columns)], np.zeros(len(payloads), np.int64), 1
        for indexes, root in self._roots.items():
            if len(rows[indexes]) == len(payloads):
                return root.columns(bodies[indexes], self.columns)
            if rows[indexes]:
                pieces.append(root.columns(bodies[indexes], self.columns))
                order[rows[indexes]] = np.arange(made, made + len(rows[indexes]))
                made += len(rows[indexes])
        return pa.concat_arrays(pieces).take(pa.array(order))


@dataclass(frozen=True, slots=True, eq=False)
class _Root:
    """A message whose values have columns. `number`: among the roots."""

    number: int
    message: Any
    column: ProtoColumn
    reader: ProtoReader

    def columns(self, payloads: Sequence[bytes | None], wanted: pa.StructType) -> pa.StructArray:
        """The columns of messages, as those of all roots."""
        columns = self.reader.columns(payloads)
        if columns.type == wanted:
            return columns
        fields = [
            columns.field(one.name) if self.has(one) else pa.nulls(len(columns), one.type)  # another root's
            for one in wanted
        ]
        return pa.StructArray.from_arrays(fields, fields=[*wanted], mask=columns.is_null())

    def has(self, field: pa.Field) -> bool:
        """Whether it has a column of this name and type."""
        at = self.column.type.get_field_index(field.name)
        return at >= 0 and bool(self.column.type.field(at).type == field.type)


@lru_cache(maxsize=_KEPT_SCHEMAS)
def compile_protobuf(text: str, references: tuple[tuple[str, str], ...] = (), bare: bool = False) -> ProtobufValues:
    """A Protobuf schema by its text or its descriptor in base64, compiled once. Raises `SchemaError`."""
    return ProtobufValues(text, references, bare=bare)


def _roots(file: Any) -> list[Any]:
    """The messages at the top of a file that no other one of them holds; the first where all are held.

    Raises `SchemaError` for a file without messages.
    """
    tops = [*file.message_types_by_name.values()]
    if not tops:
        raise SchemaError("The schema has no message.")
    held = {name for one in tops for name in _held(one) - {one.full_name}}
    return [one for one in tops if one.full_name not in held] or tops[:1]


def _held(top: Any) -> set[str]:
    """The messages that a message's fields, and those of messages inside of it, have as types."""
    names, stack = set(), [top]
    while stack:
        one = stack.pop()
        names |= {field.message_type.full_name for field in one.fields if field.message_type is not None}
        stack += one.nested_types
    return names


def _united(roots: Iterable[_Root], left_out: dict[str, str]) -> pa.StructType | None:
    """The columns of all roots; what differs is reported in `left_out`."""
    fields: dict[str, pa.Field] = {}
    for root in roots:
        for field in root.column.type:
            other = fields.setdefault(field.name.lower(), field)
            if other != field:
                why = f"the schema's messages have it as '{other.name}' of type {other.type}, and as {field.type}"
                left_out[f"{root.message.DESCRIPTOR.name}.{field.name}"] = why
    return pa.struct([*fields.values()]) if fields else None


def _all_defaults(roots: Iterable[_Root], columns: pa.StructType | None) -> dict[FieldPath, Any]:
    """What absent fields are, where that is not null."""
    defaults: dict[FieldPath, Any] = {}
    begun: set[str] = set()
    for root in roots:
        # Of fields of several roots with one name, the first root's is the column.
        defaults |= {
            path: value
            for path, value in _defaults(root.column, root.message.DESCRIPTOR, ())
            if path[0] not in begun and columns is not None and columns.get_field_index(path[0]) >= 0
        }
        begun |= {one.name for one in root.column.fields}
    return defaults


def _defaults(column: ProtoColumn, descriptor: Any, path: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
    """The same of one message, and those that it holds."""
    for column_field in column.fields:
        field, inner = descriptor.fields_by_name[column_field.name], column_field.column
        here = (*path, column_field.name)
        held = field.message_type
        if inner.shape in (ProtoShape.LIST, ProtoShape.MAP):
            yield here, []
            if inner.shape is ProtoShape.MAP:
                held = held.fields_by_name["value"].message_type
            here = (*here, "element" if inner.shape is ProtoShape.LIST else "value")
            inner = inner.inner[-1]
        elif inner.index < 0 and (not column_field.optional or field.has_default_value):
            value = field.default_value
            yield here, inner.names[value] if inner.names else value
        if inner.shape is ProtoShape.MESSAGE:
            yield from _defaults(inner, held, here)
