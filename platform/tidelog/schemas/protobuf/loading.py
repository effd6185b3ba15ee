"""Protobuf schemas, sent as texts or as descriptors, as descriptors with all that they import."""

from collections.abc import Mapping

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.protobuf.text import compiled, descriptor_of
from tidelog.schemas.protobuf.unparsing import unparsed
from tidelog.schemas.protobuf.writing import written


def as_text(text: str) -> str:
    """The text of a .proto file, also of one that is a descriptor in base64."""
    descriptor = descriptor_of(text)
    return text if descriptor is None else written(unparsed(descriptor))


def files_of(text: str, references: Mapping[str, str]) -> FileDescriptorSet:
    """The descriptors of a schema and of all that it imports, its own last; each is a text, or a descriptor in base64.

    A schema's own descriptor is taken as it is. Raises `SchemaError` for what can't be read or imported.
    """
    texts = {name: as_text(other) for name, other in references.items()}
    own = descriptor_of(text)
    if own is None:
        return compiled(text, texts)
    for name in own.dependency:
        if '"' in name or "\\" in name or "\n" in name:
            raise SchemaError(f"The schema imports '{name}', which is no path.")
    needed = compiled("".join(['syntax = "proto3";', *(f'import "{name}";' for name in own.dependency)]), texts)
    own.name = needed.file[-1].name
    needed.file[-1].CopyFrom(own)
    return needed
