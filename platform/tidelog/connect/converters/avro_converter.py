"""Connect's data as Avro, with schemas in a registry: Confluent's AvroConverter."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from tidelog.clients.schema_registry.avro import AvroSerializer
from tidelog.clients.schema_registry.avro_payloads import MOST_VALUES, AvroPayloads, parsed_avro
from tidelog.clients.schema_registry.client import SchemaRegistryClient
from tidelog.clients.schema_registry.model import Schema, SchemaRegistryError
from tidelog.clients.schema_registry.serdes import READER, WriterSchemas, configured, referenced
from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.connect.converters.avro_schemas import UNION, AvroWriter, connect_schema_of
from tidelog.connect.converters.base import (
    NOTHING,
    SchemaAndValue,
    registry_client,
    registry_failure,
    registry_keys,
    required_schema,
    serializer_settings,
)
from tidelog.connect.converters.json_values import decimal_of, unscaled
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import ALL_DIGITS, DECIMAL, SCALE, ConnectSchema, SchemaType, check_value
from tidelog.schemas.avro.reading import read
from tidelog.schemas.base.errors import SchemaError

AVRO_KEYS: Final = registry_keys()
_KEPT_LOGICAL: Final = frozenset({"decimal", "date", "time-millis", "timestamp-millis"})


class AvroConverter:
    """Keys or values as Avro behind their schema's id. `client`: of the registry, closed with the converter."""

    def __init__(
        self, client: SchemaRegistryClient, *, is_key: bool = False, settings: Mapping[str, Any] | None = None
    ) -> None:
        self._client = client
        self._field = MessageField.KEY if is_key else MessageField.VALUE
        self._settings = dict(settings or {})
        self._serializers: dict[ConnectSchema, AvroSerializer] = {}
        self._schemas: WriterSchemas[tuple[AvroPayloads, ConnectSchema]] = WriterSchemas(
            client, configured(None, READER), self._compiled, "AVRO"
        )

    def from_connect(self, topic: str, schema: ConnectSchema | None, value: Any) -> bytes | None:
        """The bytes of a value. Raises `DataError`; `RetriableConnectError` where the registry does not answer."""
        if value is None:
            return None
        schema = schema or required_schema(value)
        check_value(schema, value)
        serializer = self._serializers.get(schema)
        if serializer is None:
            text = json.dumps(AvroWriter().schema(schema))
            try:
                serializer = AvroSerializer(self._client, text, conf=self._settings)
            except SerializationError as error:
                raise DataError(f"The schema can't be Avro: {error}") from error
            self._serializers[schema] = serializer
        try:
            whole = schema.name == DECIMAL and not schema.optional
            written = unscaled(value, int(schema.parameters[SCALE])) if whole else _to_avro(schema, value)
            return serializer(written, SerializationContext(topic, self._field))
        except SerializationError as error:
            raise DataError(f"The value can't be Avro: {error}") from error
        except SchemaRegistryError as error:
            raise registry_failure(error) from error

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The schema and the value of bytes. Raises as `from_connect`."""
        if data is None:
            return NOTHING
        try:
            named, payload = self._schemas.unframed(data, SerializationContext(topic, self._field))
            writer, schema = self._schemas.writer(named)
            value = writer.read(payload, return_record_name=True)
            if writer.is_bytes:
                return schema, decimal_of(value, int(schema.parameters[SCALE])) if schema.name == DECIMAL else value
            return schema, _to_connect(schema, value)
        except SchemaRegistryError as error:
            raise registry_failure(error) from error
        except RecursionError as error:
            raise DataError(f"The value of {topic} is nested too deep: {error}") from error
        except (SerializationError, SchemaError, ValueError, TypeError, KeyError, EOFError, IndexError) as error:
            raise DataError(f"The bytes of {topic} can't be read as Avro: {error}") from error

    def close(self) -> None:
        """Close the registry's client."""
        self._client.close()

    def _compiled(self, schema: Schema) -> tuple[AvroPayloads, ConnectSchema]:
        """What reads payloads, and the Connect schema."""
        text, references = schema.schema_str or "", referenced(self._client, schema.references).values()
        payloads = AvroPayloads(*parsed_avro(text, references, _read_by_connect))
        if payloads.values > MOST_VALUES:  # each record that is named is written out below, as often as it is named
            raise SerializationError(f"The schema has more than {MOST_VALUES} fields, written out.")
        root, _ = read(text, references, strict=False)
        return payloads, connect_schema_of(root)


def _read_by_connect(avro: Any) -> Any:
    """The schema without logical types that Connect's data lacks, so that their values are read as plain ones."""
    if isinstance(avro, list):
        return [_read_by_connect(one) for one in avro]
    if not isinstance(avro, dict):
        return avro
    schema = {key: one for key, one in avro.items() if key != "logicalType" or one in _KEPT_LOGICAL}
    for key in ("type", "items", "values"):
        if isinstance(schema.get(key), dict | list):
            schema[key] = _read_by_connect(schema[key])
    if isinstance(schema.get("fields"), list):
        schema["fields"] = [_read_by_connect(one) for one in schema["fields"]]
    return schema


def _to_avro(schema: ConnectSchema, value: Any) -> Any:
    """A value as fastavro takes it."""
    if value is None:
        return None
    if schema.name == DECIMAL:
        return Decimal(value).quantize(Decimal(1).scaleb(-int(schema.parameters[SCALE])), context=ALL_DIGITS)
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    if schema.type is SchemaType.STRUCT:
        if schema.name == UNION:
            chosen = next((one for one in schema.fields if value.get(one.name) is not None), None)
            return None if chosen is None else _to_avro(chosen.schema, value[chosen.name])
        fields = {one.name: (one.schema, value.get(one.name)) for one in schema.fields}
        return {
            name: _to_avro(kind, kind.default if one is None and not kind.optional else one)
            for name, (kind, one) in fields.items()
        }
    if schema.type is SchemaType.ARRAY and schema.value_schema is not None:
        return [_to_avro(schema.value_schema, one) for one in value]
    if schema.type is SchemaType.MAP and schema.key_schema is not None and schema.value_schema is not None:
        pairs = [(_to_avro(schema.key_schema, key), _to_avro(schema.value_schema, one)) for key, one in value.items()]
        if schema.key_schema.type is SchemaType.STRING and not schema.key_schema.optional:
            return dict(pairs)
        return [{"key": key, "value": one} for key, one in pairs]
    return bytes(value) if schema.type is SchemaType.BYTES else value


def _to_connect(schema: ConnectSchema, value: Any) -> Any:
    """A value of fastavro's as Connect has it."""
    if value is None:
        return None
    if isinstance(value, tuple):  # a record of a union, with its name
        named, value = value
        if schema.name == UNION:
            short = str(named).rpartition(".")[2]
            field = schema.field_named(short)
            return {short: _to_connect(field.schema, value)} if field is not None else {}
    if schema.name == UNION:
        return _branch(schema, value)
    if schema.type is SchemaType.STRUCT:
        return {one.name: _to_connect(one.schema, value.get(one.name)) for one in schema.fields}
    if schema.type is SchemaType.ARRAY and schema.value_schema is not None:
        return [_to_connect(schema.value_schema, one) for one in value]
    if schema.type is SchemaType.MAP and schema.key_schema is not None and schema.value_schema is not None:
        pairs = value.items() if isinstance(value, dict) else ((one["key"], one["value"]) for one in value)
        return {_to_connect(schema.key_schema, key): _to_connect(schema.value_schema, one) for key, one in pairs}
    return value


def _branch(schema: ConnectSchema, value: Any) -> dict[str, Any]:
    """The struct of a union's value: the first branch that the value is of."""
    for field in schema.fields:
        try:
            check_value(field.schema, value)
        except DataError:
            continue
        return {field.name: value}
    raise DataError(f"A union's value {value!r} is of none of its branches.")


def avro_converter(config: Mapping[str, str], is_key: bool, lake: Any) -> AvroConverter:
    """The converter of a configuration. Raises `ConnectConfigError`."""
    values = AVRO_KEYS.parse(config)
    return AvroConverter(registry_client(values, lake), is_key=is_key, settings=serializer_settings(values))
