"""How far a group is behind the end of a partition: in records, and in time."""

from bisect import bisect_right
from typing import NamedTuple

from tidelog.groups.model import GroupView, TopicPartition
from tidelog.log.state.topic_state import TopicState
from tidelog.operations.snapshots import LakeSnapshot


class Lag(NamedTuple):
    """`records`: offsets between a group's offset and the end, gaps of compaction included.

    `seconds`: the age of the oldest record that is not committed, by the time of the entry that appended it; where
    entries were merged, the oldest of them. 0 where no such record is left.
    """

    records: int
    seconds: float


def lag_of(state: TopicState, partition: int, offset: int, now_ms: int) -> Lag:
    """The lag of a group whose next record is `offset`; `now_ms`: ms since the epoch."""
    records = max(0, state.end(partition) - offset)
    live = state.live(partition)
    # The last segment that begins at the offset or before it; where that ends before it, the next one.
    place = max(0, bisect_right(live, offset, key=lambda s: s.base_offset) - 1)
    if place < len(live) and live[place].end <= offset:
        place += 1
    if not records or place >= len(live):
        return Lag(records, 0.0)
    return Lag(records, max(0, now_ms - live[place].modification_ms) / 1000)


def lags(snapshot: LakeSnapshot, view: GroupView) -> dict[TopicPartition, Lag]:
    """The lag of each partition that a group has an offset of, where the topic is there and can be read."""
    found = {}
    for (topic, partition), committed in sorted(view.offsets.items()):
        state = snapshot.topics.get(topic)
        if state is not None and partition < state.partitions:
            found[topic, partition] = lag_of(state, partition, committed.offset, snapshot.at_ms)
    return found
