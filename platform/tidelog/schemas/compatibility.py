"""Schemas of any kind: parsed with what they reference, and tested by a subject's compatibility level."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, Protocol

from tidelog.schemas.avro.parsed import AvroSchema
from tidelog.schemas.base.comparison import Difference, Differences
from tidelog.schemas.base.errors import SchemaError, invalid_compatibility
from tidelog.schemas.base.json_text import too_deep
from tidelog.schemas.base.model import SchemaKind
from tidelog.schemas.json_schema.parsed import JsonSchema
from tidelog.schemas.protobuf.parsed import ProtobufSchema


class CompatibilityLevel(StrEnum):
    """What a new version must read, or be read by (Confluent's levels). TRANSITIVE: of all versions, not the latest."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @classmethod
    def of(cls, text: object) -> "CompatibilityLevel":
        """A level by its name, in any case. Raises `RegistryError` 42203."""
        if isinstance(text, str) and text.upper() in cls.__members__:
            return cls[text.upper()]
        raise invalid_compatibility(text)

    @property
    def transitive(self) -> bool:
        """Whether all versions count."""
        return self.endswith("_TRANSITIVE")

    @property
    def backward(self) -> bool:
        """Whether the new schema must read what older ones wrote."""
        return self.startswith(("BACKWARD", "FULL"))

    @property
    def forward(self) -> bool:
        """Whether older schemas must read what the new one writes."""
        return self.startswith(("FORWARD", "FULL"))


class ParsedSchema(Protocol):
    """What each kind of schema can do."""

    kind: SchemaKind

    @property
    def canonical(self) -> str:
        """The text under which the schema is stored."""

    @property
    def normalized(self) -> str:
        """The same for all texts that say the same."""

    @property
    def fields(self) -> frozenset[str]:
        """Names of the outermost fields, that metadata may reserve."""

    def check(self, *, strict: bool = False) -> None:
        """Raise `SchemaError` for what the parser lets pass, but the kind's rules don't.

        `strict`: with the rules of `validateFields`.
        """

    def differences_from(self, old: Any, *, lenient: bool = False) -> Differences:
        """What changed since a schema of the same kind."""


_KINDS: Final[Mapping[SchemaKind, Any]] = {
    SchemaKind.AVRO: AvroSchema,
    SchemaKind.JSON: JsonSchema,
    SchemaKind.PROTOBUF: ProtobufSchema,
}


def kind_of(text: object) -> SchemaKind:
    """A kind by its name. Raises `SchemaError`."""
    if text in (None, ""):
        return SchemaKind.AVRO
    if isinstance(text, str) and text in SchemaKind.__members__:
        return SchemaKind[text]
    raise SchemaError(f"Invalid schema type {text!r}. Valid values are {', '.join(SchemaKind)}.")


def parse(kind: SchemaKind, text: str, references: Mapping[str, str]) -> ParsedSchema:
    """Read a schema. `references`: {name: text} of all that it needs, those that others need first.

    Raises `SchemaError` with the place of the mistake.
    """
    try:
        return _parsed(kind, text, tuple(references.items()))
    except RecursionError:  # references of references
        raise too_deep() from None


@lru_cache(maxsize=1000)
def _parsed(kind: SchemaKind, text: str, references: tuple[tuple[str, str], ...]) -> ParsedSchema:
    schema: ParsedSchema = _KINDS[kind](text, dict(references))
    return schema


def incompatibilities(
    level: CompatibilityLevel, new: ParsedSchema, old: Sequence[tuple[int, ParsedSchema]], *, lenient: bool = False
) -> list[str]:
    """Why a level refuses a new schema: a message for each rule that it breaks, none where it is compatible.

    `old`: (version, schema), oldest first. The newest one that is incompatible is reported.
    """
    if level is CompatibilityLevel.NONE:
        return []
    for version, old_schema in reversed(old if level.transitive else old[-1:]):
        messages = _against(level, new, old_schema, lenient=lenient)
        if messages:
            return [*messages, f"{{oldSchemaVersion: {version}}}", f"{{oldSchema: '{old_schema.canonical}'}}"]
    return []


def _against(level: CompatibilityLevel, new: ParsedSchema, old: ParsedSchema, *, lenient: bool) -> list[str]:
    if new.kind is not old.kind:
        return ["Incompatible because of different schema type"]
    messages: list[str] = []
    try:
        if level.backward:
            differences = new.differences_from(old, lenient=lenient)
            messages += [_message(one, "new", "old") for one in differences if one.breaking(lenient=lenient)]
        if level.forward:
            differences = old.differences_from(new, lenient=lenient)
            messages += [_message(one, "old", "new") for one in differences if one.breaking(lenient=lenient)]
    except SchemaError as error:
        messages.append(f"A schema to compare with can't be read: {error}")
    return messages


def _message(difference: Difference, reader: str, writer: str) -> str:
    """In the form of Confluent's messages: what rule, where, and what it says."""
    description = difference.rule.sentence.format(path="/".join(("#", *difference.path)), reader=reader, writer=writer)
    more = f", additionalInfo:'{difference.detail}'" if difference.detail else ""
    return f"{{errorType:'{difference.rule.name}', description:'{description}'{more}}}"
