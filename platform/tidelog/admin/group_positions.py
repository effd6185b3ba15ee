"""What commands and pages find out: a group's offsets beside the ends of the log, and its members' partitions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidelog.admin.group_requests import alter_offsets, assigned, require_group
from tidelog.admin.group_requests import delete_offsets as delete_group_offsets
from tidelog.admin.group_types import ConsumerGroupTopicPartitions
from tidelog.clients.values.partitions import TopicPartition
from tidelog.groups.model import Group, GroupView, Member
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TidelogError, UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import require_partition
from tidelog.operations.offset_resets import Place, Scenario, Standing


@dataclass(frozen=True, slots=True)
class Position:
    """One row of `describe`; None for what there is not: an offset, a topic, a reader."""

    topic: str
    partition: int
    current: int | None
    end: int | None
    consumer_id: str | None = None
    host: str | None = None
    client_id: str | None = None

    @property
    def lag(self) -> int | None:
        """Records that the group has yet to read, gaps that compaction left included."""
        return None if self.current is None or self.end is None else self.end - self.current


def positions(lake: Lake, groups: Mapping[str, GroupView]) -> dict[str, list[Position]]:
    """Return all partitions that each group committed or reads now; each topic is looked at once."""
    places = {name: _places(view, name) for name, view in groups.items()}
    ends = _ends(lake, {topic for found in places.values() for topic, _ in found})
    return {name: _positions(ends, view, places[name]) for name, view in groups.items()}


def _places(view: GroupView, group_id: str) -> dict[Place, Member | None]:
    """The partitions of a group with their readers."""
    group = view.group or Group(group_id)
    readers = {place: member for member in group.members.values() for place in assigned(group, member)}
    return {place: readers.get(place) for place in sorted({*view.offsets, *readers})}


def _positions(ends: Mapping[Place, int], view: GroupView, places: Mapping[Place, Member | None]) -> list[Position]:
    rows = []
    for place, reader in places.items():
        committed = view.offsets.get(place)
        read_by = () if reader is None else (reader.member_id, reader.host, reader.client_id)
        rows.append(Position(*place, None if committed is None else committed.offset, ends.get(place), *read_by))
    return rows


def views(log: GroupLog, names: Iterable[str] | None) -> dict[str, GroupView]:
    """Return groups by their ids, all of them for None. Raises GroupNotFoundError."""
    if names is None:
        return log.views()
    found = {name: log.view(name) for name in names}
    for name, view in found.items():
        require_group(view, name)
    return found


def groups_of(found: Mapping[str, GroupView]) -> list[Group]:
    """Return the groups; one without members where there are offsets alone."""
    return [view.group or Group(name) for name, view in found.items()]


def _ends(lake: Lake, topics: Iterable[str]) -> dict[Place, int]:
    """The log end offsets of the topics that can be read; one that can't must not hide the group."""
    found: dict[Place, int] = {}
    for topic in topics:
        try:
            state = lake.peek(topic)
        except TidelogError:
            continue
        if state is not None:
            found.update({(topic, p): state.end(p) for p in range(state.partitions)})
    return found


def standings(
    lake: Lake, log: GroupLog, group_id: str, scope: Mapping[str, frozenset[int] | None] | None, scenario: Scenario
) -> dict[Place, Standing]:
    """Return what a reset needs to know of each partition in its scope.

    `scope`: partitions by topic, None for all; no scope means all topics that the group committed offsets of, or those
    that the scenario's file names. Raises UnknownTopicError, UnknownPartitionError, InvalidGroupError.
    """
    committed = log.offsets(group_id)
    if scope is None:
        named = scenario.offsets if scenario.offsets is not None else committed
        scope = {topic: frozenset(p for t, p in named if t == topic) for topic in sorted({t for t, _ in named})}
        if scenario.offsets is None:
            scope = dict.fromkeys(scope)
    found: dict[Place, Standing] = {}
    for topic, numbers in scope.items():
        state = lake.peek(topic)
        if state is None:
            raise UnknownTopicError(f"Topic '{topic}' does not exist, so no offset of it can be reset. Leave it out.")
        for number in numbers or ():
            require_partition(state, topic, number)
        wanted = sorted(range(state.partitions) if numbers is None else numbers)
        times = (
            lake.offsets_for_times(topic, dict.fromkeys(wanted, scenario.value)) if scenario.target == "time" else {}
        )
        for p in wanted:
            if scenario.offsets is not None and (topic, p) not in scenario.offsets:
                continue
            known = committed.get((topic, p))
            found[topic, p] = Standing(
                state.start(p), state.end(p), None if known is None else known.offset, times.get(p)
            )
    return found


# --- changing ----------------------------------------------------------------------------------------------


def commit(lake: Lake, log: GroupLog, group_id: str, offsets: Mapping[Place, int]) -> None:
    """Set a group's offsets, all or none. Raises as `GroupLog.commit_offsets` does, where the group has members too."""
    wanted = [TopicPartition(*place, offset) for place, offset in offsets.items()]
    alter_offsets(lake, log, ConsumerGroupTopicPartitions(group_id, wanted))


@dataclass(frozen=True, slots=True)
class Deletion:
    """What became of one offset: deleted, or why it stays."""

    topic: str
    partition: int
    why: str | None

    def document(self) -> dict[str, object]:
        """Return it as a JSON document."""
        return {"topic": self.topic, "partition": self.partition, "deleted": self.why is None, "error": self.why}


def delete_offsets(
    lake: Lake, log: GroupLog, group_id: str, scope: Mapping[str, frozenset[int] | None] | None
) -> list[Deletion]:
    """Delete a group's offsets, all of them without a scope. Raises GroupNotFoundError, GroupNotEmptyError."""
    view = log.view(group_id)
    require_group(view, group_id)
    wanted = {place for place in view.offsets if scope is None or (place[0] in scope and scope[place[0]] is None)}
    wanted |= {(topic, number) for topic, numbers in (scope or {}).items() for number in numbers or ()}
    request = [TopicPartition(*place) for place in sorted(wanted)]
    answer = delete_group_offsets(lake, log, group_id, request) if request else None
    return [
        Deletion(found.topic, found.partition, None if found.error is None else found.error.str())
        for found in (answer.topic_partitions if answer else None) or ()
    ]
