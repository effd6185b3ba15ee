"""A member of the classic protocol joins a group that has members of the consumer protocol. Pure.

Source: `GroupMetadataManager.classicGroupJoinToConsumerGroup` (kafka 4.2).
"""

from dataclasses import replace

from tidelog.groups.consumer_protocol import PROTOCOL_TYPE, Subscription, decode_subscription
from tidelog.groups.model import ConsumerGroup, Decision, Group, GroupView, Member
from tidelog.groups.rules.members import check_member
from tidelog.groups.rules.migration import Migration, seen_by, turned_back
from tidelog.groups.rules.modern.drafts import GroupDraft
from tidelog.groups.rules.modern.heartbeat import JOINS, Heartbeat, member_of, told
from tidelog.groups.rules.modern.topics import Topics
from tidelog.groups.rules.rounds import common_protocols
from tidelog.log.base.errors import InconsistentProtocolError, UnknownMemberError


class ClassicGroupError(Exception):
    """The group is a classic one by now, or has no members: its members join by the rules of that."""


def join_among_modern(
    view: GroupView,
    topics: Topics,
    group_id: str,
    member: Member,
    *,
    rejoins: bool,
    protocol_type: str = PROTOCOL_TYPE,
    default_assignor: str = "uniform",
    migration: Migration = Migration.BIDIRECTIONAL,
) -> Decision[Group]:
    """A member of the classic protocol joins, or joins again; the group as it sees it then. It waits for no other.

    What it says that it owns counts as in a heartbeat. When all members are of the classic protocol, and come to one
    epoch with this one, the group becomes classic, and they join again for its round.

    Raises `ClassicGroupError`, `InconsistentProtocolError`, `UnknownMemberError`, `FencedInstanceError`,
    `MissingTopicsError`.
    """
    group = view.group
    if not isinstance(group, ConsumerGroup) or not group.members:
        raise ClassicGroupError(group_id)
    before = group.members.get(member.member_id)
    if rejoins or before is not None:
        check_member(group, member.member_id, member.instance_id)
    if before is not None and not before.is_classic:
        raise UnknownMemberError(
            f"Member {member.member_id!r} of group {group_id!r} is one of the consumer protocol. Join under another id."
        )
    said = _said(group, member, protocol_type)
    held = {} if before is None else {(one.topic, one.partition): one.topic_id for one in before.held}
    request = Heartbeat(
        group_id=group_id,
        member_id=member.member_id,
        epoch=JOINS if before is None else before.epoch,
        client_id=member.client_id,
        host=member.host,
        instance_id=member.instance_id,
        rack=said.rack,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.session_timeout_ms,
        topics=frozenset(said.topics),
        regex="",
        owned=frozenset((held[place], place[1]) for place in said.owned if place in held),
        refresh=True,
        protocols=member.protocols,
    )
    before = member_of(group, request)
    draft = GroupDraft(group)
    draft.takes(before, told(before, request))
    draft.assign(topics, default_assignor, look=request.refresh)
    after = draft.advance(member.member_id, request.owned)
    seen = seen_by(draft.group, after, joined=True)
    classic = turned_back(draft.group, migration, draft.group.members)
    changed = classic or draft.group
    return Decision(response=seen, group=None if changed == view.group else changed)


def _said(group: ConsumerGroup, member: Member, protocol_type: str) -> Subscription:
    """What the member says, for the assignor that it prefers. Raises `InconsistentProtocolError`."""
    if protocol_type != PROTOCOL_TYPE or not member.protocols:
        raise InconsistentProtocolError(
            f"Group {group.group_id!r} is of the type consumer, and takes members of that protocol type with an"
            " assignor, as it may become a classic one. Use another group id."
        )
    others = [other for name, other in group.members.items() if other.is_classic and name != member.member_id]
    if others and not common_protocols([*(replace(member, protocols=other.protocols) for other in others), member]):
        raise InconsistentProtocolError(
            f"Group {group.group_id!r} can't take a member that has no assignor in common with its other members of the"
            " classic protocol. Give `partition.assignment.strategy` one that all of them have."
        )
    return decode_subscription(member.protocols[0][1])
