"""JSON's serializers and deserializers: `clients/schema_registry/json_schema.py`."""

from tidelog.clients.schema_registry.json_schema import (
    AsyncJSONDeserializer,
    AsyncJSONSerializer,
    JSONDeserializer,
    JSONSerializer,
)

__all__ = ["AsyncJSONDeserializer", "AsyncJSONSerializer", "JSONDeserializer", "JSONSerializer"]
