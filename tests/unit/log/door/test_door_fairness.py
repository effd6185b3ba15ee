"""A door at a distant store leaves every eighth entry to others, and then goes on."""

import threading
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from support.faults import FaultyStorage
from support.logs import CountingIds, FakeClock, created, entry, quiet

from tidelog.log.base.worker_threads import Helpers
from tidelog.log.config.topics_and_lakes import Codec, TopicConfig
from tidelog.log.delta.actions import Action, Txn, encode_entry
from tidelog.log.door.fairness import FORGIVEN_S, PAUSE_S
from tidelog.log.door.topic_machine import topic_door
from tidelog.log.records.checks import to_records
from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.staging import Stager, Target
from tidelog.log.storage import MemoryStorage


class Far(FaultyStorage):
    """A store that says it is behind a network."""

    def __init__(self, inner: MemoryStorage) -> None:
        super().__init__(inner, quiet)
        self.threads = Helpers(8)

    def helpers(self) -> Helpers:
        return self.threads


class Log:
    """A log whose door has committed entry 1; others' entries are 2 to 7."""

    def __init__(self, *, far: bool = True, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.memory = MemoryStorage("log", self.clock)
        self.put(0, *created().actions)
        storage = Far(self.memory) if far else FaultyStorage(self.memory, quiet)
        self.door = topic_door(storage, "t", self.clock, CountingIds())
        self.commit()
        for version in range(2, 8):
            self.put(version, Txn("theirs", version))

    def put(self, version: int, *actions: Action) -> None:
        data = encode_entry(actions, entry(version, request="other").info)
        assert self.memory.put_if_absent(f"t/_delta_log/{version:020d}.json", data)

    def commit(self, timeout_s: float | None = None) -> tuple[int, float]:
        """The entry that a commit became, and the seconds of its backoff."""
        number, began_s = self.door.state.version + 1, self.clock.seconds
        done = self.door.commit(lambda state: Outcome((Txn("mine", number),), None), timeout_s=timeout_s)
        return done.version, self.clock.seconds - began_s


def test_who_has_just_committed_waits() -> None:
    version, slept_s = Log().commit()
    assert version == 8
    assert slept_s == pytest.approx(PAUSE_S, abs=0.01)


def test_who_committed_long_ago_does_not() -> None:
    log = Log()
    log.clock.pass_s(FORGIVEN_S)
    assert log.commit() == (8, pytest.approx(0, abs=0.01))


def test_nobody_waits_at_a_near_store() -> None:
    assert Log(far=False).commit() == (8, pytest.approx(0, abs=0.01))


def test_the_wait_is_what_somebody_else_gets_in_by() -> None:
    class Another(FakeClock):
        then: Callable[[], None] | None = None

        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if seconds > 0.5 and self.then is not None:
                self.then()
                self.then = None

    clock = Another()
    log = Log(clock=clock)
    clock.then = lambda: log.put(8, Txn("theirs", 8))
    version, slept_s = log.commit()
    assert version == 9
    assert slept_s == pytest.approx(PAUSE_S, abs=0.01)


def test_a_commit_whose_time_is_up_tries_all_the_same() -> None:
    version, _ = Log().commit(timeout_s=0.1)
    assert version == 8


def test_the_segments_of_an_entry_are_put_beside_one_another() -> None:
    """Each put waits until all of them have begun."""
    partitions = 8
    met = threading.Barrier(partitions, timeout=20)

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before"):
            met.wait()

    storage = Far(MemoryStorage("m"))
    storage.hook = hook
    target = Target("t", "id", 1, partitions, 1 << 30, Codec("none", None))
    stager = Stager(storage, target, CountingIds())
    records = to_records(pa.table({"value": [b"%d" % i for i in range(partitions)]}), "t", TopicConfig.parse({}), 0)
    stager.add(records, np.arange(partitions, dtype=np.int32))
    assert [staged.partition for staged in stager.finish()] == list(range(partitions))
