"""Executors: who carries units out. In this process here; on Spark in `tidelog.jobs`."""

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from tidelog.log.base.clock import Ids
from tidelog.log.storage.port import Storage
from tidelog.retention.rewrites.execute import Keep, carry_out
from tidelog.retention.rewrites.units import Rewritten, Unit

# A unit keeps one core busy: it compresses.
THREADS = 2


@dataclass(frozen=True)
class Task:
    """A unit and which of its records stay; None: all. Picklable."""

    unit: Unit
    keep: Keep | None = None


class Executor(Protocol):
    """Carries tasks out, anywhere and in any order."""

    def run(self, tasks: Iterable[Task]) -> Iterator[Rewritten]:
        """What became of each task, as it ends. A unit that failed says so; the others go on."""
        ...


class LocalExecutor:
    """Carries tasks out in this process, `threads` at once."""

    def __init__(self, storage: Storage, ids: Ids, threads: int = THREADS) -> None:
        self._storage = storage
        self._ids = ids
        self._threads = threads

    def run(self, tasks: Iterable[Task]) -> Iterator[Rewritten]:
        """What became of each task, as it ends."""
        waiting = iter(tasks)
        with ThreadPoolExecutor(self._threads, thread_name_prefix="tidelog-units") as pool:
            running: set[Future[Rewritten]] = set()
            while True:
                for task in islice(waiting, self._threads - len(running)):
                    running.add(pool.submit(carry_out, self._storage, task.unit, self._ids, task.keep))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
