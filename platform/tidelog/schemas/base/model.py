"""A schema as clients send it and the log stores it: text, kind, references, metadata, rules; and its identity."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Self
from uuid import UUID

from tidelog.log.base.typed_values import listed
from tidelog.schemas.base.errors import SchemaError, malformed

# The property in which metadata state the version that a schema has.
VERSION_PROPERTY: Final = "confluent:version"
# The property that lists, with commas between, names which no field may have.
_RESERVED: Final = "confluent:reserved"


class SchemaKind(StrEnum):
    """The kinds of schemas, as Confluent's API names them."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """Another schema that one needs: under `name` in its text, stored as `version` of `subject`."""

    name: str
    subject: str
    version: int

    @classmethod
    def of(cls, value: Any) -> Self:
        """From its JSON. Raises `RegistryError` 400 for other shapes, 42201 where a part is missing."""
        parts = value if isinstance(value, Mapping) else {"version": value}
        name, subject, version = parts.get("name"), parts.get("subject"), parts.get("version")
        if not (version is None or isinstance(version, int)) or isinstance(version, bool):
            raise malformed("A reference must be a JSON object whose version is a number.")
        if not isinstance(name, str) or not isinstance(subject, str) or version is None:
            raise SchemaError("A reference needs a name, a subject and a version (a number), all three.")
        return cls(name, subject, version)

    def json(self) -> dict[str, Any]:
        """As JSON, in Confluent's order."""
        return {"name": self.name, "subject": self.subject, "version": self.version}

    def hashed(self) -> Iterator[bytes]:
        """What of it counts for a schema's identity."""
        yield self.name.encode()
        yield self.subject.encode()
        yield self.version.to_bytes(4, "big", signed=True)


@dataclass(frozen=True, slots=True)
class SchemaMetadata:
    """What users say about a schema. Stored and returned.

    `tags`: {path in the schema: tags}; `properties`: {name: value}; `sensitive`: names of properties to hide.
    """

    tags: Mapping[str, tuple[str, ...]] | None = None
    properties: Mapping[str, str] | None = None
    sensitive: tuple[str, ...] | None = None

    @classmethod
    def of(cls, value: Any) -> Self | None:
        """From its JSON; None where there is none. Raises `RegistryError` 400 for other shapes."""
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise malformed("The metadata must be a JSON object with tags, properties and sensitive.")
        tags = value.get("tags")
        if tags is not None:
            if not isinstance(tags, Mapping):
                raise malformed("The metadata's tags must be a JSON object of lists of texts.")
            tags = {key: _texts(tags[key], "tags") for key in sorted(tags)}
        return cls(tags, _text_map(value.get("properties"), "properties"), _texts(value.get("sensitive"), "sensitive"))

    @property
    def stated_version(self) -> int | None:
        """The version that the properties state, None where they state none."""
        text = (self.properties or {}).get(VERSION_PROPERTY, "")
        return int(text) if text.isascii() and text.isdecimal() else None

    def stating(self, version: int) -> Self:
        """The same, with the version in the properties."""
        properties = {**(self.properties or {}), VERSION_PROPERTY: str(version)}
        return replace(self, properties={key: properties[key] for key in sorted(properties)})

    @property
    def reserved(self) -> frozenset[str]:
        """Names that the properties keep fields from having."""
        return frozenset(listed((self.properties or {}).get(_RESERVED, "")))

    def json(self) -> dict[str, Any]:
        """As JSON, without what is empty."""
        tags = {key: list(values) for key, values in (self.tags or {}).items()}
        properties = dict(self.properties or {})
        return _filled({"tags": tags, "properties": properties, "sensitive": list(self.sensitive or ())})

    def hashed(self) -> Iterator[bytes]:
        """What of it counts for a schema's identity."""
        for key, values in (self.tags or {}).items():
            yield from (part.encode() for part in (key, *values))
        for key, value in (self.properties or {}).items():
            yield key.encode() + value.encode()
        yield from (name.encode() for name in self.sensitive or ())


@dataclass(frozen=True, slots=True)
class SchemaRule:
    """A rule of Confluent's data contracts. Stored and returned, never executed."""

    name: str | None = None
    doc: str | None = None
    kind: str | None = None
    mode: str | None = None
    type: str | None = None
    tags: tuple[str, ...] | None = None
    params: Mapping[str, str] | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False

    KINDS = ("TRANSFORM", "CONDITION")
    MODES = ("UPGRADE", "DOWNGRADE", "UPDOWN", "READ", "WRITE", "WRITEREAD")

    @classmethod
    def of(cls, value: Any) -> Self:
        """From its JSON. Raises `RegistryError` 400 for other shapes."""
        if not isinstance(value, Mapping):
            raise malformed("A rule must be a JSON object.")
        for key, allowed in (("kind", cls.KINDS), ("mode", cls.MODES)):
            if value.get(key) is not None and value[key] not in allowed:
                raise malformed(f"A rule's {key} must be one of {', '.join(allowed)}, not {value[key]!r}.")
        texts = {key: _text(value.get(key), key) for key in ("name", "doc", "kind", "mode", "type", "expr")}
        return cls(
            **texts,
            tags=_texts(value.get("tags"), "tags"),
            params=_text_map(value.get("params"), "params"),
            on_success=_text(value.get("onSuccess"), "onSuccess"),
            on_failure=_text(value.get("onFailure"), "onFailure"),
            disabled=bool(value.get("disabled")),
        )

    def json(self) -> dict[str, Any]:
        """As JSON, without what is empty."""
        parts: dict[str, Any] = {
            "name": self.name,
            "doc": self.doc,
            "kind": self.kind,
            "mode": self.mode,
            "type": self.type,
            "tags": list(self.tags or ()),
            "params": dict(self.params or {}),
            "expr": self.expr,
            "onSuccess": self.on_success,
            "onFailure": self.on_failure,
        }
        return {**_filled(parts), "disabled": self.disabled}

    def hashed(self) -> Iterator[bytes]:
        """What of it counts for a schema's identity."""
        yield from (part.encode() for part in (self.name, self.doc, self.kind, self.mode, self.type) if part)
        yield from (tag.encode() for tag in self.tags or ())
        yield from (f"{key}{value}".encode() for key, value in (self.params or {}).items())
        yield from (part.encode() for part in (self.expr, self.on_success, self.on_failure) if part)
        if self.disabled:
            yield b"\x01"


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of a schema, by when they would run. Stored and returned, never executed."""

    migration: tuple[SchemaRule, ...] | None = None
    domain: tuple[SchemaRule, ...] | None = None
    encoding: tuple[SchemaRule, ...] | None = None
    enable_at: str | None = None

    @classmethod
    def of(cls, value: Any) -> Self | None:
        """From its JSON; None where there is none. Raises `RegistryError` 400 for other shapes."""
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise malformed("The ruleSet must be a JSON object with migrationRules and domainRules.")
        rules: list[tuple[SchemaRule, ...] | None] = []
        for key in ("migrationRules", "domainRules", "encodingRules"):
            named = value.get(key)
            if not (named is None or isinstance(named, list)):
                raise malformed(f"The ruleSet's {key} must be a list of rules.")
            rules.append(None if named is None else tuple(SchemaRule.of(one) for one in named))
        migration, domain, encoding = rules
        return cls(migration, domain, encoding, _text(value.get("enableAt"), "enableAt"))

    def json(self) -> dict[str, Any]:
        """As JSON, without what is empty."""
        parts: dict[str, Any] = {
            "migrationRules": [rule.json() for rule in self.migration or ()],
            "domainRules": [rule.json() for rule in self.domain or ()],
            "encodingRules": [rule.json() for rule in self.encoding or ()],
            "enableAt": self.enable_at,
        }
        return _filled(parts)

    def has_type(self, name: str) -> bool:
        """Whether a rule has a type."""
        every = (*(self.domain or ()), *(self.migration or ()), *(self.encoding or ()))
        return any(rule.type == name for rule in every)

    def hashed(self) -> Iterator[bytes]:
        """What of it counts for a schema's identity."""
        for rules in (self.migration, self.domain, self.encoding):
            for rule in rules or ():
                yield from rule.hashed()
        yield (self.enable_at or "").encode()


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as it is sent or stored. Immutable; two that are equal are one schema, with one id."""

    text: str
    kind: SchemaKind = SchemaKind.AVRO
    references: tuple[Reference, ...] = ()
    metadata: SchemaMetadata | None = None
    rules: RuleSet | None = field(default=None)

    def digest(self) -> bytes:
        """The MD5 that Confluent's registry takes for a schema's identity (16 bytes).

        Of the text, the references (name, subject, version as int32) and, each behind a byte 1, metadata and rules;
        the kind doesn't count.
        """
        md5 = hashlib.md5(self.text.encode(), usedforsecurity=False)
        for reference in self.references:
            md5.update(b"".join(reference.hashed()))
        for extra in (self.metadata, self.rules):
            if extra is not None:
                md5.update(b"\x01" + b"".join(extra.hashed()))
        return md5.digest()

    @property
    def guid(self) -> str:
        """The digest, written as a UUID."""
        return str(UUID(bytes=self.digest()))

    def json(self) -> dict[str, Any]:
        """What its JSON says of it beside its text, in Confluent's order; the kind only where it isn't Avro."""
        fields: dict[str, Any] = {} if self.kind is SchemaKind.AVRO else {"schemaType": self.kind.value}
        if self.references:
            fields["references"] = [reference.json() for reference in self.references]
        if self.metadata is not None:
            fields["metadata"] = self.metadata.json()
        if self.rules is not None:
            fields["ruleSet"] = self.rules.json()
        return fields

    def with_text(self, text: str) -> Self:
        """The same with another text."""
        return replace(self, text=text)


def _filled(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parts.items() if value not in (None, [], {}, "")}


def _text(value: Any, key: str) -> str | None:
    if not (value is None or isinstance(value, str)):
        raise malformed(f"{key} must be a text, not {value!r}.")
    return value


def _texts(value: Any, key: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise malformed(f"{key} must be a list of texts, not {value!r}.")
    return tuple(sorted(set(value)))


def _text_map(value: Any, key: str) -> Mapping[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):
        raise malformed(f"{key} must be a JSON object of texts, not {value!r}.")
    return dict(sorted(value.items()))
