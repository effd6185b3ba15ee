"""How a message says which schema its bytes have: Confluent's wire format, before the bytes or in a header.

A Protobuf message says besides which type of its file it has, behind the id or the guid: `message_indexes`, the place
of the type in its file, or in each message that it is inside of, outermost first.
"""

import io
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.schemas.base.framing import (
    GUID,
    GUID_BYTES,
    ID,
    PREFIX,
    PREFIX_BYTES,
    encoded_indexes,
    id_of,
    named_guid,
    read_indexes,
)

_PROTOBUF: Final = "PROTOBUF"


class SchemaId:
    """The schema of a message, by its id or its guid; what functions that write or read it get."""

    __slots__ = ("guid", "id", "message_indexes", "schema_type")

    def __init__(
        self,
        schema_type: str,
        schema_id: int | None = None,
        guid: str | None = None,
        message_indexes: Sequence[int] | None = None,
    ) -> None:
        self.schema_type = schema_type
        self.id = schema_id
        self.guid = None if guid is None else UUID(guid)
        self.message_indexes = None if message_indexes is None else [*message_indexes]

    def id_to_bytes(self) -> bytes:
        """A magic byte 0 and the id (4 bytes, big-endian). Raises `SerializationError` where there is no id."""
        if self.id is None:
            raise SerializationError("The schema has no id: the registry gave none.")
        return PREFIX.pack(ID, self.id) + self._indexes()

    def guid_to_bytes(self) -> bytes:
        """A magic byte 1 and the guid (16 bytes). Raises `SerializationError` where there is no guid."""
        if self.guid is None:
            raise SerializationError("The schema has no guid: the registry gave none, and a header needs one.")
        return bytes([GUID]) + self.guid.bytes + self._indexes()

    def from_bytes(self, payload: io.BytesIO) -> io.BytesIO:
        """Take what bytes begin with; what is left of them. Raises `SerializationError` where they name no schema."""
        data = payload.getbuffer()[payload.tell() :]
        payload.seek(payload.tell() + self.read(bytes(data)))
        return payload

    def read(self, data: bytes) -> int:
        """Take what bytes begin with; how many these are. Raises `SerializationError`."""
        if (number := id_of(data)) is not None:
            self.id, at = number, PREFIX_BYTES
        elif (guid := named_guid(data)) is not None:
            self.guid, at = UUID(bytes=guid.guid), GUID_BYTES
        else:
            raise SerializationError(
                "The message names no schema: it begins with no magic byte and no id. It was written without a"
                " registry's serializer."
            )
        if self.schema_type != _PROTOBUF:
            return at
        place, at = read_indexes(data, at)
        if not place:
            raise SerializationError("The message names no type: it is no Protobuf of a registry's serializer.")
        self.message_indexes = [*place]
        return at

    def _indexes(self) -> bytes:
        return b"" if self.message_indexes is None else encoded_indexes(self.message_indexes)


Writes = Callable[[bytes, SerializationContext | None, SchemaId], bytes]
Reads = Callable[[bytes, SerializationContext | None, SchemaId], io.BytesIO | bytes]


def prefix_schema_id_serializer(payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId) -> bytes:  # noqa: ARG001 - the shape
    """The bytes behind a magic byte 0 and the schema's id (4 bytes, big-endian)."""
    return schema_id.id_to_bytes() + payload


def header_schema_id_serializer(payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId) -> bytes:
    """The bytes as they are; a header of the message has a magic byte 1 and the schema's guid (16 bytes)."""
    if ctx is None:
        raise SerializationError("A schema in a header needs a context with the message's headers.")
    name, value = _header(ctx), schema_id.guid_to_bytes()
    if isinstance(ctx.headers, list):
        ctx.headers.append((name, value))
    elif isinstance(ctx.headers, dict):
        ctx.headers[name] = value
    else:
        raise SerializationError("The message's headers can't be added to: give a list or a dict.")
    return payload


def dual_schema_id_deserializer(
    payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId
) -> io.BytesIO | bytes:
    """The bytes themselves, whose schema a header names, or else they do. A header counts before the bytes."""
    header = _found(ctx)
    if header is None:
        return payload[schema_id.read(payload) :]
    try:
        schema_id.read(header)
    except SerializationError as error:
        raise SerializationError(f"The header '{_header(ctx)}' holds no schema's id or guid.") from error
    return payload


def prefix_schema_id_deserializer(
    payload: bytes,
    ctx: SerializationContext | None,  # noqa: ARG001 - the shape
    schema_id: SchemaId,
) -> io.BytesIO | bytes:
    """The bytes behind the schema's id; headers do not count."""
    return payload[schema_id.read(payload) :]


def unframed(
    data: bytes, ctx: SerializationContext | None, kind: str = "AVRO", reads: Reads = dual_schema_id_deserializer
) -> tuple[int | str, Sequence[int] | None, bytes]:
    """The id, or the guid, of the schema that bytes have, the type's place for Protobuf, and the bytes themselves.

    Raises `SerializationError` for bytes that name no schema.
    """
    plain = reads is dual_schema_id_deserializer and (ctx is None or not ctx.headers) and kind != _PROTOBUF
    if plain and len(data) >= PREFIX_BYTES and data[0] == ID:  # as nearly all are
        return PREFIX.unpack_from(data)[1], None, data[PREFIX_BYTES:]
    named = SchemaId(kind)
    rest = reads(data, ctx, named)
    payload = rest if isinstance(rest, bytes) else rest.read()
    if named.id is None and named.guid is None:
        raise SerializationError("schema.id.deserializer found no schema: it must set an id or a guid.")
    return (str(named.guid) if named.id is None else named.id), named.message_indexes, payload


def _header(ctx: SerializationContext | None) -> str:
    return f"__{ctx.field if ctx else MessageField.VALUE}_schema_id"


def _found(ctx: SerializationContext | None) -> bytes | None:
    """The header's bytes; the last one of its name counts, as in Java's lastHeader."""
    if ctx is None or not ctx.headers:
        return None
    name = _header(ctx)
    pairs = ctx.headers.items() if isinstance(ctx.headers, dict) else ctx.headers
    value = None
    for key, one in pairs:
        if key == name:
            value = one
    return value.encode("latin-1", "replace") if isinstance(value, str) else value
