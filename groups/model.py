"""What a consumer group is, as its log says: its members, what they read, and committed offsets.

A group rebalances by Kafka's classic protocol (`Group`), by that of KIP-848 (`ConsumerGroup`), or by that of KIP-1071
(`StreamsGroup`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from tidelog.groups.topology import NO_TASKS, StreamsTopology, Tasks
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
    # Of groups of the type consumer: no assignment of the newest epoch yet; members that have not all of theirs yet.
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    # Of streams groups: their topics are not as their topology needs them.
    NOT_READY = "NotReady"


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

    @property
    def type(self) -> str:
        """Its type, by Kafka's name: its members rebalance in rounds."""
        return "classic"


class AssignedPartition(NamedTuple):
    """A partition that a member is to read: of the topic of an id, and of the name that it had then."""

    topic_id: str
    topic: str
    partition: int


Assignment: TypeAlias = frozenset[AssignedPartition]

# The epoch of a static member that is away, and will be back within its session timeout.
AWAY = -2


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member of a `ConsumerGroup`. Times in ms.

    `topics` that it subscribes to by name, and `matched` that its `regex` matches and it may see. `assignor`: the one
    that it votes for. `epoch`: the last one that it has heard of. `previous_epoch`: the one before, which a request may
    still name whose answer was lost. `assigned`: what it may read. `revoking`: what it has to give up first; no other
    member gets that before it says that it has. `protocols`: of a member of the classic protocol, as a `Member` has
    them; none for one of the consumer protocol.
    """

    member_id: str
    client_id: str = ""
    host: str = ""
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    instance_id: str | None = None
    rack: str | None = None
    topics: frozenset[str] = frozenset()
    regex: str | None = None
    matched: frozenset[str] = frozenset()
    assignor: str | None = None
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Assignment = frozenset()
    revoking: Assignment = frozenset()
    protocols: tuple[tuple[str, bytes], ...] = ()

    @property
    def is_classic(self) -> bool:
        """Whether it is a member by the classic protocol, among others of the consumer protocol."""
        return bool(self.protocols)

    @property
    def turn(self) -> int:
        """What a watch over it goes by: a member whose epoch has changed since lives."""
        return self.epoch

    @property
    def joined(self) -> bool:
        """Whether it takes part in a round: there are none."""
        return False

    @property
    def subscription(self) -> frozenset[str]:
        """The names of all topics that it subscribes to."""
        return self.topics | self.matched

    @property
    def held(self) -> Assignment:
        """The partitions that no other member may get now."""
        return self.assigned | self.revoking


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A group whose assignment no member works out (KIP-848). Epochs never go back.

    `epoch`: grows with each change of members, subscriptions or topics. `assignment_epoch`: the one that `targets` were
    computed for, by `assignor`: what each member is to read in the end. `metadata_hash`: of the topics subscribed to.
    """

    group_id: str
    epoch: int = 0
    assignment_epoch: int = 0
    assignor: str | None = None
    metadata_hash: int = 0
    members: Mapping[str, ConsumerMember] = field(default_factory=dict)
    targets: Mapping[str, Assignment] = field(default_factory=dict)
    # As a `Group` has it.
    empty_since_ms: int | None = None

    @property
    def phase(self) -> GroupPhase:
        """Kafka's state of the group."""
        if not self.members:
            return GroupPhase.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupPhase.ASSIGNING
        settled = all(self.is_reconciled(member) for member in self.members.values())
        return GroupPhase.STABLE if settled else GroupPhase.RECONCILING

    def target(self, member_id: str) -> Assignment:
        """What a member is to read in the end."""
        return self.targets.get(member_id, frozenset())

    def is_reconciled(self, member: ConsumerMember) -> bool:
        """Whether a member reads all that it is to read, and nothing else.

        One whose share stays goes on in the epoch that it has, whatever becomes of others; one of the classic protocol
        comes to that of the assignment.
        """
        is_current = member.epoch == self.assignment_epoch if member.is_classic else member.epoch > 0
        return is_current and not member.revoking and member.assigned == self.target(member.member_id)

    def reached(self, member: ConsumerMember) -> int:
        """The newest epoch of which a member has its share, which is what Kafka shows for its epoch."""
        return self.assignment_epoch if self.is_reconciled(member) else member.epoch

    # --- what it has in common with a group of the classic protocol ---

    @property
    def type(self) -> str:
        """Its type, by Kafka's name."""
        return "consumer"

    @property
    def generation(self) -> int:
        """Its epoch."""
        return self.epoch

    @property
    def protocol_type(self) -> str:
        """That of consumers."""
        return "consumer"

    @property
    def protocol(self) -> str | None:
        """The assignor."""
        return self.assignor

    @property
    def leader(self) -> None:
        """No member leads."""
        return


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """A member of a `StreamsGroup`. Times in ms; epochs as those of a `ConsumerMember`.

    `process_id`: of the process that it is a thread of, which keeps one copy of a state at most. `endpoint`: where that
    process answers queries. `tags`: (key, value), sorted, of where it stands. `topology_epoch`: of the topology that it
    runs. `assigned`: the tasks that it has; `revoking`: those that it has to give up first.
    """

    member_id: str
    client_id: str = ""
    host: str = ""
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    rack: str | None = None
    process_id: str = ""
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] = ()
    topology_epoch: int = 0
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Tasks = NO_TASKS
    revoking: Tasks = NO_TASKS

    @property
    def instance_id(self) -> None:
        """No member is static, as in Kafka."""
        return

    @property
    def turn(self) -> int:
        """What a watch over it goes by: a member whose epoch has changed since lives."""
        return self.epoch

    @property
    def is_classic(self) -> bool:
        """Whether it is one of the classic protocol: none is."""
        return False

    @property
    def joined(self) -> bool:
        """Whether it takes part in a round: there are none."""
        return False

    @property
    def held(self) -> Tasks:
        """The tasks that it may be at work on."""
        return self.assigned | self.revoking


@dataclass(frozen=True, slots=True)
class StreamsGroup:
    """A group that runs an application of Kafka Streams. Epochs never go back.

    `epoch`: grows with each change of members, the topology or its topics. `assignment_epoch`: the one that `targets`
    were computed for: the tasks that each member has in the end. `metadata_hash`: of the topics that are required,
    and of the number of copies. `ready`: whether these topics are there as the topology needs them. `shutdown_by`: the
    member that asked all to shut down.
    """

    group_id: str
    epoch: int = 0
    assignment_epoch: int = 0
    topology: StreamsTopology | None = None
    metadata_hash: int = 0
    ready: bool = False
    shutdown_by: str | None = None
    members: Mapping[str, StreamsMember] = field(default_factory=dict)
    targets: Mapping[str, Tasks] = field(default_factory=dict)
    # As a `Group` has it.
    empty_since_ms: int | None = None

    @property
    def phase(self) -> GroupPhase:
        """Kafka's state of the group."""
        if not self.members:
            return GroupPhase.EMPTY
        if not self.ready:
            return GroupPhase.NOT_READY
        if self.epoch > self.assignment_epoch:
            return GroupPhase.ASSIGNING
        settled = all(self.is_reconciled(member) for member in self.members.values())
        return GroupPhase.STABLE if settled else GroupPhase.RECONCILING

    def target(self, member_id: str) -> Tasks:
        """The tasks that a member has in the end."""
        return self.targets.get(member_id, NO_TASKS)

    def is_reconciled(self, member: StreamsMember) -> bool:
        """Whether a member has all tasks that it is to have, and no others, in the epoch of the assignment."""
        is_current = member.epoch == self.assignment_epoch and not member.revoking
        return is_current and member.assigned == self.target(member.member_id)

    # --- what it has in common with other groups ---

    @property
    def type(self) -> str:
        """Its type, by Kafka's name."""
        return "streams"

    @property
    def generation(self) -> int:
        """Its epoch."""
        return self.epoch

    @property
    def protocol_type(self) -> str:
        """By Kafka's name."""
        return "streams"

    @property
    def protocol(self) -> str:
        """The assignor: there is one."""
        return "sticky"

    @property
    def leader(self) -> None:
        """No member leads."""
        return


# Groups whose members have epochs, and what they are to do from the coordinator.
EpochGroup: TypeAlias = ConsumerGroup | StreamsGroup
AnyMember: TypeAlias = Member | ConsumerMember | StreamsMember
AnyGroup: TypeAlias = Group | EpochGroup


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

    `pending`: offsets that wait for transactions, in the order in which they were written. `config`: what the group is
    configured with, by key; that outlives the group.
    """

    group: AnyGroup | None = None
    offsets: Mapping[TopicPartition, CommittedOffset] = field(default_factory=dict)
    pending: Mapping[PendingPlace, CommittedOffset] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def exists(self) -> bool:
        """Whether there is such a group: it has members, had some, or has offsets, be they an open transaction's."""
        return self.group is not None or bool(self.offsets) or bool(self.pending)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Generic[R_co]):
    """What a rule makes of a `GroupView`; nothing is written when it changes nothing.

    `group`: the group from now on; None leaves it as it is, and one whose phase is `GroupPhase.DEAD` is forgotten.
    `offsets`: offsets from now on; those that aren't named stay, None forgets one. `pending` likewise. `config`: all
    that the group is configured with from now on; None leaves it as it is.
    """

    response: R_co
    group: AnyGroup | None = None
    offsets: Mapping[TopicPartition, CommittedOffset | None] = field(default_factory=dict)
    pending: Mapping[PendingPlace, CommittedOffset | None] = field(default_factory=dict)
    config: Mapping[str, str] | None = None
