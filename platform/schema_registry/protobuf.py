"""Protobuf's serializer and deserializer, in the shape of `confluent_kafka.schema_registry.protobuf`."""

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError, Message

from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import Deserializer, SerializationContext, Serializer
from tidelog.schema_registry.client import SchemaRegistryClient
from tidelog.schema_registry.framing import unframed
from tidelog.schema_registry.model import RegisteredSchema, Schema, SchemaReference
from tidelog.schema_registry.serdes import DEFAULTS, SchemaChooser, configured

# Files that registries know without a reference.
_KNOWN: Final = ("google/protobuf/", "google/type/", "confluent/")


def reference_subject_name_strategy(_: SerializationContext | None, reference: Any) -> str:
    """The subject of a file that a message's file imports: the file's name."""
    return str(reference.name)


_SERIALIZER: Final = {
    **DEFAULTS,
    "skip.known.types": True,
    "reference.subject.name.strategy": reference_subject_name_strategy,
}


class ProtobufSerializer(Serializer):
    """Messages of one type, behind their schema's id and the type's place in its file.

    The schema is the descriptor of the type's file; files that it imports are registered before it, each under a
    subject of its own. `conf`: as AvroSerializer's, `skip.known.types` and `reference.subject.name.strategy`.
    """

    def __init__(
        self,
        msg_type: type[Message],
        schema_registry_client: SchemaRegistryClient,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        settings = configured(conf, _SERIALIZER)
        self._type = msg_type
        self._client = schema_registry_client
        self._registers = settings["auto.register.schemas"]
        self._normalize = settings["normalize.schemas"]
        self._skips = settings["skip.known.types"]
        self._reference_subject: Callable[[Any, Any], str] = settings["reference.subject.name.strategy"]
        self._chooser = SchemaChooser(schema_registry_client, settings)
        descriptor: Any = msg_type.DESCRIPTOR
        self._file = descriptor.file
        self._name = descriptor.full_name
        self._place = encoded_place(place_of(descriptor))
        self._by_subject: dict[str, RegisteredSchema] = {}

    def __call__(self, message: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """A message's bytes; None stays None. Raises `SerializationError`, `SchemaRegistryError`."""
        if message is None:
            return None
        if not isinstance(message, self._type):
            raise SerializationError(f"The value must be a message of type {self._name}, not {type(message).__name__}.")
        subject = self._chooser.subject(ctx, self._name)
        version = self._by_subject.get(subject)
        if version is None:
            schema = self._schema(self._file, ctx)
            version = self._by_subject[subject] = self._chooser.version(subject, schema)
        return self._chooser.framing(self._place + message.SerializeToString(), ctx, version)

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
    """Messages of one type, whatever schema wrote them: fields are known by their numbers."""

    def __init__(self, message_type: type[Message], conf: Mapping[str, Any] | None = None) -> None:
        configured(conf, {})
        self._type = message_type

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """The message that bytes stand for; None stays None. Raises `SerializationError`."""
        if value is None:
            return None
        named, payload = unframed(value, ctx)
        message = self._type()
        try:
            message.ParseFromString(payload[past_place(payload) :])
        except DecodeError as error:
            raise SerializationError(f"The message does not fit its schema {named}: {error}") from error
        return message


def place_of(descriptor: Any) -> list[int]:
    """Where a message's type is: its index in its file, or in each message that it is inside of, outermost first."""
    place: list[int] = []
    while descriptor.containing_type is not None:
        inner = [one.name for one in descriptor.containing_type.nested_types]
        place.append(inner.index(descriptor.name))
        descriptor = descriptor.containing_type
    place.append([*descriptor.file.message_types_by_name].index(descriptor.name))
    return place[::-1]


def encoded_place(place: list[int]) -> bytes:
    """A place in Confluent's form: how many numbers and the numbers, as zigzag varints; one 0 for the first type."""
    return b"\0" if place == [0] else b"".join(_varint(2 * number) for number in (len(place), *place))


def past_place(payload: bytes) -> int:
    """Where a message begins behind its type's place. Raises `SerializationError` for bytes that end before."""
    return read_place(payload)[1]


def read_place(payload: bytes) -> tuple[list[int], int]:
    """A type's place, and where the message begins behind it. Raises `SerializationError` for bytes that end before."""
    count, at = _read(payload, 0)
    place = []
    for _ in range(count // 2):
        number, at = _read(payload, at)
        place.append(number // 2)
    return place or [0], at


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _read(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(data) and shift < 35:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
    raise SerializationError("The message ends before its type's place: it is no Protobuf of a registry's serializer.")
