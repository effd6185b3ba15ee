"""What a consumer group is, as its log says: generation, members and committed offsets (Kafka's classic protocol)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from tidelog.transactions.model import TransactionKey

# A partition by topic and number.
TopicPartition = tuple[str, int]

R_co = TypeVar("R_co", covariant=True)


class GroupPhase(StrEnum):
    """Kafka's states of a group, by the names its tools print."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group. Times in ms.

    `protocols`: the assignors it supports, by preference, each with the member's metadata for it. `joined` says that
    it takes part in the round that is under way; it is false outside rounds. `turn` is the group's count of joins when
    it last joined: a member that was watched since an earlier turn must not be evicted for that.
    """

    member_id: str
    client_id: str
    host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    instance_id: str | None = None
    assignment: bytes = b""
    joined: bool = False
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """A group: its members, and what they agreed on in this generation. Generations never go back."""

    group_id: str
    phase: GroupPhase = GroupPhase.EMPTY
    generation: int = 0
    protocol_type: str = ""
    protocol: str | None = None
    leader: str | None = None
    members: Mapping[str, Member] = field(default_factory=dict)
    turns: int = 0
    # When it became empty, ms since the epoch by the clock of the member that wrote that; offsets expire from there.
    empty_since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset a group will read of a partition. `commit_ms`: ms since the epoch, the committer's clock.

    `topic_id`: the id of the topic that it was read in; "" where it is not known.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
    generation: int = -1
    commit_ms: int = 0
    topic_id: str = ""


# An offset of a partition that is committed when a transaction is.
PendingPlace = tuple[TransactionKey, TopicPartition]


@dataclass(frozen=True, slots=True)
class GroupView:
    """All that a group's log says of one group: `group` is None until a member joins it or after it was deleted.

    `pending`: offsets that wait for transactions, in the order in which they were written.
    """

    group: Group | None = None
    offsets: Mapping[TopicPartition, CommittedOffset] = field(default_factory=dict)
    pending: Mapping[PendingPlace, CommittedOffset] = field(default_factory=dict)

    @property
    def exists(self) -> bool:
        """Whether there is such a group: it has members, had some, or has offsets, be they an open transaction's."""
        return self.group is not None or bool(self.offsets) or bool(self.pending)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Generic[R_co]):
    """What a rule makes of a `GroupView`; nothing is written when it changes nothing.

    `group`: the group from now on; None leaves it as it is, and one whose phase is `GroupPhase.DEAD` is forgotten.
    `offsets`: offsets from now on; those that aren't named stay, None forgets one. `pending` likewise.
    """

    response: R_co
    group: Group | None = None
    offsets: Mapping[TopicPartition, CommittedOffset | None] = field(default_factory=dict)
    pending: Mapping[PendingPlace, CommittedOffset | None] = field(default_factory=dict)
