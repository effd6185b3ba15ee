"""Groups whose members are of both protocols: how a member of the classic one sees a group of the type consumer. Pure.

Such a member joins, syncs and sends heartbeats as in a classic group: its epoch is its generation, no member leads, and
what it is assigned is its share. Source: `GroupMetadataManager.classicGroupHeartbeatToConsumerGroup`,
`ClassicGroup.fromConsumerGroup` (kafka 4.2).
"""

from collections.abc import Mapping
from enum import StrEnum

from tidelog.groups.consumer_protocol import PROTOCOL_TYPE, Assignment, encode_assignment
from tidelog.groups.model import AnyGroup, AnyMember, ConsumerGroup, ConsumerMember, Group, GroupPhase, Member
from tidelog.groups.rules.rounds import begin, common_protocols, elected_protocol


class Migration(StrEnum):
    """Which groups with members change their type (`group.consumer.migration.policy`)."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def upgrades(self) -> bool:
        """Whether a member of the consumer protocol makes a classic group one of the type consumer."""
        return self in (Migration.UPGRADE, Migration.BIDIRECTIONAL)

    @property
    def downgrades(self) -> bool:
        """Whether a group becomes classic when its last member of the consumer protocol goes."""
        return self in (Migration.DOWNGRADE, Migration.BIDIRECTIONAL)


def must_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether a member of the classic protocol has to join again: to give up, or to get, partitions.

    Not while it waits for what others still hold.
    """
    if member.epoch < group.epoch or member.revoking:
        return True
    missing = group.target(member.member_id) - member.assigned
    if member.assigned - group.target(member.member_id):
        return True
    if not missing:  # of a settled group each member is asked: what all others hold is not to be added up for that
        return False
    held = frozenset().union(*(other.held for other in group.members.values() if other is not member))
    return bool(missing - held)


def is_to_give_up(group: AnyGroup, member: AnyMember) -> bool:
    """Whether a member keeps what is to be others', or has to join again to learn of it: never in a classic group."""
    if isinstance(member, Member):
        return False
    if isinstance(group, ConsumerGroup) and isinstance(member, ConsumerMember) and member.is_classic:
        return must_rejoin(group, member)
    return bool(member.revoking)


def seen_by(group: ConsumerGroup, member: ConsumerMember, *, joined: bool = False) -> Group:
    """A group of the type consumer as its member of the classic protocol sees it.

    `joined`: as of its join, in which it takes what it is given, even if it is to join again right after.
    """
    phase = GroupPhase.PREPARING if not joined and must_rejoin(group, member) else GroupPhase.STABLE
    return Group(
        group.group_id,
        phase,
        member.epoch,
        PROTOCOL_TYPE,
        member.protocols[0][0],
        None,
        {member.member_id: _as_member(member, turn=0)},
    )


def _as_member(member: ConsumerMember, turn: int) -> Member:
    share = tuple(sorted((one.topic, one.partition) for one in member.assigned))
    return Member(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.host,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.protocols,
        instance_id=member.instance_id,
        assignment=encode_assignment(Assignment(share)),
        turn=turn,
    )


def turned_back(group: ConsumerGroup, policy: Migration, members: Mapping[str, ConsumerMember]) -> AnyGroup | None:
    """The group as a classic one that has these members, of its own, left; None while it does not become one.

    It does when all that are left are of the classic protocol and in the group's epoch, which becomes its generation:
    so none of them is fenced by that, and each joins again for the round that begins. While one of them is in an
    earlier epoch, the group stays as it is until that has joined again.
    """
    ready = all(member.is_classic and member.epoch == group.epoch for member in members.values())
    if not members or not policy.downgrades or not ready:
        return None
    ordered = sorted(members.values(), key=lambda member: member.member_id)
    classic = {member.member_id: _as_member(member, turn) for turn, member in enumerate(ordered, start=1)}
    if not common_protocols(classic.values()):
        return None
    whole = Group(
        group.group_id,
        GroupPhase.STABLE,
        group.epoch,
        PROTOCOL_TYPE,
        elected_protocol(classic.values()),
        ordered[0].member_id,
        classic,
        len(classic),
    )
    return begin(whole)
