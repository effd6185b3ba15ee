"""A Protobuf schema, read: its canonical and normalised text, and whether it reads what an older one wrote."""

import base64
from collections.abc import Mapping
from functools import cached_property

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tidelog.schemas.base.comparison import Differences, compared
from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.base.model import SchemaKind
from tidelog.schemas.protobuf.compare import ProtoPart, compare
from tidelog.schemas.protobuf.loading import as_text
from tidelog.schemas.protobuf.model import ProtoTypes
from tidelog.schemas.protobuf.text import compiled, descriptor_of, parsed
from tidelog.schemas.protobuf.unparsing import unparsed
from tidelog.schemas.protobuf.writing import written


class ProtobufSchema:
    """A Protobuf schema, sent as text or as a descriptor in base64.

    `references`: {import name: text} of all schemas that it needs.
    """

    kind = SchemaKind.PROTOBUF

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        self._references = {name: as_text(other) for name, other in references.items()}
        descriptor = descriptor_of(text)
        self._file = parsed(text) if descriptor is None else unparsed(descriptor)
        self._text = text if descriptor is None else written(self._file)

    @cached_property
    def canonical(self) -> str:
        """The text as Confluent's registry writes it."""
        return written(self._file)

    @cached_property
    def normalized(self) -> str:
        """The canonical text with everything sorted that has no order, and types' full names."""
        return written(self._file, self._full_name)

    @cached_property
    def serialized(self) -> str:
        """The descriptor in base64 (`format=serialized`)."""
        file = FileDescriptorProto()
        file.CopyFrom(compiled(self.canonical, self._references).file[-1])
        file.name = "default"
        return base64.b64encode(file.SerializeToString(deterministic=True)).decode()

    @cached_property
    def types(self) -> ProtoTypes:
        """The schema's types and those that it imports. Raises `SchemaError` for what Protobuf refuses."""
        return ProtoTypes(compiled(self._text, self._references))

    @property
    def fields(self) -> frozenset[str]:
        """Names of the outermost messages' fields."""
        return frozenset(field.name for message in self.types.root.message_type for field in message.field)

    def check(self, *, strict: bool = False) -> None:  # noqa: ARG002 - the compiler is strict
        """Raise `SchemaError` for what Protobuf refuses."""
        _ = self.types

    def differences_from(self, old: "ProtobufSchema", *, lenient: bool = False) -> Differences:
        """What changed since `old`, by the rules of `tidelog.schemas.protobuf.rules`."""
        return compared(compare, ProtoPart(old.types), ProtoPart(self.types), lenient=lenient)

    def root(self) -> ProtoTypes:
        """The schema's types."""
        return self.types

    def _full_name(self, name: str, scope: tuple[str, ...]) -> str:
        """A type's full name with a leading dot; names are looked for from the inside out, as Protobuf does."""
        if name.startswith("."):
            return name
        package = self.types.root.package
        spaces = [*(package.split(".") if package else ()), *scope]
        while True:
            full = ".".join((*spaces, name))
            if full in self.types.names:
                return f".{full}"
            if not spaces:
                raise SchemaError(f"The type '{name}' is not defined.")
            spaces.pop()
