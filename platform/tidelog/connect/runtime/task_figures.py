"""What a task's run counts, by the names of Connect's beans, and what its status says while it tries again."""

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable
from enum import Enum
from typing import Final

from tidelog.operations.connector_statuses import RunState

# Of which time a rate is the mean (Kafka's metrics.num.samples times metrics.sample.window.ms).
WINDOW_S: Final = 60.0
_BUCKET_S: Final = 1.0
logger = logging.getLogger("tidelog.connect")
# A status is a record: while nothing but the count is new, it is written this often.
SAID_EVERY_S: Final = 30.0


class TaskFigure(Enum):
    """A count: its bean, its name, and whether Connect has a rate of it beside the total."""

    POLLED = "source-task-metrics", "source-record-poll", True
    WRITTEN = "source-task-metrics", "source-record-write", True
    READ = "sink-task-metrics", "sink-record-read", True
    SENT = "sink-task-metrics", "sink-record-send", True
    COMMITTED = "sink-task-metrics", "offset-commit-completion", True
    FAILURES = "task-error-metrics", "total-record-failures", False
    ERRORS = "task-error-metrics", "total-record-errors", False
    SKIPPED = "task-error-metrics", "total-records-skipped", False
    RETRIES = "task-error-metrics", "total-retries", False
    LOGGED = "task-error-metrics", "total-errors-logged", False
    DEAD_LETTERS = "task-error-metrics", "deadletterqueue-produce-requests", False


# What sources, sinks, and tasks of both kinds count.
OF_SOURCES: Final = (TaskFigure.POLLED, TaskFigure.WRITTEN)
OF_SINKS: Final = (TaskFigure.READ, TaskFigure.SENT, TaskFigure.COMMITTED, TaskFigure.DEAD_LETTERS)
OF_ALL: Final = (
    TaskFigure.FAILURES, TaskFigure.ERRORS, TaskFigure.SKIPPED, TaskFigure.RETRIES, TaskFigure.LOGGED,
)  # fmt: skip


def figures_of(*, source: bool) -> tuple[TaskFigure, ...]:
    """What a source's or a sink's task counts."""
    return (*(OF_SOURCES if source else OF_SINKS), *OF_ALL)


class TaskFigures:
    """Counts of one run. Its thread adds, any other reads. `now_s`: an elapsed clock."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._began_s = now_s()
        self._lock = threading.Lock()
        self._totals: Counter[TaskFigure] = Counter()
        # (the bucket's time, what was added in it), the newest last.
        self._buckets: deque[tuple[float, Counter[TaskFigure]]] = deque()

    def add(self, figure: TaskFigure, count: int = 1) -> None:
        """Count."""
        if not count:
            return
        now_s = self._now_s()
        with self._lock:
            self._totals[figure] += count
            if not self._buckets or now_s - self._buckets[-1][0] >= _BUCKET_S:
                self._buckets.append((now_s, Counter()))
                self._forget(now_s)
            self._buckets[-1][1][figure] += count

    def total(self, figure: TaskFigure) -> int:
        """How many there were in all."""
        return self._totals[figure]

    def rate(self, figure: TaskFigure) -> float:
        """How many there were a second, over the last minute, or since the run began."""
        now_s = self._now_s()
        with self._lock:
            self._forget(now_s)
            found = sum(bucket[figure] for _, bucket in self._buckets)
        return found / max(_BUCKET_S, min(WINDOW_S, now_s - self._began_s))

    def _forget(self, now_s: float) -> None:
        while self._buckets and self._buckets[0][0] <= now_s - WINDOW_S:
            self._buckets.popleft()


class RetryNotes:
    """Counts the tries of one run that failed and are made again; one thread calls it.

    `show`: writes a status of (state, trace, retries). `now_s`: an elapsed clock. `named`: the run, for the log, whose
    secrets `hide` takes out.
    """

    def __init__(
        self, show: Callable[[RunState, str | None, int], None], now_s: Callable[[], float], named: str,
        hide: Callable[[str], str] = str,
    ) -> None:  # fmt: skip
        self._show = show
        self._now_s = now_s
        self._named = named
        self._hide = hide
        self._trace = ""
        self._said_s = 0.0
        self.count = 0

    def failed(self, error: Exception) -> None:
        """A try has failed, and is made again: the status is RESTARTING, with the reason and the count."""
        self.count += 1
        trace = f"{type(error).__name__}: {error}"
        now_s = self._now_s()
        if trace == self._trace and now_s - self._said_s < SAID_EVERY_S:
            return
        self._trace, self._said_s = trace, now_s
        logger.warning("Tried again: run=%s retries=%d error=%s", self._named, self.count, self._hide(trace))
        self._show(RunState.RESTARTING, trace, self.count)

    def succeeded(self) -> None:
        """A try has succeeded: the status is RUNNING again."""
        if self.count:
            logger.info("Goes on: run=%s retries=%d", self._named, self.count)
            self.count, self._trace = 0, ""
            self._show(RunState.RUNNING, None, 0)
