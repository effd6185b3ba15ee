"""What serializers of all kinds share: configuration, subjects, and schemas by their ids."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import SerializationContext
from tidelog.schema_registry.client import SchemaRegistryClient
from tidelog.schema_registry.framing import Framing, prefix_schema_id_serializer
from tidelog.schema_registry.model import RegisteredSchema, Schema, SchemaReference
from tidelog.schema_registry.strategies import topic_subject_name_strategy

DEFAULTS: Final[Mapping[str, Any]] = {
    "auto.register.schemas": True,
    "normalize.schemas": False,
    "use.latest.version": False,
    "use.schema.id": None,
    "use.latest.with.metadata": None,
    "subject.name.strategy": topic_subject_name_strategy,
    "schema.id.serializer": prefix_schema_id_serializer,
}


def configured(conf: Mapping[str, Any] | None, defaults: Mapping[str, Any] = DEFAULTS) -> dict[str, Any]:
    """A serializer's settings. Raises `ValueError` for keys that it doesn't have, and for those that exclude others."""
    given = dict(conf or {})
    unknown = sorted({*given} - {*defaults})
    if unknown:
        raise ValueError(f"Unrecognized properties: {', '.join(unknown)}. There are {', '.join(sorted(defaults))}.")
    found = {**defaults, **given}
    for key, default in defaults.items():
        if isinstance(default, bool) and not isinstance(found[key], bool):
            raise ValueError(f"{key} must be a boolean value, not {found[key]!r}.")
        if callable(default) and not callable(found[key]):
            raise ValueError(f"{key} must be callable, not {found[key]!r}.")
    if found.get("use.latest.version") and found.get("auto.register.schemas"):
        raise ValueError("use.latest.version needs auto.register.schemas=False: one of them chooses the schema.")
    return found


class SchemaChooser:
    """Which version a serializer's bytes name: registered by it, the newest, or one of an id."""

    def __init__(self, client: SchemaRegistryClient, settings: Mapping[str, Any]) -> None:
        self._client = client
        self._settings = settings
        # A message's subject, of its context and of the schema's full name.
        self.subject: Callable[[SerializationContext | None, str | None], str] = settings["subject.name.strategy"]
        # How the schema is named in a message.
        self.framing: Framing = settings["schema.id.serializer"]

    def version(self, subject: str, schema: Schema | None) -> RegisteredSchema:
        """The version for a subject's messages; to be asked for once. `schema`: the serializer's own.

        Raises `SchemaRegistryError`, and `SerializationError` where no setting gives a schema.
        """
        settings, client = self._settings, self._client
        number, properties = settings["use.schema.id"], settings["use.latest.with.metadata"]
        if number is not None:
            found = client.get_schema(number, subject)
            return client.lookup_schema(subject, found, settings["normalize.schemas"])
        if properties:
            return client.get_latest_with_metadata(subject, properties)
        if settings["use.latest.version"]:
            return client.get_latest_version(subject)
        if schema is None:
            raise SerializationError("The serializer has no schema: give it one, or set use.latest.version.")
        if settings["auto.register.schemas"]:
            return client.register_schema_full_response(subject, schema, settings["normalize.schemas"])
        return client.lookup_schema(subject, schema, settings["normalize.schemas"])


def schema_of(client: SchemaRegistryClient, named: int | str, subject: str | None = None) -> Schema:
    """The schema of an id, or of a guid."""
    return client.get_schema(named, subject) if isinstance(named, int) else client.get_schema_by_guid(named)


def referenced(client: SchemaRegistryClient, references: "tuple[SchemaReference, ...] | Any") -> dict[str, str]:
    """{name: text} of all schemas that one needs, those that others need first."""
    found: dict[str, str] = {}
    stack = [(one, False) for one in reversed(tuple(references))]
    begun: set[tuple[str, str, int]] = set()
    while stack:
        one, ready = stack.pop()
        key = (one.name, one.subject, one.version)
        if not ready and key in begun:
            continue
        begun.add(key)
        schema = client.get_version(one.subject, one.version, deleted=True).schema
        if ready:
            found.setdefault(one.name, schema.schema_str or "")
        else:
            stack.append((one, True))
            stack += [(inner, False) for inner in reversed(tuple(schema.references))]
    return found
