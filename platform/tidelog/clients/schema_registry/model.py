"""What a registry's clients give and get, in confluent-kafka's shape."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from tidelog.clients.schema_registry.metadata import Metadata, RuleSet
from tidelog.log.base.errors import TidelogError


class SchemaRegistryError(TidelogError):
    """What a registry refused. `error_code` is Confluent's, `http_status_code` the status of HTTP."""

    UNKNOWN = -1

    def __init__(self, http_status_code: int, error_code: int, error_message: str) -> None:
        codes = "" if http_status_code < 0 else f" (HTTP status code {http_status_code}, SR code {error_code})"
        super().__init__(error_message + codes)
        self.http_status_code = http_status_code
        self.error_code = error_code
        self.error_message = error_message


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """Another schema that one needs: `name` in its text, `version` of `subject`."""

    name: str
    subject: str
    version: int

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Of the API's form."""
        return cls(src_dict["name"], src_dict["subject"], src_dict["version"])

    def to_dict(self) -> dict[str, Any]:
        """As the API has it."""
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema: its text, its type (AVRO, JSON, PROTOBUF), and what it references."""

    schema_str: str | None
    schema_type: str = "AVRO"
    references: Sequence[SchemaReference] = ()
    metadata: Metadata | None = field(default=None, hash=False)
    rule_set: RuleSet | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "references", tuple(self.references or ()))

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Of an answer of the API."""
        metadata, rules = src_dict.get("metadata"), src_dict.get("ruleSet")
        return cls(
            src_dict.get("schema"),
            src_dict.get("schemaType") or "AVRO",
            [SchemaReference.from_dict(one) for one in src_dict.get("references") or ()],
            None if metadata is None else Metadata.from_dict(metadata),
            None if rules is None else RuleSet.from_dict(rules),
        )

    def to_dict(self) -> dict[str, Any]:
        """As a request of the API: what is set."""
        values = {
            "schema": self.schema_str,
            "schemaType": self.schema_type,
            "references": [one.to_dict() for one in self.references] or None,
            "metadata": None if self.metadata is None else self.metadata.to_dict(),
            "ruleSet": None if self.rule_set is None else self.rule_set.to_dict(),
        }
        return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A version of a subject."""

    subject: str | None
    version: int | None
    schema_id: int | None
    guid: str | None
    schema: Schema

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Of an answer of the API."""
        schema = Schema.from_dict(src_dict)
        return cls(src_dict.get("subject"), src_dict.get("version"), src_dict.get("id"), src_dict.get("guid"), schema)

    def to_dict(self) -> dict[str, Any]:
        """As an answer of the API: what is set."""
        own = {"subject": self.subject, "version": self.version, "id": self.schema_id, "guid": self.guid}
        return {**{key: value for key, value in own.items() if value is not None}, **self.schema.to_dict()}


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """Where a schema is."""

    subject: str | None
    version: int | None

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Of an answer of the API."""
        return cls(src_dict.get("subject"), src_dict.get("version"))


class ConfigCompatibilityLevel(StrEnum):
    """Levels of compatibility."""

    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"
    NONE = "NONE"


@dataclass
class ServerConfig:
    """A configuration of a subject, or of all. None: not set.

    Answers name the level in two ways: `compatibility` what was set, `compatibility_level` what counts.
    """

    compatibility: ConfigCompatibilityLevel | str | None = None
    compatibility_level: ConfigCompatibilityLevel | str | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None
    compatibility_policy: str | None = None
    normalize: bool | None = None
    alias: str | None = None

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Of an answer of the API."""

        def of(key: str, kind: Any) -> Any:
            return None if src_dict.get(key) is None else kind(src_dict[key])

        return cls(
            compatibility=of("compatibility", ConfigCompatibilityLevel),
            compatibility_level=of("compatibilityLevel", ConfigCompatibilityLevel),
            compatibility_group=src_dict.get("compatibilityGroup"),
            default_metadata=of("defaultMetadata", Metadata.from_dict),
            override_metadata=of("overrideMetadata", Metadata.from_dict),
            default_rule_set=of("defaultRuleSet", RuleSet.from_dict),
            override_rule_set=of("overrideRuleSet", RuleSet.from_dict),
            compatibility_policy=src_dict.get("compatibilityPolicy"),
            normalize=src_dict.get("normalize"),
            alias=src_dict.get("alias"),
        )

    def to_dict(self) -> dict[str, Any]:
        """As a request of the API: what is set."""

        def plain(value: Any) -> Any:
            return value.to_dict() if hasattr(value, "to_dict") else getattr(value, "value", value)

        values = {
            "compatibility": self.compatibility,
            "compatibilityLevel": self.compatibility_level,
            "compatibilityGroup": self.compatibility_group,
            "defaultMetadata": self.default_metadata,
            "overrideMetadata": self.override_metadata,
            "defaultRuleSet": self.default_rule_set,
            "overrideRuleSet": self.override_rule_set,
            "compatibilityPolicy": self.compatibility_policy,
            "normalize": self.normalize,
            "alias": self.alias,
        }
        return {key: plain(value) for key, value in values.items() if value is not None}
