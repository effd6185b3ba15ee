"""Connect's data as JSON, with JSON Schemas in a registry: Confluent's JsonSchemaConverter."""

import json
from collections.abc import Mapping
from typing import Any, Final

from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.connect.config.definition import Importance
from tidelog.connect.config.validators import one_of
from tidelog.connect.config.values import ConfigKind
from tidelog.connect.converters.base import NOTHING, SchemaAndValue, required_schema
from tidelog.connect.converters.json_schemas import JsonSchemaReader, json_schema_of
from tidelog.connect.converters.json_values import exact_number, from_json, json_bytes, to_json
from tidelog.connect.converters.registries import registry_client, registry_failure, registry_keys, serializer_settings
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import ConnectSchema
from tidelog.schema_registry.client import SchemaRegistryClient
from tidelog.schema_registry.json_schema import JSONSerializer, check, validator_of
from tidelog.schema_registry.model import Schema, SchemaRegistryError
from tidelog.schema_registry.serdes import READER, WriterSchemas, configured, referenced

JSON_SCHEMA_KEYS: Final = (
    registry_keys()
    .define("decimal.format", ConfigKind.STRING, "BASE64", Importance.LOW,
            "How decimals are written: BASE64 (their digits as bytes) or NUMERIC.",
            validator=one_of("BASE64", "NUMERIC", any_case=True))
    .define("json.fail.invalid.schema", ConfigKind.BOOLEAN, False, Importance.MEDIUM,
            "Whether values that don't fit their schema are refused.")
    .define("use.optional.for.nonrequired", ConfigKind.BOOLEAN, False, Importance.MEDIUM,
            "Whether properties that a schema does not require are optional.")
)  # fmt: skip


class JsonSchemaConverter:
    """Keys or values as JSON behind their schema's id. `values`: a parsed configuration.

    `client`: of the registry, closed with the converter.
    """

    def __init__(self, client: SchemaRegistryClient, values: Mapping[str, Any], *, is_key: bool = False) -> None:
        self._client = client
        self._field = MessageField.KEY if is_key else MessageField.VALUE
        self._settings = serializer_settings(values) | {"validate": False}
        self._strict = values["json.fail.invalid.schema"]
        self._numeric = values["decimal.format"].upper() == "NUMERIC"
        self._loose = values["use.optional.for.nonrequired"]
        self._serializers: dict[ConnectSchema, tuple[JSONSerializer, Any]] = {}  # with what tests values, or None
        self._schemas: WriterSchemas[ConnectSchema] = WriterSchemas(
            client, configured(None, READER), self._compiled, "JSON"
        )

    def from_connect(self, topic: str, schema: ConnectSchema | None, value: Any) -> bytes | None:
        """The bytes of a value. Raises `DataError`; `RetriableConnectError` where the registry does not answer."""
        if value is None:
            return None
        schema = schema or required_schema(value)
        found = to_json(schema, value, numeric=self._numeric, registry=True)
        try:
            made = self._serializers.get(schema)
            if made is None:
                text = json.dumps(json_schema_of(schema, numeric=self._numeric))
                writes = JSONSerializer(text, self._client, conf=self._settings, json_encode=json_bytes)
                tests = validator_of(self._client, Schema(text, "JSON")) if self._strict else None
                made = self._serializers[schema] = writes, tests
            serializer, validator = made
            if validator is not None:
                check(validator, json.loads(json_bytes(found)))
            return serializer(found, SerializationContext(topic, self._field))
        except SerializationError as error:
            raise DataError(f"The value does not fit its JSON Schema: {error}") from error
        except SchemaRegistryError as error:
            raise registry_failure(error) from error

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The schema and the value of bytes. Raises as `from_connect`."""
        if data is None:
            return NOTHING
        try:
            named, payload = self._schemas.unframed(data, SerializationContext(topic, self._field))
            schema = self._schemas.writer(named)
            found = json.loads(payload, parse_float=exact_number)
        except SchemaRegistryError as error:
            raise registry_failure(error) from error
        except (SerializationError, ValueError, RecursionError) as error:
            raise DataError(f"The bytes of {topic} can't be read as JSON: {error}") from error
        return schema, from_json(schema, found, registry=True)

    def close(self) -> None:
        """Close the registry's client."""
        self._client.close()

    def _compiled(self, schema: Schema) -> ConnectSchema:
        others = {name: json.loads(text) for name, text in referenced(self._client, schema.references).items()}
        root = json.loads(schema.schema_str or "")
        return JsonSchemaReader(root, others, optional_unless_required=self._loose).schema()


def json_schema_converter(config: Mapping[str, str], is_key: bool, lake: Any) -> JsonSchemaConverter:
    """The converter of a configuration. Raises `ConnectConfigError`."""
    values = JSON_SCHEMA_KEYS.parse(config)
    return JsonSchemaConverter(registry_client(values, lake), values, is_key=is_key)
