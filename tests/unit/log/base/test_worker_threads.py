"""Threads that take work off others: together, to the end, and by the caller where there are none."""

import os
import threading
from collections.abc import Callable

import pytest

from tidelog.log.base.worker_threads import Helpers


@pytest.mark.parametrize("count", range(9))
def test_results_are_in_the_order_of_the_tasks(count: int) -> None:
    with Helpers(3) as helpers:
        assert helpers.run_together([lambda i=i: i * i for i in range(count)]) == [i * i for i in range(count)]


def test_tasks_run_at_the_same_time_and_the_first_in_the_callers_thread() -> None:
    together = threading.Barrier(4)

    def task() -> int:
        together.wait(timeout=60)
        return threading.get_ident()

    with Helpers(3) as helpers:
        threads = helpers.run_together([task] * 4)
    assert (len(set(threads)), threads[0]) == (4, threading.get_ident())


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_is_raised_once_no_task_runs(failing: int) -> None:
    """A caller closes the files that its tasks use."""
    failed, ended = threading.Event(), threading.Event()

    def fail() -> None:
        failed.set()
        raise KeyError

    def go_on() -> None:
        failed.wait(60)
        ended.set()

    tasks: list[Callable[[], None]] = [go_on]
    tasks.insert(failing, fail)
    with Helpers(1) as helpers, pytest.raises(KeyError):
        helpers.run_together(tasks)
    assert ended.is_set()


def test_a_forked_process_does_its_work_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    with Helpers(1) as helpers:
        assert helpers.submit(threading.get_ident).result(60) != threading.get_ident()
        monkeypatch.setattr(os, "getpid", lambda: 4321)
        assert helpers.submit(threading.get_ident).result(0) == threading.get_ident()
        assert helpers.run_together([threading.get_ident] * 2) == [threading.get_ident()] * 2


def test_so_does_a_caller_at_the_programs_end() -> None:
    helpers = Helpers(1)
    helpers.shutdown()
    assert helpers.submit(threading.get_ident).result(0) == threading.get_ident()
    assert isinstance(helpers.submit(int, "x").exception(0), ValueError)
