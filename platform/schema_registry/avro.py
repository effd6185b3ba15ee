"""Avro's serializer and deserializer, in the shape of `confluent_kafka.schema_registry.avro`, by fastavro."""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer

from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import Deserializer, SerializationContext, Serializer
from tidelog.schema_registry.client import SchemaRegistryClient
from tidelog.schema_registry.framing import unframed
from tidelog.schema_registry.model import RegisteredSchema, Schema
from tidelog.schema_registry.serdes import SchemaChooser, configured, referenced, schema_of


class AvroSerializer(Serializer):
    """Objects as Avro, behind their schema's id.

    `schema_str`: a schema as JSON text, or a `Schema` with its references; None with `use.latest.version` or
    `use.schema.id`. `to_dict`: makes of (object, context) what fastavro takes. `conf`: `auto.register.schemas`,
    `normalize.schemas`, `use.latest.version`, `use.schema.id`, `use.latest.with.metadata`, `subject.name.strategy`,
    `schema.id.serializer`.
    """

    def __init__(
        self,
        schema_registry_client: SchemaRegistryClient,
        schema_str: str | Schema | None = None,
        to_dict: Callable[[Any, SerializationContext | None], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        self._client = schema_registry_client
        self._to_dict = to_dict
        self._chooser = SchemaChooser(schema_registry_client, configured(conf))
        self._schema = Schema(schema_str) if isinstance(schema_str, str) else schema_str
        self._by_subject: dict[str, tuple[RegisteredSchema, Any]] = {}
        self._name = None if self._schema is None else _name(parsed_schema(self._client, self._schema))

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """An object's bytes; None stays None. Raises `SerializationError`, `SchemaRegistryError`."""
        if obj is None:
            return None
        subject = self._chooser.subject(ctx, self._name)
        known = self._by_subject.get(subject)
        if known is None:
            chosen = self._chooser.version(subject, self._schema)
            known = self._by_subject[subject] = chosen, parsed_schema(self._client, chosen.schema)
        version, parsed = known
        value = obj if self._to_dict is None else self._to_dict(obj, ctx)
        buffer = io.BytesIO()
        try:
            schemaless_writer(buffer, parsed, value)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise SerializationError(f"The value does not fit the schema '{_name(parsed)}': {error}") from error
        return self._chooser.framing(buffer.getvalue(), ctx, version)


class AvroDeserializer(Deserializer):
    """Objects from Avro, read by the schema that wrote them, as `schema_str` says where it is given.

    `from_dict`: makes of (what fastavro gives, context) an object. `return_record_name`: records of unions come as
    (name, record).
    """

    def __init__(
        self,
        schema_registry_client: SchemaRegistryClient,
        schema_str: str | Schema | None = None,
        from_dict: Callable[[Any, SerializationContext | None], Any] | None = None,
        return_record_name: bool = False,
    ) -> None:
        self._client = schema_registry_client
        self._from_dict = from_dict
        self._return_record_name = return_record_name
        reader = Schema(schema_str) if isinstance(schema_str, str) else schema_str
        self._reader = None if reader is None else parsed_schema(schema_registry_client, reader)
        self._writers: dict[int | str, Any] = {}

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """The object that bytes stand for; None stays None. Raises `SerializationError`, `SchemaRegistryError`."""
        if value is None:
            return None
        named, payload = unframed(value, ctx)
        writer = self._writers.get(named)
        if writer is None:
            writer = self._writers[named] = parsed_schema(self._client, schema_of(self._client, named))
        try:
            found = schemaless_reader(
                io.BytesIO(payload), writer, self._reader, return_record_name=self._return_record_name
            )
        except (ValueError, TypeError, KeyError, IndexError, EOFError) as error:
            raise SerializationError(f"The message does not fit its schema {named}: {error}") from error
        return found if self._from_dict is None else self._from_dict(found, ctx)


def parsed_schema(client: SchemaRegistryClient, schema: Schema) -> Any:
    """A schema as fastavro takes it, with what it references. Raises `SerializationError` for what is no Avro."""
    if schema.schema_type != "AVRO":
        raise SerializationError(f"The schema is of type {schema.schema_type}, not AVRO: take its own deserializer.")
    named: dict[str, Any] = {}
    try:
        for text in referenced(client, schema.references).values():
            parse_schema(_json(text), named_schemas=named)
        return parse_schema(_json(schema.schema_str or ""), named_schemas=named)
    except (ValueError, TypeError, KeyError) as error:
        raise SerializationError(f"The schema is no Avro: {error}") from error
    except Exception as error:
        if type(error).__module__.startswith("fastavro"):
            raise SerializationError(f"The schema is no Avro: {error}") from error
        raise


def _json(text: str) -> Any:
    text = text.strip()
    return text if text and text[0] not in '{["' else json.loads(text)


def _name(parsed: Any) -> str | None:
    if isinstance(parsed, Mapping):
        return str(parsed.get("name", parsed.get("type")))
    return parsed if isinstance(parsed, str) else None
