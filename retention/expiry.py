"""Expiry by time and by size (`cleanup.policy=delete`): a pure plan, and the pure decision that executes it.

Source: Kafka's `UnifiedLog.deleteOldSegments`. Whole segments go, oldest first, up to the first that must stay: first
by size, then by time. An expired newest one goes too, as Kafka rolls and then drops it, unless it is empty.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.rules.topics import Outcome, move_starts, require_topic
from tidelog.log.state.topic_state import Segment, TopicState

# What the topic's history calls it.
OPERATION = "RETENTION"
# An entry that takes long to make loses every race against producers that append all the time.
MOST_SEGMENTS = 1_000


@dataclass(frozen=True, slots=True)
class Expiry:
    """What expires in a topic of one id: {partition: its new log start offset}, partitions that lose something."""

    topic_id: str
    starts: Mapping[int, int]


def plan_expiry(
    state: TopicState, config: TopicConfig, now_ms: int, stored_ms: Callable[[Segment], int | None] = lambda _: None
) -> Expiry:
    """What `retention.ms` and `retention.bytes` let go at `now_ms` (ms since the epoch).

    `stored_ms`: when the store got a segment's file, by the store's clock; asked for segments from an impossible
    future, which a writer whose clock was wrong has brought in.
    Example: segments [0, 10) and [10, 20) of which the first is older than retention.ms give {0: 10}.
    """
    if "delete" not in config.cleanup_policy:
        return Expiry(state.topic_id, {})
    starts = {}
    for partition in range(state.partitions):
        live = state.live(partition)
        gone = _too_many(live, config.retention_bytes)
        gone += _too_old(live[gone:], config, now_ms, stored_ms)
        if gone == len(live) and gone and live[-1].stats.records == 0:
            gone -= 1
        if gone:
            starts[partition] = live[gone - 1].end
    return Expiry(state.topic_id, starts)


def in_steps(state: TopicState, expiry: Expiry, most: int = MOST_SEGMENTS) -> Iterator[Expiry]:
    """The plan as several, oldest segments first, each of which lets go of at most `most` segments."""
    step: dict[int, int] = {}
    gone = 0
    for partition, start in sorted(expiry.starts.items()):
        ends = [s.end for s in state.live(partition) if s.end <= start] or [start]
        while ends:
            taken, ends = ends[: most - gone], ends[most - gone :]
            step[partition] = taken[-1]
            gone += len(taken)
            if gone == most:
                yield Expiry(expiry.topic_id, step)
                step, gone = {}, 0
    if step:
        yield Expiry(expiry.topic_id, step)


def decide_expiry(
    state: TopicState, topic: str, expiry: Expiry, *, now_ms: int, parameters: Mapping[str, str] | None = None
) -> Outcome[Mapping[int, int]]:
    """Carry a plan out: the log starts move up and the segments below leave, in one entry.

    The response is {partition: log start offset}; `parameters` go into the topic's history. What an earlier entry has
    already done is passed over; a topic that is gone or has another id is refused (`UnknownTopicError`,
    `TopicChangedError`).
    """
    require_topic(state, topic, expiry.topic_id)
    starts = {p: max(start, state.start(p)) for p, start in sorted(expiry.starts.items())}
    said = {**(parameters or {}), "expired": str(starts)}
    return Outcome(move_starts(state, starts, now_ms), starts, OPERATION, parameters=said)


def kept_by_the_future(state: TopicState, config: TopicConfig, now_ms: int) -> dict[int, int]:
    """{partition: ms} where the oldest segment has a timestamp after `now_ms`, which keeps all from expiring by time.

    Kafka warns of it ("contains future timestamp(s), making it ineligible to be deleted").
    """
    if "delete" not in config.cleanup_policy or config.retention_ms < 0:
        return {}
    oldest = {p: newest_ms(live[0]) for p in range(state.partitions) if (live := state.live(p))}
    return {p: ms for p, ms in oldest.items() if ms > now_ms}


def newest_ms(segment: Segment) -> int:
    """The timestamp that a segment expires by: its newest record's, else when it was committed.

    Kafka's `LogSegment.largestTimestamp`: what has no timestamp (-1), or no record, goes by the file's time.
    """
    found = segment.stats.max_timestamp_ms
    return segment.modification_ms if found is None or found < 0 else found


def _too_old(
    live: Sequence[Segment], config: TopicConfig, now_ms: int, stored_ms: Callable[[Segment], int | None]
) -> int:
    """How many of the oldest segments have a newest record older than `retention.ms`; negative keeps all.

    A timestamp further ahead than `message.timestamp.after.max.ms` was none when it came in, so the file's time counts.
    """
    if config.retention_ms < 0:
        return 0
    for count, segment in enumerate(live):
        newest = newest_ms(segment)
        if newest > now_ms + config.message_timestamp_after_max_ms:
            newest = min(newest, stored_ms(segment) or newest)
        if now_ms - newest <= config.retention_ms:
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
