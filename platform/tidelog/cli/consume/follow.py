"""`consume` at work: all partitions of a topic followed at once, each in the order of its offsets."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from tidelog.cli.consume.offsets import Span, starting_offset
from tidelog.cuts.model import Cut
from tidelog.cuts.rules import ends_of
from tidelog.log.base.backoff import Backoff
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import require_partition
from tidelog.log.segments.fetch import FetchPlan, plan_fetch
from tidelog.log.state.topic_state import TopicState
from tidelog.log.topic import Topic

BATCH_RECORDS = 8_192
# Pauses between two looks at a log in which nothing happens: they grow.
FIRST_PAUSE_S = 0.005
LAST_PAUSE_S = 0.2
# How many partitions are read in turns; each holds a file open.
PARTITIONS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Reached:
    """A partition is read up to its end, `offset`, as of now. `last`: and all is read that was to be."""

    partition: int
    offset: int
    last: bool


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing to read at the moment; a pause follows."""


Event: TypeAlias = "pa.RecordBatch | Reached | Idle"


@dataclass(slots=True)
class _Cursor:
    """How far a partition is read. `stop`: up to where, None for as long as there is more."""

    partition: int
    position: int
    stop: int | None
    told: int = -1
    done: bool = False

    def limit(self, state: TopicState) -> int:
        """The end of what can be read now."""
        end = state.end(self.partition)
        return end if self.stop is None else min(self.stop, end)


@dataclass(slots=True)
class _Reading:
    cursor: _Cursor
    plan: FetchPlan
    batches: Iterator[pa.RecordBatch]


class Following:
    """One run of `consume`. `only`: these partitions; none means all, also those that are added later.

    `to_end`: stop at the end offsets as of the start. `from_cut`: start where that cut ends; `to_cut`: stop there.
    Raises `CutLostError` for a cut that does not know the topic.
    """

    def __init__(
        self,
        lake: Lake,
        name: str,
        span: Span,
        *,
        only: Sequence[int] = (),
        to_end: bool = False,
        headers: bool = False,
        from_cut: Cut | None = None,
        to_cut: Cut | None = None,
    ) -> None:
        self._lake = lake
        self._topic: Topic = lake.topic(name)
        self._span = span
        self._only = sorted(set(only))
        self._headers = headers
        state = self._topic.state()
        for partition in self._only:
            require_partition(state, name, partition)
        self._known = state.partitions
        offsets = {p: (state.start(p), state.end(p)) for p in self._only or range(state.partitions)}
        wanted = dict.fromkeys(offsets, span.value) if span.start == "time" else {}
        times = self._topic.offsets_for_times(wanted) if wanted else {}
        first = {} if from_cut is None else ends_of(from_cut, name, self._topic.id)
        last = {p: end for p, (_, end) in offsets.items()} if to_end else {}
        if to_cut is not None:
            ends = ends_of(to_cut, name, self._topic.id)
            last = {p: min(ends.get(p, 0), last.get(p, end)) for p, (_, end) in offsets.items()}
        self._cursors = []
        for p, (start, end) in offsets.items():
            begin = starting_offset(span, start, end, times.get(p))
            if from_cut is not None:
                begin = max(start, min(first.get(p, start), end))
            self._cursors.append(_Cursor(p, begin, last.get(p)))
        for cursor in self._cursors:
            self._plan(state, cursor)
        self._may_grow = not self._only and not to_end and to_cut is None

    def events(self) -> Iterator[Event]:
        """Batches of records, partitions that are read to their end, and pauses; without end unless one was asked.

        Raises `OffsetOutOfRangeError` when records were deleted before they were read, and `TopicChangedError` or
        `UnknownTopicError` when the topic was.
        """
        backoff = Backoff(FIRST_PAUSE_S, LAST_PAUSE_S, 1.5)
        while True:
            state = self._topic.state()
            self._add_new(state)
            progress = False
            for event in self._read_to_end(state):
                progress = True
                yield event
            if all(cursor.done for cursor in self._cursors):
                return
            yield Idle()
            if progress:
                backoff.reset()
            self._lake.clock.sleep(backoff.next_s())

    def _add_new(self, state: TopicState) -> None:
        """Follow partitions that were added since the last look, from their beginning: they were not read before."""
        if self._may_grow:
            self._cursors += [_Cursor(p, state.start(p), None) for p in range(self._known, state.partitions)]
            self._known = max(self._known, state.partitions)

    def _read_to_end(self, state: TopicState) -> Iterator[pa.RecordBatch | Reached]:
        """Everything up to the end as `state` has it, the partitions in turns."""
        waiting = deque(c for c in self._cursors if not c.done)
        reading: deque[_Reading] = deque()
        while waiting or reading:
            while waiting and len(reading) < PARTITIONS_AT_ONCE:
                reading.append(self._open(state, waiting.popleft()))
            current = reading.popleft()
            batch = next(current.batches, None)
            if batch is None:
                yield from self._finish(current)
                continue
            kept = self._before_stop(batch)
            if kept.num_rows:
                current.cursor.position = kept.column("offset")[-1].as_py() + 1
                yield kept
            if kept.num_rows < batch.num_rows:
                current.cursor.done = True
                yield from self._tell(current.cursor)
            else:
                reading.append(current)

    def _plan(self, state: TopicState, cursor: _Cursor) -> FetchPlan:
        end = max(cursor.limit(state), cursor.position)
        return plan_fetch(state, self._topic.name, cursor.partition, cursor.position, end)

    def _open(self, state: TopicState, cursor: _Cursor) -> _Reading:
        plan = self._plan(state, cursor)
        batches = self._topic.read_plan(plan, include_headers=self._headers, batch_records=BATCH_RECORDS)
        return _Reading(cursor, plan, batches)

    def _finish(self, read: _Reading) -> Iterator[Reached]:
        cursor = read.cursor
        cursor.position = read.plan.end
        cursor.done = cursor.stop is not None and cursor.position >= cursor.stop
        yield from self._tell(cursor)

    def _tell(self, cursor: _Cursor) -> Iterator[Reached]:
        if cursor.told != cursor.position or cursor.done:
            cursor.told = cursor.position
            yield Reached(cursor.partition, cursor.position, all(c.done for c in self._cursors))

    def _before_stop(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch up to the first record at or after the time to stop at."""
        if self._span.stop_ms is None:
            return batch
        late = np.flatnonzero(batch.column("timestamp").cast(pa.int64()).to_numpy() >= self._span.stop_ms * 1000)
        return batch.slice(0, int(late[0])) if len(late) else batch
