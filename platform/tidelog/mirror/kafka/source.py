"""What a mirror asks of a Kafka cluster, and what it gets: values, and the port behind which a client is."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tidelog.log.base.errors import TidelogError

# A topic's partition.
Place = tuple[str, int]


class KafkaSourceError(TidelogError, retriable=True):
    """Kafka, or a client of it, did not answer or refused; the next look tries again."""


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic at Kafka. `id` is "" where the cluster has none.

    `config`: the values that someone set, for the topic or for its brokers. `keys`: all that it has values for.
    """

    name: str
    id: str
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict)
    keys: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """What a group committed for a partition."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class SourceGroups:
    """Committed offsets of each group that can be read now, and of each that may not be read why."""

    offsets: Mapping[str, Mapping[Place, SourceOffset]]
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Taken:
    """Records of one partition as they came, column by column, in the order of their offsets.

    `timestamps` in ms since the epoch, `kinds` 0 CreateTime and 1 LogAppendTime. `reached`: the consumer has seen all
    up to this offset, gaps included, and it is at the end of what is committed. `out_of_range`: it asked for an offset
    that is not there. `problem`: why nothing more comes of it.
    """

    offsets: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    headers: list[list[tuple[str, bytes | None]] | None] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    size: int = 0
    reached: int | None = None
    out_of_range: bool = False
    problem: str = ""

    def extend(self, more: "Taken") -> None:
        """Take what came after it, too; nothing follows what ended a partition."""
        if self.problem or self.out_of_range:
            return
        self.offsets += more.offsets
        self.keys += more.keys
        self.values += more.values
        self.headers += more.headers
        self.timestamps += more.timestamps
        self.kinds += more.kinds
        self.size += more.size
        self.reached = self.reached if more.reached is None else more.reached
        self.out_of_range, self.problem = more.out_of_range, more.problem


class KafkaSource(Protocol):
    """A Kafka cluster. Every method raises `KafkaSourceError`."""

    @property
    def address(self) -> str:
        """As it was named: `kafka://host:port`."""

    def cluster_id(self) -> str:
        """The cluster's id."""

    def topics(self) -> dict[str, SourceTopic]:
        """Topics by name, internal ones left out."""

    def ends(self, places: Collection[Place]) -> dict[Place, tuple[int, int]]:
        """{partition: (log start offset, end of what is committed)}; one that gives no answer is left out."""

    def follow(self, positions: Mapping[Place, int]) -> None:
        """Read these partitions from these offsets on, and no others; nothing that was read before comes any more."""

    def take(self, most: int, timeout_s: float) -> dict[Place, Taken]:
        """At most `most` records of transactions that are committed, or of none, and what else there is to tell.

        Returns after `timeout_s` at the latest.
        """

    def groups(self) -> SourceGroups:
        """Committed offsets of the groups; of one whose offsets wait for a transaction none."""

    def close(self) -> None:
        """End connections and threads."""
