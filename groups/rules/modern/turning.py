"""A classic group becomes one of the type consumer, with its members: each hears of it when it joins again. Pure.

Source: `ConsumerGroup.fromClassicGroup`, `GroupMetadataManager.validateOnlineUpgrade` (kafka 4.2).
"""

from collections.abc import Iterable, Mapping

from tidelog.groups.assignors.assign import ASSIGNORS
from tidelog.groups.consumer_protocol import Subscription, decode_assignment, decode_subscription, newest_claims
from tidelog.groups.model import (
    AssignedPartition,
    Assignment,
    ConsumerGroup,
    ConsumerMember,
    Group,
    Member,
    TopicPartition,
)
from tidelog.groups.rules.modern.topics import AssignableTopic, MissingTopicsError, Topics
from tidelog.log.base.errors import GroupNotFoundError, InconsistentProtocolError


def turned(group: Group, topics: Topics) -> ConsumerGroup:
    """The group with its members, each in the group's generation and with what it may own at most.

    That is what it was assigned last; where it has not heard that yet, as a round is under way, what it said when it
    joined. Raises `MissingTopicsError`; `GroupNotFoundError` where what members say is not of the consumer protocol, or
    would be lost.
    """
    try:
        said = {name: decode_subscription(member.protocols[0][1]) for name, member in group.members.items()}
        shares = _shares(group, said)
    except InconsistentProtocolError as e:
        raise _not_turned(group, f"a member of it says what can't be read: {e}") from e
    names = {topic for one in said.values() for topic in one.topics}
    names |= {topic for share in shares.values() for topic, _ in share}
    if names - topics.keys():
        raise MissingTopicsError(names)
    assigned = {name: _assigned(share, topics) for name, share in shares.items()}
    members = {name: _as_modern(group, one, said[name], assigned[name]) for name, one in group.members.items()}
    return ConsumerGroup(group.group_id, group.generation, group.generation, None, 0, members, assigned)


def _shares(group: Group, said: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
    """What each member may own, each partition once.

    An assignment counts before what any member says. What a member said that it owns counts besides, while it is no
    other's: a cooperative one that is assigned less reads on until it has given that up, and then joins again. Of two
    members that say that they own one partition, that of the newer generation does, and in one generation the first by
    id.
    """
    shares: dict[str, list[TopicPartition]] = {name: [] for name in group.members}
    taken: set[TopicPartition] = set()

    def give(name: str, places: Iterable[TopicPartition]) -> None:
        given = [place for place in dict.fromkeys(places) if place not in taken]
        shares[name].extend(given)
        taken.update(given)

    for name, member in sorted(group.members.items()):
        assignment = decode_assignment(member.assignment)
        if assignment.user_data and group.protocol not in ASSIGNORS:  # librdkafka's sticky ones repeat what members say
            raise _not_turned(group, "its leader's assignor gives members data of its own, which they would lose")
        give(name, assignment.partitions)
    claims = newest_claims({name: (one.owned, one.generation) for name, one in said.items()})
    for name in sorted(group.members):
        give(name, claims[name])
    return shares


def _assigned(share: Iterable[TopicPartition], topics: Mapping[str, AssignableTopic | None]) -> Assignment:
    return frozenset(
        AssignedPartition(facts.topic_id, topic, number)
        for topic, number in share
        if (facts := topics[topic]) is not None and number >= 0  # whatever is known here of its partitions may be old
    )


def _as_modern(group: Group, member: Member, said: Subscription, assigned: Assignment) -> ConsumerMember:
    return ConsumerMember(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.host,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        instance_id=member.instance_id,
        rack=said.rack,
        topics=frozenset(said.topics),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned=assigned,
        protocols=member.protocols,
    )


def _not_turned(group: Group, why: str) -> GroupNotFoundError:
    return GroupNotFoundError(
        f"Group {group.group_id!r} has members of the classic protocol and can't become one of the type consumer:"
        f" {why.rstrip('.')}. Stop its members first, or set `group.protocol` to classic."
    )
