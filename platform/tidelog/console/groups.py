"""Consumer groups: how they are, how far behind in records and in time; offsets set elsewhere, groups deleted."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast, get_args

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.errors import ConsoleError, bad
from tidelog.console.sampler import Sampler
from tidelog.groups.model import (
    AnyGroup,
    AnyMember,
    CommittedOffset,
    ConsumerGroup,
    ConsumerMember,
    Group,
    Member,
    TopicPartition,
)
from tidelog.groups.rules.offsets import group_not_found
from tidelog.groups.store.group_log import GroupLog
from tidelog.operations.groups import GroupDescription, PartitionLag, delete_group, describe_group, set_offsets
from tidelog.operations.offset_resets import ResetTo, Scenario, plan_reset, standings
from tidelog.operations.rights import Right

# Members' own texts are shown up to here.
_CHARACTERS = 500
# What the page offers, by Kafka's operations: a reset of offsets is a commit.
_CHANGES = {"read": Right.COMMIT_OFFSETS, "delete": Right.DELETE_GROUP}
# A file and a cut give offsets of their own, which no field of a request holds.
_TARGETS: Final = tuple(one for one in get_args(ResetTo) if one not in ("file", "cut"))
_VALUED: Final = ("offset", "shift", "time")


def groups(call: ConsoleCall) -> Any:
    """The groups that the client sees."""
    snapshot = call.console.snapshot()
    seen = [name for name in sorted(snapshot.groups) if call.rights.sees_group(name)]
    return {"groups": [summary(describe_group(snapshot, name), snapshot.at_ms) for name in seen]}


def summary(description: GroupDescription, at_ms: int) -> dict[str, Any]:
    """A group in a row. `lag_s`: of its partition that is the farthest behind."""
    group, lag = description.group, description.lag
    return {
        "group": group.group_id,
        "state": group.phase.value,
        "type": "simple" if description.is_simple else group.type,
        "protocol": group.protocol or "",
        "members": lag.members,
        "topics": description.topics,
        "lag": lag.records,
        "lag_s": lag.seconds(at_ms),
    }


def group(call: ConsoleCall) -> Any:
    """One group: its members, and its partitions."""
    name = call.variables["group"]
    snapshot = call.console.snapshot()
    description = describe_group(snapshot, name)
    return {
        **summary(description, snapshot.at_ms),
        "generation": description.group.generation,
        "may": {change: call.offers(right, group=name) for change, right in _CHANGES.items()},
        "assignment_epoch": None if isinstance(description.group, Group) else description.group.assignment_epoch,
        "members": [_member(description.group, member, places) for member, places in description.members],
        "partitions": [_partition(lag) for lag in description.partitions],
    }


def _partition(lag: PartitionLag) -> dict[str, Any]:
    return {
        "topic": lag.topic,
        "partition": lag.partition,
        "committed": lag.committed,
        "end": lag.end,
        "lag": lag.records,
        "lag_s": lag.seconds,
        "member": None if lag.reader is None else lag.reader.member_id,
        "metadata": lag.metadata[:_CHARACTERS],
    }


def _member(group: AnyGroup, member: AnyMember, places: Sequence[TopicPartition]) -> dict[str, Any]:
    """A member. `target`: what it is to read in the end, where that is another thing; `epoch`: where it has one."""
    target, epoch = None, None if isinstance(member, Member) else member.epoch
    if isinstance(group, ConsumerGroup) and isinstance(member, ConsumerMember):
        epoch = group.reached(member)
        if not group.is_reconciled(member):
            target = _by_topic(sorted((one.topic, one.partition) for one in group.target(member.member_id)))
    return {
        "id": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
        "instance": member.instance_id,
        "assignments": _by_topic(places),
        "epoch": epoch,
        "target": target,
    }


def _by_topic(places: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in places:
        by_topic.setdefault(topic, []).append(partition)
    return [{"topic": topic, "partitions": found} for topic, found in sorted(by_topic.items())]


def history(call: ConsoleCall) -> Any:
    """A group's lag by topic since the console's start."""
    sampler = call.console.part(Sampler)
    name = call.variables["group"]
    if name not in sampler.sample().snapshot.groups:
        raise group_not_found(name)
    times, series = sampler.group_history(name)
    return {"since_ms": call.console.since_ms, "step_s": sampler.step_s, "times": times, "series": series}


def reset(call: ConsoleCall) -> Any:
    """Set a group's offsets, or with `dry_run` only say what they would become.

    An offset outside of a partition's range becomes the nearest one in it. A console that is read-only shows previews.
    """
    body = call.fields("topic", "partitions", "to", "value", "dry_run")
    dry_run, lake, name = body.get("dry_run", True), call.console.lake, call.variables["group"]
    if not isinstance(dry_run, bool):
        raise bad("'dry_run' must be true or false.")
    if not dry_run and call.console.settings.read_only:
        raise ConsoleError(403, "This console is read-only (--read-only).")
    scenario, scope = _scenario(body), _scope(body)
    log = GroupLog(lake)
    partitions = standings(lake, log, name, scope, scenario)
    if not partitions:
        raise ConsoleError(404, f"Group '{name}' has no offsets there. Name a topic.")
    for topic in {topic for topic, _ in partitions}:
        call.rights.require(Right.COMMIT_OFFSETS, topic=topic)
    try:
        planned = plan_reset(scenario, partitions)
    except ValueError as error:
        raise bad(str(error)) from None
    if not dry_run:
        set_offsets(lake, log, name, {place: CommittedOffset(one.offset) for place, one in planned.items()})
        call.console.invalidate()
    rows = [
        {"topic": topic, "partition": p, "from": partitions[topic, p].committed, "to": one.offset, "note": one.note}
        for (topic, p), one in planned.items()
    ]
    return {"group": name, "dry_run": dry_run, "offsets": rows}


def _scenario(body: Any) -> Scenario:
    to, value = body.get("to"), body.get("value")
    if to not in _TARGETS:
        raise bad(f"'to' must be one of {', '.join(_TARGETS)}.")
    if to not in _VALUED:
        return Scenario(cast("ResetTo", to))
    if type(value) is not int or (to != "shift" and value < 0):
        raise bad("'value' must be a whole number: an offset, a shift, or a time in ms since the epoch.")
    return Scenario(cast("ResetTo", to), value)


def _scope(body: Any) -> dict[str, frozenset[int] | None] | None:
    topic, partitions = body.get("topic"), body.get("partitions")
    if topic is None:
        if partitions is not None:
            raise bad("'partitions' are those of a topic: give 'topic', too.")
        return None
    if not isinstance(topic, str) or not (partitions is None or _are_numbers(partitions)):
        raise bad("'topic' must be a text, and 'partitions' a list of whole numbers.")
    return {topic: None if partitions is None else frozenset(partitions)}


def _are_numbers(found: Any) -> bool:
    return isinstance(found, list) and bool(found) and all(type(one) is int and one >= 0 for one in found)


def delete(call: ConsoleCall) -> Any:
    """Delete a group without members, and its offsets."""
    name = call.variables["group"]
    if call.fields("confirm").get("confirm") != name:
        raise bad("'confirm' must be the group's name: with the group go all of its offsets.")
    delete_group(call.console.lake, GroupLog(call.console.lake), name)
    call.console.invalidate()
    return {"deleted": name}
