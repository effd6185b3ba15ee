"""A rebalance round as steps from group to group: it begins, members join or drop out, and it ends with a generation.

PreparingRebalance: members join. CompletingRebalance: all have joined, the leader works out the assignment. Stable:
every member can read its own. No step waits; the step that makes a round complete completes it.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from tidelog.groups.model import Group, GroupPhase, Member


def begin(group: Group) -> Group:
    """Begin a round: every member must join again. During a round nothing changes.

    Source: `GroupCoordinator.prepareRebalance`.
    """
    if group.phase is GroupPhase.PREPARING:
        return group
    members = {name: replace(member, joined=False) for name, member in group.members.items()}
    return replace(group, phase=GroupPhase.PREPARING, members=members)


def put(group: Group, member: Member, *, joined: bool) -> Group:
    """Add the member, or put it in the place of the one of its id; `joined` counts as one more join."""
    turns = group.turns + 1
    leader = group.leader if group.leader in group.members else member.member_id
    members = {**group.members, member.member_id: replace(member, joined=joined, turn=turns)}
    return replace(group, members=members, leader=leader, turns=turns)


def without(group: Group, member_ids: Iterable[str]) -> Group:
    """Take members out; if the leader is removed, the earliest-joined member becomes leader."""
    gone = set(member_ids)
    members = {name: member for name, member in group.members.items() if name not in gone}
    leader = group.leader if group.leader in members else _eldest(members.values())
    return replace(group, members=members, leader=leader)


def complete(group: Group, now_ms: int, *, late: bool = False) -> Group:
    """End the round when all members have joined, or there are none; else change nothing.

    `late`: the time to join is over. Static members that have not joined keep their place and get their share; others
    must have been taken out. It still takes a member that joined. An ended round has the next generation, the protocol
    with most votes, and a leader that joined. Source: `GroupCoordinator.onCompleteJoin`.
    """
    if group.phase is not GroupPhase.PREPARING:
        return group
    if not group.members:
        return replace(
            group,
            phase=GroupPhase.EMPTY,
            generation=group.generation + 1,
            protocol=None,
            leader=None,
            empty_since_ms=now_ms,
        )
    joined = [member for member in group.members.values() if member.joined]
    if not joined or (len(joined) < len(group.members) and not late):
        return group
    leader = group.leader if any(member.member_id == group.leader for member in joined) else _eldest(joined)
    return replace(
        group,
        phase=GroupPhase.COMPLETING,
        generation=group.generation + 1,
        protocol=elected_protocol(group.members.values()),
        leader=leader,
        members={name: replace(member, joined=False, assignment=b"") for name, member in group.members.items()},
        empty_since_ms=None,
    )


def common_protocols(members: Iterable[Member]) -> frozenset[str]:
    """Names of the protocols that every one of the members supports."""
    named = [frozenset(name for name, _ in member.protocols) for member in members]
    return frozenset.intersection(*named) if named else frozenset()


def elected_protocol(members: Iterable[Member]) -> str:
    """The protocol with most votes; each member votes for the first of its own that all support.

    Where Kafka leaves a tie to the order of a hash table, the first by name wins. The members have a protocol in
    common: joining sees to that. Source: `GroupMetadata.selectProtocol`.
    """
    voters = list(members)
    common = common_protocols(voters)
    votes = Counter(next(name for name, _ in member.protocols if name in common) for member in voters)
    return min(votes, key=lambda name: (-votes[name], name))


def _eldest(members: Iterable[Member]) -> str | None:
    ordered = sorted(members, key=lambda member: (member.turn, member.member_id))
    return ordered[0].member_id if ordered else None
