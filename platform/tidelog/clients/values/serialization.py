"""From objects to bytes and back, in the shape of `confluent_kafka.serialization`.

A serializer is any callable (object, SerializationContext) -> bytes or None, a deserializer any callable
(bytes or None, SerializationContext) -> object. Numbers are big-endian, as in Kafka's Java client. None stays None.
"""

# ruff: noqa: ARG002 - the context is for those that need it

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.message import Headers


class MessageField(StrEnum):
    """The part of a message that is worked on."""

    NONE = "none"
    KEY = "key"
    VALUE = "value"


@dataclass
class SerializationContext:
    """Where an object belongs: the topic, key or value, and the message's headers."""

    topic: str
    field: MessageField
    headers: Headers | None = None


class _Serde:
    """What clients give serializers and deserializers that have these methods."""

    def set_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        """Take a function that gives the lake's address, which stands for a cluster's id; this one needs none."""

    def close(self) -> None:
        """Give back what it holds. A client calls it, at its own end, for one that it had built by a builder."""


class Serializer(_Serde):
    """A base for serializers; a plain function does as well."""

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """Return the object's bytes. Raises `SerializationError`."""
        raise NotImplementedError


class Deserializer(_Serde):
    """A base for deserializers; a plain function does as well."""

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Return the object that the bytes stand for. Raises `SerializationError`."""
        raise NotImplementedError


class SerializerBuilder:
    """A base for what builds a serializer when its client begins (`key.serializer.builder` ...)."""

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Serializer, dict[str, Any]]:
        """Return a serializer, of keys or of values, and the configuration without what only the builder knows."""
        raise NotImplementedError


class DeserializerBuilder:
    """A base for what builds a deserializer when its client begins (`key.deserializer.builder` ...)."""

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Deserializer, dict[str, Any]]:
        """Return a deserializer, of keys or of values, and the configuration without what only the builder knows."""
        raise NotImplementedError


class StringSerializer(Serializer):
    """Texts in an encoding."""

    def __init__(self, codec: str = "utf_8") -> None:
        self.codec = codec

    def __call__(self, obj: str | None, ctx: SerializationContext | None = None) -> bytes | None:
        """Return the text's bytes."""
        if obj is None:
            return None
        try:
            return obj.encode(self.codec)
        except (AttributeError, UnicodeError) as e:
            raise SerializationError(f"{obj!r} is no text that {self.codec} can write: {e}") from e


class StringDeserializer(Deserializer):
    """Texts in an encoding."""

    def __init__(self, codec: str = "utf_8") -> None:
        self.codec = codec

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> str | None:
        """Return the text."""
        if value is None:
            return None
        try:
            return value.decode(self.codec)
        except UnicodeError as e:
            raise SerializationError(f"{value!r} is no text in {self.codec}: {e}") from e


class _Packed(Serializer):
    """Numbers in a fixed form."""

    form = ""

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """Return the number's bytes."""
        if obj is None:
            return None
        try:
            return struct.pack(self.form, obj)
        except (struct.error, OverflowError) as e:
            raise SerializationError(f"{obj!r} does not fit {struct.calcsize(self.form)} bytes: {e}") from e


class _Unpacked(Deserializer):
    """Numbers in a fixed form."""

    form = ""

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Return the number."""
        if value is None:
            return None
        try:
            return struct.unpack(self.form, value)[0]
        except struct.error as e:
            raise SerializationError(f"{value!r} has not {struct.calcsize(self.form)} bytes: {e}") from e


class IntegerSerializer(_Packed):
    """Whole numbers of 32 bits, signed."""

    form = ">i"


class IntegerDeserializer(_Unpacked):
    """Whole numbers of 32 bits, signed."""

    form = ">i"


class DoubleSerializer(_Packed):
    """Floats of 64 bits (IEEE 754)."""

    form = ">d"


class DoubleDeserializer(_Unpacked):
    """Floats of 64 bits (IEEE 754)."""

    form = ">d"
