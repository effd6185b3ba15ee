"""Values of records as JSON, by the schemas that they name, and back: what `consume --value-as` and `produce` do."""

import io
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import orjson
import pyarrow as pa
from fastavro import schemaless_writer
from google.protobuf import json_format, message_factory

from tidelog.clients.schema_registry.avro import AvroDeserializer, parsed_schema
from tidelog.clients.schema_registry.client import SchemaRegistryClient
from tidelog.clients.schema_registry.framing import SchemaId, unframed
from tidelog.clients.schema_registry.json_schema import JSONDeserializer, check, validator_of
from tidelog.clients.schema_registry.metadata import refuse_rules
from tidelog.clients.schema_registry.model import RegisteredSchema, Schema, SchemaRegistryError
from tidelog.clients.schema_registry.serdes import referenced, schema_of
from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.base.errors import TidelogError
from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.protobuf.descriptors import message_at, pool_of

ValueKind = Literal["avro", "json", "protobuf"]
Decode = Callable[[bytes, SerializationContext], bytes]
Encode = Callable[[bytes], bytes]


class SchemaValueError(TidelogError):
    """A schema that values can't be written by."""


_NO_SUBJECT: Final = 40401  # Confluent's code
# Schemas that are kept, compiled; with more, all are compiled again.
_MOST_KEPT: Final = 1_000
# Names of message types that a refusal lists.
_MOST_LISTED: Final = 20


def decoder(kind: ValueKind, client: SchemaRegistryClient) -> Decode:
    """What makes JSON of a value that names its schema.

    Raises `SerializationError` for a value that can't be JSON, whatever its shape; `SchemaRegistryError` where the
    registry refuses or does not answer.
    """
    made = _decoder(kind, client)

    def decode(value: bytes, context: SerializationContext) -> bytes:
        try:
            return made(value, context)
        except (SerializationError, TidelogError):
            raise
        except Exception as error:  # of whatever library: a stranger wrote the value, and maybe its schema
            raise SerializationError(f"The value can't be read: {type(error).__name__}: {error}") from error

    return decode


def _decoder(kind: ValueKind, client: SchemaRegistryClient) -> Decode:
    if kind == "protobuf":
        return _Protobuf(client).decode
    if kind == "json":
        from_json = JSONDeserializer(None, schema_registry_client=client)
        return lambda value, context: _json(from_json(value, context))
    from_avro = AvroDeserializer(client)
    return lambda value, context: _json(from_avro(value, context))


def decoded(batch: pa.RecordBatch, decode: Decode, tell: Callable[[str], None]) -> pa.RecordBatch:
    """A batch with its values decoded; null stays null, and so do the bytes of a value that can't be decoded.

    `tell` is called with why, and where the record is.
    """
    at = batch.schema.get_field_index("value")
    values: list[bytes | None] = []
    columns = (batch.column(name).to_pylist() for name in ("topic", "partition", "offset", "value", "headers"))
    for topic, partition, offset, value, pairs in zip(*columns, strict=True):
        if value is None:
            values.append(None)
            continue
        headers = [(pair["key"], pair["value"]) for pair in pairs or ()]
        try:
            values.append(decode(value, SerializationContext(topic, MessageField.VALUE, headers)))
        except SerializationError as error:
            tell(f"{topic} [{partition}] at offset {offset} is shown as its bytes: {error}")
            values.append(value)
    field = batch.schema.field(at)
    return batch.set_column(at, field, pa.array(values, field.type))


def encoder(kind: ValueKind, client: SchemaRegistryClient, subject: str, message_type: str | None = None) -> Encode:
    """What makes values of JSON by a subject's newest schema, as of now.

    `message_type`: of a Protobuf schema, by its full name or without the package; None: the first one.
    Raises `SchemaRegistryError`, `SchemaValueError`. It raises ValueError for what does not fit: fields that the schema
    lacks, too.
    """
    try:
        version = client.get_latest_version(subject)
    except SchemaRegistryError as error:
        if error.error_code != _NO_SUBJECT:
            raise
        raise SchemaValueError(
            f"Subject {subject} has no schema to write values by. Register one: tidelog schema register {subject} FILE;"
            " or name another subject by --value-subject."
        ) from error
    schema_type = version.schema.schema_type
    if schema_type.lower() != kind:
        raise SchemaValueError(f"The newest schema of {subject} is of type {schema_type}, not {kind}: give that.")
    try:
        refuse_rules(version.schema.rule_set, f"the schema of subject {subject}", reads=False)
        indexes: list[int] | None = None
        if kind == "protobuf":
            write, indexes = _protobuf_writer(client, version, message_type)
        else:
            write = {"avro": _avro_writer, "json": _json_writer}[kind](client, version)
    except SerializationError as error:
        raise SchemaValueError(f"Values can't be written by version {version.version} of {subject}: {error}") from error

    prefix = SchemaId(schema_type, version.schema_id, version.guid, indexes).id_to_bytes()

    def encode(text: bytes) -> bytes:
        try:
            payload = write(text)
        except orjson.JSONDecodeError as error:
            raise ValueError(f"the value is no JSON: {error}") from None
        except (ValueError, TypeError, KeyError, SerializationError, json_format.ParseError) as error:
            raise ValueError(f"the value does not fit version {version.version} of {subject}: {error}") from None
        return prefix + payload

    return encode


def _avro_writer(client: SchemaRegistryClient, version: RegisteredSchema) -> Encode:
    parsed = parsed_schema(client, version.schema)

    def write(text: bytes) -> bytes:
        buffer = io.BytesIO()
        schemaless_writer(buffer, parsed, orjson.loads(text), strict_allow_default=True)
        return buffer.getvalue()

    return write


def _json_writer(client: SchemaRegistryClient, version: RegisteredSchema) -> Encode:
    validator = validator_of(client, version.schema)

    def write(text: bytes) -> bytes:
        check(validator, orjson.loads(text))
        return text

    return write


def _protobuf_writer(
    client: SchemaRegistryClient, version: RegisteredSchema, message_type: str | None
) -> tuple[Encode, list[int]]:
    """What writes messages of a type, and the type's place in its file."""
    types = _Protobuf(client)
    made, place = types.type_of(version.schema_id or 0, [0]), [0]
    if message_type is not None:
        place = _place_of_type(made.DESCRIPTOR.file, message_type)
        made = types.type_of(version.schema_id or 0, place)
    return lambda text: json_format.Parse(text, made()).SerializeToString(), place


def _place_of_type(file: Any, name: str) -> list[int]:
    """The place of a file's message type, by its full name or without the package."""
    places: dict[str, list[int]] = {}
    stack = [(one, [at]) for at, one in enumerate(file.message_types_by_name.values())]
    while stack:
        descriptor, place = stack.pop()
        places[descriptor.full_name] = place
        stack += [
            (inner, [*place, at])
            for at, inner in enumerate(descriptor.nested_types)
            if not inner.GetOptions().map_entry  # of a map's field, not a type of its own
        ]
    full = f"{file.package}.{name}" if file.package else name
    indexes = places.get(name, places.get(full))
    if indexes is None:
        listed = ", ".join(sorted(places, key=lambda one: places[one])[:_MOST_LISTED])
        raise SerializationError(f"it has no message type '{name}'; it has {listed}.")
    return indexes


class _Protobuf:
    """Messages of whatever type, by the descriptors that a registry gives."""

    def __init__(self, client: SchemaRegistryClient) -> None:
        self._client = client
        self._files: dict[int | str, Any] = {}
        self._types: dict[tuple[int | str, tuple[int, ...]], Any] = {}

    def decode(self, value: bytes, context: SerializationContext) -> bytes:
        """A message as JSON, its fields by their own names."""
        try:
            named, place, payload = unframed(value, context, "PROTOBUF")
        except SerializationError:
            _require_protobuf(schema_of(self._client, unframed(value, context)[0]))
            raise
        message = self.type_of(named, place or [0])()
        try:
            message.ParseFromString(payload)
            document = json_format.MessageToDict(message, preserving_proto_field_name=True)
        except Exception as error:  # DecodeError, and what JSON can't say: a duration of a million years
            raise SerializationError(f"The message does not fit its schema {named}: {error}") from error
        return _json(document)

    def type_of(self, named: int | str, place: Sequence[int]) -> Any:
        """The class of a type by its place in its file."""
        key = named, tuple(place)
        if key not in self._types:
            descriptor = message_at(self._file(named), place)
            if descriptor is None:
                raise SerializationError(f"The message names a type that its schema lacks: {[*place]}.")
            if len(self._types) >= _MOST_KEPT:
                self._types = {}
            self._types[key] = message_factory.GetMessageClass(descriptor)
        return self._types[key]

    def _file(self, named: int | str) -> Any:
        """A schema's descriptors, compiled once: which types of it are asked for is what strangers wrote."""
        if named not in self._files:
            from tidelog.schemas.protobuf.loading import files_of  # a parser and a compiler that no other kind needs

            schema = schema_of(self._client, named)
            _require_protobuf(schema)
            refuse_rules(schema.rule_set, f"schema {named}", reads=True)
            try:
                files = files_of(schema.schema_str or "", referenced(self._client, schema.references)).file
                file = pool_of(files).FindFileByName(files[-1].name)
            except SchemaError as error:
                raise SerializationError(f"Schema {named} can't be read: {error}") from error
            if len(self._files) >= _MOST_KEPT:
                self._files = {}
            self._files[named] = file
        return self._files[named]


def _require_protobuf(schema: Schema) -> None:
    if schema.schema_type != "PROTOBUF":
        raise SerializationError(f"The schema is of type {schema.schema_type}, not PROTOBUF: give that.")


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value, default=_avro_json)
    except (
        TypeError
    ) as error:  # nested deeper than orjson writes, which is 254 levels, or a number of more than 64 bits
        raise SerializationError(f"The value can't be JSON: {error}") from error


def _avro_json(value: Any) -> Any:
    """What JSON has no form for: bytes as Avro's JSON has them, one character each; decimals as text."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
