"""What an AdminClient does about consumer groups. Each function serves one group and raises TidelogError."""

from collections.abc import Iterable, Mapping
from typing import Final

from tidelog.admin.enums import AclOperation, ConsumerGroupState, ConsumerGroupType
from tidelog.admin.group_types import (
    ConsumerGroupDescription,
    ConsumerGroupListing,
    ConsumerGroupTopicPartitions,
    GroupMember,
    GroupMetadata,
    MemberAssignment,
    MemberDescription,
)
from tidelog.clients.cluster import Node
from tidelog.clients.consumer.commits import offset_to_commit
from tidelog.clients.values.errors import kafka_error
from tidelog.clients.values.partitions import TopicPartition
from tidelog.groups.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from tidelog.groups.member.failure_detector import ExternalFailureDetector
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.model import CommittedOffset, Group, GroupPhase, GroupView, Member
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import GroupNotFoundError, InconsistentProtocolError
from tidelog.log.lake import Lake

STATES: Final[Mapping[GroupPhase, ConsumerGroupState]] = {
    GroupPhase.EMPTY: ConsumerGroupState.EMPTY,
    GroupPhase.PREPARING: ConsumerGroupState.PREPARING_REBALANCING,
    GroupPhase.COMPLETING: ConsumerGroupState.COMPLETING_REBALANCING,
    GroupPhase.STABLE: ConsumerGroupState.STABLE,
    GroupPhase.DEAD: ConsumerGroupState.DEAD,
}
_PAUSE_S: Final = 0.25


def require_group(view: GroupView, group_id: str) -> Group:
    """Return the group; one without members where it only committed offsets. Raises GroupNotFoundError."""
    if view.group is None and not view.offsets:
        raise GroupNotFoundError(
            f"There is no group {group_id!r}: a group begins when its first consumer joins or commits. See "
            "`tidelog group list`."
        )
    return view.group or Group(group_id)


def listing(view: GroupView, group_id: str) -> ConsumerGroupListing:
    """Return a group in short."""
    group = view.group or Group(group_id)
    return ConsumerGroupListing(group_id, not group.protocol_type, STATES[group.phase], type=ConsumerGroupType.CLASSIC)


def describe(
    log: GroupLog, node: Node, group_id: str, operations: list[AclOperation] | None
) -> ConsumerGroupDescription:
    """Return a group with its members and what they read, and the operations that are allowed."""
    group = require_group(log.view(group_id), group_id)
    members = [
        MemberDescription(
            member.member_id,
            member.client_id,
            member.host,
            MemberAssignment([TopicPartition(topic, number) for topic, number in assigned(group, member)]),
            member.instance_id,
        )
        for _, member in sorted(group.members.items())
    ]
    return ConsumerGroupDescription(
        group_id, not group.protocol_type, members, group.protocol or "", STATES[group.phase], node, operations
    )


def metadata(view: GroupView, node: Node, group_id: str) -> GroupMetadata:
    """Return a group as `list_groups` tells it, what members say in their bytes."""
    group = view.group or Group(group_id)
    members = [
        GroupMember(
            member.member_id,
            member.client_id,
            member.host,
            dict(member.protocols).get(group.protocol or "", b""),
            member.assignment,
        )
        for _, member in sorted(group.members.items())
    ]
    return GroupMetadata(node, group_id, None, group.phase.value, group.protocol_type, group.protocol or "", members)


def assigned(group: Group, member: Member) -> list[tuple[str, int]]:
    """Return the partitions that a member reads, sorted; none where its bytes are not of the consumer protocol."""
    if group.protocol_type != PROTOCOL_TYPE or not member.assignment:
        return []
    try:
        return sorted(decode_assignment(member.assignment).partitions)
    except InconsistentProtocolError:
        return []


def offsets(
    log: GroupLog, request: ConsumerGroupTopicPartitions, *, require_stable: bool = False
) -> ConsumerGroupTopicPartitions:
    """Return a group's committed offsets: of the partitions asked for, OFFSET_INVALID where there is none, or all.

    With `require_stable` it raises `UnstableOffsetError` while some of them wait for an open transaction.
    """
    committed = log.stable_offsets(request.group_id) if require_stable else log.offsets(request.group_id)
    if request.topic_partitions is None:
        wanted = sorted(committed)
    else:
        wanted = [(partition.topic, partition.partition) for partition in request.topic_partitions]
    return ConsumerGroupTopicPartitions(request.group_id, [_partition(place, committed.get(place)) for place in wanted])


def alter_offsets(lake: Lake, log: GroupLog, request: ConsumerGroupTopicPartitions) -> ConsumerGroupTopicPartitions:
    """Set offsets of a group without members, all or none. Raises as `GroupLog.commit_offsets` does."""
    partitions = request.topic_partitions or []
    evict_the_dead(lake, log, request.group_id)
    log.commit_offsets(request.group_id, {(p.topic, p.partition): offset_to_commit(p) for p in partitions})
    return ConsumerGroupTopicPartitions(
        request.group_id, [TopicPartition(p.topic, p.partition, p.offset, p.metadata) for p in partitions]
    )


def delete(lake: Lake, log: GroupLog, group_id: str) -> None:
    """Delete a group without members, and its offsets."""
    evict_the_dead(lake, log, group_id)
    log.delete_group(group_id)


def delete_offsets(
    lake: Lake, log: GroupLog, group_id: str, partitions: Iterable[TopicPartition]
) -> ConsumerGroupTopicPartitions:
    """Delete a group's offsets of topics that no member subscribes to; `error` names those that stay."""
    evict_the_dead(lake, log, group_id)
    found = log.delete_offsets(group_id, [(partition.topic, partition.partition) for partition in partitions])
    answered = []
    for (topic, number), refusal in found.items():
        partition = TopicPartition(topic, number)
        partition.error = None if refusal is None else kafka_error(refusal)
        answered.append(partition)
    return ConsumerGroupTopicPartitions(group_id, answered)


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


def _partition(place: tuple[str, int], committed: CommittedOffset | None) -> TopicPartition:
    if committed is None:
        return TopicPartition(*place)
    return TopicPartition(*place, committed.offset, committed.metadata, committed.leader_epoch)
