"""What the extra `registry` installs; imported by commands, so nothing of it is."""

from typing import Final

# The modules that are tried before a registry starts, or a schema is read.
REGISTRY_MODULES: Final = (
    "jsonschema_rs",
    "prometheus_client",
    "protoxy",
    "proto_schema_parser",
    "scramp",
    "starlette",
    "uvicorn",
)
