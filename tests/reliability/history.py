"""What the clients of a run saw, and the log at its end. No product code: the checkers must not share its mistakes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Place = tuple[str, int]


class Policy(StrEnum):
    """What may become of a topic's records: nothing, they expire from the start, or newer ones of their key stay."""

    KEEP = "keep"
    EXPIRE = "expire"
    COMPACT = "compact"


@dataclass(frozen=True, slots=True)
class Rule:
    """A topic's rule. `once`: its producers are idempotent."""

    policy: Policy = Policy.KEEP
    once: bool = True


@dataclass(frozen=True, slots=True)
class Sent:
    """What a producer asked for, noted before it did: the `number`th value of one producer session."""

    topic: str
    sender: str
    number: int


@dataclass(frozen=True, slots=True)
class Acked:
    """A record whose acknowledgement a producer got, noted after that."""

    place: Place
    offset: int
    value: str
    key: str | None = None


@dataclass(slots=True)
class Transaction:
    """A transaction as its producer saw it. `told`: "committed", "aborted", or "" when nothing was answered."""

    name: str
    values: dict[str, str] = field(default_factory=dict)  # value -> topic
    asked_to_commit: bool = False
    told: str = ""


@dataclass(slots=True)
class Stretch:
    """What one reader read of a partition from an assignment, or a seek, to the next."""

    reader: str
    group: str
    place: Place
    reads: list[tuple[int, str]] = field(default_factory=list)  # offset, value


@dataclass(frozen=True, slots=True)
class Look:
    """What an observer saw at once: (start, end) of partitions, and committed offsets looked at before those."""

    by: str
    bounds: Mapping[Place, tuple[int, int]]
    committed: Mapping[tuple[str, Place], int] = field(default_factory=dict)


@dataclass(slots=True)
class Partition:
    """A partition of the final log: (offset, key, value) of each record, in the order that they were read."""

    start: int = 0
    end: int = 0
    records: list[tuple[int, str | None, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Copy:
    """Records of topics that were copied exactly once, each with its place behind `<` in the copy's value.

    `group`: those below its committed offsets were, no others; None: all of them. `goes_on`: of each partition those
    up to some offset, as the copier still works.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    group: str | None = None
    goes_on: bool = False


@dataclass(slots=True)
class History:
    """All of it."""

    rules: dict[str, Rule] = field(default_factory=dict)
    sent: dict[str, Sent] = field(default_factory=dict)  # by value
    acked: list[Acked] = field(default_factory=list)
    transactions: dict[str, Transaction] = field(default_factory=dict)
    stretches: list[Stretch] = field(default_factory=list)
    unassigned: list[tuple[str, Place, int]] = field(default_factory=list)  # reader, what it read without owning it
    looks: list[Look] = field(default_factory=list)
    log: dict[Place, Partition] = field(default_factory=dict)
    committed: dict[tuple[str, Place], int] = field(default_factory=dict)
    copies: list[Copy] = field(default_factory=list)

    def rule(self, topic: str) -> Rule:
        """The topic's rule."""
        return self.rules.get(topic, Rule())

    def look_at_the_end(self) -> Look:
        """The final log as the last look."""
        return Look("the end", {place: (one.start, one.end) for place, one in self.log.items()}, self.committed)


def source_of(value: str) -> tuple[Place, int] | None:
    """The place and offset behind `<`, of which a value is a copy."""
    _, mark, source = value.partition("<")
    if not mark:
        return None
    topic, partition, offset = source.split("/")
    return (topic, int(partition)), int(offset)
