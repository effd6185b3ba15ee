"""Avro's serializer and deserializer, in the shape of `confluent_kafka.schema_registry.avro`, by fastavro."""

import io
from collections.abc import Callable, Mapping
from typing import Any, Final

from fastavro import schemaless_writer

from tidelog.clients.schema_registry.asynchronous import AsyncSchemaRegistryClient, AsyncSerde, blocking
from tidelog.clients.schema_registry.avro_payloads import AvroPayloads, parsed_avro
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

_WRITER: Final = {**WRITER, "validate.strict": False, "validate.strict.allow.default": False}


class AvroSerializer(Serializer):
    """Objects as Avro, behind their schema's id.

    `schema_str`: a schema as JSON text, or a `Schema` with its references; None with `use.latest.version` or
    `use.schema.id`. `to_dict`: makes of (object, context) what fastavro takes. `conf`: `auto.register.schemas` (True),
    `normalize.schemas`, `use.latest.version`, `use.schema.id`, `use.latest.with.metadata`, `subject.name.strategy` or
    its `.type` (TOPIC, RECORD, TOPIC_RECORD, ASSOCIATED) and `.conf`, `schema.id.serializer`, `validate.strict`,
    `validate.strict.allow.default`. `rule_conf` and `rule_registry` are refused: rules don't run.
    """

    def __init__(
        self,
        schema_registry_client: SchemaRegistryClient,
        schema_str: str | Schema | None = None,
        to_dict: Callable[[Any, SerializationContext | None], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: object = None,
    ) -> None:
        refuse_executors(rule_conf, rule_registry)
        if to_dict is not None and not callable(to_dict):
            raise ValueError("to_dict must be callable, as to_dict(object, SerializationContext).")
        settings = configured(conf, _WRITER)
        self._to_dict = to_dict
        self._strict = {
            "strict": settings["validate.strict"],
            "strict_allow_default": settings["validate.strict.allow.default"],
        }
        schema = Schema(schema_str) if isinstance(schema_str, str) else schema_str
        self._name = None if schema is None else _name(parsed_schema(schema_registry_client, schema))
        self.chooser: SchemaChooser[Any] = SchemaChooser(
            schema_registry_client, settings, lambda one: parsed_schema(schema_registry_client, one), lambda _: schema
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
        if _is_bytes(chosen.compiled):  # as they are, without the length before them, as confluent-kafka writes them
            payload = value if isinstance(value, bytes) else str(value).encode()
            return self.chooser.framed(payload, ctx, chosen)
        buffer = io.BytesIO()
        try:
            schemaless_writer(buffer, chosen.compiled, value, **self._strict)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise SerializationError(
                f"The value does not fit the schema '{_name(chosen.compiled)}': {error}"
            ) from error
        return self.chooser.framed(buffer.getvalue(), ctx, chosen)


class AvroDeserializer(Deserializer):
    """Objects from Avro, read by the schema that wrote them, as `schema_str` says where it is given.

    `from_dict`: makes of (what fastavro gives, context) an object. `return_record_name`: records of unions come as
    (name, record). `conf`: `use.latest.version` and `use.latest.with.metadata` (read as that version says; the keys of
    subjects as AvroSerializer's), `schema.id.deserializer`.
    """

    def __init__(
        self,
        schema_registry_client: SchemaRegistryClient,
        schema_str: str | Schema | None = None,
        from_dict: Callable[[Any, SerializationContext | None], Any] | None = None,
        return_record_name: bool = False,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: object = None,
    ) -> None:
        refuse_executors(rule_conf, rule_registry)
        if from_dict is not None and not callable(from_dict):
            raise ValueError("from_dict must be callable, as from_dict(dict, SerializationContext).")
        if not isinstance(return_record_name, bool):
            raise ValueError("return_record_name must be a boolean value.")
        self._from_dict = from_dict
        self._return_record_name = return_record_name
        reader = Schema(schema_str) if isinstance(schema_str, str) else schema_str
        self._reader = None if reader is None else parsed_schema(schema_registry_client, reader)
        self._schemas: WriterSchemas[AvroPayloads] = WriterSchemas(
            schema_registry_client,
            configured(conf, READER),
            lambda one: payloads_of(schema_registry_client, one),
            "AVRO",
        )

    def known(self, value: bytes, ctx: SerializationContext | None) -> bool:
        """Whether bytes can be read without asking the registry."""
        return self._schemas.known(value, ctx)

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """The object that bytes stand for; None stays None. Raises `SerializationError`, `SchemaRegistryError`."""
        if value is None:
            return None
        named, payload = self._schemas.unframed(value, ctx)
        writer = self._schemas.writer(named)
        reader: Any = None
        if not writer.is_bytes:
            newest = self._schemas.newest(ctx)
            reader = self._reader if newest is None else newest.parsed
        try:
            datum = writer.read(payload, reader, return_record_name=self._return_record_name)
        except SerializationError as error:
            raise SerializationError(f"The message does not fit its schema {named}: {error}") from error
        return datum if self._from_dict is None else self._from_dict(datum, ctx)


class AsyncAvroSerializer(AsyncSerde[AvroSerializer]):
    """AvroSerializer for asyncio: `await AsyncAvroSerializer(...)` makes it, `await serializer(obj, ctx)` calls it."""

    def __init__(
        self,
        schema_registry_client: AsyncSchemaRegistryClient,
        schema_str: str | Schema | None = None,
        to_dict: Callable[[Any, SerializationContext | None], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: object = None,
    ) -> None:
        client = blocking(schema_registry_client)
        super().__init__(lambda: AvroSerializer(client, schema_str, to_dict, conf, rule_conf, rule_registry))


class AsyncAvroDeserializer(AsyncSerde[AvroDeserializer]):
    """AvroDeserializer for asyncio."""

    def __init__(
        self,
        schema_registry_client: AsyncSchemaRegistryClient,
        schema_str: str | Schema | None = None,
        from_dict: Callable[[Any, SerializationContext | None], Any] | None = None,
        return_record_name: bool = False,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: object = None,
    ) -> None:
        client = blocking(schema_registry_client)
        super().__init__(
            lambda: AvroDeserializer(client, schema_str, from_dict, return_record_name, conf, rule_conf, rule_registry)
        )


def parsed_schema(client: SchemaRegistryClient, schema: Schema) -> Any:
    """A schema as fastavro takes it, with what it references. Raises `SerializationError` for what is no Avro."""
    return _parsed(client, schema)[0]


def payloads_of(client: SchemaRegistryClient, schema: Schema) -> AvroPayloads:
    """What reads the payloads that a schema wrote. Raises `SerializationError` for what is no Avro."""
    return AvroPayloads(*_parsed(client, schema))


def _parsed(client: SchemaRegistryClient, schema: Schema) -> tuple[Any, dict[str, Any]]:
    """The schema, and all types that it names."""
    if schema.schema_type != "AVRO":
        raise SerializationError(f"The schema is of type {schema.schema_type}, not AVRO: take its own deserializer.")
    return parsed_avro(schema.schema_str or "", referenced(client, schema.references).values())


def _name(parsed: Any) -> str | None:
    if isinstance(parsed, Mapping):
        return str(parsed.get("name", parsed.get("type")))
    return parsed if isinstance(parsed, str) else None


def _is_bytes(parsed: Any) -> bool:
    return parsed == "bytes" or (isinstance(parsed, Mapping) and parsed.get("type") == "bytes")
