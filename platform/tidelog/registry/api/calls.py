"""A request on its way: what its path, its query and its body say."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from tidelog.operations.rights import Right
from tidelog.operations.schemas.descriptions import EVERYWHERE, VersionDescription, page, version_number, whole
from tidelog.operations.schemas.fold import MOST_NUMBER
from tidelog.operations.schemas.reading import sent_schema
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.operations.schemas.settings import aliased
from tidelog.operations.schemas.subjects import settings_place, subject_named
from tidelog.schemas.base.errors import RegistryError, malformed
from tidelog.schemas.base.model import Schema
from tidelog.schemas.base.subject_names import DEFAULT_CONTEXT, SubjectName
from tidelog.server.logins import RequestSender
from tidelog.server.routes import HttpCall

T = TypeVar("T")
# The variable of paths below /contexts/.
CONTEXT: Final = "in_context"
# Of a refused text, in characters.
_MOST_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class SchemaText:
    """An answer that is a text as it stands, not a value of JSON: a schema alone."""

    text: str


@dataclass(frozen=True, slots=True)
class ApiRights:
    """What a client may do to subjects and to the cluster, as `operations/rights.py` has it."""

    client: RequestSender

    @property
    def bound(self) -> bool:
        """Whether there is anything that the client may not do."""
        return self.client.rights is not None

    def sees(self, subject: str) -> bool:
        """Whether the client may read a subject."""
        return self.client.may(Right.READ_SCHEMA, subject=subject)

    def require(self, right: Right, subject: str | None = None) -> None:
        """Raise `RegistryError` 40301 unless the client has the right to a subject, or, for None, to the cluster."""
        named = {} if subject is None else {"subject": subject}
        if not self.client.may(right, **named):
            asked = right.asked(**named)
            topic = f"topic {asked.name}, as which subject {subject} is asked about"
            what = "the cluster" if subject is None else topic
            raise RegistryError(40301, f"User is denied operation {asked.operation.name} on {what}.")


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
        named = subject_named(self.variables["subject"], self.context)
        if named not in self._resolved:
            read = self.log.look if self.changes else self.log.known
            self._resolved[named] = read(lambda state: aliased(state, named))
        return self._resolved[named]

    def stands(self) -> bool:
        """Whether the aliases that the request went by are still the same, as of the last look."""
        return self.log.known(lambda state: all(aliased(state, one) == to for one, to in self._resolved.items()))

    @property
    def settings_subject(self) -> str | None:
        """What settings are about: a subject, a context (`:.context:`), or all (None)."""
        named = self.variables.get("subject")
        if named is None:
            return SubjectName(self.context, "").context_settings
        return settings_place(named, self.context)

    @property
    def prefix(self) -> str:
        """What subjects begin with that are asked for: those of all contexts, unless a prefix or the path names one."""
        everywhere = EVERYWHERE if self.context == DEFAULT_CONTEXT else f":{self.context}:"
        return self.text("subjectPrefix") or everywhere

    def version(self) -> int:
        """The path's version: a number from 1 on, or `LATEST`. Raises `RegistryError` 42202."""
        return version_number(self.variables["version"])

    @property
    def qualified(self) -> bool:
        """Whether references are to name their contexts."""
        return self.text("referenceFormat") == "qualified"

    def number(self, name: str) -> int:
        """A number of the path. Raises `RegistryError` 404 for another text, as a path that isn't there."""
        number = whole(self.variables[name])
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
        """The part of a list that `offset` and `limit` ask for; `most`: as `page` of operations has it."""
        return page(found, self._int("offset", 0), self._int("limit", -1), most)

    def _int(self, name: str, default: int) -> int:
        text = self.text(name)
        if not text:
            return default
        number = whole(text)
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
        """The body's schema. Raises `RegistryError` as `sent_schema` does."""
        return sent_schema(self.json(), self.log.most_bytes)

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


def schema_json(version: VersionDescription) -> dict[str, Any]:
    """What answers say of a version's schema."""
    answer = {"guid": version.schema.guid, **version.schema.json(), "schema": version.text}
    if version.references:
        answer["references"] = [reference.json() for reference in version.references]
    return answer


def version_json(version: VersionDescription) -> dict[str, Any]:
    """What answers say of a version. `ts`: the timestamp of its record."""
    answer = {"subject": version.subject, "version": version.version, "id": version.id}
    more: dict[str, Any] = {} if version.at_ms is None else {"ts": version.at_ms}
    if version.deleted:
        more["deleted"] = True
    return {**answer, **schema_json(version), **more}
