"""Compaction of a topic: a `Compactor`, here or on Spark, executes the units, and one entry commits them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tidelog.log.base.clock import Ids
from tidelog.log.base.errors import OutcomeUnknownError, TidelogError
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import Outcome, require_topic
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.storage.port import Storage
from tidelog.retention.compaction.newest_keys import Offsets
from tidelog.retention.compaction.plan import plan_compaction
from tidelog.retention.compaction.survivors import MAP_BYTES, survivors
from tidelog.retention.compaction.units import (
    Compacted,
    Compactor,
    PartitionWork,
    compact_unit,
    decide_compaction,
    even_share,
    work_of,
)
from tidelog.retention.rewrites.commit import discard_outputs
from tidelog.retention.rewrites.executors import THREADS, run_bounded
from tidelog.retention.rewrites.units import Landing, Rewritten, Unit

__all__ = ["CompactionReport", "Compactor", "LocalCompactor", "compact"]


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """What a compaction of a topic did, or would do.

    `partitions` were due, in `units` runs of segments. `landed` units were written again, `lost` ones had been changed
    by another writer, the rest had nothing to lose. Records, bytes and files in and out are of those that landed.
    """

    topic: str
    partitions: tuple[int, ...] = ()
    units: int = 0
    landed: int = 0
    lost: int = 0
    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    files_in: int = 0
    files_out: int = 0
    version: int | None = None
    failures: Mapping[int, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return {
            "topic": self.topic,
            "partitions": list(self.partitions),
            "units": self.units,
            "landed": self.landed,
            "lost": self.lost,
            "records": {"before": self.records_in, "after": self.records_out},
            "bytes": {"before": self.bytes_in, "after": self.bytes_out},
            "files": {"before": self.files_in, "after": self.files_out},
            "version": self.version,
            "failures": {str(partition): message for partition, message in sorted(self.failures.items())},
        }


def compact(
    lake: Lake, topic: str, *, now_ms: int, compactor: Compactor, run_id: str | None = None, dry_run: bool = False
) -> CompactionReport:
    """Compact what is due in a topic at `now_ms` (ms since the epoch), as one entry.

    A partition of which a segment can't be read or written stays as it is, and is named in the report. Safe to run
    twice at once: of two that write a segment again one lands. Raises `UnknownTopicError`, `TopicChangedError`,
    `StorageError`, `OutcomeUnknownError`.
    """
    config = lake.topic_config(topic)
    door = lake.log(topic).door
    with door.lock:  # the state stays as it is while the plan is made
        state = door.refresh()
        require_topic(state, topic)
        plan = plan_compaction(state, config, now_ms)
        size = sum(segment.size for one in plan.partitions for segment in one.segments)
        work = work_of(state, topic, config, plan, compactor.unit_bytes(size))
    report = CompactionReport(topic, tuple(sorted(w.plan.partition for w in work)), sum(len(w.units) for w in work))
    if dry_run or not work:
        return report
    compacted = list(compactor.run(work))
    failures = {done.partition: failure for done in compacted if (failure := done.failure) is not None}
    sound = [done for done in compacted if done.partition not in failures]
    discard_outputs(lake.storage, _rewritten(done for done in compacted if done.partition in failures))

    committed_ms = lake.clock.now_ms()

    def decide(state: TopicState) -> Outcome[Landing]:
        return decide_compaction(
            state,
            topic,
            [one for one in work if one.plan.partition not in failures],
            sound,
            topic_id=plan.topic_id,
            planned_ms=now_ms,
            now_ms=committed_ms,
            parameters=None if run_id is None else {"run": run_id},
        )

    try:
        committed = lake.commit(topic, decide, durable=False)  # what was staged is synced
    except OutcomeUnknownError:
        raise  # the entry may be there, and then it needs its segments
    except TidelogError:
        discard_outputs(lake.storage, _rewritten(sound))
        raise
    landing = committed.response
    discard_outputs(lake.storage, landing.lost)
    return _told(report, landing, failures, committed.version if committed.written else None)


def _told(
    report: CompactionReport, landing: Landing, failures: Mapping[int, str], version: int | None
) -> CompactionReport:
    landed = landing.landed
    return replace(
        report,
        landed=len(landed),
        lost=len(landing.lost),
        records_in=sum(done.records_in for done in landed),
        records_out=sum(done.records_out for done in landed),
        bytes_in=sum(done.bytes_in for done in landed),
        bytes_out=sum(done.bytes_out for done in landed),
        files_in=sum(len(done.unit.inputs) for done in landed),
        files_out=sum(len(done.outputs) for done in landed),
        version=version,
        failures=failures,
    )


def _rewritten(compacted: Iterable[Compacted]) -> Iterator[Rewritten]:
    return (done.rewritten for done in compacted if done.rewritten is not None)


class LocalCompactor:
    """Compacts in this process: keys in a map of `map_bytes`, `threads` units at once."""

    def __init__(self, storage: Storage, ids: Ids, map_bytes: int = MAP_BYTES, threads: int = THREADS) -> None:
        self._storage = storage
        self._ids = ids
        self._map_bytes = map_bytes
        self._threads = threads

    def unit_bytes(self, size: int) -> int:
        """How large units of work on segments of `size` bytes in all should be."""
        return even_share(size, self._threads)

    def run(self, work: Sequence[PartitionWork]) -> Iterator[Compacted]:
        """What became of each unit, as it ends."""
        return run_bounded(self._threads, (call for one in work for call in self._calls(one)))

    def _calls(self, work: PartitionWork) -> Iterator[Callable[[], Compacted]]:
        """A call for each unit of a partition; one that fails it when its keys can't be read."""
        try:
            for unit, kept in self._survivors(work):
                yield partial(compact_unit, self._storage, self._ids, work.plan, unit, kept)
        except TidelogError as e:
            yield partial(Compacted, work.plan.partition, Rewritten(work.units[0], failure=str(e)), 0)

    def _survivors(self, work: PartitionWork) -> Iterator[tuple[Unit, Offsets | None]]:
        """Each unit with the offsets that stay of it."""
        if not work.plan.replaces:
            yield from ((unit, None) for unit in work.units)
            return
        if not work.units:
            return
        stream = survivors(self._storage, work.units[0].topic, work.plan, map_bytes=self._map_bytes)
        for unit in work.units:
            wanted = {segment.path for segment in unit.inputs}
            kept = _collect(stream, wanted)
            yield unit, np.concatenate([kept[segment.path] for segment in unit.inputs])


def _collect(stream: Iterable[tuple[Segment, Offsets]], wanted: set[str]) -> dict[str, Offsets]:
    """The next segments' offsets until all of `wanted` are there; those of others are passed over."""
    kept: dict[str, Offsets] = {}
    for segment, offsets in stream:
        if segment.path in wanted:
            kept[segment.path] = offsets
        if len(kept) == len(wanted):
            break
    return kept
