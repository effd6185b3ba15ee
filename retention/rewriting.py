"""Rewriting: an executor carries units out, and what it staged is committed through the door as it comes."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from tidelog.log.errors import StorageError, TopicChangedError, UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.log.storage.port import Storage
from tidelog.retention.executors import Executor, Task
from tidelog.retention.rewrites import Landing, Rewritten, decide_rewrite

# So many bytes of inputs go into one entry: what a crash makes somebody write again at most.
ENTRY_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What became of the units: `landed`; `lost`, because somebody else had changed their segments; `left` as they
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
    """Carry the tasks out and commit what comes of them, about `entry_bytes` of inputs an entry.

    A partition of which a unit fails is left as it is from then on. Safe to kill anywhere: what was staged and not
    committed is an orphan, which a purge takes. When the topic is deleted meanwhile, its units are lost.
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
        discard(lake.storage, topic, stopped)
        landing = _land(lake, topic, ready, operation, parameters)
        discard(lake.storage, topic, landing.lost)
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
        if sum(w.bytes_in for w in waiting) >= entry_bytes:
            commit()
    commit()
    return Rewriting(tuple(landed), tuple(lost), tuple(left), failures)


def _land(lake: Lake, topic: str, ready: list[Rewritten], operation: str, parameters: Mapping[str, str]) -> Landing:
    if not ready:
        return Landing((), ())
    try:
        return lake.commit(
            topic,
            lambda state: decide_rewrite(
                state, topic, ready, now_ms=lake.clock.now_ms(), operation=operation, parameters=parameters
            ),
        ).response
    except (TopicChangedError, UnknownTopicError):
        return Landing((), tuple(ready))


def discard(storage: Storage, topic: str, rewritten: Iterable[Rewritten]) -> None:
    """Delete what units staged that never landed; what the store keeps is an orphan, which a purge takes."""
    for path in [output.path for done in rewritten for output in done.outputs]:
        with suppress(StorageError):
            storage.delete(f"{topic}/{path}")
