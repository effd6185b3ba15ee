"""How a message says which schema its bytes have: Confluent's wire format, before the bytes or in a header."""

import struct
from collections.abc import Callable
from typing import Final
from uuid import UUID

from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.schema_registry.model import RegisteredSchema

# The magic byte before an id, and the one before a guid.
_ID: Final = 0
_GUID: Final = 1
_PREFIX: Final = struct.Struct(">bI")
_PREFIX_BYTES: Final = 5
_GUID_BYTES: Final = 17

Framing = Callable[[bytes, SerializationContext | None, RegisteredSchema], bytes]


def prefix_schema_id_serializer(payload: bytes, _: SerializationContext | None, schema: RegisteredSchema) -> bytes:
    """The bytes behind a magic byte 0 and the schema's id (4 bytes, big-endian)."""
    if schema.schema_id is None:
        raise SerializationError("The schema has no id: the registry gave none.")
    return _PREFIX.pack(_ID, schema.schema_id) + payload


def header_schema_id_serializer(payload: bytes, ctx: SerializationContext | None, schema: RegisteredSchema) -> bytes:
    """The bytes as they are; a header of the message has a magic byte 1 and the schema's guid (16 bytes)."""
    if ctx is None or schema.guid is None:
        raise SerializationError("A schema in a header needs a context, and a registry that gives guids.")
    header = (_header(ctx), bytes([_GUID]) + UUID(schema.guid).bytes)
    if isinstance(ctx.headers, list):
        ctx.headers.append(header)
    elif isinstance(ctx.headers, dict):
        ctx.headers[header[0]] = header[1]
    else:
        raise SerializationError("The message's headers can't be added to: give a list or a dict.")
    return payload


def unframed(data: bytes, ctx: SerializationContext | None) -> tuple[int | str, bytes]:
    """The id, or the guid, of the schema that bytes have, and the bytes themselves.

    A header counts before the bytes. Raises `SerializationError` for bytes that name no schema.
    """
    header = _found(ctx)
    if header is not None:
        if len(header) != _GUID_BYTES or header[0] != _GUID:
            raise SerializationError(f"The header '{_header(ctx)}' holds no schema's guid.")
        return str(UUID(bytes=header[1:])), data
    if len(data) >= _GUID_BYTES and data[0] == _GUID:
        return str(UUID(bytes=data[1:_GUID_BYTES])), data[_GUID_BYTES:]
    if len(data) < _PREFIX_BYTES or data[0] != _ID:
        raise SerializationError(
            "The message names no schema: it begins with no magic byte. It was written without a registry's serializer."
        )
    return _PREFIX.unpack_from(data)[1], data[_PREFIX_BYTES:]


def _header(ctx: SerializationContext | None) -> str:
    return f"__{ctx.field if ctx else MessageField.VALUE}_schema_id"


def _found(ctx: SerializationContext | None) -> bytes | None:
    if ctx is None or not ctx.headers:
        return None
    name = _header(ctx)
    pairs = ctx.headers.items() if isinstance(ctx.headers, dict) else ctx.headers
    value = next((value for key, value in reversed(list(pairs)) if key == name), None)
    return value.encode() if isinstance(value, str) else value
