"""Consumer groups: how they are, how far behind in records and in time, and since when."""

from collections.abc import Sequence
from typing import Any

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.live.sampler import Sampler
from tidelog.groups.model import Member, TopicPartition
from tidelog.groups.rules.offsets import group_not_found
from tidelog.operations.groups import GroupDescription, PartitionLag, describe_group
from tidelog.operations.rights import Right
from tidelog.operations.snapshots import LakeSnapshot

# Members' own texts are shown up to here.
_CHARACTERS = 500
# What the page offers, by Kafka's operations: a reset of offsets is a commit.
_CHANGES = {"read": Right.COMMIT_OFFSETS, "delete": Right.DELETE_GROUP}


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
        "type": "simple" if description.is_simple else "classic",
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
    require_known(snapshot, name)
    description = describe_group(snapshot, name)
    return {
        **summary(description, snapshot.at_ms),
        "generation": description.group.generation,
        "may": {change: call.offers(right, group=name) for change, right in _CHANGES.items()},
        "members": [_member(member, places) for member, places in description.members],
        "partitions": [_partition(lag) for lag in description.partitions],
    }


def require_known(snapshot: LakeSnapshot, name: str) -> None:
    """Raise `GroupNotFoundError` for a group that is not there."""
    if name not in snapshot.groups:
        raise group_not_found(name)


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


def _member(member: Member, places: Sequence[TopicPartition]) -> dict[str, Any]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in places:
        by_topic.setdefault(topic, []).append(partition)
    return {
        "id": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
        "instance": member.instance_id,
        "assignments": [{"topic": topic, "partitions": found} for topic, found in sorted(by_topic.items())],
    }


def history(call: ConsoleCall) -> Any:
    """A group's lag by topic since the console's start."""
    sampler = call.console.part(Sampler)
    require_known(sampler.sample().snapshot, call.variables["group"])
    times, series = sampler.group_history(call.variables["group"])
    return {"since_ms": call.console.since_ms, "step_s": sampler.step_s, "times": times, "series": series}
