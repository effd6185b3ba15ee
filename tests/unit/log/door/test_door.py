"""The door under races and answers that don't come: at most one entry a request, none lost, none doubled."""

from collections.abc import Callable
from typing import Any

import pytest
from support.faults import FaultyStorage
from support.logs import (
    CountingIds,
    FakeClock,
    created,
    entry,
    memory_lake,
    open_lake,
    put_checkpoint,
    quiet,
    read,
    read_offsets,
    values,
)

from tidelog.log.base.errors import (
    ContendedLogError,
    OutcomeUnknownError,
    StorageFullError,
    StoragePermissionError,
    StorageUnavailableError,
    UnknownTopicError,
)
from tidelog.log.delta.actions import Action, Txn, encode_entry
from tidelog.log.door.commit_loop import Door
from tidelog.log.door.contract import RetryPolicy
from tidelog.log.door.topic_machine import topic_machine
from tidelog.log.rules.topics import Outcome
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage import MemoryStorage

RETRIES = RetryPolicy(timeout_s=5.0)


class Log:
    """A topic's log in memory, with one door to it and the words the tests need."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.memory = MemoryStorage("log", self.clock)
        self.storage = FaultyStorage(self.memory, quiet)
        self.put_entry(0, *created().actions)
        self.door = self.open(self.storage)

    def open(self, storage: Any) -> Door[TopicState]:
        return Door(storage, "t", topic_machine("t"), self.clock, CountingIds(), RETRIES)

    def put_entry(self, version: int, *actions: Action, request: str = "other") -> None:
        """Another process's entry."""
        data = encode_entry(actions, entry(version, request=request).info)
        assert self.memory.put_if_absent(f"t/_delta_log/{version:020d}.json", data)

    def entries(self) -> int:
        return len(list(self.memory.list_after("t/_delta_log")))

    def at(self, *points: tuple[str, str], act: Callable[[], None], times: int = 1) -> None:
        """Act at the first `times` calls of an entry's (method, phase)."""
        left = [times]

        def hook(method: str, path: str, phase: str) -> None:
            if (method, phase) in points and path.endswith(".json") and left[0]:
                left[0] -= 1
                act()

        self.storage.hook = hook


def mark(version: int) -> Callable[[TopicState], Outcome[str]]:
    """A decision that writes one marker; its answer says how often it was asked."""
    asked: list[int] = []

    def decide(state: TopicState) -> Outcome[str]:
        asked.append(state.version)
        return Outcome((Txn("app", version),), f"answer after {len(asked)}")

    return decide


def fail(error: Exception) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


UNAVAILABLE = StorageUnavailableError("timed out")
FULL = StorageFullError("no space")
PUT = "put_if_absent"


def test_a_lost_race_is_decided_again_after_the_winner() -> None:
    log = Log()
    log.at((PUT, "before"), act=lambda: log.put_entry(1, Txn("theirs", 1)))
    done = log.door.commit(mark(7))
    assert (done.version, done.written, done.response) == (2, True, "answer after 2")
    assert {"theirs", "app"} <= log.door.state.txns.keys()


def test_a_lost_race_costs_no_second_sync_of_its_segments() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    topic, other = lake.topic("t"), open_lake(storage.inner, clock).topic("t")
    synced: list[str] = []
    races = iter(("theirs", "theirs, too"))

    def lose_two_races(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("sync", "before"):
            synced.append(path)
        elif (method, phase) == (PUT, "before") and (value := next(races, None)):
            other.append(values(value), acks=1)

    storage.hook = lose_two_races
    assert topic.append(values("mine"), acks="all") == {0: (2, 3)}
    assert synced.count(synced[0]) == 1  # its own
    assert len(set(synced)) == 3  # those of earlier entries, too
    before = len(synced)
    assert topic.append(values("more"), acks="all") == {0: (3, 4)}
    assert len(synced) == before + 1


def test_nothing_to_do_writes_nothing() -> None:
    log = Log()
    done = log.door.commit(lambda state: Outcome((), "as it is"))
    assert (done.version, done.written, done.response, log.entries()) == (0, False, "as it is", 1)


def test_a_refusal_leaves_everything_as_it_was() -> None:
    log = Log()

    def refuse(state: TopicState) -> Outcome[None]:
        raise UnknownTopicError("no")

    with pytest.raises(UnknownTopicError):
        log.door.commit(refuse)
    assert log.entries() == 1
    assert log.door.commit(mark(1)).version == 1


# What happens to one put: (the points where the hook acts, what it does, how often).
ANSWERS = {
    "stored, then an error": ([(PUT, "after")], UNAVAILABLE, 1),
    "an error, not stored": ([(PUT, "before")], UNAVAILABLE, 1),
    "errors for a while, not stored": ([(PUT, "before")], UNAVAILABLE, 5),
    "stored, and then the look at it fails too": ([(PUT, "after"), ("get", "before")], UNAVAILABLE, 2),
}


@pytest.mark.parametrize(("points", "error", "times"), ANSWERS.values(), ids=ANSWERS)
def test_an_unknown_outcome_is_settled_within_the_commit(points: Any, error: Exception, times: int) -> None:
    log = Log()
    log.door.refresh()
    failures = [times]

    def hook(method: str, path: str, phase: str) -> None:
        started = method == PUT or failures[0] < times
        if started and (method, phase) in points and failures[0] and path.endswith("1.json"):
            failures[0] -= 1
            raise error

    log.storage.hook = hook
    done = log.door.commit(mark(7))
    assert failures[0] == 0
    assert (done.version, done.written, log.entries()) == (1, True, 2)
    assert log.door.state.txn("app") == 7


def test_already_exists_may_be_our_own_success() -> None:
    """The store's client repeated the put inside: stored, then "already there"."""
    log = Log()

    def store_first(method: str, path: str, phase: str) -> None:
        if (method, phase) == (PUT, "before") and path.endswith("1.json"):
            log.storage.hook = quiet
            stored.append(log.memory.put_if_absent(path, pending()))

    stored: list[bool] = []

    def pending() -> bytes:
        return next(iter(log.door._unanswered._open.values())).data

    log.storage.hook = store_first
    done = log.door.commit(mark(7))
    assert stored == [True]
    assert (done.version, done.response, log.entries()) == (1, "answer after 1", 2)


def test_a_conflict_with_nothing_to_see_is_put_again() -> None:
    """S3's 409: refused, and no object is there."""
    log = Log()
    inner = log.storage.inner

    class Conflicts:
        left = 2

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        def put_if_absent(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> bool:
            if before:
                before()
            if self.left:
                self.left -= 1
                return False
            return inner.put_if_absent(path, data)

    door = log.open(Conflicts())
    assert door.commit(mark(7)).version == 1
    assert log.entries() == 2


@pytest.mark.parametrize("landed", [True, False])
def test_after_a_time_out_the_same_request_is_committed_once(landed: bool) -> None:
    log = Log()
    phase = "after" if landed else "before"
    log.storage.hook = _fail_puts_and_looks(phase)
    with pytest.raises(OutcomeUnknownError) as unknown:
        log.door.commit(mark(7), request_id="mine")
    assert unknown.value.request_id == "mine"
    assert unknown.value.retriable
    log.storage.hook = quiet
    done = log.door.commit(mark(7), request_id="mine")
    assert (done.version, done.written, done.response, log.entries()) == (1, True, "answer after 1", 2)


def _fail_puts_and_looks(phase_of_put: str) -> Callable[[str, str, str], None]:
    """Every put fails, and once there was one every look too."""
    puts: list[str] = []

    def hook(method: str, path: str, phase: str) -> None:
        if method == PUT:
            puts.append(path)
            if phase == phase_of_put:
                raise UNAVAILABLE
        if method == "get" and puts:
            raise UNAVAILABLE

    return hook


def test_after_a_time_out_a_race_that_somebody_else_won_is_decided_again() -> None:
    log = Log()
    log.storage.hook = _fail_puts_and_looks("before")
    with pytest.raises(OutcomeUnknownError):
        log.door.commit(mark(7), request_id="mine")
    log.storage.hook = quiet
    log.put_entry(1, Txn("theirs", 1))
    done = log.door.commit(mark(8), request_id="mine")
    assert (done.version, log.entries(), log.door.state.txn("app")) == (2, 3, 8)


def test_the_same_bytes_are_put_again_after_a_time_out() -> None:
    """A put on its way may still arrive: whichever arrives, it is the same entry."""
    log = Log()
    log.storage.hook = _fail_puts_and_looks("before")
    with pytest.raises(OutcomeUnknownError):
        log.door.commit(mark(7), request_id="mine")
    sent = log.door._unanswered._open["mine"].data
    log.storage.hook = quiet
    log.clock.pass_s(2)
    log.door.commit(mark(8), request_id="mine")
    assert log.memory.get(f"t/_delta_log/{1:020d}.json") == sent
    assert log.door.state.txn("app") == 7


def test_others_commit_between_a_time_out_and_its_repeat() -> None:
    log = Log()
    log.storage.hook = _fail_puts_and_looks("after")
    with pytest.raises(OutcomeUnknownError):
        log.door.commit(mark(7), request_id="mine")
    log.storage.hook = quiet
    log.door.commit(mark(8))
    done = log.door.commit(mark(9), request_id="mine")
    assert (done.version, log.entries(), log.door.state.txn("app")) == (1, 3, 8)


@pytest.mark.parametrize("error", [FULL, StoragePermissionError("denied")])
def test_a_definite_error_of_the_first_put_is_the_callers(error: Exception) -> None:
    log = Log()
    log.at((PUT, "before"), act=fail(error))
    with pytest.raises(type(error)):
        log.door.commit(mark(7))
    assert log.entries() == 1
    assert log.door.commit(mark(8)).version == 1


def test_a_definite_error_after_an_unknown_one_settles_nothing() -> None:
    """The first put was stored and its answer lost; that the disk is full by now changes nothing about it."""
    log = Log()
    errors = [UNAVAILABLE, FULL]

    def hook(method: str, path: str, phase: str) -> None:
        if errors and method == PUT and phase == ("after" if len(errors) == 2 else "before"):
            raise errors.pop(0)

    log.storage.hook = hook
    done = log.door.commit(mark(7))
    assert (done.version, log.entries(), errors) == (1, 2, [])


def test_an_error_of_the_look_at_what_is_already_there_settles_nothing() -> None:
    """The store's client repeated the put inside, and then the look at it was refused."""
    log = Log()
    errors: list[Exception] = [StoragePermissionError("denied")]

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == (PUT, "before") and errors:
            log.memory.put_if_absent(path, next(iter(log.door._unanswered._open.values())).data)
        if (method, phase) == ("get", "before") and log.entries() == 2 and errors:
            raise errors.pop()

    log.storage.hook = hook
    done = log.door.commit(mark(7))
    assert (done.version, log.entries(), errors) == (1, 2, [])


def test_only_definite_errors_after_an_unknown_one_stay_unknown() -> None:
    log = Log()
    puts: list[str] = []

    def hook(method: str, path: str, phase: str) -> None:
        if method == PUT and phase == "before":
            puts.append(path)
            raise UNAVAILABLE if len(puts) == 1 else FULL

    log.storage.hook = hook
    with pytest.raises(OutcomeUnknownError, match="no space"):
        log.door.commit(mark(7), request_id="mine")
    log.storage.hook = quiet
    assert log.door.commit(mark(7), request_id="mine").version == 1
    assert log.entries() == 2


def test_an_interrupt_in_the_middle_of_a_put_leaves_the_request_open() -> None:
    """Ctrl-C after the store took the entry: a repeat under the same id must find it."""
    log = Log()

    def interrupt() -> None:
        raise KeyboardInterrupt

    log.at((PUT, "after"), act=interrupt)
    with pytest.raises(KeyboardInterrupt):
        log.door.commit(mark(7), request_id="mine")
    assert log.door.commit(mark(7), request_id="mine").version == 1
    assert log.entries() == 2


def test_losing_every_race_ends_with_an_error_and_nothing_committed() -> None:
    log = Log()

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == (PUT, "before"):
            log.put_entry(log.entries(), Txn("theirs", log.entries()))

    log.storage.hook = hook
    with pytest.raises(ContendedLogError, match="nothing was committed"):
        log.door.commit(mark(7))
    log.storage.hook = quiet
    assert log.door.refresh().txn("app") is None


def test_two_handles_append_in_turn_and_see_one_another() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    one, other = lake.topic("t"), open_lake(storage, clock).topic("t")
    for i in range(4):
        (one if i % 2 else other).append(values(f"v{i}"))
    assert read(lake, "t") == ["v0", "v1", "v2", "v3"]
    assert [o for o, _ in read_offsets(lake, "t")] == [0, 1, 2, 3]


def test_a_process_that_only_reads_forgets_what_checkpoints_have_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it remembers every segment that was appended with acks=1 while it runs."""
    monkeypatch.setattr("tidelog.log.door.commit_objects.MANY_UNSYNCED", 2)
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    reader = open_lake(storage, clock).topic("t")
    for i in range(100):
        lake.topic("t").append(values(f"{i}"), acks=1)
        reader.state()
        if i % 20 == 19:
            put_checkpoint(storage.inner, "t", i - 5)
    assert len(reader._door.unsynced.up_to(reader._door.state.version)) <= 16 * 2 + 20 + 6
