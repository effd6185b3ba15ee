"""Protobuf's serializer and deserializer, in the shape of `confluent_kafka.schema_registry.protobuf`."""

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError, EncodeError, Message

from tidelog.clients.schema_registry.asynchronous import AsyncSchemaRegistryClient, AsyncSerde, blocking
from tidelog.clients.schema_registry.client import SchemaRegistryClient
from tidelog.clients.schema_registry.model import Schema, SchemaReference
from tidelog.clients.schema_registry.serdes import (
    READER,
    WRITER,
    SchemaChooser,
    WriterSchemas,
    configured,
    refuse_executors,
)
from tidelog.clients.schema_registry.strategies import reference_subject_name_strategy
from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import Deserializer, SerializationContext, Serializer
from tidelog.schemas.protobuf.descriptors import place_of

# Files that registries know without a reference.
_KNOWN: Final = ("google/protobuf/", "google/type/", "confluent/")

_WRITER: Final = {
    **WRITER,
    "skip.known.types": True,
    "reference.subject.name.strategy": reference_subject_name_strategy,
}


class ProtobufSerializer(Serializer):
    """Messages of one type, behind their schema's id and the type's place in its file.

    The schema is the descriptor of the type's file; files that it imports are registered before it, each under a
    subject of its own. `conf`: as AvroSerializer's without those of strictness, `skip.known.types` (True) and
    `reference.subject.name.strategy`.
    """

    def __init__(
        self,
        msg_type: type[Message],
        schema_registry_client: SchemaRegistryClient,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: object = None,
    ) -> None:
        refuse_executors(rule_conf, rule_registry)
        settings = configured(conf, _WRITER)
        self._type = msg_type
        self._client = schema_registry_client
        self._registers = settings["auto.register.schemas"]
        self._normalize = settings["normalize.schemas"]
        self._skips = settings["skip.known.types"]
        self._reference_subject: Callable[[Any, Any], str] = settings["reference.subject.name.strategy"]
        descriptor: Any = msg_type.DESCRIPTOR
        self._name = descriptor.full_name
        self.chooser: SchemaChooser[None] = SchemaChooser(
            schema_registry_client,
            settings,
            lambda _: None,
            lambda ctx: self._schema(descriptor.file, ctx),
            [*place_of(descriptor)],
        )

    def known(self, _: Any, ctx: SerializationContext | None) -> bool:
        """Whether a message can be written without asking the registry."""
        return self.chooser.known(ctx, self._name)

    def __call__(self, message: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """A message's bytes; None stays None. Raises `SerializationError`, `SchemaRegistryError`."""
        if message is None:
            return None
        if not isinstance(message, self._type):
            raise SerializationError(f"The value must be a message of type {self._name}, not {type(message).__name__}.")
        chosen = self.chooser.chosen(ctx, self._name)
        try:
            payload = message.SerializeToString()
        except EncodeError as error:
            raise SerializationError(f"The message can't be written: {error}") from error
        return self.chooser.framed(payload, ctx, chosen)

    def _schema(self, file: Any, ctx: SerializationContext | None) -> Schema:
        references = []
        for dependency in file.dependencies:
            if self._skips and dependency.name.startswith(_KNOWN):
                continue
            subject, schema = self._reference_subject(ctx, dependency), self._schema(dependency, ctx)
            if self._registers:
                self._client.register_schema(subject, schema, self._normalize)
            found = self._client.lookup_schema(subject, schema, self._normalize)
            references.append(SchemaReference(dependency.name, subject, found.version or 1))
        return Schema(base64.b64encode(file.serialized_pb).decode(), "PROTOBUF", references)


class ProtobufDeserializer(Deserializer):
    """Messages of one type, whatever schema wrote them: fields are known by their numbers.

    With a client, the schema that a message names must be there, and no rule may forbid to read it. `conf`: as
    AvroDeserializer's.
    """

    def __init__(
        self,
        message_type: type[Message],
        conf: Mapping[str, Any] | None = None,
        schema_registry_client: SchemaRegistryClient | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: object = None,
    ) -> None:
        refuse_executors(rule_conf, rule_registry)
        self._type = message_type
        self._client = schema_registry_client
        self._schemas: WriterSchemas[bool] = WriterSchemas(
            schema_registry_client, configured(conf, READER), _is_protobuf, "PROTOBUF"
        )

    def known(self, value: bytes, ctx: SerializationContext | None) -> bool:
        """Whether bytes can be read without asking the registry."""
        return self._client is None or self._schemas.known(value, ctx)

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """The message that bytes stand for; None stays None. Raises `SerializationError`."""
        if value is None:
            return None
        named, payload = self._schemas.unframed(value, ctx)
        if self._client is not None:
            self._schemas.writer(named)
            self._schemas.newest(ctx)
        message = self._type()
        try:
            message.ParseFromString(payload)
        except DecodeError as error:
            raise SerializationError(f"The message does not fit its schema {named}: {error}") from error
        return message


class AsyncProtobufSerializer(AsyncSerde[ProtobufSerializer]):
    """ProtobufSerializer for asyncio: `await AsyncProtobufSerializer(...)` makes it, `await serializer(message, ctx)`
    calls it.
    """

    def __init__(
        self,
        msg_type: type[Message],
        schema_registry_client: AsyncSchemaRegistryClient,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: object = None,
    ) -> None:
        client = blocking(schema_registry_client)
        super().__init__(lambda: ProtobufSerializer(msg_type, client, conf, rule_conf, rule_registry))


class AsyncProtobufDeserializer(AsyncSerde[ProtobufDeserializer]):
    """ProtobufDeserializer for asyncio."""

    def __init__(
        self,
        message_type: type[Message],
        conf: Mapping[str, Any] | None = None,
        schema_registry_client: AsyncSchemaRegistryClient | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: object = None,
    ) -> None:
        client = blocking(schema_registry_client)
        super().__init__(lambda: ProtobufDeserializer(message_type, conf, client, rule_conf, rule_registry))


def _is_protobuf(schema: Schema) -> bool:
    if schema.schema_type != "PROTOBUF":
        raise SerializationError(
            f"The schema is of type {schema.schema_type}, not PROTOBUF: take its own deserializer."
        )
    return True
