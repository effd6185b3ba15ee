"""Connect's structs as Protobuf, with schemas in a registry: Confluent's ProtobufConverter."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from google.protobuf import message_factory
from google.protobuf.message import DecodeError, Message

from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.connect.config.definition import Importance
from tidelog.connect.config.values import ConfigKind
from tidelog.connect.converters.base import NOTHING, SchemaAndValue
from tidelog.connect.converters.protobuf_schemas import MessageReader, ProtoWriter
from tidelog.connect.converters.protobuf_values import fill, struct_of_message
from tidelog.connect.converters.registries import registry_client, registry_failure, registry_keys, serializer_settings
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import ConnectSchema, check_value
from tidelog.schema_registry.client import SchemaRegistryClient
from tidelog.schema_registry.framing import unframed
from tidelog.schema_registry.model import Schema, SchemaRegistryError
from tidelog.schema_registry.serdes import READER, WRITER, SchemaChooser, WriterSchemas, configured, referenced
from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.protobuf.descriptors import message_at, pool_of
from tidelog.schemas.protobuf.loading import files_of
from tidelog.schemas.protobuf.text import ROOT, compiled

PROTOBUF_KEYS: Final = (
    registry_keys()
    .define("optional.for.nullables", ConfigKind.BOOLEAN, False, Importance.MEDIUM,
            "Whether optional fields are Protobuf's optional ones, so that null is not 0.")
    .define("enhanced.protobuf.schema.support", ConfigKind.BOOLEAN, False, Importance.MEDIUM,
            "Whether structs have the full names of messages, their package among it.")
)  # fmt: skip
# What has `confluent.Meta` among its descriptors.
_IMPORTS_META: Final = 'syntax = "proto3"; import "confluent/meta.proto";'


class _Writer(NamedTuple):
    """How structs of one schema are written."""

    message: type[Message]
    chooser: SchemaChooser[None]
    name: str


class ProtobufConverter:
    """Keys or values as Protobuf behind their schema's id. `values`: a parsed configuration.

    `client`: of the registry, closed with the converter.
    """

    def __init__(self, client: SchemaRegistryClient, values: Mapping[str, Any], *, is_key: bool = False) -> None:
        self._client = client
        self._field = MessageField.KEY if is_key else MessageField.VALUE
        self._settings = configured(serializer_settings(values), WRITER)
        self._optional = values["optional.for.nullables"]
        self._full_names = values["enhanced.protobuf.schema.support"]
        self._writers: dict[ConnectSchema, _Writer] = {}
        self._files: WriterSchemas[Any] = WriterSchemas(client, configured(None, READER), self._pool, "PROTOBUF")
        self._readers: dict[tuple[int | str, tuple[int, ...]], tuple[type[Message], ConnectSchema]] = {}

    def from_connect(self, topic: str, schema: ConnectSchema | None, value: Any) -> bytes | None:
        """The bytes of a struct. Raises `DataError`; `RetriableConnectError` where the registry does not answer."""
        if value is None:
            return None
        if schema is None:
            raise DataError("The value has no schema. Use a source with schemas.")
        check_value(schema, value)
        writer = self._writers.get(schema)
        if writer is None:
            writer = self._writers[schema] = self._written_by(schema)
        message = writer.message()
        try:
            fill(message, schema, value)
            payload = message.SerializeToString()
        except (TypeError, ValueError) as error:
            raise DataError(f"The value can't be Protobuf: {error}") from error
        context = SerializationContext(topic, self._field)
        try:
            return writer.chooser.framed(payload, context, writer.chooser.chosen(context, writer.name))
        except SerializationError as error:
            raise DataError(f"The value can't be Protobuf: {error}") from error
        except SchemaRegistryError as error:
            raise registry_failure(error) from error

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The schema and the struct of bytes. Raises as `from_connect`."""
        if data is None:
            return NOTHING
        try:
            named, place, payload = unframed(data, SerializationContext(topic, self._field), "PROTOBUF")
            kind, schema = self._read_by(named, tuple(place or (0,)))
            message = kind()
            message.ParseFromString(payload)
        except SchemaRegistryError as error:
            raise registry_failure(error) from error
        except (SerializationError, SchemaError, DecodeError) as error:
            raise DataError(f"The bytes of {topic} can't be read as Protobuf: {error}") from error
        return schema, struct_of_message(message, schema)

    def close(self) -> None:
        """Close the registry's client."""
        self._client.close()

    def _written_by(self, schema: ConnectSchema) -> _Writer:
        proto = ProtoWriter(optional=self._optional)
        text = proto.text(schema)
        try:
            pool = _pool_of(text, {})
        except SchemaError as error:
            raise DataError(f"The schema can't be Protobuf: {error}") from error
        own = Schema(text, "PROTOBUF")
        chooser: SchemaChooser[None] = SchemaChooser(self._client, self._settings, lambda _: None, lambda _: own, [0])
        return _Writer(message_factory.GetMessageClass(pool.FindMessageTypeByName(proto.name)), chooser, proto.name)

    def _read_by(self, named: int | str, place: tuple[int, ...]) -> tuple[type[Message], ConnectSchema]:
        found = self._readers.get((named, place))
        if found is None:
            pool = self._files.writer(named)
            descriptor = message_at(pool.FindFileByName(ROOT), place)
            if descriptor is None:
                raise SerializationError(f"The bytes name a type that their schema lacks: {[*place]}.")
            reader = MessageReader(pool, full_names=self._full_names, optional=self._optional)
            found = message_factory.GetMessageClass(descriptor), reader.schema(descriptor)
            self._readers[named, place] = found
        return found

    def _pool(self, schema: Schema) -> Any:
        """The descriptors of a schema and of what it references."""
        if schema.schema_type != "PROTOBUF":
            raise SerializationError(f"the schema is of type {schema.schema_type}: take its own converter.")
        return _pool_of(schema.schema_str or "", referenced(self._client, schema.references))


def _pool_of(text: str, references: Mapping[str, str]) -> Any:
    """The descriptors of a .proto file; `confluent.Meta`, too, whether it is imported or not. Raises `SchemaError`."""
    files = files_of(text, references).file
    known = {one.name for one in files}
    return pool_of((*files, *(one for one in compiled(_IMPORTS_META, {}).file if one.name not in known)))


def protobuf_converter(config: Mapping[str, str], is_key: bool, lake: Any) -> ProtobufConverter:
    """The converter of a configuration. Raises `ConnectConfigError`."""
    values = PROTOBUF_KEYS.parse(config)
    return ProtobufConverter(registry_client(values, lake), values, is_key=is_key)
