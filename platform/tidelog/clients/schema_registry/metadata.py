"""Metadata and rules of schemas, in confluent-kafka's classes.

Rules are kept and handed on, never run: serializers refuse a schema that has rules for them (`refuse_rules`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final, Self

from tidelog.clients.values.errors import SerializationError


class RuleKind(StrEnum):
    """What a rule does to a message."""

    CONDITION = "CONDITION"
    TRANSFORM = "TRANSFORM"


class RuleMode(StrEnum):
    """When a rule runs."""

    UPGRADE = "UPGRADE"
    DOWNGRADE = "DOWNGRADE"
    UPDOWN = "UPDOWN"
    READ = "READ"
    WRITE = "WRITE"
    WRITEREAD = "WRITEREAD"


@dataclass
class MetadataTags:
    """{path of fields: tags}."""

    tags: dict[str, list[str]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As the API has it."""
        return dict(self.tags)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Of the API's form."""
        return cls(dict(src_dict))


@dataclass
class MetadataProperties:
    """{key: value}."""

    properties: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As the API has it."""
        return dict(self.properties)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Of the API's form."""
        return cls(dict(src_dict))


@dataclass
class Metadata:
    """What is said of a schema beside its text. `sensitive`: names of properties."""

    tags: MetadataTags | None = None
    properties: MetadataProperties | None = None
    sensitive: list[str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As the API has it: what is set."""
        tags = self.tags and self.tags.to_dict()
        properties = self.properties and self.properties.to_dict()
        return _given(tags=tags, properties=properties, sensitive=self.sensitive)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Of the API's form."""
        tags, properties = src_dict.get("tags"), src_dict.get("properties")
        return cls(
            None if tags is None else MetadataTags.from_dict(tags),
            None if properties is None else MetadataProperties.from_dict(properties),
            src_dict.get("sensitive"),
        )


@dataclass
class RuleParams:
    """{key: value}."""

    params: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As the API has it."""
        return dict(self.params)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Of the API's form."""
        return cls(dict(src_dict))


@dataclass
class Rule:
    """A rule of a schema. `type`: what runs it, such as CEL or ENCRYPT; `on_success`, `on_failure`: actions."""

    name: str | None = None
    doc: str | None = None
    kind: RuleKind | None = None
    mode: RuleMode | None = None
    type: str | None = None
    tags: list[str] | None = None
    params: RuleParams | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """As the API has it: what is set."""
        values = {_API_NAMES.get(one.name, one.name): getattr(self, one.name) for one in fields(self)}
        plain = {
            "kind": self.kind and self.kind.value,
            "mode": self.mode and self.mode.value,
            "params": self.params and self.params.to_dict(),
        }
        return _given(**{**values, **plain})

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Of the API's form. Raises `ValueError` for a kind or a mode that there is not."""
        given = {one.name: src_dict.get(_API_NAMES.get(one.name, one.name)) for one in fields(cls)}
        given["kind"] = given["kind"] and RuleKind(given["kind"])
        given["mode"] = given["mode"] and RuleMode(given["mode"])
        params = src_dict.get("params")
        given["params"] = None if params is None else RuleParams.from_dict(params)
        return cls(**given)


_API_NAMES: Final = {"on_success": "onSuccess", "on_failure": "onFailure"}


@dataclass
class RuleSet:
    """A schema's rules. `enable_at`: from when on they count."""

    migration_rules: list[Rule] | None = None
    domain_rules: list[Rule] | None = None
    encoding_rules: list[Rule] | None = None
    enable_at: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As the API has it: what is set."""

        def listed(rules: list[Rule] | None) -> list[dict[str, Any]] | None:
            return None if rules is None else [one.to_dict() for one in rules]

        return _given(
            migrationRules=listed(self.migration_rules),
            domainRules=listed(self.domain_rules),
            encodingRules=listed(self.encoding_rules),
            enableAt=self.enable_at,
        )

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Of the API's form."""

        def listed(key: str) -> list[Rule] | None:
            return None if src_dict.get(key) is None else [Rule.from_dict(one) for one in src_dict[key]]

        return cls(listed("migrationRules"), listed("domainRules"), listed("encodingRules"), src_dict.get("enableAt"))


_WRITING: Final = frozenset({RuleMode.WRITE, RuleMode.WRITEREAD})
_READING: Final = frozenset({RuleMode.READ, RuleMode.WRITEREAD})


def refuse_rules(rules: RuleSet | None, what: str, *, reads: bool) -> None:
    """Raise `SerializationError` where a schema has a rule that its messages need to be read or written by.

    A serializer that left such a rule out would write in the clear what is to be encrypted.
    """
    if rules is None:
        return
    modes = _READING if reads else _WRITING
    for rule in _active((*(rules.domain_rules or ()), *(rules.encoding_rules or ()))):
        if rule.mode is None or rule.mode in modes:
            does = "read" if reads else "written"
            raise SerializationError(
                f"The rule '{rule.name}' of type {rule.type} belongs to {what}: tidelog's serializers run no rules, and"
                f" without it the value would not be {does} as the schema asks. Use confluent-kafka's serializers."
            )


def _active(rules: Iterable[Rule]) -> Iterable[Rule]:
    return (rule for rule in rules if not rule.disabled)


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
