"""Predicates: which records a transformation gets (KIP-585)."""

import re
from typing import Protocol

from tidelog.connect.data.records import ConnectRecord


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
