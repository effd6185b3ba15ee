"""Protobuf's serializers and deserializers: `clients/schema_registry/protobuf.py`."""

from tidelog.clients.schema_registry.protobuf import (
    AsyncProtobufDeserializer,
    AsyncProtobufSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)

__all__ = ["AsyncProtobufDeserializer", "AsyncProtobufSerializer", "ProtobufDeserializer", "ProtobufSerializer"]
