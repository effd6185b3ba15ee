"""Where a group's offsets are reset to: what is known of its partitions, and a pure plan.

Source: kafka-consumer-groups' `--reset-offsets`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tidelog.cuts.model import Cut
from tidelog.groups.model import TopicPartition
from tidelog.groups.store.group_log import GroupLog
from tidelog.groups.store.offset_checks import no_topic_of_an_offset
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import require_partition

# What an offset is reset to.
ResetTo = Literal["earliest", "latest", "current", "offset", "shift", "time", "file", "cut"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A reset. `value`: an offset, a number of offsets, or ms since the epoch.

    `offsets`: by place, of a file, or of the group in a cut; `ends`: of all partitions of the cut, by place.
    """

    target: ResetTo
    value: int = 0
    offsets: Mapping[TopicPartition, int] | None = None
    ends: Mapping[TopicPartition, int] | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """A partition's offsets [start, end), the group's committed one and the first at the time that is asked for."""

    start: int
    end: int
    committed: int | None = None
    at_time: int | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """A partition's new offset; `note` says why it is not the one that was asked for."""

    offset: int
    note: str = ""


def plan_reset(scenario: Scenario, standings: Mapping[TopicPartition, Standing]) -> dict[TopicPartition, Reset]:
    """Return the new offset of each partition, in the partitions' order.

    An offset outside a partition's range becomes the nearest one in it. Raises ValueError where a shift has no
    committed offset to start from.
    """
    return {place: _reset(scenario, place, standings[place]) for place in sorted(standings)}


def _reset(scenario: Scenario, place: TopicPartition, standing: Standing) -> Reset:
    match scenario.target:
        case "earliest":
            return Reset(standing.start)
        case "latest":
            return Reset(standing.end)
        case "current":
            if standing.committed is None:
                return Reset(standing.end, "has no committed offset, so it goes to the end")
            return _within(standing.committed, standing)
        case "time":
            if standing.at_time is None:
                return Reset(standing.end, "has no record at or after that time, so it goes to the end")
            return Reset(standing.at_time)
        case "shift":
            if standing.committed is None:
                raise ValueError(
                    f"Partition {place[1]} of {place[0]} has no committed offset to shift. Leave it out with --topic,"
                    " or reset it to an offset."
                )
            return _within(standing.committed + scenario.value, standing)
        case "file":
            return _within((scenario.offsets or {})[place], standing)
        case "cut":
            return _reset_to_cut(scenario, place, standing)
    return _within(scenario.value, standing)


def _reset_to_cut(scenario: Scenario, place: TopicPartition, standing: Standing) -> Reset:
    position, end = (scenario.offsets or {}).get(place), (scenario.ends or {}).get(place)
    if position is not None:
        return _within(position, standing)
    if end is not None:
        reset = _within(end, standing)
        return Reset(reset.offset, reset.note or "has no offset of the group in the cut, so it goes to the cut's end")
    return Reset(standing.start, "was not there at the cut, so it goes to the beginning")


def reset_to_cut(
    lake: Lake, log: GroupLog, cut: Cut, group_id: str, scope: Mapping[str, frozenset[int] | None] | None
) -> Scenario:
    """A reset to where a group was in a cut. What the cut says of topics that were created again since counts not.

    `scope` as `standings` has it: no other topic is looked at.
    """
    places = cut.positions.get(group_id, {})
    topics = {topic for topic, _ in (*places, *log.offsets(group_id))} if scope is None else scope.keys()
    ends: dict[TopicPartition, int] = {}
    for topic in topics:
        table, state = cut.topic(topic), lake.peek(topic)
        if table is not None and state is not None and state.topic_id == table.topic_id:
            ends |= {(topic, p): end for p, end in table.ends.items()}
    return Scenario("cut", offsets={place: at for place, at in places.items() if place in ends}, ends=ends)


def _within(offset: int, standing: Standing) -> Reset:
    if offset < standing.start:
        return Reset(standing.start, f"begins at offset {standing.start}: {offset} is before it")
    if offset > standing.end:
        return Reset(standing.end, f"ends at offset {standing.end}: {offset} is behind it")
    return Reset(offset)


def standings(
    lake: Lake, log: GroupLog, group_id: str, scope: Mapping[str, frozenset[int] | None] | None, scenario: Scenario
) -> dict[TopicPartition, Standing]:
    """Return what a reset needs to know of each partition in its scope.

    `scope`: partitions by topic, None for all; no scope means all topics that the group committed offsets of, or those
    that the scenario's file names. Raises UnknownTopicError, UnknownPartitionError, InvalidGroupError.
    """
    committed = log.offsets(group_id)
    if scope is None:
        of_file = scenario.offsets if scenario.target == "file" else None
        named = {*(scenario.offsets or {}), *({} if of_file is not None else committed)}
        scope = {topic: frozenset(p for t, p in named if t == topic) for topic in sorted({t for t, _ in named})}
        if of_file is None:
            scope = dict.fromkeys(scope)
    by_partition: dict[TopicPartition, Standing] = {}
    for topic, numbers in scope.items():
        state = lake.peek(topic)
        if state is None:
            raise no_topic_of_an_offset(topic)
        for number in numbers or ():
            require_partition(state, topic, number)
        wanted = sorted(range(state.partitions) if numbers is None else numbers)
        times = (
            lake.offsets_for_times(topic, dict.fromkeys(wanted, scenario.value)) if scenario.target == "time" else {}
        )
        for p in wanted:
            if scenario.target == "file" and (topic, p) not in (scenario.offsets or {}):
                continue
            known = committed.get((topic, p))
            by_partition[topic, p] = Standing(
                state.start(p), state.end(p), None if known is None else known.offset, times.get(p)
            )
    return by_partition
