"""JSON's serializer and deserializer, in the shape of `confluent_kafka.schema_registry.json_schema`."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import jsonschema_rs
import orjson

from tidelog.clients.schema_registry.asynchronous import AsyncSchemaRegistryClient, AsyncSerde, blocking
from tidelog.clients.schema_registry.client import SchemaRegistryClient
from tidelog.clients.schema_registry.model import Schema
from tidelog.clients.schema_registry.serdes import (
    READER,
    WRITER,
    SchemaChooser,
    WriterSchemas,
    configured,
    referenced,
    refuse_executors,
)
from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import Deserializer, SerializationContext, Serializer

_WRITER: Final = {**WRITER, "validate": True}
_READER: Final = {**READER, "validate": True}


class JSONSerializer(Serializer):
    """Objects as JSON that fits a schema, behind the schema's id.

    `schema_str`: a schema as JSON text, or a `Schema` with its references; None with `use.latest.version` or
    `use.schema.id`. `to_dict`: makes of (object, context) what JSON takes. `conf`: as AvroSerializer's without those of
    strictness, and `validate` (True). `json_encode`: makes text or bytes of a value.
    """

    def __init__(
        self,
        schema_str: str | Schema | None,
        schema_registry_client: SchemaRegistryClient,
        to_dict: Callable[[Any, SerializationContext | None], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: object = None,
        json_encode: Callable[[Any], str | bytes] | None = None,
    ) -> None:
        refuse_executors(rule_conf, rule_registry)
        if to_dict is not None and not callable(to_dict):
            raise ValueError("to_dict must be callable, as to_dict(object, SerializationContext).")
        settings = configured(conf, _WRITER)
        self._to_dict = to_dict
        self._encode: Callable[[Any], str | bytes] = json_encode or orjson.dumps
        self._validate = settings["validate"]
        schema = Schema(schema_str, "JSON") if isinstance(schema_str, str) else schema_str
        self._name = None if schema is None else _title(schema)
        self.chooser: SchemaChooser[jsonschema_rs.Validator] = SchemaChooser(
            schema_registry_client, settings, lambda one: validator_of(schema_registry_client, one), lambda _: schema
        )

    def known(self, _: Any, ctx: SerializationContext | None) -> bool:
        """Whether an object can be written without asking the registry."""
        return self.chooser.known(ctx, self._name)

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """An object's bytes; None stays None. Raises `SerializationError`, `SchemaRegistryError`."""
        if obj is None:
            return None
        chosen = self.chooser.chosen(ctx, self._name)
        value = obj if self._to_dict is None else self._to_dict(obj, ctx)
        if self._validate:
            check(chosen.compiled, value)
        try:
            payload = self._encode(value)
        except (TypeError, ValueError) as error:
            raise SerializationError(f"The value can't be written as JSON: {error}") from error
        return self.chooser.framed(payload.encode() if isinstance(payload, str) else payload, ctx, chosen)


class JSONDeserializer(Deserializer):
    """Objects from JSON. `schema_str`: what values must fit; None: the schema that they name.

    `from_dict`: makes of (value, context) an object. `conf`: `validate` (True), and AvroDeserializer's. `json_decode`:
    makes a value of bytes.
    """

    def __init__(
        self,
        schema_str: str | Schema | None,
        from_dict: Callable[[Any, SerializationContext | None], Any] | None = None,
        schema_registry_client: SchemaRegistryClient | None = None,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: object = None,
        json_decode: Callable[[bytes], Any] | None = None,
    ) -> None:
        refuse_executors(rule_conf, rule_registry)
        if schema_str is None and schema_registry_client is None:
            raise ValueError("The deserializer needs a schema, or a client that knows the schemas that values name.")
        if from_dict is not None and not callable(from_dict):
            raise ValueError("from_dict must be callable, as from_dict(dict, SerializationContext).")
        settings = configured(conf, _READER)
        self._client = schema_registry_client
        self._from_dict = from_dict
        self._decode: Callable[[bytes], Any] = json_decode or orjson.loads
        self._validate = settings["validate"]
        schema = Schema(schema_str, "JSON") if isinstance(schema_str, str) else schema_str
        self._reader = None if schema is None else validator_of(schema_registry_client, schema)
        self._schemas: WriterSchemas[jsonschema_rs.Validator] = WriterSchemas(
            schema_registry_client, settings, lambda one: validator_of(schema_registry_client, one), "JSON"
        )

    def known(self, value: bytes, ctx: SerializationContext | None) -> bool:
        """Whether bytes can be read without asking the registry."""
        return self._schemas.known(value, ctx)

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """The object that bytes stand for; None stays None. Raises `SerializationError`, `SchemaRegistryError`."""
        if value is None:
            return None
        named, payload = self._schemas.unframed(value, ctx)
        writer = None if self._client is None else self._schemas.writer(named)
        try:
            instance = self._decode(payload)
        except ValueError as error:
            raise SerializationError(f"The message is no JSON: {error}") from error
        validator = self._schemas.newest(ctx) or self._reader or writer
        if self._validate and validator is not None:
            check(validator, instance)
        return instance if self._from_dict is None else self._from_dict(instance, ctx)


class AsyncJSONSerializer(AsyncSerde[JSONSerializer]):
    """JSONSerializer for asyncio: `await AsyncJSONSerializer(...)` makes it, `await serializer(obj, ctx)` calls it."""

    def __init__(
        self,
        schema_str: str | Schema | None,
        schema_registry_client: AsyncSchemaRegistryClient,
        to_dict: Callable[[Any, SerializationContext | None], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: object = None,
        json_encode: Callable[[Any], str | bytes] | None = None,
    ) -> None:
        client = blocking(schema_registry_client)
        super().__init__(
            lambda: JSONSerializer(schema_str, client, to_dict, conf, rule_conf, rule_registry, json_encode)
        )


class AsyncJSONDeserializer(AsyncSerde[JSONDeserializer]):
    """JSONDeserializer for asyncio."""

    def __init__(
        self,
        schema_str: str | Schema | None,
        from_dict: Callable[[Any, SerializationContext | None], Any] | None = None,
        schema_registry_client: AsyncSchemaRegistryClient | None = None,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: object = None,
        json_decode: Callable[[bytes], Any] | None = None,
    ) -> None:
        client = blocking(schema_registry_client)
        super().__init__(
            lambda: JSONDeserializer(schema_str, from_dict, client, conf, rule_conf, rule_registry, json_decode)
        )


def check(validator: jsonschema_rs.Validator, value: Any) -> None:
    """Raise `SerializationError` where a value does not fit a schema, with the place."""
    try:
        if validator.is_valid(value):
            return
        error = next(iter(validator.iter_errors(value)))
    except (ValueError, RecursionError) as failed:  # what the validator does not take: nested too deep, say
        raise SerializationError(f"The value can't be compared with its schema: {failed}") from failed
    place = "/".join(str(step) for step in ("#", *error.instance_path))
    raise SerializationError(f"The value does not fit its schema at '{place}': {error.message}")


def validator_of(client: SchemaRegistryClient | None, schema: Schema) -> jsonschema_rs.Validator:
    """What tests values by a schema and those that it references; no other ones are looked for.

    Raises `SerializationError` for what is no JSON Schema.
    """
    if schema.schema_type != "JSON":
        raise SerializationError(f"The schema is of type {schema.schema_type}, not JSON: take its own deserializer.")
    texts = referenced(client, schema.references) if client is not None else {}

    def retriever(uri: str) -> Any:
        for name, text in texts.items():
            if uri == name or uri.endswith(f"/{name}"):
                return orjson.loads(text)
        raise KeyError(f"no schema is referenced under {uri}")

    try:
        return jsonschema_rs.validator_for(orjson.loads(schema.schema_str or ""), retriever=retriever)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise SerializationError(f"The schema is no JSON Schema: {error}") from error


def _title(schema: Schema) -> str | None:
    try:
        root = orjson.loads(schema.schema_str or "")
    except ValueError as error:
        raise SerializationError(f"The schema is no JSON: {error}") from error
    return root.get("title") if isinstance(root, dict) else None
