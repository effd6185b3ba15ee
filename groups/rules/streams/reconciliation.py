"""A member's way from the tasks that it has to those that it is to have: it gives up first, then it gets. Pure.

Source: `streams.CurrentAssignmentBuilder` (kafka 4.2). As for a consumer's partitions, where Kafka keeps a member's
state it follows here from the member.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from tidelog.groups.model import StreamsGroup, StreamsMember
from tidelog.groups.topology import NO_TASKS, StreamsTask, Tasks


def reconcile(group: StreamsGroup, member: StreamsMember, owned: Tasks | None) -> StreamsMember:
    """The member after one step towards its target. `owned`: the tasks that it says it has; None: it does not say.

    - What is not in its target is to be revoked; until the member says that it has it no more, nothing else happens.
    - Then it comes to the epoch of the assignment, and gets of its target what is free: no other member
      runs a task that it is to run, and its own process has not the task's state for something else.
    """
    if group.is_reconciled(member) or _has(owned, member.revoking):
        return member
    epoch = member.epoch + 1 if member.revoking else member.epoch
    target = group.target(member.member_id)
    kept, gone = member.assigned & target, member.assigned - target
    if _has(owned, gone):
        return _in_epoch(member, epoch, kept, gone)
    assigned = kept | _free(group, member, target - kept, kept)
    if (group.assignment_epoch, assigned, NO_TASKS) == (member.epoch, member.assigned, member.revoking):
        return member  # it waits
    return _in_epoch(member, group.assignment_epoch, assigned, NO_TASKS)


def _in_epoch(member: StreamsMember, epoch: int, assigned: Tasks, revoking: Tasks) -> StreamsMember:
    """The member with these tasks. `previous_epoch` stays with the epoch: it may not have heard of that yet."""
    previous = member.previous_epoch if epoch == member.epoch else member.epoch
    return replace(member, epoch=epoch, previous_epoch=previous, assigned=assigned, revoking=revoking)


def _has(owned: Tasks | None, tasks: Tasks) -> bool:
    """Whether a member may still have some of these tasks: one that does not say what it has may."""
    return bool(tasks) and (owned is None or bool(owned & tasks))


def _free(group: StreamsGroup, member: StreamsMember, missing: Tasks, kept: Tasks) -> Tasks:
    if not missing:
        return missing
    others = [other for name, other in group.members.items() if name != member.member_id]
    run = _of(others, lambda held: held.active)
    near = _of([other for other in others if other.process_id == member.process_id], lambda held: held.every)
    near |= kept.every
    return Tasks(missing.active - run - near, missing.standby - near, missing.warmup - near)


def _of(members: Iterable[StreamsMember], tasks: Callable[[Tasks], frozenset[StreamsTask]]) -> frozenset[StreamsTask]:
    return frozenset().union(*(tasks(member.held) for member in members))
