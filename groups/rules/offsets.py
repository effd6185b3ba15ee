"""Rules of a group's committed offsets: the right to commit and to delete. Source: `GroupCoordinator` (kafka 4.0)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tidelog.groups.consumer_protocol import PROTOCOL_TYPE
from tidelog.groups.model import (
    AnyGroup,
    CommittedOffset,
    ConsumerGroup,
    ConsumerMember,
    Decision,
    EpochGroup,
    Group,
    GroupPhase,
    GroupView,
    PendingPlace,
    StreamsGroup,
    StreamsMember,
    TopicPartition,
)
from tidelog.groups.rules.members import check_generation, check_group_id, check_member, current, topics_of_members
from tidelog.groups.rules.migration import seen_by
from tidelog.groups.topology import StreamsTopology
from tidelog.log.base.errors import (
    GroupNotEmptyError,
    GroupNotFoundError,
    GroupSubscribedError,
    IllegalGenerationError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    UnknownMemberError,
)
from tidelog.transactions.model import TransactionKey
from tidelog.transactions.ports import GroupIdentity


def decide_commit(
    view: GroupView, committer: GroupIdentity, offsets: Mapping[TopicPartition, CommittedOffset]
) -> Decision[None]:
    """Commit offsets, if the committer is a member of the group's generation, or the group has no members.

    Without a member (generation -1) only an empty group takes offsets: a consumer with assigned partitions, an
    administrator. Raises InvalidGroupError, UnknownMemberError, FencedInstanceError, IllegalGenerationError, and
    RebalanceInProgressError while the leader works out the next assignment: by then the committer has given up what
    it owned. Source: `GroupCoordinator.validateOffsetCommit`, `doCommitOffsets`.
    """
    group = _require_committer(view, committer, offsets)
    if isinstance(group, Group) and group.phase is GroupPhase.COMPLETING:
        raise RebalanceInProgressError(
            f"Group {committer.group_id!r} is rebalancing, so that it takes no offsets: members commit what they "
            "owned before they join again. Records after the last commit come again."
        )
    written = {place: replace(one, generation=committer.generation) for place, one in offsets.items()}
    # An offset that has waited for a transaction since before comes too late: the newer commit counts.
    late = [waiting for waiting in view.pending if waiting[1] in written]
    return Decision(response=None, offsets=written, pending=dict.fromkeys(late))


def decide_pending(
    view: GroupView,
    committer: GroupIdentity,
    offsets: Mapping[TopicPartition, CommittedOffset],
    transaction: TransactionKey,
    *,
    needs_member: bool = True,
) -> Decision[None]:
    """Let offsets wait for a transaction's end; the right to is as in `decide_commit`, and a rebalance is no hindrance.

    A member that lost its partitions meanwhile is in an earlier generation, and refused. Kafka lets a transaction
    without a member commit into a group with members; here that is refused, as it fences no member, unless the caller
    is a client that knows no other way (`needs_member`). Source: `ClassicGroup.validateOffsetCommit` with
    `isTransactional`.
    """
    if needs_member or committer != GroupIdentity(committer.group_id):
        _require_committer(view, committer, offsets)
    else:
        check_group_id(committer.group_id)
    waiting = {(transaction, place): replace(one, generation=committer.generation) for place, one in offsets.items()}
    return Decision(response=None, pending=waiting)


def settle(view: GroupView, transaction: TransactionKey, *, committed: bool) -> Decision[None]:
    """The transaction has ended: what waits for it becomes the group's, or is dropped. A repeat changes nothing.

    Of offsets of one partition the one that was written last counts, in whatever order their transactions end.
    """
    own = {place for key, place in view.pending if key == transaction}
    gone: list[PendingPlace] = []
    for waiting in view.pending:
        if waiting[0] == transaction:
            own.discard(waiting[1])
            gone.append(waiting)
        elif committed and waiting[1] in own:  # written before it
            gone.append(waiting)
    became = {place: offset for (key, place), offset in view.pending.items() if key == transaction}
    return Decision(response=None, offsets=became if committed else {}, pending=dict.fromkeys(gone))


def _require_committer(view: GroupView, committer: GroupIdentity, places: Iterable[TopicPartition]) -> AnyGroup:
    """Refuse a caller that is no member of the group's generation, unless the group has no members."""
    group_id, generation = committer.group_id, committer.generation
    check_group_id(group_id)
    if isinstance(view.group, EpochGroup):
        if generation >= 0 or view.group.members:
            if not _is_a_step_behind(view.group, committer):
                check_member_epoch(view.group, committer.member_id, generation, committer.instance_id)
            if isinstance(view.group, StreamsGroup):
                _check_tasks(view.group, committer, places)
        return view.group
    group = current(view, group_id)
    if generation >= 0 and view.group is None:
        raise IllegalGenerationError(
            f"There is no group {group_id!r}, so it has no generation {generation}: only members of a group commit "
            "with one. Join the group, or commit without a generation."
        )
    if generation >= 0 or group.phase is not GroupPhase.EMPTY:
        if committer == GroupIdentity(group_id):
            raise UnknownMemberError(
                f"Group {group_id!r} has members, so that only they can commit: its offsets are theirs. Commit from "
                "a member, or stop all members first."
            )
        check_member(group, committer.member_id, committer.instance_id)
        check_generation(group, generation)
    return group


def _is_a_step_behind(group: EpochGroup, committer: GroupIdentity) -> bool:
    """Whether a member of a streams group has not heard of its newest epoch: it may commit for what it still runs.

    One that commits often would lose all its tasks for it otherwise. What it gave up between both epochs, it has no
    more. Source: `StreamsGroup.createAssignmentEpochValidator` (kafka 4.2), which goes back further.
    """
    member = group.members.get(committer.member_id) if isinstance(group, StreamsGroup) else None
    return member is not None and 0 < committer.generation == member.previous_epoch


def _check_tasks(group: StreamsGroup, committer: GroupIdentity, places: Iterable[TopicPartition]) -> None:
    """Refuse a commit for tasks that the member does not run.

    One that was evicted, and joins while the group waits for more members, is in the epoch again that it was in before:
    what it sent then may arrive now. Raises `StaleMemberEpochError`.
    """
    member = group.members.get(committer.member_id)
    if member is not None and group.topology is not None and not _runs(group.topology, member, places):
        raise StaleMemberEpochError(
            f"Member {member.member_id!r} of group {group.group_id!r} commits for tasks that it does not run: it was"
            " given others, or joined again since. Ask again in the epoch of the next heartbeat's answer."
        )


def _runs(topology: StreamsTopology, member: StreamsMember, places: Iterable[TopicPartition]) -> bool:
    """Whether all these places are inputs of tasks that a member runs, or has to give up and may still run."""
    return set(places) <= set(topology.inputs(member.held.active))


def check_member_epoch(group: EpochGroup, member_id: str, epoch: int, instance_id: str | None = None) -> None:
    """Refuse a caller that is no member, or whose epoch is not the member's: its partitions may be others' by now.

    Raises `UnknownMemberError`, `StaleMemberEpochError`; for one of the classic protocol also `FencedInstanceError`,
    and `IllegalGenerationError` in place of a stale epoch. Source: `ConsumerGroup.validateOffsetCommit`.
    """
    check_member(group, member_id)
    member = group.members[member_id]
    if isinstance(group, ConsumerGroup) and isinstance(member, ConsumerMember) and member.is_classic:
        check_member(group, member_id, instance_id)
        check_generation(seen_by(group, member), epoch)
    if (known_epoch := member.epoch) != epoch:
        raise StaleMemberEpochError(
            f"Member {member_id!r} of group {group.group_id!r} is in epoch {known_epoch}, not {epoch}: what it owned"
            " then may be others' by now. Ask again in the epoch of the next heartbeat's answer."
        )


def delete_group(view: GroupView, group_id: str) -> Decision[None]:
    """Delete a group without members, and all its offsets.

    Raises GroupNotFoundError, GroupNotEmptyError. A group that only ever committed offsets counts as empty.
    Source: `GroupCoordinator.handleDeleteGroups`.
    """
    group = found_group(view, group_id)
    if group.members:
        raise GroupNotEmptyError(
            f"Group {group_id!r} has {len(group.members)} members and can't be deleted: their offsets would be lost. "
            "Stop its consumers first; one that was killed counts until its session timeout is over."
        )
    return Decision(
        response=None,
        group=Group(group_id, phase=GroupPhase.DEAD),
        offsets=dict.fromkeys(view.offsets),
        pending=dict.fromkeys(view.pending),
    )


def delete_offsets(
    view: GroupView, group_id: str, partitions: Iterable[TopicPartition]
) -> Decision[Mapping[TopicPartition, GroupSubscribedError | None]]:
    """Delete a group's offsets of these partitions. Answers, per partition, None or why it stays.

    Those of a topic that members subscribe to stay. One that was never committed is no error. Raises
    GroupNotFoundError; GroupNotEmptyError when members are of a classic protocol of another type, so that it is not
    known what they read. Source: `GroupCoordinator.handleDeleteOffsets`.
    """
    group = found_group(view, group_id)
    if group.members and not isinstance(group, EpochGroup) and group.protocol_type != PROTOCOL_TYPE:
        raise GroupNotEmptyError(
            f"Group {group_id!r} has members of type {group.protocol_type!r}, which don't say what they read, so "
            "that no offset of it can be deleted. Stop its members first."
        )
    wanted = list(partitions)
    kept = topics_of_members(group) if group.members else frozenset()
    refused = {
        place: GroupSubscribedError(
            f"The offset of {place[0]} {place[1]} stays: members of group {group_id!r} subscribe to {place[0]!r}. Stop "
            "them, or unsubscribe first."
        )
        for place in wanted
        if kept is None or place[0] in kept
    }
    gone: dict[TopicPartition, CommittedOffset | None] = {
        place: None for place in wanted if place not in refused and place in view.offsets
    }
    waiting = [one for one in view.pending if one[1] in wanted and one[1] not in refused]
    return Decision(
        response={place: refused.get(place) for place in wanted}, offsets=gone, pending=dict.fromkeys(waiting)
    )


def found_group(view: GroupView, group_id: str) -> AnyGroup:
    """The group, where there is one. Raises `GroupNotFoundError`."""
    if not view.exists:
        raise group_not_found(group_id)
    return Group(group_id) if view.group is None else view.group


def group_not_found(group_id: str) -> GroupNotFoundError:
    """What a group that is not there is refused with."""
    return GroupNotFoundError(
        f"There is no group {group_id!r}: a group begins when its first consumer joins or commits. See "
        "`tidelog group list`."
    )
