"""What differs between two lakes, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Presence(StrEnum):
    """Which of two lakes has something."""

    A = "only in A"
    B = "only in B"
    BOTH = "differs"


@dataclass(frozen=True, slots=True)
class RecordDiff:
    """A record, or the newest one of a key, that differs. `a`, `b`: as each lake has it; None where it has none."""

    where: Presence
    partition: int
    offset: int | None
    a: Mapping[str, Any] | None
    b: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class TopicDiff:
    """How a topic differs. `counts`: of records, or of keys; `first`: the first of them.

    `config`: by key, what each lake has. `partitions`: at A and at B. `note`: what makes them two topics.
    `read`: how many offsets had to be compared; those in files that both lakes name are not among them.
    """

    topic: str
    where: Presence | None = None
    counts: Mapping[Presence, int] = field(default_factory=dict)
    first: tuple[RecordDiff, ...] = ()
    config: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    partitions: tuple[int, int] = (0, 0)
    note: str = ""
    read: int = 0

    @property
    def differs(self) -> bool:
        """Whether there is any difference."""
        different = self.partitions[0] != self.partitions[1]
        return bool(self.where or self.config or self.note or different or any(self.counts.values()))


@dataclass(frozen=True, slots=True)
class GroupDiff:
    """The positions of a group that differ: by topic and partition, the next offset at A and at B; None for none."""

    group: str
    where: Presence
    positions: Mapping[tuple[str, int], tuple[int | None, int | None]]


@dataclass(frozen=True, slots=True)
class LakeDiff:
    """How two lakes differ. `by_key`: topics were compared by the newest record of each key."""

    a: str
    b: str
    by_key: bool
    topics: tuple[TopicDiff, ...]
    groups: tuple[GroupDiff, ...] = ()
    config: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        """Whether there is any difference."""
        return bool(self.config or self.groups or any(topic.differs for topic in self.topics))
