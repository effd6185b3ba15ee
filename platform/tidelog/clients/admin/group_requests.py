"""What an AdminClient does about consumer groups. Each function serves one group and raises TidelogError."""

from collections.abc import Iterable, Mapping
from typing import Final

from tidelog.clients.admin.enums import AclOperation, ConsumerGroupState, ConsumerGroupType
from tidelog.clients.admin.group_types import (
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
from tidelog.groups.model import AnyMember, CommittedOffset, Group, GroupPhase, GroupView, Member
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.operations import groups

STATES: Final[Mapping[GroupPhase, ConsumerGroupState]] = {
    GroupPhase.EMPTY: ConsumerGroupState.EMPTY,
    GroupPhase.PREPARING: ConsumerGroupState.PREPARING_REBALANCING,
    GroupPhase.COMPLETING: ConsumerGroupState.COMPLETING_REBALANCING,
    GroupPhase.STABLE: ConsumerGroupState.STABLE,
    GroupPhase.DEAD: ConsumerGroupState.DEAD,
    # confluent-kafka has no words for these.
    GroupPhase.ASSIGNING: ConsumerGroupState.UNKNOWN,
    GroupPhase.RECONCILING: ConsumerGroupState.UNKNOWN,
    GroupPhase.NOT_READY: ConsumerGroupState.UNKNOWN,
}

TYPES: Final[Mapping[str, ConsumerGroupType]] = {
    "classic": ConsumerGroupType.CLASSIC,
    "consumer": ConsumerGroupType.CONSUMER,
    "streams": ConsumerGroupType.UNKNOWN,
}


def listing(view: GroupView, group_id: str) -> ConsumerGroupListing:
    """Return a group in short."""
    group = view.group or Group(group_id)
    return ConsumerGroupListing(group_id, not group.protocol_type, STATES[group.phase], type=TYPES[group.type])


def describe(
    lake: Lake, log: GroupLog, node: Node, group_id: str, operations: list[AclOperation] | None
) -> ConsumerGroupDescription:
    """Return a group with its members and what they read, and the operations that are allowed."""
    description = groups.describe_group(groups.read_groups(lake, log, [group_id]), group_id)
    members = [
        MemberDescription(
            member.member_id,
            member.client_id,
            member.host,
            MemberAssignment([TopicPartition(*place) for place in places]),
            member.instance_id,
        )
        for member, places in description.members
    ]
    protocol, state = description.group.protocol or "", STATES[description.group.phase]
    return ConsumerGroupDescription(group_id, description.is_simple, members, protocol, state, node, operations)


def metadata(view: GroupView, node: Node, group_id: str) -> GroupMetadata:
    """Return a group as `list_groups` tells it, what members say in their bytes."""
    group = view.group or Group(group_id)
    of_group: Mapping[str, AnyMember] = group.members
    members = [
        GroupMember(
            member.member_id,
            member.client_id,
            member.host,
            *_said(member, group.protocol or ""),
        )
        for _, member in sorted(of_group.items())
    ]
    return GroupMetadata(node, group_id, None, group.phase.value, group.protocol_type, group.protocol or "", members)


def _said(member: AnyMember, protocol: str) -> tuple[bytes, bytes]:
    """What a member says of itself, and what it was assigned, in bytes; none of a member of the consumer protocol."""
    if not isinstance(member, Member):
        return b"", b""
    return dict(member.protocols).get(protocol, b""), member.assignment


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
    groups.set_offsets(lake, log, request.group_id, {(p.topic, p.partition): offset_to_commit(p) for p in partitions})
    return ConsumerGroupTopicPartitions(
        request.group_id, [TopicPartition(p.topic, p.partition, p.offset, p.metadata) for p in partitions]
    )


def delete_offsets(
    lake: Lake, log: GroupLog, group_id: str, partitions: Iterable[TopicPartition]
) -> ConsumerGroupTopicPartitions:
    """Delete a group's offsets of topics that no member subscribes to; `error` names those that stay."""
    answered = []
    wanted = [(partition.topic, partition.partition) for partition in partitions]
    for (topic, number), refusal in groups.delete_offsets(lake, log, group_id, wanted).items():
        partition = TopicPartition(topic, number)
        partition.error = None if refusal is None else kafka_error(refusal)
        answered.append(partition)
    return ConsumerGroupTopicPartitions(group_id, answered)


def _partition(place: tuple[str, int], committed: CommittedOffset | None) -> TopicPartition:
    if committed is None:
        return TopicPartition(*place)
    return TopicPartition(*place, committed.offset, committed.metadata, committed.leader_epoch)
