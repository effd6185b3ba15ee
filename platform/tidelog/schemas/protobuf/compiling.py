"""Text of .proto files read and compiled, with the registry's own refusals."""

from collections.abc import Mapping

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from proto_schema_parser.ast import File

from tidelog.schemas.base.errors import invalid_schema
from tidelog.schemas.base.value_schemas import SchemaError
from tidelog.schemas.protobuf import text as protobuf_text


def parsed(text: str) -> File:
    """What a .proto file says, as written. Raises `RegistryError` 42201 with the line of a mistake."""
    try:
        return protobuf_text.parsed(text)
    except SchemaError as error:
        raise invalid_schema(str(error)) from error


def compiled(text: str, references: Mapping[str, str]) -> FileDescriptorSet:
    """As `protobuf_text.compiled`. Raises `RegistryError` 42201 for what Protobuf refuses."""
    try:
        return protobuf_text.compiled(text, references)
    except SchemaError as error:
        raise invalid_schema(str(error)) from error
