"""Rewrites: segments of a partition are replaced by others that cover the same offsets. The pure part.

A plan makes units of live segments, an executor carries each out (`tidelog.retention.rewrites.execute`) and says what
it staged, and `decide_rewrite` makes one entry of that (docs/format.md, 5.4).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidelog.log.config.topics_and_lakes import Codec, TopicConfig
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Add, Remove, Txn
from tidelog.log.delta.schema import SEGMENT
from tidelog.log.rules.topics import Outcome, require_topic
from tidelog.log.segments.writer import stats_json
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.typed.facts import typing_of
from tidelog.log.typed.value_typing import Typing


@dataclass(frozen=True)
class Unit:
    """One contiguous run of a partition's live segments, to be written again. Picklable.

    `start` is the log start offset at planning: records below it are dropped. `known_version` is the topic's version
    then. An output ends when it reaches `segment_bytes`. `typing`: of a typed topic, as of planning: every input has
    its columns, or those of an earlier schema of the table.
    """

    topic: str
    topic_id: str
    partition: int
    inputs: tuple[Segment, ...]
    start: int
    known_version: int
    segment_bytes: int
    codec: Codec
    typing: Typing | None = None

    @property
    def columns(self) -> pa.Schema:
        """The columns of its segments, of inputs and outputs."""
        return SEGMENT if self.typing is None else self.typing.segment

    @property
    def base_offset(self) -> int:
        """The first offset that the outputs cover."""
        return max(self.start, self.inputs[0].base_offset)

    @property
    def end(self) -> int:
        """The end of the offsets that the outputs cover."""
        return self.inputs[-1].end

    @property
    def size(self) -> int:
        """The inputs' bytes."""
        return sum(s.size for s in self.inputs)


@dataclass(frozen=True)
class Output:
    """A segment that a unit staged: what its log entry will say. Times in ms since the epoch.

    `records` 0: all of the range are gone; positions and timestamps then mean nothing.
    """

    path: str
    base_offset: int
    end: int
    size: int
    records: int
    first_position: int
    last_position: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    modification_ms: int

    @property
    def stats(self) -> str:
        """Delta's statistics of the segment."""
        return stats_json(
            self.records, self.last_position, self.min_timestamp_ms, self.max_timestamp_ms, self.first_position
        )


@dataclass(frozen=True)
class Rewritten:
    """What became of a unit: the segments that it staged, or why there are none (`failure`).

    Neither: it was only looked at, and nothing of it is to be changed; `records_out` of its records would stay.
    """

    unit: Unit
    outputs: tuple[Output, ...] = ()
    records_in: int = 0
    records_out: int = 0
    failure: str | None = None

    @property
    def bytes_in(self) -> int:
        """The bytes that leave."""
        return self.unit.size

    @property
    def bytes_out(self) -> int:
        """The bytes that come in."""
        return sum(o.size for o in self.outputs)


@dataclass(frozen=True)
class Landing:
    """Which units an entry took, and which it left because another writer had changed their segments."""

    landed: tuple[Rewritten, ...]
    lost: tuple[Rewritten, ...]


def unit_of(state: TopicState, topic: str, inputs: Sequence[Segment], config: TopicConfig, codec: Codec) -> Unit:
    """The unit of a run of one partition's live segments, as of `state`."""
    partition = inputs[0].partition
    return Unit(
        topic,
        state.topic_id,
        partition,
        tuple(inputs),
        state.start(partition),
        state.version,
        config.segment_bytes,
        codec,
        typing_of(state.metadata),
    )


def rewrite_codec(config: TopicConfig) -> Codec:
    """The codec of rewritten segments: what the topic names, else zstd; zstd at `merge.compression.level` at least."""
    codec = config.codec()
    if codec.name != "zstd":
        return codec
    return Codec("zstd", max(config.merge_compression_level, codec.level or 0))


def runs(state: TopicState, partition: int) -> list[list[Segment]]:
    """A partition's live segments above its log start, in runs without a hole."""
    stretches: list[list[Segment]] = []
    for segment in state.live(partition):
        if segment.end > state.start(partition):
            if stretches and stretches[-1][-1].end == segment.base_offset:
                stretches[-1].append(segment)
            else:
                stretches.append([segment])
    return stretches


def plan_cuts(state: TopicState, topic: str, config: TopicConfig) -> list[Unit]:
    """Units for the segments that a log start offset cuts: rewritten, they hold nothing below it.

    Until then readers that don't know the log start still see the earlier records.
    """
    codec = rewrite_codec(config)
    return [
        unit_of(state, topic, [segment], config, codec)
        for partition in range(state.partitions)
        for segment in state.live(partition)[:1]
        if segment.base_offset < state.start(partition) < segment.end
    ]


def decide_rewrite(
    state: TopicState,
    topic: str,
    rewritten: Sequence[Rewritten],
    *,
    now_ms: int,
    operation: str,
    parameters: Mapping[str, str] | None = None,
    extra: Mapping[int, Sequence[Txn]] | None = None,
) -> Outcome[Landing]:
    """Put the units' outputs in place of their inputs, in one entry.

    A unit of which an input is no longer live is left out, and so is one that was staged below the purge floor
    (docs/format.md, rule G1) or that failed; the others land. `extra` {partition: further notes} is noted for
    partitions of which no unit is left out. Refused when the topic is gone or has another id (`UnknownTopicError`,
    `TopicChangedError`).
    """
    for topic_id in sorted({done.unit.topic_id for done in rewritten}) or [""]:
        require_topic(state, topic, topic_id)
    floor = state.txn(layout.PURGE_TXN)
    live = {p: {s.path for s in state.live_between(p, *span)} for p, span in _spans(rewritten).items()}
    landed, lost = [], []
    for done in rewritten:
        unit, there = done.unit, live[done.unit.partition]
        old = floor is not None and unit.known_version < floor
        if done.failure is None and not old and all(s.path in there for s in unit.inputs):
            landed.append(done)
            there.difference_update(s.path for s in unit.inputs)
        else:
            lost.append(done)
    actions: list[Action] = []
    for done in landed:
        actions.extend(_replacement(done, state.start(done.unit.partition), now_ms))
    actions.extend(_timestamps(state, landed))
    left_out = {done.unit.partition for done in lost}
    for partition, notes in sorted((extra or {}).items()):
        actions.extend(notes if partition not in left_out else ())
    said = {**(parameters or {}), **(_sums(landed) if landed else {})}
    return Outcome(tuple(actions), Landing(tuple(landed), tuple(lost)), operation, parameters=said)


def _spans(rewritten: Sequence[Rewritten]) -> dict[int, tuple[int, int]]:
    """{partition: the lowest and the highest base offset of what is to leave}."""
    spans: dict[int, tuple[int, int]] = {}
    for done in rewritten:
        bases = [s.base_offset for s in done.unit.inputs]
        low, high = spans.get(done.unit.partition, (bases[0], bases[0]))
        spans[done.unit.partition] = min(low, *bases), max(high, *bases)
    return spans


def _replacement(done: Rewritten, start: int, now_ms: int) -> list[Action]:
    """Inputs leave and outputs come; an output that the log start has passed meanwhile is left out."""
    partition = done.unit.partition
    actions: list[Action] = [Remove(s.path, partition, s.base_offset, s.size, now_ms, False) for s in done.unit.inputs]
    actions.extend(
        Add(o.path, partition, o.base_offset, o.size, o.modification_ms, False, o.stats, o.end)
        for o in done.outputs
        if o.end > start
    )
    return actions


def _timestamps(state: TopicState, landed: Sequence[Rewritten]) -> list[Action]:
    """Notes of the newest timestamps that would be forgotten, below which LogAppendTime must not fall."""
    notes: list[Action] = []
    for done in landed:
        partition, last = done.unit.partition, done.outputs[-1]
        if done.unit.inputs[-1].path != state.live(partition)[-1].path:
            continue
        newest_ms = state.last_timestamp_ms(partition)
        if (last.max_timestamp_ms if last.records else 0) < newest_ms:
            notes.append(Txn(f"{layout.TIMESTAMP_PREFIX}{partition}", newest_ms))
    return notes


def _sums(landed: Sequence[Rewritten]) -> dict[str, str]:
    return {
        "removedFiles": str(sum(len(d.unit.inputs) for d in landed)),
        "addedFiles": str(sum(len(d.outputs) for d in landed)),
        "removedBytes": str(sum(d.bytes_in for d in landed)),
        "addedBytes": str(sum(d.bytes_out for d in landed)),
        "removedRecords": str(sum(d.records_in - d.records_out for d in landed)),
        "keptRecords": str(sum(d.records_out for d in landed)),
    }
