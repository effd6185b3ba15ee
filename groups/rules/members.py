"""Kafka's classic group protocol as pure rules: join, sync, leave, evict.

Each rule looks at a group as its log has it and says what to write and what to answer; no rule waits. Where a
Kafka broker parks a request, the member looks at the group again. Member ids are made by the members (ids no other
makes), so a request that is repeated after an unknown outcome changes nothing more.

Source: `GroupCoordinator` and `GroupMetadata` (kafka 4.0), `ClassicGroup`.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from tidelog.groups.consumer_protocol import PROTOCOL_TYPE, subscribed_topics
from tidelog.groups.model import (
    AnyGroup,
    AnyMember,
    ConsumerGroup,
    Decision,
    EpochGroup,
    Group,
    GroupPhase,
    GroupView,
    Member,
    StreamsGroup,
)
from tidelog.groups.rules.departures import evict
from tidelog.groups.rules.departures import without as without_members
from tidelog.groups.rules.migration import Migration
from tidelog.groups.rules.rounds import begin, common_protocols, complete, elected_protocol, put, without
from tidelog.log.base.errors import (
    FencedInstanceError,
    GroupNotFoundError,
    IllegalGenerationError,
    InconsistentProtocolError,
    InvalidGroupError,
    RebalanceInProgressError,
    TidelogError,
    UnknownMemberError,
)

MAX_GROUP_ID = 249


def check_group_id(group_id: str) -> None:
    """Refuse a group id that is empty or longer than 249 characters."""
    if not isinstance(group_id, str) or not 0 < len(group_id) <= MAX_GROUP_ID:
        shown = f"{group_id[:20]}... of {len(group_id)} characters" if group_id else repr(group_id)
        raise InvalidGroupError(
            f"Group id {shown} can't be used: it has 1 to {MAX_GROUP_ID} characters. Give `group.id` such a name."
        )


def current(view: GroupView, group_id: str) -> Group:
    """The group, of the classic protocol; an empty one where there is none, or where one of another type is empty.

    Raises InconsistentProtocolError for a group of another type that has members.
    """
    group = view.group
    if isinstance(group, EpochGroup):
        if group.members:
            raise InconsistentProtocolError(
                f"Group {group_id!r} is of the type {group.type}: no member of the classic protocol can be among its"
                f" members. Set `group.protocol` to {group.type}, or stop its members first."
            )
        return Group(group_id, generation=group.epoch, empty_since_ms=group.empty_since_ms)
    return Group(group_id) if group is None else group


def group_of_other_type(group: AnyGroup) -> GroupNotFoundError:
    """What a member of the consumer protocol is refused with, in a group of another one."""
    return GroupNotFoundError(
        f"Group {group.group_id!r} is not of the type consumer: its members have `group.protocol` {group.type}. Set"
        f" `group.protocol` to {group.type}, or stop its members first."
    )


# --- joining -----------------------------------------------------------------------------------------------


def join(
    view: GroupView,
    group_id: str,
    member: Member,
    *,
    rejoins: bool,
    now_ms: int,
    protocol_type: str = PROTOCOL_TYPE,
    ends_round: bool = True,
) -> Decision[Group]:
    """A member wants to take part in the next generation, or to learn the current one. Answers the group after it.

    `rejoins`: it was a member before, under this id. A group in PREPARING has it wait for the generation after the
    group's; in COMPLETING or STABLE it belongs to the group's generation at once.

    - A known member whose metadata are unchanged joins a Stable group without a rebalance, unless it leads: a leader
      rejoins because partitions changed. In CompletingRebalance the leader does so without one too.
    - A newcomer with the `instance_id` of a member takes its place, and fences it. A Stable group does not rebalance
      for that, if the protocol and the topics subscribed to stay the same (Kafka looks at the protocol only).
    - Whatever else begins a round, or goes into the one under way; the last to join completes it, unless others are to
      join in the same step (not `ends_round`).

    Raises InvalidGroupError, InconsistentProtocolError, UnknownMemberError (it rejoins, but is no member any more),
    FencedInstanceError (it rejoins, but another has its `instance_id` now).
    """
    check_group_id(group_id)
    group = current(view, group_id)
    _require_compatible(group, member, protocol_type)
    before = group
    if not group.members:
        group = replace(group, protocol_type=protocol_type)
    if member.member_id in group.members or rejoins:
        check_member(group, member.member_id, member.instance_id)
        after = _rejoin(group, member)
    elif (old := _holder(group, member.instance_id)) is not None:
        after = _take_place(group, group.members[old.member_id], member)
    else:
        after = put(begin(group), member, joined=True)
    after = complete(after, now_ms) if ends_round else after
    return Decision(response=after, group=None if after is before else after)


def join_all(
    view: GroupView, group_id: str, newcomers: Iterable[tuple[Member, str]], *, now_ms: int
) -> Decision[tuple[Group, Mapping[str, TidelogError]]]:
    """Newcomers join at once, so that one round has them all: those that waited for a group's first round.

    `newcomers`: each with its protocol type. Answers the group after it, and why some could not join, by member id.
    Raises InvalidGroupError.
    """
    check_group_id(group_id)
    group = current(view, group_id)
    refused: dict[str, TidelogError] = {}
    for member, protocol_type in newcomers:
        seen = replace(view, group=group)
        try:
            group = join(
                seen, group_id, member, rejoins=False, now_ms=now_ms, protocol_type=protocol_type, ends_round=False
            ).response
        except TidelogError as e:
            refused[member.member_id] = e
    group = complete(group, now_ms) if group.members else group
    return Decision(response=(group, refused), group=group if group.members else None)


def _rejoin(group: Group, member: Member) -> Group:
    before = group.members[member.member_id]
    member = replace(member, assignment=before.assignment)
    unchanged = before.protocols == member.protocols
    if group.phase is GroupPhase.PREPARING and before.joined and unchanged:
        return group
    leads = group.leader == member.member_id
    if unchanged and (group.phase is GroupPhase.COMPLETING or (group.phase is GroupPhase.STABLE and not leads)):
        return group
    return put(begin(group), member, joined=True)


def _take_place(group: Group, old: Member, member: Member) -> Group:
    """The newcomer has the static id of a member: it follows in its place, its assignment and its office."""
    member = replace(member, assignment=old.assignment)
    led = group.leader == old.member_id
    group = without(group, [old.member_id])
    if group.phase is GroupPhase.STABLE:
        stable = put(group, member, joined=False)
        if _same_topics(group, old, member) and elected_protocol(stable.members.values()) == group.protocol:
            return replace(stable, leader=member.member_id) if led else stable
    # A leader that works out the assignment just now does so for the old id, hence a round in every other phase.
    group = put(begin(group), member, joined=True)
    return replace(group, leader=member.member_id) if led else group


def _require_compatible(group: Group, member: Member, protocol_type: str) -> None:
    """Source: `GroupMetadata.supportsProtocols`, but what the member itself said before does not count against it."""
    others = [
        other
        for other in group.members.values()
        if other.member_id != member.member_id
        and (other.instance_id is None or other.instance_id != member.instance_id)
    ]
    own = ", ".join(name for name, _ in member.protocols)
    if not own or not protocol_type:
        raise InconsistentProtocolError(
            f"A member can't join group {group.group_id!r} without an assignor and a protocol type: the members of a "
            "group agree on one of each. Give at least one assignor."
        )
    if group.members and group.protocol_type != protocol_type:
        raise InconsistentProtocolError(
            f"Group {group.group_id!r} is of type {group.protocol_type!r}, not {protocol_type!r}: all members of a "
            "group are of one type. Use another group id."
        )
    if others and not common_protocols([*others, member]):
        raise InconsistentProtocolError(
            f"Group {group.group_id!r} can't take a member that offers only {own}: its members share "
            f"{', '.join(sorted(common_protocols(others)))}, and a group needs one assignor that all support. Give "
            "`partition.assignment.strategy` one of these."
        )


def _holder(group: AnyGroup, instance_id: str | None) -> AnyMember | None:
    """The member of that static id."""
    if instance_id is None:
        return None
    return next((member for member in group.members.values() if member.instance_id == instance_id), None)


def _same_topics(group: Group, member: Member, other: Member) -> bool:
    """Whether two members subscribe to the same; what is not of the consumer protocol is compared by its bytes."""
    if group.protocol_type == PROTOCOL_TYPE:
        with suppress(InconsistentProtocolError):
            return _topics(member) == _topics(other)
    return member.protocols == other.protocols


def _topics(member: Member) -> dict[str, frozenset[str]]:
    return {name: subscribed_topics(data) for name, data in member.protocols}


def topics_of_members(group: AnyGroup) -> frozenset[str] | None:
    """The topics that members subscribe to; None when they don't say, or it can't be read.

    Source: `computeSubscribedTopics`.
    """
    if isinstance(group, StreamsGroup):
        return group.topology.required if group.members and group.topology else frozenset()
    if isinstance(group, ConsumerGroup):
        return frozenset().union(*(member.subscription for member in group.members.values()))
    if group.protocol_type != PROTOCOL_TYPE:
        return None
    try:
        return frozenset().union(*(topics for member in group.members.values() for topics in _topics(member).values()))
    except InconsistentProtocolError:
        return None


# --- being a member ----------------------------------------------------------------------------------------


def check_member(group: AnyGroup, member_id: str, instance_id: str | None = None) -> None:
    """Refuse a caller that is no member: FencedInstanceError when another has its static id, else UnknownMemberError.

    Source: `GroupCoordinator.validateCurrentMember`.
    """
    holder = _holder(group, instance_id)
    if holder is not None and holder.member_id != member_id:
        raise FencedInstanceError(
            f"Member {member_id!r} of group {group.group_id!r} was replaced by {holder.member_id!r}, which has "
            f"the same `group.instance.id` {instance_id!r}: of two consumers with one id the later one goes on. Give "
            "each consumer its own id, and close this one."
        )
    if member_id not in group.members or (instance_id is not None and holder is None):
        raise UnknownMemberError(
            f"Group {group.group_id!r} has no member {member_id!r}: members that leave, or are silent for their session"
            " timeout, are no members any more. Join again."
        )


def other_protocol(group: EpochGroup, member_id: str) -> UnknownMemberError:
    """What a member of the classic protocol is refused with, in a group of another type that has members."""
    return UnknownMemberError(
        f"Group {group.group_id!r} has no member {member_id!r} of the classic protocol: it is of the type {group.type}."
        f" Set `group.protocol` to {group.type}."
    )


def check_generation(group: Group, generation: int) -> None:
    """Refuse a generation that is not the group's with IllegalGenerationError."""
    if generation != group.generation:
        raise IllegalGenerationError(
            f"Group {group.group_id!r} is in generation {group.generation}, not {generation}: what a member of an "
            "earlier generation owned may be others' by now. Join again."
        )


def sync(
    view: GroupView,
    group_id: str,
    member_id: str,
    generation: int,
    *,
    instance_id: str | None = None,
    assignments: Mapping[str, bytes] | None = None,
) -> Decision[bytes | None]:
    """Hand in all assignments (the leader), and get one's own; None while the leader has not handed them in.

    `assignments`: by member id; a missing member gets b"", others are left out. Handed in again when the group
    is Stable they change nothing. Raises UnknownMemberError, FencedInstanceError, IllegalGenerationError,
    RebalanceInProgressError. Source: `GroupCoordinator.doSyncGroup`.
    """
    if view.group is not None and not isinstance(view.group, Group) and view.group.members:
        check_member(view.group, member_id, instance_id)
        raise RebalanceInProgressError(f"Group {group_id!r} has changed its type meanwhile. Join again.")
    group = current(view, group_id)
    check_member(group, member_id, instance_id)
    check_generation(group, generation)
    if group.phase is GroupPhase.PREPARING:
        raise RebalanceInProgressError(
            f"Group {group.group_id!r} is rebalancing: its members join again before they go on. Join again."
        )
    if group.phase is GroupPhase.STABLE:
        return Decision(response=group.members[member_id].assignment)
    if assignments is None or group.leader != member_id:
        return Decision(response=None)
    members = {name: replace(member, assignment=assignments.get(name, b"")) for name, member in group.members.items()}
    stable = replace(group, phase=GroupPhase.STABLE, members=members)
    return Decision(response=members[member_id].assignment, group=stable)


# --- going -------------------------------------------------------------------------------------------------


def leave(
    view: GroupView,
    group_id: str,
    member_id: str,
    *,
    now_ms: int,
    migration: Migration = Migration.BIDIRECTIONAL,
) -> Decision[AnyGroup]:
    """A member goes; the others rebalance. Raises UnknownMemberError. Source: `GroupCoordinator.handleLeaveGroup`.

    Static members don't leave when they are closed, so that they can come back: their callers don't call this.
    """
    if isinstance(view.group, EpochGroup):
        check_member(view.group, member_id)
        rest = without_members(view.group, [member_id], now_ms, migration)
        return Decision(response=rest, group=rest)
    group = current(view, group_id)
    check_member(group, member_id)
    return _written(_go_on(without(group, [member_id]), now_ms))


def evict_silent(
    view: GroupView,
    group_id: str,
    watched: Mapping[str, int],
    *,
    now_ms: int,
    migration: Migration = Migration.BIDIRECTIONAL,
) -> Decision[frozenset[str]]:
    """Take out members that sent no heartbeat for their session timeout. Answers their ids.

    `watched`: member id -> its `turn` when the watch began; a member that has joined since is alive, and stays.
    Source: `GroupCoordinator.onExpireHeartbeat`.
    """
    if isinstance(view.group, EpochGroup):
        return evict(view.group, watched, now_ms, migration)
    group = current(view, group_id)
    gone = frozenset(
        name for name, turn in watched.items() if name in group.members and group.members[name].turn == turn
    )
    if not gone:
        return Decision(response=gone)
    return Decision(response=gone, group=_go_on(without(group, gone), now_ms))


def evict_late(view: GroupView, group_id: str, generation: int, *, now_ms: int) -> Decision[frozenset[str]]:
    """The rebalance timeout is over: the round of `generation` goes on without the late members. Answers their ids.

    While members join, those that have not joined are late; static ones among them stay members and get their share.
    While the leader works out the assignment, it is the leader that is late. Nothing happens when the group is in
    another generation, is Stable, or when no member has joined yet.
    Source: `GroupCoordinator.onCompleteJoin` and `onExpirePendingSync`.
    """
    none: frozenset[str] = frozenset()
    if isinstance(view.group, EpochGroup):
        return Decision(response=none)
    group = current(view, group_id)
    if group.generation != generation:
        return Decision(response=none)
    if group.phase is GroupPhase.COMPLETING and group.leader is not None:
        gone = frozenset([group.leader])
        return Decision(response=gone, group=_go_on(without(group, gone), now_ms))
    if group.phase is not GroupPhase.PREPARING or not any(member.joined for member in group.members.values()):
        return Decision(response=none)
    gone = frozenset(name for name, member in group.members.items() if not member.joined and member.instance_id is None)
    return Decision(response=gone, group=complete(without(group, gone), now_ms, late=True))


def _go_on(group: Group, now_ms: int) -> Group:
    """A group that lost members rebalances, or goes on in the round that it is in."""
    return complete(begin(group), now_ms)


def _written(group: Group) -> Decision[AnyGroup]:
    return Decision(response=group, group=group)
