"""A schema registry: Confluent's rules and API over the topic `_schemas` of a lake."""

from typing import Final

# The modules of the extra `registry`.
REGISTRY_MODULES: Final = ("jsonschema_rs", "protoxy", "proto_schema_parser", "scramp", "starlette", "uvicorn")
