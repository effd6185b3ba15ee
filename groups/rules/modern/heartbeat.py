"""A heartbeat of a member of a group of the type consumer (KIP-848): all of the protocol in one pure rule.

Where Kafka's coordinator keeps the group, the writer of the entry has decided here, and the door lets one win.

Source: `GroupMetadataManager.consumerGroupHeartbeat` and its neighbours (kafka 4.0).
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

import mmh3

from tidelog.groups.assignors.server_side import SERVER_ASSIGNORS, Subscriber
from tidelog.groups.consumer_protocol import PROTOCOL_TYPE
from tidelog.groups.model import (
    AWAY,
    AnyGroup,
    AssignedPartition,
    Assignment,
    ConsumerGroup,
    ConsumerMember,
    Decision,
    Group,
    GroupView,
)
from tidelog.groups.rules.departures import without
from tidelog.groups.rules.members import check_group_id, check_member, group_of_other_type
from tidelog.groups.rules.migration import Migration
from tidelog.groups.rules.modern.reconciliation import Owned, owns_else, reconcile
from tidelog.groups.rules.modern.topics import AssignableTopic, MissingTopicsError, Topics
from tidelog.groups.rules.modern.turning import turned
from tidelog.groups.rules.offsets import group_not_found
from tidelog.log.base.errors import (
    FencedInstanceError,
    FencedMemberEpochError,
    UnknownMemberError,
    UnreleasedInstanceError,
)

# Epochs of requests: a member joins, leaves, or leaves and comes back within its session timeout (a static one).
JOINS = 0
LEAVES = -1
GOES_AWAY = AWAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """What a member says. None: as it said before. Times in ms.

    `regex`: "" takes a subscription back. `matched`: the topics that its regular expression matches now, where that was
    looked up. `owned`: the partitions that it owns. `refresh`: look whether topics have changed. `protocols`: of a
    member of the classic protocol.
    """

    group_id: str
    member_id: str
    epoch: int
    client_id: str = ""
    host: str = ""
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int | None = None
    session_timeout_ms: int = 45_000
    topics: frozenset[str] | None = None
    regex: str | None = None
    matched: frozenset[str] | None = None
    assignor: str | None = None
    owned: Owned = None
    refresh: bool = False
    protocols: tuple[tuple[str, bytes], ...] = ()

    @property
    def is_full(self) -> bool:
        """Whether it says all that a member may say, as one does that joins, or does not know what was heard of it."""
        told = (self.rebalance_timeout_ms, self.topics, self.owned)
        return self.epoch == JOINS or None not in told


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """The group after a heartbeat; the member's epoch, and what it may read: None where it knows that."""

    group: AnyGroup
    epoch: int
    assigned: Assignment | None = None


def heartbeat(
    view: GroupView,
    topics: Topics,
    request: Heartbeat,
    *,
    now_ms: int,
    default_assignor: str = "uniform",
    migration: Migration = Migration.BIDIRECTIONAL,
) -> Decision[HeartbeatAnswer]:
    """A member joins, stays, changes its subscription, goes on towards its target, or leaves.

    1. A newcomer, another subscription or other topics begin a new epoch of the group.
    2. An epoch without an assignment gets one, here and now.
    3. This member goes one step towards its target. A heartbeat that changes nothing writes nothing.

    Raises `InvalidGroupError`, `GroupNotFoundError` (also for a group of another type that has members),
    `UnknownMemberError`, `FencedMemberEpochError`, `FencedInstanceError`, `UnreleasedInstanceError`,
    `MissingTopicsError`.
    """
    check_group_id(request.group_id)
    if request.epoch in (LEAVES, GOES_AWAY):
        return _leave(view, request, now_ms, migration)
    group = _group(view, request, topics, migration)
    before = member_of(group, request)
    member = told(before, request)
    group, member = advanced(group, before, member, topics, request, default_assignor)
    # One that has to give up partitions may not have heard that, as it has not said yet that it did.
    unsure = request.is_full or request.epoch != before.epoch or bool(member.revoking)
    tells = unsure or member.assigned != before.assigned or owns_else(request.owned, member.assigned)
    answer = HeartbeatAnswer(group, member.epoch, member.assigned if tells else None)
    return Decision(response=answer, group=None if group == view.group else group)


def advanced(
    group: ConsumerGroup,
    before: ConsumerMember,
    member: ConsumerMember,
    topics: Topics,
    request: Heartbeat,
    default_assignor: str,
) -> tuple[ConsumerGroup, ConsumerMember]:
    """The group and the member, after what the member says of itself, `before` and now. Raises `MissingTopicsError`."""
    # A static member that came back follows in the place of the one that it was.
    targets = {member.member_id if name == before.member_id else name: target for name, target in group.targets.items()}
    members = {name: other for name, other in group.members.items() if name != before.member_id}
    group = replace(group, targets=targets, members={**members, member.member_id: member}, empty_since_ms=None)
    group = _refreshed(group, topics, resubscribed=_is_resubscribed(before, member), look=request.refresh)
    if group.epoch > group.assignment_epoch:
        group = assigned(group, topics, default_assignor)
    member = reconcile(group, member, request.owned)
    return replace(group, members={**group.members, member.member_id: member}), member


# --- the member ---------------------------------------------------------------------------------------------


def _group(view: GroupView, request: Heartbeat, topics: Topics, migration: Migration) -> ConsumerGroup:
    """The group; a classic one becomes one of the type consumer: with its members where that is allowed."""
    group = view.group
    if isinstance(group, ConsumerGroup):
        return group
    if request.epoch != JOINS:
        _check_not_replaced(group, request)
        raise group_not_found(request.group_id)
    if group is None:
        return ConsumerGroup(request.group_id)
    if group.members:
        if not isinstance(group, Group) or not migration.upgrades or group.protocol_type != PROTOCOL_TYPE:
            raise group_of_other_type(group)
        return turned(group, topics)
    return ConsumerGroup(request.group_id, group.generation, group.generation)


def _check_not_replaced(group: AnyGroup | None, request: Heartbeat) -> None:
    """Refuse a static member whose id another one has by now, also in a group that has turned back meanwhile.

    Notified only that the group is no more, it would join again, and take its place back. Raises `FencedInstanceError`.
    """
    if group is not None:
        with suppress(UnknownMemberError):
            check_member(group, request.member_id, request.instance_id)


def member_of(group: ConsumerGroup, request: Heartbeat) -> ConsumerMember:
    """The member that asks, as the group knows it: a newcomer is one of epoch 0, which subscribes to nothing."""
    if request.instance_id is not None:
        holder = _holder(group, request.instance_id)
        if holder is not None and holder.member_id != request.member_id:
            if request.epoch != JOINS:
                raise _fenced_instance(group, request, holder)
            takes_place = holder.is_classic or bool(request.protocols)  # as in the classic protocol
            if holder.epoch != AWAY and not takes_place:
                raise UnreleasedInstanceError(
                    f"Member {request.member_id!r} can't join group {group.group_id!r}: member {holder.member_id!r} has"
                    f" its `group.instance.id` {request.instance_id!r}, and has not left. Give each consumer its own"
                    " id; one that was killed counts until its session timeout is over."
                )
            return replace(holder, epoch=0, previous_epoch=0)
        if holder is None and request.epoch != JOINS:
            raise _unknown(group, request)
        if holder is not None and holder.epoch == AWAY and request.epoch == JOINS:
            return replace(holder, epoch=0, previous_epoch=0)
    member = group.members.get(request.member_id)
    if member is not None and member.is_classic is not bool(request.protocols) and request.epoch != JOINS:
        raise _unknown(group, request)
    if member is None:
        if request.epoch != JOINS:
            raise _unknown(group, request)
        return ConsumerMember(request.member_id)
    if request.epoch == JOINS and JOINS not in (member.epoch, member.previous_epoch):
        # It has lost what it was given. It begins again, in an epoch of its own, in which its former self can't commit.
        # Kafka has it wait for the end of its session.
        return ConsumerMember(request.member_id)
    _check_epoch(group, member, request)
    return member


def _check_epoch(group: ConsumerGroup, member: ConsumerMember, request: Heartbeat) -> None:
    """Refuse another epoch than the member's; the one before it is taken where an answer may have been lost."""
    if request.epoch == member.epoch:
        return
    own = {(one.topic_id, one.partition) for one in member.assigned}
    if request.epoch == member.previous_epoch and request.owned is not None and request.owned <= own:
        return
    raise FencedMemberEpochError(
        f"Member {member.member_id!r} of group {group.group_id!r} is in epoch {member.epoch}, not {request.epoch}: what"
        " it owned then may be others' by now. It gives up all partitions, and joins again."
    )


def _holder(group: ConsumerGroup, instance_id: str) -> ConsumerMember | None:
    return next((member for member in group.members.values() if member.instance_id == instance_id), None)


def _unknown(group: ConsumerGroup, request: Heartbeat) -> UnknownMemberError:
    return UnknownMemberError(
        f"Group {group.group_id!r} has no member {request.member_id!r}: members that leave, or are silent for their"
        " session timeout, are no members any more. Join again."
    )


def _fenced_instance(group: ConsumerGroup, request: Heartbeat, holder: ConsumerMember) -> FencedInstanceError:
    return FencedInstanceError(
        f"Member {request.member_id!r} of group {group.group_id!r} was replaced by {holder.member_id!r}, which has the"
        f" same `group.instance.id` {request.instance_id!r}. Give each consumer its own id, and close this one."
    )


def told(member: ConsumerMember, request: Heartbeat) -> ConsumerMember:
    """The member with what it says now."""
    timeout_ms, regex = request.rebalance_timeout_ms, request.regex
    changed = replace(
        member,
        member_id=request.member_id,
        client_id=request.client_id,
        host=request.host,
        session_timeout_ms=request.session_timeout_ms,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack=member.rack if request.rack is None else request.rack,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms is None else timeout_ms,
        topics=member.topics if request.topics is None else request.topics,
        regex=member.regex if regex is None else (regex or None),
        assignor=member.assignor if request.assignor is None else request.assignor,
        protocols=request.protocols,
    )
    if changed.regex is None:
        return replace(changed, matched=frozenset())
    return changed if request.matched is None else replace(changed, matched=request.matched)


def _is_resubscribed(before: ConsumerMember, now: ConsumerMember) -> bool:
    return (before.topics, before.regex, before.matched) != (now.topics, now.regex, now.matched)


# --- leaving -----------------------------------------------------------------------------------------------


def _leave(view: GroupView, request: Heartbeat, now_ms: int, migration: Migration) -> Decision[HeartbeatAnswer]:
    group = view.group
    if not isinstance(group, ConsumerGroup):
        _check_not_replaced(group, request)
        raise group_not_found(request.group_id) if group is None else group_of_other_type(group)
    member = group.members.get(request.member_id)
    if request.instance_id is not None:
        holder = _holder(group, request.instance_id)
        if holder is not None and holder.member_id != request.member_id:
            raise _fenced_instance(group, request, holder)
        member = holder
    if member is None:
        raise _unknown(group, request)
    if request.epoch == GOES_AWAY:
        away = replace(member, epoch=AWAY, previous_epoch=member.epoch, revoking=frozenset())
        after: AnyGroup = replace(group, members={**group.members, away.member_id: away})
    else:
        after = without(group, [member.member_id], now_ms, migration)
    return Decision(response=HeartbeatAnswer(after, request.epoch), group=after)


# --- epochs and assignments --------------------------------------------------------------------------------


def _refreshed(group: ConsumerGroup, topics: Topics, *, resubscribed: bool, look: bool) -> ConsumerGroup:
    """The group in a new epoch, when a subscription or the topics subscribed to have changed."""
    if not resubscribed and not look:
        return group
    facts = _facts(group, topics)
    text = "\n".join(f"{name} {one.topic_id} {one.partitions}" for name, one in sorted(facts.items()))
    metadata_hash = mmh3.hash64(text.encode(errors="surrogatepass"))[0] if facts else 0
    if not resubscribed and metadata_hash == group.metadata_hash:
        return group
    return replace(group, epoch=group.epoch + 1, metadata_hash=metadata_hash)


def _facts(group: ConsumerGroup, topics: Topics) -> dict[str, AssignableTopic]:
    """The topics that members subscribe to, as far as they are there. Raises `MissingTopicsError`."""
    names = frozenset().union(*(member.subscription for member in group.members.values()))
    unknown = names - topics.keys()
    if unknown:
        raise MissingTopicsError(names)
    return {name: facts for name in names if (facts := topics[name]) is not None}


def assigned(group: ConsumerGroup, topics: Topics, default_assignor: str) -> ConsumerGroup:
    """The group with an assignment of its newest epoch, by the assignor that most members ask for."""
    facts = _facts(group, topics)
    names = {one.topic_id: name for name, one in facts.items()}
    assignor = _elected(group.members.values(), default_assignor)
    subscribers = [
        Subscriber(
            member.member_id,
            frozenset(facts[name].topic_id for name in member.subscription if name in facts),
            frozenset((one.topic_id, one.partition) for one in group.target(member.member_id)),
            member.instance_id,
        )
        for member in group.members.values()
    ]
    shares = SERVER_ASSIGNORS[assignor](subscribers, {one.topic_id: one.partitions for one in facts.values()})
    targets = {
        name: frozenset(AssignedPartition(topic_id, names[topic_id], partition) for topic_id, partition in share)
        for name, share in shares.items()
    }
    return replace(group, assignment_epoch=group.epoch, assignor=assignor, targets=targets)


def _elected(members: Iterable[ConsumerMember], default: str) -> str:
    """The assignor that most members ask for; of two with as many votes the first by name."""
    votes = Counter(member.assignor for member in members if member.assignor)
    return min(votes, key=lambda name: (-votes[name], name)) if votes else default
