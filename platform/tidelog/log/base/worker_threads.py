"""Threads that take work off others."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Helpers(ThreadPoolExecutor):
    """Up to `max_workers` threads that take work off others, each started when it is first needed.

    Where no thread can be had, the caller does the work: in a forked process, which has only the thread that forked,
    and at the program's end, when executors are closed and a handler of `atexit` may still flush.
    """

    def __init__(self, max_workers: int, thread_name_prefix: str = "") -> None:
        super().__init__(max_workers, thread_name_prefix)
        self._process = os.getpid()

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Have it done, by a helper as long as there are any."""
        if os.getpid() == self._process:
            try:
                return super().submit(fn, *args, **kwargs)
            except RuntimeError:
                pass
        done: Future[R] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except BaseException as e:
            done.set_exception(e)
        return done

    def run_together(self, tasks: Sequence[Callable[[], R]]) -> list[R]:
        """Run tasks at the same time, the first one in the caller's thread; their results in the order of the tasks.

        When it returns or raises, no task runs any more. A thread stops at the first error of its tasks; of several
        errors one is raised.
        """
        threads = min(len(tasks), self._max_workers + 1)
        shares = [tasks[i::threads] for i in range(threads)]
        begun = [self.submit(_one_by_one, share) for share in shares[1:]]
        try:
            results = [_one_by_one(share) for share in shares[:1]]
        finally:
            for share in begun:
                share.exception()  # which waits for its end
        results += [share.result() for share in begun]
        return [results[i % threads][i // threads] for i in range(len(tasks))]


def _one_by_one(tasks: Sequence[Callable[[], R]]) -> list[R]:
    return [task() for task in tasks]
