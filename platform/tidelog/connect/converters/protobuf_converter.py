"""Connect's structs as Protobuf, with schemas in a registry: Confluent's ProtobufConverter."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, NamedTuple

from google.protobuf import message_factory
from google.protobuf.message import DecodeError, Message

from tidelog.clients.schema_registry.client import SchemaRegistryClient
from tidelog.clients.schema_registry.framing import unframed
from tidelog.clients.schema_registry.model import Schema, SchemaRegistryError
from tidelog.clients.schema_registry.serdes import READER, WRITER, SchemaChooser, WriterSchemas, configured, referenced
from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.connect.config.definition import Importance
from tidelog.connect.config.values import FLAG
from tidelog.connect.converters.base import (
    NOTHING,
    SchemaAndValue,
    registry_client,
    registry_failure,
    registry_keys,
    serializer_settings,
)
from tidelog.connect.converters.json_values import decimal_of, unscaled
from tidelog.connect.converters.protobuf_schemas import ENUM, MessageReader, ProtoWriter, is_union
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, ConnectSchema, SchemaType, check_value
from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.protobuf.descriptors import message_at, pool_of
from tidelog.schemas.protobuf.loading import files_of
from tidelog.schemas.protobuf.text import ROOT, compiled

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOGICAL: Final = frozenset({DECIMAL, DATE, TIME, TIMESTAMP})
_SIGNED: Final = 1 << 63


# --- to Protobuf ---------------------------------------------------------------------------------------------
PROTOBUF_KEYS: Final = (
    registry_keys()
    .define("optional.for.nullables", FLAG, False, Importance.MEDIUM,
            "Whether optional fields are Protobuf's optional ones, so that null is not 0.")
    .define("enhanced.protobuf.schema.support", FLAG, False, Importance.MEDIUM,
            "Whether structs have the full names of messages, their package among it.")
)  # fmt: skip
# What has `confluent.Meta` among its descriptors.
_IMPORTS_META: Final = 'syntax = "proto3"; import "confluent/meta.proto";'


def fill(message: Any, schema: ConnectSchema, value: Mapping[str, Any]) -> None:
    """Set a message's fields to those of a struct. Raises `DataError` for values that no field takes."""
    for field in schema.fields:
        field_value = value.get(field.name)
        field_value = field.schema.default if field_value is None else field_value
        if field_value is None:
            continue
        if is_union(field.schema):
            branch = next((one for one in field.schema.fields if field_value.get(one.name) is not None), None)
            if branch is not None:
                _set(message, branch.name, branch.schema, field_value[branch.name])
        else:
            _set(message, field.name, field.schema, field_value)


def _set(message: Any, name: str, schema: ConnectSchema, value: Any) -> None:
    inner = schema.value_schema
    if schema.type is SchemaType.ARRAY and inner is not None:
        items = getattr(message, name)
        for element in value:
            if _is_message(inner):
                _put(items.add(), inner, _present(element, name))
            else:
                items.append(_plain(inner, _present(element, name)))
    elif schema.type is SchemaType.MAP and inner is not None and schema.key_schema is not None:
        entries = getattr(message, name)
        for key, map_value in value.items():
            if _is_message(inner):
                _put(entries[key], inner, _present(map_value, name))
            else:
                entries[_present(key, name)] = _plain(inner, _present(map_value, name))
    elif _is_message(schema):
        getattr(message, name).SetInParent()
        _put(getattr(message, name), schema, value)
    else:
        setattr(message, name, _plain(schema, value))


def _is_message(schema: ConnectSchema) -> bool:
    return schema.type is SchemaType.STRUCT or schema.name in _LOGICAL


def _present(value: Any, name: str) -> Any:
    if value is None:
        raise DataError(f"The field {name} has a null inside, which no list or map of Protobuf takes.")
    return value


def _plain(schema: ConnectSchema, value: Any) -> Any:
    if ENUM in schema.parameters:
        number = schema.parameters.get(f"{ENUM}.{value}")
        if number is None:
            raise DataError(f"{value!r} is none of the values of {schema.parameters[ENUM]}.")
        return int(number)
    return bytes(value) if schema.type is SchemaType.BYTES else value


def _put(message: Any, schema: ConnectSchema, value: Any) -> None:
    """Set a message to a struct's or a logical type's value."""
    if schema.name == DECIMAL:
        scale = int(schema.parameters[SCALE])
        message.value, message.scale = unscaled(value, scale), scale
        message.precision = len(value.as_tuple().digits)
    elif schema.name == DATE:
        message.year, message.month, message.day = value.year, value.month, value.day
    elif schema.name == TIME:
        message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
        message.nanos = value.microsecond * 1000
    elif schema.name == TIMESTAMP:
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        message.seconds = since // timedelta(seconds=1)
        message.nanos = since % timedelta(seconds=1) // timedelta(microseconds=1) * 1000
    else:
        fill(message, schema, value)


# --- from Protobuf -------------------------------------------------------------------------------------------


def struct_of_message(message: Any, schema: ConnectSchema) -> dict[str, Any]:
    """The struct of a message. Raises `DataError` for dates that there are not."""
    struct: dict[str, Any] = {}
    for field in schema.fields:
        if is_union(field.schema):
            chosen = next((one for one in field.schema.fields if message.HasField(one.name)), None)
            struct[field.name] = None if chosen is None else {chosen.name: _get(message, chosen.name, chosen.schema)}
        else:
            struct[field.name] = _get(message, field.name, field.schema)
    return struct


def _get(message: Any, name: str, schema: ConnectSchema) -> Any:
    value, inner = getattr(message, name), schema.value_schema
    if schema.type is SchemaType.ARRAY and inner is not None:
        return [_value(one, inner) for one in value]
    if schema.type is SchemaType.MAP and inner is not None and schema.key_schema is not None:
        return {_value(key, schema.key_schema): _value(value[key], inner) for key in value}
    if message.DESCRIPTOR.fields_by_name[name].has_presence and not message.HasField(name):
        return None
    return _value(value, schema)


def _value(value: Any, schema: ConnectSchema) -> Any:
    if schema.name == DECIMAL:
        return decimal_of(value.value, value.scale)
    if schema.name in _LOGICAL:
        try:
            return _moment(value, str(schema.name))
        except (ValueError, OverflowError) as error:
            raise DataError(f"The message is no {schema.name}: {error}") from None
    if schema.type is SchemaType.STRUCT:
        return struct_of_message(value, schema)
    if ENUM in schema.parameters:
        prefix = f"{ENUM}."
        symbols = {one: key.removeprefix(prefix) for key, one in schema.parameters.items() if key.startswith(prefix)}
        return symbols.get(str(value), f"UNKNOWN_ENUM_VALUE_{schema.parameters[ENUM]}_{value}")
    if schema.type is SchemaType.INT64 and value >= _SIGNED:  # Java's long has no other form for them
        return value - 2 * _SIGNED
    return value


def _moment(value: Any, name: str) -> Any:
    if name == DATE:
        return date(value.year, value.month, value.day)
    if name == TIME:
        return time(value.hours, value.minutes, value.seconds, value.nanos // 1000)
    return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)


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
        class_and_schema = self._readers.get((named, place))
        if class_and_schema is None:
            pool = self._files.writer(named)
            descriptor = message_at(pool.FindFileByName(ROOT), place)
            if descriptor is None:
                raise SerializationError(f"The bytes name a type that their schema lacks: {[*place]}.")
            reader = MessageReader(pool, full_names=self._full_names, optional=self._optional)
            class_and_schema = message_factory.GetMessageClass(descriptor), reader.schema(descriptor)
            self._readers[named, place] = class_and_schema
        return class_and_schema

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
