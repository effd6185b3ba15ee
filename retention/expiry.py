"""Expiry by time and by size (`cleanup.policy=delete`): a pure plan, and the pure decision that carries it out.

Source: Kafka's `UnifiedLog.deleteOldSegments`. Whole segments go, oldest first, up to the first that must stay; an
expired newest one goes too, as Kafka rolls and then drops it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidelog.log.config import TopicConfig
from tidelog.log.decisions import Outcome, move_starts, require_topic
from tidelog.log.state import Segment, TopicState


@dataclass(frozen=True, slots=True)
class Expiry:
    """What expires in one life of a topic: {partition: its new log start offset}, partitions that lose something."""

    topic_id: str
    starts: Mapping[int, int]


def plan_expiry(state: TopicState, config: TopicConfig, now_ms: int) -> Expiry:
    """What `retention.ms` and `retention.bytes` let go at `now_ms` (ms since the epoch).

    Example: segments [0, 10) and [10, 20) of which the first is older than retention.ms give {0: 10}.
    """
    if "delete" not in config.cleanup_policy:
        return Expiry(state.topic_id, {})
    starts = {}
    for partition in range(state.partitions):
        live = state.live(partition)
        gone = max(_too_old(live, config.retention_ms, now_ms), _too_many(live, config.retention_bytes))
        if gone:
            starts[partition] = live[gone - 1].end
    return Expiry(state.topic_id, starts)


def decide_expiry(state: TopicState, topic: str, expiry: Expiry, *, now_ms: int) -> Outcome[Mapping[int, int]]:
    """Carry a plan out: the log starts move up and the segments below leave, in one entry.

    The response is {partition: log start offset}. What an earlier entry has already done is passed over; a topic
    that is gone or has another id is refused (`UnknownTopicError`, `TopicChangedError`).
    """
    require_topic(state, topic, expiry.topic_id)
    starts = {p: max(start, state.start(p)) for p, start in sorted(expiry.starts.items())}
    return Outcome(move_starts(state, starts, now_ms), starts, "DELETE", parameters={"expired": str(starts)})


def _too_old(live: Sequence[Segment], retention_ms: int, now_ms: int) -> int:
    """How many of the oldest segments have a newest record older than `retention_ms`; -1 keeps all."""
    if retention_ms < 0:
        return 0
    for count, segment in enumerate(live):
        newest_ms = segment.stats.max_timestamp_ms
        if now_ms - (segment.modification_ms if newest_ms is None else newest_ms) <= retention_ms:
            return count
    return len(live)


def _too_many(live: Sequence[Segment], retention_bytes: int) -> int:
    """How many of the oldest segments can go so that at least `retention_bytes` stay; negative keeps all."""
    if retention_bytes < 0:
        return 0
    spare = sum(s.size for s in live) - retention_bytes
    for count, segment in enumerate(live):
        spare -= segment.size
        if spare < 0:
            return count
    return len(live)
