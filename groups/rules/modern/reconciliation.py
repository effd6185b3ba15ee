"""A member's way from what it reads to what it is to read: it gives up first, then it gets what others gave up. Pure.

Source: `CurrentAssignmentBuilder` (kafka 4.0). Where Kafka keeps a member's state, it follows here from the member: one
that has to give up partitions (UNREVOKED_PARTITIONS) names them, one that lacks some of its target waits for them
(UNRELEASED_PARTITIONS).
"""

from dataclasses import replace

from tidelog.groups.model import Assignment, ConsumerGroup, ConsumerMember

# What a member says it owns: (topic id, partition); None when it does not say.
Owned = frozenset[tuple[str, int]] | None


def reconcile(group: ConsumerGroup, member: ConsumerMember, owned: Owned) -> ConsumerMember:
    """The member after one step towards its target.

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
    free = missing - _held_by_others(group, member.member_id) if missing else missing
    epoch, assigned = group.assignment_epoch, kept | free
    if (epoch, assigned, frozenset()) == (member.epoch, member.assigned, member.revoking):
        return member  # it waits
    return replace(member, epoch=epoch, previous_epoch=member.epoch, assigned=assigned, revoking=frozenset())


def owns_else(owned: Owned, assigned: Assignment) -> bool:
    """Whether a member says that it owns other partitions than it is assigned."""
    return owned is not None and owned != {(one.topic_id, one.partition) for one in assigned}


def _owns(owned: Owned, partitions: Assignment) -> bool:
    """Whether a member may still own some of these partitions: one that does not say what it owns may."""
    if not partitions:
        return False
    return owned is None or any((one.topic_id, one.partition) in owned for one in partitions)


def _held_by_others(group: ConsumerGroup, member_id: str) -> Assignment:
    others = (member.held for name, member in group.members.items() if name != member_id)
    return frozenset().union(*others)
