"""An append of records that come from another log with offsets of their own, which they keep."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.log.appends.topic_handle import TopicHandle
from tidelog.log.base.clock import Ids
from tidelog.log.base.errors import InvalidRecordError, OutcomeUnknownError, TidelogError
from tidelog.log.delta import layout
from tidelog.log.rules.appends import Ranges
from tidelog.log.rules.copies import StagedRun, copied_to, decide_copy
from tidelog.log.rules.topics import Outcome, require_topic
from tidelog.log.segments.staging import Target
from tidelog.log.segments.writer import SegmentWriter, Staged, write_small_segment
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.orphans import discard


@dataclass(frozen=True, slots=True)
class CopiedRun:
    """Offsets [base, end) of a partition of another log: `offsets` of its records, which rise, and the records.

    `records` have the columns key, value, headers, timestamp and timestamp_type of `tidelog.log.delta.schema.SEGMENT`.
    A run without records covers a gap; one that is empty says where a log without records begins.
    """

    partition: int
    base: int
    end: int
    offsets: npt.NDArray[np.int64]
    records: pa.Table


class CopiedTopic:
    """A topic that is a copy of another log's. For one thread."""

    def __init__(self, topic: TopicHandle, ids: Ids) -> None:
        self._topic = topic
        self._ids = ids

    def positions(self) -> dict[int, int | None]:
        """How far each partition is copied: its end, None for one that is new.

        Raises `NotACopyError` for one that has records of its own, `UnknownTopicError`, `TopicChangedError`.
        """
        state = self._state()
        return {p: copied_to(state, self._topic.name, p) for p in range(state.partitions)}

    def append(self, runs: Sequence[CopiedRun]) -> Ranges:
        """Append runs, one for each partition, as one entry: all or none; they survive a power loss then.

        Raises `NotACopyError`, `CopyPositionError` when another process copies to the topic, too, `TopicChangedError`,
        `StorageError`, `OutcomeUnknownError`: then `positions` say whether it was appended.
        """
        self._state()
        target = self._topic.target()
        staged: list[StagedRun] = []
        try:
            staged.extend(self._stage(run, target) for run in runs)
            return self._topic.commit_decided(partial(self._decide, staged), durable=True)
        except OutcomeUnknownError:
            raise
        except TidelogError:
            discard(self._topic.storage, [f"{target.folder}/{one.staged.path}" for one in staged if one.staged])
            raise

    def _decide(self, staged: Sequence[StagedRun], state: TopicState, now_ms: int, _: bool) -> Outcome[Ranges]:
        self._require(state)
        return decide_copy(state, self._topic.name, self._topic.id, staged, now_ms=now_ms)

    def _state(self) -> TopicState:
        state = self._topic.state()
        self._require(state)
        return state

    def _require(self, state: TopicState) -> None:
        require_topic(state, self._topic.name, self._topic.id)
        if self._topic.typing() is not None:
            raise InvalidRecordError(
                f"Topic '{self._topic.name}' has columns for its values (value.columns), and records are copied as they"
                " are: copy them to a topic without, which may get columns once the copy has ended."
            )

    def _stage(self, run: CopiedRun, target: Target) -> StagedRun:
        if run.base == run.end:
            return StagedRun(run.partition, run.base, run.end, None)
        count = len(run.offsets)
        low = int(run.offsets[0]) if count else run.base
        high = int(run.offsets[-1]) if count else run.base
        if low < run.base or high >= run.end or (count > 1 and (np.diff(run.offsets) <= 0).any()):
            raise InvalidRecordError(
                f"Records to be copied to topic '{self._topic.name}', partition {run.partition}, have offsets from"
                f" {low} to {high}, which don't rise within {run.base} to {run.end}."
            )
        path = layout.segment_path(run.partition, target.version, self._ids.new())
        if count == run.end - run.base:
            small = write_small_segment(run.records, target.codec)
            data, low_ms, high_ms = small.data, small.min_timestamp_ms, small.max_timestamp_ms
        else:
            writer = SegmentWriter(pa.BufferOutputStream(), target.codec)
            writer.write(run.records, run.offsets - run.base)
            writer.close()
            data, low_ms, high_ms = writer.data, writer.min_timestamp_ms, writer.max_timestamp_ms
        self._topic.storage.put(f"{target.folder}/{path}", data)
        segment = Staged(run.partition, path, count, len(data), low_ms, high_ms, target.version, target.topic_id)
        return StagedRun(run.partition, run.base, run.end, segment, low, high)
