"""Schemas as they are sent, read with what they reference in a state, and the forms of their texts."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tidelog.operations.schemas.fold import RegistryState
from tidelog.schemas.avro.parsed import AvroSchema
from tidelog.schemas.base.errors import RegistryError, SchemaError, malformed, schema_too_large
from tidelog.schemas.base.model import Reference, RuleSet, Schema, SchemaMetadata
from tidelog.schemas.base.references import ReferencedVersion, texts_of
from tidelog.schemas.base.subject_names import SubjectName
from tidelog.schemas.compatibility import ParsedSchema, kind_of, parse
from tidelog.schemas.protobuf.parsed import ProtobufSchema


def sent_schema(sent: Mapping[str, Any], most_bytes: int) -> Schema:
    """A schema of the JSON that requests of Confluent's API have. `most_bytes`: that can be stored.

    Raises `RegistryError` 400 where fields are of other types, 42209 for one that is too large.
    """
    text = sent.get("schema")
    if not (text is None or isinstance(text, str)):
        raise malformed("The field schema must be a text: the schema itself, quoted as a JSON string.")
    if len(text or "") > most_bytes:  # before it is read, which takes long
        raise schema_too_large(f"The schema has more than {most_bytes} bytes: it could not be stored.")
    references = sent.get("references")
    if not (references is None or isinstance(references, list)):
        raise malformed("The field references must be a list.")
    return Schema(
        text or "",
        kind_of(sent.get("schemaType")),
        tuple(Reference.of(one) for one in references or ()),
        SchemaMetadata.of(sent.get("metadata")),
        RuleSet.of(sent.get("ruleSet")),
    )


def prepare(state: RegistryState, subject: str, schema: Schema) -> Callable[[], None]:
    """What reads a schema ahead of a decision, which then finds it read: parsers may take long, and need no state.

    What can't be read is for the decision to refuse.
    """
    try:
        references = resolved(state, subject, schema)
    except RegistryError:
        return lambda: None

    def ahead() -> None:
        with suppress(RegistryError):
            parse(schema.kind, schema.text, references).check()

    return ahead


def canonical(
    state: RegistryState, subject: str, schema: Schema, *, normalize: bool = False
) -> tuple[ParsedSchema, Schema]:
    """A schema read, and with the text and references under which it is stored.

    Raises `RegistryError` 42201 for a schema that can't be read, and for references that aren't there.
    """
    references = schema.references
    if any(one.version == -1 for one in references):
        references = tuple(_newest(state, subject, one) for one in references)
    if normalize:
        references = tuple(sorted({*references}))
    schema = replace(schema, references=references)
    parsed = parse(schema.kind, schema.text, resolved(state, subject, schema))
    return parsed, schema.with_text(parsed.normalized if normalize else parsed.canonical)


def resolved(state: RegistryState, subject: str, schema: Schema) -> dict[str, str]:
    """{name: text} of all schemas that one needs, those that others need first.

    Of two under one name, the first counts. Raises `RegistryError` 42201 for one that isn't there.
    """

    def read(reference: ReferencedVersion) -> tuple[str, Iterator[ReferencedVersion]]:
        _, inside, number = reference
        version = state.version(inside, number, deleted=True)
        if version is None:
            raise SchemaError(f'No schema reference found for subject "{inside}" and version {number}')
        return version.schema.text, _references(inside, version.schema)

    return texts_of(_references(subject, schema), read)


def _references(subject: str, schema: Schema) -> Iterator[ReferencedVersion]:
    """What a schema references, with whole names of subjects."""
    for one in schema.references:
        yield one.name, SubjectName.of(subject).inside(one.subject), one.version


def _newest(state: RegistryState, subject: str, reference: Reference) -> Reference:
    version = state.version(SubjectName.of(subject).inside(reference.subject), -1)
    return reference if version is None else replace(reference, version=version.version)


def formatted(state: RegistryState, subject: str, schema: Schema, form: str) -> str:
    """A schema's text: `resolved` (Avro, references written out), `serialized` (Protobuf, base64), else as stored."""
    if form.lower() not in ("resolved", "serialized"):
        return schema.text
    parsed = parse(schema.kind, schema.text, resolved(state, subject, schema))
    if form.lower() == "resolved" and isinstance(parsed, AvroSchema):
        return parsed.resolved
    if form.lower() == "serialized" and isinstance(parsed, ProtobufSchema):
        return parsed.serialized
    return schema.text
