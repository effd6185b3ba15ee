"""Records that compaction dropped come back from a branch, whose segments are copied in place of a topic's own.

Offsets, and so positions in files, are the same in both; the copies have names of their own (docs/format.md, S5).
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

import orjson

from tidelog.log.base.errors import ContendedLogError
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Txn
from tidelog.log.door.commit_objects import make_durable
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.reader import read_segment
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.storage.orphans import discard
from tidelog.retention.rewrites.units import Landing, Output, Rewritten, decide_rewrite, rewrite_codec, unit_of

# How often it is tried again when other maintenance rewrites the same segments first.
MOST_TRIES: Final = 20
_COPY_BYTES: Final = 16 * 1024 * 1024
_MARKS: Final = (layout.CLEAN_PREFIX, layout.TOMBSTONES_PREFIX, layout.TOMBSTONES_SINCE_PREFIX)


@dataclass(frozen=True, slots=True)
class Restoring:
    """What brings a partition back: its own segments leave, and the branch's come. `problem`: why that can't be."""

    partition: int
    own: tuple[Segment, ...] = ()
    theirs: tuple[Segment, ...] = ()
    problem: str = ""

    @property
    def is_idle(self) -> bool:
        """Whether both hold the same, or nothing can be done."""
        return bool(self.problem) or _shapes(self.own) == _shapes(self.theirs)

    @property
    def end(self) -> int:
        """The end of the offsets that are covered."""
        return self.own[-1].end

    @property
    def records(self) -> int:
        """How many records come back, where none of its own is behind the offset."""
        return sum(s.records or 0 for s in self.theirs) - sum(s.records or 0 for s in self.own)


@dataclass(frozen=True, slots=True)
class Restored:
    """What a topic got back. `problems`: {partition: why it got nothing}."""

    topic: str
    records: int = 0
    copied_bytes: int = 0
    problems: Mapping[int, str] = field(default_factory=dict)


def plan_restoring(state: TopicState, branch: TopicState, partition: int, end: int) -> Restoring:
    """How a partition below the offset `end` becomes as it is in a branch. Pure."""
    start = state.start(partition)
    own = [s for s in state.live(partition) if s.base_offset < end and s.end > start]
    if not own:
        return Restoring(partition)
    first = own[0].base_offset
    theirs = [s for s in branch.live(partition) if s.base_offset < end and s.end > first]
    problem = ""
    if not theirs or theirs[0].base_offset != first or branch.start(partition) > start:
        problem = f"the branch does not have it from offset {first} on, where a segment begins here"
    elif theirs[-1].end != end:
        problem = f"no segment of the branch ends at offset {end}, where the cut does: make the branch at the cut"
    elif own[-1].end > end and own[-1].base_offset + _last_position(own[-1]) >= end:
        problem = f"offset {end} is amid a segment with later records: rewind it first, or compact it"
    return Restoring(partition, tuple(own), tuple(theirs), problem)


def restore_topic(
    lake: Lake, branch: Lake, topic: str, ends: Mapping[int, int], *, by: str, dry_run: bool = False
) -> Restored:
    """Bring a topic, below these offsets of its partitions, to what it is in a branch.

    Safe to kill anywhere and to run again. Raises `StorageError`, `CorruptSegmentError`, and `ContendedLogError` when
    others rewrote the same segments each time.
    """
    door, theirs = lake.log(topic).door, branch.topic(topic).state()
    records = copied = 0
    problems: dict[int, str] = {}
    for partition, end in sorted(ends.items()):
        for _ in range(MOST_TRIES):
            with door.lock:
                plan = plan_restoring(door.refresh(), theirs, partition, end)
            if dry_run:
                records += _would_come(lake, topic, plan, end)
                plan = Restoring(partition, problem="" if plan.theirs else plan.problem)
                break
            if plan.is_idle:
                break
            if _restore(lake, branch, topic, theirs, plan, by):
                records += plan.records
                copied += sum(segment.size for segment in plan.theirs)
                plan = Restoring(partition)
                break
        else:
            raise ContendedLogError(
                f"Topic '{topic}': others rewrote its segments each of {MOST_TRIES} times. Stop the other maintenance"
                " of this topic, and do it again."
            )
        if plan.problem:
            problems[partition] = plan.problem
    return Restored(topic, records, copied, problems)


def _would_come(lake: Lake, topic: str, plan: Restoring, end: int) -> int:
    """How many records come back once what is behind the offset has left."""
    own = 0
    for segment in plan.own:
        if segment.end <= end:
            own += segment.records or 0
        else:
            own += sum(
                batch.num_rows for batch in read_segment(lake.storage, topic, segment, segment.base_offset, end, ())
            )
    return sum(segment.records or 0 for segment in plan.theirs) - own


def _restore(lake: Lake, branch: Lake, topic: str, theirs: TopicState, plan: Restoring, by: str) -> bool:
    config = lake.topic(topic).config()
    door = lake.log(topic).door
    with door.lock:
        unit = unit_of(door.state, topic, plan.own, config, rewrite_codec(config))
    outputs = []
    for segment in plan.theirs:
        path = layout.segment_path(plan.partition, unit.known_version, lake.ids.new())
        with (
            branch.storage.open(f"{topic}/{unquote(segment.path)}", segment.size) as source,
            lake.storage.create(f"{topic}/{path}") as target,
        ):
            shutil.copyfileobj(source, target, _COPY_BYTES)
        outputs.append(_output(segment, path, plan.end if segment is plan.theirs[-1] else segment.end, plan.own))
    paths = [f"{topic}/{output.path}" for output in outputs]
    make_durable(lake.storage, paths)
    said = [sum(s.records or 0 for s in segments) for segments in (plan.own, plan.theirs)]
    done = Rewritten(unit, tuple(outputs), said[0], said[1])
    marks = [Txn(f"{prefix}{plan.partition}", _mark(theirs, prefix, plan)) for prefix in _MARKS]
    now_ms = lake.clock.now_ms()

    def decide(state: TopicState) -> Outcome[Landing]:
        return decide_rewrite(
            state, topic, [done], now_ms=now_ms, operation="REWIND", parameters={"by": by},
            extra={plan.partition: marks},
        )  # fmt: skip

    landed = bool(lake.commit(topic, decide, durable=False).response.landed)
    if not landed:
        discard(lake.storage, paths)
    return landed


def _mark(branch: TopicState, prefix: str, plan: Restoring) -> int:
    """A mark of compaction as the branch has it: of what comes in, and of nothing after it."""
    if prefix == layout.CLEAN_PREFIX:
        mark = branch.cleans.get(plan.partition, 0)
    else:
        mark = branch.txn(f"{prefix}{plan.partition}") or 0
    return mark if prefix == layout.TOMBSTONES_SINCE_PREFIX else min(mark, plan.theirs[-1].end)


def _output(segment: Segment, path: str, end: int, own: Sequence[Segment]) -> Output:
    stats = segment.stats
    body = orjson.loads(segment.raw_stats or "{}")
    first = (body.get("minValues") or {}).get("position", 0)
    modified = [s.modification_ms for s in own if s.end > segment.base_offset and s.base_offset < end]
    return Output(
        path,
        segment.base_offset,
        end,
        segment.size,
        segment.end - segment.base_offset if stats.records is None else stats.records,
        first,
        _last_position(segment),
        stats.min_timestamp_ms or 0,
        stats.max_timestamp_ms or 0,
        min(modified),
    )


def _last_position(segment: Segment) -> int:
    """The last record's; of a segment whose statistics don't say, the last one that it may have."""
    body = orjson.loads(segment.raw_stats or "{}")
    if body.get("numRecords") == 0:
        return -1
    return int((body.get("maxValues") or {}).get("position", segment.end - segment.base_offset - 1))


def _shapes(segments: Sequence[Segment]) -> list[tuple[int, int | None, int]]:
    return [(s.base_offset, s.records, s.size) for s in segments]
