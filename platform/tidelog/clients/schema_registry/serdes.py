"""What serializers of all kinds share: configuration, subjects, and schemas by their ids."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from tidelog.clients.schema_registry.client import SchemaRegistryClient
from tidelog.clients.schema_registry.framing import (
    Reads,
    SchemaId,
    Writes,
    dual_schema_id_deserializer,
    prefix_schema_id_serializer,
    unframed,
)
from tidelog.clients.schema_registry.metadata import refuse_rules
from tidelog.clients.schema_registry.model import RegisteredSchema, Schema, SchemaReference
from tidelog.clients.schema_registry.settings import PropertyWords
from tidelog.clients.schema_registry.strategies import SubjectName, subject_name
from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import SerializationContext
from tidelog.schemas.base.references import ReferencedVersion, texts_of

C = TypeVar("C")

_REFERENCED: Final[Callable[[SchemaReference], ReferencedVersion]] = attrgetter("name", "subject", "version")

_SUBJECTS: Final[Mapping[str, Any]] = {
    "subject.name.strategy": None,
    "subject.name.strategy.type": None,
    "subject.name.strategy.conf": None,
}
WRITER: Final[Mapping[str, Any]] = {
    "auto.register.schemas": True,
    "normalize.schemas": False,
    "use.schema.id": None,
    "use.latest.version": False,
    "use.latest.with.metadata": None,
    **_SUBJECTS,
    "schema.id.serializer": prefix_schema_id_serializer,
}
READER: Final[Mapping[str, Any]] = {
    "use.latest.version": False,
    "use.latest.with.metadata": None,
    **_SUBJECTS,
    "schema.id.deserializer": dual_schema_id_deserializer,
}
# Keys of confluent-kafka that ask for what tidelog has not, and the value of each that asks for nothing.
_REFUSED: Final[Mapping[str, tuple[Any, str]]] = {
    "validation.rules.execution": ("DISABLED", "tidelog's serializers run no rules"),
    "validation.rules.fail.fast": (False, "tidelog's serializers run no rules"),
    "validation.rules.executor": (None, "tidelog's serializers run no rules"),
    "use.deprecated.format": (False, "no client has that form any more"),
}


def configured(conf: Mapping[str, Any] | None, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A serializer's settings. Raises `ValueError` for keys that it doesn't have, and for those that exclude others."""
    given = dict(conf or {})
    for key, (nothing, why) in _REFUSED.items():
        value = given.pop(key, nothing)
        if getattr(value, "value", value) != nothing:
            raise ValueError(f"{key} can't be {value!r}: {why}. Leave it out.")
    for name in sorted(given.keys() - defaults.keys()):
        raise PropertyWords().unknown(name, defaults)
    settings = {**defaults, **given}
    for key, default in defaults.items():
        if isinstance(default, bool) and not isinstance(settings[key], bool):
            raise ValueError(f"{key} must be a boolean value, not {settings[key]!r}.")
        if callable(default) and not callable(settings[key]):
            raise ValueError(f"{key} must be callable, not {settings[key]!r}.")
    number, properties = settings.get("use.schema.id"), settings.get("use.latest.with.metadata")
    if not (number is None or (isinstance(number, int) and not isinstance(number, bool))):
        raise ValueError(f"use.schema.id must be a number, not {number!r}.")
    if not (properties is None or isinstance(properties, Mapping)):
        raise ValueError(f"use.latest.with.metadata must be a dict, not {properties!r}.")
    if settings.get("use.latest.version") and settings.get("auto.register.schemas"):
        raise ValueError("use.latest.version needs auto.register.schemas=False: one of them chooses the schema.")
    return settings


def refuse_executors(rule_conf: object, rule_registry: object) -> None:
    """Raise `ValueError` where a caller gives what runs rules."""
    if rule_conf or rule_registry is not None:
        raise ValueError("rule_conf and rule_registry: tidelog's serializers run no rules. Leave them out.")


@dataclass(slots=True)
class Chosen(Generic[C]):
    """The version that a subject's messages name. `compiled`: the schema as the serializer takes it.

    `prefix`: what each message begins with, None where a function of the user writes it. `until_s`: when to ask again.
    """

    version: RegisteredSchema
    compiled: C
    schema_id: SchemaId
    prefix: bytes | None
    until_s: float | None


class SchemaChooser(Generic[C]):
    """Which version a serializer's bytes name: registered by it, the newest, or one of an id; asked for once.

    `compile`: what the serializer makes of a schema. `own`: gives the serializer's own schema, None where it has none.
    """

    def __init__(
        self,
        client: SchemaRegistryClient,
        settings: Mapping[str, Any],
        compile: Callable[[Schema], C],  # noqa: A002 - it is what it does
        own: Callable[[SerializationContext | None], Schema | None],
        indexes: list[int] | None = None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._compile = compile
        self._own = own
        self._indexes = indexes
        self._writes: Writes = settings["schema.id.serializer"]
        self._newest = settings["use.latest.version"] or settings["use.latest.with.metadata"]
        self._subject: SubjectName = subject_name(settings, client)
        self._known: dict[str, Chosen[C]] = {}

    def known(self, ctx: SerializationContext | None, name: str | None) -> bool:
        """Whether a message can be written without asking the registry."""
        return self._lasting(self._subject(ctx, name)) is not None

    def chosen(self, ctx: SerializationContext | None, name: str | None) -> Chosen[C]:
        """What a message's bytes name. `name`: the full name of its type.

        Raises `SchemaRegistryError`, and `SerializationError` where no setting gives a schema, or a rule forbids it.
        """
        subject = self._subject(ctx, name)
        chosen = self._lasting(subject)
        if chosen is None:
            version = self._version(subject, ctx)
            refuse_rules(version.schema.rule_set, f"the schema of subject {subject}", reads=False)
            kind = version.schema.schema_type
            named = SchemaId(kind, version.schema_id, version.guid, self._indexes)
            prefix = named.id_to_bytes() if self._writes is prefix_schema_id_serializer else None
            ttl_s = self._client.latest_ttl_s if self._newest else None
            until_s = None if ttl_s is None else self._client.elapsed_s() + ttl_s
            chosen = Chosen(version, self._compile(version.schema), named, prefix, until_s)
            self._known[subject] = chosen
        return chosen

    def framed(self, payload: bytes, ctx: SerializationContext | None, chosen: Chosen[C]) -> bytes:
        """A message's bytes with what they name."""
        if chosen.prefix is not None:
            return chosen.prefix + payload
        return self._writes(payload, ctx, chosen.schema_id)

    def _lasting(self, subject: str) -> Chosen[C] | None:
        chosen = self._known.get(subject)
        if chosen is None or (chosen.until_s is not None and self._client.elapsed_s() >= chosen.until_s):
            return None
        return chosen

    def _version(self, subject: str, ctx: SerializationContext | None) -> RegisteredSchema:
        settings, client = self._settings, self._client
        number = settings["use.schema.id"]
        if number is not None:
            found = client.get_schema(number, subject)
            return client.lookup_schema(subject, found, settings["normalize.schemas"])
        newest = newest_of(client, settings, subject)
        if newest is not None:
            return newest
        own = self._own(ctx)
        if own is None:
            raise SerializationError("The serializer has no schema: give it one, or set use.latest.version.")
        if settings["auto.register.schemas"]:
            return client.register_schema_full_response(subject, own, settings["normalize.schemas"])
        return client.lookup_schema(subject, own, settings["normalize.schemas"])


def newest_of(client: SchemaRegistryClient, settings: Mapping[str, Any], subject: str) -> RegisteredSchema | None:
    """The version that `use.latest.with.metadata` or `use.latest.version` asks for; None where neither is set."""
    if settings["use.latest.with.metadata"]:
        return client.get_latest_with_metadata(subject, settings["use.latest.with.metadata"])
    return client.get_latest_version(subject) if settings["use.latest.version"] else None


class WriterSchemas(Generic[C]):
    """The schemas that messages name, compiled and kept; and what the reader's newest version asks for."""

    def __init__(
        self,
        client: SchemaRegistryClient | None,
        settings: Mapping[str, Any],
        compile: Callable[[Schema], C],  # noqa: A002 - it is what it does
        kind: str,
    ) -> None:
        self._client = client
        self._settings = settings
        self._compile = compile
        self._kind = kind
        self._reads: Reads = settings["schema.id.deserializer"]
        self._newest = bool(settings["use.latest.version"] or settings["use.latest.with.metadata"])
        if self._newest and client is None:
            raise ValueError("use.latest.version needs a client of a registry.")
        self._subject = subject_name(settings, client) if self._newest else None
        self._known: dict[int | str, C] = {}
        self._readers: dict[str, tuple[float | None, C]] = {}

    def unframed(self, data: bytes, ctx: SerializationContext | None) -> tuple[int | str, bytes]:
        """What a message's bytes name, and the bytes themselves. Raises `SerializationError`."""
        named, _, payload = unframed(data, ctx, self._kind, self._reads)
        return named, payload

    def known(self, data: bytes, ctx: SerializationContext | None) -> bool:
        """Whether a message can be read without asking the registry."""
        return not self._newest and unframed(data, ctx, self._kind, self._reads)[0] in self._known

    def writer(self, named: int | str) -> C:
        """The schema that a message names. Raises `SerializationError`, `SchemaRegistryError`."""
        writer = self._known.get(named)
        if writer is None:
            assert self._client is not None  # callers with none have a schema of their own
            schema = schema_of(self._client, named)
            refuse_rules(schema.rule_set, f"schema {named}", reads=True)
            writer = self._known[named] = self._compile(schema)
        return writer

    def newest(self, ctx: SerializationContext | None) -> C | None:
        """The schema that a message is to be read as, by the settings; None where they name none."""
        if self._subject is None or self._client is None:
            return None
        subject = self._subject(ctx, None)
        entry = self._readers.get(subject)
        if entry is None or (entry[0] is not None and self._client.elapsed_s() >= entry[0]):
            version = newest_of(self._client, self._settings, subject)
            assert version is not None  # one of the settings is set
            rules = version.schema.rule_set
            if rules is not None and rules.migration_rules:
                raise SerializationError(
                    f"Subject {subject} has migration rules, and tidelog's deserializers run no rules: leave"
                    " use.latest.version out, or use confluent-kafka's."
                )
            refuse_rules(rules, f"the schema of subject {subject}", reads=True)
            ttl_s = self._client.latest_ttl_s
            until_s = None if ttl_s is None else self._client.elapsed_s() + ttl_s
            entry = self._readers[subject] = until_s, self._compile(version.schema)
        return entry[1]


def schema_of(client: SchemaRegistryClient, named: int | str) -> Schema:
    """The schema of an id, or of a guid."""
    return client.get_schema(named) if isinstance(named, int) else client.get_schema_by_guid(named)


def referenced(client: SchemaRegistryClient, references: Iterable[SchemaReference]) -> dict[str, str]:
    """{name: text} of all schemas that one needs, those that others need first."""

    def read(reference: ReferencedVersion) -> tuple[str, Iterator[ReferencedVersion]]:
        _, subject, version = reference
        schema = client.get_version(subject, version, deleted=True).schema
        return schema.schema_str or "", map(_REFERENCED, schema.references)

    return texts_of(map(_REFERENCED, references), read)
