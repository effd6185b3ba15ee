"""Under which subject a topic's schemas are registered (Confluent's "Subject Name Strategies")."""

from tidelog.clients.values.serialization import SerializationContext


def topic_subject_name_strategy(ctx: SerializationContext, record_name: str | None) -> str:  # noqa: ARG001 - the shape
    """The topic's name, and `-key` or `-value`: one schema in a topic at a time."""
    return f"{ctx.topic}-{ctx.field}"


def record_subject_name_strategy(ctx: SerializationContext, record_name: str | None) -> str:  # noqa: ARG001 - the shape
    """The record's full name: one schema for all topics. Raises `ValueError` for a schema without a name."""
    if not record_name:
        raise ValueError("The schema has no name, which this subject name strategy needs. Give the type a name.")
    return record_name


def topic_record_subject_name_strategy(ctx: SerializationContext, record_name: str | None) -> str:
    """Topic and record: several kinds of records in a topic. Raises `ValueError` for a schema without a name."""
    return f"{ctx.topic}-{record_subject_name_strategy(ctx, record_name)}"
