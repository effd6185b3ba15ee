"""Flat combining: one caller works for all that wait, all get an answer, and none is left waiting."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from support.waiting import eventually

from tidelog.log.rows.flat_combining import Combiner, Waiter


class InterruptedLineError(Exception):
    pass


class Line:
    """A combiner whose work doubles numbers; `held` batches wait until `go`."""

    def __init__(self, most: int = 100) -> None:
        self.batches: list[list[int]] = []
        self.begun, self.go = threading.Event(), threading.Event()
        self.go.set()
        self.failing: BaseException | None = None
        self.combiner: Combiner[int] = Combiner(self.work, most, InterruptedLineError)

    def work(self, waiters: Sequence[Waiter[int]]) -> None:
        self.batches.append([p.request for p in waiters])
        self.begun.set()
        assert self.go.wait(30)
        if self.failing is not None:
            failing, self.failing = self.failing, None
            raise failing
        for waiter in waiters:
            waiter.answer(2 * waiter.request)

    def run(self, request: int) -> Any:
        return self.combiner.run(request)

    def hold(self) -> None:
        self.begun.clear()
        self.go.clear()


def started(call: Callable[[], Any], answers: list[Any]) -> threading.Thread:
    """A thread that notes the outcome of the call."""

    def run() -> None:
        try:
            answers.append(call())
        except BaseException as e:
            answers.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def interrupt_main() -> None:
    """Ctrl-C in the main thread, which may be waiting for a lock."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def line_up(line: Line, threads: int) -> tuple[list[threading.Thread], list[Any]]:
    """One caller whose work is held, and a number of callers that wait behind it."""
    answers: list[Any] = []
    line.hold()
    first = started(lambda: line.run(0), answers)
    assert line.begun.wait(30)
    others = []
    for i in range(1, threads + 1):
        others.append(started(lambda i=i: line.run(i), answers))  # type: ignore[misc]
        eventually(lambda i=i: len(line.combiner._queue) == i, "the callers wait")  # type: ignore[misc]
    return [first, *others], answers


def test_a_caller_alone_works_for_itself() -> None:
    line = Line()
    assert line.run(3) == 6
    assert line.batches == [[3]]


def test_those_who_wait_are_worked_for_at_once_and_in_their_order() -> None:
    line = Line()
    threads, answers = line_up(line, 20)
    line.go.set()
    for thread in threads:
        thread.join(30)
    assert line.batches == [[0], list(range(1, 21))]
    assert sorted(answers) == [2 * i for i in range(21)]


def test_a_long_line_is_worked_off_in_turns() -> None:
    line = Line(most=3)
    threads, _ = line_up(line, 7)
    line.go.set()
    for thread in threads:
        thread.join(30)
    assert line.batches == [[0], [1, 2, 3], [4, 5, 6], [7]]


def test_an_interrupted_leader_leaves_nobody_waiting() -> None:
    line = Line()
    threads, answers = line_up(line, 2)
    line.failing = KeyboardInterrupt()
    line.go.set()
    for thread in threads:
        thread.join(30)
    assert {type(a) for a in answers} == {KeyboardInterrupt, int}
    assert sorted(a for a in answers if isinstance(a, int)) == [2, 4]


def test_those_whom_an_interrupted_leader_took_along_hear_of_it() -> None:
    line = Line()
    threads, answers = line_up(line, 3)
    real = line.work

    def fail_second(waiters: Sequence[Waiter[int]]) -> None:
        if len(waiters) == 3:
            raise KeyboardInterrupt
        real(waiters)

    line.combiner._work = fail_second
    line.go.set()
    for thread in threads:
        thread.join(30)
    kinds = sorted(type(a).__name__ for a in answers)
    assert kinds == ["InterruptedLineError", "InterruptedLineError", "KeyboardInterrupt", "int"]
    line.combiner._work = real
    assert line.run(5) == 10


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C interrupts the main thread, also in a process that was started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("leads_next", [True, False])
def test_a_waiting_caller_that_is_interrupted_leaves_the_line_to_the_others(leads_next: bool) -> None:
    line = Line()
    threads, answers = line_up(line, 0 if leads_next else 1)
    waiting = len(line.combiner._queue)

    def one_more() -> bool:
        return eventually(lambda: len(line.combiner._queue) == waiting + 1, "one more caller waits")

    interrupter = started(lambda: one_more() and interrupt_main(), [])
    with pytest.raises(KeyboardInterrupt):
        line.run(9)
    interrupter.join(30)
    threads.append(started(lambda: line.run(7), answers))
    one_more()
    line.go.set()
    for thread in threads:
        thread.join(30)
    assert [9] not in line.batches
    assert sorted(answers) == ([0, 14] if leads_next else [0, 2, 14])
    assert line.run(4) == 8
