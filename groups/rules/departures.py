"""How members leave a group whose members have epochs: by themselves, or evicted. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from tidelog.groups.model import AnyGroup, Decision, EpochGroup, StreamsGroup
from tidelog.groups.rules.migration import Migration, turned_back


def without(
    group: EpochGroup, member_ids: Iterable[str], now_ms: int, policy: Migration = Migration.BIDIRECTIONAL
) -> AnyGroup:
    """The group without these members, in the next epoch. The next heartbeat of any other one has it assigned.

    With its last member of the consumer protocol it becomes classic, if those that are left can go on so.
    Source: `GroupMetadataManager.consumerGroupFenceMembersWithDowngrade` (kafka 4.2).
    """
    gone = set(member_ids)
    if isinstance(group, StreamsGroup):
        return streams_without(group, gone, now_ms)
    members = {name: member for name, member in group.members.items() if name not in gone}
    classic = turned_back(group, policy, members)
    if classic is not None:
        return classic
    targets = {name: target for name, target in group.targets.items() if name not in gone}
    empty_since_ms = None if members else now_ms
    return replace(
        group, epoch=group.epoch + 1, members=members, targets=targets, empty_since_ms=empty_since_ms
    )  # fmt: skip


def streams_without(group: StreamsGroup, gone: Collection[str], now_ms: int) -> StreamsGroup:
    """A streams group without members, in the next epoch.

    Source: `GroupMetadataManager.streamsGroupFenceMember` (kafka 4.2). A shutdown ends with the last member.
    """
    members = {name: member for name, member in group.members.items() if name not in gone}
    return replace(
        group,
        epoch=group.epoch + 1,
        members=members,
        targets={name: target for name, target in group.targets.items() if name not in gone},
        shutdown_by=group.shutdown_by if members else None,
        empty_since_ms=None if members else now_ms,
    )


def evict(
    group: EpochGroup, watched: Mapping[str, int], now_ms: int, policy: Migration = Migration.BIDIRECTIONAL
) -> Decision[frozenset[str]]:
    """Take out members that were silent, or did not give up partitions in time. Answers their ids.

    `watched`: member id -> its epoch when the watch began; a member that has come to another one since stays.
    """
    gone = frozenset(
        name for name, epoch in watched.items() if name in group.members and group.members[name].epoch == epoch
    )
    return Decision(response=gone, group=without(group, gone, now_ms, policy) if gone else None)
