"""What converters with schemas in a registry have in common: their keys, the registry's client, and its failures."""

from collections.abc import Mapping
from typing import Any

from tidelog.connect.config.definition import ConfigDef, Importance
from tidelog.connect.config.values import ConfigKind, ConnectConfigError
from tidelog.connect.data.errors import DataError, RetriableConnectError
from tidelog.schema_registry.client import SchemaRegistryClient
from tidelog.schema_registry.model import SchemaRegistryError

_TEXT, _BOOLEAN = ConfigKind.STRING, ConfigKind.BOOLEAN
_SETTINGS = ("auto.register.schemas", "use.latest.version", "normalize.schemas")


def registry_keys() -> ConfigDef:
    """The keys of a registry, and of what is registered there."""
    return (
        ConfigDef()
        .define("schema.registry.url", _TEXT, "", Importance.HIGH,
                "The registry's addresses; empty for the registry in the worker's lake.")
        .define("basic.auth.user.info", ConfigKind.PASSWORD, None, Importance.MEDIUM, "user:password of the registry.")
        .define("auto.register.schemas", _BOOLEAN, True, Importance.MEDIUM, "Whether new schemas are registered.")
        .define("use.latest.version", _BOOLEAN, False, Importance.LOW,
                "Whether values are written by the newest version.")
        .define("normalize.schemas", _BOOLEAN, False, Importance.MEDIUM, "Whether schemas are normalized first.")
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
