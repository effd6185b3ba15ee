"""A heartbeat of a member of a group of the type consumer (KIP-848): all of the protocol in one pure rule.

Where Kafka's coordinator keeps the group, the writer of the entry has decided here, and the door lets one win.

Source: `GroupMetadataManager.consumerGroupHeartbeat` and its neighbours (kafka 4.0).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tidelog.groups.consumer_protocol import PROTOCOL_TYPE
from tidelog.groups.model import (
    AWAY,
    AnyGroup,
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
from tidelog.groups.rules.modern.drafts import GroupDraft
from tidelog.groups.rules.modern.reconciliation import Owned, owns_else
from tidelog.groups.rules.modern.topics import Topics
from tidelog.groups.rules.modern.turning import turned
from tidelog.groups.rules.offsets import group_not_found
from tidelog.log.base.errors import (
    FencedInstanceError,
    FencedMemberEpochError,
    TidelogError,
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
    decision = heartbeats(
        view, topics, [request], now_ms=now_ms, default_assignor=default_assignor, migration=migration
    )
    (answer,) = decision.response
    if isinstance(answer, TidelogError):
        raise answer
    return Decision(response=answer, group=decision.group)


def heartbeats(
    view: GroupView,
    topics: Topics,
    requests: Sequence[Heartbeat],
    *,
    now_ms: int,
    default_assignor: str = "uniform",
    migration: Migration = Migration.BIDIRECTIONAL,
) -> Decision[list[HeartbeatAnswer | TidelogError]]:
    """Heartbeats of one group that are decided together: an answer or a refusal for each, as `heartbeat` has them.

    Members that say something one after another begin one epoch together, with one assignment: a thousand that join at
    once cost as much as one. One that leaves, or says something once more, comes after those before it.
    Raises `MissingTopicsError`: then nothing is decided.
    """
    group: AnyGroup | None = view.group
    answers: list[HeartbeatAnswer | TidelogError] = []
    for run in _runs(requests):
        if run[0].epoch in (LEAVES, GOES_AWAY):
            group, answer = _left(group, run[0], now_ms, migration)
            answers.append(answer)
        else:
            group, heard = _together(group, topics, run, default_assignor, migration)
            answers.extend(heard)
    return Decision(response=answers, group=None if group == view.group else group)


def _runs(requests: Iterable[Heartbeat]) -> Iterator[list[Heartbeat]]:
    """Requests in their order, in runs of different members of which none leaves; each that leaves by itself."""
    run: list[Heartbeat] = []
    names: set[tuple[str, str]] = set()
    for request in requests:
        own = {("member", request.member_id)}
        if request.instance_id is not None:
            own.add(("instance", request.instance_id))
        leaves = request.epoch in (LEAVES, GOES_AWAY)
        if run and (leaves or own & names):
            yield run
            run, names = [], set()
        if leaves:
            yield [request]
        else:
            run.append(request)
            names |= own
    if run:
        yield run


def _together(
    group: AnyGroup | None, topics: Topics, run: Sequence[Heartbeat], default_assignor: str, migration: Migration
) -> tuple[AnyGroup | None, list[HeartbeatAnswer | TidelogError]]:
    """The group after heartbeats of different members, of which none leaves, and what each of them hears."""
    draft: GroupDraft | None = None
    came: dict[str, tuple[int, Heartbeat, ConsumerMember]] = {}
    answers: dict[int, HeartbeatAnswer | TidelogError] = {}
    for place, request in enumerate(run):
        try:
            check_group_id(request.group_id)
            joined = _group(group, request, topics, migration) if draft is None else draft.group
            before = member_of(joined, request)
        except TidelogError as e:
            answers[place] = e
            continue
        draft = draft or GroupDraft(joined)
        member = told(before, request)
        draft.takes(before, member)
        if before.member_id != request.member_id and before.member_id in came:
            # Another takes its place in the same decision: then it is no member any more.
            at, late, _ = came.pop(before.member_id)
            answers[at] = _fenced_instance(draft.group, late, member)
        came[request.member_id] = place, request, before
    if draft is None:
        return group, [answers[place] for place in range(len(run))]
    draft.assign(topics, default_assignor, look=any(request.refresh for _, request, _ in came.values()))
    advanced = [(*one, draft.advance(name, one[1].owned)) for name, one in came.items()]
    answers |= {place: _answer(draft.group, request, before, member) for place, request, before, member in advanced}
    return draft.group, [answers[place] for place in range(len(run))]


def _answer(
    group: ConsumerGroup, request: Heartbeat, before: ConsumerMember, member: ConsumerMember
) -> HeartbeatAnswer:
    """What a member hears."""
    # One that has to give up partitions, or had to until now, may not have heard that: another's entry may say so.
    unsure = request.is_full or request.epoch != before.epoch or bool(member.revoking or before.revoking)
    tells = unsure or member.assigned != before.assigned or owns_else(request.owned, member.assigned)
    return HeartbeatAnswer(group, member.epoch, member.assigned if tells else None)


# --- the member ---------------------------------------------------------------------------------------------


def _group(group: AnyGroup | None, request: Heartbeat, topics: Topics, migration: Migration) -> ConsumerGroup:
    """The group; a classic one becomes one of the type consumer: with its members where that is allowed."""
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
    own = {(one.topic_id, one.partition) for one in member.held}
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


# --- leaving -----------------------------------------------------------------------------------------------


def _left(
    group: AnyGroup | None, request: Heartbeat, now_ms: int, migration: Migration
) -> tuple[AnyGroup | None, HeartbeatAnswer | TidelogError]:
    try:
        check_group_id(request.group_id)
        after = _leave(group, request, now_ms, migration)
    except TidelogError as e:
        return group, e
    return after, HeartbeatAnswer(after, request.epoch)


def _leave(group: AnyGroup | None, request: Heartbeat, now_ms: int, migration: Migration) -> AnyGroup:
    """The group after a member has left it."""
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
        return replace(group, members={**group.members, away.member_id: away})
    return without(group, [member.member_id], now_ms, migration)
