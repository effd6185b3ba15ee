"""A commit right after a look at the head, which met no other writer's entry, goes ahead without another look."""

from typing import Any

import pytest
from support.faults import FaultyStorage
from support.logs import Calls, CountingIds, FakeClock, created, entry, quiet

from tidelog.log.base.errors import OutcomeUnknownError, StorageUnavailableError, UnknownTopicError
from tidelog.log.delta.actions import Txn, encode_entry
from tidelog.log.door.commit_loop import Door
from tidelog.log.door.contract import RetryPolicy
from tidelog.log.door.topic_machine import topic_machine
from tidelog.log.rules.topics import Outcome
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage import MemoryStorage

LOOK, PUT = "get", "put_if_absent"


class Log:
    """A log with a door that has just seen its head, and the calls that it makes from then on."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.calls = Calls()
        self.memory = MemoryStorage("log", self.clock)
        self.storage = FaultyStorage(self.memory, quiet)
        self.others = 0
        self.put(0, *created().actions)
        self.door: Door[TopicState] = Door(
            self.storage, "t", topic_machine("t"), self.clock, CountingIds(), RetryPolicy(timeout_s=5.0)
        )
        self.door.refresh()
        self.door.refresh()
        self.storage.hook = self.calls

    def put(self, version: int, *actions: Any) -> None:
        data = encode_entry(actions, entry(version, request="other").info)
        assert self.memory.put_if_absent(f"t/_delta_log/{version:020d}.json", data)

    def theirs(self) -> None:
        """Another process's next entry."""
        self.others += 1
        self.put(self.door.state.version + 1, Txn("theirs", self.others))

    def commit(self, **options: Any) -> list[str]:
        """Commit a marker; the calls that it took."""
        number = self.door.state.version + 1
        self.door.commit(lambda state: Outcome((Txn("app", number),), None), **options)
        return self.calls.take()


def test_a_commit_after_a_look_is_one_put() -> None:
    assert Log().commit() == [PUT]


def test_an_entry_whose_first_put_had_no_answer_does_not_show_where_the_head_was() -> None:
    """Another attempt of it may have been there, and gone, before the one that was answered: the head is looked at."""
    log = Log()
    unanswered: list[str] = []

    def lose_the_first(method: str, path: str, phase: str) -> None:
        if (method, phase) == (PUT, "before") and not unanswered:
            unanswered.append(path)
            log.clock.pass_s(3)
            raise StorageUnavailableError("no answer")
        log.calls(method, path, phase)

    log.storage.hook = lose_the_first
    assert log.commit() == [PUT]
    assert unanswered
    assert log.commit() == [LOOK, PUT]


def test_commits_one_after_another_never_look() -> None:
    """Each entry that is created shows where the head was."""
    log = Log()
    for _ in range(100):
        log.clock.pass_s(1)
        assert log.commit() == [PUT]


@pytest.mark.parametrize(("pause_s", "calls"), [(2.5, [PUT]), (2.6, [LOOK, PUT]), (5.1, [LOOK, "list_after", PUT])])
def test_after_a_pause_the_head_is_looked_at(pause_s: float, calls: list[str]) -> None:
    """And the floors, too, by a writer that was away for so long that entries may have been deleted."""
    log = Log()
    log.clock.pass_s(pause_s)
    assert log.commit() == calls


def test_who_is_overtaken_decides_again_and_looks_first_from_then_on() -> None:
    log = Log()
    log.theirs()
    asked: list[int] = []

    def decide(state: TopicState) -> Outcome[int]:
        asked.append(state.version)
        return Outcome((Txn("app", 1),), state.txn("theirs") or 0)

    done = log.door.commit(decide)
    assert (done.version, done.response, asked) == (2, 1, [0, 1])
    log.calls.take()
    log.theirs()
    assert log.commit() == [LOOK, LOOK, PUT]
    assert log.commit() == [LOOK, PUT]
    assert log.commit() == [PUT]


def test_a_refusal_by_what_was_known_is_looked_into() -> None:
    log = Log()
    log.theirs()

    def decide(state: TopicState) -> Outcome[str]:
        if state.txn("theirs") is None:
            raise UnknownTopicError("it is not there")
        return Outcome((Txn("app", 1),), "it is there")

    assert log.door.commit(decide).response == "it is there"
    assert log.calls.take() == [LOOK, LOOK, PUT]


def test_a_refusal_at_the_head_is_raised() -> None:
    log = Log()

    def decide(state: TopicState) -> Outcome[None]:
        raise UnknownTopicError("no")

    with pytest.raises(UnknownTopicError):
        log.door.commit(decide)
    assert log.calls.take() == [LOOK]


def test_that_there_is_nothing_to_do_is_looked_into() -> None:
    log = Log()
    log.theirs()
    done = log.door.commit(lambda state: Outcome((Txn("app", 1),) if state.txn("theirs") else (), None))
    assert (done.version, done.written) == (2, True)


def test_a_request_that_is_repeated_looks_for_its_entry_first() -> None:
    log = Log()

    def unanswered(method: str, path: str, phase: str) -> None:
        if (method == PUT and phase == "after") or method == LOOK:
            raise StorageUnavailableError("timed out")

    log.storage.hook = unanswered
    with pytest.raises(OutcomeUnknownError):
        log.commit(request_id="mine")
    log.storage.hook = log.calls
    log.calls.take()
    assert PUT not in log.commit(request_id="mine")
    assert log.door.state.version == 1


def test_a_put_whose_answer_was_lost_shows_no_head() -> None:
    """Another put of the same entry may have created it, and others gone on since."""
    log = Log()
    failed: list[str] = []

    def loses_one_answer(method: str, path: str, phase: str) -> None:
        log.calls(method, path, phase)
        if (method, phase) == (PUT, "after") and not failed:
            failed.append(path)
            raise StorageUnavailableError("timed out")

    log.storage.hook = loses_one_answer
    log.clock.pass_s(2)
    assert log.commit() == [PUT, PUT, LOOK]  # again, and there it is
    log.clock.pass_s(1)
    assert log.commit() == [LOOK, PUT]
