"""Protobuf's messages as the comparison needs them, from descriptors."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet

_PREFIX: Final = "TYPE_"
_LABELS: Final = {1: "optional", 2: "required", 3: "repeated"}


@dataclass(frozen=True, slots=True)
class ProtoField:
    """A field. `kind`: a scalar's name, "enum", "message", or "map" with the fields of an `entry`, key and value.

    `label` is None where none is written in proto3, and in oneofs. `oneof`: the name of the one it is in, or "".
    """

    number: int
    name: str
    kind: str
    type_name: str = ""
    label: str | None = None
    oneof: str = ""
    entry: "tuple[ProtoField, ...]" = ()


@dataclass(frozen=True, slots=True)
class ProtoMessage:
    """A message of a file: its full name, fields by number, and the names of the types inside of it, in their order."""

    full_name: str
    package: str
    file: str
    fields: Mapping[int, ProtoField]
    oneofs: tuple[str, ...]
    messages: tuple[str, ...]
    enums: tuple[str, ...]

    @property
    def local_name(self) -> str:
        """The name without the package."""
        return self.full_name.removeprefix(f"{self.package}.") if self.package else self.full_name


class ProtoTypes:
    """All types that a schema has or imports, the schema's own file last."""

    def __init__(self, files: FileDescriptorSet) -> None:
        self._files = files
        self.root = files.file[-1]

    @cached_property
    def _descriptors(self) -> Mapping[str, tuple[Any, Any]]:
        """{full name: (descriptor, its file)} of messages and enums."""
        descriptors: dict[str, tuple[Any, Any]] = {}
        for file in self._files.file:
            stack = [(file.package, [*file.message_type], [*file.enum_type])]
            while stack:
                space, messages, enums = stack.pop()
                for descriptor in (*messages, *enums):
                    full = f"{space}.{descriptor.name}" if space else descriptor.name
                    descriptors[full] = (descriptor, file)
                    if descriptor in messages:
                        stack.append((full, [*descriptor.nested_type], [*descriptor.enum_type]))
        return descriptors

    @cached_property
    def names(self) -> frozenset[str]:
        """The full names of all types."""
        return frozenset(self._descriptors)

    def message(self, full_name: str) -> ProtoMessage:
        """A message by its full name. Raises `KeyError` where there is none."""
        descriptor, file = self._descriptors[full_name]
        return ProtoMessage(
            full_name,
            file.package,
            file.name,
            {field.number: self._field(field, descriptor, file.syntax) for field in descriptor.field},
            tuple(dict.fromkeys(name for name in self._oneofs(descriptor))),
            tuple(inner.name for inner in descriptor.nested_type if not inner.options.map_entry),
            tuple(inner.name for inner in descriptor.enum_type),
        )

    def enum(self, full_name: str) -> Mapping[int, str]:
        """The values of an enum, the first name of each."""
        one, _ = self._descriptors[full_name]
        values: dict[int, str] = {}
        for value in one.value:
            values.setdefault(value.number, value.name)
        return values

    def _oneofs(self, message: Any) -> Iterator[str]:
        """Names of oneofs, without those that stand for a field with `optional` in proto3."""
        for field in message.field:
            if field.HasField("oneof_index") and not field.proto3_optional:
                yield message.oneof_decl[field.oneof_index].name

    def _field(self, field: Any, message: Any, syntax: str) -> ProtoField:
        kind = FieldDescriptorProto.Type.Name(field.type).removeprefix(_PREFIX).lower()
        type_name = field.type_name.removeprefix(".")
        in_oneof = field.HasField("oneof_index") and not field.proto3_optional
        oneof = message.oneof_decl[field.oneof_index].name if in_oneof else ""
        implicit = (
            syntax == "proto3" and field.label == FieldDescriptorProto.LABEL_OPTIONAL and not field.proto3_optional
        )
        label = None if in_oneof or implicit else _LABELS[field.label]
        if kind == "message" and self._descriptors[type_name][0].options.map_entry:
            entry, _ = self._descriptors[type_name]
            inner = tuple(self._field(one, entry, "proto3") for one in entry.field)
            return ProtoField(field.number, field.name, "map", type_name, None, oneof, inner)
        return ProtoField(field.number, field.name, kind.replace("group", "message"), type_name, label, oneof)
