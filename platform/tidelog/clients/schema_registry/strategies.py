"""Under which subject a topic's schemas are registered (Confluent's "Subject Name Strategies")."""

import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from tidelog.clients.schema_registry.client import BoundedCache, SchemaRegistryClient
from tidelog.clients.schema_registry.model import SchemaRegistryError
from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.operations.schemas.subjects import subject_of

SubjectName = Callable[[SerializationContext | None, str | None], str]

KAFKA_CLUSTER_ID: Final = "subject.name.strategy.kafka.cluster.id"
FALLBACK_TYPE: Final = "subject.name.strategy.fallback.type"
_NO_CONTEXT: Final = (
    "The subject is named after the topic, which needs a context: give SerializationContext(topic, field)."
)
_ANY_CLUSTER: Final = "-"
_MOST_KEPT: Final = 1_000


class SubjectNameStrategyType(StrEnum):
    """Strategies by their names. NONE is only a fallback of ASSOCIATED: there is no subject then."""

    NONE = "NONE"
    TOPIC = "TOPIC"
    RECORD = "RECORD"
    TOPIC_RECORD = "TOPIC_RECORD"
    ASSOCIATED = "ASSOCIATED"


def topic_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str:  # noqa: ARG001 - the shape
    """The topic's name, and `-key` or `-value`: one schema in a topic. Raises `ValueError` without a context."""
    if ctx is None:
        raise ValueError(_NO_CONTEXT)
    return subject_of(ctx.topic, ctx.field)


def record_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str:  # noqa: ARG001 - the shape
    """The record's full name: one schema for all topics. Raises `ValueError` for a schema without a name."""
    if not record_name:
        raise ValueError("The schema has no name, which this subject name strategy needs. Give the type a name.")
    return record_name


def topic_record_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str:
    """Topic and record: several kinds of records in a topic. Raises `ValueError` for a schema without a name."""
    if ctx is None:
        raise ValueError(_NO_CONTEXT)
    return f"{ctx.topic}-{record_subject_name_strategy(ctx, record_name)}"


def reference_subject_name_strategy(ctx: SerializationContext | None, schema_ref: Any) -> str:  # noqa: ARG001 - the shape
    """The subject of a file that a message's file imports: the file's name."""
    return str(schema_ref.name)


class AssociatedNameStrategy:
    """The subject that a registry associates with a topic, else that of another strategy, TOPIC unless configured.

    Confluent's own registry has associations; one that has not answers 404, which counts as none.
    """

    def __init__(self, cache_capacity: int = _MOST_KEPT) -> None:
        self._known: BoundedCache[str] = BoundedCache(cache_capacity, threading.Lock())

    def __call__(
        self,
        ctx: SerializationContext | None,
        record_name: str | None,
        schema_registry_client: SchemaRegistryClient | None,
        conf: Mapping[str, Any] | None = None,
    ) -> str:
        """A message's subject, asked for once. Raises `ValueError`, `SerializationError`, `SchemaRegistryError`."""
        if ctx is None:
            raise ValueError("The subject is looked for by the topic, which needs a context.")
        fallback = str((conf or {}).get(FALLBACK_TYPE) or "TOPIC").removeprefix("SubjectNameStrategyType.").upper()
        if fallback not in ("TOPIC", "RECORD", "TOPIC_RECORD", "NONE"):
            raise ValueError(f"{FALLBACK_TYPE} must be TOPIC, RECORD, TOPIC_RECORD or NONE, not {fallback}.")
        key = (ctx.topic, ctx.field, record_name)
        subject = self._known.get(key)
        if subject is None:
            subject = self._found(ctx, schema_registry_client, conf or {})
            if subject is None and fallback == "NONE":
                raise SerializationError(f"No subject is associated with topic {ctx.topic}.")
            subject = subject or NAMED[SubjectNameStrategyType(fallback)](ctx, record_name)
            self._known.keep(key, subject)
        return subject

    def clear_cache(self) -> None:
        """Forget what was asked for."""
        self._known.clear()

    def _found(
        self, ctx: SerializationContext, client: SchemaRegistryClient | None, conf: Mapping[str, Any]
    ) -> str | None:
        if client is None:
            return None
        kind = "key" if ctx.field == MessageField.KEY else "value"
        cluster = str(conf.get(KAFKA_CLUSTER_ID) or _ANY_CLUSTER)
        try:
            associations = client.get_associations_by_resource_name(ctx.topic, cluster, "topic", [kind])
        except SchemaRegistryError as error:
            if error.http_status_code != 404:
                raise
            return None
        if len(associations) > 1:
            raise SerializationError(f"Topic {ctx.topic} has several associated subjects: give a strategy of one.")
        return associations[0].subject if associations else None


NAMED: Final[Mapping[SubjectNameStrategyType, SubjectName]] = {
    SubjectNameStrategyType.TOPIC: topic_subject_name_strategy,
    SubjectNameStrategyType.RECORD: record_subject_name_strategy,
    SubjectNameStrategyType.TOPIC_RECORD: topic_record_subject_name_strategy,
}


def subject_name(settings: Mapping[str, Any], client: SchemaRegistryClient | None) -> SubjectName:
    """What names a message's subject by `subject.name.strategy`, or by its `.type` and `.conf`, TOPIC unless given.

    Raises `ValueError`.
    """
    given, named = settings["subject.name.strategy"], settings["subject.name.strategy.type"]
    if given is not None and not callable(given):
        raise ValueError(f"subject.name.strategy must be callable, not {given!r}.")
    if given is None:
        kinds = [one.value for one in SubjectNameStrategyType if one is not SubjectNameStrategyType.NONE]
        text = str(getattr(named, "value", named) or "TOPIC").upper()
        if text not in kinds:
            raise ValueError(f"subject.name.strategy.type must be one of {', '.join(kinds)}, not {named!r}.")
        kind = SubjectNameStrategyType(text)
        given = AssociatedNameStrategy() if kind is SubjectNameStrategyType.ASSOCIATED else NAMED[kind]
    if isinstance(given, AssociatedNameStrategy):
        found, conf = given, settings["subject.name.strategy.conf"]
        return lambda ctx, record: found(ctx, record, client, conf)
    strategy: SubjectName = given
    return strategy
