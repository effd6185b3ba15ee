"""What a converter is, schemas of values that come without one, and what converters with a registry have in common."""

from collections.abc import Mapping
from typing import Any, Final, Protocol, runtime_checkable

from tidelog.clients.schema_registry.client import SchemaRegistryClient
from tidelog.clients.schema_registry.model import SchemaRegistryError
from tidelog.connect.config.definition import ConfigDef, Importance
from tidelog.connect.config.values import FLAG, SECRET, TEXT, ConfigKind, ConnectConfigError
from tidelog.connect.data.errors import DataError, RetriableConnectError
from tidelog.connect.data.packed import Parts, StructLayout
from tidelog.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    ConnectSchema,
    array_of,
    map_of,
)

# A schema, None where the data has none, and a value.
SchemaAndValue = tuple[ConnectSchema | None, Any]
NOTHING: Final[SchemaAndValue] = (None, None)
_SETTINGS = ("auto.register.schemas", "use.latest.version", "normalize.schemas")


class Converter(Protocol):
    """Converts keys, or values, or headers. Any thread may call it; `close` is the last call."""

    def from_connect(self, topic: str, schema: ConnectSchema | None, value: Any) -> bytes | None:
        """The bytes of a record of `topic`, None for a null. Raises `DataError`."""

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """What the bytes of a record of `topic` say. Raises `DataError`."""

    def close(self) -> None:
        """End: release what it holds open."""


@runtime_checkable
class PackedConverter(Protocol):
    """A converter that writes structs without their being put together: the bytes are those of `from_connect`."""

    def from_packed(self, topic: str, layout: StructLayout, parts: Parts) -> bytes:
        """The bytes of the struct of these parts. Raises `DataError`."""


def whole_number_schema(value: int) -> ConnectSchema:
    """The smallest of Connect's whole numbers that holds a value, INT64 for any larger one."""
    for schema, bits in ((INT8, 8), (INT16, 16), (INT32, 32)):
        if -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            return schema
    return INT64


def schema_of(value: Any) -> ConnectSchema | None:
    """The schema of a value that came without one (Connect's `Values.inferSchema`); None where there is none."""
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return INT64
    for kind, schema in ((float, FLOAT64), (str, STRING), (bytes, BYTES)):
        if isinstance(value, kind):
            return schema
    if isinstance(value, list) and (inner := _common(value)) is not None:
        return array_of(inner)
    if isinstance(value, Mapping):
        inner = _common(list(value.values()))
        if inner is not None and all(isinstance(key, str) for key in value):
            return map_of(STRING, inner)
    return None


def _common(values: list[Any]) -> ConnectSchema | None:
    found = {schema_of(one) for one in values}
    return found.pop() if len(found) == 1 else None


def required_schema(value: Any) -> ConnectSchema:
    """As `schema_of`. Raises `DataError` where there is none."""
    schema = schema_of(value)
    if schema is None:
        raise DataError("The value has no schema, and none can be seen from it. Use a source with schemas.")
    return schema


_TEXT, _BOOLEAN = ConfigKind.STRING, ConfigKind.BOOLEAN


def registry_keys() -> ConfigDef:
    """The keys of a registry, and of what is registered there."""
    return (
        ConfigDef()
        .define("schema.registry.url", TEXT, "", Importance.HIGH,
                "The registry's addresses; empty for the registry in the worker's lake.")
        .define("basic.auth.user.info", SECRET, None, Importance.MEDIUM, "user:password of the registry.")
        .define("auto.register.schemas", FLAG, True, Importance.MEDIUM, "Whether new schemas are registered.")
        .define("use.latest.version", FLAG, False, Importance.LOW,
                "Whether values are written by the newest version.")
        .define("normalize.schemas", FLAG, False, Importance.MEDIUM, "Whether schemas are normalized first.")
    )  # fmt: skip


def registry_client(values: Mapping[str, Any], lake: Any) -> SchemaRegistryClient:
    """The client of a parsed configuration. Raises `ConnectConfigError`."""
    conf: dict[str, Any] = {"url": values["schema.registry.url"]} if values["schema.registry.url"] else {"lake": lake}
    if not values["schema.registry.url"] and lake is None:
        raise ConnectConfigError("schema.registry.url is missing. Give the registry's address.")
    if values["basic.auth.user.info"] is not None:
        conf["basic.auth.user.info"] = values["basic.auth.user.info"].text
    return SchemaRegistryClient(conf)


def serializer_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the project's serializers take of a parsed configuration."""
    settings = {key: values[key] for key in _SETTINGS}
    if settings["use.latest.version"]:
        settings["auto.register.schemas"] = False
    return settings


def registry_failure(error: SchemaRegistryError) -> Exception:
    """What a registry's refusal means for a record: one that does not answer may do so later."""
    if error.http_status_code < 400 or error.http_status_code >= 500:
        return RetriableConnectError(f"The registry does not answer: {error}")
    return DataError(f"The registry refused the schema: {error}")
