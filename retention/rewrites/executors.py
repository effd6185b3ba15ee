"""Executors of rewrite units: in this process here, on Spark in `tidelog.jobs`."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Protocol, TypeVar

from tidelog.log.base.clock import Ids
from tidelog.log.storage.port import Storage
from tidelog.retention.rewrites.execute import Keep, Operation, execute_unit
from tidelog.retention.rewrites.units import Rewritten, Unit

# A unit keeps one core busy: it compresses.
THREADS = 2

T = TypeVar("T")


@dataclass(frozen=True)
class Task:
    """A unit, the records that stay (None: all), and what is done with the unit. Picklable."""

    unit: Unit
    keep: Keep | None = None
    operation: Operation = execute_unit

    def run(self, storage: Storage, ids: Ids) -> Rewritten:
        """Do it, and say what became of the unit."""
        return self.operation(storage, self.unit, ids, self.keep)


class Executor(Protocol):
    """Runs tasks, anywhere and in any order."""

    def run(self, tasks: Iterable[Task]) -> Iterator[Rewritten]:
        """What became of each task, as it ends. A unit that failed says so; the others go on."""


class LocalExecutor:
    """Runs tasks in this process, `threads` at once."""

    def __init__(self, storage: Storage, ids: Ids, threads: int = THREADS) -> None:
        self._storage = storage
        self._ids = ids
        self._threads = threads

    def run(self, tasks: Iterable[Task]) -> Iterator[Rewritten]:
        """What became of each task, as it ends."""
        return run_bounded(self._threads, (partial(task.run, self._storage, self._ids) for task in tasks))


def run_bounded(threads: int, calls: Iterable[Callable[[], T]]) -> Iterator[T]:
    """The answers of calls, of which `threads` run at once, as they end. A call is taken when a thread is free."""
    waiting = iter(calls)
    running: set[Future[T]] = set()
    with ThreadPoolExecutor(threads, thread_name_prefix="tidelog-units") as pool:
        while True:
            running.update(pool.submit(call) for call in islice(waiting, threads - len(running)))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
