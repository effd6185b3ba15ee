"""Passes over a topic that take records out of it, until nothing is left to look at below its ends as of the start.

Producers, readers and other maintenance go on meanwhile: what another job rewrote first is looked at again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tidelog.log.base.errors import ContendedLogError
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import require_topic
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.retention.rewrites.commit import Rewriting, rewrite
from tidelog.retention.rewrites.executors import Executor, Task

# The most passes, when other maintenance rewrites the same segments first each time.
MOST_PASSES = 100


@dataclass
class Passes:
    """The result of the passes so far. `clean`: files that are known to hold no such record."""

    records: int = 0
    rewritten: list[Segment] = field(default_factory=list)
    failures: dict[int, str] = field(default_factory=dict)
    clean: set[str] = field(default_factory=set)
    count: int = 0

    def take(self, rewriting: Rewriting, dry_run: bool) -> None:
        """Add the result of a pass."""
        self.count += 1
        self.failures.update(rewriting.failures)
        for done in rewriting.left:
            self.clean.update(s.path for s in done.unit.inputs)
        for done in rewriting.landed:
            self.clean.update(output.path for output in done.outputs)
        for done in [*rewriting.landed, *(rewriting.left if dry_run else ())]:
            if done.outputs or done.records_out < done.records_in:
                self.records += done.records_in - done.records_out
                self.rewritten.extend(done.unit.inputs)


# The units of a pass over a topic as it is, up to these ends; none when nothing is left to look at.
TasksOf = Callable[[TopicState, Mapping[int, int], Passes], list[Task]]


def run_passes(
    lake: Lake,
    topic: str,
    topic_id: str,
    tasks_of: TasksOf,
    executor: Executor,
    *,
    operation: str,
    parameters: Mapping[str, str],
    dry_run: bool = False,
    ends: Mapping[int, int] | None = None,
) -> Passes:
    """Pass over a topic until a pass has nothing to do below `ends`, None: those that it has now.

    Raises `UnknownTopicError`, `TopicChangedError`, `StorageError`, and `ContendedLogError` when others rewrote the
    same segments each time.
    """
    door = lake.log(topic).door
    passes = Passes()
    while passes.count < MOST_PASSES:
        with door.lock:
            state = door.refresh()
            require_topic(state, topic, topic_id)
            ends = ends or {p: state.end(p) for p in range(state.partitions)}
            tasks = tasks_of(state, ends, passes)
        if not tasks:
            return passes
        rewriting = rewrite(lake, topic, tasks, executor, operation=operation, parameters=parameters)
        passes.take(rewriting, dry_run)
    raise ContendedLogError(
        f"Topic '{topic}': others rewrote its segments each of {MOST_PASSES} times before the records could leave it."
        " Stop the other maintenance of this topic, and do it again."
    )
