"""Converters of texts, bytes, numbers and headers (`StringConverter`, `ByteArrayConverter`, and others)."""

import json
import re
import struct
from typing import Any, Final

from tidelog.connect.converters.base import NOTHING, SchemaAndValue, schema_of, whole_number_schema
from tidelog.connect.converters.json_values import shown
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    ConnectSchema,
    SchemaType,
)

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?")
# Bytes of a header that are looked into for an array or a map.
_MOST: Final = 64 * 1024


class _HoldsNothing:
    def close(self) -> None:
        """Nothing to release."""


class StringConverter(_HoldsNothing):
    """`org.apache.kafka.connect.storage.StringConverter`: texts in an encoding; other values as Java's `toString`."""

    def __init__(self, encoding: str = "UTF-8") -> None:
        self._encoding = encoding

    def from_connect(self, topic: str, schema: ConnectSchema | None, value: Any) -> bytes | None:  # noqa: ARG002
        """The text in its encoding."""
        try:
            return None if value is None else shown(value).encode(self._encoding)
        except UnicodeError as error:
            raise DataError(f"Failed to serialize to a string: {error}") from None

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """A text that may be null."""
        try:
            return STRING.as_optional(), None if data is None else data.decode(self._encoding)
        except UnicodeError as error:
            raise DataError(f"Failed to deserialize a string of topic {topic}: {error}") from None


class ByteArrayConverter(_HoldsNothing):
    """`org.apache.kafka.connect.converters.ByteArrayConverter`: bytes as they are."""

    def from_connect(self, topic: str, schema: ConnectSchema | None, value: Any) -> bytes | None:
        """The bytes. Raises `DataError` for any other value."""
        if schema is not None and schema.type is not SchemaType.BYTES:
            raise DataError(
                f"Invalid schema type for ByteArrayConverter: {schema.type.name}, in topic {topic}. It takes BYTES:"
                " choose another converter."
            )
        if value is None:
            return None
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise DataError(f"ByteArrayConverter is not compatible with objects of type {type(value).__name__}")
        return bytes(value)

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """Bytes that may be null."""
        return BYTES.as_optional(), data


class NumberConverter(_HoldsNothing):
    """One kind of numbers, big endian: `LongConverter` and its siblings of `org.apache.kafka.connect.converters`."""

    def __init__(self, kind: ConnectSchema) -> None:
        self._kind = kind
        formats = {INT16: ">h", INT32: ">i", INT64: ">q", FLOAT32: ">f", FLOAT64: ">d", BOOLEAN: ">?"}
        self._format = struct.Struct(formats[kind])

    def from_connect(self, topic: str, schema: ConnectSchema | None, value: Any) -> bytes | None:
        """The number's bytes. Raises `DataError` for what is no such number."""
        if value is None:
            return None
        flag = self._kind.type is SchemaType.BOOLEAN
        if isinstance(value, bool) is not flag or (schema is not None and schema.type is not self._kind.type):
            raise self._refused(topic, value)
        try:
            return self._format.pack(value)
        except (struct.error, OverflowError):
            raise self._refused(topic, value) from None

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The number, which may be null."""
        if data is None:
            return self._kind.as_optional(), None
        try:
            return self._kind.as_optional(), self._format.unpack(data)[0]
        except struct.error:
            raise DataError(
                f"{len(data)} bytes of topic {topic} are no {self._kind.type.name}, which has {self._format.size}."
            ) from None

    def _refused(self, topic: str, value: Any) -> DataError:
        return DataError(f"{type(value).__name__} is no {self._kind.type.name}, in topic {topic}.")


class SimpleHeaderConverter(_HoldsNothing):
    """`org.apache.kafka.connect.storage.SimpleHeaderConverter`: headers whose types are read from their texts.

    It writes values as text; reads null, booleans, numbers, arrays and maps in JSON, all else as strings.
    """

    def from_connect(self, topic: str, schema: ConnectSchema | None, value: Any) -> bytes | None:  # noqa: ARG002
        """The text in UTF-8."""
        return None if value is None else shown(value).encode("utf-8", "surrogatepass")

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """What the text says, with the smallest schema that fits."""
        if data is None:
            return NOTHING
        text = data.decode("utf-8", "replace")
        if text == "null":
            return NOTHING
        if text in ("true", "false"):
            return BOOLEAN, text == "true"
        if _WHOLE.fullmatch(text):
            return whole_number_schema(int(text)), int(text)
        if _NUMBER.fullmatch(text):
            return FLOAT64, float(text)
        if text[:1] in ("[", "{") and len(data) <= _MOST:
            try:
                value = json.loads(text)
                return schema_of(value), value
            except (ValueError, RecursionError):
                pass
        return STRING, text
