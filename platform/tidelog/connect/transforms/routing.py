"""Transformations of topics' and schemas' names, Filter, and predicates: which records others get (KIP-585)."""

import re
from dataclasses import replace
from typing import Final, Protocol

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import ConnectRecord
from tidelog.connect.data.schema import SchemaType
from tidelog.connect.transforms.base import R, RecordSide, cached, field_of
from tidelog.connect.transforms.date_patterns import DatePattern

_NAMED_GROUP: Final = re.compile(r"\(\?<(?=[A-Za-z])")
_REFERENCE: Final = re.compile(r"\\(.)|\$\{([A-Za-z][A-Za-z0-9]*)\}|\$([0-9]+)|(\$)|\\$", re.DOTALL)


def java_pattern(text: str) -> re.Pattern[str]:
    """A regular expression of Java's; groups may be named `(?<name>…)`. Raises `ValueError` for one that is none."""
    try:
        return re.compile(_NAMED_GROUP.sub("(?P<", text))
    except re.error as error:
        raise ValueError(f"Invalid regex: {error}") from None


def java_replacement(text: str, pattern: re.Pattern[str]) -> str:
    """A replacement of Java's, with `$1` and `${name}`, as one for `pattern.sub`. Raises `ValueError`."""

    def as_python(match: re.Match[str]) -> str:
        escaped, name, number = match[1], match[2], match[3]
        if escaped is not None:
            return "\\\\" if escaped == "\\" else escaped
        if name is not None and name in pattern.groupindex:
            return rf"\g<{name}>"
        if number is not None and int(number[0]) <= pattern.groups:
            digits = 1
            while digits < len(number) and int(number[: digits + 1]) <= pattern.groups:
                digits += 1
            return rf"\g<{number[:digits]}>{number[digits:]}"
        raise ValueError(f"Illegal group reference {match[0]!r} in the replacement {text!r}: there is no such group.")

    return _REFERENCE.sub(as_python, text)


class RegexRouter:
    """Replace the topic of records whose topic an expression matches as a whole."""

    def __init__(self, pattern: re.Pattern[str], replacement: str) -> None:
        self._pattern, self._replacement = pattern, replacement

    def apply(self, record: R, /) -> R | None:
        """Route the record."""
        if record.topic is None or self._pattern.fullmatch(record.topic) is None:
            return record
        return record.but(topic=self._pattern.sub(self._replacement, record.topic, count=1))


class TimestampRouter:
    """Make topics of a text with `${topic}` and `${timestamp}`."""

    def __init__(self, topic_format: str, pattern: DatePattern) -> None:
        self._format, self._pattern = topic_format, pattern

    def apply(self, record: R, /) -> R | None:
        """Route the record. Raises `DataError` for one without timestamp."""
        if record.timestamp_ms is None:
            raise DataError(f"Timestamp missing on a record of {record.topic}: TimestampRouter names topics by it.")
        name = self._format.replace("${topic}", record.topic)
        return record.but(topic=name.replace("${timestamp}", self._pattern.format(record.timestamp_ms)))


class Filter:
    """Drop every record: a predicate says which records it gets."""

    def apply(self, record: R, /) -> R | None:  # noqa: ARG002
        """Drop the record."""
        return None


class SetSchemaMetadata:
    """Set the name or the version of a side's schema, or both."""

    def __init__(self, side: RecordSide, name: str | None, version: int | None, *, replace_null: bool = True) -> None:
        self._side, self._replace_null = side, replace_null
        self._schema = cached(
            lambda schema: replace(
                schema,
                name=schema.name if name is None else name,
                version=schema.version if version is None else version,
            )
        )

    def apply(self, record: R, /) -> R | None:
        """Set them. Raises `DataError` for a value without schema."""
        schema, value = self._side.of(record)
        if schema is None:
            if value is None:
                return record
            raise DataError("Schema required for [updating schema metadata]. Use a converter with schemas.")
        if schema.type is SchemaType.STRUCT and value is not None:
            value = {one.name: field_of(value, one, with_default=self._replace_null) for one in schema.fields}
        return self._side.put(record, self._schema(schema), value)


class RecordPredicate(Protocol):
    """A condition on records."""

    def holds(self, record: ConnectRecord, /) -> bool:
        """Whether the condition holds."""


class TopicNameMatches:
    """Records of topics whose whole name an expression matches."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    def holds(self, record: ConnectRecord, /) -> bool:
        """Whether the topic's name matches."""
        return record.topic is not None and self._pattern.fullmatch(record.topic) is not None


class HasHeaderKey:
    """Records with at least one header of a name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def holds(self, record: ConnectRecord, /) -> bool:
        """Whether there is such a header."""
        return any(header.key == self._name for header in record.headers)


class RecordIsTombstone:
    """Records whose value is null."""

    def holds(self, record: ConnectRecord, /) -> bool:
        """Whether the value is null."""
        return record.value is None
