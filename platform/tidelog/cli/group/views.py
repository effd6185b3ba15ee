"""How consumer groups are shown: kafka-consumer-groups' columns, and JSON documents."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from tidelog.commands.terminal import DASH, shown_or_dash, table
from tidelog.groups.model import (
    AnyGroup,
    AnyMember,
    ConsumerGroup,
    ConsumerMember,
    EpochGroup,
    Group,
    StreamsGroup,
    StreamsMember,
    TopicPartition,
)
from tidelog.groups.topology import Tasks
from tidelog.log.base.errors import TidelogError
from tidelog.operations.groups import GroupDescription
from tidelog.operations.offset_resets import Reset

# --- describe ----------------------------------------------------------------------------------------------


def description_json(description: GroupDescription, coordinator: str) -> dict[str, Any]:
    """A group as a document, with its members and its offsets; None where the table has -."""
    return state_json(description.group, coordinator) | {
        "members": [
            {
                "consumer_id": member.member_id,
                "group_instance_id": member.instance_id,
                "host": member.host,
                "client_id": member.client_id,
                "assignment": [{"topic": topic, "partition": p} for topic, p in places],
                **_target(description.group, member),
            }
            for member, places in description.members
        ],
        "partitions": [
            {
                "topic": lag.topic,
                "partition": lag.partition,
                "current_offset": lag.committed,
                "log_end_offset": lag.end,
                "lag": lag.records,
                **_reader(lag.reader),
            }
            for lag in description.partitions
        ],
    }


def _target(group: AnyGroup, member: AnyMember) -> dict[str, Any]:
    """Where a member of a group with epochs is, and what it is to read, or to run."""
    if isinstance(group, StreamsGroup) and isinstance(member, StreamsMember):
        tasks, target_tasks = _task_names(member.assigned), _task_names(group.target(member.member_id))
        return {"protocol": "streams", "epoch": member.epoch, "tasks": tasks, "target_tasks": target_tasks}
    if not isinstance(group, ConsumerGroup) or not isinstance(member, ConsumerMember):
        return {}
    target = [{"topic": one.topic, "partition": one.partition} for one in sorted(group.target(member.member_id))]
    protocol = "classic" if member.is_classic else "consumer"
    return {"protocol": protocol, "epoch": group.reached(member), "target_assignment": target}


def _reader(member: AnyMember | None) -> dict[str, str | None]:
    if member is None:
        return {"consumer_id": None, "host": None, "client_id": None}
    return {"consumer_id": member.member_id, "host": member.host, "client_id": member.client_id}


def offsets_table(groups: Iterable[GroupDescription]) -> RenderableType:
    """A row for each partition of each group."""
    columns = ["GROUP", "TOPIC", ">PARTITION", ">CURRENT-OFFSET", ">LOG-END-OFFSET", ">LAG"]
    return table(
        [*columns, "CONSUMER-ID", "HOST", "CLIENT-ID"],
        [
            [
                description.group.group_id,
                lag.topic,
                *(shown_or_dash(n) for n in (lag.partition, lag.committed, lag.end, lag.records)),
                *(shown_or_dash(text or None) for text in _reader(lag.reader).values()),
            ]
            for description in groups
            for lag in description.partitions
        ],
    )


def members_table(groups: Sequence[GroupDescription], *, verbose: bool) -> RenderableType:
    """A row for each member; static ids where there are any, what each reads when `verbose`."""
    static = any(member.instance_id is not None for description in groups for member, _ in description.members)
    modern = verbose and any(isinstance(description.group, EpochGroup) for description in groups)
    columns = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if static else []), "HOST", "CLIENT-ID", ">#PARTITIONS"]
    rows = []
    for description in groups:
        for member, places in description.members:
            row = [description.group.group_id, member.member_id]
            row += [shown_or_dash(member.instance_id)] if static else []
            row += [member.host or DASH, member.client_id or DASH, str(len(places))]
            row += [_by_topic(places)] if verbose else []
            rows.append([*row, *(_epochs(description.group, member) if modern else [])])
    further = ["PROTOCOL", ">CURRENT-EPOCH", ">TARGET-EPOCH", "TARGET-ASSIGNMENT"] if modern else []
    return table([*columns, *(["ASSIGNMENT"] if verbose else []), *further], rows)


def _epochs(group: AnyGroup, member: AnyMember) -> list[str]:
    """By which protocol a member is in its group, in which epoch it is, and what it is to read, or to run, in which."""
    if isinstance(group, StreamsGroup) and isinstance(member, StreamsMember):
        tasks = [f"{role} {' '.join(names)}" for role, names in _task_names(group.target(member.member_id)).items()]
        return ["streams", str(member.epoch), str(group.assignment_epoch), ", ".join(tasks) or DASH]
    if not isinstance(group, ConsumerGroup) or not isinstance(member, ConsumerMember):
        return ["classic", DASH, DASH, DASH]
    target = sorted((one.topic, one.partition) for one in group.target(member.member_id))
    protocol = "classic" if member.is_classic else "consumer"
    return [protocol, str(group.reached(member)), str(group.assignment_epoch), _by_topic(target)]


def _task_names(tasks: Tasks) -> dict[str, list[str]]:
    """Tasks by what is done with them, as Kafka Streams names them: SUBTOPOLOGY_PARTITION."""
    roles = {"active": tasks.active, "standby": tasks.standby, "warmup": tasks.warmup}
    return {role: [f"{task.subtopology}_{task.partition}" for task in sorted(of)] for role, of in roles.items() if of}


def _by_topic(places: Iterable[TopicPartition]) -> str:
    """[("t", 0), ("t", 1)] as `t(0,1)`."""
    numbers: dict[str, list[str]] = {}
    for topic, number in places:
        numbers.setdefault(topic, []).append(str(number))
    return ", ".join(f"{topic}({','.join(found)})" for topic, found in numbers.items()) or DASH


def states_table(groups: Sequence[AnyGroup], coordinator: str) -> RenderableType:
    """A row for each group; types and epochs where there are groups that have epochs."""
    modern = any(not isinstance(group, Group) for group in groups)
    columns = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", ">#MEMBERS"]
    rows = [
        [
            *(group.group_id, f"{coordinator} (0)", group.protocol or DASH, group.phase.value, str(len(group.members))),
            *([group.type, *_epochs_of(group)] if modern else []),
        ]
        for group in groups
    ]
    return table([*columns, *(["TYPE", ">GROUP-EPOCH", ">TARGET-EPOCH"] if modern else [])], rows)


def _epochs_of(group: AnyGroup) -> list[str]:
    return [DASH, DASH] if isinstance(group, Group) else [str(group.epoch), str(group.assignment_epoch)]


def state_json(group: AnyGroup, coordinator: str) -> dict[str, Any]:
    """A group in short."""
    return {
        "group": group.group_id,
        "state": group.phase.value,
        "coordinator": coordinator,
        "protocol_type": group.protocol_type,
        "assignment_strategy": group.protocol,
        "generation": group.generation,
        "members": len(group.members),
        "type": group.type,
        **({"assignment_epoch": group.assignment_epoch} if isinstance(group, EpochGroup) else {}),
    }


def list_table(groups: Iterable[AnyGroup]) -> RenderableType:
    """A row for each group of a list."""
    return table(
        ["GROUP", "TYPE", "STATE", ">#MEMBERS"],
        [[group.group_id, group.type, group.phase.value, str(len(group.members))] for group in groups],
    )


# --- resets ------------------------------------------------------------------------------------------------


def resets_table(group: str, resets: Mapping[TopicPartition, Reset]) -> RenderableType:
    """A row for each partition, with its new offset."""
    return table(
        ["GROUP", "TOPIC", ">PARTITION", ">NEW-OFFSET"],
        [[group, topic, str(p), str(reset.offset)] for (topic, p), reset in resets.items()],
    )


def resets_json(group: str, resets: Mapping[TopicPartition, Reset], *, executed: bool) -> dict[str, Any]:
    """The plan as a document."""
    return {
        "group": group,
        "executed": executed,
        "partitions": [
            {"topic": topic, "partition": p, "new_offset": reset.offset, "note": reset.note or None}
            for (topic, p), reset in resets.items()
        ],
    }


# --- deletions ---------------------------------------------------------------------------------------------


def deletions_table(refusals: Mapping[TopicPartition, TidelogError | None]) -> RenderableType:
    """A row for each partition: its offset is deleted, or why it stays."""
    rows = [(topic, str(p), str(refusal or "deleted")) for (topic, p), refusal in refusals.items()]
    return table(["TOPIC", ">PARTITION", "STATUS"], rows)


def deletions_json(refusals: Mapping[TopicPartition, TidelogError | None]) -> list[dict[str, Any]]:
    """The same as documents."""
    return [
        {"topic": topic, "partition": p, "deleted": refusal is None, "error": refusal and str(refusal)}
        for (topic, p), refusal in refusals.items()
    ]
