"""The schemas of a lake's registry, for the writers of typed topics: topic `_schemas`, followed as far as it is needed.

The keys and values are Confluent's (docs/format.md, 13.5). Which versions there are stays in memory; their texts are
read where one is wanted, as a typed topic's table knows most of those that it needs.
"""

import base64
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import orjson

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import InvalidConfigError, OffsetOutOfRangeError, TopicChangedError, UnknownTopicError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.log.delta.written_schemas import KINDS, WrittenSchema
from tidelog.log.folds.compacted import CompactedFold
from tidelog.log.rules.appends import ORDERED_PARTITION
from tidelog.log.topic import Topic
from tidelog.schemas.base.references import ReferencedVersion, texts_of
from tidelog.schemas.base.subject_names import SubjectName, begins_with

# How long an answer counts that a subject has no such schema, or which of its is newest. Seconds.
ANSWERS_COUNT_S: Final = 3.0
# Questions whose answers are remembered.
_MOST_ANSWERS: Final = 10_000
# Schemas that one needs, directly and through others, and their text. More are no schema of a typed topic.
_MOST_REFERENCES: Final = 500
_MOST_REFERENCED_BYTES: Final = 4 << 20

Place = tuple[str, int]


def require_bytes(topic: str, config: TopicConfig) -> None:
    """Refuse to type the topic that holds the schemas: its values are Confluent's JSON, which registries read."""
    if topic == SCHEMAS_TOPIC and config.value_columns != "none":
        raise InvalidConfigError(
            f"Topic '{topic}' is where a registry keeps its schemas: its values are no versions of a schema. Leave"
            " value.columns at none, and set it for the topics that use the schemas."
        )


@dataclass(frozen=True, slots=True)
class _Version:
    """A version of a subject: its schema's id and guid, whether it is deleted softly, and where its record is."""

    id: int
    guid: bytes
    deleted: bool
    offset: int


class SubjectVersions:
    """The fold: the versions of each subject by their numbers, and other names of subjects."""

    def __init__(self) -> None:
        self._versions: dict[str, dict[int, _Version]] = {}
        self._aliases: dict[str, str] = {}

    def resolved(self, subject: str) -> str:
        """The subject that a name means."""
        return self._aliases.get(subject, subject)

    def of(self, subject: str) -> Mapping[int, _Version]:
        """A subject's versions, none where there is no such subject."""
        return self._versions.get(subject, {})

    def place_of(self, named: int | bytes, subject: str) -> Place | None:
        """The newest version of a subject that has the schema, those that are not deleted first."""
        name = self.resolved(subject)
        fitting = [
            (not one.deleted, number)
            for number, one in self.of(name).items()
            if (one.guid if isinstance(named, bytes) else one.id) == named
        ]
        return (name, max(fitting)[1]) if fitting else None

    def take(self, key: bytes | None, value: bytes | None, offset: int, at_ms: int) -> None:  # noqa: ARG002
        """Take the next record; what is none of a registry's, or says nothing about versions, is passed over."""
        about, body = _json(key), _json(value)
        if about is None or (body is None and value is not None):
            return
        kind, subject = about.get("keytype"), about.get("subject")
        if kind == "SCHEMA" and isinstance(subject, str) and type(number := about.get("version")) is int:
            versions = self._versions.setdefault(subject, {})
            versions.pop(number, None)
            if body is not None and (version := _version(body, offset)) is not None:
                versions[number] = version
            if not versions:
                del self._versions[subject]
        elif kind == "DELETE_SUBJECT" and isinstance(subject, str) and body is not None:
            last, versions = body.get("version"), self._versions.get(subject, {})
            if type(last) is int:
                deleted = {number: replace(one, deleted=True) for number, one in versions.items() if number <= last}
                versions.update(deleted)
        elif kind == "CLEAR_SUBJECT" and body is not None:
            self._clear(subject)
        elif kind == "CONFIG" and isinstance(subject, str):
            alias = None if body is None else body.get("alias")
            self._aliases.pop(subject, None)
            if isinstance(alias, str) and alias:
                self._aliases[subject] = SubjectName.of(subject).inside(alias)

    def _clear(self, subject: Any) -> None:
        """Versions that were deleted softly go, of a subject, of a context or of all."""
        for name in list(self._versions):
            if begins_with(name, subject if isinstance(subject, str) else ""):
                kept = {number: version for number, version in self._versions[name].items() if not version.deleted}
                self._versions.pop(name)
                self._versions |= {name: kept} if kept else {}


class SubjectReader(CompactedFold[Topic, SubjectVersions]):
    """The schemas of one lake's registry. All methods may be called from many threads.

    `open_topic` gives the topic, None while it is not there.
    """

    def __init__(self, open_topic: Callable[[], Topic | None], clock: Clock) -> None:
        super().__init__(open_topic, clock, SubjectVersions, ordered=True)
        # What was asked and not found, or how newest was answered, and until when (elapsed seconds) that counts.
        self._answers: OrderedDict[Hashable, tuple[float, str]] = OrderedDict()

    # --- questions -----------------------------------------------------------------------------------------

    def schema(self, named: int | bytes, subject: str) -> WrittenSchema | None:
        """The schema that a subject has under an id, or a guid (16 bytes); None where it has none.

        A version that is deleted softly still counts, as its records still need it.
        """
        if self.why_not((subject, named)) is not None:
            return None
        with self._lock:
            for _ in range(2):  # what was compacted away just now was written again
                place = self._state.place_of(named, subject)
                if place is None:
                    self._read_on()
                    place = self._state.place_of(named, subject)
                if place is None:
                    self.remember((subject, named), self._why(named, subject))
                    return None
                try:
                    return self._written(*place, subject)
                except _UnreadableError as e:
                    self.remember((subject, named), str(e))
                    self._read_on()
        return None

    def newest(self, subject: str, *, now: bool = False) -> WrittenSchema | None:
        """The schema of a subject's newest version that is not deleted; None where it has none.

        An answer may be some seconds old, unless it must be that of now.
        """
        with self._lock:
            if now or self.why_not((subject, None)) is None:
                self._read_on()
                self.remember((subject, None), self._why(None, subject))
            name = self._state.resolved(subject)
            live = [number for number, one in self._state.of(name).items() if not one.deleted]
            try:
                return self._written(name, max(live), subject) if live else None
            except _UnreadableError as e:
                self.remember((subject, None), str(e))
                return None

    def why_not(self, question: Hashable) -> str | None:
        """Why there was nothing to be had when it was asked for, some seconds ago at most; None where it was not.

        `question`: (subject, id or guid, None for the newest), or what else `remember` was given.
        """
        until, why = self._answers.get(question, (0.0, ""))
        return why if self._clock.elapsed_s() < until else None

    def remember(self, question: Hashable, why: str) -> None:
        """Note that nothing is to be had, and why: for some seconds no writer looks for it again."""
        with self._lock:
            self._answers.pop(question, None)
            self._answers[question] = (self._clock.elapsed_s() + ANSWERS_COUNT_S, why)
            while len(self._answers) > _MOST_ANSWERS:
                self._answers.popitem(last=False)

    def _why(self, named: int | bytes | None, subject: str) -> str:
        if self._topic is None:
            return f"the lake has no topic '{SCHEMAS_TOPIC}', where a registry keeps its schemas"
        if not self._state.of(self._state.resolved(subject)):
            return f"the registry has no subject '{subject}'"
        if named is None:
            return f"subject '{subject}' was looked up just now"
        what = f"the guid {named.hex()}" if isinstance(named, bytes) else f"the id {named}"
        return f"subject '{subject}' has no schema with {what}"

    # --- what is there -------------------------------------------------------------------------------------

    def _written(self, subject: str, number: int, asked: str) -> WrittenSchema:
        """A version, as found under the name that was asked for."""
        version, body = self._state.of(subject)[number], self._body(subject, number)
        kind = str(body.get("schemaType") or "AVRO").lower()
        if kind not in KINDS:
            raise _UnreadableError(f"version {number} of subject '{subject}' has the type {body['schemaType']}")
        references = tuple(self._inlined(subject, body).items())
        return WrittenSchema(version.id, kind, body["schema"], references, asked, number, version.guid.hex())

    def _inlined(self, subject: str, body: Mapping[str, Any]) -> dict[str, str]:
        """{name: text} of all schemas that one needs, those that others need first; of one name the first counts."""
        sizes: list[int] = []

        def read(reference: ReferencedVersion) -> tuple[str, Iterator[ReferencedVersion]]:
            _, where, number = reference
            version_body = self._body(where, number)
            sizes.append(len(version_body["schema"]))
            if len(sizes) > _MOST_REFERENCES or sum(sizes) > _MOST_REFERENCED_BYTES:
                raise _UnreadableError(f"it needs more than {_MOST_REFERENCES} schemas, or too long ones")
            return version_body["schema"], _references(where, version_body)

        return texts_of(_references(subject, body), read)

    def _body(self, subject: str, number: int) -> dict[str, Any]:
        """The JSON of a version's record."""
        version = self._state.of(subject).get(number)
        if version is None or self._topic is None:
            raise _UnreadableError(f"there is no version {number} of subject '{subject}', which it needs")
        try:
            batches = list(self._topic.read(ORDERED_PARTITION, version.offset, version.offset + 1))
        except (TopicChangedError, UnknownTopicError, OffsetOutOfRangeError) as e:
            raise _UnreadableError(str(e)) from e
        for value in (value for batch in batches for value in batch.column("value").to_pylist()):
            body = _json(value)
            if body is not None:
                return body
        raise _UnreadableError(f"the record of version {number} of subject '{subject}' was compacted away just now")


class _UnreadableError(Exception):
    """A version whose text, or that of one that it references, is not there."""


def _json(data: bytes | None) -> dict[str, Any] | None:
    try:
        body = orjson.loads(data or b"")
    except orjson.JSONDecodeError:
        return None
    return body if isinstance(body, dict) else None


def _version(value: Mapping[str, Any], offset: int) -> _Version | None:
    number, text = value.get("id"), value.get("schema")
    if type(number) is not int or not 0 < number < 2**31 or not isinstance(text, str):
        return None
    return _Version(number, _guid(value, text), bool(value.get("deleted")), offset)


def _guid(value: Mapping[str, Any], text: str) -> bytes:
    """The MD5 of what makes a schema the same one, as the record says it, or else of its text and references."""
    try:
        return UUID(value["guid"]).bytes
    except (KeyError, ValueError, TypeError, AttributeError):
        pass
    try:
        said = base64.b64decode(value["md5"], validate=True)
    except (KeyError, ValueError, TypeError):
        said = b""
    if len(said) == 16:
        return said
    md5 = hashlib.md5(text.encode(), usedforsecurity=False)
    for one in _listed(value):
        md5.update(one[0].encode() + one[1].encode() + one[2].to_bytes(4, "big", signed=True))
    return md5.digest()


def _listed(body: Mapping[str, Any]) -> Iterator[ReferencedVersion]:
    """The schemas that one references."""
    listed = body.get("references")
    for one in listed if isinstance(listed, list) else ():
        parts = one if isinstance(one, dict) else {}
        name, subject, version = (parts.get(key) for key in ("name", "subject", "version"))
        if isinstance(name, str) and isinstance(subject, str) and type(version) is int and -(2**31) <= version < 2**31:
            yield name, subject, version


def _references(subject: str, body: Mapping[str, Any]) -> Iterator[ReferencedVersion]:
    """The same with whole names of subjects: of the referencing one's context unless they name another."""
    referencing = SubjectName.of(subject)
    for name, other, version in _listed(body):
        yield name, referencing.inside(other), version
