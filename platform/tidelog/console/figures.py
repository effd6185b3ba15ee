"""What topics and groups hold, in figures, and what is wrong with them.

Figures are computed again only where something of a topic or group is new.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidelog.groups.model import GroupView
from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.state.topic_state import TopicState
from tidelog.operations.groups import GroupLag
from tidelog.operations.health import LakeFacts, TopicHealth
from tidelog.operations.health_rules import examined
from tidelog.operations.snapshots import LakeSnapshot
from tidelog.operations.topics import live_files


@dataclass(frozen=True, slots=True)
class ConsoleTopic:
    """A topic as of entry `version`. `records`: offsets from start to end. `ends`: by partition, and so `starts`.

    `produced`, `produced_bytes`: records, and bytes of their files, since the topic was first looked at.
    """

    topic_id: str
    version: int
    partitions: int
    records: int
    bytes: int
    files: int
    small_files: int
    ends: Mapping[int, int] = field(default_factory=dict)
    produced: int = 0
    produced_bytes: int = 0


def figures_of(state: TopicState, defaults: LakeConfig, before: ConsoleTopic | None = None) -> ConsoleTopic:
    """The figures of a state over the lake's defaults; `before`, where it is of the same version, as it is.

    What was produced since has offsets from the ends of then on: files that maintenance wrote begin before them.
    """
    if before is not None and before.topic_id != state.topic_id:
        before = None
    if before is not None and before.version == state.version:
        return before
    files, ends = live_files(state, defaults), dict(state.ends)
    produced = produced_bytes = 0
    if before is not None:
        produced, produced_bytes = before.produced, before.produced_bytes
        for partition, end in ends.items():
            old_end = before.ends.get(partition, 0)
            if end > old_end:
                produced += end - old_end
                produced_bytes += sum(one.size for one in state.live_between(partition, old_end, end))
    return ConsoleTopic(
        state.topic_id,
        state.version,
        state.partitions,
        sum(end - state.start(p) for p, end in ends.items()),
        files.bytes,
        files.number,
        files.small,
        ends,
        produced,
        produced_bytes,
    )


def committed_since(before: GroupView, now: GroupView) -> int:
    """By how many offsets a group went on, in the partitions of which both views have one."""
    gone_on = 0
    for place, committed in now.offsets.items():
        known = before.offsets.get(place)
        if known is not None:
            gone_on += max(0, committed.offset - known.offset)
    return gone_on


def alarms(
    uri: str, snapshot: LakeSnapshot, topics: Mapping[str, ConsoleTopic], groups: Mapping[str, GroupLag]
) -> list[Mapping[str, Any]]:
    """What the doctor's rules find in a snapshot alone, without a trial of the store."""
    facts = LakeFacts(
        uri,
        snapshot.at_ms,
        space=snapshot.space,
        snapshot=snapshot,
        topics={name: TopicHealth(one.files, one.small_files) for name, one in topics.items()},
        groups=groups,
        runs=snapshot.runs,
    )
    return [{"name": one.rule, "level": str(one.level), "what": one.what, "do": one.do} for one in examined(facts)]
