"""A request on its way: what its path, its query and its body say."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from tidelog.operations.schemas.errors import invalid_version
from tidelog.operations.schemas.fold import MOST_NUMBER, RegistryState
from tidelog.operations.schemas.records import SubjectVersion
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.operations.schemas.subjects import DEFAULT_CONTEXT, SubjectName, checked
from tidelog.registry.api.rights import ApiRights
from tidelog.schemas.base.errors import RegistryError, malformed, schema_too_large
from tidelog.schemas.base.model import Reference, RuleSet, Schema, SchemaMetadata
from tidelog.schemas.compatibility import kind_of
from tidelog.server.routes import HttpCall

T = TypeVar("T")
LATEST: Final = -1
# The variable of paths below /contexts/.
CONTEXT: Final = "in_context"
# How many schemas one answer has: clients ask for the next ones by `offset` (schema.search.max.limit).
MOST_SCHEMAS: Final = 1000
# Of a refused text, in characters.
_MOST_SHOWN: Final = 100
_MOST_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class SchemaText:
    """An answer that is a text as it stands, not a value of JSON: a schema alone."""

    text: str


@dataclass(frozen=True, slots=True)
class ApiCall(HttpCall):
    """`body`: bytes. One that `changes` something must not go by an alias as of the last look."""

    log: RegistryLog
    _resolved: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    # --- path and query ------------------------------------------------------------------------------------

    @property
    def context(self) -> str:
        """The context of a path below /contexts/, else the default one."""
        named = self.variables.get(CONTEXT)
        return DEFAULT_CONTEXT if named is None else named.strip(":")

    @property
    def rights(self) -> ApiRights:
        """The client's, which lists and ids go by; the others are asked about before (`guard`)."""
        return ApiRights(self.client)

    @property
    def subject(self) -> str:
        """The path's subject, or the one that it is an alias of: the same throughout a request, for rights are asked
        about it before. Raises `RegistryError` 42208.
        """
        named = self.settings_subject
        if named is None or not SubjectName.of(named).name:
            raise RegistryError(42208, f"The specified subject '{self.variables['subject']}' is not valid.")
        return self.aliased(named)

    def aliased(self, named: str) -> str:
        """The subject that one is an alias of, itself where it is none; in its own context unless another is named."""
        if named not in self._resolved:
            read = self.log.look if self.changes else self.log.known
            self._resolved[named] = read(lambda state: alias_of(state, named))
        return self._resolved[named]

    def stands(self) -> bool:
        """Whether the aliases that the request went by are still the same, as of the last look."""
        return self.log.known(lambda state: all(alias_of(state, one) == to for one, to in self._resolved.items()))

    @property
    def settings_subject(self) -> str | None:
        """What settings are about: a subject, a context (`:.context:`), or all (None)."""
        named = self.variables.get("subject")
        if named is None:
            return None if self.context == DEFAULT_CONTEXT else f":{self.context}:"
        inside = str(SubjectName(self.context, named)) if not named.startswith(":.") else named
        subject = SubjectName.of(inside)
        if not subject.name and named.startswith(":."):
            return None if subject.context == DEFAULT_CONTEXT else f":{subject.context}:"
        return checked(inside)

    def version(self) -> int:
        """The path's version: a number from 1 on, or `LATEST`. Raises `RegistryError` 42202."""
        text = self.variables["version"]
        if text in ("latest", "-1"):
            return LATEST
        number = _whole(text)
        if number is None or not 0 < number <= MOST_NUMBER:
            raise invalid_version(text[:_MOST_SHOWN])
        return number

    def number(self, name: str) -> int:
        """A number of the path. Raises `RegistryError` 404 for another text, as a path that isn't there."""
        number = _whole(self.variables[name])
        if number is None:
            raise RegistryError(404, "HTTP 404 Not Found")
        return number

    def flag(self, name: str) -> bool:
        """A parameter that is true or, as every other text, not."""
        return self.text(name).lower() == "true"

    def text(self, name: str) -> str:
        """A parameter, "" where it isn't given."""
        return (self.query.get(name) or ("",))[0]

    def page(self, found: Sequence[T], most: int | None = None) -> list[T]:
        """The part of a list that `offset` and `limit` ask for: `most` (None: all) unless the limit is from 1 to it."""
        start, limit = max(0, self._int("offset", 0)), self._int("limit", -1)
        if most is None and limit <= 0:
            return list(found[start:])
        if limit <= 0 or (most is not None and limit > most):
            limit = most or len(found)
        return list(found[start : start + limit])

    def _int(self, name: str, default: int) -> int:
        text = self.text(name)
        if not text:
            return default
        number = _whole(text)
        if number is None:
            raise RegistryError(404, f"The parameter {name} must be a number, not '{text[:_MOST_SHOWN]}'.")
        return number

    # --- body ----------------------------------------------------------------------------------------------

    def json(self) -> Mapping[str, Any]:
        """The body's object. Raises `RegistryError` 400 for what is no JSON, or another value."""
        try:
            value = json.loads(self.body)
            json.dumps(value, ensure_ascii=False).encode()  # not of lone surrogates, which no text of UTF-8 holds
        except (ValueError, RecursionError) as error:
            raise RegistryError(400, f"The request's body is not valid JSON: {error}") from None
        if not isinstance(value, Mapping):
            raise malformed("The request's body must be a JSON object.")
        return value

    def schema(self) -> Schema:
        """The body's schema. Raises `RegistryError` 400 where its fields are of other types."""
        body = self.json()
        text = body.get("schema")
        if not (text is None or isinstance(text, str)):
            raise malformed("The field schema must be a text: the schema itself, quoted as a JSON string.")
        if len(text or "") > self.log.most_bytes:  # before it is read, which takes long
            raise schema_too_large(f"The schema has more than {self.log.most_bytes} bytes: it could not be stored.")
        references = body.get("references")
        if not (references is None or isinstance(references, list)):
            raise malformed("The field references must be a list.")
        return Schema(
            text or "",
            kind_of(body.get("schemaType")),
            tuple(Reference.of(one) for one in references or ()),
            SchemaMetadata.of(body.get("metadata")),
            RuleSet.of(body.get("ruleSet")),
        )

    def integer(self, name: str, default: int) -> int:
        """A number of the body, -1 or more. Raises `RegistryError` 400 for another value.

        An id has four bytes in each message, of which Java's clients take the half that is not negative.
        """
        value = self.json().get(name)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool):
            raise malformed(f"The field {name} must be a number, not {str(value)[:_MOST_SHOWN]!r}.")
        if not -1 <= value <= MOST_NUMBER:
            raise malformed(f"The field {name} must be a number from 0 to {MOST_NUMBER}.")
        return value


def alias_of(state: RegistryState, named: str) -> str:
    """The subject that one is an alias of in a state, itself where it is none. Raises `RegistryError` 42208."""
    alias = (state.configs.get(named) or {}).get("alias")
    return checked(SubjectName.of(named).inside(str(alias)) if alias else named)


def _whole(text: str) -> int | None:
    """A whole number, None for another text."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS else None


def schema_json(
    schema: Schema, text: str | None = None, references: Sequence[Reference] | None = None
) -> dict[str, Any]:
    """What answers say of a schema; the kind only where it isn't Avro. `text`, `references`: instead of its own."""
    found: dict[str, Any] = {"guid": schema.guid}
    if schema.kind != "AVRO":
        found["schemaType"] = schema.kind.value
    if schema.references:
        found["references"] = [one.json() for one in references or schema.references]
    if schema.metadata is not None:
        found["metadata"] = schema.metadata.json()
    if schema.rules is not None:
        found["ruleSet"] = schema.rules.json()
    return {**found, "schema": schema.text if text is None else text}


def version_json(
    version: SubjectVersion, text: str | None = None, references: Sequence[Reference] | None = None
) -> dict[str, Any]:
    """What answers say of a version. `ts`: the timestamp of its record."""
    found = {"subject": version.subject, "version": version.version, "id": version.id}
    more: dict[str, Any] = {} if version.at_ms is None else {"ts": version.at_ms}
    if version.deleted:
        more["deleted"] = True
    return {**found, **schema_json(version.schema, text, references), **more}


def asked_references(call: ApiCall, subject: str, schema: Schema) -> Sequence[Reference] | None:
    """A schema's references as `referenceFormat=qualified` asks for them: with the context of the subject."""
    named = SubjectName.of(subject)
    if call.text("referenceFormat") != "qualified" or named.context == DEFAULT_CONTEXT:
        return None
    return [replace(one, subject=named.inside(one.subject)) for one in schema.references]
