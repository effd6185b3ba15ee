"""Rewinds: the records that came to a topic after given offsets leave it, all or those that a condition means.

Offsets stay as holes, as compaction leaves them, and ends don't move: an offset is given once (docs/format.md, 5.4.1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.upkeep.holds import Holder, NullHolder
from tidelog.retention.predicates.where import Condition
from tidelog.retention.rewrites.execute import Drop, count_unit, drop_unit, execute_if_found, probe_unit
from tidelog.retention.rewrites.executors import Executor, LocalExecutor, Task
from tidelog.retention.rewrites.passes import Passes, run_passes
from tidelog.retention.rewrites.units import Unit, rewrite_codec, unit_of

# The most segments that one empty segment takes the place of: an entry that takes long to make loses every race.
MOST_INPUTS = 1_000


@dataclass(frozen=True, slots=True)
class TopicRewind:
    """What a rewind of a topic did, or, dry, would do.

    `ends`: of each partition as it began, below which records left. `records`: how many; `rewritten`: how many segments
    held them, with `rewritten_bytes`. `arrived`: {partition: offsets that were appended since}, which stay.
    `failures`: {partition: why it keeps its records}.
    """

    topic: str
    ends: Mapping[int, int] = field(default_factory=dict)
    records: int = 0
    rewritten: int = 0
    rewritten_bytes: int = 0
    arrived: Mapping[int, int] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)


def rewind_topic(
    lake: Lake,
    topic: str,
    firsts: Mapping[int, int],
    *,
    by: str,
    where: Condition | None = None,
    executor: Executor | None = None,
    dry_run: bool = False,
) -> TopicRewind:
    """Take the records from these offsets on out of a topic, up to its ends as of now: those that `where` means.

    A partition that `firsts` does not name loses all. Transactions that are committed and not yet applied are the
    caller's to apply before. Safe to kill anywhere and to run again. `by`: what the topic's history says of it.
    Raises `UnknownTopicError`, `StorageError`, and `ContendedLogError` when others rewrote the same segments each time.
    """
    run_id = lake.ids.new()
    with (NullHolder if dry_run else Holder)(lake.storage, lake.clock, lake.ids, f"rewind {run_id}") as holder:
        holder.hold(topic, lambda: lake.log(topic).door.refresh().version)
        opened = lake.topic(topic)
        state = opened.state()
        ends = {p: state.end(p) for p in range(state.partitions)}
        plan = _Plan(topic, firsts, where, opened.config(), dry_run)
        passes = run_passes(
            lake,
            topic,
            opened.id,
            plan.tasks,
            executor or LocalExecutor(lake.storage, lake.ids),
            operation="REWIND",
            parameters={"run": run_id, "by": by},
            dry_run=dry_run,
            ends=ends,
        )
        state = opened.state()
    return TopicRewind(
        topic,
        ends,
        passes.records,
        len(passes.rewritten),
        sum(segment.size for segment in passes.rewritten),
        {p: state.end(p) - end for p, end in ends.items() if state.end(p) > end},
        passes.failures,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    topic: str
    firsts: Mapping[int, int]
    where: Condition | None
    config: TopicConfig
    dry_run: bool

    def tasks(self, state: TopicState, ends: Mapping[int, int], passes: Passes) -> list[Task]:
        """The units of a pass."""
        units: list[Task] = []
        for partition, end in ends.items():
            if partition not in passes.failures:
                first = max(self.firsts.get(partition, 0), state.start(partition))
                units.extend(self._of_partition(state, partition, first, end, passes))
        return units

    def _of_partition(self, state: TopicState, partition: int, first: int, end: int, passes: Passes) -> Iterator[Task]:
        drop = Drop(self.where, first, end)
        whole: list[Segment] = []
        for segment in state.live(partition):
            if segment.end <= first or segment.base_offset >= end or segment.path in passes.clean:
                continue
            if segment.records == 0 or not self._may_hold(segment):
                continue
            if self.where is None and first <= segment.base_offset and segment.end <= end:
                if whole and (whole[-1].end != segment.base_offset or len(whole) == MOST_INPUTS):
                    yield self._whole(state, whole)
                    whole = []
                whole.append(segment)
            else:
                yield Task(self._unit(state, [segment]), drop, probe_unit if self.dry_run else execute_if_found)
        if whole:
            yield self._whole(state, whole)

    def _may_hold(self, segment: Segment) -> bool:
        stats = segment.stats
        if self.where is None or stats.min_timestamp_ms is None or stats.max_timestamp_ms is None:
            return True
        return self.where.may_mean(stats.min_timestamp_ms, stats.max_timestamp_ms)

    def _whole(self, state: TopicState, segments: Sequence[Segment]) -> Task:
        return Task(self._unit(state, segments), None, count_unit if self.dry_run else drop_unit)

    def _unit(self, state: TopicState, segments: Sequence[Segment]) -> Unit:
        unit = unit_of(state, self.topic, segments, self.config, rewrite_codec(self.config))
        # A condition takes out little: what stays of a segment stays one.
        return unit if self.where is None else replace(unit, segment_bytes=max(unit.segment_bytes, 2 * unit.size))
