"""Threads that take work off others."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Helpers(ThreadPoolExecutor):
    """Threads that take work off others. At the program's end they take none: then its caller does it.

    A program may flush as late as in a handler of `atexit`, when executors are closed already.
    """

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Have it done, by a helper as long as there are any."""
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:
            done: Future[R] = Future()
            try:
                done.set_result(fn(*args, **kwargs))
            except BaseException as e:
                done.set_exception(e)
            return done
