"""Many callers of one table of rows: they share entries, and each hears of its own request alone."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from support.row_tables import NAME, Table, WordsFold, put, says, words
from support.waiting import eventually

from tidelog.log.base.errors import InvalidConfigError, InvalidRecordError
from tidelog.log.rows.rules import RowOutcome


def run_all(calls: list[Callable[[], Any]]) -> list[Any]:
    """Run each in a thread of its own; results or exceptions, in order."""
    answers: list[Any] = [None] * len(calls)

    def run(i: int) -> None:
        try:
            answers[i] = calls[i]()
        except Exception as e:
            answers[i] = e

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return answers


class Gate:
    """Holds the first file's put until `count` more callers wait behind it."""

    def __init__(self) -> None:
        self.reached, self.go = threading.Event(), threading.Event()

    def __call__(self, method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before") and not self.reached.is_set():
            self.reached.set()
            assert self.go.wait(30)


def merged(calls: list[Callable[[], Any]], table: Table) -> list[Any]:
    """Run calls while another entry is held up, so that they all wait at once."""
    gate = Gate()
    put(table.log, first=0)
    table.storage.hook = gate
    blocker = threading.Thread(target=put, args=(table.log,), kwargs={"held": 1})
    blocker.start()
    assert gate.reached.wait(30)
    release = threading.Thread(
        target=lambda: eventually(lambda: len(table.log._combiner._queue) == len(calls), "all wait") and gate.go.set()
    )
    release.start()
    answers = run_all(calls)
    blocker.join(30)
    release.join(30)
    return answers


def test_callers_that_wait_at_once_share_an_entry_and_none_sees_less_than_those_before() -> None:
    table = Table()

    def count(fold: WordsFold) -> RowOutcome[int]:
        n = fold.words.get("n", 0) + 1
        return RowOutcome([says("n", n)], n)

    answers = merged([lambda: table.log.commit(count)] * 20, table)
    assert sorted(answers) == list(range(1, 21))
    assert words(table.reopened())["n"] == 20
    assert len(table.entries()) == 4  # creation, first, held, and one for all twenty
    assert len(table.files()) == 3


def test_a_refusal_is_heard_by_its_caller_alone() -> None:
    table = Table()

    def refuse(fold: WordsFold) -> RowOutcome[None]:
        raise InvalidConfigError("not me")

    def broken(fold: WordsFold) -> RowOutcome[None]:
        raise ZeroDivisionError

    calls: list[Callable[[], Any]] = [lambda: table.log.commit(refuse), lambda: table.log.commit(broken)]
    calls += [lambda i=i: put(table.log, **{f"k{i}": i}) for i in range(5)]
    answers = merged(calls, table)
    assert [type(a) for a in answers] == [InvalidConfigError, ZeroDivisionError] + [type(None)] * 5
    assert words(table.reopened()) == {"first": 0, "held": 1, **{f"k{i}": i for i in range(5)}}


@pytest.mark.parametrize("row", [{"key": "\ud800"}, {"key": "a", "value": 2**63}, {"key": 1}, {"word": "a"}])
def test_a_row_that_cant_be_written_is_its_callers_alone(row: dict) -> None:
    table = Table()
    calls: list[Callable[[], Any]] = [
        lambda: table.log.commit(lambda _: RowOutcome([says("a", 1)], "done")),
        lambda: table.log.commit(lambda _: RowOutcome([says("b", 2), row], "done")),
    ]
    good, bad = merged(calls, table)
    assert (good, type(bad)) == ("done", InvalidRecordError)
    assert words(table.log) == words(table.reopened()) == {"first": 0, "held": 1, "a": 1}


def test_a_lost_race_is_decided_again_on_what_is_there_and_leaves_no_file() -> None:
    table = Table()
    other = table.reopened()
    put(table.log, n=1)

    def once(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before"):
            table.storage.hook = lambda *call: None
            put(other, n=10)

    table.storage.hook = once

    def double(fold: WordsFold) -> RowOutcome[int]:
        return RowOutcome([says("n", 2 * fold.words["n"])], 2 * fold.words["n"])

    assert table.log.commit(double) == 20
    assert words(table.reopened()) == {"n": 20}
    named = {f"{NAME}/{file.path}" for file in table.log.door.state.files}
    assert set(table.files()) == named
