"""Records of the topic `_schemas`, in the keys and values that Confluent's registry writes and reads."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidelog.schemas.base.json_text import dumps
from tidelog.schemas.base.model import Reference, RuleSet, Schema, SchemaKind, SchemaMetadata

SCHEMA: Final = "SCHEMA"
CONFIG: Final = "CONFIG"
MODE: Final = "MODE"
DELETE_SUBJECT: Final = "DELETE_SUBJECT"
CLEAR_SUBJECT: Final = "CLEAR_SUBJECT"
CONTEXT: Final = "CONTEXT"
NOOP: Final = "NOOP"
_MAGIC: Final = {SCHEMA: 1}


@dataclass(frozen=True, slots=True)
class RegistryRecord:
    """A record: what it is about, and what it says; None takes away what an earlier one said.

    `subject` and `version`: of the key. `value`: the JSON of the value. `at_ms`: its timestamp (ms since the epoch),
    once it is in the log.
    """

    kind: str
    subject: str | None = None
    version: int = 0
    value: Mapping[str, Any] | None = field(default=None)
    at_ms: int | None = field(default=None, compare=False)

    def key(self) -> bytes:
        """The key's bytes, in Confluent's order of fields."""
        parts: dict[str, Any] = {"keytype": self.kind}
        if self.kind == CONTEXT:
            parts |= {"tenant": "default", "context": self.subject}
        elif self.subject is not None:
            parts["subject"] = self.subject
        if self.kind == SCHEMA:
            parts["version"] = self.version
        return dumps({**parts, "magic": _MAGIC.get(self.kind, 0)}).encode()

    def payload(self) -> bytes | None:
        """The value's bytes."""
        return None if self.value is None else dumps(self.value).encode()


@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """A version of a subject. `deleted`: softly, which keeps its number and id taken. `at_ms`: as of its record."""

    subject: str
    version: int
    id: int
    schema: Schema
    deleted: bool = False
    at_ms: int | None = field(default=None, compare=False)

    def record(self) -> RegistryRecord:
        """The record that says so."""
        schema = self.schema
        value: dict[str, Any] = {"subject": self.subject, "version": self.version, "id": self.id}
        value["md5"] = base64.b64encode(schema.digest()).decode()
        value |= {**schema.json(), "schema": schema.text, "deleted": self.deleted}
        return RegistryRecord(SCHEMA, self.subject, self.version, value)


def tombstone(subject: str, version: int) -> RegistryRecord:
    """The record that takes a version away for good."""
    return RegistryRecord(SCHEMA, subject, version)


def read(key: bytes | None, value: bytes | None, at_ms: int | None = None) -> RegistryRecord | None:
    """A record of the topic; None for one that is not the registry's, or of a kind that it does not know.

    An empty value takes away, as none does: so Karapace deletes.
    """
    try:
        parts = json.loads(key or b"")
        content = json.loads(value) if value else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(parts, dict) or not (content is None or isinstance(content, dict)):
        return None
    kind = parts.get("keytype")
    if kind not in (SCHEMA, CONFIG, MODE, DELETE_SUBJECT, CLEAR_SUBJECT, CONTEXT, NOOP):
        return None
    subject = parts.get("context") if kind == CONTEXT else parts.get("subject")
    version = parts.get("version", 0)
    if not (subject is None or isinstance(subject, str)) or not isinstance(version, int):
        return None
    return RegistryRecord(kind, subject, version, content, at_ms)


def subject_version(record: RegistryRecord) -> SubjectVersion:
    """The version that a record of the kind SCHEMA says. Raises `ValueError` where it says none."""
    value = record.value or {}
    if record.subject is None or not isinstance(value.get("id"), int) or not isinstance(value.get("schema"), str):
        raise ValueError(f"the record {record.key()!r} of _schemas holds no schema")
    schema = Schema(
        value["schema"],
        SchemaKind(value.get("schemaType") or SchemaKind.AVRO),
        tuple(Reference.of(one) for one in value.get("references") or ()),
        SchemaMetadata.of(value.get("metadata")),
        RuleSet.of(value.get("ruleSet")),
    )
    return SubjectVersion(
        record.subject, record.version, value["id"], schema, bool(value.get("deleted")), at_ms=record.at_ms
    )
