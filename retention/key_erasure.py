"""Key erasure: the records of given keys leave a topic, and their bytes leave storage. Offsets stay as holes.

Brokers offer less: their compaction and retention drop a key's records at an unknown time. Here a report names the
files that held the records, and when each is deleted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidelog.log.base.errors import InvalidRecordError
from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.upkeep.holds import Holder
from tidelog.retention.predicates.where import IsIn, RecordKey
from tidelog.retention.purge.plan import Leaving, Waiting
from tidelog.retention.purge.run import Needed, Purged, Purger, no_intents
from tidelog.retention.rewrites.execute import Drop, execute_if_found, execute_unit, probe_unit
from tidelog.retention.rewrites.executors import Executor, LocalExecutor, Task
from tidelog.retention.rewrites.passes import Passes, run_passes
from tidelog.retention.rewrites.units import rewrite_codec, unit_of

# Pauses between two checks of files that wait.
LEAST_PAUSE_S = 1.0
MOST_PAUSE_S = 60.0

# Applies to a topic the transactions that are committed and not yet applied to it.
Settle = Callable[[str], None]


def nothing_decided(topic: str) -> None:
    """There are no transactions."""


@dataclass(frozen=True, slots=True)
class KeyErasure:
    """What erasing keys from a topic did, or, dry, would do.

    `records`: how many left. `rewritten`: the segments that held them, or may have. `deleted`: files that are gone from
    storage. `waiting`: removed files that may hold such records, and are still needed. `failures`: {partition: why}.
    """

    topic: str
    run_id: str
    dry_run: bool
    keys: int
    records: int = 0
    rewritten: tuple[Segment, ...] = ()
    passes: int = 0
    failures: Mapping[int, str] = field(default_factory=dict)
    deleted: tuple[Leaving, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    @property
    def done(self) -> bool:
        """Whether no file of the topic holds such a record any more."""
        return not (self.waiting or self.failures or (self.dry_run and self.rewritten))

    def to_json(self) -> dict[str, Any]:
        """The report. Times in ms since the epoch, by the store's clock."""
        return {
            "topic": self.topic,
            "run": self.run_id,
            "dry_run": self.dry_run,
            "keys": self.keys,
            "records": self.records,
            "rewritten": [{"path": s.path, "bytes": s.size} for s in self.rewritten],
            "deleted": [{"path": d.path, "bytes": d.size} for d in self.deleted],
            "waiting": [{"path": w.path, "bytes": w.size, "for": w.why, "until_ms": w.until_ms} for w in self.waiting],
            "failures": {str(p): why for p, why in sorted(self.failures.items())},
            "done": self.done,
        }


def erase_keys(
    lake: Lake,
    topic: str,
    keys: Iterable[bytes],
    *,
    executor: Executor | None = None,
    run_id: str | None = None,
    dry_run: bool = False,
    wait: bool = False,
    needed: Needed = no_intents,
    settle: Settle = nothing_decided,
) -> KeyErasure:
    """Remove every record with one of these keys, up to the topic's end as of now, and purge the bytes.

    Records of a transaction that is committed and not yet applied count: `settle` applies it to the topic.
    Producers, readers and other maintenance may go on meanwhile. Files that held the bytes stay while time travel
    reaches back to them and a running job needs them; with `wait` this returns when they are gone, else any later
    purge deletes them, and repeating the call tells what still waits. Safe to kill anywhere and to run again.
    Raises `UnknownTopicError`, `TopicChangedError`, `InvalidRecordError` without keys, `StorageError`, and
    `ContendedLogError` when others rewrote the same segments each time.
    """
    sought = frozenset(keys)
    if not sought:
        raise InvalidRecordError("There is no key to erase, and records without a key are all alike. Give keys.")
    state = lake.topic(topic).state()
    run = _ErasureRun(
        lake, topic, sought, executor or LocalExecutor(lake.storage, lake.ids), run_id or lake.ids.new(), dry_run
    )
    if not dry_run:
        settle(topic)
    with Holder(lake.storage, lake.clock, lake.ids, f"key erasure {run.run_id}") as holder:
        holder.hold(topic, lambda: lake.log(topic).door.refresh().version)
        done = run.passes(state.topic_id)
    purged = run.purge(needed, frozenset(done.failures))
    deleted = list(purged.deleted)
    while wait and not dry_run and purged.waiting and not done.failures:
        lake.clock.sleep(_pause_s(lake, purged.waiting))
        purged = run.purge(needed, frozenset(done.failures))
        deleted.extend(purged.deleted)
    return KeyErasure(
        topic,
        run.run_id,
        dry_run,
        len(sought),
        done.records,
        tuple(done.rewritten),
        done.count,
        done.failures,
        tuple(deleted),
        purged.waiting,
    )


def _pause_s(lake: Lake, waiting: Sequence[Waiting]) -> float:
    """Until the first of them may go, as this machine's clock has it."""
    times = [w.until_ms for w in waiting if w.until_ms is not None]
    left_s = (min(times) - lake.clock.now_ms()) / 1000 if times else MOST_PAUSE_S
    return min(max(left_s, LEAST_PAUSE_S), MOST_PAUSE_S)


@dataclass(frozen=True)
class _ErasureRun:
    lake: Lake
    topic: str
    keys: frozenset[bytes]
    executor: Executor
    run_id: str
    dry_run: bool

    def passes(self, topic_id: str) -> Passes:
        """Pass over the topic until a pass finds nothing to look at below the ends as of now."""
        return run_passes(
            self.lake,
            self.topic,
            topic_id,
            self._tasks,
            self.executor,
            operation="FORGET",
            parameters={"run": self.run_id, "keys": str(len(self.keys))},
            dry_run=self.dry_run,
        )

    def _tasks(self, state: TopicState, ends: Mapping[int, int], passes: Passes) -> list[Task]:
        config = self.lake.topic(self.topic).config()
        tasks, drop = [], Drop(IsIn(RecordKey(), self.keys))
        for partition, end in ends.items():
            if partition in passes.failures:
                continue
            start = state.start(partition)
            below = [s for s in state.live(partition) if s.base_offset < end]
            # One segment a unit, so that segments that merging keeps apart stay apart.
            for segment in below:
                if segment.path in passes.clean:
                    continue
                # Records below the log start can't be read, and may be such ones: their bytes go in any case.
                cut = segment.base_offset < start
                unit = unit_of(state, self.topic, [segment], config, rewrite_codec(config))
                operation = probe_unit if self.dry_run else execute_unit if cut else execute_if_found
                tasks.append(Task(unit, drop, operation))
        return tasks

    def purge(self, needed: Needed, spare: frozenset[int]) -> Purged:
        """Purge the topic as of now; what this run itself held is given back."""
        lake = self.lake
        with Holder(lake.storage, lake.clock, lake.ids, f"key erasure {self.run_id}") as holder:
            return Purger(lake, holder, self.run_id, needed).purge(self.topic, dry_run=self.dry_run, spare=spare)
