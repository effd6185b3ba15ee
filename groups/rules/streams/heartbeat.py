"""A heartbeat of a member of a streams group (KIP-1071): all of the protocol in one pure rule, beside the consumer's.

Source: `GroupMetadataManager.streamsGroupHeartbeat` and its neighbours (kafka 4.2).
"""

from dataclasses import dataclass, replace

import mmh3

from tidelog.groups.assignors.sticky_tasks import TaskWorker, assign_tasks
from tidelog.groups.model import Decision, GroupView, StreamsGroup, StreamsMember
from tidelog.groups.rules.departures import streams_without
from tidelog.groups.rules.members import check_group_id
from tidelog.groups.rules.modern.topics import MissingTopicsError, Topics
from tidelog.groups.rules.offsets import group_not_found
from tidelog.groups.rules.streams.configuring import Configured, Status, configure
from tidelog.groups.rules.streams.reconciliation import reconcile
from tidelog.groups.topology import StreamsTopology, Tasks
from tidelog.log.base.errors import (
    FencedMemberEpochError,
    GroupNotFoundError,
    InvalidTopologyEpochError,
    OtherTopologyError,
    UnknownMemberError,
)

# Epochs of requests: a member joins, or leaves.
JOINS = 0
LEAVES = -1
_DELAYED = (Status.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured initial rebalance delay.")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsHeartbeat:
    """What a member says. None: as it said before. Times in ms.

    `topology`: of one that joins. `owned`: the tasks that it has. `shuts_down`: all members are to shut down.
    `refresh`: look whether topics have changed. `waits`: the group has just got its first member, and waits for others.
    """

    group_id: str
    member_id: str
    epoch: int
    client_id: str = ""
    host: str = ""
    rack: str | None = None
    rebalance_timeout_ms: int | None = None
    session_timeout_ms: int = 45_000
    process_id: str | None = None
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] | None = None
    topology: StreamsTopology | None = None
    owned: Tasks | None = None
    shuts_down: bool = False
    refresh: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class StreamsAnswer:
    """The group after a heartbeat; the member's epoch; the tasks that it is `assigned`, None where it knows them.

    `configured`: the topology over its topics, None for a member that leaves.
    """

    group: StreamsGroup
    epoch: int
    assigned: Tasks | None = None
    statuses: tuple[tuple[Status, str], ...] = ()
    configured: Configured | None = None


def streams_heartbeat(
    view: GroupView, topics: Topics, request: StreamsHeartbeat, *, now_ms: int, standbys: int = 0
) -> Decision[StreamsAnswer]:
    """A member joins, stays, goes on towards its tasks, or leaves. `standbys`: copies of each task's state.

    1. A newcomer, a topology, topics that changed or another number of copies begin a new epoch of the group.
    2. An epoch without an assignment gets one, unless the group waits for more members: of no tasks, until the topics
       are as the topology needs them.
    3. This member goes one step towards its target. A heartbeat that changes nothing writes nothing.

    Raises `InvalidGroupError`, `GroupNotFoundError` (also for a group of another type that has members),
    `UnknownMemberError`, `FencedMemberEpochError`, `InvalidTopologyError`, `InvalidTopologyEpochError`,
    `OtherTopologyError`, `MissingTopicsError`.
    """
    check_group_id(request.group_id)
    if request.epoch == LEAVES:
        return _leave(view, request, now_ms)
    group = _group(view, request)
    before = _member(group, request)
    member = _told(before, request)
    group = _with_topology(group, request)
    newcomer = before.member_id not in group.members or _is_moved(before, member)
    group = replace(group, members={**group.members, member.member_id: member}, empty_since_ms=None)
    group, configured = _configured(group, topics, standbys, bump=newcomer, look=request.refresh)
    if request.shuts_down and group.shutdown_by is None:
        group = replace(group, shutdown_by=member.member_id)
    waits = request.waits and group.epoch > group.assignment_epoch
    if waits:
        group = _begun(group)
    elif group.epoch > group.assignment_epoch:
        group = _assigned(group, configured or configure(_topology(group), _known(group, topics)), standbys)
    member = reconcile(group, member, request.owned)
    group = replace(group, members={**group.members, member.member_id: member})
    # One that says it has something else may not have heard what it has, even in the same epoch.
    differs = request.owned is not None and request.owned != member.assigned
    unsure = differs or request.epoch == JOINS or request.epoch != before.epoch or bool(member.revoking)
    told = unsure or member.assigned != before.assigned
    statuses = (*_statuses(group, member, configured), *([_DELAYED] if waits else ()))
    answer = StreamsAnswer(group, member.epoch, member.assigned if told else None, statuses, configured)
    return Decision(response=answer, group=None if group == view.group else group)


# --- the member --------------------------------------------------------------------------------------------


def _group(view: GroupView, request: StreamsHeartbeat) -> StreamsGroup:
    """The group; one of another type that has no members becomes a streams group."""
    group = view.group
    if isinstance(group, StreamsGroup):
        return group
    if request.epoch != JOINS:
        raise group_not_found(request.group_id) if group is None else no_streams_group(request.group_id)
    if group is None:
        return StreamsGroup(request.group_id)
    if group.members:
        raise no_streams_group(request.group_id)
    return StreamsGroup(request.group_id, group.generation, group.generation)


def no_streams_group(group_id: str) -> GroupNotFoundError:
    """What a member of a streams group is refused with in a group of another type."""
    return GroupNotFoundError(
        f"Group {group_id} is not a streams group: its members have another `group.protocol`. Stop them first, or use"
        " another application.id."
    )


def _member(group: StreamsGroup, request: StreamsHeartbeat) -> StreamsMember:
    """The member that asks, as the group knows it: a newcomer is one of epoch 0. Raises for one in a wrong epoch."""
    member = group.members.get(request.member_id)
    if member is None:
        if request.epoch != JOINS:
            raise UnknownMemberError(
                f"Group {group.group_id!r} has no member {request.member_id!r}: members that leave, or are silent for"
                " their session timeout, are no members any more. Join again."
            )
        return StreamsMember(request.member_id)
    if request.epoch in (JOINS, member.epoch):
        return member
    repeats = request.epoch == member.previous_epoch and request.owned is not None
    if repeats and request.owned is not None and not request.owned - member.assigned:
        return member
    which = "greater" if request.epoch > member.epoch else "smaller"
    raise FencedMemberEpochError(
        f"The streams group member has a {which} member epoch ({request.epoch}) than the one known by the group"
        f" coordinator ({member.epoch}). The member must abandon all its tasks and rejoin."
    )


def _told(member: StreamsMember, request: StreamsHeartbeat) -> StreamsMember:
    """The member with what it says now."""
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        client_id=request.client_id,
        host=request.host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms is None else timeout_ms,
        rack=member.rack if request.rack is None else request.rack,
        process_id=member.process_id if request.process_id is None else request.process_id,
        endpoint=member.endpoint if request.endpoint is None else request.endpoint,
        tags=member.tags if request.tags is None else request.tags,
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
    )


def _is_moved(before: StreamsMember, now: StreamsMember) -> bool:
    """Whether a member says something else of itself, which tasks go by. Source: `hasStreamsMemberChanged`."""

    def facts(member: StreamsMember) -> tuple[object, ...]:
        return (member.rack, member.process_id, member.endpoint, member.tags, member.topology_epoch)

    return facts(before) != facts(now)


def _leave(view: GroupView, request: StreamsHeartbeat, now_ms: int) -> Decision[StreamsAnswer]:
    group = view.group
    if not isinstance(group, StreamsGroup):
        raise group_not_found(request.group_id) if group is None else no_streams_group(request.group_id)
    if request.member_id not in group.members:
        raise UnknownMemberError(f"Group {group.group_id!r} has no member {request.member_id!r}.")
    after = streams_without(group, [request.member_id], now_ms)
    return Decision(response=StreamsAnswer(after, LEAVES), group=after)


# --- the topology ------------------------------------------------------------------------------------------


def _with_topology(group: StreamsGroup, request: StreamsHeartbeat) -> StreamsGroup:
    """The group with the topology of a member that joins: the first one, or a later one of a group without members."""
    topology = request.topology
    if topology is None or topology == group.topology:
        return group
    current = group.topology
    if current is None or not group.members:
        return replace(group, topology=topology, shutdown_by=None)
    if topology.epoch > current.epoch:
        raise InvalidTopologyEpochError(
            f"The member's topology epoch {topology.epoch} is ahead of the group's topology epoch {current.epoch}. Stop"
            " all members before one of another topology begins."
        )
    if topology.epoch == current.epoch:
        raise OtherTopologyError(
            "Topology updates are not supported yet: the members of the group run another topology. Stop all of them"
            " before one of another topology begins."
        )
    return group


def _topology(group: StreamsGroup) -> StreamsTopology:
    return group.topology or StreamsTopology(0, ())


def _known(group: StreamsGroup, topics: Topics) -> Topics:
    """The topics that the topology requires. Raises `MissingTopicsError` where some were not given."""
    required = _topology(group).required
    if required - topics.keys():
        raise MissingTopicsError(required)
    return {name: topics[name] for name in required}


def _configured(
    group: StreamsGroup, topics: Topics, standbys: int, *, bump: bool, look: bool
) -> tuple[StreamsGroup, Configured | None]:
    """The group in a new epoch, where a member, its topics or the number of copies have changed.

    Beside it the topology over its topics, where they were looked at. A group whose topics are not as they must be has
    each heartbeat look at them, so that each answer says why.
    """
    if not (bump or look or not group.ready):
        return group, None
    known = _known(group, topics)
    configured = configure(_topology(group), known)
    lines = sorted(f"{name} {one.topic_id} {one.partitions}" for name, one in known.items() if one is not None)
    if standbys:
        lines.append(f"{standbys} copies")
    metadata_hash = mmh3.hash64("\n".join(lines).encode(errors="surrogatepass"))[0] if lines else 0
    if bump or metadata_hash != group.metadata_hash or configured.is_ready != group.ready:
        epoch = group.epoch + 1
        group = replace(group, epoch=epoch, metadata_hash=metadata_hash, ready=configured.is_ready)
    return group, configured


def _begun(group: StreamsGroup) -> StreamsGroup:
    """The group with an epoch that members can be in before its first assignment: 0 is that of newcomers."""
    return group if group.assignment_epoch else replace(group, epoch=group.epoch + 1, assignment_epoch=1)


def _assigned(group: StreamsGroup, configured: Configured, standbys: int) -> StreamsGroup:
    """The group with an assignment of its newest epoch."""
    workers = [
        TaskWorker(name, member.process_id, group.target(name)) for name, member in sorted(group.members.items())
    ]  # fmt: skip
    workloads = configured.workloads if configured.is_ready else {}
    return replace(group, assignment_epoch=group.epoch, targets=assign_tasks(workers, workloads, standbys))


def _statuses(
    group: StreamsGroup, member: StreamsMember, configured: Configured | None
) -> tuple[tuple[Status, str], ...]:
    statuses: list[tuple[Status, str]] = []
    epoch = _topology(group).epoch
    if member.topology_epoch < epoch:
        detail = f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch {epoch}."
        statuses.append((Status.STALE_TOPOLOGY, detail))
    if configured is not None and configured.problem is not None:
        statuses.append(configured.problem)
    if group.shutdown_by is not None:
        detail = (
            f"Streams group member {group.shutdown_by} encountered a fatal error and requested a shutdown for the"
            " entire application."
        )
        statuses.append((Status.SHUTDOWN_APPLICATION, detail))
    return tuple(statuses)
