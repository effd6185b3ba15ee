"""How consumer groups are shown: kafka-consumer-groups' columns, and JSON documents."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from tidelog.admin.group_positions import Position
from tidelog.admin.group_requests import assigned
from tidelog.commands.terminal import DASH, shown_or_dash, table
from tidelog.groups.model import Group
from tidelog.operations.offset_resets import Place, Reset

# --- describe ----------------------------------------------------------------------------------------------


def offsets_table(rows: Iterable[tuple[str, Position]]) -> RenderableType:
    """A row for each partition of each group."""
    columns = ["GROUP", "TOPIC", ">PARTITION", ">CURRENT-OFFSET", ">LOG-END-OFFSET", ">LAG"]
    return table(
        [*columns, "CONSUMER-ID", "HOST", "CLIENT-ID"],
        [
            [
                group,
                row.topic,
                *(shown_or_dash(n) for n in (row.partition, row.current, row.end, row.lag)),
                *(shown_or_dash(text or None) for text in (row.consumer_id, row.host, row.client_id)),
            ]
            for group, row in rows
        ],
    )


def offsets_json(rows: Iterable[Position]) -> list[dict[str, Any]]:
    """The same as documents; None where the table has -."""
    return [
        {
            "topic": row.topic,
            "partition": row.partition,
            "current_offset": row.current,
            "log_end_offset": row.end,
            "lag": row.lag,
            "consumer_id": row.consumer_id,
            "host": row.host,
            "client_id": row.client_id,
        }
        for row in rows
    ]


def members_table(groups: Sequence[Group], *, verbose: bool) -> RenderableType:
    """A row for each member; static ids where there are any, what each reads when `verbose`."""
    members = [(group, member) for group in groups for _, member in sorted(group.members.items())]
    static = any(member.instance_id is not None for _, member in members)
    columns = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if static else []), "HOST", "CLIENT-ID", ">#PARTITIONS"]
    rows = []
    for group, member in members:
        places = assigned(group, member)
        row = [group.group_id, member.member_id, *([shown_or_dash(member.instance_id)] if static else [])]
        row += [member.host or DASH, member.client_id or DASH, str(len(places))]
        rows.append([*row, *([_by_topic(places)] if verbose else [])])
    return table([*columns, *(["ASSIGNMENT"] if verbose else [])], rows)


def members_json(group: Group) -> list[dict[str, Any]]:
    """The members as documents."""
    return [
        {
            "consumer_id": member.member_id,
            "group_instance_id": member.instance_id,
            "host": member.host,
            "client_id": member.client_id,
            "assignment": [{"topic": topic, "partition": p} for topic, p in assigned(group, member)],
        }
        for _, member in sorted(group.members.items())
    ]


def _by_topic(places: Iterable[Place]) -> str:
    """[("t", 0), ("t", 1)] as `t(0,1)`."""
    numbers: dict[str, list[str]] = {}
    for topic, number in places:
        numbers.setdefault(topic, []).append(str(number))
    return ", ".join(f"{topic}({','.join(found)})" for topic, found in numbers.items()) or DASH


def states_table(groups: Iterable[Group], coordinator: str) -> RenderableType:
    """A row for each group."""
    return table(
        ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", ">#MEMBERS"],
        [
            [group.group_id, f"{coordinator} (0)", group.protocol or DASH, group.phase.value, str(len(group.members))]
            for group in groups
        ],
    )


def state_json(group: Group, coordinator: str) -> dict[str, Any]:
    """A group in short."""
    return {
        "group": group.group_id,
        "state": group.phase.value,
        "coordinator": coordinator,
        "protocol_type": group.protocol_type,
        "assignment_strategy": group.protocol,
        "generation": group.generation,
        "members": len(group.members),
    }


def list_table(groups: Iterable[Group]) -> RenderableType:
    """A row for each group of a list."""
    return table(
        ["GROUP", "STATE", ">#MEMBERS"],
        [[group.group_id, group.phase.value, str(len(group.members))] for group in groups],
    )


# --- resets ------------------------------------------------------------------------------------------------


def resets_table(group: str, resets: Mapping[Place, Reset]) -> RenderableType:
    """A row for each partition, with its new offset."""
    return table(
        ["GROUP", "TOPIC", ">PARTITION", ">NEW-OFFSET"],
        [[group, topic, str(p), str(reset.offset)] for (topic, p), reset in resets.items()],
    )


def resets_json(group: str, resets: Mapping[Place, Reset], *, executed: bool) -> dict[str, Any]:
    """The plan as a document."""
    return {
        "group": group,
        "executed": executed,
        "partitions": [
            {"topic": topic, "partition": p, "new_offset": reset.offset, "note": reset.note or None}
            for (topic, p), reset in resets.items()
        ],
    }
