"""Consumer groups: how they are, how far behind in records and in time, and since when."""

from collections.abc import Mapping
from typing import Any

from tidelog.access.model import AclOperation, AclResource
from tidelog.admin.group_requests import assigned
from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.errors import ConsoleError
from tidelog.console.live.sampler import Sampler
from tidelog.groups.model import Group, GroupView, Member, TopicPartition
from tidelog.operations.groups import lags
from tidelog.operations.snapshots import LakeSnapshot

# Members' own texts are shown up to here.
_CHARACTERS = 500
# Of a group: a reset of offsets is a commit, which needs READ.
_CHANGES = (AclOperation.READ, AclOperation.DELETE)


def groups(call: ConsoleCall) -> Any:
    """The groups that the client sees."""
    snapshot = call.console.snapshot()
    seen = [(name, view) for name, view in sorted(snapshot.groups.items()) if call.rights.sees_group(name)]
    return {"groups": [summary(snapshot, name, view) for name, view in seen]}


def summary(snapshot: LakeSnapshot, name: str, view: GroupView) -> dict[str, Any]:
    """A group in a row. `lag_s`: of its partition that is the farthest behind."""
    found, group = lags(snapshot, view), view.group or Group(name)
    return {
        "group": name,
        "state": group.phase.value,
        "type": "classic" if view.group is not None else "simple",
        "protocol": group.protocol or "",
        "members": len(group.members),
        "topics": sorted({topic for topic, _ in {*view.offsets, *readers(view)}}),
        "lag": sum(one.records for one in found.values()),
        "lag_s": max((one.seconds for one in found.values()), default=0.0),
    }


def group(call: ConsoleCall) -> Any:
    """One group: its members, and its partitions."""
    name = call.variables["group"]
    snapshot = call.console.snapshot()
    view = require_view(snapshot, name)
    members = view.group.members if view.group is not None else {}
    return {
        **summary(snapshot, name, view),
        "generation": view.group.generation if view.group is not None else 0,
        "may": {str(one.name).lower(): call.offers(one, AclResource.GROUP, name) for one in _CHANGES},
        "members": [_member(view, one) for _, one in sorted(members.items())],
        "partitions": partitions(snapshot, view),
    }


def require_view(snapshot: LakeSnapshot, name: str) -> GroupView:
    """The group. Raises `ConsoleError` 404."""
    view = snapshot.groups.get(name)
    if view is None:
        raise ConsoleError(404, f"There is no group '{name}': one begins when its first consumer joins or commits.")
    return view


def partitions(snapshot: LakeSnapshot, view: GroupView) -> list[dict[str, Any]]:
    """All partitions of which a group has an offset, or reads now. None for what is not there or not known."""
    behind, readers_of = lags(snapshot, view), readers(view)
    rows = []
    for place in sorted({*view.offsets, *readers_of}):
        topic, partition = place
        committed, state, lag = view.offsets.get(place), snapshot.topics.get(topic), behind.get(place)
        reader = readers_of.get(place)
        rows.append(
            {
                "topic": topic,
                "partition": partition,
                "committed": None if committed is None else committed.offset,
                "end": state.end(partition) if state is not None and partition < state.partitions else None,
                "lag": None if lag is None else lag.records,
                "lag_s": None if lag is None else lag.seconds,
                "member": None if reader is None else reader.member_id,
                "metadata": "" if committed is None else committed.metadata[:_CHARACTERS],
            }
        )
    return rows


def readers(view: GroupView) -> Mapping[TopicPartition, Member]:
    """Which member reads which partition."""
    if view.group is None:
        return {}
    return {place: one for one in view.group.members.values() for place in assigned(view.group, one)}


def _member(view: GroupView, member: Member) -> dict[str, Any]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in assigned(view.group or Group(""), member):
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
    require_view(sampler.sample().snapshot, call.variables["group"])
    times, series = sampler.group_history(call.variables["group"])
    return {"since_ms": call.console.since_ms, "step_s": sampler.step_s, "times": times, "series": series}
