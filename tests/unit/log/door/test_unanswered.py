"""Requests that ended without an answer, and that no caller repeats: what a door keeps of them, and for how long."""

from dataclasses import replace

import pytest
from support.faults import FaultyStorage
from support.logs import CountingIds, FakeClock, created, entry, put_checkpoint

from tidelog.log.base.errors import OutcomeUnknownError, StorageUnavailableError
from tidelog.log.delta.actions import Entry, Txn, encode_entry
from tidelog.log.door.contract import Committed, Pending
from tidelog.log.door.topic_machine import topic_door
from tidelog.log.door.unanswered import MOST_REMEMBERED, Unanswered
from tidelog.log.rules.topics import Outcome
from tidelog.log.storage import MemoryStorage


def pending(version: int) -> Pending:
    return Pending(entry(version), b"bytes", f"answer {version}", 0.0)


def named(version: int, request: str) -> Entry:
    one = entry(version)
    return replace(one, info=replace(one.info, request_id=request))


def never(_: Entry) -> bool:
    return False


def test_it_is_open_until_an_entry_is_at_its_place() -> None:
    requests = Unanswered("t")
    requests.begin("a", pending(5))
    requests.passed(4, -1, never)
    assert "a" in requests
    assert requests.outcome("a") is None
    requests.saw(named(5, "another's"))
    requests.passed(5, -1, never)
    assert "a" not in requests  # it never came to be, and may be decided again
    assert requests.outcome("a") is None


def test_the_answer_of_one_that_landed_is_given_once() -> None:
    requests = Unanswered("t")
    requests.begin("a", pending(5))
    requests.saw(named(5, "a"))
    requests.passed(7, -1, never)
    assert "a" not in requests
    assert requests.outcome("a") == Committed(5, "answer 5", written=True)
    assert requests.outcome("a") is None


def test_what_was_read_of_strays_is_no_answer() -> None:
    requests = Unanswered("t")
    requests.begin("a", pending(5))
    requests.saw(named(5, "a"))
    requests.distrust(4)
    requests.passed(5, -1, never)
    assert requests.outcome("a") is None


def test_of_what_a_checkpoint_holds_the_state_tells() -> None:
    requests = Unanswered("t")
    for request, version in (("there", 5), ("open to doubt", 6), ("after it", 9)):
        requests.begin(request, pending(version))
    requests.passed(9, 8, lambda one: one.version == 5)
    assert requests.outcome("there") == Committed(5, "answer 5", written=True)
    for _ in range(2):
        with pytest.raises(OutcomeUnknownError, match=r"open to doubt was committed as entry 6 of t is not known"):
            requests.outcome("open to doubt")
    assert requests.outcome("after it") is None


def test_the_oldest_are_forgotten() -> None:
    requests = Unanswered("t")
    for version in range(MOST_REMEMBERED + 2):
        requests.begin(f"r{version}", pending(version))
        requests.saw(named(version, f"r{version}"))
        requests.passed(version, -1, never)
    found = [requests.outcome(f"r{version}") is not None for version in (0, 1, 2, MOST_REMEMBERED + 1)]
    assert found == [False, False, True, True]


@pytest.mark.parametrize("stored", [True, False])
def test_a_door_that_goes_on_keeps_none_of_their_entries(stored: bool) -> None:
    """Forty puts without an answer, each past by the next commit; of those that were stored the answers stay."""
    clock = FakeClock()
    memory = MemoryStorage("log", clock)
    memory.put_if_absent("t/_delta_log/00000000000000000000.json", encode_entry(created().actions, created().info))
    silent = [False]

    def hook(method: str, path: str, phase: str) -> None:
        if silent[0] and (method, phase) == ("put_if_absent", "after" if stored else "before"):
            raise StorageUnavailableError("no answer")

    door = topic_door(FaultyStorage(memory, hook), "t", clock, CountingIds())
    door.refresh()
    for n in range(40):
        silent[0] = True
        with pytest.raises(OutcomeUnknownError):
            door.commit(lambda _, n=n: Outcome((Txn("app", n),), n), request_id=f"r{n}", timeout_s=0)
        silent[0] = False
        door.commit(lambda _, n=n: Outcome((Txn("other", n),), None))
    assert [f"r{n}" in door._unanswered for n in range(40)] == [False] * 40
    again = door.commit(lambda _: Outcome((Txn("app", 40),), "decided again"), request_id="r3")
    assert (again.response, again.version) == ((3, 7) if stored else ("decided again", 41))


def test_a_request_that_the_log_was_trimmed_past_stays_in_doubt() -> None:
    clock = FakeClock()
    memory = MemoryStorage("log", clock)
    memory.put_if_absent("t/_delta_log/00000000000000000000.json", encode_entry(created().actions, created().info))

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before"):
            raise StorageUnavailableError("no answer")

    storage = FaultyStorage(memory, lambda *call: None)
    door = topic_door(storage, "t", clock, CountingIds())
    door.refresh()
    storage.hook = hook
    with pytest.raises(OutcomeUnknownError):
        door.commit(lambda _: Outcome((Txn("app", 1),), None), request_id="mine", timeout_s=0)
    storage.hook = lambda *call: None
    other = topic_door(memory, "t", clock, CountingIds(100))
    for n in range(3):
        other.commit(lambda _, n=n: Outcome((Txn("theirs", n),), None))
    put_checkpoint(memory, "t", 3)
    memory.put("t/_tidelog/floor/00000000000000000002", b"")
    clock.pass_s(60)
    for _ in range(2):
        with pytest.raises(OutcomeUnknownError, match="the log was trimmed past it"):
            door.commit(lambda _: Outcome((Txn("app", 2),), None), request_id="mine")
    assert "mine" not in door._unanswered
    assert door.refresh().txn("app") is None
