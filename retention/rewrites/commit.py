"""Commit of rewritten units: an executor executes them, and what it staged is committed as it comes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidelog.log.base.errors import TopicChangedError, UnknownTopicError
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import Outcome
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.orphans import discard
from tidelog.log.storage.port import Storage
from tidelog.retention.rewrites.executors import Executor, Task
from tidelog.retention.rewrites.units import Landing, Rewritten, decide_rewrite

# Bytes of inputs of one entry: at most that much is written again after a crash. And segments of one entry: an entry
# that takes long to make loses every race against producers that append all the time.
ENTRY_BYTES = 1 << 30
ENTRY_SEGMENTS = 1_000


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What became of the units: `landed`; `lost`, because another writer had changed their segments; `left` as they
    were, for nothing was to be done; `failures`, by partition, with the first reason of each.
    """

    landed: tuple[Rewritten, ...] = ()
    lost: tuple[Rewritten, ...] = ()
    left: tuple[Rewritten, ...] = ()
    failures: Mapping[int, str] = field(default_factory=dict)


def rewrite(
    lake: Lake,
    topic: str,
    tasks: Iterable[Task],
    executor: Executor,
    *,
    operation: str,
    parameters: Mapping[str, str],
    entry_bytes: int = ENTRY_BYTES,
) -> Rewriting:
    """Execute the tasks and commit what they staged, about `entry_bytes` of inputs an entry.

    A partition of which a unit fails is left as it is from then on. Safe to kill anywhere: what was staged and not
    committed is an orphan, which a purge deletes. When the topic is deleted meanwhile, its units are lost.
    Raises `StorageError`, `OutcomeUnknownError`, `ContendedLogError`.
    """
    landed: list[Rewritten] = []
    lost: list[Rewritten] = []
    left: list[Rewritten] = []
    failures: dict[int, str] = {}
    waiting: list[Rewritten] = []

    def commit() -> None:
        stopped = [done for done in waiting if done.unit.partition in failures]
        ready = [done for done in waiting if done.unit.partition not in failures]
        waiting.clear()
        discard_outputs(lake.storage, stopped)
        landing = _land(lake, topic, ready, operation, parameters)
        discard_outputs(lake.storage, landing.lost)
        landed.extend(landing.landed)
        lost.extend(landing.lost)

    for done in executor.run(tasks):
        if done.failure is not None:
            failures.setdefault(done.unit.partition, done.failure)
            continue
        if not done.outputs:
            left.append(done)
            continue
        waiting.append(done)
        segments = sum(len(w.unit.inputs) for w in waiting)
        if segments >= ENTRY_SEGMENTS or sum(w.bytes_in for w in waiting) >= entry_bytes:
            commit()
    commit()
    return Rewriting(tuple(landed), tuple(lost), tuple(left), failures)


def _land(lake: Lake, topic: str, ready: list[Rewritten], operation: str, parameters: Mapping[str, str]) -> Landing:
    if not ready:
        return Landing((), ())
    try:
        # What was staged has been synced as it was written. To sync what others appended is not this entry's to do:
        # it would take so long that the race for the next entry is lost.
        decide = _decision(topic, ready, lake.clock.now_ms(), operation, parameters)
        return lake.commit(topic, decide, durable=False).response
    except (TopicChangedError, UnknownTopicError):
        return Landing((), tuple(ready))


def _decision(
    topic: str, ready: Sequence[Rewritten], now_ms: int, operation: str, parameters: Mapping[str, str]
) -> Callable[[TopicState], Outcome[Landing]]:
    """`decide_rewrite` of the same units, again and again: while nothing but appends came, its outcome is the same."""
    partitions = sorted({done.unit.partition for done in ready})
    last: tuple[list[object], Outcome[Landing]] | None = None

    def decide(state: TopicState) -> Outcome[Landing]:
        nonlocal last
        # A list of segments is another one when segments have left, and grows in place when some came.
        seen: list[object] = [state.metadata, state.txns.get(layout.PURGE_TXN)]
        seen.extend(thing for p in partitions for thing in (state.live(p), state.start(p)))
        if last is None or any(now is not then for now, then in zip(seen, last[0], strict=True)):
            outcome = decide_rewrite(state, topic, ready, now_ms=now_ms, operation=operation, parameters=parameters)
            last = seen, outcome
        return last[1]

    return decide


def discard_outputs(storage: Storage, rewritten: Iterable[Rewritten]) -> None:
    """Discard what units staged and no entry names."""
    discard(storage, (f"{done.unit.topic}/{output.path}" for done in rewritten for output in done.outputs))
