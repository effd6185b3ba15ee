"""Random histories of a table of rows: several processes, stores that fail, power that goes, upkeep in between."""

import random
from typing import Any

import pytest
from support.logs import put_checkpoint
from support.row_tables import NAME, Table, WordsFold, put, words

from tidelog.check.lake import check_lake
from tidelog.log.base.errors import (
    ContendedLogError,
    OutcomeUnknownError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
)
from tidelog.log.rows.row_log import RowLog
from tidelog.log.upkeep.trim import trim


class History:
    """One seed's run. Every word is written once, so that what is there tells what became of each commit."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.failing = 0.0
        self.table = Table(self.faults)
        self.logs: list[RowLog[WordsFold]] = [self.table.log, self.table.reopened(), self.table.reopened()]
        self.acknowledged: dict[str, int] = {}
        self.unknown: dict[str, int] = {}

    def faults(self, method: str, path: str, phase: str) -> None:
        if self.random.random() >= self.failing:
            return
        full = method in ("put", "put_if_absent") and phase == "before" and self.random.random() < 0.3
        raise StorageFullError("full") if full else StorageUnavailableError("no answer")

    def commit(self, number: int) -> None:
        word = f"w{number}"
        self.failing = self.random.choice([0.0, 0.0, 0.05, 0.3])
        try:
            put(self.random.choice(self.logs), **{word: number})
        except (OutcomeUnknownError, ContendedLogError):
            self.unknown[word] = number
        except StorageError:
            pass  # nothing was committed
        else:
            self.acknowledged[word] = number
        finally:
            self.failing = 0.0

    def upkeep(self) -> None:
        log = self.random.choice(self.logs)
        what = self.random.choice(["compact", "checkpoint", "trim", "power", "restart"])
        if what == "compact":
            words(log)
            log.chores.compact(fewest=3)
        elif what == "checkpoint":
            words(log)
            if log.version >= 0:
                put_checkpoint(self.table.storage, NAME, log.version)
        elif what == "trim":
            trim(self.table.storage, NAME, 10_000)
            self.table.clock.pass_s(20)
        elif what == "power":
            self.table.storage.inner.lose_power()
            self.logs = [self.table.reopened() for _ in self.logs]
        else:
            self.logs[self.random.randrange(3)] = self.table.reopened()

    def judge(self) -> None:
        seen = words(self.table.reopened())
        assert all(seen.get(word) == number for word, number in self.acknowledged.items())
        others = {word: number for word, number in seen.items() if word not in self.acknowledged}
        assert others.items() <= self.unknown.items()
        assert {tuple(sorted(words(log).items())) for log in self.logs} == {tuple(sorted(seen.items()))}


def run(seed: int) -> History:
    history = History(seed)
    for number in range(40):
        history.commit(number)
        history.table.clock.pass_s(history.random.choice([0, 0, 1, 4]))
        if history.random.random() < 0.4:
            history.upkeep()
        history.judge()
    return history


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_what_is_acknowledged_is_there_once_and_for_all(first: int) -> None:
    for seed in range(first, first + 10):
        history = run(seed)
        report = check_lake(history.table.storage, [NAME], deep=True, clock=history.table.clock)
        broken: list[Any] = [f for f in report.findings if f.severity != "info"]
        assert not broken, (seed, broken)
        assert len(history.acknowledged) > 10
