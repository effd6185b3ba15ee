"""A member's way from what it reads to what it is to read: it gives up first, then it gets what others gave up. Pure.

Source: `CurrentAssignmentBuilder` (kafka 4.0). Where Kafka keeps a member's state, it follows here from the member: one
that has to give up partitions (UNREVOKED_PARTITIONS) names them, one that lacks some of its target waits for them
(UNRELEASED_PARTITIONS).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from tidelog.groups.model import AssignedPartition, Assignment, ConsumerGroup, ConsumerMember

# What a member says it owns: (topic id, partition); None when it does not say.
Owned = frozenset[tuple[str, int]] | None


class Holders:
    """How many members hold each partition, counted when first asked for and kept while members go on one by one."""

    def __init__(self, members: Mapping[str, ConsumerMember]) -> None:
        self._members = members
        self._holders: Counter[AssignedPartition] | None = None

    def free(self, member_id: str, partitions: Assignment) -> Assignment:
        """Those of the partitions that no other member holds."""
        if self._holders is None:
            held = chain.from_iterable((*one.assigned, *one.revoking) for one in self._members.values())
            self._holders = Counter(held)
        holders, own = self._holders, self._members[member_id].held
        return frozenset(one for one in partitions if holders[one] <= (one in own))

    def replaced(self, before: ConsumerMember, after: ConsumerMember) -> None:
        """A member is this one from now on."""
        if self._holders is not None:
            self._holders.subtract(before.held)
            self._holders.update(after.held)


def reconcile(group: ConsumerGroup, member: ConsumerMember, owned: Owned, holders: Holders) -> ConsumerMember:
    """The member after one step towards its target. `holders`: of the partitions of its group, of which it is one.

    - What is not in its target is to be revoked; until the member says that it does not own it any more, nothing else
      happens, and its epoch stays.
    - Then it comes to the epoch of the assignment, and gets of its target what no other member holds.
    """
    if group.is_reconciled(member) or _owns(owned, member.revoking):
        return member
    epoch = member.epoch + 1 if member.revoking else member.epoch
    target = group.target(member.member_id)
    kept, gone = member.assigned & target, member.assigned - target
    if _owns(owned, gone):
        return replace(member, epoch=epoch, previous_epoch=member.epoch, assigned=kept, revoking=gone)
    missing = target - kept
    free = holders.free(member.member_id, missing) if missing else missing
    epoch, assigned = group.assignment_epoch, kept | free
    if (epoch, assigned, frozenset()) == (member.epoch, member.assigned, member.revoking):
        return member  # it waits
    return replace(member, epoch=epoch, previous_epoch=member.epoch, assigned=assigned, revoking=frozenset())


def losing(member: ConsumerMember, target: Assignment) -> ConsumerMember:
    """The member when its target is this one from now on: what is another's then it has to give up.

    It hears of it at its next heartbeat, which writes nothing. Its epoch stays until it has given up.
    """
    gone = member.assigned - target
    if not gone or member.is_classic or member.epoch <= 0:
        return member
    return replace(member, assigned=member.assigned - gone, revoking=member.revoking | gone)


def owns_else(owned: Owned, assigned: Assignment) -> bool:
    """Whether a member says that it owns other partitions than it is assigned."""
    return owned is not None and owned != {(one.topic_id, one.partition) for one in assigned}


def _owns(owned: Owned, partitions: Assignment) -> bool:
    """Whether a member may still own some of these partitions: one that does not say what it owns may."""
    if not partitions:
        return False
    return owned is None or any((one.topic_id, one.partition) in owned for one in partitions)
