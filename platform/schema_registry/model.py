"""What a registry's clients give and get, in confluent-kafka's shape."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tidelog.log.base.errors import TidelogError


class SchemaRegistryError(TidelogError):
    """What a registry refused. `error_code` is Confluent's, `http_status_code` the status of HTTP."""

    def __init__(self, http_status_code: int, error_code: int, error_message: str) -> None:
        super().__init__(f"{error_message} (HTTP status code {http_status_code}, SR code {error_code})")
        self.http_status_code = http_status_code
        self.error_code = error_code
        self.error_message = error_message


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """Another schema that one needs: `name` in its text, `version` of `subject`."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema: its text, its type (AVRO, JSON, PROTOBUF), and what it references.

    `metadata` and `rule_set` are JSON, as Confluent's API has them.
    """

    schema_str: str | None
    schema_type: str = "AVRO"
    references: Sequence[SchemaReference] = ()
    metadata: Mapping[str, Any] | None = field(default=None, hash=False)
    rule_set: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "references", tuple(self.references))

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Of an answer of the API."""
        references = [
            SchemaReference(one["name"], one["subject"], one["version"]) for one in found.get("references", ())
        ]
        kind = found.get("schemaType") or "AVRO"
        return cls(found.get("schema"), kind, references, found.get("metadata"), found.get("ruleSet"))

    def to_json(self) -> dict[str, Any]:
        """As a request of the API."""
        references = [{"name": one.name, "subject": one.subject, "version": one.version} for one in self.references]
        found = {
            "schema": self.schema_str,
            "schemaType": self.schema_type,
            "references": references or None,
            "metadata": self.metadata,
            "ruleSet": self.rule_set,
        }
        return {key: value for key, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A version of a subject."""

    subject: str | None
    version: int | None
    schema_id: int | None
    guid: str | None
    schema: Schema

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Of an answer of the API."""
        schema = Schema.from_json(found)
        return cls(found.get("subject"), found.get("version"), found.get("id"), found.get("guid"), schema)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """A configuration of a subject, or of all. None: not set."""

    compatibility: str | None = None
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    normalize: bool | None = None
    alias: str | None = None

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Of an answer of the API, which names the level in two ways."""
        level = found.get("compatibilityLevel", found.get("compatibility"))
        policy, group = found.get("compatibilityPolicy"), found.get("compatibilityGroup")
        return cls(level, policy, group, found.get("normalize"), found.get("alias"))

    def to_json(self) -> dict[str, Any]:
        """As a request of the API: what is set."""
        found = {
            "compatibility": self.compatibility,
            "compatibilityPolicy": self.compatibility_policy,
            "compatibilityGroup": self.compatibility_group,
            "normalize": self.normalize,
            "alias": self.alias,
        }
        return {key: value for key, value in found.items() if value is not None}
