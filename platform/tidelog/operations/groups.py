"""Consumer groups: what each is, how far it is behind, and what may be changed of it while it has no members."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tidelog.groups.config import DEFAULT_BOUNDS, GroupConfig
from tidelog.groups.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from tidelog.groups.member.failure_detector import ExternalFailureDetector
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.model import (
    AnyGroup,
    AnyMember,
    CommittedOffset,
    ConsumerMember,
    Group,
    GroupView,
    Member,
    StreamsGroup,
    StreamsMember,
    TopicPartition,
)
from tidelog.groups.rules.configuring import configure
from tidelog.groups.rules.offsets import group_not_found
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import (
    GroupSubscribedError,
    InconsistentProtocolError,
    TidelogError,
)
from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import TopicState
from tidelog.operations.snapshots import LakeSnapshot

_PAUSE_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """A group in one partition; None for what there is not: an offset, the partition, a reader.

    `committed`: the next offset to read, with its `metadata`. `records`: offsets from there to the `end`, gaps of
    compaction included; never below 0. `seconds`: the age of the oldest record that is not committed, by the time of
    the entry that appended it; where entries were merged, the oldest of them. 0 where no such record is left.
    """

    topic: str
    partition: int
    committed: int | None
    end: int | None
    records: int | None
    seconds: float | None
    reader: AnyMember | None = None
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class GroupLag:
    """How far a group is behind: in records by topic, and since the oldest of them was appended. `members`: how many.

    `oldest_ms`: ms since the epoch, None where no record is left that the group has yet to read.
    """

    members: int
    by_topic: Mapping[str, int]
    oldest_ms: int | None = None

    @property
    def records(self) -> int:
        """In all topics."""
        return sum(self.by_topic.values())

    def seconds(self, now_ms: int) -> float:
        """The age of the oldest record that the group has yet to read; 0 without one."""
        return 0.0 if self.oldest_ms is None else max(0, now_ms - self.oldest_ms) / 1000


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group. `group`: one without members where it only committed offsets. `partitions`: of all that it has an
    offset of or reads, sorted. `assignments`: what each member reads, sorted, by the member's id.
    """

    group: AnyGroup
    partitions: Sequence[PartitionLag]
    assignments: Mapping[str, Sequence[TopicPartition]]
    lag: GroupLag

    @property
    def is_simple(self) -> bool:
        """Whether the group has offsets, and never had members."""
        return not self.group.protocol_type

    @property
    def members(self) -> list[tuple[AnyMember, Sequence[TopicPartition]]]:
        """The members by their ids, each with what it reads."""
        members: Mapping[str, AnyMember] = self.group.members
        return [(member, self.assignments[name]) for name, member in sorted(members.items())]

    @property
    def topics(self) -> list[str]:
        """The topics that it has an offset of or reads, sorted."""
        return sorted({lag.topic for lag in self.partitions})


def describe_group(snapshot: LakeSnapshot, group_id: str) -> GroupDescription:
    """A group of a snapshot, as of then. Raises `GroupNotFoundError` for one that it does not hold."""
    view = snapshot.groups.get(group_id)
    if view is None:
        raise group_not_found(group_id)
    group = view.group or Group(group_id)
    assignments = {name: _assignment(group, member, snapshot.topics) for name, member in group.members.items()}
    readers = {place: group.members[name] for name, places in assignments.items() for place in places}
    lags = [
        lag_in_partition(snapshot, place, view.offsets.get(place), readers.get(place))
        for place in sorted({*view.offsets, *readers})
    ]
    by_topic: dict[str, int] = {}
    for lag in lags:
        if lag.records is not None:
            by_topic[lag.topic] = by_topic.get(lag.topic, 0) + lag.records
    oldest_s = max((lag.seconds or 0.0 for lag in lags), default=0.0)
    oldest_ms = round(snapshot.at_ms - oldest_s * 1000) if oldest_s else None
    return GroupDescription(group, lags, assignments, GroupLag(len(group.members), by_topic, oldest_ms))


def lag_in_partition(
    snapshot: LakeSnapshot, place: TopicPartition, committed: CommittedOffset | None, reader: AnyMember | None
) -> PartitionLag:
    """A group in a partition, as of a snapshot. A consumer's own statistics go by what it has fetched."""
    topic, partition = place
    state = snapshot.topics.get(topic)
    end = state.end(partition) if state is not None and partition < state.partitions else None
    if committed is None:
        return PartitionLag(topic, partition, None, end, None, None, reader)
    records = seconds = None
    if state is not None and end is not None:
        records = max(0, end - committed.offset)
        seconds = _age_s(state, partition, committed.offset, snapshot.at_ms) if records else 0.0
    return PartitionLag(topic, partition, committed.offset, end, records, seconds, reader, committed.metadata)


def _age_s(state: TopicState, partition: int, offset: int, now_ms: int) -> float:
    """The age of the first segment that holds a record at the offset or after it; 0 where there is none."""
    live = state.live(partition)
    # The last segment that begins at the offset or before it; where that ends before it, the next one.
    place = max(0, bisect_right(live, offset, key=lambda s: s.base_offset) - 1)
    if place < len(live) and live[place].end <= offset:
        place += 1
    return 0.0 if place >= len(live) else max(0, now_ms - live[place].modification_ms) / 1000


def _assignment(group: AnyGroup, member: AnyMember, topics: Mapping[str, TopicState]) -> list[TopicPartition]:
    """The partitions that a member reads; none where its bytes are not of the consumer protocol.

    A task is one of as many as the largest topic of its subtopology has partitions: smaller ones don't have all.
    """
    if isinstance(member, ConsumerMember):
        return sorted((one.topic, one.partition) for one in member.assigned)
    if isinstance(group, StreamsGroup) and isinstance(member, StreamsMember):
        places = [] if group.topology is None else group.topology.inputs(member.assigned.active)
        return [place for place in places if place[0] not in topics or place[1] < topics[place[0]].partitions]
    if not isinstance(member, Member):
        return []
    if group.protocol_type != PROTOCOL_TYPE or not member.assignment:
        return []
    try:
        return sorted(decode_assignment(member.assignment).partitions)
    except InconsistentProtocolError:
        return []


# --- reading -----------------------------------------------------------------------------------------------


def read_groups(lake: Lake, log: GroupLog, group_ids: Iterable[str] | None = None) -> LakeSnapshot:
    """A snapshot of groups alone, of all for None. Raises `GroupNotFoundError`."""
    if group_ids is None:
        groups = log.views()
    else:
        groups = {group_id: require_group(log.view(group_id), group_id) for group_id in group_ids}
    return LakeSnapshot(lake.clock.now_ms(), groups=groups)


def with_their_topics(lake: Lake, snapshot: LakeSnapshot) -> LakeSnapshot:
    """The same, with the topics that its groups have offsets of or read; one that can't be read hides no group."""
    topics = {}
    for topic in sorted({topic for name in snapshot.groups for topic in describe_group(snapshot, name).topics}):
        try:
            state = lake.peek(topic)
        except TidelogError:
            continue
        if state is not None:
            topics[topic] = state
    return replace(snapshot, at_ms=lake.clock.now_ms(), topics=topics)


def require_group(view: GroupView, group_id: str) -> GroupView:
    """The group, where there is one. Raises `GroupNotFoundError`."""
    if not view.exists:
        raise group_not_found(group_id)
    return view


# --- changing ----------------------------------------------------------------------------------------------


def set_offsets(lake: Lake, log: GroupLog, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
    """Set offsets of a group without members, all or none. Raises as `GroupLog.commit_offsets` does."""
    evict_the_dead(lake, log, group_id)
    log.commit_offsets(group_id, offsets)


def configure_group(log: GroupLog, group_id: str, changes: Mapping[str, str | None]) -> GroupConfig:
    """Change what a group is configured with; None resets a key. The group need not be there yet.

    Values are within the bounds that brokers have by default; a broker that has others takes them where it is asked.
    Raises `InvalidGroupError`, `InvalidConfigError`.
    """
    return log.decide(group_id, lambda view: configure(view, group_id, changes, DEFAULT_BOUNDS))


def delete_group(lake: Lake, log: GroupLog, group_id: str) -> None:
    """Delete a group without members, and its offsets. Raises `GroupNotFoundError`, `GroupNotEmptyError`."""
    evict_the_dead(lake, log, group_id)
    log.delete_group(group_id)


def delete_offsets(
    lake: Lake, log: GroupLog, group_id: str, partitions: Iterable[TopicPartition]
) -> Mapping[TopicPartition, GroupSubscribedError | None]:
    """Delete a group's offsets of topics that no member subscribes to; why one stays, None for one that went.

    Raises `GroupNotFoundError`, `GroupNotEmptyError`.
    """
    evict_the_dead(lake, log, group_id)
    return log.delete_offsets(group_id, partitions)


def evict_the_dead(lake: Lake, log: GroupLog, group_id: str) -> None:
    """Wait until a group's members are out because they show no life, or one of them does.

    Members that were killed together leave no member to notice it. This takes a session timeout when all are dead, and
    a heartbeat when one lives. Raises StorageError.
    """
    group = log.group(group_id)
    if group is None or not group.members:
        return
    leases = Leases(lake.storage)
    detector = ExternalFailureDetector(log, leases, group_id, lake.clock, every_s=_PAUSE_S)
    first = {member: leases.counter(group_id, member) for member in group.members}
    while group is not None and group.members:
        group = detector.step()
        members = [] if group is None else list(group.members)
        seen = {member: leases.counter(group_id, member) for member in members}
        if any(counter != first.setdefault(member, counter) for member, counter in seen.items()):
            return
        if members:
            lake.clock.sleep(max(0.01, min(_PAUSE_S, detector.due_s())))
