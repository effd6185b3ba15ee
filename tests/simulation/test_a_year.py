"""A year in the life of two processes, one that writes and one that follows: neither comes to hold more and more.

Scaled: 4 entries a day stand for 100 appends a second, and 100 producers a day, which come for one record each, for
10,000. A day has a merge, what is older than a week goes, transactional ids come and are retired, and every entry is
followed by a request that is never answered and never repeated.
"""

import gc
import sys
import threading
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pytest
from support.faults import FaultyStorage
from support.logs import CountingIds, FakeClock, open_lake, quiet, values
from support.rewrites import merge
from support.shares import commit_alone

from tidelog.log.base.errors import OutcomeUnknownError, StorageUnavailableError
from tidelog.log.delta.actions import Action, Txn
from tidelog.log.door import commit_objects, unanswered
from tidelog.log.lake import Lake
from tidelog.log.records.checks import to_records
from tidelog.log.rules.sequences import ProducerBatch
from tidelog.log.rules.topics import Outcome
from tidelog.log.state import rewrites
from tidelog.log.storage import MemoryStorage
from tidelog.log.upkeep import background

ENTRIES_A_DAY = 4
PRODUCERS_AN_ENTRY = 25
DAYS_KEPT = 7
DAYS = 365


class Year:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.storage = FaultyStorage(MemoryStorage("year", self.clock), quiet)
        self.writer = open_lake(self.storage, self.clock)
        # Every checkpoint is of a day or so, and entries go after a quarter of one.
        config = {"log.checkpoint.interval": "12", "log.min.age.ms": str(6 * 3_600_000)}
        self.writer.create_topic("t", 1, config)
        self.follower = open_lake(self.storage, self.clock)
        self.ids = CountingIds(10**9)
        self.read = self.written = self.retired = 0

    def day(self) -> None:
        for _ in range(ENTRIES_A_DAY):
            self.append()
            self.leave_unanswered()
            self.transact()
            self.follow()
            self.clock.pass_s(86_400 / ENTRIES_A_DAY)
        merge(self.writer, "t", 0)
        self.writer.delete_records("t", {0: max(0, self.written - DAYS_KEPT * ENTRIES_A_DAY * PRODUCERS_AN_ENTRY)})
        self.writer.background.submit(lambda: None).result()

    def append(self) -> None:
        """A record of each of 25 producers, which are never seen again."""
        topic = self.writer.topic("t")
        batches = [ProducerBatch(self.written * 1_000_003 + n, 0, {0: (0, 1)}) for n in range(PRODUCERS_AN_ENTRY)]
        stager = topic.stager()
        records = to_records(values(*map(str, range(PRODUCERS_AN_ENTRY))), "t", topic.config(), self.clock.now_ms())
        stager.add(records, np.zeros(PRODUCERS_AN_ENTRY, np.int32))
        commit_alone(topic, stager.finish(), acks=1, producers=batches)
        self.written += PRODUCERS_AN_ENTRY

    def leave_unanswered(self) -> None:
        """Every other one is stored."""
        phase = "after" if self.written // PRODUCERS_AN_ENTRY % 2 else "before"

        def silent(method: str, path: str, at: str) -> None:
            if (method, at) == ("put_if_absent", phase):
                raise StorageUnavailableError("no answer")

        self.storage.hook = silent
        log, number = self.writer.log("t").door, self.written
        with pytest.raises(OutcomeUnknownError):
            log.commit(lambda _: Outcome((Txn("app", number),), None), request_id=self.ids.new(), timeout_s=0)
        self.storage.hook = quiet

    def transact(self) -> None:
        """A transactional id leaves its marker, and the one before is retired."""
        name, now_ms = "tidelog/transaction/{}", self.clock.now_ms()
        marks: list[Action] = [Txn(name.format(self.written), 1)]
        if self.retired:
            marks.append(Txn(name.format(self.retired), 1, now_ms))
        self.retired = self.written
        self.writer.commit("t", lambda _: Outcome(tuple(marks), None))

    def follow(self) -> None:
        for batch in self.follower.topic("t").read(0, self.read):
            self.read += batch.num_rows


def held(lake: Lake) -> int:
    """The bytes of all that is reached from a process's lake, but for its store, its clock, and code."""
    seen = {id(lake.storage), id(lake.clock), id(lake.ids)}
    code = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, threading.Thread)
    queue: list[Any] = [lake]
    total = 0
    while queue:
        one = queue.pop()
        if id(one) in seen or isinstance(one, code):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        queue.extend(gc.get_referents(one))
    return total


def test_neither_process_comes_to_hold_more(monkeypatch: pytest.MonkeyPatch) -> None:
    # What is bounded by a number is bounded sooner, so that a year of few entries shows it.
    monkeypatch.setattr(commit_objects, "MANY_UNSYNCED", 4)
    monkeypatch.setattr(unanswered, "MOST_REMEMBERED", 20)
    monkeypatch.setattr(background, "MARKS", 16)
    monkeypatch.setattr(rewrites, "MOST_REWRITES", 16)
    year = Year()
    weeks: list[tuple[int, int]] = []
    for day in range(DAYS):
        year.day()
        if day % 7 == 0:
            weeks.append((held(year.writer), held(year.follower)))
    assert year.read == year.written == DAYS * ENTRIES_A_DAY * PRODUCERS_AN_ENTRY
    for sizes in zip(*weeks, strict=True):
        spring, autumn = max(sizes[4:16]), max(sizes[-12:])
        assert autumn <= 1.1 * spring, sizes
