"""How a task reaches a registry: an address that goes with it, and what it learned, kept by its process."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.base.extras import require
from tidelog.log.lake import Lake
from tidelog.log.shared import shared_lake
from tidelog.log.storage.options import NO_OPTIONS, StoreOptions
from tidelog.operations.schemas.modules import REGISTRY_MODULES
from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.base.value_schemas import ValueSchema
from tidelog.schemas.compile import compile_schema

if TYPE_CHECKING:
    from tidelog.clients.schema_registry.client import SchemaRegistryClient
    from tidelog.clients.schema_registry.model import Schema

_NOT_FOUND: Final = 404


@dataclass(frozen=True)
class RegistryAddress:
    """Where a registry is: a lake with the options of its store, or the configuration of a client. Shows no secret."""

    lake: str | None
    store: StoreOptions = NO_OPTIONS
    settings: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, registry: "str | Mapping[str, Any] | Lake") -> "RegistryAddress":
        """The address that a caller gives: an opened lake, a lake's address, a URL, or a client's configuration."""
        if isinstance(registry, Lake):
            return cls(registry.uri, registry.options)
        if isinstance(registry, str):
            if registry.startswith(("http://", "https://")):
                return cls(None, settings=(("url", registry),))
            # Tasks run elsewhere: they need an absolute address.
            return cls(shared_lake(registry).uri)
        settings = dict(registry)
        lake = settings.pop("lake", None)
        if lake is None:
            return cls(None, settings=tuple(sorted(settings.items())))
        found = cls.of(lake)
        return cls(found.lake, found.store, tuple(sorted(settings.items())))


class KnownRegistry:
    """A registry as a process knows it: a client, and the schemas that it was asked for once."""

    def __init__(self, client: "SchemaRegistryClient", lake: Lake | None) -> None:
        self.client = client
        self.lake = lake
        self._writers: dict[int | str, ValueSchema | str] = {}

    def writer(self, named: int | str) -> ValueSchema | str:
        """The schema of an id or a guid, or why there is none.

        An id that the registry does not know is asked for again the next time. Raises `SchemaRegistryError` where the
        registry does not answer.
        """
        from tidelog.clients.schema_registry.model import SchemaRegistryError
        from tidelog.clients.schema_registry.serdes import schema_of

        writer = self._writers.get(named)
        if writer is None:
            try:
                writer = compiled(self.client, schema_of(self.client, named))
            except SchemaRegistryError as error:
                if error.http_status_code != _NOT_FOUND:
                    raise
                return f"the registry does not know it: {error.error_message}"
            except SchemaError as error:
                writer = str(error)
            self._writers[named] = writer
        return writer


_lock = threading.Lock()
# By process, as a forked one must not use its parent's connections.
_known: dict[tuple[int, RegistryAddress], KnownRegistry] = {}


def known_registry(address: RegistryAddress) -> KnownRegistry:
    """The process's own view of a registry; not to be closed by the caller."""
    require("registry", *REGISTRY_MODULES)
    from tidelog.clients.schema_registry.client import SchemaRegistryClient

    lake = None if address.lake is None else shared_lake(address.lake, address.store)
    key = (os.getpid(), address)
    with _lock:
        registry = _known.get(key)
        if registry is None or registry.lake is not lake:  # a lake made again in the same place has other schemas
            settings = dict(address.settings) | ({} if lake is None else {"lake": lake})
            registry = _known[key] = KnownRegistry(SchemaRegistryClient(settings), lake)
        return registry


def compiled(client: "SchemaRegistryClient", schema: "Schema") -> ValueSchema:
    """A registry's schema, ready to decode. Raises `SchemaError`, and `SchemaRegistryError` for its references."""
    from tidelog.clients.schema_registry.serdes import referenced

    references = tuple(referenced(client, schema.references).items())
    return compile_schema(schema.schema_type.lower(), schema.schema_str or "", references)


def reader_schema(
    address: RegistryAddress, subject: str | None, version: int | str, schema: str | None, schema_type: str
) -> ValueSchema:
    """The schema that a caller asks for: a text, or a subject's version.

    Raises `InvalidOptionError`, `SchemaError`, `SchemaRegistryError`.
    """
    if (subject is None) == (schema is None):
        raise InvalidOptionError("Give either subject, whose schema says what the columns are, or schema, its text.")
    if schema is not None:
        return compile_schema(schema_type.lower(), schema)
    client = known_registry(address).client
    return compiled(client, client.get_version(str(subject), version).schema)


def writer_schema(
    client: "SchemaRegistryClient",
    subject: str,
    version: int | str,
    schema: str | None,
    schema_type: str,
    *,
    register: bool,
    normalize: bool,
) -> tuple[ValueSchema, int]:
    """The schema to write under, and its id: a subject's version, or a text that is registered there or looked up.

    Raises `SchemaError`, `SchemaRegistryError`.
    """
    from tidelog.clients.schema_registry.model import Schema

    if schema is None:
        registered = client.get_version(subject, version)
    elif register:
        registered = client.register_schema_full_response(subject, Schema(schema, schema_type.upper()), normalize)
    else:
        registered = client.lookup_schema(subject, Schema(schema, schema_type.upper()), normalize)
    if registered.schema_id is None:
        raise InvalidOptionError(f"The registry gives no id for the schema of subject '{subject}'.")
    # The answer to a registration need not have the text.
    return compiled(client, client.get_schema(registered.schema_id, subject)), registered.schema_id


def record_name(schema: str | None, schema_type: str) -> str | None:
    """The full name that a schema's text gives its records, by which subjects may be named; None where it has none."""
    if schema is None:
        return None
    if schema_type.upper() == "PROTOBUF":
        from tidelog.schemas.protobuf.text import compiled as compiled_file

        file = compiled_file(schema, {}).file[-1]
        name = file.message_type[0].name if file.message_type else None
        return f"{file.package}.{name}" if file.package and name else name
    try:
        root = orjson.loads(schema)
    except ValueError as error:
        raise InvalidOptionError(f"The schema is no JSON: {error}") from error
    if not isinstance(root, dict):
        return None
    if schema_type.upper() == "JSON":
        return root.get("title")
    name, space = root.get("name"), root.get("namespace")
    return f"{space}.{name}" if space and name and "." not in name else name
